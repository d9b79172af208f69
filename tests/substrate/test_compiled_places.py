"""What hardware does at a place, in one compiled pass: the numbers of torch, noise included."""

import pytest
import torch
from scipy import stats

import hw_models
from hw_models import describe
from pcsim.native import SHORT, compiler
from pcsim.native import place as places
from pcsim.substrate import Chips, Seeded
from pcsim.substrate.effect import AGGREGATES, FABRICATED, WEIGHT_SITES

IDS, POST, PRE, SAMPLES = [4, 1, 7], 6, 5, 2


def chips(substrate, compiled, ids=IDS, dtype=torch.float64):
    made = Chips(substrate, ids, seed=2, dt=0.1, noise=Seeded(3, ids), dtype=dtype)
    if compiled:
        made.compile(SHORT)
    return made


def signals(site, step, ids=IDS, dtype=torch.float64, post=POST, pre=PRE):
    """Return the signal and the symbols of a site at a time step, the same for a chip anywhere."""
    weights = site in WEIGHT_SITES
    shape = (post, pre) if weights else (SAMPLES, pre)

    def drawn(what, size=1.0):
        rows = [torch.Generator().manual_seed(1000 * step + 10 * k + what) for k in ids]
        rows = [size * torch.randn(shape, generator=g, dtype=torch.float64) for g in rows]
        return torch.stack(rows).to(dtype)

    symbols = {}
    if site == "write":
        symbols = {"w": drawn(1, 0.3), "tau_w": 50.0}
    elif site == "velocity":
        symbols = {"x": drawn(2)}
    elif site in ("product", "feedback"):
        symbols = {name: drawn(3 + k).abs() for k, name in enumerate(AGGREGATES)}
    return drawn(0, 0.02 if site == "write" else 1.0), symbols


def followed(substrate, site, compiled, ids=IDS, steps=5, **how):
    """Return all that a place gives and remembers over some steps, some of them left out."""
    population = chips(substrate, compiled, ids, how.get("dtype", torch.float64))
    shape = (how.get("post", POST), how.get("pre", PRE))
    place = population.transform(site, 1, shape if site in WEIGHT_SITES else shape[1:])
    found = []
    for step in range(steps):
        s, symbols = signals(site, step, ids, **how)
        symbols = {n: v for n, v in symbols.items() if n not in AGGREGATES or n in place.aggregates}
        found.append(place(s, **symbols))
        if not place.once:
            found.append(place(s, **symbols))
        found += [m.clone() for part in place.parts for m in part.memory.values()]
        population.advance(1 + step % 2)
    return found, place


def sites(substrate):
    return [
        site for site in dict.fromkeys(e.site for e in substrate.effects) if site not in FABRICATED
    ]


DEVICE = {"dw_min": 0.01, "dw_spread": 0.1, "cycle_noise": 0.3, "w_max_spread": 0.1}
PLACES = {
    "pulses": {"a": {"kind": "linear_device", **DEVICE, "write_noise": 3.0, "t_write": 0.2}},
    "powers": {"a": {"kind": "power_device", **DEVICE, "gamma_up": 0.5, "gamma_down": 1.7}},
    "drift": {"a": {"kind": "conductance_drift", "nu": 0.3, "nu_spread": 0.05, "t0": 0.2}},
    "reads in a row": {
        "a": {"kind": "array_read_noise", "sigma": 0.5, "reference": "range"},
        "b": {"kind": "quantized_weights", "bits": 5},
    },
    "wires": {"a": {"kind": "ir_drop", "ratio": 0.02, "columns": 64}},
    "converter": {"a": {"kind": "converter", "where": "rate", "bits": 4, "dither": True}},
    "asked twice": {"a": {"kind": "coloured_noise", "sigma": 0.3, "tau_c": 0.3, "where": "rate"}},
}
WRITES = {"a": {"kind": "linear_device", **DEVICE}}


def was_compiled(place):
    return place._place is not None and any(place._place._codes.values())


@pytest.mark.parametrize("name", [*PLACES, "pcm"])
def test_one_pass_gives_the_numbers_of_torch(name):
    preset = name not in PLACES
    substrate = (hw_models.preset(name) if preset else describe("ideal", PLACES[name])).substrate()
    for site in sites(substrate):
        theirs, plain = followed(substrate, site, compiled=False)
        ours, place = followed(substrate, site, compiled=True)
        assert was_compiled(place)
        assert not was_compiled(plain), "control: torch is torch"
        for expected, found in zip(theirs, ours, strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
        assert max(float(each.std()) for each in theirs) > 0, "control"


def test_rows_longer_than_a_line_and_single_precision():
    """Bands of rows, and longer ones; what is compared is five steps of round-off."""
    substrate = describe("ideal", WRITES).substrate()
    wide = {"post": 3, "pre": places.LINE + 100}
    for how in (wide, {"post": 300, "pre": 7}):
        theirs, _ = followed(substrate, "write", compiled=False, steps=2, **how)
        ours, place = followed(substrate, "write", compiled=True, steps=2, **how)
        assert was_compiled(place)
        for expected, found in zip(theirs, ours, strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    single = {"dtype": torch.float32}
    theirs, _ = followed(substrate, "write", compiled=False, **single)
    ours, _ = followed(substrate, "write", compiled=True, **single)
    torch.testing.assert_close(ours[0], theirs[0], rtol=1e-5, atol=1e-7)


def test_a_chip_alone_is_the_chip_among_a_thousand_whatever_the_threads(monkeypatch):
    """Bit for bit."""
    substrate = describe("ideal", WRITES).substrate()
    many = list(range(1000))
    together, _ = followed(substrate, "write", compiled=True, ids=many, steps=2)
    monkeypatch.setattr(places, "PARALLEL", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    divided, _ = followed(substrate, "write", compiled=True, ids=many, steps=2)
    assert all(torch.equal(one, two) for one, two in zip(together, divided, strict=True))
    for k in (0, 499, 500, 999):
        alone, _ = followed(substrate, "write", compiled=True, ids=[k], steps=2)
        assert all(torch.equal(a[0], m[k]) for a, m in zip(alone, together, strict=True))
    assert not torch.equal(together[0][0], together[0][1]), "control"


def test_without_a_compiler_torch_goes_on(monkeypatch, tmp_path):
    substrate = describe("ideal", PLACES["converter"]).substrate()
    expected, _ = followed(substrate, "rate", compiled=False)
    compiler.library.cache_clear()
    monkeypatch.setenv("CC", str(tmp_path / "no-such-compiler"))
    found, place = followed(substrate, "rate", compiled=True)
    compiler.library.cache_clear()
    assert not was_compiled(place)
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


@pytest.mark.parametrize("compiled", [False, True])
def test_pulses_fall_by_chance_and_only_they_are_noisy(compiled):
    """Exact in distribution: a request of 0.3 pulses is one pulse in 30 % of all devices."""
    piece = {"kind": "constant_device", "dw_min": 0.01, "cycle_noise": 0.2, "range": 1.0}
    population = chips(describe("ideal", {"a": piece}).substrate(), compiled, ids=[5])
    write = population.transform("write", 0, (300, 300))
    asked = torch.full((1, 300, 300), 0.003, dtype=torch.float64)
    change = write(asked, w=torch.zeros_like(asked), tau_w=1.0).flatten()
    assert was_compiled(write) == compiled
    pulses = change[change != 0]
    share, error = len(pulses) / 90_000, (0.3 * 0.7 / 90_000) ** 0.5
    assert abs(share - 0.3) < 4 * error
    noise = ((pulses / 0.01 - 1) / 0.2).numpy()
    assert stats.kstest(noise, "norm").pvalue > 1e-3
    assert stats.kstest(noise, stats.norm(scale=1.1).cdf).pvalue < 1e-6, "control"
    assert stats.kstest(noise, stats.norm(loc=0.05).cdf).pvalue < 1e-6, "control"
