"""The call behind `pcsim report`: read stores, draw what they allow, write one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pcsim import __version__
from pcsim.errors import StoreError
from pcsim.report.along_axes import accuracy_along_axes, margins
from pcsim.report.answer import banner, opening, row_drawing
from pcsim.report.chip_spread import chip_spread
from pcsim.report.deployed import deployment_drawing
from pcsim.report.origin import commands, configurations, provenance_rows
from pcsim.report.page import Section, page, slug
from pcsim.report.phase_diagram import phase_diagrams
from pcsim.report.read import views
from pcsim.report.running_curves import running_curves
from pcsim.report.side_by_side import comparison_drawing, side_by_side
from pcsim.report.summary import headline, tables
from pcsim.report.trajectory_lines import trajectory_lines
from pcsim.report.view import View
from pcsim.store.files import check_own, check_suffix, write_own

MARK = '<meta name="generator" content="pcsim '
"""What every page says of itself in its head."""
FIGURES = (
    row_drawing,
    deployment_drawing,
    comparison_drawing,
    phase_diagrams,
    accuracy_along_axes,
    running_curves,
    margins,
    chip_spread,
    trajectory_lines,
)
"""Each looks at a store and returns the drawings it has data for; the page keeps this order."""
KINDS = {
    "training": "Training in epochs (discrete schedule)",
    "check": "Check: does automatic predictive coding train on this chip?",
    "chips": "A population of chips in continuous time",
    "automatic": "Automatic run: full batch, nothing switched",
    "sweep": "Sweep",
    "comparison": "Comparison",
    "deploy": "Deployment: a trained network in the devices of a chip",
}


def report(
    stores: Path | str | Sequence[Path | str],
    out: Path | str | None = None,
    *,
    figures: Path | str | None = None,
    title: str | None = None,
) -> Path:
    """Write the report of one or several stores; return its path.

    Main arguments:
        stores: result files, sweep folders, or folders with results.
        out: the HTML file; default: beside the first store, with its name.

    Rarely used:
        figures: folder for the same figures as SVG and PDF.
        title: heading of the page; default: the names of the stores.
    """
    given = [stores] if isinstance(stores, Path | str) else list(stores)
    if not given:
        raise StoreError("report: give at least one store")
    paths = [Path(one) for one in given]
    target = Path(out) if out else paths[0].with_suffix(".html")
    _check_target(target, paths)
    seen = views(paths)
    sections = [section(view) for view in seen]
    together = side_by_side(seen)
    if together:
        sections.insert(0, together)
    if figures:
        _save_figures(sections, Path(figures))
    heading = title or _heading(seen, sections)
    lead = f"pcsim report of {len(seen)} stores." if len(seen) > 1 else ""
    text = page(heading, lead, sections, __version__)
    write_own(target, text.encode(), MARK)
    return target


def _heading(seen: Sequence[View], sections: Sequence[Section]) -> str:
    """Return the names of the stores; of a single check its outcome."""
    if len(sections) == 1 and (answer := sections[0].banner):
        return f"{sections[0].title}: {answer.outcome}"
    names = ", ".join(view.name for view in seen[:4])
    return f"Report: {names}" + ("…" if len(seen) > 4 else "")


def _save_figures(sections: Sequence[Section], folder: Path) -> None:
    """Write all figures, or none if one of them would replace a file that is not pcsim's."""
    drawings = [
        (drawing, f"{slug(one.title)}_" if len(sections) > 1 else "")
        for one in sections
        for drawing in one.drawings
    ]
    for drawing, prefix in drawings:
        for path in drawing.paths(folder, prefix):
            check_own(path)
    for drawing, prefix in drawings:
        drawing.save(folder, prefix)


def _check_target(target: Path, stores: Sequence[Path]) -> None:
    """Refuse to write the page over a store, or over a page that pcsim did not make."""
    check_suffix(target, ".html", ".htm")
    check_own(target, MARK)
    for store in stores:
        if target.resolve() == store.resolve():
            raise StoreError(f"{target}: is the store itself; give another name for the page")


def section(view: View) -> Section:
    """Return all that can be shown of one store."""
    attrs = view.result.attrs
    words = [KINDS.get(view.kind, "Stored result")]
    if "points" in attrs:
        counts = [
            f"{attrs[name]} {name}"
            for name in ("done", "failed", "diverged", "missing")
            if attrs.get(name)
        ]
        words.append(f"{attrs['points']} points: {', '.join(counts)}")
    if view.varied:
        words.append("varied: " + ", ".join(view.varied))
    if "time_utc" in attrs:
        words.append(f"made {str(attrs['time_utc'])[:16].replace('T', ' ')} UTC")
    return Section(
        view.name,
        "; ".join(words) + ".",
        "" if view.kind == "check" else headline(view),
        banner=banner(view),
        opening=opening(view),
        drawings=[drawing for draw in FIGURES for drawing in draw(view)],
        tables=tables(view),
        listings=configurations(view),
        provenance=provenance_rows(view),
        contents=view.result.contents(),
        commands=commands(view),
    )
