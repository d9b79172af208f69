"""A data set as tensors for one network: what is clamped where, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pcsim import datasets, metrics
from pcsim.config import Config
from pcsim.datasets import own
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.kernels.parameters import ORDER_KEY, generator
from pcsim.maps import Embedding
from pcsim.network import Network
from pcsim.runner.replicas import Replicas
from pcsim.vision import augmentation

Clamps = list[Tensor | None]
LABEL_KEY = 6
"""First element of the spawn key: shuffled labels."""
W = TypeVar("W", contravariant=True)


class Reader(Protocol[W]):
    """Whoever says what a population answers, from weights of the kind that it reads."""

    def scores(self, weights: W, inputs: Tensor, /) -> Tensor:
        """Return the output (replica, sample, class) for inputs (sample, unit)."""


@dataclass(frozen=True, eq=False)
class Split:
    """Inputs (sample, unit) and labels (sample,)."""

    x: Tensor
    y: Tensor


@dataclass(frozen=True, eq=False)
class Task:
    """Training, validation and test samples; one-hot targets for classification."""

    network: Network
    mode: str
    train: Split
    validation: Split | None
    test: Split
    classes: int
    origin: Mapping[str, str]
    shape: tuple[int, ...]
    """Shape of one sample; pictures have (channels, height, width)."""
    mean: float = 0.0
    sd: float = 1.0
    """Inputs are (data − mean)/sd."""
    augment: bool = False
    """Mirror and shift training samples, anew in each epoch."""

    @classmethod
    def load(cls, config: Config, network: Network) -> Task:
        """Load the data set of a configuration and check it against the network."""
        if any(isinstance(node.map, Embedding) for node in network.nodes):
            raise UnsupportedError(
                f"network.kind {config.network.kind!r}: reads token numbers, but data.name "
                f"{config.data.name!r} is a set of images; clamp tokens from Python (Discrete, "
                f"Backprop or Continuous)"
            )
        data = datasets.load(
            config.data.name, unverified=config.data.unverified, sha256=config.data.sha256
        )
        dtype, device = getattr(torch, config.run.dtype), config.run.device

        def split(x: np.ndarray, y: np.ndarray) -> Split:
            flat = torch.as_tensor(x.reshape(len(x), -1), dtype=dtype, device=device)
            return Split(flat, torch.as_tensor(y, device=device))

        train, test = split(data.x_train, data.y_train), split(data.x_test, data.y_test)
        if config.data.shuffled:
            dealt = generator(0, LABEL_KEY).permutation(len(train.y))
            train = Split(train.x, train.y[torch.as_tensor(dealt, device=device)])
        mean, sd = 0.0, 1.0
        if config.data.centre:
            centre, spread = train.x.mean(), train.x.std()
            mean, sd = float(centre), float(spread)
            train = Split((train.x - centre) / spread, train.y)
            test = Split((test.x - centre) / spread, test.y)
        limit, held = config.data.limit or len(train.x), config.data.validation
        if limit > len(train.x) or held >= limit:
            raise ConfigError(
                f"data.limit, data.validation: {config.data.name} has {len(train.x)} training "
                f"samples; cannot use {limit} of them and hold out {held}"
            )
        validation = Split(train.x[limit - held : limit], train.y[limit - held : limit])
        train = Split(train.x[: limit - held], train.y[: limit - held])
        if config.learning.batch > len(train.x):
            raise ConfigError(
                f"learning.batch: {config.learning.batch} is more than the {len(train.x)} training "
                f"samples; use 0 for the full batch"
            )
        measured = config.data.limit_test or len(test.x)
        if measured > len(test.x):
            raise ConfigError(
                f"data.limit_test: {config.data.name} has {len(test.x)} test samples; cannot "
                f"measure on {measured} of them"
            )
        task = cls(
            network,
            config.data.mode,
            train,
            validation if held else None,
            Split(test.x[:measured], test.y[:measured]),
            _classes(config, data, network),
            data.origin,
            data.shape,
            mean,
            sd,
            config.data.augment,
        )
        task.check(data.shape)
        return task

    def check(self, image: tuple[int, ...]) -> None:
        """Compare sizes of data and network; `image` is the shape of one sample."""
        shape = self.network.nodes[-1].shape
        if self.mode == "supervised" and len(shape) == 3 and shape != image:
            raise ConfigError(
                f"network.image: the data has images of shape {list(image)} (channels, height, "
                f"width), but the network takes {list(shape)}"
            )
        datum, top = self.network.nodes[0].units, self.network.nodes[-1].units
        features = self.train.x.shape[1]
        if self.mode == "supervised" and (top, datum) != (features, self.classes):
            field = "classes" if len(shape) == 3 else "sizes"
            raise ConfigError(
                f"network.{field}: the data has {features} inputs and {self.classes} classes, "
                f"but the network goes from {top} to {datum} units"
            )
        if self.mode in ("generative", "associative") and datum != features:
            raise ConfigError(
                f"network.sizes: the data has {features} values, but the datum has {datum} units"
            )

    def clamps(self, index: Tensor, x: Tensor | None = None) -> Clamps:
        """Return what is clamped at each node for samples `index` (replica or 1, sample).

        `x` (replica or 1, sample, unit) takes the place of the samples' own values.
        """
        nodes: Clamps = [None] * len(self.network.nodes)
        values = self.train.x[index] if x is None else x
        if self.mode in ("generative", "associative"):
            nodes[0] = values
        else:
            nodes[-1] = values
        if self.mode == "supervised":
            one_hot = torch.nn.functional.one_hot(self.train.y[index], self.classes)
            nodes[0] = one_hot.to(self.train.x.dtype)
        return nodes

    def accuracy(self, readout: Reader[W], weights: W, split: Split) -> np.ndarray:
        """Return the fraction right (replica,) by a read-out with these weights."""
        scores = readout.scores(weights, split.x).cpu().numpy()
        return np.asarray(metrics.accuracy(scores, split.y.cpu().numpy()))

    def predictions(self, readout: Reader[W], weights: W) -> np.ndarray:
        """Return the class (replica, test sample) that the same read-out gives; −1 is none."""
        return metrics.predictions(readout.scores(weights, self.test.x).cpu().numpy())

    def batches(self, replicas: Replicas, epoch: int, size: int) -> Iterator[Clamps]:
        """Go through one epoch; the order belongs to (seed, epoch), whoever else trains along."""
        samples = len(self.train.x)
        if size == 0 or (size == samples and not self.augment):
            yield self.clamps(torch.arange(samples)[None])
            return
        orders = np.stack(
            [generator(s, ORDER_KEY, epoch).permutation(samples) for s in replicas.seeds]
        )
        # Replicas of one seed see the same samples, augmented alike; one seed serves all replicas.
        of_seed = list(replicas.seed_of) if len(orders) > 1 else [0]
        order = torch.as_tensor(orders).to(self.train.x.device)[of_seed]
        augmented = self._augmented(replicas.seeds, epoch, orders) if self.augment else None
        for start in range(0, samples - size + 1, size):
            part = slice(start, start + size)
            x = augmented(part)[of_seed] if augmented else None
            yield self.clamps(order[:, part], x)

    def _augmented(
        self, seeds: Sequence[int], epoch: int, orders: npt.NDArray[np.int64]
    ) -> Callable[[slice], Tensor]:
        """Return what gives a part of the epoch (seed, sample, unit), mirrored and shifted."""
        draws = [augmentation.draw(s, epoch, orders.shape[1], self.shape) for s in seeds]

        def part_of_epoch(part: slice) -> Tensor:
            rows = []
            for order, drawn in zip(orders[:, part], draws, strict=True):
                pictures = self.train.x[torch.as_tensor(order)].view(-1, *self.shape)
                rows.append(augmentation.apply(pictures, drawn[order]).flatten(1))
            return torch.stack(rows)

        return part_of_epoch


def _classes(config: Config, data: datasets.Dataset, network: Network) -> int:
    """Return the number of classes; own data may have fewer than the network tells apart."""
    if not own.is_own(data.name) or config.data.mode != "supervised":
        return data.classes
    outputs = network.nodes[0].units
    if not data.classes:
        raise ConfigError(
            f"data.name: {data.name} has no labels (y), which data.mode 'supervised' needs; "
            f"'generative' does not"
        )
    if data.classes > outputs:
        raise ConfigError(
            f"data.name: {data.name} has labels up to {data.classes - 1}, but the network has "
            f"{outputs} outputs, for labels 0 to {outputs - 1}"
        )
    return outputs
