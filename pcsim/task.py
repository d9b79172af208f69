"""A data set as tensors for one network: what is clamped where, in which order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pcsim import datasets, metrics
from pcsim.config import Config
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.kernels.parameters import ORDER_KEY, Parameters, generator
from pcsim.maps import Embedding
from pcsim.network import Network
from pcsim.readout import Readout
from pcsim.replicas import Replicas

Clamps = list[Tensor | None]


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

    @classmethod
    def load(cls, config: Config, network: Network) -> Task:
        """Load the data set of a configuration and check it against the network."""
        if any(isinstance(node.map, Embedding) for node in network.nodes):
            raise UnsupportedError(
                f"network.kind {config.network.kind!r}: reads token numbers, but data.name "
                f"{config.data.name!r} is a set of images; clamp tokens from Python (Discrete, "
                f"Backprop or Continuous)"
            )
        data = datasets.load(config.data.name, unverified=config.data.unverified)
        dtype, device = getattr(torch, config.run.dtype), config.run.device

        def split(x: np.ndarray, y: np.ndarray) -> Split:
            flat = torch.as_tensor(x.reshape(len(x), -1), dtype=dtype, device=device)
            return Split(flat, torch.as_tensor(y, device=device))

        train, test = split(data.x_train, data.y_train), split(data.x_test, data.y_test)
        if config.data.centre:
            mean, sd = train.x.mean(), train.x.std()
            train, test = Split((train.x - mean) / sd, train.y), Split((test.x - mean) / sd, test.y)
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
        task = cls(
            network,
            config.data.mode,
            train,
            validation if held else None,
            test,
            data.classes,
            data.origin,
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

    def clamps(self, index: Tensor) -> Clamps:
        """Return what is clamped at each node for samples `index` (replica or 1, sample)."""
        nodes: Clamps = [None] * len(self.network.nodes)
        if self.mode in ("generative", "associative"):
            nodes[0] = self.train.x[index]
        else:
            nodes[-1] = self.train.x[index]
        if self.mode == "supervised":
            one_hot = torch.nn.functional.one_hot(self.train.y[index], self.classes)
            nodes[0] = one_hot.to(self.train.x.dtype)
        return nodes

    def accuracy(self, readout: Readout, params: Parameters, split: Split) -> np.ndarray:
        """Return the fraction right (replica,) by a feed-forward read-out with these weights."""
        scores = readout.scores(params, split.x).cpu().numpy()
        return np.asarray(metrics.accuracy(scores, split.y.cpu().numpy()))

    def predictions(self, readout: Readout, params: Parameters) -> np.ndarray:
        """Return the class (replica, test sample) that the same read-out gives; −1 is none."""
        return metrics.predictions(readout.scores(params, self.test.x).cpu().numpy())

    def batches(self, replicas: Replicas, epoch: int, size: int) -> Iterator[Clamps]:
        """Go through one epoch; the order belongs to (seed, epoch), whoever else trains along."""
        samples = len(self.train.x)
        if size == 0 or size == samples:
            yield self.clamps(torch.arange(samples)[None])
            return
        orders = [generator(s, ORDER_KEY, epoch).permutation(samples) for s in replicas.seeds]
        order = torch.as_tensor(np.stack(orders))
        if len(order) > 1:
            order = order[list(replicas.seed_of)]
        order = order.to(self.train.x.device)
        for start in range(0, samples - size + 1, size):
            yield self.clamps(order[:, start : start + size])
