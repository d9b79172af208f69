"""A page in a real browser, headless: its images, its errors, whether it fits the window."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

CHROMIUM = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    ),
    None,
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=10000",
    "--dump-dom",
)
# Stands before everything else in the page, so that no error escapes it.
WATCH = """<script>
const errors = [];
addEventListener("error", e => errors.push(e.message || "resource " + e.target.tagName), true);
addEventListener("load", () => {
  const images = [...document.images].map(i => [i.naturalWidth, i.clientWidth]);
  const page = document.documentElement;
  const asked = QUESTION;
  const seen = {errors, images, wide: page.scrollWidth, window: page.clientWidth, asked};
  const note = document.createElement("pre");
  note.id = "seen";
  note.textContent = JSON.stringify(seen);
  document.body.append(note);
});
</script>"""


@dataclass(frozen=True)
class Seen:
    """What the browser tells about a page."""

    errors: list[str]
    """Of scripts and resources."""
    console: list[str]
    """Lines of the console, of any kind."""
    images: list[tuple[int, int]]
    """Own width and shown width of every image; own width 0: it could not be shown."""
    wide: int
    window: int
    asked: Any = None
    """What the question, an expression of JavaScript, gave."""


def look(page: Path, folder: Path, width: int = 1200, question: str = "null") -> Seen:
    """Open a copy of the page that watches itself, and answers a question when it is there."""
    assert CHROMIUM
    copy = folder / f"watched-{width}.html"
    text = page.read_text(encoding="utf-8")
    watch = WATCH.replace("QUESTION", question)
    copy.write_text(text.replace("<head>", f"<head>{watch}", 1), encoding="utf-8")
    profile = folder / f"profile-{width}"
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", f"--window-size={width},900"]
    done = subprocess.run(
        [*command, copy.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, f"the page did not load: {done.stderr[-500:]}"
    seen = json.loads(unescape(found[1]))
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    images = [(own, shown) for own, shown in seen["images"]]
    return Seen(seen["errors"], console, images, seen["wide"], seen["window"], seen["asked"])
