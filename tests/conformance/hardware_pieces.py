"""Hardware of the cases, by names; no rounding or comparison in them meets a tie."""

from hw_models import describe
from pcsim.substrate import Substrate


def spread(of, sigma):
    return {"kind": "mismatch", "of": of, "sigma": sigma}


PIECES = {
    "few levels": {
        "few_levels": {"kind": "converter", "where": "rate", "bits": 6, "offset_error": 0.3},
        "bits": {"kind": "quantized_weights", "bits": 6, "range": 1.7},
        "events": {"kind": "send_on_delta", "where": "feedback", "delta": 0.02},
        "modulated": {"kind": "sigma_delta", "where": "error", "step": 0.05},
        "dac": {"kind": "converter", "where": "input", "bits": 6, "range": 3.0, "gain_error": 0.1},
    },
    "levels, no error units": {
        "few_levels": {"kind": "converter", "where": "rate", "bits": 6, "offset_error": 0.3},
        "bits": {"kind": "quantized_weights", "bits": 6, "range": 1.7},
        "events": {"kind": "send_on_delta", "where": "feedback", "delta": 0.02},
    },
    "faults": {
        "stuck": {"kind": "stuck_weights", "fraction": 0.1, "at": "high"},
        "dead": {"kind": "dead_lines", "fraction": 0.1},
        "wires": {"kind": "ir_drop", "ratio": 1e-3},
    },
    "noise": {
        "white": {"kind": "white_noise", "sigma": 0.1, "where": "velocity"},
        "coloured": {"kind": "coloured_noise", "sigma": 0.05, "tau_c": 0.5, "where": "membrane"},
        "jumps": {"kind": "telegraph_noise", "amplitude": 0.1, "tau_on": 0.7, "tau_off": 1.1},
        "reads": {"kind": "array_read_noise", "sigma": 0.05},
    },
    "mismatch": {
        "slow": spread("tau_x", 0.2),
        "gains": spread("rate_gain", 0.1),
        "synapses": spread("weight_gain", 0.1),
        "offsets": {"kind": "offset", "of": "product", "sigma": 0.1},
    },
    "pulsed writes": {
        "device": {
            "kind": "linear_device",
            "dw_min": 0.01,
            "dw_spread": 0.2,
            "w_max": 1.5,
            "w_min": -1.5,
            "cycle_noise": 0.3,
        },
    },
    "slow synapses": {"slow_synapses": spread("tau_w", 0.3)},
}


def hardware(*names) -> Substrate:
    """Return the substrate of these pieces."""
    return describe("ideal", {k: p for name in names for k, p in PIECES[name].items()}).substrate()


DEVICE = {"dw_min": 0.01, "dw_spread": 0.1, "cycle_noise": 0.3, "w_max_spread": 0.1}
WIDE = {**DEVICE, "w_max": 2.1, "w_min": -2.2}
CURVE = {"A_up": -1.2, "A_down": -0.1, "gamma_up": 5.0, "gamma_down": 5.0, "a": -0.5, "b": -0.5}
KINDS = {
    "white_noise": {"sigma": 0.1},
    "thermal_noise": {"capacitance": 1e-13, "tau": 1.0, "volts_per_unit": 2e-3},
    "shot_noise": {"quantum": 0.01, "tau": 1.0, "bias": 0.2},
    "coloured_noise": {"sigma": 0.1, "tau_c": 0.5},
    "pink_noise": {"sigma": 0.1, "tau_min": 0.1, "tau_max": 10.0, "sources": 3},
    "telegraph_noise": {"amplitude": 0.1, "tau_on": 0.7, "tau_off": 1.1},
    "read_noise": {"sigma": 0.1, "where": "error", "t_sample": 0.37},
    "array_read_noise": {"sigma": 0.05, "t_sample": 0.37},
    "quantized_weights": {"bits": 7, "range": 2.3, "accumulator": False, "t_write": 0.37},
    "weight_levels": {"levels": [-1.03, -0.31, 0.052, 0.213, 0.417, 1.09]},
    "conductance_pair": {"levels": 16, "spread": 0.1, "range": 1.7},
    "quantized_states": {"bits": 9, "range": 4.1, "t_sample": 0.37},
    "converter": {"where": "rate", "bits": 6, "offset_error": 0.3, "t_sample": 0.37},
    "sigma_delta": {"where": "error", "step": 0.053, "t_sample": 0.37},
    "send_on_delta": {"where": "feedback", "delta": 0.021},
    "mismatch": {"of": "weight_gain", "sigma": 0.1},
    "offset": {"of": "product", "sigma": 0.1, "mean": 0.03},
    "programming_error": {"coefficients": [0.05, 0.1]},
    "conductance_drift": {"nu": 0.3, "nu_spread": 0.05, "t0": 0.2, "mode": "learning"},
    "pcm_drift": {"t0": 0.2, "range": 1.7, "t_sample": 0.37},
    "stuck_weights": {"fraction": 0.3, "at": "random"},
    "dead_lines": {"fraction": 0.3, "lines": "column"},
    "dead_neurons": {"fraction": 0.3},
    "ir_drop": {"ratio": 1e-3},
    "output_resistance": {"rho": 0.1},
    "saturation": {"where": "product", "limit": 0.7, "shape": "tanh"},
    "rails": {"limit": 0.31},
    "slew_rate": {"limit": 0.23},
    "leak": {"tau": 2.0, "rest": 0.3},
    "constant_device": WIDE,
    "linear_device": {**WIDE, "write_noise": 3.0},
    "exponential_device": {**WIDE, **CURVE},
    "power_device": {**WIDE, "gamma_up": 0.5, "gamma_down": 1.7},
    "pulse_curve_device": {**WIDE, "curvature_up": 0.3, "curvature_down": 0.8},
    "update_threshold": {"threshold": 0.0031, "t_write": 0.37},
    "update_accumulator": {"threshold": 0.0053},
    "retention": {"lifetime": 40.0, "per": "update", "t_write": 0.37},
    "write_noise": {"sigma": 0.01, "mode": "seen", "t_write": 0.37},
    "pulse_train": {"dw": 0.01, "slots": 7},
    "endurance": {"pulses": 30.0, "dw": 0.01, "spread": 0.5},
    "half_select": {"disturb": 0.001, "lines": 20.0, "rest": 0.1, "t_write": 0.37},
    "learning_multiplier": {
        "offset": 0.01,
        "offset_spread": 0.03,
        "gain_spread": 0.1,
        "dead_zone": 0.0107,
        "limit": 0.41,
        "leak": 0.3,
        "rest": 0.2,
        "chop": 0.73,
        "per": "row",
    },
    "device_pair": {
        "device": {
            "kind": "exponential_device",
            "dw_min": 0.01,
            "w_min": 0.0,
            "w_max": 2.1,
            "cycle_noise": 0.3,
            **CURVE,
        },
        "refresh_at": 0.4,
        "refresh_floor": 0.01,
        "refresh_noise": 0.01,
        "refresh_read": 0.02,
        "refresh_step": 0.03,
    },
    "formula": {
        "site": "error",
        "becomes": "gain*s + depth*tired + sigma*xi",
        "constants": {"sigma": 0.03, "spread": 0.2, "tau": 0.7, "depth": 0.3},
        "draws": {"g": "normal"},
        "parameters": {"gain": "exp(spread*g)"},
        "noise": {"xi": "normal"},
        "memory": {
            "tired": {"start": "0.1*start_xi", "update": "tired + (s - tired)*(1 - exp(-dt/tau))"}
        },
    },
    "device_group": {
        "device": {"kind": "linear_device", "dw_min": 0.01, "dw_spread": 0.2, "cycle_noise": 0.3},
        "significances": [1.0, 0.25],
        "scheme": "carry",
        "every": 3,
    },
    "fast_array": {
        "device": {"kind": "linear_device", "dw_min": 0.01},
        "rate": 0.3,
        "every": 2,
        "in_turn": True,
    },
}
"""One example of every kind, with a clock where it has one; periods are no multiple of the step."""


def of_kind(kind) -> Substrate:
    """Return hardware with the example of one kind."""
    return describe("ideal", {"piece": {"kind": kind, **KINDS[kind]}}).substrate()
