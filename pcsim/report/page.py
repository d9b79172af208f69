"""The page: one HTML file with everything inside, from plain templates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from string import Template

from pcsim.report.answer import Banner, Part, Strip, Strips
from pcsim.report.drawing import Drawing
from pcsim.report.origin import Listing
from pcsim.rows import Rows, caption_html

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
    banner: Banner | None = None
    """The answer of a check; what is not an answer is folded below it."""
    opening: Sequence[Part] = ()
    """What is shown right below the banner."""


def page(title: str, lead: str, sections: Sequence[Section], version: str) -> str:
    """Return the whole document."""
    ids = [f"s{number}-{slug(section.title)}" for number, section in enumerate(sections, 1)]
    links = "".join(
        f'<li><a href="#{one}">{escape(section.title)}</a>{_outcome(section)}</li>'
        for one, section in zip(ids, sections, strict=True)
    )
    return Template(_file("page.html")).substitute(
        title=escape(title),
        lead=f'<p class="lead">{escape(lead)}</p>' if lead else "",
        style=_file("style.css"),
        script=_file("script.js"),
        version=escape(version),
        contents=f"<nav><ul>{links}</ul></nav>" if len(sections) > 1 else "",
        sections="\n".join(
            _section(section, one, "alone" if len(sections) == 1 else "" if number else "first")
            for number, (one, section) in enumerate(zip(ids, sections, strict=True))
        ),
    )


def slug(text: str) -> str:
    """Return text that can stand in a file name or an address."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower() or "store"


def _file(name: str) -> str:
    return resources.files("pcsim.report").joinpath(name).read_text(encoding="utf-8")


def _section(section: Section, identity: str, place: str) -> str:
    figures = [
        '<div class="figures">',
        *(_figure(drawing) for drawing in section.drawings),
        "</div>",
        *(table.html() for table in section.tables),
    ]
    configuration = [_listing(listing) for listing in section.listings]
    rest = [table.html() for table in (section.provenance, section.contents) if table]
    steps = escape("\n".join(section.commands))
    reproduce = f"<h3>How to reproduce</h3>\n<pre>{steps}</pre>" if section.commands else ""
    parts = [
        f'<h2 id="{identity}"{f" class={place}" if place else ""}>{escape(section.title)}</h2>',
        _banner(section.banner) if section.banner else "",
        f'<p class="kind">{escape(section.words)}</p>',
        f"<p><strong>{escape(section.headline)}</strong></p>" if section.headline else "",
        *map(_part, section.opening),
    ]
    if section.banner:
        parts.append(reproduce)
        parts.append(_folded("Curves and energies", figures))
        parts.append(_folded("Configuration", configuration))
        parts.append(_folded("Provenance and contents", rest))
    else:
        parts += figures
        parts += ["<h3>Configuration</h3>", *configuration] if configuration else []
        parts += [reproduce, *rest]
    return "<section>\n" + "\n".join(part for part in parts if part) + "\n</section>"


def _part(part: Part) -> str:
    if isinstance(part, Drawing):
        return f'<div class="figures">{_figure(part)}</div>'
    return _strips(part) if isinstance(part, Strips) else part.html()


def _outcome(section: Section) -> str:
    if not section.banner:
        return ""
    return f' <span class="badge {slug(section.banner.outcome)}">{section.banner.outcome}</span>'


def _banner(banner: Banner) -> str:
    facts = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in banner.facts
    )
    return (
        f'<div class="banner {slug(banner.outcome)}"><p class="outcome">{escape(banner.outcome)}'
        f'</p>\n<p class="sentence">{escape(banner.sentence)}</p>\n<dl>{facts}</dl></div>'
    )


def _folded(title: str, parts: Sequence[str]) -> str:
    return f"<details>\n<summary>{escape(title)}</summary>\n" + "\n".join(parts) + "\n</details>"


def _strips(table: Strips) -> str:
    groups = dict.fromkeys(strip.group for strip in table.strips)
    choice = "".join(
        f'<label><input type="checkbox" checked value="{escape(group, quote=True)}"> '
        f"{escape(group)}</label>"
        for group in groups
    )
    scale = "".join(f'<span style="left:{k}%">{k}</span>' for k in (0, 25, 50, 75, 100))
    names = ("row", *table.columns)
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in names)
    head = head.replace("</th>", f'</th><th class="strip"><div>{scale}</div></th>', 1)
    body = "\n".join(_strip(strip, table) for strip in table.strips)
    return (
        f'<h3>{escape(table.title)}</h3>\n<p class="choice">{choice}</p>\n'
        f'<div class="table"><table class="sortable strips">{caption_html(table.caption)}'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _strip(strip: Strip, table: Strips) -> str:
    lines = "".join(
        f'<line class="{name}" x1="{100 * at:.2f}%" x2="{100 * at:.2f}%" y1="0" y2="100%" '
        f'data-tip="{escape(words, quote=True)}"/>'
        for name, (at, words) in table.lines.items()
    )
    last = max(1, len(strip.points) - 1)
    dots = "".join(
        f'<circle cx="{100 * value:.2f}%" cy="{25 + 50 * k / last:.0f}%" r="2.5"'
        f' data-tip="{escape(tip, quote=True)}"/>'
        for k, (value, tip) in enumerate(zip(strip.points, strip.tips, strict=True))
    )
    cells = "".join(
        f'<td data-label="{escape(label, quote=True)}">{escape(cell)}</td>'
        for label, cell in zip(table.columns, strip.cells, strict=True)
    )
    name = escape(strip.name) + (" <b>← reference</b>" if strip.marked else "")
    return (
        f'<tr data-group="{escape(strip.group, quote=True)}"><td>{name}</td>'
        f'<td class="strip"><svg role="img" aria-label="{escape(strip.name, quote=True)}">'
        f"{lines}{dots}</svg></td>{cells}</tr>"
    )


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
