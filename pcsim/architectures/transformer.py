"""Encoders with self-attention, full (as BERT) or causal, as a section of a file.

    h = [norm] embedding
    each block:   s = q kᵀ/√d                    scores: a value node, categorical by default
                  a = [norm] (h + O softmax(s) v)
                  i = W a                        intermediate: a value node
                  h = [norm] (a + V f(i))
    head:         t = W h;  output = U [norm] f(t)      both value nodes

With `nodes = "published"` the rest is transparent (what the public code of a predictive-coding BERT
does); with "all", every operation is a value node. Residual paths by-pass value nodes, so that
Z-IL is backpropagation only with `levelled`.
"""

from __future__ import annotations

from typing import Literal

from pcsim.architectures.fields import (
    CATEGORICAL,
    Count,
    EnergyConfig,
    Function,
    GaussianConfig,
)
from pcsim.architectures.levelling import levelled
from pcsim.architectures.sketch import Sketch
from pcsim.energies import Energy
from pcsim.frozen import Frozen, Positive
from pcsim.maps import Dense, Embedding, LayerNorm, Mix, Scores, Sum
from pcsim.network import Network


class Transformer(Frozen):
    """Embedding, blocks of self-attention, and a head that predicts the token of each position.

    The defaults are the paper's language models: two blocks, one head, 128 features, 8001 tokens.
    It gives no length and no intermediate width; these are ours (and BERT's 4 × features).
    """

    kind: Literal["transformer"] = "transformer"
    vocabulary: Count = 8001
    """How many tokens there are."""
    positions: Count = 32
    """Tokens per sequence."""
    features: Count = 128
    """Width of the embedding and of every block."""
    blocks: Count = 2
    """Blocks of attention and two dense layers."""
    heads: Count = 1
    """Attention heads per block; features must be a multiple of it."""
    intermediate: Count = 512
    """Width of the hidden layer of each block."""
    causal: bool = False
    """Whether a position sees only itself and earlier ones."""
    layer_norm: bool = False
    """The paper's choice: masked model, BP only; conditional model, BP and iPC."""
    f: Function = "tanh"
    """Nonlinearity of the intermediate layers and the head."""
    place: Literal["pre_act", "post_act"] = "pre_act"
    """Intermediate and head nodes: before or behind f."""
    nodes: Literal["published", "all"] = "published"
    """Which operations are value nodes: those of the published predictive-coding BERT, or all."""
    levelled: bool = False
    """Put relays on residual paths, so that Z-IL is backpropagation."""
    embedding_sd: Positive = 1.0
    """Standard deviation of the embeddings at the start."""
    output: EnergyConfig = CATEGORICAL
    """Energy of the output layer."""
    scores: EnergyConfig = CATEGORICAL
    """Energy of the attention scores."""
    hidden: GaussianConfig = GaussianConfig()
    """Energy of all other nodes."""

    def build(self) -> Network:
        """Return the description object."""
        network = _Drawing(self).network()
        return levelled(network) if self.levelled else network


class _Drawing:
    """The operations of one transformer, drawn from the input to the output."""

    def __init__(self, spec: Transformer) -> None:
        self.spec = spec
        self.sketch = Sketch()
        self.value = spec.hidden.build()
        self.rest = self.value if spec.nodes == "all" else None
        pre = spec.place == "pre_act"
        self.f, self.g = (spec.f, "identity") if pre else ("identity", spec.f)

    def network(self) -> Network:
        spec, sketch = self.spec, self.sketch
        h = sketch.root(spec.positions)
        table = Embedding(spec.vocabulary, spec.positions, spec.features, spec.embedding_sd)
        h = self._norm(sketch.add(table, h, energy=self.rest, shape=self._shape))
        for _ in range(spec.blocks):
            h = self._feed(self._attend(h))
        t = self._dense(h, spec.features, spec.features, g=self.g, energy=self.value)
        f = self.f
        if spec.layer_norm:
            t, f = self._norm(t, f), "identity"
        output = spec.output.build()
        self._dense(t, spec.features, spec.vocabulary, f=f, energy=output)
        return sketch.network()

    def _attend(self, h: int) -> int:
        spec, sketch = self.spec, self.sketch
        q, k, v = (self._dense(h, spec.features, spec.features, energy=self.rest) for _ in "qkv")
        sizes = spec.positions, spec.features, spec.heads, spec.causal
        energy = spec.scores.build(causal=spec.causal)
        s = sketch.add(Scores(*sizes), q, k, energy=energy)
        mixed = sketch.add(Mix(*sizes), s, v, energy=self.rest, shape=self._shape)
        return self._residual(h, self._dense(mixed, spec.features, spec.features, energy=self.rest))

    def _feed(self, a: int) -> int:
        spec = self.spec
        i = self._dense(a, spec.features, spec.intermediate, g=self.g, energy=self.value)
        back = self._dense(i, spec.intermediate, spec.features, f=self.f, energy=self.rest)
        return self._residual(a, back)

    def _residual(self, h: int, change: int) -> int:
        units = self.spec.positions * self.spec.features
        total = self.sketch.add(Sum(units), h, change, energy=self.rest, shape=self._shape)
        return self._norm(total)

    def _norm(self, h: int, f: str = "identity") -> int:
        spec = self.spec
        if not spec.layer_norm:
            return h
        norm = LayerNorm(spec.positions, spec.features, f=f)
        return self.sketch.add(norm, h, energy=self.rest, shape=self._shape)

    def _dense(
        self,
        parent: int,
        n_in: int,
        n_out: int,
        *,
        f: str = "identity",
        g: str = "identity",
        energy: Energy | None,
    ) -> int:
        positions = self.spec.positions
        spec = Dense(n_in, n_out, f, g, positions=positions)
        return self.sketch.add(spec, parent, energy=energy, shape=(positions, n_out))

    @property
    def _shape(self) -> tuple[int, int]:
        return self.spec.positions, self.spec.features
