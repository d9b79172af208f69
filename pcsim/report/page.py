"""The page: one HTML file with everything inside, from plain templates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from string import Template

from pcsim.report.drawing import Drawing
from pcsim.report.origin import Listing
from pcsim.rows import Rows

WIDE = 6.6
"""Figures of more inches than this take the whole width of the page."""


@dataclass(frozen=True, eq=False)
class Section:
    """What is shown of one store (or of several together)."""

    title: str
    words: str
    headline: str = ""
    drawings: Sequence[Drawing] = ()
    tables: Sequence[Rows] = ()
    listings: Sequence[Listing] = ()
    """Configurations."""
    provenance: Rows | None = None
    contents: Rows | None = None
    """Every variable of the store."""
    commands: Sequence[str] = ()


def page(title: str, lead: str, sections: Sequence[Section], version: str) -> str:
    """Return the whole document."""
    ids = [f"s{number}-{slug(section.title)}" for number, section in enumerate(sections, 1)]
    links = "".join(
        f'<li><a href="#{one}">{escape(section.title)}</a></li>'
        for one, section in zip(ids, sections, strict=True)
    )
    return Template(_file("page.html")).substitute(
        title=escape(title),
        lead=escape(lead),
        style=_file("style.css"),
        version=escape(version),
        contents=f"<nav><ul>{links}</ul></nav>" if len(sections) > 1 else "",
        sections="\n".join(
            _section(section, one, first=not number)
            for number, (one, section) in enumerate(zip(ids, sections, strict=True))
        ),
    )


def slug(text: str) -> str:
    """Return text that can stand in a file name or an address."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower() or "store"


def _file(name: str) -> str:
    return resources.files("pcsim.report").joinpath(name).read_text(encoding="utf-8")


def _section(section: Section, identity: str, *, first: bool) -> str:
    parts = [
        f'<h2 id="{identity}"{" class=first" if first else ""}>{escape(section.title)}</h2>',
        f'<p class="kind">{escape(section.words)}</p>',
        f"<p><strong>{escape(section.headline)}</strong></p>" if section.headline else "",
        '<div class="figures">',
        *(_figure(drawing) for drawing in section.drawings),
        "</div>",
        *(table.html() for table in section.tables),
    ]
    if section.listings:
        parts.append("<h3>Configuration</h3>")
        parts += [_listing(listing) for listing in section.listings]
    if section.commands:
        steps = escape("\n".join(section.commands))
        parts.append(f"<h3>How to reproduce</h3>\n<pre>{steps}</pre>")
    if section.provenance:
        parts.append(section.provenance.html())
    if section.contents:
        parts.append(section.contents.html())
    return "<section>\n" + "\n".join(parts) + "\n</section>"


def _figure(drawing: Drawing) -> str:
    alt = escape(f"{drawing.title}. {drawing.caption}", quote=True)
    wide = " class=wide" if drawing.figure.get_figwidth() > WIDE else ""
    return (
        f"<figure{wide}>\n<h3>{escape(drawing.title)}</h3>\n"
        f'<img src="{drawing.data_uri()}" alt="{alt}">\n'
        f"<figcaption>{escape(drawing.caption)}</figcaption>\n</figure>"
    )


def _listing(listing: Listing) -> str:
    title, text = escape(listing.title), escape(listing.text)
    return f"<p class=file>{title}</p>\n<pre class=columns>{text}</pre>"
