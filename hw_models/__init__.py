"""Models of real hardware: each non-ideality is a small description that lowers to effects.

A piece (`pieces.Piece`) is data with units; `effects` says what it does, at which site, as an
equation that every backend executes. A hardware description is an ordered set of named pieces:

    Hardware(pieces={"adc": Converter(where="product", bits=8)})
"""

from typing import TYPE_CHECKING

from hw_models.all_numbers import quantities
from hw_models.array import IrDrop, Leak, OutputResistance, Rails, Saturation, SlewRate
from hw_models.converters import Converter, SendOnDelta, SigmaDelta
from hw_models.counted import with_counters
from hw_models.deployment import DeployedParts, deployed_parts
from hw_models.description import (
    Hardware,
    describe,
    fields_of,
    known_presets,
    made_of,
    preset,
)
from hw_models.drift import ConductanceDrift, PcmDrift, ProgrammingError
from hw_models.faults import DeadLines, DeadNeurons, StuckWeights
from hw_models.formula import Formula
from hw_models.mismatch import Mismatch, Offset
from hw_models.noise import (
    ArrayReadNoise,
    ColouredNoise,
    PinkNoise,
    ReadNoise,
    ShotNoise,
    TelegraphNoise,
    ThermalNoise,
    WhiteNoise,
)
from hw_models.order import OrderWarning, warn_of_order
from hw_models.pieces import PIECES, Piece
from hw_models.plasticity import (
    ConstantDevice,
    ExponentialDevice,
    LinearDevice,
    PowerDevice,
    PulseCurveDevice,
)
from hw_models.plasticity_arrays import DevicePair, FastArray
from hw_models.plasticity_group import DeviceGroup
from hw_models.plasticity_multiplier import LearningMultiplier
from hw_models.plasticity_rules import (
    PulseTrain,
    Retention,
    UpdateAccumulator,
    UpdateThreshold,
    WriteNoise,
)
from hw_models.plasticity_wear import Endurance, HalfSelect
from hw_models.printed import chip_numbers
from hw_models.quantize import ConductancePair, QuantizedStates, QuantizedWeights, WeightLevels
from hw_models.remedies import applicable
from hw_models.whole_chip import WholeChip, standing

__all__ = [
    "PIECES",
    "ArrayReadNoise",
    "ColouredNoise",
    "ConductanceDrift",
    "ConductancePair",
    "ConstantDevice",
    "Converter",
    "DeadLines",
    "DeadNeurons",
    "DeployedParts",
    "DeviceGroup",
    "DevicePair",
    "Endurance",
    "ExponentialDevice",
    "FastArray",
    "Formula",
    "HalfSelect",
    "Hardware",
    "IrDrop",
    "Leak",
    "LearningMultiplier",
    "LinearDevice",
    "Mismatch",
    "Offset",
    "OrderWarning",
    "OutputResistance",
    "PcmDrift",
    "Piece",
    "PinkNoise",
    "PowerDevice",
    "ProgrammingError",
    "PulseCurveDevice",
    "PulseTrain",
    "QuantizedStates",
    "QuantizedWeights",
    "Rails",
    "ReadNoise",
    "Retention",
    "Saturation",
    "SendOnDelta",
    "ShotNoise",
    "SigmaDelta",
    "SlewRate",
    "StuckWeights",
    "TelegraphNoise",
    "ThermalNoise",
    "UpdateAccumulator",
    "UpdateThreshold",
    "WeightLevels",
    "WhiteNoise",
    "WholeChip",
    "WriteNoise",
    "applicable",
    "chip_numbers",
    "deployed_parts",
    "describe",
    "fields_of",
    "known_presets",
    "made_of",
    "preset",
    "quantities",
    "standing",
    "warn_of_order",
    "with_counters",
]
if not TYPE_CHECKING:  # kinds that are not named above: a new one is one file
    globals().update({piece.__name__: piece for piece in PIECES.values()})
    __all__ = sorted({*__all__, *(piece.__name__ for piece in PIECES.values())})
