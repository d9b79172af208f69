"""Data sets: the published bytes are found and loaded, everything else gets one clear sentence."""

import gzip
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pooch
import pytest
from dataset_world import World, add_mini, idx_bytes, md5

from pcsim import datasets
from pcsim.datasets import checksum, locate, registry
from pcsim.errors import DataError

REAL = os.environ.get("PCSIM_DATA")
needs_files = pytest.mark.skipif(not REAL, reason="PCSIM_DATA is not set: no real files to read")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "own cache")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


@pytest.fixture
def mini(world: World) -> dict[str, bytes]:
    return add_mini(world)


# --- the embedded digits -------------------------------------------------------------------------


def test_digits_are_complete_and_split_by_class() -> None:
    digits = datasets.load("digits")
    assert digits.shape == (1, 8, 8)
    assert digits.classes == 10
    assert dict(digits.origin) == {"digits.csv.gz": "embedded"}
    assert len(digits.x_train) + len(digits.x_test) == 1797
    assert digits.x_train.dtype == np.float32
    assert digits.y_train.dtype == np.int64
    assert digits.x_train.min() == 0
    assert digits.x_train.max() == 1
    train, test = np.bincount(digits.y_train), np.bincount(digits.y_test)
    assert np.array_equal(test, (train + test) // 5)  # every fifth of each class
    train_rows = {row.tobytes() for row in digits.x_train}
    assert not train_rows & {row.tobytes() for row in digits.x_test}
    again = datasets.load("digits")
    assert np.array_equal(again.x_test, digits.x_test)


def test_registry_lists_the_seven_sets_with_checksums() -> None:
    expected = "digits mnist fashion_mnist cifar10 svhn tiny_imagenet one_billion_word"
    assert datasets.names() == expected.split()
    for name in datasets.names():
        entry = registry.entry(name)
        assert all(file.checksum and file.size for file in entry.files)
        for file in entry.files:
            assert file.embedded or file.urls or entry.archive_of(file)


@pytest.mark.parametrize(("wrong", "right"), [("minst", "mnist"), ("CIFAR-10", "cifar10")])
def test_wrong_name_gets_a_suggestion_and_the_list(wrong: str, right: str) -> None:
    with pytest.raises(DataError, match=f"did you mean '{right}'.*the names are digits, mnist"):
        datasets.load(wrong)


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "", "a\\..\\x"])
def test_registry_path_cannot_leave_the_root(path: str) -> None:
    with pytest.raises(ValueError, match="below the data root"):
        registry.DataFile(path=path, role="all")


# --- finding and verifying -----------------------------------------------------------------------


def test_idx_set_loads(world: World, mini: dict[str, bytes]) -> None:
    loaded = datasets.load("mini")
    assert loaded.x_train.shape == (20, 1, 28, 28)
    raw = np.frombuffer(gzip.decompress(mini["x_train"])[16:], dtype=np.uint8)
    assert np.array_equal(np.rint(loaded.x_train.ravel() * 255), raw)
    assert set(loaded.origin.values()) == {"published"}
    assert len(loaded.origin) == 4
    assert not world.asked


def test_flipped_byte_is_refused_even_after_a_good_load(
    world: World, mini: dict[str, bytes]
) -> None:
    datasets.load("mini")  # leaves stamps
    bad = bytearray(mini["y_train"])
    bad[-9] ^= 1
    path = world.put("m/y_train.gz", bytes(bad))
    with pytest.raises(DataError) as caught:
        datasets.load("mini")
    for fact in (str(path), md5(bytes(bad)), md5(mini["y_train"]), "delete", "unverified = true"):
        assert fact in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not world.asked


def test_stamp_saves_hashing_and_verify_ignores_it(
    world: World, mini: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets.load("mini")
    file, path = world.entries["mini"].files[0], world.data / "m/x_train.gz"
    monkeypatch.setattr(checksum, "digest", lambda *_: "md5:wrong")
    assert locate.is_published(path, file)
    assert not locate.is_published(path, file, thorough=True)
    os.utime(path, ns=(1, 1))
    assert not locate.is_published(path, file)


def test_truncated_gz(world: World, mini: dict[str, bytes]) -> None:
    size = len(mini["x_test"])
    path = world.put("m/x_test.gz", mini["x_test"][: size // 2])
    with pytest.raises(DataError, match=f"{size // 2} of {size} bytes"):
        datasets.load("mini")
    with pytest.raises(DataError, match="cannot be read as gzipped idx") as caught:
        datasets.load("mini", unverified=True)
    assert str(path) in str(caught.value)


def test_unverified_file_is_used_and_named(world: World, mini: dict[str, bytes]) -> None:
    other = idx_bytes(np.ones(20, dtype=np.uint8))
    world.put("m/y_train.gz", other)
    loaded = datasets.load("mini", unverified=True)
    assert loaded.y_train.tolist() == [1] * 20
    digest = hashlib.sha256(other).hexdigest()
    assert loaded.origin["m/y_train.gz"] == f"not the published file (sha256 {digest})"
    assert loaded.origin["m/x_train.gz"] == "published"


@pytest.mark.parametrize("labels", [np.arange(19), np.full(20, 10), np.zeros((20, 1))])
def test_labels_that_do_not_fit(world: World, mini: dict[str, bytes], labels: np.ndarray) -> None:
    world.put("m/y_train.gz", idx_bytes(labels.astype(np.uint8)))
    with pytest.raises(DataError, match="do not fit together"):
        datasets.load("mini", unverified=True)


def test_missing_file_without_network(world: World, mini: dict[str, bytes]) -> None:
    (world.data / "m/x_test.gz").unlink()
    with pytest.raises(DataError) as caught:
        datasets.load("mini")
    for fact in ("m/x_test.gz", md5(mini["x_test"]), "no network", "PCSIM_DATA", "data fetch mini"):
        assert fact in str(caught.value)
    assert world.left_over() == []  # the half that came is gone


def test_download_goes_to_the_cache_once(world: World, mini: dict[str, bytes]) -> None:
    (world.data / "m/x_test.gz").unlink()
    world.served["u://x_test"] = mini["x_test"]
    assert datasets.load("mini").origin["m/x_test.gz"] == "published"
    datasets.load("mini")
    assert world.asked == ["u://x_test"]
    assert (world.cache / "m/x_test.gz").read_bytes() == mini["x_test"]


def test_wrong_download_never_replaces_anything(world: World, mini: dict[str, bytes]) -> None:
    (world.data / "m/x_test.gz").unlink()
    world.served["u://x_test"] = b"something else"
    with pytest.raises(DataError, match="could not be downloaded"):
        datasets.load("mini")
    assert world.left_over() == []


def test_fetch_mends_the_cache_but_not_the_users_folder(
    world: World, mini: dict[str, bytes]
) -> None:
    entry = world.entries["mini"]
    file = entry.with_role("x_test")[0]
    bad = world.put("m/x_test.gz", b"damaged")
    world.served["u://x_test"] = mini["x_test"]
    assert locate.fetch_file(entry, file) == "downloaded"
    assert bad.read_bytes() == b"damaged"
    assert datasets.load("mini").origin["m/x_test.gz"] == "published"  # the good copy wins
    assert locate.fetch_file(entry, file) == "already there (cache)"


def test_file_without_checksum_needs_trust(world: World) -> None:
    world.add("odd", format="idx", files=[{"path": "a", "role": "x_train", "urls": ["u://a"]}])
    entry = world.entries["odd"]
    world.served["u://a"] = b"a"
    with pytest.raises(DataError, match="--trust"):
        locate.fetch_file(entry, entry.files[0])
    assert not world.asked
    assert locate.fetch_file(entry, entry.files[0], trust=True) == "downloaded"
    with pytest.raises(DataError, match="no published checksum"):
        locate.find_file(entry, entry.files[0])


def test_pcsim_data_must_be_a_folder(
    world: World, mini: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PCSIM_DATA", "nowhere")
    with pytest.raises(DataError, match="PCSIM_DATA is 'nowhere', which is not a folder"):
        datasets.load("mini")


# --- real files ----------------------------------------------------------------------------------


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def blocked(**_: Any) -> Callable[..., None]:
        raise ConnectionError("no network in tests")

    monkeypatch.setattr(pooch, "HTTPDownloader", blocked)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path)


def load_or_skip(name: str, *, unverified: bool = False) -> datasets.Dataset:
    if not any(locate.copies(file) for file in registry.entry(name).wanted()):
        pytest.skip(f"PCSIM_DATA has no {name}")
    return datasets.load(name, unverified=unverified)


@needs_files
@pytest.mark.usefixtures("real")
@pytest.mark.parametrize(
    ("name", "train", "test", "mean"),
    [
        ("mnist", 60000, 10000, [0.1307]),
        ("fashion_mnist", 60000, 10000, [0.2860]),
        ("cifar10", 50000, 10000, [0.4914, 0.4822, 0.4465]),
    ],
)
def test_real_published_sets(name: str, train: int, test: int, mean: list[float]) -> None:
    loaded = load_or_skip(name)
    assert loaded.x_train.shape == (train, *loaded.shape)
    assert loaded.x_test.shape == (test, *loaded.shape)
    assert set(loaded.origin.values()) == {"published"}
    assert np.bincount(loaded.y_test, minlength=10).min() > 800
    assert np.allclose(loaded.x_train.mean(axis=(0, 2, 3), dtype=np.float64), mean, atol=5e-5)


@needs_files
@pytest.mark.usefixtures("real")
def test_real_svhn() -> None:
    loaded = load_or_skip("svhn", unverified=True)
    assert loaded.x_train.shape[1:] == (3, 32, 32)
    assert loaded.y_train[:4].tolist() == [1, 9, 2, 3]
    if set(loaded.origin.values()) != {"published"}:
        with pytest.raises(DataError, match="e26dedcc434d2e4c54c9b2d4a06d8373"):
            datasets.load("svhn")


@needs_files
@pytest.mark.usefixtures("real")
def test_real_one_billion_word() -> None:
    if not locate.copies(registry.entry("one_billion_word").with_role("test")[0]):
        pytest.skip("PCSIM_DATA has no One Billion Word shard")
    sentences, origin = datasets.load_text("one_billion_word", "test")
    assert len(sentences) == 6075
    assert sum(len(sentence.split()) for sentence in sentences) == 153583
    assert list(origin.values()) == ["published"]
