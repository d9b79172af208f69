"""`pcsim hardware show` of every preset: sources, who learns, clocks, biases, numbers, units."""

import re
from functools import cache

import numpy as np
import pytest
import torch

from hw_models import known_presets
from hw_models.piece import Piece
from hw_models.printed import pages
from pcsim.substrate import Chips, Seeded

PRESETS = {name: one for name, one in known_presets().items() if one.pieces}
FOUNDED = re.compile(r"\b(19|20)\d\d\b|arXiv:\d{4}\.\d{4,5}")
"""A year, or an identifier."""
RAW = re.compile(r"\de-0?\d+ s\b")
"""A time as nobody writes it."""


@cache
def shown(name):
    return list(pages(PRESETS[name]))


def head(name):
    lines = shown(name)
    return lines[: lines.index("")]


@pytest.mark.parametrize("name", PRESETS)
def test_what_it_is_and_where_its_numbers_come_from(name):
    lines = head(name)
    assert re.fullmatch(rf"{name}: \S.{{10,}}", lines[0])
    sources = [line for line in lines if line.startswith("  source: ")]
    assert sources
    assert FOUNDED.search(sources[0]), "the first one can be looked up"
    assert not any("source: assumption" in line for line in lines), "an assumption is no source"
    assert not FOUNDED.search("publications of a university"), "control"


@pytest.mark.parametrize("name", PRESETS)
def test_host_accumulator_clock_and_biases_are_said(name):
    """Once each, and as the pieces have it."""
    lines, one = head(name), PRESETS[name]
    said = [line.strip() for line in lines]
    if one.chip is None:
        assert "no whole chip: what is not listed is ideal" in said
        assert any(line.startswith("not stated: host, clock") for line in said)
    else:
        whole = next(line for line in said if line.startswith("whole chip, "))
        assert re.fullmatch(r"whole chip, (clocked|continuous), τ_x = [\d.]+ (s|ms|us|ns)", whole)
        learns = next(line for line in said if line.startswith("weights are changed by: "))
        assert ("host in the loop" in learns) == ("host in the loop" in said)
    assert ("hidden accumulator" in said) == keeps_exact_weights(one)
    assert ("hidden accumulator" in said) != any("no hidden accumulator" in line for line in said)
    assert "ideal biases" in said
    assert "_matched_" not in name or "requests add up beside each device" in said


def keeps_exact_weights(one):
    """Whether a request that is far below any step is in the stored weight to the last digit."""
    asked, size = 1e-7, (1, 50)
    chips = Chips(one.substrate(), [0], seed=0, dt=1e-6, noise=Seeded(3), dtype=torch.float64)
    write = chips.transform("write", 0, size)
    w, change = torch.zeros(1, *size, dtype=torch.float64), np.zeros(50)
    if write is None:
        return True
    for _ in range(5):
        made = write(torch.full_like(w, asked), w=w, tau_w=1.0)
        w, change = w + made, change + made.numpy().ravel()
        chips.advance()
    return np.allclose(change, 5 * asked, rtol=1e-6, atol=0)


def two_chips_differ(one):
    """Whether two chips with the same noise do otherwise with the same signals."""
    substrate, noise = one.substrate(), Seeded(3, [0, 0])
    chips = Chips(substrate, [0, 1], seed=0, dt=1e-6, noise=noise, dtype=torch.float64)
    rng = torch.Generator().manual_seed(0)
    for site in dict.fromkeys(effect.site for effect in substrate.effects):
        size = (40, 40) if site in ("weight", "write") else (40,)
        if site.startswith(("tau", "g_")):
            made = chips.fabricate(site, 0, size, 1.0)
            made = torch.as_tensor(made).expand(2, *size) if isinstance(made, float) else made
        else:
            s = torch.randn(1, *size, generator=rng, dtype=torch.float64).expand(2, *size)
            s, read = s if len(size) == 2 else s[:, None], chips.transform(site, 0, size)
            zero = torch.zeros_like(s)
            made = read(0.3 * s, w=zero, tau_w=1.0, x=zero, peak=zero[..., :1] + 1)
        if not torch.equal(made[0].expand_as(made[1]), made[1]):
            return True
    return False


@pytest.mark.parametrize("name", PRESETS)
def test_a_population_without_any_draw_says_that_it_is_one_chip(name):
    said = any(line.strip().startswith("one chip: nothing differs") for line in head(name))
    assert said != two_chips_differ(PRESETS[name])


@pytest.mark.parametrize("name", PRESETS)
def test_every_number_of_every_piece_is_there_with_its_meaning_and_a_readable_unit(name):
    text = shown(name)
    for piece_name, piece in PRESETS[name].pieces.items():
        assert any(line.startswith(f"{piece_name} ({piece.kind}): ") for line in text)
        for field, value in numbers(piece):
            lines = [line.strip() for line in text if line.strip().startswith(f"{field} = ")]
            lines = [line for line in lines if "   # " in line]
            assert lines, f"{field} is not there, or without a meaning"
            told = [line.split(" = ", 1)[1].split("   #")[0] for line in lines]
            assert value in [number(one) for one in told], (field, value, told)
    assert not [line for line in text if RAW.search(line)]
    assert RAW.search("it writes every 4e-07 s"), "control"


def numbers(piece):
    """Go through the numbers of a piece and of the pieces inside it."""
    for field in type(piece).model_fields:
        value = getattr(piece, field)
        if isinstance(value, Piece):
            yield from numbers(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield field, pytest.approx(float(value), rel=1e-5)


FACTORS = {"": 1.0, "%": 0.01, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}


def number(text):
    """Read a number with its unit; words are no number."""
    match = re.fullmatch(r"([-+]?[\d.]+(?:e[-+]?\d+)?) ?(\S*)", text)
    return float(match[1]) * FACTORS[match[2]] if match else None
