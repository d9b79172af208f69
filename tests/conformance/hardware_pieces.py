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
