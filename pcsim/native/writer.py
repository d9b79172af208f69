"""What C code is written with: pointers, working memory, constants, and elementwise expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from torch import Tensor

from pcsim.native.formula import ONE, Node, apply, walk

Value = float | Tensor


@dataclass(frozen=True)
class Array:
    """An array that the code takes, by where it stands in the plan."""

    kind: str
    """state, clamp, fixed, drawn, memory, ring, seen, keys, count."""
    part: str
    """`g0` is layer 0, `m0` the synapses onto it."""
    name: str


@dataclass(eq=False)
class Var:
    """A symbol of the plan as the code knows it."""

    index: str = ""
    """sample, unit, one (of layers); element, row, column (of synapses); "" is no array."""
    c: str = ""
    value: float = 0.0
    node: Node | None = None
    """The expression of what is computed where it is needed."""
    ready: bool = True


@dataclass
class Program:
    """The source, and what has to be given to it."""

    source: str = ""
    arrays: list[Array] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """How many numbers of each chip the code finds there."""
    numbers: list[Node] = field(default_factory=list)
    """Expressions of constants, in the order in which the code takes their values."""
    constants: dict[str, float] = field(default_factory=dict)
    places: list[str] = field(default_factory=list)
    """Places whose memory or time step depends on when they were used last."""
    rings: list[tuple[str, int]] = field(default_factory=list)
    """Delay lines: the field of the circuit, and the layer."""
    scratch: int = 0
    """Numbers of working memory per thread."""


@cache
def prelude() -> str:
    """Return what all code begins with: random numbers and functions."""
    return own_file("counter.c") + own_file("kernel.h")


@cache
def own_file(name: str) -> str:
    """Return a file of C code of this package."""
    return (files("pcsim.native") / name).read_text(encoding="utf-8")


class Writer:
    """Code that is being written."""

    def __init__(self, constants: Mapping[str, float]) -> None:
        self.out = Program(constants=dict(constants))
        self.vars: dict[str, Var] = {}
        self.head: list[str] = []
        self.body: list[str] = []
        """Lines before the loop over time, and in it."""
        self._slots: dict[Node, str] = {}
        self._count = 0

    def _pointer(self, array: Array, c: str, size: int, of: str = "REAL") -> None:
        """Let the code take an array with `size` numbers of each chip."""
        n = len(self.out.arrays)
        self.out.arrays.append(array)
        self.out.sizes.append(size)
        self.head.append(f"{of} *restrict const {c} = ({of} *)pointers[{n}] + chip * strides[{n}];")

    def _scratch(self, c: str, count: int) -> None:
        self.head.append(f"REAL *restrict const {c} = scratch + {self.out.scratch};")
        self.out.scratch += -(-count // 16) * 16 + 16

    def _bytes(self, c: str, count: int, size: int) -> None:
        """Take working memory for whole numbers, with room behind it."""
        kind = {1: "uint8_t", 4: "int32_t"}[size]
        self.head.append(f"{kind} *restrict const {c} = ({kind} *)(scratch + {self.out.scratch});")
        self.out.scratch += -(-count * size // 64) * 16 + 32

    def _fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def _noise(self, key: str, size: int) -> str:
        c = self._fresh("noise")
        self._scratch(c, size)
        self._pointer(Array("keys", key, ""), f"{c}_keys", 1, "const uint64_t")
        return c

    # ---- expressions

    def _fixed(self, name: str) -> bool:
        var = self.vars[name]
        return not var.index and var.node is None

    def emit(
        self,
        roots: Sequence[Node],
        leaf: Callable[[str], str],
        into: list[str],
        moves: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Write what computes some nodes; return the C expressions of their values."""
        roots = self._gathered(roots)
        text: dict[Node, str] = {}
        fixed: dict[Node, bool] = {}
        wanted = set(roots)
        uses: dict[Node, int] = {}
        nodes = list(walk(*roots))
        for node in nodes:
            for arg in node.args:
                uses[arg] = uses.get(arg, 0) + 1
            if node.kind == "number":
                fixed[node] = True
            elif node.kind == "symbol":
                fixed[node] = self._constant_symbol(node.name)
            else:
                fixed[node] = all(fixed[arg] for arg in node.args)

        def of(node: Node) -> str:
            if node.kind == "number":
                return _literal(float(node.value))
            if fixed[node]:
                return self._slot(node)
            return text[node]

        for node in nodes:
            if fixed[node]:
                continue
            if node.kind == "symbol":
                text[node] = leaf(node.name)
                continue
            args = [of(arg) for arg in node.args]
            if node.kind == "div" and fixed[node.args[1]]:
                value = f"OVER({', '.join(args)}, {self._slot(apply('div', ONE, node.args[1]))})"
            else:
                value = _operation(node, args, (moves or {}).get("$moves", ""))
            if uses.get(node, 0) > 1 or (node in wanted and node.args):
                name = self._fresh("v")
                into.append(f"const REAL {name} = {value};")
                value = name
            text[node] = value
        return [of(root) for root in roots]

    def _constant_symbol(self, name: str) -> bool:
        return not name.startswith("$") and self._fixed(name)

    def _gathered(self, roots: Sequence[Node]) -> list[Node]:
        """Return the same with the constants of every product brought together, as one factor."""
        fixed: dict[Node, bool] = {}
        split: dict[Node, tuple[Node, Node]] = {}
        """Every node as a constant times the rest."""
        for node in walk(*roots):
            fixed[node] = (
                self._constant_symbol(node.name)
                if node.kind == "symbol"
                else all(fixed[arg] for arg in node.args)
            )
            if fixed[node]:
                split[node] = (node, ONE)
                continue
            parts = [split[arg] for arg in node.args]
            if node.kind == "mul":
                (a, x), (b, y) = parts
                split[node] = (apply("mul", a, b), apply("mul", x, y))
            elif node.kind == "neg":
                split[node] = (apply("neg", parts[0][0]), parts[0][1])
            else:
                args = (_product(*part) for part in parts)
                split[node] = (ONE, apply(node.kind, *args) if node.args else node)
        return [_product(*split[root]) for root in roots]

    def _slot(self, node: Node) -> str:
        """Return the constant that stands for an expression of constants."""
        if node not in self._slots:
            name = f"c{len(self.out.numbers)}"
            self.head.append(f"const REAL {name} = (REAL)numbers[{len(self.out.numbers)}];")
            self.out.numbers.append(node)
            self._slots[node] = name
        return self._slots[node]


def _product(constant: Node, rest: Node) -> Node:
    if rest is ONE:
        return constant
    return apply("neg", rest) if constant.number == -1.0 else apply("mul", rest, constant)


def _literal(value: float) -> str:
    if value in (float("inf"), float("-inf")):
        return f"({'-' if value < 0 else ''}(REAL)INFINITY)"
    return f"R({value!r})" if value >= 0 else f"(-R({-value!r}))"


_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_ORDER = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}


_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_ORDER = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _operation(node: Node, args: list[str], moves: str) -> str:
    """Return an operation in C."""
    kind = node.kind
    if kind in _INFIX:
        return f"({args[0]} {_INFIX[kind]} {args[1]})"
    if kind in _ORDER:
        return f"({args[0]} {_ORDER[kind]} {args[1]} ? R(1.0) : R(0.0))"
    if kind == "neg":
        return f"(-{args[0]})"
    if kind == "int":
        return args[0]
    if kind == "moved":
        return f"PICK({moves}, {args[0]}, {args[1]})"
    if kind == "abs":
        return f"FABS({args[0]})"
    if kind == "pow":
        power = node.args[1].number
        if power in (3, 4):
            return f"({' * '.join([args[0]] * int(power))})"
    return f"{kind.upper()}({', '.join(args)})"
