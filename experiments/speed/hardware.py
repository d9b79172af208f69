"""Cost of hardware: pulsed updates of a whole array against a plain outer-product update."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from hw_models.presets import TRAINING
from pcsim.native import SHORT
from pcsim.substrate import Chips, Seeded
from pcsim.substrate.transform import Transform

from ..common.timing import Job, medians

SIZE, BATCH, ALPHA = 256, 128, 1e-4
CHOSEN = ("ecram_li", "reram_sb", "gokmen_vlasov", "pcm")


def plain(w: Tensor, x: Tensor, d: Tensor) -> None:
    """W ← W + α dᵀx, as one would write it by hand."""
    w.add_(d.mT @ x, alpha=ALPHA)


def pulsed(w: Tensor, x: Tensor, d: Tensor, chips: Chips, write: Transform) -> None:
    """W ← W + write(α dᵀx; W)."""
    w.add_(write((d.mT @ x).mul_(ALPHA), w=w))
    chips.advance()


def least(w: Tensor, x: Tensor, d: Tensor, chips: Chips, write: Transform) -> None:
    """What no pulsed update can leave out, without any law of a device.

    The plain update, one random number per device, and a look at every parameter and memory.
    """
    plain(w, x, d)
    chips.noise.draw("least", "uniform", w, chips.clock.step)
    for part in write.parts:
        for value in (*part.fixed.values(), *part.memory.values()):
            if isinstance(value, Tensor):
                value.sum()
    chips.advance()


def measure(rounds: int = 30) -> list[tuple[str, str, float, float]]:
    """Return rows (case, contestant, milliseconds, ratio to the first contestant of the case)."""
    case = f"update of a {SIZE}×{SIZE} array, batch {BATCH}"
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(1, BATCH, SIZE, generator=generator)
    d = torch.randn(1, BATCH, SIZE, generator=generator)
    jobs: dict[str, Job] = {"plain torch": partial(plain, torch.zeros(1, SIZE, SIZE), x, d)}
    for one in TRAINING:
        if one.name in CHOSEN:
            chips = Chips(one.substrate(), [0], seed=0, dt=1.0, noise=Seeded(0))
            chips.compile(SHORT)
            write = chips.transform("write", 0, (SIZE, SIZE))
            assert write is not None
            w = torch.zeros(1, SIZE, SIZE)
            jobs[f"pulsed, {one.name}"] = partial(pulsed, w, x, d, chips, write)
            jobs[f"least for {one.name}"] = partial(least, torch.zeros_like(w), x, d, chips, write)
    times = medians(jobs, rounds, repeat=4)
    first = times["plain torch"]
    return [(case, name, 1e3 * s, s / first) for name, s in times.items()]
