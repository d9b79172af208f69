"""Data sets: archives, file formats and text, whole and damaged."""

import gzip
import io
import math
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dataset_world import IDX_CODES, World, add_mini, idx_bytes, md5, tar_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.io import savemat

from pcsim import datasets
from pcsim.datasets import formats
from pcsim.errors import DataError


def picture(colour: int, *, mode: str = "RGB", kind: str = "PNG", side: int = 64) -> bytes:
    out = io.BytesIO()
    Image.new(mode, (side, side), (colour, 0, 255) if mode == "RGB" else colour).save(out, kind)
    return out.getvalue()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


# --- archives ------------------------------------------------------------------------------------


def add_cifar(world: World, members: dict[str, bytes], published: dict[str, bytes]) -> None:
    archive = tar_bytes(members)
    files: list[dict[str, Any]] = [
        {"path": "c.tar.gz", "role": "archive", "checksum": md5(archive), "urls": ["u://c"]}
    ]
    for path, content in published.items():
        role = "test" if "test" in path else "train"
        files.append({"path": path, "role": role, "checksum": md5(content), "archive": "c.tar.gz"})
    world.add("c", format="cifar_bin", shape=(3, 32, 32), files=files)
    world.served["u://c"] = archive


def cifar_batches() -> dict[str, bytes]:
    rng = np.random.default_rng(1)
    batch = {n: rng.integers(0, 10, (4, 3073), dtype=np.uint8) for n in ("one", "two", "test")}
    return {f"c/{name}.bin": records.tobytes() for name, records in batch.items()}


def test_cifar_is_taken_out_of_the_archive(world: World) -> None:
    batches = cifar_batches()
    add_cifar(world, {**batches, "c/readme.html": b"no"}, batches)
    loaded = datasets.load("c")
    assert loaded.x_train.shape == (8, 3, 32, 32)
    first = np.frombuffer(batches["c/one.bin"], dtype=np.uint8)
    assert loaded.y_train[0] == first[0]
    assert loaded.x_train[0, 1, 0, 2] == np.float32(first[1 + 1024 + 2]) / np.float32(255)
    assert list(loaded.origin) == ["c/one.bin", "c/two.bin", "c/test.bin"]
    assert sorted(world.left_over()) == ["c.tar.gz", "one.bin", "test.bin", "two.bin"]
    assert world.asked == ["u://c"]


@pytest.mark.parametrize("name", ["../evil.bin", "/evil.bin", "c/../../evil.bin", "C:\\evil.bin"])
def test_archive_with_an_escaping_member_is_refused(world: World, name: str) -> None:
    batches = cifar_batches()
    add_cifar(world, {**batches, name: b"evil"}, batches)
    with pytest.raises(DataError, match="points outside its folder"):
        datasets.load("c")
    assert world.left_over() == ["c.tar.gz"]
    assert not list(world.cache.parent.rglob("*evil*"))


@pytest.mark.parametrize(("change", "message"), [("damage", "is damaged"), ("drop", "not hold")])
def test_archive_with_a_wrong_member(world: World, change: str, message: str) -> None:
    batches = cifar_batches()
    members = dict(batches)
    if change == "drop":
        del members["c/two.bin"]
    else:
        members["c/two.bin"] = bytes(len(members["c/two.bin"]))
    add_cifar(world, members, batches)
    with pytest.raises(DataError, match=message):
        datasets.load("c")
    assert world.left_over() == ["c.tar.gz"]


# --- formats -------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(sorted(IDX_CODES)),
    shape=st.lists(st.integers(0, 5), min_size=1, max_size=4),
    seed=st.integers(0, 2**16),
)
def test_idx_round_trip(kind: str, shape: list[int], seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 120, math.prod(shape)).astype(kind)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.gz"
        path.write_bytes(idx_bytes(values.reshape(shape)))
        back = formats.read_idx(path)
    assert back.dtype == np.dtype(kind)
    assert np.array_equal(back, values.reshape(shape))


@pytest.mark.parametrize("raw", [b"", b"\0\0\x08", b"PK\x03\x04", b"\0\0\x08\x01\0\0\0\x02a"])
def test_idx_nonsense(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(raw))
    with pytest.raises(DataError, match=r"a\.gz' cannot be read as gzipped idx"):
        formats.read_idx(path)


def test_svhn_mat(tmp_path: Path) -> None:
    images = np.random.default_rng(2).integers(0, 256, (32, 32, 3, 5), dtype=np.uint8)
    path = tmp_path / "t.mat"
    savemat(path, {"X": images, "y": np.array([[10], [1], [2], [9], [10]], dtype=np.uint8)})
    x, y = formats.read_svhn(path)
    assert y.tolist() == [0, 1, 2, 9, 0]
    assert np.array_equal(x[3, 2], images[:, :, 2, 3])
    path.write_bytes(path.read_bytes()[:700])
    with pytest.raises(DataError, match="cannot be read as an SVHN"):
        formats.read_svhn(path)


def tiny_zip(*, val: bool, side: int = 64) -> bytes:
    out = io.BytesIO()
    root = "tiny-imagenet-200"
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr(f"{root}/wnids.txt", "n02\nn01\n")
        for wnid, base in (("n01", 10), ("n02", 100)):
            for k in range(3):
                # Real images are JPEG by name and content; one grey one is among them.
                raw = picture(base + k, mode="L" if k else "RGB", kind="JPEG", side=side)
                packed.writestr(f"{root}/train/{wnid}/images/{wnid}_{k}.JPEG", raw)
        if val:
            packed.writestr(f"{root}/val/val_annotations.txt", "v.JPEG\tn01\t0\t0\t9\t9\n")
            packed.writestr(f"{root}/val/images/v.JPEG", picture(7, mode="L", kind="JPEG"))
    return out.getvalue()


def add_tiny(world: World, published: bytes) -> None:
    files = [{"path": "t.zip", "role": "all", "checksum": md5(published), "urls": ["u://t"]}]
    world.add(
        "t",
        format="tiny_imagenet",
        shape=(3, 64, 64),
        files=files,
        stand_ins=[{"path": "subset.zip", "role": "all"}, {"path": "folder", "role": "all"}],
    )


def test_tiny_imagenet_published_zip_tests_on_val(world: World) -> None:
    raw = tiny_zip(val=True)
    add_tiny(world, raw)
    world.put("t.zip", raw)
    loaded = datasets.load("t")
    assert loaded.y_train.tolist() == [1, 1, 1, 0, 0, 0]  # n02 comes first in wnids.txt
    assert loaded.y_test.tolist() == [1]
    assert np.allclose(loaded.x_test, 7 / 255, atol=2 / 255)
    assert dict(loaded.origin) == {"t.zip": "published"}


def test_tiny_imagenet_subset_must_be_asked_for(world: World) -> None:
    add_tiny(world, b"the published zip")
    world.put("subset.zip", tiny_zip(val=False))
    with pytest.raises(DataError, match=r"only '.*subset\.zip'.*unverified = true"):
        datasets.load("t")
    assert not world.asked
    loaded = datasets.load("t", unverified=True)
    assert loaded.y_train.tolist() == [1, 1, 0, 0]
    assert loaded.y_test.tolist() == [0, 1]  # the last image of each class
    assert loaded.origin["subset.zip"].startswith("not the published file (sha256 ")


def test_tiny_imagenet_folder(world: World) -> None:
    add_tiny(world, b"the published zip")
    world.put("folder/labels.tsv", b'file\twnid\twords\na.png\tn9\ta "cat\nb.png\tn1\tdog\n')
    world.put("folder/a.png", picture(3))
    world.put("folder/b.png", picture(5))
    loaded = datasets.load("t", unverified=True)
    assert loaded.y_train.tolist() == [0, 1]
    assert loaded.x_test.shape == (0, 3, 64, 64)
    assert loaded.x_train[1, 0, 0, 0] == np.float32(5) / np.float32(255)
    before = loaded.origin["folder"]
    world.put("folder/b.png", picture(6))
    assert datasets.load("t", unverified=True).origin["folder"] != before


@pytest.mark.parametrize("raw", [b"no zip", tiny_zip(val=False, side=65), tiny_zip(val=True)[:-40]])
def test_tiny_imagenet_nonsense(world: World, raw: bytes) -> None:
    add_tiny(world, b"the published zip")
    world.put("subset.zip", raw)
    with pytest.raises(DataError, match="cannot be read as Tiny ImageNet"):
        datasets.load("t", unverified=True)


# --- text ----------------------------------------------------------------------------------------


@pytest.fixture
def words(world: World) -> World:
    shard = "Ein Satz .\n\nZwei \u2028 Sätze .\n".encode()
    archive = tar_bytes(
        {"r/train/b-1": b"one .\ntwo .\n", "r/train/b-2": b"three .\n", "r/x": b"x"}
    )
    world.add(
        "words",
        kind="text",
        format="text",
        parts={"train": "*/train/b-?"},
        files=[
            {"path": "s", "role": "test", "checksum": md5(shard), "urls": ["u://s"]},
            {"path": "w.tar.gz", "role": "archive", "checksum": md5(archive), "urls": ["u://w"]},
        ],
        stand_ins=[{"path": "own.txt.gz", "role": "train"}],
    )
    world.served = {"u://s": shard, "u://w": archive}
    return world


def test_text_parts(words: World) -> None:
    assert datasets.load_text("words", "test") == (
        ["Ein Satz .", "Zwei \u2028 Sätze ."],
        {"s": "published"},
    )
    sentences, origin = datasets.load_text("words", "train")
    assert sentences == ["one .", "two .", "three ."]
    assert origin == {"w.tar.gz": "published"}
    assert datasets.load_text("words", "train", limit=2)[0] == ["one .", "two ."]
    assert datasets.load_text("words", "test", limit=1)[0] == ["Ein Satz ."]


def test_text_stand_in_must_be_asked_for(words: World) -> None:
    words.put("own.txt.gz", gzip.compress(b"mine .\n"))
    with pytest.raises(DataError, match=r"only '.*own\.txt\.gz'"):
        datasets.load_text("words", "train")
    sentences, origin = datasets.load_text("words", "train", unverified=True)
    assert sentences == ["mine ."]
    assert origin["own.txt.gz"].startswith("not the published file")


def test_text_mistakes(words: World) -> None:
    add_mini(words)
    with pytest.raises(DataError, match="no part 'all'; the parts are train, test"):
        datasets.load_text("words", "all")
    with pytest.raises(DataError, match="is images"):
        datasets.load_text("mini", "train")
    with pytest.raises(DataError, match="is text"):
        datasets.load("words")
    words.put("own.txt.gz", gzip.compress(b"\xff\xfe\n"))
    with pytest.raises(DataError, match="cannot be read as UTF-8"):
        datasets.load_text("words", "train", unverified=True)
