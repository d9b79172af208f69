"""Products of whole batches, and a clamped input that is followed by its Gram matrix.

While r is fixed and w ← w + γ Σ_q δ_q r_qᵀ, what arrives is a ← a + γ (r rᵀ) δ, and the weights are
written once, at the end: the law of `pcsim.kernels.clamped_input`.
"""

from __future__ import annotations

from functools import cached_property

from pcsim.circuits.text import Equation
from pcsim.native.formula import Node, Term, apply, names, symbol
from pcsim.native.synapses import Synapses

DEPTH, PANEL = 512, 32
"""As in `product.h`: what is added up in one go, and the most columns of a panel."""


class BatchSums(Synapses):
    """Synapses of a batch: sums and changes of weights are products of matrices."""

    followed: frozenset[int] = frozenset()
    """Connections whose input is followed."""
    last: list[str]
    """Lines at the end of a batch."""

    def _scratch(self, c: str, count: int) -> None:
        """Take working memory; a step that is written twice has one."""
        if c not in self._taken:
            self._taken.add(c)
            super()._scratch(c, count)

    @cached_property
    def _taken(self) -> set[str]:
        """Names of memory and of arrays that the code has."""
        return set()

    def _product(
        self,
        sizes: tuple[int, int, int],
        left: tuple[str, int, int],
        right: tuple[str, int, int],
        into: tuple[str, int],
        gain: str = "R(1.0)",
        *,
        add: bool = False,
        lower: bool = False,
    ) -> str:
        """Return a product of matrices: arrays with the steps of their rows and columns."""
        rows, columns, depth = sizes
        largest = max(self.S, *self.units)
        self._scratch("room", (largest + 8) * DEPTH + DEPTH * PANEL)
        (a, am, ak), (b, bk, bn), (c, cm) = left, right, into
        return (
            f"MATRICES({rows}, {columns}, {depth}, {a}, {am}, {ak}, {b}, {bk}, {bn}, {gain}, "
            f"{int(add)}, {c}, {cm}, {int(lower)}, room);"
        )

    # ---- sums

    def _sum_rows(
        self, k: int, target: str, factors: list[tuple[Term, str, str]], largest: bool = False
    ) -> None:
        plain = self._plain(factors, post=False)
        if plain is None:
            super()._sum_rows(k, target, factors, largest)
            return
        matrix, pre, gain = plain
        link, S = self.plan.connections[k], self.S
        n_post, n_pre = self.units[link.post], self.units[link.pre]
        whole = self._product(
            (S, n_post, n_pre), (pre, n_pre, 1), (matrix, 1, n_pre), (target, n_post), gain
        )
        self.body.append(whole)

    def _sum_columns(
        self, k: int, target: str, factors: list[tuple[Term, str, str]], largest: bool = False
    ) -> None:
        plain = self._plain(factors, post=True)
        if plain is None:
            super()._sum_columns(k, target, factors, largest)
            return
        matrix, post, gain = plain
        link, S = self.plan.connections[k], self.S
        n_post, n_pre = self.units[link.post], self.units[link.pre]
        self.body.append(
            self._product(
                (S, n_pre, n_post), (post, n_post, 1), (matrix, n_pre, 1), (target, n_pre), gain
            )
        )

    def _plain(
        self, factors: list[tuple[Term, str, str]], *, post: bool
    ) -> tuple[str, str, str] | None:
        """Return array, signal and factor where a sum is one product of matrices."""
        if self.S == 1 or len(factors) != 1:
            return None
        term, from_pre, from_post = factors[0]
        signal, other = (from_post, from_pre) if post else (from_pre, from_post)
        matrix = self._stored(term.synapse)
        if not (matrix and signal) or other:
            return None
        return matrix, signal, self.emit([term.constant], str, [])[0]

    # ---- changes of weights

    def _learn(self, k: int, line: Equation) -> None:
        rate = apply("mul", symbol("dt"), self.read(f"m{k}", line.text))
        hebb = self._hebb(k, rate) if self.S > 1 or k in self.followed else None
        if hebb is None:
            super()._learn(k, line)
            return
        gain, pre, post = hebb
        link = self.plan.connections[k]
        n_post, n_pre = self.units[link.post], self.units[link.pre]
        c = self.vars[f"{line.name}@m{k}"].c
        write = self._product(
            (n_post, n_pre, self.S), (post, 1, n_post), (pre, n_pre, 1), (c, n_pre), gain, add=True
        )
        if k not in self.followed:
            self.body.append(write)
            return
        size, summed = self.S * n_post, f"summed_m{k}"
        self._scratch(summed, size)
        self.body += [
            f"if (kept_m{k}) for (int u = 0; u < {size}; u++) {summed}[u] += {post}[u];",
            f"else memcpy({summed}, {post}, {size} * sizeof(REAL));",
            f"kept_m{k} = moved_m{k} = 1;",
        ]
        at_end = write.replace(f", {post}, 1,", f", {summed}, 1,")
        self.last.append(f"if (kept_m{k}) {at_end}")

    def _hebb(self, k: int, rate: Node) -> tuple[str, str, str] | None:
        """Return factor and signals where a change is one product, the same factor everywhere."""
        factors = self._factors(k, rate)
        if len(factors) != 1:
            return None
        term, pre, post = factors[0]
        if not (pre and post):
            return None
        if any(self.vars[name].index != "one" for name in names(term.synapse)):
            return None
        factor = apply("mul", term.constant, term.synapse)
        # It is the same in every step, and is needed behind the last one.
        return self.emit([factor], self._element(k), self.head)[0], pre, post

    def follow(self, k: int, target: str) -> None:
        """Write what arrives from an input that stays, instead of a product with the weights."""
        line = next(line for line in self.texts[f"m{k}"] if line.name == "w")
        rate = apply("mul", symbol("dt"), self.read(f"m{k}", line.text))
        hebb = self._hebb(k, rate)
        assert hebb is not None
        gain, pre, post = hebb
        link, S = self.plan.connections[k], self.S
        n_post, n_pre = self.units[link.post], self.units[link.pre]
        gram = f"gram_m{k}"
        self._scratch(gram, S * S)
        known = self._product(
            (S, S, n_pre), (pre, n_pre, 1), (pre, 1, n_pre), (gram, S), lower=True
        )
        moved = self._product(
            (S, n_post, S), (gram, S, 1), (post, n_post, 1), (target, n_post), gain, add=True
        )
        self.body += [
            f"if (moved_m{k}) {{",
            f"if (!known_m{k}) {{\n{known}\nMIRROR({S}, {gram});\nknown_m{k} = 1;\n}}",
            f"{moved}\nmoved_m{k} = 0;\n}}",
        ]
