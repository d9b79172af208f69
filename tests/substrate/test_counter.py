"""The counter-based generator: published vectors, both implementations, distribution."""

import ctypes
import shutil
import subprocess
from importlib.resources import files

import numpy as np
import pytest
import scipy.stats
import torch

from pcsim.native.compiler import CacheWarning, Library, _temporary_folder, library
from pcsim.substrate import Seeded, counter

WHOLE = (1 << 64) - 1
KEYS = np.array([0, WHOLE, 0x0123456789ABCDEF, 7], dtype=np.uint64)
VECTORS = [
    (0, 0, 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    (WHOLE, WHOLE, WHOLE, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        0x299F31D0A4093822,
        0x0370734413198A2E,
        0x85A308D3243F6A88,
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]
"""Key, upper and lower half of the counter, words: the known answers of Random123's philox4x32-10
(Salmon et al., SC 2011)."""


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


@pytest.mark.parametrize(("key", "step", "block", "expected"), VECTORS)
def test_published_vectors(key, step, block, expected):
    ours = counter.words(torch.tensor([signed(key)]), step, torch.tensor([signed(block)]))
    assert " ".join(f"{int(word):08x}" for word in ours) == expected
    code = counter.compiled().code
    if code is not None:
        out = (ctypes.c_uint32 * 4)()
        code.philox_words(*(ctypes.c_uint64(v) for v in (key, step, block)), out)
        assert " ".join(f"{word:08x}" for word in out) == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("law", ["normal", "uniform"])
def test_compiled_and_torch_give_the_same_bits(dtype, law):
    """At any length, any start, any step, so that no vector loop differs from its remainder."""
    if counter.compiled().code is None:
        pytest.skip(counter.compiled().reason)
    for step, first, count in [(0, 0, 1001), (5, 1, 3), (2**40 + 3, 7, 257), (1, 2**34 + 2, 513)]:
        like = torch.empty(len(KEYS), count, dtype=dtype)
        ours = counter.fill(like.shape, KEYS, step, law, like, first)
        assert torch.equal(ours, counter.by_torch(KEYS, step, law, count, first, dtype))


@pytest.mark.parametrize("name", ["float", "double"])
def test_no_normal_number_exceeds_its_reach(name):
    """The reach is known from half of the words, and no more than it must be."""
    if (code := counter.compiled().code) is None:
        pytest.skip(counter.compiled().reason)
    count, made = 1 << 18, {}
    fill, kind = getattr(code, f"fill_{name}"), np.float32 if name == "float" else np.float64
    for which, law in (("normal", 1), ("reach", 2)):
        made[which] = np.empty(count, dtype=kind)
        at = (ctypes.c_void_p(made[which].ctypes.data), ctypes.c_void_p(KEYS[3:].ctypes.data))
        sizes = (ctypes.c_int64(1), ctypes.c_int64(count))
        fill(*at, *sizes, ctypes.c_uint64(5), ctypes.c_uint64(3), ctypes.c_int(law))
    size, reach = np.abs(made["normal"]), made["reach"]
    assert (size <= reach).all()
    assert (size > 0.98 * reach).sum() > 100
    assert (size > np.roll(reach, 7)).any(), "control: the reach of another"


def test_an_element_is_the_same_in_any_part():
    like = torch.empty(4, 100, dtype=torch.float64)
    whole = counter.fill(like.shape, KEYS, 9, "normal", like)
    part = counter.fill(torch.Size((4, 30)), KEYS, 9, "normal", like, first=37)
    assert torch.equal(part, whole[:, 37:67])
    single = counter.fill(whole.shape, KEYS, 9, "normal", like.float())
    torch.testing.assert_close(single.double(), whole, atol=2e-6, rtol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_distribution(dtype):
    like = torch.empty(4, 100_000, dtype=dtype)
    normal = counter.fill(like.shape, KEYS, 1, "normal", like).double().numpy()
    uniform = counter.fill(like.shape, KEYS, 1, "uniform", like).double().numpy()
    for row in range(4):
        assert scipy.stats.kstest(normal[row], "norm").pvalue > 1e-3
        assert scipy.stats.kstest(uniform[row], "uniform").pvalue > 1e-3
        assert scipy.stats.kstest(1.04 * normal[row], "norm").pvalue < 0.05, "control"
    assert 0 < uniform.min() < 1e-4
    assert 1 - 1e-4 < uniform.max() < 1
    # Tails: 4·10⁵ normals, of which 25 are expected beyond four standard deviations.
    assert 8 < (np.abs(normal) > 4).sum() < 50
    assert scipy.stats.kurtosis(normal.ravel()) == pytest.approx(0, abs=0.03)


def test_nothing_is_correlated():
    """Chips, sources, steps, and neighbours of one block: each against each."""
    noise, like = Seeded(3), torch.empty(4, 1, 50_000, dtype=torch.float64)
    rows = [noise.draw(name, "normal", like, step) for name in ("a", "b") for step in (0, 1)]
    series = torch.cat([row[:, 0] for row in rows])
    blocks = torch.stack([rows[0][0, 0, lane::4] for lane in range(4)])
    squares = torch.cat([blocks, blocks.square() - 1])
    for group in (series, squares):
        apart = torch.corrcoef(group) - torch.eye(len(group), dtype=torch.float64)
        assert float(apart.abs().max()) < 5 / np.sqrt(group.shape[1])
    shifted = torch.corrcoef(torch.stack([series[0, 1:], series[0, :-1]]))[0, 1]
    assert abs(float(shifted)) < 5 / np.sqrt(50_000)


def test_a_chip_draws_the_same_whoever_else_draws():
    like = torch.empty(5, 2, 3, dtype=torch.float64)
    chips = [(0, 0), (0, 1), (1, 0), (1, 1), (0, 1)]
    among = Seeded(1, chips).draw("s", "normal", like, 4)
    assert torch.equal(among[1], among[4]), "rows of one chip"
    for row, chip in enumerate(chips):
        assert torch.equal(Seeded(1, [chip]).draw("s", "normal", like[:1], 4)[0], among[row])
    assert not torch.equal(among, Seeded(1, chips).apart("x").draw("s", "normal", like, 4))
    assert len({float(v) for v in among[:4].flatten()}) == among[:4].numel(), "all differ"


def test_without_a_compiler_torch_takes_over(monkeypatch):
    like = torch.empty(4, 9, dtype=torch.float64)
    expected = counter.fill(like.shape, KEYS, 2, "normal", like)
    monkeypatch.setattr(counter, "compiled", lambda: Library(None, "none"))
    assert torch.equal(counter.fill(like.shape, KEYS, 2, "normal", like), expected)


def test_a_bad_environment_has_a_reason(monkeypatch, tmp_path):
    monkeypatch.setenv("CC", str(tmp_path / "no-such-compiler"))
    assert "no C compiler found" in library("int none;").reason
    broken = tmp_path / "cc"
    broken.write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho 'it is broken' >&2\nexit 1\n"
    )
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    assert "failed (it is broken)" in library("int broken;").reason


def test_a_cache_that_others_can_write_is_not_used(monkeypatch, tmp_path):
    if counter.compiled().code is None:
        pytest.skip(counter.compiled().reason)
    monkeypatch.setattr("pcsim.native.compiler.pooch.os_cache", lambda name: tmp_path)
    (tmp_path / "native").mkdir(mode=0o700)
    (tmp_path / "native").chmod(0o777)
    _temporary_folder.cache_clear()  # it warns once per process
    with pytest.warns(CacheWarning, match="others can write there"):
        assert library("int open_to_all;").code is not None
    assert not list((tmp_path / "native").iterdir())
    (tmp_path / "native").chmod(0o700)
    assert library("int mine;").code is not None
    assert [path.suffix for path in (tmp_path / "native").iterdir()] == [".so"]


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_the_text_is_cpp_as_well():
    """A standalone program of Brian2 contains it."""
    text = (files("pcsim.native") / "counter.c").read_text(encoding="utf-8")
    command = ["g++", "-std=c++11", "-Wall", "-Wno-unused-function", "-Werror"]
    command += ["-fsyntax-only", "-x", "c++", "-"]
    for source, works in ((text, True), (text + "\nint class;", False)):
        done = subprocess.run(command, input=source, text=True, capture_output=True, check=False)
        assert (done.returncode == 0) is works, done.stderr
