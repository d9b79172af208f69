"""Where a field has a meaning: one table, so that no field that was set is ever ignored.

Each entry says what a field needs of the rest of the configuration, in words and as a test. A field
that was set where it has no meaning is refused by name. A field whose default says "none of it"
(`off`: a noise of 0, a delay of 0, `algebraic`) may be set to that anywhere, because it is true
there. Fields that are not in the table have a meaning in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from pcsim.circuit import BELONGS, foreign

if TYPE_CHECKING:
    from pcsim.config import Config

Test = Callable[["Config"], bool]


class LeftOutWarning(UserWarning):
    """A field of a file lost its meaning by a change of another one, and is left out."""


@dataclass(frozen=True)
class Need:
    """What a field needs, in words that follow 'needs', and as a test."""

    words: str
    holds: Test


def _in_time(config: Config) -> bool:
    return config.run.backend != "discrete"


def _on_hardware(config: Config) -> bool:
    return not config.hardware.ideal or bool(config.grid.hardware or config.grid.trials)


def _hidden(config: Config) -> bool:
    return getattr(config.network, "sizes", (0, 0, 0))[2:] != ()


def _free_root(config: Config) -> bool:
    return config.data.mode == "generative" and config.schedule.init != "zero"


def _decays(config: Config) -> bool:
    given = (config.learning.weight_decay, config.circuit.weight_decay, *config.grid.weight_decay)
    return any(given)


def _feedback_drawn(config: Config) -> bool:
    circuit = config.circuit
    return circuit.transport in ("random", "kolen_pollack") or circuit.kind == "sacramento"


def _noisy(config: Config) -> bool:
    return _on_hardware(config) or config.circuit.sigma_x > 0


def _nonlinear(config: Config) -> bool:
    network = config.network
    return _hidden(config) or getattr(network, "f_input", False) or getattr(network, "f_output", 0)


OWN_DATA = (".npz", ".csv", "arrays")
IN_TIME = Need("run.backend 'continuous' or 'brian'", _in_time)
DISCRETE = Need("run.backend 'discrete'", lambda c: not _in_time(c))
BRIAN = Need("run.backend 'brian'", lambda c: c.run.backend == "brian")
SPICE = Need("run.engine 'spice'", lambda c: c.run.engine == "spice")
STANDALONE = Need("brian.target 'standalone'", lambda c: c.brian.target == "standalone")
HARDWARE = Need("hardware that is not ideal", _on_hardware)
SUPERVISED = Need("data.mode 'supervised'", lambda c: c.data.mode == "supervised")
AUTOMATIC = Need("run.automatic = true", lambda c: c.run.automatic)
SWITCHED = Need("run.automatic = false", lambda c: not c.run.automatic)
TRAJECTORIES = Need("record.trajectories = true", lambda c: c.record.trajectories)
ADAM = Need(
    "learning.optimizer 'adam' or 'adamw'", lambda c: c.learning.optimizer in ("adam", "adamw")
)
STEPS = Need(
    "schedule.rule 'ipc', 'pc' or 'zil', or hardware on which time passes",
    lambda c: c.schedule.rule != "bp" or _on_hardware(c),
)
STATES = Need(
    "states that move (schedule.rule 'ipc', 'pc' or 'zil', and a hidden layer)",
    lambda c: _has_states(c),
)
TIMED = Need(
    "states that move (schedule.rule 'ipc', 'pc' or 'zil', and a hidden layer), or time that "
    "passes (another backend, or hardware that is not ideal)",
    lambda c: _has_states(c) or _in_time(c) or _on_hardware(c),
)
SHARED_TIME = Need(
    "run.backend 'continuous' or 'brian', or hardware on which time passes",
    lambda c: _in_time(c) or _on_hardware(c),
)
NETWORKS: Mapping[str, tuple[Need, ...]] = {
    "f": (Need("a hidden layer, network.f_input or network.f_output", _nonlinear),),
    "convention": (
        Need(
            "states that move, or network.f_output (elsewhere both conventions are one function)",
            lambda c: _has_states(c) or getattr(c.network, "f_output", False),
        ),
    ),
    "prior": (
        Need("data.mode 'generative' (a clamped input has no prior)", lambda c: not _supervised(c)),
    ),
    "pool_size": (
        Need("network.pool other than 'none'", lambda c: getattr(c.network, "pool", "") != "none"),
    ),
    "hidden": (STATES,),
}


def _has_states(config: Config) -> bool:
    free = _hidden(config) or config.data.mode != "supervised"
    return config.schedule.rule != "bp" and free


def _supervised(config: Config) -> bool:
    return config.data.mode == "supervised"


def _gaussian(part: str) -> Need:
    return Need(
        f"network.{part}.kind 'gaussian'",
        lambda c: getattr(getattr(c.network, part), "kind", "gaussian") == "gaussian",
    )


def _learned(part: str) -> Need:
    return Need(f"network.{part}.learned = true", lambda c: bool(getattr(c.network, part).learned))


def _energy(part: str, *more: Need) -> dict[str, tuple[Need, ...]]:
    return {
        f"network.{part}.variance": (*more, _gaussian(part)),
        f"network.{part}.learned": (*more, _gaussian(part)),
        f"network.{part}.floor": (*more, _gaussian(part), _learned(part)),
    }


NEEDS: dict[str, tuple[Need, ...]] = {
    **{f"network.{name}": needs for name, needs in NETWORKS.items()},
    **_energy("output"),
    **_energy("hidden", STATES),
    **_energy("scores"),
    "schedule.T": (
        SWITCHED,
        STEPS,
        Need("a rule other than 'zil', which takes T = depth", lambda c: c.schedule.rule != "zil"),
        Need("no stream.t_pres, which says the same", lambda c: c.stream.t_pres is None),
    ),
    "schedule.gamma": (
        TIMED,
        Need(
            "no solver.dt, which says the same (γ = solver.dt/circuit.tau_x)",
            lambda c: not _in_time(c) or c.solver.dt is None,
        ),
        Need(
            "no grid.gamma, which takes its place",
            lambda c: _in_time(c) or _on_hardware(c) or not c.grid.gamma,
        ),
    ),
    "schedule.init": (STATES,),
    "schedule.init_sd": (
        Need(
            "schedule.init 'normal', or a free top layer (data.mode 'generative') that is drawn",
            lambda c: c.schedule.init == "normal" or _free_root(c),
        ),
    ),
    "schedule.pc_update_at": (Need("schedule.rule 'pc'", lambda c: c.schedule.rule == "pc"),),
    "schedule.discount": (STATES,),
    "schedule.fast": (
        STATES,
        Need(
            "run.engine 'torch' or 'auto', or run.backend 'discrete'",
            lambda c: c.run.engine in ("torch", "auto") or not _in_time(c),
        ),
        Need(
            "a backend and circuit with products to skip (discrete, or continuous with "
            "circuit.kind 'algebraic' or 'error_units' and a solver of one stage)",
            lambda c: (
                not _in_time(c)
                or (
                    c.run.backend == "continuous"
                    and c.circuit.kind in ("algebraic", "error_units")
                    and c.solver.name in ("euler", "exponential", "maruyama")
                )
            ),
        ),
    ),
    "learning.alpha": (
        Need(
            "no circuit.tau_w, which says the same (α = dt/τ_w)",
            lambda c: c.circuit.tau_w is None,
        ),
        Need("no grid.alpha, which takes its place", lambda c: not c.grid.alpha),
    ),
    "learning.weight_decay": (
        Need("no grid.weight_decay, which takes its place", lambda c: not c.grid.weight_decay),
    ),
    "learning.momentum": (
        Need("learning.optimizer 'momentum'", lambda c: c.learning.optimizer == "momentum"),
    ),
    "learning.betas": (ADAM,),
    "learning.eps": (ADAM,),
    "learning.decay_bias": (Need("a weight decay above 0", _decays),),
    "learning.epochs": (SWITCHED,),
    "learning.patience": (DISCRETE, SWITCHED),
    "data.limit_test": (SUPERVISED,),
    "data.unverified": (
        Need("a published data set", lambda c: not c.data.name.endswith(OWN_DATA)),
    ),
    "data.shuffled": (SUPERVISED,),
    "convergence": (AUTOMATIC,),
    "grid.gamma": (STATES,),
    "circuit": (IN_TIME,),
    "circuit.tau_x": (SHARED_TIME,),
    "circuit.feedback_gain": (
        IN_TIME,
        Need(
            "feedback weights that are drawn (circuit.transport 'random' or 'kolen_pollack', or "
            "circuit.kind 'sacramento')",
            _feedback_drawn,
        ),
    ),
    "circuit.inter_rate": (
        IN_TIME,
        Need("circuit.inter_learned = true", lambda c: c.circuit.inter_learned),
    ),
    "solver.name": (
        IN_TIME,
        Need(
            "a run.engine other than 'spice', whose steps ngspice chooses",
            lambda c: c.run.engine != "spice",
        ),
    ),
    "solver.dt": (SHARED_TIME,),
    "solver.noise_seed": (Need("noise (hardware that is not ideal, or circuit.sigma_x)", _noisy),),
    "stream.t_pres": (IN_TIME, SWITCHED),
    "stream.t_settle": (IN_TIME, SWITCHED, SUPERVISED),
    "stream.tau_label": (IN_TIME, SWITCHED, SUPERVISED),
    "record.every": (IN_TIME,),
    "record.trajectories": (IN_TIME,),
    "record.units": (IN_TIME, TRAJECTORIES),
    "record.chips": (IN_TIME, TRAJECTORIES),
    "record.predictions": (SUPERVISED,),
    "hardware.seed": (HARDWARE,),
    "hardware.lenient": (HARDWARE, DISCRETE),
    "run.engine": (
        Need(
            "run.backend 'continuous', or 'discrete' with 'torch', 'native' or 'auto'",
            lambda c: (
                c.run.backend == "continuous"
                or (not _in_time(c) and c.run.engine in ("torch", "native", "auto"))
            ),
        ),
    ),
    "spice": (SPICE,),
    "brian.target": (BRIAN,),
    "brian.folder": (BRIAN, STANDALONE),
    "brian.fused": (BRIAN, STANDALONE),
    "brian.products": (
        BRIAN,
        Need("brian.target 'numpy' or 'cython'", lambda c: c.brian.target != "standalone"),
    ),
}

OFF = frozenset(
    {
        "schedule.discount",
        "learning.weight_decay",
        "learning.decay_bias",
        "learning.patience",
        "data.limit_test",
        "data.unverified",
        "data.shuffled",
        "grid.gamma",
        "network.prior",
        "network.hidden.learned",
        "network.output.learned",
        "network.scores.learned",
        "circuit.kind",
        "circuit.transport",
        "circuit.weight_decay",
        "circuit.sigma_x",
        "circuit.delay_err",
        "circuit.delay_fb",
        "circuit.tau_apical",
        "circuit.tau_inter",
        "circuit.look_err",
        "circuit.look_inter",
        "circuit.look_apical",
        "circuit.look_soma",
        "circuit.tau_w",
        "solver.name",
        "solver.dt",
        "stream.t_pres",
        "stream.t_settle",
        "stream.tau_label",
        "record.trajectories",
        "hardware.lenient",
        "run.engine",
        "brian.folder",
        "brian.fused",
        "brian.products",
    }
)
"""Fields whose default is true of every run in which they have no other meaning."""


def set_fields(
    model: BaseModel, prefix: str = "", standard: Any = None
) -> Iterator[tuple[str, Any, Any]]:
    """Go through the fields that were set: dotted name, value, default.

    `standard` is the section that stands where nothing is set; it may be of another kind.
    """
    for name, field in type(model).model_fields.items():
        if name not in model.model_fields_set:
            continue
        value, default = getattr(model, name), getattr(standard, name, field.default)
        if isinstance(value, BaseModel):
            yield from set_fields(value, f"{prefix}{name}.", default)
        else:
            yield f"{prefix}{name}", value, default


def needs_of(field: str) -> tuple[Need, ...]:
    """Return the needs of a field: its own, or those of the section that it stands in."""
    while field and field not in NEEDS:
        field = field.rpartition(".")[0]
    return NEEDS.get(field, ())


def meaningless(config: Config) -> dict[str, str]:
    """Return the fields that were set and have no meaning here, each with what it needs."""
    problems: dict[str, str] = {}
    for field, value, default in set_fields(config):
        if field in OFF and value == default:
            continue
        missing = next((need for need in needs_of(field) if not need.holds(config)), None)
        if missing:
            problems[field] = missing.words
    return problems


def of_other_circuits(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a description that its circuit does not have, with what they need."""
    return {
        f"circuit.{name}": f"circuit.kind {' or '.join(map(repr, BELONGS[name]))}"
        for name in foreign(data.get("circuit", {}))
    }


def sentence(field: str, needs: str) -> str:
    """Return the refusal of one field."""
    return f"{field}: has no meaning in this run, and would be ignored; it needs {needs}"


def without(data: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    """Return a copy of a description without these fields, by their dotted names."""
    copied: dict[str, Any] = {
        name: without(part, {}) if isinstance(part, Mapping) else part
        for name, part in data.items()
    }
    for field in fields:
        *parents, last = field.split(".")
        section: Any = copied
        for parent in parents:
            section = section.get(parent, {})
        section.pop(last, None)
    return copied
