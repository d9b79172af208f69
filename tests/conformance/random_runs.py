"""Configurations at random: circuit × transport × stream × energies × hardware, as data.

A number gives one configuration of a small run on digits, the same for ever.
"""

import numpy as np

FUNCTIONS = ("identity", "tanh", "sigmoid", "relu", "leaky_relu")
TRANSPORTS = ("shared", "shared", "random", "sign", "kolen_pollack")


def spread(of, sigma=0.2):
    return {"kind": "mismatch", "of": of, "sigma": sigma}


def offset(of, sigma=0.1):
    return {"kind": "offset", "of": of, "sigma": sigma}


DEVICE = {"kind": "linear_device", "dw_min": 0.01, "w_max": 1.5, "w_min": -1.5, "dw_spread": 0.2}
PIECES = {
    "bits": {"kind": "quantized_weights", "bits": 6, "range": 1.7},
    "levels": {"kind": "converter", "where": "rate", "bits": 6, "offset_error": 0.3},
    "events": {"kind": "send_on_delta", "where": "feedback", "delta": 0.02},
    "modulated": {"kind": "sigma_delta", "where": "error", "step": 0.05},
    "dac": {"kind": "converter", "where": "input", "bits": 5, "gain_error": 0.1},
    "adc": {"kind": "converter", "where": "output", "bits": 7},
    "stuck": {"kind": "stuck_weights", "fraction": 0.1, "at": "high"},
    "dead": {"kind": "dead_lines", "fraction": 0.1},
    "wires": {"kind": "ir_drop", "ratio": 1e-3},
    "clipped": {"kind": "saturation", "where": "rate", "limit": 0.8},
    "slew": {"kind": "slew_rate", "limit": 0.5},
    "rails": {"kind": "rails", "limit": 0.9},
    "slow": spread("tau_x"),
    "gains": spread("rate_gain", 0.1),
    "synapses": spread("weight_gain", 0.1),
    "lines": offset("product"),
    "errors": offset("error"),
    "returns": offset("feedback"),
    "thresholds": offset("threshold"),
    "currents": offset("velocity", 0.05),
    "device": DEVICE,
    "white": {"kind": "white_noise", "sigma": 0.1, "where": "velocity"},
    "coloured": {"kind": "coloured_noise", "sigma": 0.05, "tau_c": 0.5, "where": "membrane"},
    "jumps": {"kind": "telegraph_noise", "amplitude": 0.1, "tau_on": 0.7, "tau_off": 1.1},
    "reads": {"kind": "read_noise", "where": "error", "sigma": 0.1},
    "weights": {"kind": "read_noise", "where": "weight", "sigma": 0.1},
    "array": {"kind": "array_read_noise", "sigma": 0.05},
    "cycles": DEVICE | {"cycle_noise": 0.3},
}
BY_KIND = {
    "algebraic": {"synapse_times": spread("tau_w")},
    "error_units": {"synapse_times": spread("tau_w"), "error_times": spread("tau_err")},
    "dendritic": {"basal": spread("g_basal"), "apical": spread("g_apical")},
}


class Dice:
    """Choices that one number decides."""

    def __init__(self, number):
        self.rng = np.random.default_rng([number, 77])

    def one(self, *values):
        return values[int(self.rng.integers(len(values)))]

    def often(self, share):
        return bool(self.rng.random() < share)

    def whole(self, low, high):
        """Return a whole number from low to high."""
        return int(self.rng.integers(low, high + 1))


def configuration(number, backend):
    """Return sections for `config.parse`."""
    dice = Dice(number)
    kind = dice.one("algebraic", "algebraic", "error_units", "dendritic", "dendritic", "sacramento")
    plain = kind in ("algebraic", "error_units")
    supervised = kind == "sacramento" or dice.often(0.75)
    gamma = dice.one(0.1, 0.2, 0.25)
    circuit = {"kind": kind, "tau_x": dice.one(1.0, 0.5), "weight_decay": dice.one(0.0, 0.0, 0.05)}
    dt = gamma * circuit["tau_x"]
    circuit |= {} if kind == "sacramento" else {"transport": dice.one(*TRANSPORTS)}
    circuit |= _errors(dice, kind, dt) if plain else _dendrites(dice, kind)
    sections = {
        "network": _network(dice, kind, supervised, circuit),
        "circuit": circuit,
        "schedule": {
            "T": dice.whole(1, 5),
            "gamma": gamma,
            "init": dice.one("carry", "ff", "zero"),
        },
        "learning": {
            "alpha": dice.one(2e-3, 1e-2),
            "batch": 1,
            "epochs": dice.whole(1, 2),
            "reduction": dice.one("sum", "mean"),
        },
        "data": {"name": "digits", "limit": 5, "limit_test": 8},
        "run": {"backend": backend, "dtype": "float64", "seeds": [1, 0][: dice.whole(1, 2)]},
        "record": {"every": dice.whole(1, 3)},
    }
    if supervised:
        settle, label = dice.one(0.0, 0.0, 2 * dt), dice.one(0.0, 0.0, 0.3)
        sections["stream"] = {"t_settle": settle, "tau_label": label}
    else:
        sections["data"]["mode"] = "generative"
    if plain and dice.often(0.2):
        sections["grid"] = dice.one({"gamma": [gamma, gamma / 2]}, {"alpha": [1e-3, 5e-3]})
    if kind != "sacramento" and dice.often(0.6):
        sections["hardware"] = _hardware(dice, kind, circuit["transport"])
    return sections


def _network(dice, kind, supervised, circuit):
    hidden = [dice.whole(1, 4) for _ in range(dice.whole(int(kind == "sacramento"), 2))]
    sizes = [64, *hidden, 10] if supervised else [dice.whole(2, 4), *hidden, 64]
    found = {"sizes": sizes, "f": dice.one(*FUNCTIONS), "bias": dice.often(0.5)}
    if kind == "sacramento":
        found["bias"] = False
    if kind not in ("algebraic", "error_units"):
        return found | {"f_input": dice.often(0.25)}
    post = dice.often(0.3)
    found |= {"convention": "post", "f_output": dice.often(0.5)} if post else {}
    found["hidden"] = {"kind": "gaussian", "variance": dice.one(1.0, 1.4)}
    computed = kind == "algebraic" and "delay_err" not in circuit
    energy = dice.one("unit", "variance", "labels", "labels", "learned")
    if energy == "variance":
        found["output"] = {"kind": "gaussian", "variance": 0.7}
    if energy == "labels" and computed and supervised:
        found |= {"output": {"kind": "categorical"}, "f_output": False}
    if energy == "learned" and computed:
        found["hidden"] |= {"learned": True}
    found |= {"prior": dice.one(None, 0.1)} if not supervised else {}
    return found


def _errors(dice, kind, dt):
    found = {"tau_err": 0.6, "look_err": dice.one(0.0, 0.2)} if kind == "error_units" else {}
    late = dice.one({}, {}, {"delay_err": 2 * dt}, {"delay_fb": dt}, {"look_soma": 0.2})
    return found | (late if kind == "algebraic" or "look_soma" not in late else {})


def _dendrites(dice, kind):
    taught = dice.one(0.3, 0.6) if kind == "sacramento" else dice.one(0.0, 0.4)
    conductances = {name: float(dice.rng.uniform(0.5, 1.5)) for name in ("g_B", "g_A", "g_D")}
    conductances |= {"g_lk": dice.one(0.0, 0.2), "g_som": taught}
    found = {"conductances": conductances, "tau_inter": dice.one(0.0, 0.6)}
    if kind == "sacramento":
        rates = {"eta_inter": (0.0, 1.0), "eta_apical": (0.0, 0.5), "eta_down": (0.0, 0.3)}
        found |= {name: dice.one(*values) for name, values in rates.items()}
        return found | {"self_predicting": dice.often(0.5)}
    found |= {"tau_apical": dice.one(0.0, 0.6), "inter_learned": dice.often(0.7)}
    found |= {"inhibition": dice.one(1.0, 0.9), "inter_rate": dice.one(1.0, 0.5)}
    found["look_inter"] = dice.one(0.0, 0.2) if found["tau_inter"] else 0.0
    found["look_apical"] = dice.one(0.0, 0.2) if found["tau_apical"] else 0.0
    return found


def _hardware(dice, kind, transport):
    pool = PIECES | BY_KIND[kind]
    if transport == "kolen_pollack":  # Brian2 has no devices for what a clamped input would hear
        pool = {name: piece for name, piece in pool.items() if piece["kind"] != "linear_device"}
    chosen = dice.rng.choice(sorted(pool), size=dice.whole(1, 3), replace=False)
    if {"device", "cycles"} <= set(chosen):
        chosen = [name for name in chosen if name != "cycles"]
    pieces = {str(name): pool[name] for name in chosen}
    return {"chips": dice.whole(1, 2), "seed": 3, "pieces": pieces}
