"""The index of the site: every field, kind, command, public name and term, and where it stands."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

ROW = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
TERM = re.compile(r"^\*\*([^*]+)\*\*:", re.MULTILINE)
CONFIGURATION, COMMANDS, API = (f"reference/{n}.md" for n in ("configuration", "commands", "api"))
Places = dict[str, list[tuple[str, str]]]


def slug(heading: str) -> str:
    """Return the anchor of a heading, as Python-Markdown makes it."""
    plain = re.sub(r"[^\w\s-]", "", heading).strip().lower()
    return re.sub(r"[-\s]+", "-", plain)


def places(pages: Mapping[str, str], glossary: str) -> Places:
    """Return where each word of the reference and of the glossary stands: (words, link)."""
    found: Places = defaultdict(list)
    for section, body in _parts(pages[CONFIGURATION]):
        link = f"configuration.md#{slug(section)}"
        for path in dict.fromkeys(ROW.findall(body)):
            found[path.rpartition(".")[2]].append((path, link))
    for path, page in pages.items():
        if path.startswith("reference/hardware/"):
            kind = path.rpartition("/")[2].removesuffix(".md")
            found[kind].append(("kind of hardware", f"hardware/{kind}.md"))
            for name in ROW.findall(page):
                if name != "kind":
                    found[name.rpartition(".")[2]].append((kind, f"hardware/{kind}.md#fields"))
    for command, body in _parts(pages[COMMANDS]):
        link = f"commands.md#{slug(command)}"
        found[command].append(("command", link))
        for option in ROW.findall(body):
            if option.startswith("--"):
                found[option.split(",")[0]].append((command, link))
    for name, _ in _parts(pages[API]):
        found[name].append(("Python", f"api.md#{slug(name)}"))
    for words in TERM.findall(glossary):
        for word in words.split(", "):
            found[word].append(("glossary", "../glossary.md"))
    return found


def _parts(page: str) -> Iterable[tuple[str, str]]:
    pieces = HEADING.split(page)[1:]
    return zip(pieces[::2], pieces[1::2], strict=True)


def index(pages: Mapping[str, str], glossary: str) -> str:
    """Return the page: words in alphabetical order, each with the places where it is described."""
    found = places(pages, glossary)
    lines = ["# Index", "", f"{len(found)} words, and where each is described.", ""]
    letter = ""
    for word in sorted(found, key=lambda w: (w.lstrip("-").lower(), w)):
        first = word.lstrip("-")[0].upper()
        if first != letter:
            letter = first
            lines += [f"## {letter}", ""]
        links = ", ".join(f"[{text}]({link})" for text, link in dict.fromkeys(found[word]))
        lines += [f"- `{word}`: {links}"]
    return "\n".join([*lines, ""])
