"""One case of the conformance suite: a network, a circuit, and what is shown to it, as data.

A case knows its *features* by name ("circuit dendritic", "transport sign", "delay_err", …): an
adapter lists combinations of them that its backend does not support. To add something new (a way
of presenting, a hardware substrate), give `Case` a field for it and name it in `features`.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from pcsim.circuit import Circuit
from pcsim.energies import Categorical, Gaussian
from pcsim.kernels.parameters import Parameters, generator
from pcsim.maps import Dense, Prior
from pcsim.network import Network
from pcsim.substrate import Chips, Seeded, Substrate

DT = 0.1
FIELDS = (
    "delay_err",
    "delay_fb",
    "look_err",
    "look_inter",
    "look_apical",
    "look_soma",
    "sigma_x",
    "weight_decay",
)


@dataclass(frozen=True)
class Presentation:
    """One sample shown for some steps; `feedforward` resets the states, else they carry over."""

    sample: int
    steps: int
    label: bool = True
    feedforward: bool = False


TWO_SAMPLES = (Presentation(0, 250, feedforward=True), Presentation(1, 250))


@dataclass(frozen=True, eq=False)
class Case:
    name: str
    network: Network
    circuit: Circuit
    mode: str = "supervised"
    script: tuple[Presentation, ...] = TWO_SAMPLES
    chips: int = 2
    samples: int = 1
    scale: float = 1.0
    gain: float = 0.7
    mismatch: tuple[str, ...] = ()
    """Of "tau_x" (per unit) and "tau_w" (per weight): drawn once per chip, then frozen."""
    tau_x_per_chip: bool = False
    seeds: tuple[int, ...] = (3, 8, 5, 1)
    hardware: Substrate | None = None
    """Non-idealities of the chips, with frozen draws and frozen noise."""
    known: tuple[int, ...] = field(default=(0,))
    """Associative mode: units of the datum that are clamped."""

    @property
    def steps(self) -> int:
        return sum(p.steps for p in self.script)

    @property
    def features(self) -> frozenset[str]:
        circuit, nodes = self.circuit, self.network.nodes
        found = {f"circuit {circuit.kind}", f"mode {self.mode}", f"transport {circuit.transport}"}
        found |= {name for name in FIELDS if getattr(circuit, name)}
        found |= {f"{name} per {'unit' if name == 'tau_x' else 'weight'}" for name in self.mismatch}
        found |= {f"hardware at {site}" for site in (self.hardware.sites if self.hardware else ())}
        maps = [node.map for node in nodes if isinstance(node.map, Dense)]
        found |= {f"f {name}" for m in maps for name in (m.f, m.g) if name != "identity"}
        energies = [node.energy for node in nodes]
        named = {
            "tau_x per chip": self.tau_x_per_chip,
            "batch": self.samples > 1,
            "mean over samples": self.scale != 1,
            "label let go": not all(p.label for p in self.script),
            "biases": any(m.bias for m in maps),
            "convention post": any(m.g != "identity" for m in maps),
            "prior": isinstance(nodes[-1].map, Prior),
            "variance": any(isinstance(e, Gaussian) and not e.unit for e in energies),
            "learned variance": any(isinstance(e, Gaussian) and e.learned for e in energies),
            "categorical datum": isinstance(energies[0], Categorical),
            "categorical hidden layer": any(isinstance(e, Categorical) for e in energies[1:]),
        }
        return frozenset(found | {name for name, present in named.items() if present})

    def parameters(self) -> Parameters:
        """Weights of a size at which nonlinearities are neither linear nor saturated."""
        rows = [
            generator(seed, 9).normal(0, 1, self.network.parameter_count)
            for seed in self.seeds[: self.chips]
        ]
        params = Parameters(self.network, torch.as_tensor(np.stack(rows)))
        for node, views in zip(self.network.nodes, params.of, strict=True):
            for name, array in views.items():
                width = node.map.n_in**0.5 if name == "w" else 1
                array.mul_({"w": self.gain / width, "b": 0.3, "log_var": 0.1}[name])
        return params

    def population(self) -> Chips | None:
        """Return the chips, new ones for every backend: noise and memory are their own."""
        if self.hardware is None:
            return None
        ids = self.seeds[: self.chips]
        noise = Seeded(4, ids)
        return Chips(self.hardware, ids, seed=2, dt=DT, noise=noise, dtype=torch.float64)

    def nouns(self) -> tuple[Network, Parameters, Circuit]:
        """Return what every engine is built of."""
        return self.network, self.parameters(), self.circuit

    def options(self) -> dict[str, Any]:
        """Return what every engine takes besides, by name."""
        return {
            "dt": DT,
            "mode": self.mode,
            "seeds": self.seeds[: self.chips],
            "scale": self.scale,
            "tau_x": self.tau_x,
            "tau_w": self.tau_w,
            "chips": self.population(),
        }

    def clamps(self, shown: Presentation) -> list[torch.Tensor | None]:
        """Return the data of one presentation: a tensor per clamped layer, None for the others."""
        rng = np.random.default_rng([shown.sample, 1])
        shape = (self.chips, self.samples)
        draws = [
            torch.as_tensor(rng.standard_normal((*shape, n.units))) for n in self.network.nodes
        ]
        if isinstance(self.network.nodes[0].energy, Categorical):
            draws[0] = torch.softmax(2 * draws[0], -1)
        holds = list(self.network.holds(self.mode))
        if not shown.label:
            holds[0] = "free"
        return [x if hold != "free" else None for x, hold in zip(draws, holds, strict=True)]

    @property
    def mask(self) -> torch.Tensor | None:
        if self.mode != "associative":
            return None
        units = self.network.nodes[0].units
        return torch.tensor([k in self.known for k in range(units)]).view(1, 1, units)

    @property
    def tau_x(self) -> list[torch.Tensor] | None:
        """Time constants per layer (chip, 1, unit): chip k is the same in any number of chips."""
        if not (self.tau_x_per_chip or "tau_x" in self.mismatch):
            return None
        layers = []
        for k, node in enumerate(self.network.nodes):
            drawn = self._lognormal("tau_x", 0 if self.tau_x_per_chip else k, node.units)
            kept = drawn[:, :1].expand(-1, node.units) if self.tau_x_per_chip else drawn
            layers.append(kept[:, None])
        return layers

    @property
    def tau_w(self) -> torch.Tensor | None:
        if "tau_w" not in self.mismatch:
            return None
        return self.circuit.weight_time * self._lognormal("tau_w", 0, self.network.parameter_count)

    def _lognormal(self, site: str, layer: int, count: int) -> torch.Tensor:
        key = (5, ("tau_x", "tau_w").index(site), layer)
        draws = [generator(seed, *key).normal(0, 0.2, count) for seed in self.seeds[: self.chips]]
        return torch.as_tensor(np.exp(draws))
