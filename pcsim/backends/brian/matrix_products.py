"""Dense layers by matrix products in a runtime target: three network operations per time step.

    predictions    μ = A Wᵀ      feedback   φ = B W      learning   W ← W + dt (Bᵀ A − λ W)/τ_w

A (chip, sample, pre) and B (chip, sample, post) are factors of the synaptic equations, see
`products`. Samples share weights and biases, whose increments add up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from brian2 import Clock, NetworkOperation

from pcsim.backends.brian.build import FEEDBACK, NEURONS, PREDICT, WEIGHTS, Parts
from pcsim.backends.brian.evaluate import Formula
from pcsim.backends.brian.products import Products, Term

SHARED = ("b", "b_inter", "log_var")
"""What a layer learns besides its maps."""
Shape = tuple[int, int, int, int]
"""Chips, samples, units of the post and of the pre layer."""


class _Product:
    """One term S·A·B of one map, on whole layers."""

    def __init__(
        self, term: Term, groups: tuple[Any, Any, Any], given: dict[str, float], shape: Shape
    ) -> None:
        self.chips, self.samples, self.n_post, self.n_pre = shape
        self.local, self._plain = term.local, term.synapse == "1"
        held, pre, post = groups
        self._synapse = Formula(held, term.synapse, given)
        self._pre = Formula(pre, term.pre)
        self._post = Formula(post, term.post, given)

    def synapse(self) -> np.ndarray:
        """Return S, which fits (chip, post, pre)."""
        value = self._synapse()
        return value.reshape(self.chips, self.n_post, self.n_pre) if value.ndim else value

    def pre(self) -> np.ndarray:
        """Return A, which fits (chip, sample, pre)."""
        value = self._pre()
        return value.reshape(self.chips, self.samples, self.n_pre) if value.ndim else value

    def post(self) -> np.ndarray:
        """Return B, which fits (chip, sample, post)."""
        value = self._post()
        return value.reshape(self.chips, self.samples, self.n_post) if value.ndim else value

    def step(self, dt: float) -> np.ndarray:
        """Return dt·S·(Bᵀ A) of an array that learns; what only the synapse knows counts once."""
        if self.local:
            return np.asarray(dt * self.synapse())
        step: np.ndarray = np.matmul((dt * self.post()).swapaxes(1, 2), self.pre())
        return step if self._plain else self.synapse() * step


class MatrixProducts:
    """The products of all maps of a population, as operations for a Brian2 `Network`."""

    def __init__(self, parts: Parts, chips: int, samples: int, clock: Clock, name: str) -> None:
        self.parts, self.samples, self._dt = parts, samples, float(clock.dt_)
        self._onto_post: list[tuple[Any, list[_Product]]] = []
        self._onto_pre: list[tuple[Any, list[_Product]]] = []
        self._learning: list[tuple[Any, list[_Product]]] = []
        for link, held in zip(parts.plan.connections, parts.maps, strict=True):
            pre, post = parts.layers[link.pre], parts.layers[link.post]
            units = parts.plan.groups[link.post].units, parts.plan.groups[link.pre].units
            shape = (chips, samples, *units)
            products = Products.of(link.text)
            for kind, owner, into in (
                (products.onto_post, post, self._onto_post),
                (products.onto_pre, pre, self._onto_pre),
                (products.learning, held, self._learning),
            ):
                for target, terms in kind.items():
                    summands = [
                        _Product(term, (held, pre, post), link.constants, shape) for term in terms
                    ]
                    into.append((owner.variables[target], summands))
        self._biases = [
            (layer.variables[name], (chips, samples, -1))
            for layer in parts.layers
            for name in SHARED
            if name in layer.variables
        ]
        self._before: list[np.ndarray] = []
        options = {"clock": clock, "when": "groups"}
        self.operations = [
            NetworkOperation(self._predict, order=PREDICT, name=f"{name}_predict", **options),
            NetworkOperation(self._feed_back, order=FEEDBACK, name=f"{name}_feed_back", **options),
            NetworkOperation(self._learn, order=WEIGHTS, name=f"{name}_learn", **options),
        ]
        if samples > 1:
            share = NetworkOperation(
                self._share, order=NEURONS + 0.5, name=f"{name}_share", **options
            )
            self.operations.append(share)

    def _predict(self) -> None:
        for target, products in self._onto_post:
            total = sum(p.post() * np.matmul(p.pre(), p.synapse().swapaxes(1, 2)) for p in products)
            target.get_value()[:] = np.ravel(total)

    def _feed_back(self) -> None:
        for target, products in self._onto_pre:
            total = sum(p.pre() * np.matmul(p.post(), p.synapse()) for p in products)
            target.get_value()[:] = np.ravel(total)

    def _learn(self) -> None:
        for target, products in self._learning:
            steps = [product.step(self._dt) for product in products]  # all at the same weights
            array = target.get_value().reshape(steps[0].shape)
            for step in steps:
                array += step
        if self.samples > 1:
            self._before = [
                variable.get_value().reshape(shape)[:, :1].copy()
                for variable, shape in self._biases
            ]

    def _share(self) -> None:
        """Add up what each sample has done to the biases."""
        for (variable, shape), start in zip(self._biases, self._before, strict=True):
            moved = variable.get_value().reshape(shape)
            moved[:] = start + (moved - start).sum(1, keepdims=True)
