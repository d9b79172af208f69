"""Who competes: each rule as a configuration, with the signals that it asks of a chip.

A contestant may have variants, settings of its own that the others do not have. Which of them it
runs with is decided on held-out samples, like its learning rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pcsim import config as configuration
from pcsim.check import DIGITS
from pcsim.config import Config
from pcsim.frozen import Frozen

Sections = Mapping[str, Mapping[str, Any]]
"""Fields of a configuration, by section."""
NONE: Mapping[str, Any] = {}
PLAIN: Mapping[str, Sections] = {"": NONE}
Arrays = Literal["none", "fixed", "plastic"]
GAMMA = 0.4
"""Time step over τ_x, as in a check."""
TOTAL = 20.0
"""Time per sample in τ_x, as in a check."""


class Rival(Frozen):
    """A learning rule on a chip."""

    name: str
    fields: Sections = NONE
    variants: Mapping[str, Sections] = PLAIN
    """Settings of its own, by name: the first of equals is taken."""
    signals: str
    """What a controller must tell the chip, apart from the samples."""
    feedback: Arrays = "none"
    """Arrays beside the forward ones that carry errors back, one as large as each inner array."""
    interneurons: bool = False
    """Units beside each hidden layer, one for each unit of the layer below, with two plastic arrays
    that are as large as the array between these layers."""

    @property
    def in_time(self) -> bool:
        """Whether it runs in continuous time, without a clock."""
        return self.fields.get("run", {}).get("backend") != "discrete"


class Substrate(Frozen):
    """Chips that rules train on."""

    name: str
    hardware: Mapping[str, Any] = NONE

    @property
    def ideal(self) -> bool:
        """Whether all its chips are alike and perfect."""
        return not self.hardware


def _conductances(nudge: float) -> dict[str, float]:
    return {"g_lk": 0.1, "g_B": 1.0, "g_A": 0.8, "g_D": 1.0, "g_som": nudge}


CLOCKED: dict[str, Any] = {"run": {"backend": "discrete"}}
IPC = Rival(name="iPC, always on", signals="none")
PC = Rival(
    name="PC with phases",
    fields=CLOCKED | {"schedule": {"rule": "pc", "init": "ff"}},
    variants={f"γ {g:g}": {"schedule": {"gamma": g}} for g in (GAMMA, 0.1, 0.8)},
    signals="states set by a forward pass, writes at the end of every sample",
)
BP = Rival(
    name="BP on the array",
    fields=CLOCKED | {"schedule": {"rule": "bp"}},
    signals="forward and backward phase, layer after layer; activities stored; writes in between",
)
RANDOM = Rival(
    name="iPC, feedback alignment",
    fields={"circuit": {"transport": "random"}},
    variants={f"gain {g:g}": {"circuit": {"feedback_gain": g}} for g in (1.0, 0.5, 2.0, 4.0)},
    signals="none",
    feedback="fixed",
)
KOLEN_POLLACK = Rival(
    name="iPC, Kolen–Pollack",
    fields={"circuit": {"transport": "kolen_pollack"}},
    variants={f"λ {d:g}": {"learning": {"weight_decay": d}} for d in (0.003, 0.001, 0.01)},
    signals="none",
    feedback="plastic",
)
SACRAMENTO = Rival(
    name="Sacramento's microcircuit",
    fields={"circuit": {"kind": "sacramento"}, "network": {"bias": False}},
    variants={
        f"g_som {nudge:g}, η_apical {rate:g}": {
            "circuit": {"conductances": _conductances(nudge), "eta_apical": rate}
        }
        for nudge, rate in ((0.8, 0.3), (0.8, 0.0), (2.0, 0.3))
    },
    signals="none",
    feedback="fixed",
    interneurons=True,
)
LATENT = Rival(
    name="iPC, latent equilibrium",
    variants={f"look-ahead {a:g} τ_x": {"circuit": {"look_soma": a}} for a in (1.0, 0.5)},
    signals="none",
)
EQUILIBRIUM = Rival(
    name="continual EP",
    fields={
        "circuit": {"kind": "equilibrium"},
        "stream": {"t_settle": TOTAL / 2, "t_pres": TOTAL / 2},
    },
    variants={f"β {b:g}": {"circuit": {"beta": b}} for b in (0.5, 0.25, 1.0)},
    signals="label released and shown again with every sample, and synapses told so: plastic while "
    "nudged only",
)
RIVALS = (IPC, PC, BP, RANDOM, KOLEN_POLLACK, SACRAMENTO, LATENT, EQUILIBRIUM)

NOISE = {"kind": "array_read_noise", "sigma": 0.01, "reference": "range"}
BITS = {"kind": "quantized_weights", "bits": 6, "range": 1.5}
STOCHASTIC = {"rounding": "stochastic", "accumulator": False}
IDEAL = Substrate(name="ideal")
ECRAM = Substrate(name="ecram_li", hardware={"preset": "ecram_li"})
COARSE = Substrate(
    name="1 % noise, 6 bits",
    hardware={"pieces": {"read": NOISE, "weights": BITS | {"accumulator": True}}},
)
ROUNDED = Substrate(
    name="1 % noise, 6 bits, no accumulator",
    hardware={"pieces": {"read": NOISE, "weights": BITS | STOCHASTIC}},
)
SUBSTRATES = (IDEAL, ECRAM, COARSE, ROUNDED)


def steps() -> int:
    """Return the time steps of a presentation."""
    return round(TOTAL / GAMMA)


def config_of(
    rival: Rival,
    variant: str,
    substrate: Substrate,
    *,
    sizes: tuple[int, ...],
    samples: int,
    passes: int,
    seeds: tuple[int, ...],
    chips: int,
) -> Config:
    """Return one training; what has no meaning for this rule is left out."""
    sections: dict[str, dict[str, Any]] = {
        "network": {"sizes": sizes},
        "schedule": {"gamma": GAMMA, "init": "carry"},
        "learning": {"batch": 1, "epochs": passes, "alpha": 1e-3},
        "data": {"name": DIGITS["data"]["name"], "limit": samples, "validation": samples // 6},
        "run": {"backend": "continuous", "seeds": seeds},
    }
    if rival.in_time:
        sections["stream"] = {"t_pres": TOTAL}
    else:
        sections["schedule"]["T"] = steps()
    if not substrate.ideal:
        sections["hardware"] = dict(substrate.hardware) | {"chips": chips}
        sections["hardware"] |= {} if rival.in_time else {"lenient": True}
    for fields in (rival.fields, rival.variants[variant]):
        for section, values in fields.items():
            sections[section] = {**sections.get(section, {}), **values}
    return configuration.pruned(sections, "rivals")[0]
