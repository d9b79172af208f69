"""Measurements on simulated training devices, as one would make them in a laboratory.

Steps: many equal copies of each device get one pulse at the same weight, so that the mean over
copies is the device, its spread over devices is device-to-device, and the spread over copies is
cycle-to-cycle. Curves: up pulses from the lower bound, then down pulses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hw_models import Hardware
from hw_models.drift import PcmDrift
from hw_models.plasticity_arrays import DevicePair
from hw_models.plasticity_device import Device
from pcsim.substrate import Chips, Seeded, Substrate
from pcsim.substrate.expression import Expression, Value

Floats = npt.NDArray[np.float64]
DEVICES = 200
COPIES = 400
FAR = 1e3
"""A request that takes every device to its bound."""


def device_of(hardware: Hardware) -> Device:
    """Return the device of a training preset, one of two in a pair."""
    piece = hardware.pieces["device"]
    device = piece.device if isinstance(piece, DevicePair) else piece
    assert isinstance(device, Device)
    return device


def quiet(hardware: Hardware) -> Hardware:
    """Return the same devices without cycle-to-cycle noise: the average over many cycles."""
    piece = hardware.pieces["device"]
    still = device_of(hardware).model_copy(update={"cycle_noise": 0.0})
    device = piece.model_copy(update={"device": still}) if piece != device_of(hardware) else still
    return hardware.model_copy(update={"pieces": {**hardware.pieces, "device": device}})


class Bench:
    """Devices of one preset, the same in every copy."""

    def __init__(
        self, hardware: Hardware, copies: int = 1, seed: int = 0, devices: int = DEVICES
    ) -> None:
        substrate: Substrate = hardware.substrate()
        ids = [0] * copies
        noise = Seeded(seed)
        chips = Chips(substrate, ids, seed=0, dt=1.0, noise=noise, dtype=torch.float64)
        self._write = chips.transform("write", 0, (1, devices))
        self._read = chips.transform("weight", 0, (1, devices))
        self._chips = chips
        self.w = torch.zeros(copies, 1, devices, dtype=torch.float64)

    def write(self, s: float) -> Tensor:
        """Ask for a change of all devices; return what they did."""
        assert self._write is not None
        done = self._write(torch.full_like(self.w, s), w=self.w)
        self.w = self.w + done
        self._chips.advance()
        return done

    def seen(self) -> Floats:
        """Return the weights of the first copy as they are read."""
        value = self.w if self._read is None else self._read(self.w)
        return np.asarray(value[0, 0].numpy())


@dataclass(frozen=True, eq=False)
class Curve:
    """Up, then down: mean and spread over devices, and a few single ones."""

    pulse: Floats
    mean: Floats
    spread: Floats
    single: Floats


def pulses_per_ramp(hardware: Hardware) -> int:
    """Return enough pulses for a ramp: about three times the way at the nominal step."""
    device = device_of(hardware)
    if isinstance(hardware.pieces["device"], DevicePair):
        return 100
    factor = 1.3 if device.kind == "constant_device" else 2.0
    return max(20, int(factor * (device.w_max - device.w_min) / device.dw_min))


def curve(hardware: Hardware, points: int = 120) -> Curve:
    """Return the step response; a pair starts at zero, other devices at their lower bound.

    Where a ramp has more pulses than points, one write is as many pulses as lie between two.
    """
    device, bench = device_of(hardware), Bench(hardware)
    if not isinstance(hardware.pieces["device"], DevicePair):
        at_bound = Bench(quiet(hardware))
        at_bound.write(-FAR)
        bench.w = at_bound.w
    ramp = pulses_per_ramp(hardware)
    bunch = max(1, ramp // points)
    rows: list[tuple[float, Floats]] = [(0.0, bench.seen())]
    for direction in (1, -1):
        for _ in range(ramp // bunch):
            bench.write(direction * bunch * device.quantum)
            rows.append((rows[-1][0] + bunch, bench.seen()))
    pulse = np.array([row[0] for row in rows])
    values = np.stack([row[1] for row in rows])
    return Curve(pulse, values.mean(1), values.std(1), values[:, :2])


@dataclass(frozen=True)
class Numbers:
    """What the table shows, measured or as published; NaN where there is none."""

    step_up: float
    step_down: float
    """Median step over devices at weight 0, device units."""
    device_spread: float
    """Of the up step: relative standard deviation, of the logarithm if lognormal."""
    cycle_spread: float
    """Cycle-to-cycle standard deviation of the up step, relative to it."""
    top: float
    bottom: float
    top_spread: float
    symmetry: float
    pulses: float
    """Up pulses of the mean device from the lower bound (a pair: from 0) half-way to the upper."""


def steps(hardware: Hardware, at: Floats, direction: int) -> Floats:
    """Return single steps (copy, device) of fresh devices, each copy at a weight of its own."""
    bench = Bench(hardware, len(at))
    bench.w += torch.as_tensor(at).view(-1, 1, 1)
    return np.asarray(bench.write(direction * device_of(hardware).quantum)[:, 0].numpy())


def measured(hardware: Hardware, ramp: Curve) -> Numbers:
    """Return the numbers recovered from simulated devices and their step response."""
    device, still = device_of(hardware), quiet(hardware)
    zero = np.zeros(1)
    up, down = steps(still, zero, 1)[0], -steps(still, zero, -1)[0]
    lognormal = device.dw_law == "lognormal"
    spread = np.log(up).std(ddof=1) if lognormal else up.std(ddof=1) / up.mean()
    noisy = steps(hardware, np.zeros(COPIES), 1)
    cycle = np.sqrt(noisy.var(0, ddof=1).mean() / (noisy.mean(0) ** 2).mean())
    bounds = []
    for far in (FAR, -FAR):
        bench = Bench(still)
        bench.write(far)
        bounds.append(bench.w[0, 0].numpy())
    return Numbers(
        step_up=float(np.median(up)),
        step_down=float(np.median(down)),
        device_spread=float(spread),
        cycle_spread=float(cycle),
        top=float(bounds[0].mean()),
        bottom=float(bounds[1].mean()),
        top_spread=float(bounds[0].std(ddof=1) / bounds[0].mean()),
        symmetry=_crossing(still),
        pulses=_pulses(hardware, ramp),
    )


def _way(hardware: Hardware) -> tuple[float, float]:
    """Return where the count of pulses starts and ends, weights."""
    device = device_of(hardware)
    return device.w_min, device.w_min + 0.5 * (device.w_max - device.w_min)


def _pulses(hardware: Hardware, ramp: Curve) -> float:
    half = len(ramp.pulse) // 2 + 1
    return float(np.interp(_way(hardware)[1], ramp.mean[:half], ramp.pulse[:half]))


def _crossing(hardware: Hardware) -> float:
    """Return the median over devices of the weight at which up and down steps are equal.

    NaN where steps do not depend on the weight, or only go up.
    """
    device = device_of(hardware)
    if isinstance(hardware.pieces["device"], DevicePair) or device.kind == "constant_device":
        return float("nan")
    grid = np.linspace(0.9 * device.w_min, 0.9 * device.w_max, 61)
    net = steps(hardware, grid, 1) + steps(hardware, grid, -1)
    points = []
    for one in net.T:
        k = int(np.argmax(one <= 0))  # the first weight above the crossing
        if k > 0:
            share = one[k - 1] / (one[k - 1] - one[k])
            points.append(grid[k - 1] + share * (grid[k] - grid[k - 1]))
    return float(np.median(points))


def published(hardware: Hardware) -> Numbers:
    """Return what the parameters of the preset say, from the law without spreads and noise."""
    device = device_of(hardware)
    pair = isinstance(hardware.pieces["device"], DevicePair)
    made, law = device.response("s", "w"), device.law()
    nominal: dict[str, Value] = {**made.constants, **dict.fromkeys(made.draws, 0.0)}
    for name, text in made.parameters.items():
        nominal[name] = Expression(text).bind(nominal)({})
    gain_up, gain_down = float(nominal["gain_up"]), float(nominal["gain_down"])
    rise, fall = (Expression(text).bind(nominal) for text in (law.up, law.down))

    def up(u: float) -> float:
        return device.dw_min * gain_up * float(rise({"u": u}))

    def down(u: float) -> float:
        return up(-u) if pair else device.dw_min * gain_down * float(fall({"u": u}))

    cycle = device.cycle_noise
    if device.cycle_reference == "dw_min":
        cycle *= device.dw_min * gain_up / up(0.0)
    cycle *= (up(0.0) + device.cycle_add) / up(0.0)
    zero = float(nominal.get("zero", 0.0))
    symmetry = float("nan")
    if not pair and device.kind != "constant_device":
        low, high = device.w_min, device.w_max
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if up(middle) > down(middle) else (low, middle)
        symmetry = round(middle - zero, 9) + 0.0
    u, end = _way(hardware)
    pulses = 0
    while u < end:
        last, u, pulses = u, u + up(u), pulses + 1
    return Numbers(
        step_up=up(zero),
        step_down=down(zero),
        device_spread=float(np.hypot(device.dw_spread, device.imbalance_spread)),
        cycle_spread=cycle,
        top=device.w_max - zero,
        bottom=-device.w_max if pair else device.w_min - zero,
        top_spread=device.w_max_spread,
        symmetry=symmetry,
        pulses=pulses - (u - end) / (u - last),
    )


def retention(times: tuple[float, ...], size: int = 256) -> Floats:
    """Return the gain of a PCM array's product after each time: ⟨y(t), y⟩/⟨y, y⟩."""
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(1, size, size, generator=generator, dtype=torch.float64)
    weights /= weights.abs().max()
    x = torch.rand(1, 64, size, generator=generator, dtype=torch.float64)
    ideal = x @ weights.mT
    gains = []
    for time in times:
        substrate = Substrate(effects=PcmDrift(age=time).effects("drift"))
        chips = Chips(substrate, [0], seed=0, dt=1.0, noise=Seeded(1), dtype=torch.float64)
        read = chips.transform("weight", 0, (size, size))
        assert read is not None
        gains.append(float((x @ read(weights).mT * ideal).sum() / ideal.square().sum()))
    return np.array(gains)
