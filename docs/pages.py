"""Pages that are made from the code, for the documentation site (`make docs`).

mkdocs calls `on_files`; the tests call `generated` and count what is on the pages.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import notebook_pages
import typer
from api_page import Writer
from index_page import index
from pydantic import BaseModel

import hw_models
import pcsim
from hw_models.kind_pages import example, example_text, kind_rows
from hw_models.pieces import PIECES
from hw_models.printed import equations
from hw_models.remedies import REMEDIES, Remedy
from pcsim.cli import app
from pcsim.config import Config
from pcsim.fields.allowed import allowed, default_of
from pcsim.fields.config_pages import sections
from pcsim.fields.pages import first_sentence, is_tag, meaning, models_of
from pcsim.meaning import needs_of
from pcsim.variants.every_remedy import STREAM, OfStream

KINDS = {piece.__name__ for piece in PIECES.values()}
ROOT = Path(__file__).parents[1]
SUPPORT = (
    "Engines pass one conformance suite (`tests/conformance`) and agree there number by number.",
    "This is its list of gaps; what else its cases have, all engines have. *refused*: with",
    "a sentence that says why; *other*: there is no such setting, and the engine computes iPC",
    "without it.",
)


def generated() -> dict[str, str]:
    """Return all generated pages, by their path in the site."""
    pages = {"reference/configuration.md": configuration(), "reference/hardware.md": hardware()}
    pages |= {f"reference/hardware/{kind}.md": kind_page(kind) for kind in PIECES}
    pages |= {"reference/commands.md": commands(), "reference/api.md": api()}
    pages |= {"reference/support.md": support(), "reference/remedies.md": remedies()}
    glossary = (Path(__file__).parent / "glossary.md").read_text(encoding="utf-8")
    return pages | {"reference/terms.md": index(pages, glossary)}


def leaves(entry: Any) -> list[str]:
    """Return all pages of a navigation."""
    if isinstance(entry, str):
        return [entry]
    items = entry if isinstance(entry, list) else list(entry.values())
    return [leaf for item in items for leaf in leaves(item)]


def with_all_pages(nav: list[Any]) -> list[Any]:
    """Return a navigation that has every written page; those it does not name come last."""
    named = set(leaves(nav))
    others = sorted(p.name for p in Path(__file__).parent.glob("*.md") if p.name not in named)
    return [*nav, {"More": others}] if others else nav


def on_config(config: Any) -> Any:
    """Let no page be left out of the navigation (a hook of mkdocs)."""
    config.nav = with_all_pages(config.nav)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to those that are written (a hook of mkdocs)."""
    from mkdocs.structure.files import File

    for path, content in (generated() | notebook_pages.pages()).items():
        files.append(File.generated(config, path, content=content))
    return files


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return lines + [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]


def _cell(text: str) -> str:
    return " ".join(escape(text, quote=False).split()).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{' '.join(text.split())}`" if text else ""


def fields(model: type[BaseModel], prefix: str) -> list[tuple[str, str, str, str]]:
    """Return (name, default, allowed, meaning) of every field, those of inner tables too."""
    rows = []
    for name, field in model.model_fields.items():
        inner = list(dict.fromkeys(models_of(field.annotation)))
        needs = [need.words for need in needs_of(f"{prefix}{name}")]
        about = " ".join([meaning(field), *(f"Needs {need}." for need in needs)])
        takes = "this name" if is_tag(field) else "a table" if inner else allowed(field)
        default = "" if len(inner) == 1 and not field.is_required() else default_of(field)
        rows.append((f"{prefix}{name}", default, takes, about))
        if len(inner) == 1:
            rows += fields(inner[0], f"{prefix}{name}.")
    return rows


def _fields_table(rows: Sequence[tuple[str, str, str, str]]) -> list[str]:
    shown = [(_code(name), _code(default), takes, about) for name, default, takes, about in rows]
    return table(("field", "default", "takes", "meaning"), shown)


def configuration() -> str:
    """Return every field of a configuration file."""
    lines = ["# Configuration: every field", ""]
    lines += ["`pcsim config SECTION` prints the same; `pcsim run FILE.toml` takes it.", ""]
    for section, models in sections().items():
        field = Config.model_fields.get(section)
        about = meaning(field) if field else "For `pcsim sweep`: fields that vary, and how."
        lines += [f"## [{section}]", "", about, ""]
        for model in models:
            if len(models) > 1:
                kind = model.model_fields["kind"].default
                lines += [f'### {section}.kind = "{kind}"', "", first_sentence(model), ""]
            lines += [*_fields_table(fields(model, f"{section}.")), ""]
    return "\n".join(lines)


def hardware() -> str:
    """Return the list of all kinds of non-idealities."""
    rows = [(f"[{kind}](hardware/{kind}.md)", sites, about) for kind, sites, about in kind_rows()]
    lines = ["# Hardware: every kind", "", f"{len(rows)} kinds of pieces. A chip is a file of them"]
    lines += ["([chip language](../chip_language.md)); so does `pcsim hardware kinds KIND`.", ""]
    return "\n".join(lines + table(("kind", "acts on", "what it is"), rows)) + "\n"


def kind_page(kind: str) -> str:
    """Return all that is to be known of a kind: fields, example, equations as they run."""
    model = PIECES[kind]
    lines = [f"# {kind}", "", "```text", inspect.getdoc(model) or "", "```", "", "## Fields", ""]
    lines += _fields_table(fields(model, ""))
    lines += ["", "## Example", "", "```toml", example_text(kind).strip(), "```", ""]
    lines += ["## Equations of the example, as they run", "", "s is the signal.", "", "```text"]
    lines += [line for effect in example(kind).effects("example") for line in equations(effect)]
    return "\n".join([*lines, "```", ""])


def commands() -> str:
    """Return every verb of the command line with its options."""
    lines = ["# Commands", ""]
    root: Any = typer.main.get_command(app)
    for name, verb in root.commands.items():
        inner = getattr(verb, "commands", None)
        for path, one in inner.items() if inner else [("", verb)]:
            title = f"pcsim {name} {path}".strip()
            lines += [f"## {title}", "", " ".join((one.help or "").split()), ""]
            rows = []
            for parameter in one.params:
                if parameter.name != "help":
                    shown = ", ".join([*parameter.opts, *parameter.secondary_opts])
                    if parameter.param_type_name == "argument":
                        shown = parameter.metavar or str(parameter.name).upper()
                    rows.append((_code(shown), getattr(parameter, "help", None) or ""))
            lines += [*table(("", ""), rows), ""] if rows else []
    return "\n".join(lines)


def api() -> str:
    """Return every public name with its signature, fields and methods."""
    writer = Writer(table, fields)
    lines = ["# Python: the public names", ""]
    for title, about, names in public():
        lines += [f"# {title}", "", about, ""]
        for name, value in names.items():
            lines += writer.entry(name, value)
    return "\n".join(lines)


def public() -> list[tuple[str, str, dict[str, Any]]]:
    """Return the parts of the page: title, a sentence, and the names with their values."""
    from pcsim import store
    from pcsim.check import Check
    from pcsim.compare.comparison import Comparison
    from pcsim.status import Status
    from pcsim.verdict import Verdict

    core = {name: getattr(pcsim, name) for name in pcsim.__all__}
    returned = {"Check": Check, "Comparison": Comparison, "Verdict": Verdict, "Status": Status}
    stored = {"Result": store.Result, "load": store.load, "save": store.save}
    chips = {name: getattr(hw_models, name) for name in hw_models.__all__ if name not in KINDS}
    parts = [
        ("import pcsim", "Describe, simulate, ask.", core),
        ("What they return", "Made by the calls above; nobody has to make one.", returned),
        ("from pcsim import store", "Results as files.", stored),
        (
            "import hw_models",
            "Chips. A class for every kind of piece is there as well, by the name on "
            "[its page](hardware.md).",
            chips,
        ),
    ]
    try:
        from pcsim import brian
    except pcsim.errors.UnsupportedError:
        return parts
    own = {name: getattr(brian, name) for name in brian.__all__ if name not in core}
    return [*parts, ("import pcsim.brian as pc", "Circuits for a Brian2 network.", own)]


def gaps() -> dict[str, tuple[Any, ...]]:
    """Return the gaps of every engine as the conformance suite lists them."""
    folder = str(ROOT / "tests/conformance")
    sys.path.insert(0, folder)
    try:
        import continuous_adapter
        import discrete_adapter
        import native_adapter

        found = {
            "continuous (torch)": continuous_adapter.GAPS,
            "native (C)": native_adapter.GAPS,
            "discrete": discrete_adapter.GAPS,
        }
        try:
            import brian_adapter

            found["Brian2"] = brian_adapter.GAPS
        except pcsim.errors.UnsupportedError:
            pass
    finally:
        sys.path.remove(folder)
    return found


def remedies() -> str:
    """Return the page of all remedies, from their registry."""
    registries: tuple[Remedy | OfStream, ...] = (*REMEDIES, *STREAM)
    rows = [
        (
            remedy.name,
            remedy.about,
            f"{remedy.devices:g}",
            remedy.lines,
            remedy.time,
            "yes" if remedy.automatic else "no",
            "; ".join(remedy.sources),
        )
        for remedy in registries
    ]
    head = ("remedy", "what is done", "devices per weight", "lines", "time", "automatic", "source")
    return "\n".join(
        [
            "# Remedies",
            "",
            "What may be built around a chip so that it trains after all, from the registries",
            "`hw_models.remedies` and, for what is shown, `pcsim.variants.every_remedy`.",
            "*Automatic*: no controller has to tell the chip when something happens; with the",
            "others, the schedule is no longer fully automatic. Devices, lines and time are what a",
            "remedy adds.",
            "",
            *table(head, rows),
            "",
        ]
    )


def support() -> str:
    """Return which engine has which feature: yes, or refused, or something else."""
    known = gaps()
    listed = [gap for all_ in known.values() for gap in all_]
    features = list(dict.fromkeys(" + ".join(sorted(gap.features)) for gap in listed))
    lines = ["# Support: engines and features", "", *SUPPORT, ""]
    rows = []
    for feature in features:
        row = [feature]
        for engine in known.values():
            wanted = set(feature.split(" + "))
            hit = [gap for gap in engine if gap.features <= wanted]
            row.append("yes" if not hit else "refused" if hit[0].refused else "other")
        rows.append(row)
    return "\n".join([*lines, *table(("feature", *known), rows), ""])
