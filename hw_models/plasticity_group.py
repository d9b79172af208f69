"""A weight of several devices with significances: written in turn, carried over, or residual.

    w = Σ_k c_k v_k,    v_k ← v_k + response(a_k; v_k),    k = 0 the most significant

c_k are the significances and v_k the weight that device k alone would stand for. What is asked of a
device is rounded to its own pulses, so that fine devices take what is too small for coarse ones.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from hw_models.clock import Clocked, also_down, at_writes, gathered
from hw_models.numbers import Positive
from hw_models.piece import Fields
from hw_models.plasticity import TrainingDevice
from hw_models.plasticity_arrays import without_clock
from pcsim.quantity import Unit
from pcsim.substrate import Draw, Effect, Memory
from pcsim.substrate.effect import DOWN
from pcsim.substrate.expression import Expression


class DeviceGroup(Clocked):
    """Several devices per weight, read together, each at a significance of its own.

    `turn`       a counter of the array lets each write go to one device, a_k = s/c_k: every device
                 takes its share of the requests, and what differs between devices averages out
    `carry`      the least significant takes all requests; at a transfer what a device holds is
                 written into the next one, a_{k−1} = c_k v_k/c_{k−1}, and it is erased
    `residual`   the same without erasing, for a share of it: a_{k−1} = rate·c_k v_k/c_{k−1}. A
                 device learns what those before it leave; v_k rests at 0 behind the first

    The last device passes on every `every` writes, the one before it every `every` of these, and so
    on: each learns at a time scale of its own, without which residuals of three devices swing up.
    With `carry` and `residual` the array has to be read and written at transfers, by a controller.
    """

    kind: Literal["device_group"] = "device_group"
    EXAMPLE: ClassVar[Fields] = {
        "device": {"kind": "linear_device", "dw_min": 0.02},
        "significances": [1.0, 0.25],
        "scheme": "carry",
        "every": 20,
    }
    device: TrainingDevice
    """Each of the devices; all have draws of their own."""
    significances: Annotated[tuple[Positive, ...], Field(min_length=2, max_length=8, strict=False)]
    """Weight that each device stands for, relative to the weight of the device alone; the most
    significant first."""
    scheme: Literal["turn", "carry", "residual"] = "turn"
    """Which device a request goes to, and whether devices pass on what they hold."""
    every: Annotated[int, Field(ge=1, le=10**9)] = 10
    """Writes (of t_write each) per transfer of the last device, and transfers of each device per
    transfer of the one before it, with `carry` and `residual`."""
    rate: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False), Unit("fraction")] = 0.1
    """Share of what a device holds that a transfer asks of the next one, with `residual`."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        without_clock(self.device, seen=True)
        given = self.significances
        if list(given) != sorted(given, reverse=True):
            raise ValueError("significances go from the most to the least significant")
        return self

    @property
    def each_sample(self) -> bool:
        """Whether samples side by side write one by one."""
        return self.device.each_sample

    @property
    def quantum(self) -> float:
        """Weight of the network that one pulse changes, mean over the devices that are asked."""
        asked = self.significances if self.scheme == "turn" else self.significances[-1:]
        return self.device.quantum * len(asked) / sum(1 / c for c in asked)

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return the change of the sum; the memory holds every device."""
        return self._effects(name, each=False)

    def by_samples(self, name: str) -> tuple[Effect, ...]:
        """Return the same where devices go up, and then down from there."""
        return self._effects(name, each=True)

    def _effects(self, name: str, *, each: bool) -> tuple[Effect, ...]:
        c = self.significances
        last, turns = len(c) - 1, self.scheme == "turn"
        error = " + error_{k}" if self.device.write_noise else ""
        known = " + ".join(f"{c[k]!r}*(v_{k}{error.format(k=k)})" for k in range(len(c)))
        memory: dict[str, Memory] = {}
        noise: dict[str, Literal["normal", "uniform"]] = {}
        draws: dict[str, Draw] = {}
        parameters: dict[str, str] = {}
        # passing[k]: whether device k passes on, each in `every` transfers of the one behind it
        passing = [self._passes(k) for k in range(len(c) + 1)]
        for k in range(len(c)):
            # what changed the stored weight from outside (a loss, the first weights) is shared
            share = 1 / sum(c) if turns else 1 / c[0] if k == 0 else 0.0
            held = f"(v_{k} + {share!r}*(w - ({known})))" if share else f"v_{k}"
            kept = f"((1 - {passing[k]})*{held})" if self.scheme == "carry" and k else held
            rise, fall = f"({DOWN} + s)" if each else "s", DOWN if each else ""
            if turns:
                chosen = f"int(abs(count - {k}) < 0.5)/{c[k]!r}"
                rise, fall = f"{chosen}*{rise}", f"{chosen}*{fall}" if each else ""
            elif k == last:
                rise, fall = f"{rise}/{c[k]!r}", f"{fall}/{c[k]!r}" if each else ""
            else:
                part = c[k + 1] / c[k] * (1.0 if self.scheme == "carry" else self.rate)
                rise, fall = f"{passing[k + 1]}*{part!r}*v_{k + 1}", ""
            made = self.device.response("asked_here", "v_here", f"_{k}")
            text = Expression(made.text)
            by_up = self._whole(rise, f"u_{k}")
            by = {"asked_here": by_up, "v_here": kept, "xi": f"xi_{k}"}
            value = f"{kept} + {text.renamed(by)}"
            names = [f"u_{k}", f"xi_{k}"]
            if fall:
                by_down = f"(0 - {self._whole(fall, f'u_down_{k}')})"
                by = {"asked_here": by_down, "v_here": f"({value})", "xi": f"xi_down_{k}"}
                value = f"{value} + {text.renamed(by)}"
                names += [f"u_down_{k}", f"xi_down_{k}"]
            was = held
            if self.device.write_noise:
                was = f"{held} + error_{k}"
                asked = [by_up, *([by_down] if fall else [])]
                still = "*".join(f"int(abs({one}) <= 0)" for one in asked)
                if self.scheme == "carry" and k:
                    still += f"*(1 - {passing[k]})"
                fresh = f"seen*xi_seen_{k}"
                memory[f"error_{k}"] = Memory(update=f"({still})*error_{k} + (1 - {still})*{fresh}")
                names.append(f"xi_seen_{k}")
            memory |= {f"v_{k}": Memory(update=value), f"was_{k}": Memory(update=was)}
            noise |= {n: "uniform" if n[0] == "u" else "normal" for n in names
                      if n[0] == "x" or self.device.pulsed}  # fmt: skip
            draws |= made.draws
            parameters |= made.parameters
        change = " + ".join(f"{c[k]!r}*(v_{k}{error.format(k=k)} - was_{k})" for k in range(len(c)))
        seen = {"seen": self.device.write_noise * self.device.quantum} if error else {}
        if turns:
            memory["count"] = Memory(update=f"(count + 1)*int(count + 1 < {len(c)})")
        else:
            memory |= {
                f"count_{k}": Memory(update=f"(count_{k} + {passing[k + 1]})*(1 - {passing[k]})")
                for k in range(1, len(c))
            }
        group = Effect(
            name=name,
            site="write",
            becomes=change,
            constants=dict(made.constants) | seen,
            draws=draws,
            parameters=parameters,
            noise=noise,
            memory=memory,
            about=f"{len(c)} devices per weight, {self.scheme}",
        )
        return (
            *gathered(name, self.t_write),
            also_down(at_writes(group, self.t_write), self.t_write),
        )

    def _passes(self, k: int) -> str:
        """Return 1 at writes at which device k passes on what it holds; for k = n, at all."""
        full = (f"int(count_{j} >= {self.every - 1})" for j in range(k, len(self.significances)))
        return f"({'*'.join(full) or 1})"

    def _whole(self, asked: str, chance: str) -> str:
        """Return a request in whole pulses of the device, where it is written by pulses."""
        return f"(dw*floor({asked}/dw + {chance}))" if self.device.pulsed else f"({asked})"
