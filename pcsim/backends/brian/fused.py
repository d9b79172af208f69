"""Dense layers in a standalone program: one pass over the weights does all that needs them.

For every post neuron i, while its row of weights is in the cache:

    μ_i = Σ_j w_ij A_j        the prediction, from which the error B_i follows at once
    φ_j += w_ij B_i           its share of the feedback
    w_ij += dt (A_j B_i − λ w_ij)/τ_w

Brian2 itself would go over all synapses once for each. The factors A and B come from the synaptic
equations (see `products`). Weights have moved when the pass is over: a monitor at RECORD sees sums
and errors of its instant, but weights that are one step ahead.
"""

from __future__ import annotations

from typing import Any

from pcsim.backends.brian.build import Parts
from pcsim.backends.brian.cpp_text import expression, number_type, pointer
from pcsim.backends.brian.evaluate import Formula, words
from pcsim.backends.brian.products import Products, Term
from pcsim.circuits.plan import Connection
from pcsim.errors import UnsupportedError


def fused_code(parts: Parts, chips: int, dt: float) -> str:
    """Return the function that is called once per time step, before anything else moves."""
    passes = [
        _Pass(parts, link, held, chips, dt).code(f"pcsim_pass{n}")
        for n, (link, held) in enumerate(zip(parts.plan.connections, parts.maps, strict=True))
    ]
    calls = "\n".join(f"    pcsim_pass{n}();" for n in range(len(passes)))
    return (
        f"{''.join(passes)}\ndouble pcsim_fused(double unused) {{\n{calls}\n    return unused;\n}}"
    )


class _Pass:
    """The C++ of one map: i and j are post and pre neuron, `row + j` is their synapse."""

    def __init__(self, parts: Parts, link: Connection, held: Any, chips: int, dt: float) -> None:
        self.link, self.held, self.chips, self.dt = link, held, chips, dt
        self.pre, self.post = parts.layers[link.pre], parts.layers[link.post]
        self.n_pre, self.n_post = (parts.plan.groups[k].units for k in (link.pre, link.post))
        self.real = number_type(held.variables["w"].dtype)
        self.products = Products.of(link.text)
        self.pre_factors: dict[str, str] = {}
        """Names of the buffers in which the different A are kept."""

    def code(self, name: str) -> str:
        """Return a C++ function that passes over this map."""
        row = "\n".join(self._row())  # finds the factors that are needed
        buffers, fill = [], []
        for factor, buffer in self.pre_factors.items():
            formula = Formula(self.pre, factor)
            self._refuse_late(formula, {*self.products.onto_post, *self.products.onto_pre})
            buffers.append(f"    static std::vector<{self.real}> kept_{buffer}({self.n_pre});")
            buffers.append(f"    {self.real}* __restrict__ {buffer} = kept_{buffer}.data();")
            fill.append(f"        {buffer}[j] = {expression(formula, '(first_pre + j)')};")
        zero = [f"        to_{target}[j] = 0;" for target in self.products.onto_pre]
        return "\n".join(
            [
                f"static void {name}() {{",
                *buffers,
                f"    for (int c = 0; c < {self.chips}; c++) {{",
                f"    const size_t first_pre = (size_t)c * {self.n_pre};",
                *(self._target(target) for target in self.products.onto_pre),
                f"    for (int j = 0; j < {self.n_pre}; j++) {{",
                *fill,
                *zero,
                "    }",
                f"    for (int i = 0; i < {self.n_post}; i++) {{",
                f"    const size_t n = (size_t)c * {self.n_post} + i;",
                *(self._weights(array) for array in self.products.arrays),
                row,
                "    }\n    }\n}\n",
            ]
        )

    def _target(self, target: str) -> str:
        array = pointer(self.pre.variables[target])
        return f"    {self.real}* __restrict__ to_{target} = {array} + first_pre;"

    def _weights(self, array: str) -> str:
        start = f"{pointer(self.held.variables[array])} + n * {self.n_pre}"
        return f"    {self.real}* __restrict__ {array} = {start};"

    def _row(self) -> list[str]:
        """Return what is done with the weights onto post neuron i, whose index is n."""
        products, lines, inner = self.products, [], []
        for target, terms in products.onto_post.items():
            parts = [f"{self._synapse(t)} * {self._pre(t)}[j]" for t in terms]
            if any(term.post != "1" for term in terms):
                raise self._no(f"{target}: a sum over pre neurons has a factor of the post neuron")
            lines += [
                f"    {self.real} sum_{target} = 0;",
                f"    for (int j = 0; j < {self.n_pre}; j++) sum_{target} += {' + '.join(parts)};",
                f"    {pointer(self.post.variables[target])}[n] = sum_{target};",
            ]
        for target, terms in products.onto_pre.items():
            for number, term in enumerate(terms):
                name = f"back_{target}{number}"
                lines.append(f"    const {self.real} {name} = {self._post(term)};")
                own = "" if term.pre == "1" else f" * {self._pre(term)}[j]"
                inner.append(f"to_{target}[j] += {self._synapse(term)} * {name}{own};")
        steps = []
        for target, terms in products.learning.items():
            rates = []
            for number, term in enumerate(terms):
                name = f"learn_{target}{number}"
                lines.append(f"    const {self.real} {name} = {self.dt!r} * {self._post(term)};")
                factors = [name]
                factors += [self._synapse(term)] if term.synapse != "1" else []
                factors += [f"{self._pre(term)}[j]"] if term.pre != "1" else []
                rates.append(" * ".join(factors))
            # All rates are taken from one and the same state.
            inner.append(f"const {self.real} step_{target} = {' + '.join(rates)};")
            steps.append(f"{target}[j] += step_{target};")
        body = "\n".join(f"        {line}" for line in [*inner, *steps])
        return [*lines, f"    for (int j = 0; j < {self.n_pre}; j++) {{\n{body}\n    }}"]

    def _pre(self, term: Term) -> str:
        return self.pre_factors.setdefault(term.pre, f"factor{len(self.pre_factors)}")

    def _post(self, term: Term) -> str:
        formula = Formula(self.post, term.post, self.link.constants)
        self._refuse_late(formula, {*self.products.onto_pre})
        return expression(formula, "n")

    def _synapse(self, term: Term) -> str:
        formula = Formula(self.held, term.synapse, self.link.constants)
        text = expression(formula, "j")
        for name, variable in formula.arrays.items():
            text = text.replace(f"{pointer(variable)}[j]", f"{name}[j]")
        return f"({text})"

    def _refuse_late(self, formula: Formula, late: set[str]) -> None:
        """A sum that the pass itself makes is not known before its end."""
        if found := words(formula.text) & late:
            raise self._no(f"{', '.join(sorted(found))}: known when the pass is over, needed in it")

    def _no(self, reason: str) -> UnsupportedError:
        return UnsupportedError(
            f"backend brian: brian.fused: {self.link.name}: {reason}; set brian.fused = false"
        )
