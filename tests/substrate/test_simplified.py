"""What fixed values make void is left out, and nothing else changes: not a bit."""

import pytest
import torch

from pcsim.substrate import Chips, Draw, Effect, Memory, Seeded, Substrate
from pcsim.substrate.expression import Expression

SHAPE = (3, 4, 5)
MADE = torch.Generator().manual_seed(1)
FIXED = {
    "zero": 0.0,
    "one": 1.0,
    "two": 2.0,
    "alike": torch.full(SHAPE, 0.3),
    "none": torch.zeros(SHAPE),
    "spread": 0.5 + torch.rand(SHAPE, generator=MADE),
}
SYMBOLS = {name: torch.randn(SHAPE, generator=MADE) for name in ("s", "w", "xi")}
TEXTS = {
    "s + zero*xi*w": {"s"},
    "xi*zero/(1 + abs(w)) + s/one": {"s"},
    "s*(one - none*w) - sqrt(abs(s)*zero)*xi": {"s"},
    "(alike + sign(s)*none)*s": {"s"},
    "tanh(none*abs(s)) + w": {"w"},
    "clip(s*alike + xi*spread, none - w, one - w)": {"s", "xi", "w"},
    "2*tanh(alike*abs(s))/(1 + tanh(alike*abs(s)))*w": {"s", "w"},
    "one - (s + alike)*spread": {"s"},
    "(1 - s*s)*(1 - s*s) + exp(s*s)": {"s"},
    "s*int(abs(s) > alike) + floor(s/alike + 0.5)": {"s"},
    "zero*s": set(),
    "two - (two + s)*two + (w - two)/two + two*abs(s) + two/(two + abs(w))": {"s", "w"},
    "(s + spread)/(alike - none)": {"s"},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("text", TEXTS)
def test_the_value_is_the_same_to_the_last_bit(text, dtype):
    """Against an evaluation by plain torch, without sharing and without memory used again."""
    fixed, symbols = (
        {n: v.to(dtype) if isinstance(v, torch.Tensor) else v for n, v in values.items()}
        for values in (FIXED, SYMBOLS)
    )
    filled = Expression(text).filled(fixed)
    assert filled.names & SYMBOLS.keys() == TEXTS[text]
    given = {name: value.clone() for name, value in symbols.items()}
    value = filled(given)
    plain = {"sqrt": torch.sqrt, "tanh": torch.tanh, "sign": torch.sign, "clip": torch.clamp}
    plain |= {"floor": torch.floor, "exp": torch.exp, "int": lambda truth: truth.to(dtype)}
    expected = eval(text, plain, {**fixed, **symbols})
    assert torch.equal(torch.as_tensor(value, dtype=dtype).expand(SHAPE), expected)
    assert all(torch.equal(given[name], symbols[name]) for name in symbols), "nothing overwritten"


class Counted(Seeded):
    """Noise that counts who asks."""

    def __init__(self):
        super().__init__(3)
        self.asked = []

    def draw(self, source, law, like, step, first=0):
        self.asked.append(source)
        return super().draw(source, law, like, step, first)


def at_weights(sigma, becomes="s + sigma*xi", **fields):
    effect = Effect(
        name="e",
        site="weight",
        becomes=becomes,
        constants={"sigma": sigma},
        noise={"xi": "normal"},
        **fields,
    )
    noise = Counted()
    chips = Chips(Substrate(effects=(effect,)), (0, 1), seed=1, dt=0.1, noise=noise)
    return chips.transform("weight", 0, (4, 5)), noise


def test_noise_that_vanishes_is_not_drawn():
    signal = torch.randn(2, 4, 5, generator=MADE)
    for sigma, drawn in ((0.0, []), (0.1, ["e.xi.weight0"])):
        transform, noise = at_weights(sigma)
        shown = transform(signal)
        assert noise.asked == drawn
        assert torch.equal(shown, signal) is (sigma == 0)


def test_what_is_handed_out_belongs_to_nobody_else():
    """A signal, a draw or a memory that passes unchanged is a copy: kernels write into it."""
    signal = torch.ones(2, 4, 5)
    transform, _ = at_weights(0.0)
    transform(signal).zero_()
    assert bool((signal == 1).all())
    draws = {"draws": {"g": Draw(per="row")}, "memory": {"m": Memory(update="s*sigma + m*0 + 2")}}
    transform, _ = at_weights(0.0, "g + s*sigma", **draws)
    first = transform(signal).clone()
    assert first.shape == signal.shape
    transform(signal).zero_()
    assert torch.equal(transform(signal), first)
