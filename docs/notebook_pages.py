"""Notebooks as pages of the site: executed when it is built, with what they print and draw."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).parents[1] / "notebooks"


def page(path: Path) -> dict[str, str | bytes]:
    """Return the page of a notebook and its figures, by their names in the site."""
    import jupytext
    from jupyter_client.manager import KernelManager
    from nbclient import NotebookClient
    from nbconvert import MarkdownExporter

    book = jupytext.read(path)
    with TemporaryDirectory() as folder:
        run = {"metadata": {"path": folder}}
        manager = KernelManager(kernel_name="python3", transport="ipc", ip=f"{folder}/kernel")
        NotebookClient(book, km=manager, timeout=600, resources=run).execute()
    text, made = MarkdownExporter(exclude_input_prompt=True).from_notebook_node(book)
    figures = {f"notebooks/{path.stem}_{name}": data for name, data in made["outputs"].items()}
    for name in made["outputs"]:
        text = text.replace(f"]({name})", f"]({path.stem}_{name})")
    return {f"notebooks/{path.stem}.md": text, **figures}


def pages() -> dict[str, str | bytes]:
    """Return the pages of all notebooks with their figures."""
    return {k: v for path in sorted(FOLDER.glob("*.py")) for k, v in page(path).items()}
