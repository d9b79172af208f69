"""Ten devices that weights can be trained on, with the parameters published for them.

Device units: bounds near ±1 (phase-change memory 0 … 2 on each side of a pair). Cycle-to-cycle
noise and write noise are in units of the step and of dw_min, hence may be large where steps are
small. Numbers of the open-source toolkit aihwkit, which fitted them to the measurements cited.
"""

from __future__ import annotations

from hw_models.description import Hardware
from hw_models.faults import StuckWeights
from hw_models.plasticity import ConstantDevice, ExponentialDevice, LinearDevice
from hw_models.plasticity_arrays import DevicePair
from hw_models.plasticity_rules import Retention

_VIA = "parameters as in the presets of IBM's aihwkit (Rasch et al., AICAS 2021)"
_GONG = "Gong et al., Nature Communications 9, 2102 (2018), doi:10.1038/s41467-018-04485-1"
_IEDM = "Gong, Rasch et al., IEDM 2022, deep learning acceleration in analog RRAM arrays"

_PCM = Hardware(
    name="pcm",
    about="phase-change memory: pairs of one-way devices with refresh, noisy exponential steps",
    sources=("Nandakumar et al., Frontiers in Neuroscience 14, 406 (2020)", _VIA),
    pieces={
        "device": DevicePair(
            device=ExponentialDevice(
                dw_min=0.01,
                dw_spread=0.2,
                imbalance_spread=0.05,
                w_max=2.0,
                w_max_spread=0.1,
                w_min=0.0,
                A_up=-27.235,
                A_down=-2.235,
                gamma_up=2.5,
                gamma_down=2.5,
                a=-1.0,
                b=0.0,
                cycle_noise=0.6,
                cycle_add=0.042,
                cycle_slope=0.108,
            ),
            refresh_at=0.75,
            refresh_noise=0.01,
            refresh_read=0.1,
            refresh_step=0.03235,
        )
    },
)

_RERAM_ES = Hardware(
    name="reram_es",
    about="resistive memory, exponential steps: accurate fit with strong asymmetry and noise",
    sources=(_GONG, _VIA),
    pieces={
        "device": ExponentialDevice(
            dw_min=0.00135,
            dw_spread=0.2,
            imbalance=0.259359,
            imbalance_spread=0.05,
            w_max_spread=0.3,
            w_min_spread=0.3,
            A_up=-1.18445,
            A_down=-0.081404,
            gamma_up=5.0,
            gamma_down=5.0,
            a=-0.5,
            b=-0.5,
            cycle_noise=5.0,
            write_noise=75.0,
        )
    },
)

_RERAM_SB = Hardware(
    name="reram_sb",
    about="resistive memory, soft bounds, range shifted so that the symmetry point reads as zero",
    sources=(_GONG + " (loose fit)", _VIA),
    pieces={
        "device": LinearDevice(
            dw_min=0.002,
            dw_spread=0.3,
            imbalance_spread=0.01,
            w_max=1.25,
            w_max_spread=0.3 / 1.25,
            w_min=-0.75,
            w_min_spread=0.3 / 0.75,
            cycle_noise=3.75,
            cycle_reference="dw_min",
            write_noise=56.0,
        )
    },
)

_RERAM_OM = Hardware(
    name="reram_om",
    about="array of resistive memory, optimised material: soft bounds, symmetry point subtracted",
    sources=(
        _IEDM,
        _VIA + "; the 13.5 % of its devices that are corrupt are "
        "left out here: corrupt.fraction = 0.135 has them",
    ),
    pieces={
        "device": LinearDevice(
            dw_min=0.0949,
            dw_spread=0.7829,
            dw_law="lognormal",
            imbalance_spread=0.01,
            w_max_spread=0.3499,
            w_min_spread=0.5695,
            cycle_noise=0.4158,
            cycle_reference="dw_min",
            write_noise=1.4113,
            reference="symmetry",
            reference_spread=0.05,
        ),
        "corrupt": StuckWeights(fraction=0.0, at="random", range=0.01),
    },
)

_RERAM_HFO2 = Hardware(
    name="reram_hfo2",
    about="array of resistive memory, baseline HfO2: soft bounds, symmetry point subtracted",
    sources=(
        _IEDM,
        _VIA + "; the 9.8 % of its devices that are corrupt are "
        "left out here: corrupt.fraction = 0.098 has them",
    ),
    pieces={
        "device": LinearDevice(
            dw_min=0.4622,
            dw_spread=0.7125,
            dw_law="lognormal",
            imbalance_spread=0.01,
            w_max_spread=0.4295,
            w_min_spread=0.5990,
            cycle_noise=0.2174,
            cycle_reference="dw_min",
            write_noise=0.5841,
            reference="symmetry",
            reference_spread=0.05,
        ),
        "corrupt": StuckWeights(fraction=0.0, at="random", range=0.01),
    },
)

_ECRAM_LI = Hardware(
    name="ecram_li",
    about="electrochemical memory, lithium: nearly linear, range shifted to the symmetry point",
    sources=("Tang et al., IEDM 2018, ECRAM as scalable synaptic cell", _VIA),
    pieces={
        "device": LinearDevice(
            dw_min=0.002,
            dw_spread=0.1,
            imbalance_spread=0.01,
            w_max=1.1724,
            w_max_spread=0.05,
            w_min=-0.8276,
            w_min_spread=0.05,
            gamma_up=0.1153,
            gamma_down=0.5085,
            gamma_spread=0.05,
            slope_at="nominal",
            cycle_noise=0.3,
        )
    },
)

_ECRAM_MO = Hardware(
    name="ecram_mo",
    about="electrochemical memory, metal oxide: many small noisy steps",
    sources=("Kim et al., IEDM 2019, metal-oxide based, CMOS-compatible ECRAM", _VIA),
    pieces={
        "device": LinearDevice(
            dw_min=2.8214e-4,
            dw_spread=0.1,
            imbalance_spread=0.01,
            w_max=1.1714,
            w_max_spread=0.05,
            w_min=-0.8286,
            w_min_spread=0.05,
            gamma_up=0.4152,
            gamma_down=0.7342,
            gamma_spread=0.05,
            slope_at="nominal",
            cycle_noise=2.0,
        )
    },
)

_CAPACITOR = Hardware(
    name="cmos_capacitor",
    about="capacitor cell in CMOS: nearly linear and symmetric, leaks",
    sources=("Li et al., Symposium on VLSI Technology 2018, capacitor-based cross-point", _VIA),
    pieces={
        "device": LinearDevice(
            dw_min=0.005,
            dw_spread=0.1,
            imbalance_spread=0.06,
            w_max_spread=0.07,
            w_min_spread=0.07,
            gamma_up=0.05,
            gamma_down=0.05,
            gamma_spread=0.01,
            slope_at="nominal",
            cycle_noise=0.3,
            cycle_reference="dw_min",
        ),
        "leak": Retention(lifetime=1e6, per="update", lifetime_spread=0.3),
    },
)

_IDEALIZED = Hardware(
    name="idealized",
    about="symmetric device of 10,000 steps with device-to-device spread",
    sources=("Rasch, Gokmen and Haensch, IEEE Design & Test 2019, arXiv:1906.02698", _VIA),
    pieces={
        "device": ConstantDevice(
            dw_min=0.0002, dw_spread=0.3, w_max_spread=0.3, w_min_spread=0.3, cycle_noise=0.3
        )
    },
)

_GOKMEN_VLASOV = Hardware(
    name="gokmen_vlasov",
    about="the device specification of the resistive processing unit: 1,200 steps",
    sources=("Gokmen and Vlasov, Frontiers in Neuroscience 10, 333 (2016)", _VIA),
    pieces={
        "device": ConstantDevice(
            dw_min=0.0016,
            dw_spread=0.3,
            imbalance_spread=0.01,
            w_max_spread=0.3,
            w_min_spread=0.3,
            cycle_noise=0.3,
        )
    },
)

TRAINING: tuple[Hardware, ...] = (
    _PCM,
    _RERAM_ES,
    _RERAM_SB,
    _RERAM_OM,
    _RERAM_HFO2,
    _ECRAM_LI,
    _ECRAM_MO,
    _CAPACITOR,
    _IDEALIZED,
    _GOKMEN_VLASOV,
)
"""Devices that take the weight updates themselves."""
