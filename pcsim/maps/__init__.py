"""Maps: how a node is predicted from its parents. Pure data, no tensors.

A map says *what* is computed; `pcsim.kernels` holds one implementation per map type, each with a
prediction and its vector–Jacobian products. A new layer type is a new dataclass here, a kernel in
`pcsim.kernels.map_kernel` and a line in `pcsim.kernels.feedforward`.

Units of a node are one flat axis; a map that needs an image (channel, height, width) or a sequence
(position, feature) sees its parent that way, so that no map is needed to flatten.
"""

from pcsim.maps.attention import Mix, Scores
from pcsim.maps.dense import Dense
from pcsim.maps.image import Convolution, Pool
from pcsim.maps.initial import Initial
from pcsim.maps.nonlinearities import NONLINEARITIES
from pcsim.maps.prior import Prior
from pcsim.maps.sequence import Embedding, LayerNorm
from pcsim.maps.total import Sum

Map = Dense | Convolution | Pool | Embedding | LayerNorm | Scores | Mix | Sum | Prior

__all__ = [
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
