"""Chips: the same chip in any population; noise and memory as documented."""

import numpy as np
import pytest
import torch

from pcsim.errors import ConfigError, UnsupportedError
from pcsim.substrate import Chips, Draw, Effect, Memory, Seeded, Substrate
from pcsim.substrate.effect import stacked


def chips(effects, ids=(0,), **more):
    options = {"seed": 3, "dt": 0.1, "noise": Seeded(0), "dtype": torch.float64} | more
    return Chips(Substrate(effects=tuple(effects)), ids, **options)


GAIN = Effect(
    name="gain",
    site="weight",
    becomes="s*(1 + sigma*g)",
    constants={"sigma": 0.2},
    draws={"g": Draw()},
)
OTHER = GAIN.model_copy(update={"name": "other"})
ONES = torch.ones(1, 4, 3, dtype=torch.float64)


def test_a_chip_is_the_same_in_any_population():
    many = chips([GAIN], range(6)).transform("weight", 1, (4, 3))(ONES)
    few = chips([OTHER, GAIN], (4, 2)).transform("weight", 1, (4, 3))
    alone = chips([GAIN], (4,)).transform("weight", 1, (4, 3))(ONES)
    assert torch.equal(many[4:5], alone)
    assert not torch.equal(many[4], many[2])
    assert not torch.equal(few(ONES)[0], many[4])  # another effect acts too …
    only = chips([GAIN, OTHER], (4,)).substrate.only(("weight",))
    assert [e.name for e in only.effects] == ["gain", "other"]


@pytest.mark.parametrize("at_once", [1, 2, 4])
def test_chips_drawn_in_parts_are_the_chips_drawn_together(monkeypatch, at_once):
    derived = GAIN.model_copy(
        update={
            "becomes": "s*gain + sigma",
            "parameters": {"half": "g/2", "gain": "1 + sigma*half"},
        }
    )
    lists = {("gain", "sigma"): [0.1, 0.2, 0.3, 0.4, 0.5]}
    whole = chips([derived], range(5), lists=lists).shared(derived, 1, (4, 3), "")
    monkeypatch.setattr("pcsim.substrate.chips.AT_ONCE", at_once)
    parts = chips([derived], range(5), lists=lists).shared(derived, 1, (4, 3), "")
    assert set(whole) == set(parts) == {"gain", "sigma"}, "what is only on the way is not kept"
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    assert len(whole["gain"].flatten().unique()) == 60, "control: all differ"


def test_layers_arrays_and_seeds_differ():
    def draw(layer=1, array="", seed=3):
        return chips([GAIN], seed=seed).fixed(GAIN, layer, (4, 3), array)["g"]

    first = draw()
    assert torch.equal(first, draw())
    for other in (draw(layer=2), draw(array="feedback"), draw(seed=4)):
        assert not torch.equal(first, other)


@pytest.mark.parametrize(
    ("per", "shape"), [("element", (4, 3)), ("row", (4, 1)), ("column", (1, 3)), ("layer", (1, 1))]
)
def test_patterns_have_the_shape_of_what_they_belong_to(per, shape):
    effect = GAIN.model_copy(update={"draws": {"g": Draw(per=per)}})
    drawn = chips([effect], range(5)).fixed(effect, 0, (4, 3))["g"]
    assert drawn.shape == (5, *shape)


def test_one_draw_per_chip_is_shared_by_layers():
    effect = GAIN.model_copy(update={"draws": {"g": Draw(per="chip")}})
    population = chips([effect], range(5))
    assert torch.equal(
        population.fixed(effect, 0, (4, 3))["g"], population.fixed(effect, 2, (9, 9))["g"]
    )


def test_normal_draws_have_unit_variance_and_bernoulli_its_rate():
    effect = GAIN.model_copy(
        update={"draws": {"g": Draw(), "hit": Draw(law="bernoulli", probability=0.3)}}
    )
    fixed = chips([effect], range(50)).fixed(effect, 0, (40, 50))
    assert abs(fixed["g"].std() - 1) < 0.01
    assert abs(fixed["hit"].mean() - 0.3) < 3 * np.sqrt(0.21 / 1e5)


def test_memory_is_updated_from_what_was_before():
    effect = Effect(
        name="m",
        site="rate",
        becomes="a + 10*b",
        memory={"a": Memory(update="s"), "b": Memory(update="a")},
    )
    population = chips([effect])
    transform = population.transform("rate", 0, (1,))
    seen = []
    for value in (1, 2, 3):
        seen.append(float(transform(torch.full((1, 1, 1), float(value)))))
        population.advance()
    assert seen == [1, 12, 23]


def test_memory_starts_anew_when_the_batch_changes_and_survives_a_checkpoint():
    effect = Effect(name="m", site="rate", becomes="n", memory={"n": Memory(update="n + 1")})
    first, second = chips([effect]), chips([effect])
    run, resumed = (c.transform("rate", 0, (2,)) for c in (first, second))
    batch = torch.zeros(1, 3, 2)
    run(batch)
    first.advance()
    second.restore(first.state())
    assert float(resumed(batch)[0, 0, 0]) == 2
    assert second.clock.t == first.clock.t == pytest.approx(0.1)
    assert float(run(torch.zeros(1, 4, 2))[0, 0, 0]) == 1


NOISY = Effect(name="n", site="rate", becomes="s + xi", noise={"xi": "normal"})
ZERO = torch.zeros(1, 2, 2, dtype=torch.float64)


def test_noise_depends_on_name_and_step_alone():
    other = NOISY.model_copy(update={"name": "o"})
    population = chips([NOISY], noise=Seeded(5))
    seen = population.transform("rate", 0, (2,))
    first = seen(ZERO)
    assert torch.equal(first, seen(ZERO)), "in one time step there is one number"
    population.advance()
    assert not torch.equal(first, seen(ZERO))
    assert torch.equal(first, chips([NOISY], noise=Seeded(5)).transform("rate", 0, (2,))(ZERO))
    for effect, seed in ((other, 5), (NOISY, 6)):
        assert not torch.equal(
            first, chips([effect], noise=Seeded(seed)).transform("rate", 0, (2,))(ZERO)
        )
    alone = chips([NOISY], noise=Seeded(5)).transform("rate", 0, (2,))(ZERO)
    both = chips([NOISY, OTHER], noise=Seeded(5)).transform("rate", 0, (2,))(ZERO)
    assert torch.equal(alone, both), "another source changes nothing"


def test_chips_that_differ_in_numbers_are_stacked():
    values = (0.0, 0.1, 0.4)
    parts = [
        Substrate(effects=(GAIN.model_copy(update={"constants": {"sigma": v}}),)) for v in values
    ]
    substrate, lists = stacked(parts)
    joint = Chips(
        substrate, (0, 0, 0), seed=3, dt=0.1, noise=Seeded(0), lists=lists, dtype=torch.float64
    ).transform("weight", 1, (4, 3))(ONES)
    for row, part in enumerate(parts):
        alone = Chips(part, (0,), seed=3, dt=0.1, noise=Seeded(0), dtype=torch.float64)
        assert torch.equal(joint[row], alone.transform("weight", 1, (4, 3))(ONES)[0])
    assert torch.equal(joint[0], ONES[0])
    with pytest.raises(ConfigError, match="more than numbers"):
        stacked([parts[0], Substrate(effects=(OTHER,))])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"becomes": "s*unknown"}, "unknown not known at site"),
        ({"site": "tau_x", "noise": {"g": "normal"}, "draws": {}}, "set once"),
        ({"site": "rate", "draws": {"g": Draw(per="row")}}, "rows and columns"),
    ],
)
def test_effects_that_make_no_sense_are_refused(change, words):
    with pytest.raises(ConfigError, match=words):
        Effect(**(GAIN.model_dump() | change))


def test_a_site_that_is_not_there_is_refused_unless_optional():
    effect = Effect(name="lag", site="tau_apical", becomes="s*2")
    with pytest.raises(UnsupportedError, match=r"'lag': circuit .* has no site 'tau_apical'"):
        Substrate(effects=(effect,)).require(("rate",), "circuit x")
    Substrate(effects=(effect.model_copy(update={"optional": True}),)).require(("rate",), "x")


def test_names_must_differ():
    with pytest.raises(ConfigError, match="gain occurs twice"):
        Substrate(effects=(GAIN, GAIN))
