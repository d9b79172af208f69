"""A language of a few words, small enough to be learnt in seconds, and settings of its size."""

import numpy as np
import torch

from pcsim.experiments.common.language.setting import Method, Setting
from pcsim.experiments.common.language.text import Sentences, Text
from pcsim.kernels.parameters import initial_parameters
from pcsim.network import Network

SUBJECTS = ("The old man", "A young girl", "The minister", "Our neighbour")
VERBS = ("sees", "remembers", "forgets", "paints")
OBJECTS = ("the sea .", "a red house .", "three horses .", "the long war .")
TEXT = Text(source="one_shard", train=120, dev=30, test=30, vocabulary=70, positions=8)


def sentences(count=180, seed=0):
    """Return sentences of three independent parts: half of each follows from its beginning."""
    rng = np.random.default_rng(seed)
    parts = (SUBJECTS, VERBS, OBJECTS)
    return [" ".join(rng.choice(part) for part in parts) for _ in range(count)]


def loaded(text):
    """Stand in for `language_text.load`."""
    lines = sentences(text.train + text.dev + text.test)
    end = text.train + text.dev
    return Sentences(lines[: text.train], lines[text.train : end], lines[end:], "three parts")


def setting(model="masked", **options):
    """Return a study of seconds."""
    methods = (
        Method(name="BP", batch=16, alpha=0.01, layer_norm=True),
        Method(name="PC", batch=8, alpha=0.01, layer_norm=False, T=4, gamma=0.1, discount=0.9),
        Method(name="iPC", batch=8, alpha=0.003, layer_norm=False, T=3, gamma=0.5),
    )
    given = {
        "text": TEXT, "methods": methods, "seeds": (0, 1), "epochs": 3, "check_windows": 32,
        "patience": 50, "blocks": 1, "features": 16, "intermediate": 16,
    }  # fmt: skip
    return Setting(model=model, **(given | options))


def network(**options):
    """Return a transformer for ten positions of twelve tokens."""
    given = {"vocabulary": 12, "positions": 10, "features": 6, "blocks": 2, "intermediate": 8}
    return Network.transformer(**(given | options))


def parameters(of, seed=0):
    """Return the initial weights in double precision."""
    return initial_parameters(of, [seed], torch.float64)


def tokens(windows=5, seed=0, low=1):
    """Return random windows for `network`; token 1, the end of a sentence, is among them."""
    return np.random.default_rng(seed).integers(low, 12, (windows, 11))
