"""One example of every kind, by name, with periods where it has a clock; and what they share."""

PERIOD = 0.2
DEVICE = {"dw_min": 0.01, "dw_spread": 0.1, "cycle_noise": 0.3, "w_max_spread": 0.1}
CURVE = {"A_up": -1.2, "A_down": -0.1, "gamma_up": 5.0, "gamma_down": 5.0, "a": -0.5, "b": -0.5}
ONE_WAY = {"kind": "linear_device", "dw_min": 0.01, "w_max": 1.0}

EXAMPLES: dict[str, dict[str, object]] = {
    "white_noise": {"sigma": 0.2},
    "thermal_noise": {"capacitance": 1e-13, "tau": 1.0, "volts_per_unit": 2e-3},
    "shot_noise": {"quantum": 0.01, "tau": 1.0, "bias": 0.2},
    "coloured_noise": {"sigma": 0.3, "tau_c": 0.3},
    "pink_noise": {"sigma": 0.3, "tau_min": 0.1, "tau_max": 10.0, "sources": 4},
    "telegraph_noise": {"amplitude": 0.4, "tau_on": 0.5, "tau_off": 0.3},
    "read_noise": {"sigma": 0.3, "where": "error", "t_sample": PERIOD},
    "array_read_noise": {"sigma": 0.5, "reference": "range", "t_sample": PERIOD},
    "quantized_weights": {"bits": 5, "accumulator": False, "t_write": PERIOD},
    "weight_levels": {"levels": [-1.0, -0.3, 0.05, 0.21, 0.4, 1.0]},
    "conductance_pair": {"levels": 16, "spread": 0.1},
    "quantized_states": {"bits": 8, "range": 2.0, "t_sample": PERIOD},
    "converter": {"where": "rate", "bits": 4, "dither": True, "t_sample": PERIOD},
    "sigma_delta": {"where": "rate", "step": 0.25, "t_sample": PERIOD},
    "send_on_delta": {"where": "rate", "delta": 0.05},
    "mismatch": {"of": "rate_gain", "sigma": 0.2},
    "offset": {"of": "error", "sigma": 0.1, "mean": 0.1},
    "programming_error": {"coefficients": [0.05, 0.1]},
    "conductance_drift": {"nu": 0.3, "nu_spread": 0.05, "t0": 0.2},
    "pcm_drift": {"t0": 0.2, "t_sample": PERIOD},
    "stuck_weights": {"fraction": 0.3, "at": "random"},
    "dead_lines": {"fraction": 0.3, "lines": "column"},
    "dead_neurons": {"fraction": 0.3},
    "ir_drop": {"ratio": 0.02, "columns": 64},
    "output_resistance": {"rho": 0.5},
    "saturation": {"where": "product", "limit": 0.3, "shape": "tanh"},
    "rails": {"limit": 0.4},
    "slew_rate": {"limit": 0.5},
    "leak": {"tau": 2.0, "rest": 0.3},
    "constant_device": {**DEVICE, "t_write": PERIOD},
    "linear_device": {**DEVICE, "write_noise": 3.0, "t_write": PERIOD},
    "exponential_device": {**DEVICE, **CURVE, "t_write": PERIOD},
    "power_device": {**DEVICE, "gamma_up": 0.5, "gamma_down": 1.7, "t_write": PERIOD},
    "pulse_curve_device": {
        **DEVICE,
        "curvature_up": 0.3,
        "curvature_down": 0.8,
        "t_write": PERIOD,
    },
    "update_threshold": {"threshold": 0.03, "t_write": PERIOD},
    "update_accumulator": {"threshold": 0.06},
    "retention": {"lifetime": 40.0, "per": "update", "t_write": PERIOD},
    "write_noise": {"sigma": 0.05, "t_write": PERIOD},
    "pulse_train": {"dw": 0.01, "slots": 15, "t_write": PERIOD},
    "endurance": {"pulses": 30.0, "dw": 0.01, "spread": 0.5},
    "half_select": {"disturb": 0.001, "lines": 20.0, "rest": 0.1, "t_write": PERIOD},
    "learning_multiplier": {
        "offset": 0.05,
        "offset_spread": 0.05,
        "gain_spread": 0.2,
        "dead_zone": 0.1,
        "limit": 0.4,
    },
    "device_pair": {
        "device": {
            "kind": "exponential_device",
            "dw_min": 0.01,
            "w_min": 0.0,
            "cycle_noise": 0.3,
            **CURVE,
        },
        "refresh_at": 0.3,
        "refresh_floor": 0.02,
        "refresh_noise": 0.01,
        "t_write": PERIOD,
    },
    "formula": {
        "site": "error",
        "becomes": "gain*s + depth*tired",
        "constants": {"spread": 0.2, "tau": 0.7, "depth": 0.3},
        "draws": {"g": "normal"},
        "parameters": {"gain": "exp(spread*g)"},
        "memory": {
            "tired": {"start": "0.1*start_xi", "update": "tired + (s - tired)*(1 - exp(-dt/tau))"}
        },
    },
    "device_group": {
        "device": {"kind": "linear_device", "dw_min": 0.01, "dw_spread": 0.2, "cycle_noise": 0.3},
        "significances": [1.0, 0.25],
        "scheme": "residual",
        "rate": 0.3,
        "every": 2,
        "t_write": PERIOD,
    },
    "fast_array": {
        "device": {"kind": "linear_device", "dw_min": 0.01},
        "rate": 0.3,
        "every": 2,
        "t_write": PERIOD,
    },
}
VARIANTS: dict[str, dict[str, object]] = {
    "converter at the input": {
        "kind": "converter",
        "where": "input",
        "bits": 4,
        "t_sample": PERIOD,
    },
    "read noise of weights": {
        "kind": "read_noise",
        "where": "weight",
        "sigma": 0.8,
        "t_sample": PERIOD,
    },
    "read noise per sample": {
        "kind": "read_noise",
        "where": "weight",
        "batch": "independent",
        "sigma": 0.3,
        "t_sample": PERIOD,
    },
    "drift while learning": {"kind": "conductance_drift", "nu": 0.3, "t0": 0.2, "mode": "learning"},
    "lifetime in seconds": {"kind": "retention", "lifetime": 1.5, "lifetime_spread": 0.2},
    "seen write noise": {"kind": "write_noise", "sigma": 0.2, "mode": "seen", "t_write": PERIOD},
    "rounded at random": {
        "kind": "quantized_weights",
        "bits": 5,
        "accumulator": False,
        "rounding": "stochastic",
        "t_write": PERIOD,
    },
    "driven continuously": {"kind": "linear_device", **DEVICE, "drive": "continuous"},
    "bent and driven": {"kind": "exponential_device", **DEVICE, **CURVE, "drive": "continuous"},
}


def fields_of(name: str) -> dict[str, object]:
    """Return kind and fields of an example or variant."""
    return VARIANTS[name] if name in VARIANTS else {"kind": name, **EXAMPLES[name]}
