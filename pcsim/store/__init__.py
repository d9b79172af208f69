"""Results on disk: HDF5 files with named, labelled axes which xarray can open.

Only this package knows about HDF5. A `Result` holds arrays whose axes have names and labels;
`save` writes it in one atomic step, `load` reads it back, and a `StreamWriter` records runs that
are too long to be kept in memory.
"""

from pcsim.store.columns import is_result, read_columns
from pcsim.store.hdf5 import FORMAT_VERSION, UnverifiedWarning, attributes, load, save
from pcsim.store.model import Attr, Result, Variable
from pcsim.store.stream import StreamVariable, StreamWriter

__all__ = [
    "FORMAT_VERSION",
    "Attr",
    "Result",
    "StreamVariable",
    "StreamWriter",
    "UnverifiedWarning",
    "Variable",
    "attributes",
    "is_result",
    "load",
    "read_columns",
    "save",
]
