"""Pictures changed by kornia: corruptions grow from nothing, only training is augmented."""

import sys

import numpy as np
import picture_world
import pytest
import torch

from pcsim import config, datasets
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.runner.replicas import Replicas
from pcsim.runner.task import Task
from pcsim.vision import augmentation, library
from pcsim.vision.corruption import CORRUPTIONS, corrupt


def smooth(pictures=24, side=32, waves=2):
    """Return random pictures of long waves, which rotation and blur change a little at a time."""
    rng = np.random.default_rng(0)
    grid = 2 * np.pi * np.arange(side) / side
    k = rng.integers(-waves, waves + 1, (2, pictures, 3, 1, 1))
    phase = rng.uniform(0, 2 * np.pi, (pictures, 3, 1, 1))
    values = np.sin(k[0] * grid[:, None] + k[1] * grid + phase)
    return torch.as_tensor(0.5 + 0.25 * values, dtype=torch.float32)


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_severity_grows_from_nothing(kind):
    original = smooth()
    before = original.clone()
    assert torch.equal(corrupt(original, kind, 0), original)
    levels = (0.02, 0.5, 1, 2, 3, 4, 5)
    distances = [float((corrupt(original, kind, v) - original).norm()) for v in levels]
    assert distances[0] < 0.03 * distances[-1], "a weak corruption is close to none"
    assert np.all(np.diff(distances) > 0)
    assert torch.equal(original, before), "the original is left alone"
    for level in (1, 5):
        found = corrupt(original, kind, level)
        assert found.shape == original.shape
        assert 0 <= found.min() <= found.max() <= 1


def test_what_each_corruption_is():
    """Against formulas that need no kornia."""
    original = smooth()
    torch.testing.assert_close(corrupt(original, "brightness", 2), (original + 0.2).clamp(0, 1))
    grey = (original * torch.tensor([0.299, 0.587, 0.114])[:, None, None]).sum(1, keepdim=True)
    middle = grey.mean((2, 3), keepdim=True)
    flat = middle + (1 - 0.18 * 3) * (original - middle)
    torch.testing.assert_close(corrupt(original, "contrast", 3), flat, atol=1e-4, rtol=0)
    # A third of the circle turns red into green or blue; level 10/3 is a third.
    red = torch.tensor([0.8, 0.1, 0.1]).view(1, 3, 1, 1).expand(1, 3, 8, 8)
    turned = corrupt(red, "hue", 10 / 3)[0, :, 0, 0]
    torch.testing.assert_close(turned, torch.tensor([0.1, 0.8, 0.1]), atol=1e-4, rtol=0)
    # A wave with k = 1 is damped by exp(−σ²k²/2), k in radians per pixel.
    x = torch.arange(64.0)
    wave = (0.5 + 0.4 * torch.cos(2 * np.pi * x / 8)).expand(1, 3, 64, 64)
    blurred = corrupt(wave, "gaussian_blur", 3)[..., 16:48, 16:48]
    ratio = (blurred.max() - 0.5) / 0.4
    assert float(ratio) == pytest.approx(np.exp(-0.5 * (1.2 * 2 * np.pi / 8) ** 2), rel=0.02)
    # Level 5 is 45°: what was on the row through the centre is then on a diagonal.
    dot = torch.zeros(1, 3, 33, 33)
    dot[..., 15:18, 25:28] = 1
    place = corrupt(dot, "rotation", 5)[0, 0].nonzero().double().mean(0).numpy() - 16
    assert np.hypot(*place) == pytest.approx(10, abs=0.5)
    assert abs(place[0]) == pytest.approx(abs(place[1]), abs=0.5)


def test_noise_belongs_to_its_seed_and_has_its_size():
    grey = torch.full((8, 3, 32, 32), 0.5)
    first = corrupt(grey, "gaussian_noise", 2, seed=1)
    assert torch.equal(first, corrupt(grey, "gaussian_noise", 2, seed=1))
    assert not torch.equal(first, corrupt(grey, "gaussian_noise", 2, seed=2))
    assert float((first - 0.5).std()) == pytest.approx(0.08, rel=0.03)
    half = corrupt(grey, "gaussian_noise", 1, seed=1)
    torch.testing.assert_close(first - 0.5, 2 * (half - 0.5), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("kind", "level", "channels", "words"),
    [
        ("fog", 1, 3, "no 'fog'; choose one of"),
        ("hue", 6, 3, "between 0 and 5, got 6"),
        ("hue", 1, 1, "hue needs pictures of 3 colours, these have 1"),
    ],
)
def test_refused(kind, level, channels, words):
    with pytest.raises(ConfigError, match=words):
        corrupt(torch.zeros(2, channels, 8, 8), kind, level)


def test_a_missing_kornia_is_named(monkeypatch):
    for name in ("kornia", "kornia.enhance"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnsupportedError, match=r"hue needs kornia.*pip install 'pcsim\[vision\]'"):
        corrupt(smooth(2), "hue", 1)


def test_an_error_inside_kornia_is_not_taken_for_a_missing_one(monkeypatch):
    def broken(name):
        raise ModuleNotFoundError("no module", name="something_else")

    monkeypatch.setattr(library, "import_module", broken)
    with pytest.raises(ModuleNotFoundError):
        library.part("enhance", "hue")


# augmentation


def moved_by_hand(picture, mirrored, rows, columns):
    height, width = picture.shape[-2:]
    out = torch.zeros_like(picture)
    for i in range(height):
        for j in range(width):
            a, b = i + rows, (width - 1 - j if mirrored else j) + columns
            if 0 <= a < height and 0 <= b < width:
                out[:, i, j] = picture[:, a, b]
    return out


def test_pictures_move_as_drawn():
    originals = torch.randn(40, 3, 16, 12)
    draws = augmentation.draw(7, 3, 40, (3, 16, 12))
    found = augmentation.apply(originals, draws)
    for k, picture in enumerate(originals):
        expected = moved_by_hand(picture, draws.mirrored[k], draws.rows[k], draws.columns[k])
        assert torch.equal(found[k], expected)


def test_draws_cover_what_they_should():
    draws = augmentation.draw(0, 0, 4000, (3, 32, 32))
    assert draws.mirrored.mean() == pytest.approx(0.5, abs=0.04)
    for shifts in (draws.rows, draws.columns):
        values, counts = np.unique(shifts, return_counts=True)
        assert values.tolist() == list(range(-4, 5))
        assert counts.min() > 350
    with pytest.raises(ConfigError, match="needs pictures"):
        augmentation.draw(0, 0, 4, (64,))


SECTIONS = {
    "network": {"kind": "cnn", "image": (3, 16, 16), "channels": [2], "dense": [4]},
    "learning": {"batch": 40},
    "data": {"name": "cifar10", "limit": 200, "validation": 50, "centre": True},
    "run": {"seeds": [0, 1]},
}


def task(augment, seeds=(0, 1), alphas=()):
    sections = {
        **SECTIONS,
        "data": {**SECTIONS["data"], "augment": augment},
        "run": {"seeds": list(seeds)},
        "grid": {"alpha": list(alphas)},
    }
    chosen = config.parse(sections)
    return Task.load(chosen, chosen.network.build()), Replicas.of(chosen)


@pytest.fixture
def coloured(monkeypatch):
    data = picture_world.pictures()
    monkeypatch.setattr(datasets, "load", lambda name, **given: data)


@pytest.mark.usefixtures("coloured")
def test_only_training_samples_are_augmented():
    plain, replicas = task(False)
    more, _ = task(True)
    for name in ("train", "validation", "test"):
        for part in ("x", "y"):
            ours, theirs = (getattr(getattr(t, name), part) for t in (more, plain))
            assert torch.equal(ours, theirs), (name, part)
    draws = [augmentation.draw(seed, 2, 150, (3, 16, 16)) for seed in (0, 1)]
    batches = list(zip(more.batches(replicas, 2, 40), plain.batches(replicas, 2, 40), strict=True))
    assert len(batches) == 3
    changed = 0
    samples = plain.train.x
    for ours, theirs in batches:
        assert torch.equal(ours[0], theirs[0]), "the label stays with its picture"
        for row in range(2):
            for mine, original in zip(ours[-1][row], theirs[-1][row], strict=True):
                # pictures may be equal: any of the samples with these pixels will do
                numbers = (samples == original).all(1).nonzero().ravel().tolist()
                picture = original.view(3, 16, 16)
                drawn = draws[row]
                assert any(
                    torch.equal(
                        mine.view(3, 16, 16),
                        moved_by_hand(picture, drawn.mirrored[n], drawn.rows[n], drawn.columns[n]),
                    )
                    for n in numbers
                )
                changed += not torch.equal(mine, original)
    assert changed > 100


@pytest.mark.usefixtures("coloured")
def test_augmentation_belongs_to_seed_and_epoch():
    both, replicas = task(True)
    alone, one = task(True, seeds=(1,))
    grid, many = task(True, alphas=(1e-3, 1e-2))

    def first(which, population, epoch):
        return next(which.batches(population, epoch, 40))[-1]

    assert torch.equal(first(both, replicas, 1)[1:], first(alone, one, 1))
    assert torch.equal(first(grid, many, 1)[2:], first(both, replicas, 1)), "the same for all rates"
    assert torch.equal(first(both, replicas, 1), first(both, replicas, 1))
    # In another epoch the order differs too: compare the sets of pictures.
    pixels = [set(map(bytes, first(both, replicas, e)[0].numpy())) for e in (1, 2)]
    assert len(pixels[0] & pixels[1]) < 5


@pytest.mark.usefixtures("coloured")
def test_a_batch_of_the_whole_set_is_augmented_too():
    more, replicas = task(True)
    (batch,) = more.batches(replicas, 0, 150)
    assert batch[-1].shape == (2, 150, 768)
    assert not set(map(bytes, batch[-1][0].numpy())) <= set(map(bytes, more.train.x.numpy()))


def test_augmentation_of_what_is_not_trained_in_batches_is_refused():
    for change in ({"learning": {"batch": 0}}, {"data": {"augment": True, "mode": "generative"}}):
        with pytest.raises(ConfigError, match=r"data\.augment needs"):
            config.parse({"network": {"sizes": [4, 2]}, "data": {"augment": True}, **change})
