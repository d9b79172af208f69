"""A small set of coloured pictures that stands in for CIFAR-10: digits in colours, 16×16."""

import numpy as np

from pcsim import datasets

TINTS = np.array([[0.9, 0.5, 0.2], [0.2, 0.6, 0.9], [0.4, 0.9, 0.5]], np.float32)


def coloured(images):
    large = images.repeat(2, -2).repeat(2, -1)  # (picture, 1, 16, 16)
    tint = TINTS[np.arange(len(images)) % len(TINTS)]
    return (0.1 + 0.8 * large * tint[:, :, None, None]).astype(np.float32)


def pictures():
    """Return the data set."""
    digits = datasets.load("digits")
    return datasets.Dataset(
        "cifar10",
        coloured(digits.x_train.reshape(-1, 1, 8, 8)),
        digits.y_train,
        coloured(digits.x_test.reshape(-1, 1, 8, 8)),
        digits.y_test,
        10,
        {"digits": "in colours"},
        (3, 16, 16),
    )
