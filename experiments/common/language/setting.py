"""Everything that can vary in a language-model study, and the questions that follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from pcsim.architectures.fields import Count
from pcsim.errors import ConfigError
from pcsim.frozen import Frozen, NotNegative, Positive
from pcsim.kernels.parameters import ORDER_KEY, generator
from pcsim.network import Network

from ..search import Axes
from .questions import Questions, conditional, masked
from .text import Text, Tokens, windows

HIDING_KEY = 9
"""Spawn key of the streams that choose hidden tokens."""
DEV, TEST = 1 << 20, 1 << 21
"""What stands in their key in place of the epoch; the same for all rules and seeds."""


class Method(Frozen):
    """One rule with its hyper-parameters."""

    name: Literal["BP", "PC", "iPC"]
    batch: Count
    alpha: Positive
    layer_norm: bool
    T: Count = 1
    gamma: Positive = 1.0
    discount: Positive = 1.0


class Search(Frozen):
    """How rate and γ of each method are chosen before the seeds are trained; see `search`."""

    windows: Count
    """Training windows, the first ones; the same for every point and method."""
    epochs: Count = 1
    seed: int = 100
    """One that no result is made of."""
    reach: int = 3
    """Values of an axis that may be tried beyond its ends."""


class Setting(Frozen):
    """Everything that can vary."""

    model: Literal["masked", "conditional"]
    text: Text
    methods: tuple[Method, ...]
    seeds: tuple[int, ...]
    rates: tuple[Positive, ...] = ()
    """Learning rates that every method tries besides its own; dev perplexities choose. With a
    search, those it begins with."""
    search: Search | None = None
    limit: int = 0
    """Training windows that are used, the first ones; 0 is all."""
    epochs: Count
    check_windows: Count
    """Training windows between two measurements of the dev perplexity."""
    patience: Count
    """Measurements without a new best after which training stops."""
    blocks: Count = 2
    heads: Count = 1
    features: Count = 128
    intermediate: Count = 512
    share: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """Share of the tokens that the masked model hides."""
    weight_decay: NotNegative = 0.01
    """Not given in the paper; this is the default of PyTorch's AdamW."""
    device: str = "cpu"

    def tried(self, method: Method) -> tuple[Method, ...]:
        """Return a method at its own learning rate and at the others."""
        own = method.alpha
        return tuple(method.model_copy(update={"alpha": rate}) for rate in (own, *self.rates))

    def axes(self, method: Method) -> Axes:
        """Return what the search of a method begins with; γ around the published one."""
        gamma = method.gamma
        return {
            "alpha": self.rates,
            "weight_decay": (self.weight_decay,),
            "gamma": (gamma,) if method.name == "BP" else (gamma / 2, gamma, 2 * gamma),
        }

    def of_search(self) -> Setting:
        """Return the budget of each point that the search tries."""
        assert self.search is not None
        one = self.search
        update = {"limit": one.windows, "epochs": one.epochs, "seeds": (one.seed,)}
        return self.model_copy(update={**update, "search": None})

    def network(self, layer_norm: bool) -> Network:
        """Return the network of a method."""
        return Network.transformer(
            vocabulary=self.text.vocabulary,
            positions=self.text.positions,
            features=self.features,
            blocks=self.blocks,
            heads=self.heads,
            intermediate=self.intermediate,
            causal=self.model == "conditional",
            layer_norm=layer_norm,
        )

    def ask(self, tokens: Tokens, *key: int) -> Questions:
        """Return the questions of some windows; `key` says which tokens are hidden."""
        if self.model == "conditional":
            return conditional(tokens)
        return masked(tokens, self.share, generator(key[0], HIDING_KEY, *key[1:]))

    def train_windows(self) -> Tokens:
        """Return as many windows as fill whole batches of every method: equal budgets."""
        batches = [method.batch for method in self.methods]
        largest = max(batches)
        if self.check_windows % largest or any(largest % batch for batch in batches):
            raise ConfigError(
                f"Setting.methods: batches of {batches} windows must divide the largest of them, "
                f"and that must divide check_windows = {self.check_windows}; else the methods "
                "would see different numbers of windows"
            )
        found = windows(self.text).train
        found = found[: self.limit or len(found)]
        whole = len(found) // largest * largest
        if whole == 0:
            raise ConfigError(
                f"Setting.methods: {len(found)} training windows do not fill one batch of {largest}"
            )
        return found[:whole]


def batches(setting: Setting, method: Method, seed: int) -> Iterator[Questions]:
    """Go through all epochs; order and hidden tokens belong to (seed, epoch), not to the method."""
    tokens = setting.train_windows()
    for epoch in range(setting.epochs):
        asked = setting.ask(tokens, seed, epoch)
        order = generator(seed, ORDER_KEY, epoch).permutation(len(asked))
        for start in range(0, len(order), method.batch):
            yield asked.at(order[start : start + method.batch])


def checks(setting: Setting) -> list[int]:
    """Return after how many windows the dev perplexity is measured: start, on the way, end."""
    total = setting.epochs * len(setting.train_windows())
    return sorted({*range(0, total, setting.check_windows), total})
