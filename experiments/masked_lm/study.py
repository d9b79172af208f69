"""Does iPC train a masked language model (a small BERT) as well as backpropagation does?

`pcsim experiment masked_lm` trains two blocks of full self-attention with one head and 128 features
to name hidden tokens, by BP, PC and iPC with the hyper-parameters of the paper's best runs. The
small scale takes less text, fewer tokens, a narrower network and batches of a quarter, and every
rule may choose between the published learning rate and a common one.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ..common import scaled
from ..common.language import study as shared
from ..common.language.setting import Method, Search, Setting

PAGE = shared.PAGE


def methods(batch: int) -> tuple[Method, ...]:
    """Return the paper's best combinations, for PC's and iPC's batch (the paper: 128)."""
    return (
        Method(name="BP", batch=2 * batch, alpha=0.0032, layer_norm=True),
        Method(
            name="PC", batch=batch, alpha=0.0004, layer_norm=False,
            T=8, gamma=0.03125, discount=0.9,
        ),
        Method(name="iPC", batch=batch, alpha=0.0008, layer_norm=False, T=6, gamma=0.5),
    )  # fmt: skip


SCALES = {
    "small": Setting(
        model="masked", text=shared.small_text(1000, 8), methods=methods(32),
        seeds=shared.SEEDS[0], rates=shared.SMALL_RATES, epochs=3, check_windows=1600, patience=20,
        features=shared.SMALL_FEATURES, intermediate=4 * shared.SMALL_FEATURES,
    ),
    "decide": Setting(
        model="masked", text=shared.small_text(4900, 8), methods=methods(32),
        seeds=shared.DECIDE_SEEDS, rates=shared.DECIDE_RATES, epochs=4, check_windows=6400,
        search=Search(windows=32768),
        patience=20, features=shared.SMALL_FEATURES, intermediate=4 * shared.SMALL_FEATURES,
    ),
    "paper": Setting(
        model="masked", text=shared.PAPER_TEXT, methods=methods(128), seeds=shared.SEEDS[1],
        epochs=16, check_windows=12_800, patience=20, device="cuda",
    ),
}  # fmt: skip


figures = partial(scaled.redraw, __file__, shared.SHOWN, SCALES)


def main(out: Path, scale: str) -> None:
    """Train, print, store, draw."""
    shared.main("masked_lm", SCALES, out, scale)
