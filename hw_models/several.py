"""Several pulses in one step, from the law of one: closed forms, with their cycle-to-cycle noise.

A pulse moves u by f(u) = g·dw·law(u). Where the law is affine the distance to the point u* at which
steps vanish shrinks by the same share λ with every pulse:

    n pulses     u_n − u* = (u − u*)(1 − λ)^n              λ = g·dw·|d law/du|, up to 0.999
    flow         u(q) − u* = (u − u*) e^{−λ q/dw}          a request q without pulses
    noise        σ f(u) √n (1 − λ)^{n−1}                   relative to the step
                 σ g dw √((1 − (1 − λ)^{2n})/(λ(2 − λ)))   relative to dw

Else n pulses follow the flow of the law, du/dn ∝ law(u), which is known, at the pace at which the
first pulse is exact. Pulses are faster than the flow by what the law loses over one of them; for
the exponential law that falls from pulse to pulse as e^{cu}, whose inverse grows by ρ per pulse:

    exponential  e^{−c u_n} − B = (e^{−c u} − B) E,        law = 1 − B e^{c u}
                 log E = n φ + (log E₁ − φ) Σ,             φ = −c g dw that of the flow
                 Σ = 1 + log((1 + ρ(n − ½))/(1 + ρ/2))/ρ,  ρ = law(u)(E₁ − 1) = e^{−c f(u)} − 1
    power        ω_n^{1−γ} = ω^{1−γ} (1 − n(1 − ρ^{1−γ})),  law = ω^γ, ρ = ω_1/ω
    noise        σ |u_n − u|/√n

The flow is exact for a drive without pulses, and for one pulse. Many coarse pulses of an
exponential device are right to 1 % of their way (phase-change memory from zero, whose first pulse
is a seventh of its range); of a power device they are off by what its law varies over the second.
Where less than a thousandth of the way is gone, n pulses are n·f(u).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from hw_models.plasticity_device import Device, Law

SMALL = "1e-3"


@dataclass(frozen=True)
class Curve:
    """A law that is not affine: its family, and the number of either side that bends it."""

    family: Literal["exponential", "power"]
    up: str
    down: str
    """c of the exponential law, 1 − γ of the power law; from constants and parameters."""
    left: tuple[str, str] = ("", "")
    """Power law: ω of either side, the relative distance to the bound ahead."""


@dataclass(frozen=True)
class Moved:
    """The change of a weight by a request, network units, with the parameters it needs."""

    text: str
    parameters: Mapping[str, str]


def moved(device: Device, law: Law, s: str, w: str, zero: str, only_up: bool) -> Moved:
    """Return the change by a request `s` at a weight `w`, with noise, before it is clipped."""
    if law.affine is None:
        return _curved(device, law, s, only_up)
    return _affine(device, law.affine, s, w, zero, only_up)


def _affine(
    device: Device,
    law: tuple[tuple[str, str], tuple[str, str]],
    s: str,
    w: str,
    zero: str,
    only_up: bool,
) -> Moved:
    parameters = _sides("step", *(_gained(g, _at_weight_zero(a, b, zero)) for g, (a, b) in zip(
        ("gain_up", "gain_down"), law, strict=True)))  # fmt: skip
    pick = _Pick(s, only_up)
    step = pick("step")
    if all(b == "0" for _, b in law):
        parameters |= _sides("unit", "gain_up", "gain_down")
        noise = f"sqrt(abs({s})*(cycle_noise**2*dw))*xi"
        if device.cycle_reference == "dw_min":
            return Moved(f"{step}*{s} + {pick('unit')}*{noise}", parameters)
        return Moved(f"{step}*({s} + {noise})", parameters)
    parameters |= _sides("loss", f"gain_up*({law[0][1]})/range", f"gain_down*({law[1][1]})/range")
    step = f"({step} - {pick('loss')}*{w})"
    for side, sign in (("up", ""), ("down", "-")):
        portion = f"portion_{side}"
        if device.pulsed:
            series = (
                f"{portion}*(1 + {portion}*(0.5 + {portion}*(0.3333333333333333 + {portion}/4)))"
            )
            exact = f"log(1 - {portion})"
            small = f"int({portion} < {SMALL})"
            parameters |= {
                portion: f"clip({sign}loss_{side}*dw, 1e-9, 0.999)",
                f"half_{side}": f"({small}*{series} - (1 - {small})*{exact})/(2*dw)",
                f"per_{side}": f"dw/{portion}",
                f"fresh_{side}": f"1/(1 - {portion})",
                f"walk_{side}": f"gain_{side}*dw/sqrt({portion}*(2 - {portion}))",
            }
        else:
            parameters |= {
                portion: f"clip({sign}loss_{side}, 1e-9, 1e30)",
                f"half_{side}": f"{portion}/2",
                f"per_{side}": f"1/{portion}",
                f"walk_{side}": f"gain_{side}*sqrt(dw/(2*{portion}))",
            }
    for name in ("half", "per", "fresh", "walk"):
        if f"{name}_up" in parameters:
            parameters |= _mean_and_side(name)
    h = f"tanh({pick('half')}*abs({s}))"
    text = f"{step}*sign({s})*{pick('per')}*(2*{h}/(1 + {h}))"
    if device.cycle_reference == "dw_min":
        return Moved(f"{text} + cycle_noise*{pick('walk')}*2*sqrt({h})/(1 + {h})*xi", parameters)
    fresh = f"*{pick('fresh')}" if device.pulsed else ""
    left = f"(1 - {h})/(1 + {h}){fresh}"
    return Moved(f"{text} + {step}*sqrt(abs({s})*(cycle_noise**2*dw))*{left}*xi", parameters)


def _curved(device: Device, law: Law, s: str, only_up: bool) -> Moved:
    curve = law.curve
    assert curve is not None
    pick = _Pick(s, only_up)
    parameters = {"bend_up": curve.up, "bend_down": curve.down}
    steps = (f"gain_up*({law.up})", f"gain_down*({law.down})")
    step, relative = pick.of(*steps), pick.of(law.up, law.down)
    asked = f"(abs({s})/range)"
    count = f"(abs({s})/dw)"
    first = f"({step}*(dw/range))"  # of one pulse, device units
    straight = f"({step}*{asked})"
    bend = pick.of("bend_up", "bend_down")  # of a side, also where nothing is asked
    if curve.family == "exponential":
        size = f"clip({relative}, 1e-9, 1e6)"
        if device.pulsed:
            grown = f"exp(-clip({bend}*{first}, -50, 50))"
            fresh = f"clip(1 - (1 - {grown})/{size}, 1e-12, 1e12)"
            gain = pick.of("gain_up", "gain_down")
            flow = f"(0 - {bend}*{gain}*(dw/range))"
            away = f"({grown} - 0.9999999)"  # ρ, and not zero where steps are
            ratio = f"(1 + {away}*({count} - 0.5))/(1 + {away}/2)"
            pulses = f"(1 + log(clip({ratio}, 1e-12, 1e12))/{away})"
            left = f"exp(clip({count}*{flow} + (log({fresh}) - {flow})*{pulses}, -50, 50))"
        else:
            gain = pick.of("gain_up", "gain_down")
            left = f"exp(clip(-{bend}*{gain}*{asked}, -50, 50))"
        way = f"(0 - log(clip(1 + {size}*({left} - 1), 1e-12, 1e25))/{bend})"
        small = f"int(abs({bend})*{straight} < {SMALL})"
    else:
        ahead = f"clip({pick.of(*curve.left)}, 1e-9, 1)"
        span = "(top - bottom)"
        if device.pulsed:
            ratio = f"clip(1 - {first}/({span}*{ahead}), 1e-6, 1)"
            base = f"1 - {count}*(1 - {ratio}**{bend})"
        else:
            base = f"1 - {bend}*clip({straight}/({span}*{ahead}), 0, 1e9)"
        way = f"({span}*{ahead}*(1 - clip({base}, 1e-12, 1e12)**(1/{bend})))"
        small = f"int({straight} < {SMALL}*{span}*{ahead})"
    length = f"({small}*{straight} + (1 - {small})*{way})"
    direction = "" if only_up else f"sign({s})*"
    noise = f"cycle_noise*sqrt(dw/(abs({s}) + 1e-30))*xi"
    if device.cycle_reference == "dw_min":
        parameters |= _sides("unit", "gain_up", "gain_down")
        additive = f"{pick('unit')}*sqrt(abs({s})*(cycle_noise**2*dw))*xi"
        return Moved(f"{direction}range*{length} + {additive}", parameters)
    return Moved(f"{direction}range*{length}*(1 + {noise})", parameters)


class _Pick:
    """The value of the side that a request goes to."""

    def __init__(self, s: str, only_up: bool) -> None:
        self.s, self.only_up = s, only_up

    def __call__(self, name: str) -> str:
        """Return a parameter that has both sides."""
        return f"{name}_up" if self.only_up else f"({name}_mean + sign({self.s})*{name}_side)"

    def of(self, up: str, down: str) -> str:
        """Return one of two texts."""
        if self.only_up:
            return f"({up})"
        return f"(int({self.s} > 0)*({up}) + int({self.s} <= 0)*({down}))"


def _gained(gain: str, text: str) -> str:
    return f"{gain}*({text})"


def _sides(name: str, up: str, down: str) -> dict[str, str]:
    """Return a parameter of either side, and both as mean ± half their difference."""
    return {f"{name}_up": up, f"{name}_down": down} | _mean_and_side(name)


def _mean_and_side(name: str) -> dict[str, str]:
    return {
        f"{name}_mean": f"({name}_up + {name}_down)/2",
        f"{name}_side": f"({name}_up - {name}_down)/2",
    }


def _at_weight_zero(at_zero: str, loss: str, zero: str) -> str:
    return f"{at_zero} - ({loss})*zero" if zero and loss != "0" else at_zero
