"""What is imported where, and when: what the contracts in pyproject.toml cannot say.

Who may know about whom is said there, and checked by `make lint`.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("pcsim", "hw_models", "experiments")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def imports(tree: ast.AST, package: str = "") -> set[str]:
    """Return the full names of everything imported, at any depth; `package` resolves dots."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: -node.level + 1 or None] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Call) and _name(node.func) in {"import_module", "__import__"}:
            found |= {a.value for a in node.args[:1] if isinstance(a, ast.Constant)}
    return found


def at_load(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when a module is imported: all but function bodies."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        inner = [s for s in ast.iter_child_nodes(node) if isinstance(s, ast.stmt)]
        handlers = [s for h in getattr(node, "handlers", []) for s in h.body]
        if inner or handlers:
            yield from at_load(inner + handlers)
        else:
            yield node


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def used(path: Path) -> set[str]:
    return imports(parsed(path), ".".join(path.relative_to(ROOT).parent.parts))


def knows(names: set[str], module: str) -> bool:
    return any(name == module or name.startswith(f"{module}.") for name in names)


def having(module: str) -> set[str]:
    """Return the files that import a module, relative to the root."""
    return {path.relative_to(ROOT).as_posix() for path in FILES if knows(used(path), module)}


def inside(package: str) -> list[Path]:
    return [path for path in FILES if path.relative_to(ROOT).as_posix().startswith(f"{package}/")]


def test_simulator_loads_hardware_models_and_studies_only_when_asked_for():
    assert inside("pcsim")
    for path in inside("pcsim"):
        tree = ast.Module(list(at_load(parsed(path).body)), [])
        loaded = imports(tree, ".".join(path.relative_to(ROOT).parent.parts))
        for other in ("hw_models", "experiments"):
            assert not knows(loaded, other), f"{path} imports {other}"
        if path.parent.name != "cli":  # the command line may load a study when asked for
            assert not knows(used(path), "experiments"), path


def test_hdf5_stays_in_the_store():
    files = having("h5py")
    assert files  # the guard sees the imports that are there
    assert all(name.startswith("pcsim/store/") for name in files), files


def test_brian_stays_in_its_backend():
    assert having("brian2")  # the guard sees the imports that are there
    assert all(name.startswith("pcsim/backends/brian") for name in having("brian2"))


def test_dask_stays_where_sweeps_are_distributed():
    assert having("distributed") == {"pcsim/sweep/cluster.py"}
    assert not having("dask")
    for path in inside("pcsim"):
        tree = ast.Module(list(at_load(parsed(path).body)), [])
        assert not knows(imports(tree), "distributed"), "dask is loaded only when asked for"


def test_kornia_is_loaded_through_one_door_when_a_picture_is_changed():
    """`pcsim.vision.library` loads it by name; nothing else imports it."""
    assert not having("kornia")
    assert "kornia" in (ROOT / "pcsim/vision/library.py").read_text(encoding="utf-8")
    others = (path for path in inside("pcsim") if path.parent.name != "vision")
    assert not any("kornia.enhance" in path.read_text(encoding="utf-8") for path in others)


def test_no_pickle_and_no_torch_load():
    for module in ("pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"):
        assert not having(module), module
    for path in FILES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Attribute) and node.attr == "load":
                assert _name(node.value) != "torch", f"{path}:{node.lineno}: torch.load"
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                value = getattr(node.value, "value", None)
                assert value is False, f"{path}:{node.value.lineno}: allow_pickle"
        assert "torch.load" not in used(path), path


@pytest.mark.parametrize(
    ("text", "module", "at_any_depth", "at_top"),
    [
        ("import hw_models.rram as r", "hw_models", True, True),
        ("from hw_models import rram", "hw_models", True, True),
        (
            "if True:\n  try:\n    import torch\n  except ImportError:\n    pass",
            "torch",
            True,
            True,
        ),
        ("try:\n  pass\nexcept ImportError:\n  import torch", "torch", True, True),
        ("class A:\n  import torch", "torch", True, True),
        ("def f():\n  import torch", "torch", True, False),
        ("from . import backends", "pcsim.backends", True, True),
        ("from ..backends import brian", "pcsim.backends", False, False),
        ("from importlib import import_module\nimport_module('h5py')", "h5py", True, True),
        ("import torchvision", "torch", False, False),
        ("x = 'import torch'  # import torch", "torch", False, False),
    ],
)
def test_the_guard_itself(text, module, at_any_depth, at_top):
    tree = ast.parse(text)
    assert knows(imports(tree, "pcsim"), module) == at_any_depth
    top = ast.Module(list(at_load(tree.body)), [])
    assert knows(imports(top, "pcsim"), module) == at_top
