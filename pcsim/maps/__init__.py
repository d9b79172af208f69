"""Maps: how a node is predicted from its parents. Pure data, no tensors.

A map says *what* is computed; a file of `pcsim.kernels.maps` says how: a prediction and its
vector–Jacobian products. A new layer type is a dataclass in a file here, and that file there; both
are found and not listed.

Units of a node are one flat axis; a map that needs an image (channel, height, width) or a sequence
(position, feature) sees its parent that way, so that no map is needed to flatten.
"""

import re
from dataclasses import is_dataclass
from importlib import import_module
from pkgutil import iter_modules

from pcsim.maps.attention import Mix, Scores
from pcsim.maps.dense import Dense
from pcsim.maps.image import Convolution, Pool
from pcsim.maps.initial import Initial, Predictor
from pcsim.maps.nonlinearities import NONLINEARITIES
from pcsim.maps.prior import Prior
from pcsim.maps.sequence import Embedding, LayerNorm
from pcsim.maps.total import Sum

Map = Predictor | Prior
MAPS: dict[str, type] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower(): kind
    for module in iter_modules(__path__)
    for kind in vars(import_module(f"{__name__}.{module.name}")).values()
    if isinstance(kind, type) and is_dataclass(kind) and hasattr(kind, "initial")
}
"""All maps by the name that a file gives them: every dataclass of this package that has `initial`
parameters."""


__all__ = [
    "MAPS",
    "NONLINEARITIES",
    "Convolution",
    "Dense",
    "Embedding",
    "Initial",
    "LayerNorm",
    "Map",
    "Mix",
    "Pool",
    "Prior",
    "Scores",
    "Sum",
]
