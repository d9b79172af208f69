"""Neuromorphic substrates: word lengths, converters, mismatch and noise of whole chips.

Ranges are in units of the network, so that a person can scale them to a network of their own:
weights ±1, rates ±1, sums of the array ±4.
"""

from __future__ import annotations

from hw_models.converters import Converter
from hw_models.description import Hardware
from hw_models.mismatch import Mismatch
from hw_models.noise import ReadNoise
from hw_models.quantize import QuantizedStates, QuantizedWeights
from hw_models.whole_chip import WholeChip

_SUM = 4.0
_ADC_STEP = _SUM / 127

SUBSTRATES: tuple[Hardware, ...] = (
    Hardware(
        name="brainscales2",
        about="BrainScaleS-2: 5-bit inputs and 6-bit weights (each with sign), 8-bit read-out with "
        "a noise of 2 steps",
        sources=(
            "Weis et al., arXiv:2006.13177 (2020), inference on analog neuromorphic hardware",
            "noise and word lengths as in hxtorch, the software of BrainScaleS-2, and its model",
        ),
        chip=WholeChip(
            tau_x=10e-6,
            time="clocked",
            learning="host in the loop",
            hidden_accumulator=True,
            not_on_chip=("plasticity and exact weights (training in the loop)",),
            assumed=("somas of 10 us, within the 0.5–60 us that can be calibrated",),
        ),
        pieces={
            "inputs": Converter(where="rate", bits=6),
            "weights": QuantizedWeights(bits=7),
            "noise": ReadNoise(where="product", sigma=2 * _ADC_STEP),
            "noise_back": ReadNoise(where="feedback", sigma=2 * _ADC_STEP),
            "readout": Converter(where="product", bits=8, range=_SUM),
            "readout_back": Converter(where="feedback", bits=8, range=_SUM),
        },
    ),
    Hardware(
        name="dynapse2",
        about="DYNAP-SE2: subthreshold analog, 10 % mismatch of every analog parameter, weights of "
        "four binary-weighted currents",
        sources=("mismatch, currents and time constants as in Rockpool (SynSense, 2023)",),
        chip=WholeChip(
            tau_x=20e-3,
            time="continuous",
            learning="host in the loop",
            hidden_accumulator=True,
            not_on_chip=("plasticity and exact weights",),
        ),
        pieces={
            "tau": Mismatch(of="tau_x", sigma=0.1, law="normal"),
            "tau_err": Mismatch(of="tau_err", sigma=0.1, law="normal", optional=True),
            "tau_apical": Mismatch(of="tau_apical", sigma=0.1, law="normal", optional=True),
            "tau_inter": Mismatch(of="tau_inter", sigma=0.1, law="normal", optional=True),
            "rate_gain": Mismatch(of="rate_gain", sigma=0.1, law="normal"),
            "error_gain": Mismatch(of="error_gain", sigma=0.1, law="normal"),
            "weights": QuantizedWeights(bits=5),
            "weight_gain": Mismatch(of="weight_gain", sigma=0.1, law="normal"),
        },
    ),
    Hardware(
        name="loihi",
        about="Loihi fixed point: 8-bit weights with stochastic rounding, 24-bit states, 7-bit "
        "traces",
        sources=("word lengths as in the fixed-point models of Lava (Intel, 2021)",),
        chip=WholeChip(
            tau_x=10e-3,
            time="clocked",
            learning="on chip",
            hidden_accumulator=False,
            not_on_chip=("what is shown, and for how long",),
            assumed=("somas of 10 ms: ten steps of 1 ms",),
        ),
        pieces={
            "weights": QuantizedWeights(bits=8, rounding="stochastic", accumulator=False),
            "states": QuantizedStates(bits=24, range=64.0),
            "traces": Converter(where="rate", bits=8),
        },
    ),
    Hardware(
        name="spinnaker2",
        about="SpiNNaker2 multiply-accumulate array: 8-bit weights and rates, 29-bit sums; "
        "processors beside the array keep exact weights",
        sources=(
            "Höppner et al., arXiv:2103.08392 (2021), the processing element of SpiNNaker2",
            "TU Dresden, description of its accelerator: 8-bit multipliers, 29-bit accumulators",
        ),
        chip=WholeChip(
            tau_x=10e-3,
            time="clocked",
            learning="on chip",
            hidden_accumulator=True,
            not_on_chip=("what is shown, and for how long",),
            assumed=("somas of 10 ms: ten steps of 1 ms",),
        ),
        pieces={
            "weights": QuantizedWeights(bits=8),
            "rates": Converter(where="rate", bits=8),
            "sums": Converter(where="product", bits=29, range=4096.0),
            "sums_back": Converter(where="feedback", bits=29, range=4096.0),
        },
    ),
    Hardware(
        name="photonic",
        about="microring weight bank at its best: 9-bit weights by dithering control",
        sources=("arXiv:2104.01164, silicon microring synapses of up to 9 bit",),
        chip=WholeChip(
            tau_x=1e-9,
            time="continuous",
            learning="host in the loop",
            hidden_accumulator=True,
            not_on_chip=("plasticity and exact weights", "somas: electronic"),
            assumed=("somas of 1 ns",),
        ),
        pieces={"weights": QuantizedWeights(bits=9)},
    ),
    Hardware(
        name="photonic_typical",
        about="microring weight bank without special control: 4-bit weights",
        sources=("arXiv:2104.01164, on the 2–4 bit that are usual",),
        chip=WholeChip(
            tau_x=1e-9,
            time="continuous",
            learning="host in the loop",
            hidden_accumulator=True,
            not_on_chip=("plasticity and exact weights", "somas: electronic"),
            assumed=("somas of 1 ns",),
        ),
        pieces={"weights": QuantizedWeights(bits=4)},
    ),
)
"""Whole chips."""
