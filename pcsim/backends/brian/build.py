"""Plain Brian2 objects for your own `Network`, with the order inside a time step set right.

    from pcsim.backends.brian import RECORD, build

    parts = build(layers, circuit, parameters)
    net = brian2.Network(parts.objects)
    net.add(StateMonitor(parts.layers[1], ["x", "err"], record=True, when="groups", order=RECORD))

One time step is one Euler step of all states and weights, taken from one and the same state: first
all predictions are summed, then all feedback, then weights move, then neurons: see `order`. Nothing
global is touched: clock, preferences, device and monitors are yours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import brian2
import numpy as np
import torch
from brian2 import NeuronGroup, Synapses, defaultclock, second
from numpy.typing import ArrayLike
from torch import Tensor

from pcsim.backends.brian.draws import counted
from pcsim.backends.brian.hardware import OnChip, each_step, put_on_chip
from pcsim.backends.brian.hooks import (
    Texts,
    Weights,
    hooked,
    parameters_of,
    shaped,
    with_nonlinearity,
)
from pcsim.backends.brian.initial_weights import numbers, set_initial_weights, set_weight_times
from pcsim.backends.brian.names import refuse_clashes
from pcsim.circuit import Circuit, Dendritic, Sacramento
from pcsim.circuits import PAGES, order
from pcsim.circuits.page import Event, no
from pcsim.circuits.plan import Connection, Group, Plan, Within, unit_of
from pcsim.circuits.support import require_sites
from pcsim.circuits.text import equations
from pcsim.continuous.delay import whole_steps
from pcsim.errors import UnsupportedError
from pcsim.kernels.on_chip import fabricated, fabricated_tau_w
from pcsim.kernels.parameters import Parameters
from pcsim.network import Mode, Network
from pcsim.substrate import Chips, Site
from pcsim.substrate.expression import Value

PREDICT, FEEDBACK, RECORD = order.PREDICT, order.FEEDBACK, order.RECORD
WEIGHTS, NEURONS = order.WEIGHTS, order.NEURONS


@dataclass(frozen=True, eq=False)
class Parts:
    """The objects of one population: `layers[k]` from the datum upwards, `maps[k]` onto layer k."""

    plan: Plan
    layers: tuple[NeuronGroup, ...]
    maps: tuple[Synapses, ...]
    within: tuple[Synapses, ...] = ()
    """Synapses within a layer: delay lines, sums over an array."""
    on_chip: OnChip | None = None
    """The hardware, where its effects act in every step."""

    chips: int = 1

    @property
    def objects(self) -> list[Any]:
        """Return everything, for a Brian2 `Network`."""
        return [*self.layers, *self.maps, *self.within]

    @property
    def counters(self) -> dict[str, Any]:
        """Return the variables that count events, by sender and layer: `soma1`, `apical0` …."""
        return {
            f"{event.sender}{k}": self.layers[k].variables[_counter(event)]
            for event, k in self.plan.senders
        }

    def weights(self, k: int, name: str = "w") -> np.ndarray:
        """Return the weights onto layer k as (post, pre), or (chip, post, pre) of several chips."""
        post, pre = (len(self.layers[layer]) // self.chips for layer in (k, k + 1))
        return shaped(getattr(self.maps[k], name)[:], self.chips, post, pre)

    def events(self) -> dict[str, np.ndarray]:
        """Return the number of events so far of every neuron, by sender and layer."""
        return {name: np.array(counter.get_value()) for name, counter in self.counters.items()}

    def network(self, *yours: Any, **options: Any) -> brian2.Network:
        """Return a Brian2 `Network` of these and your objects, whose names must differ."""
        net = brian2.Network(*self.objects, *yours, **options)
        refuse_clashes(net, self.objects)
        return net


def neurons(group: Group, chips: int = 1, **options: Any) -> NeuronGroup:
    """Return the neurons of one layer, chip after chip; `options` go to `NeuronGroup`."""
    names = {"name": group.name, "namespace": _namespace(group), "order": NEURONS}
    counters = "".join(f"{_counter(event)} : integer\n" for event in group.events)
    made = NeuronGroup(
        chips * group.units,
        group.text + counters,
        method="euler",
        events={event.name: event.condition for event in group.events},
        **names | options,
    )
    for event in group.events:
        made.run_on_event(event.name, f"{event.update}\n{_counter(event)} += 1", when="resets")
    variance = np.tile(np.broadcast_to(np.asarray(group.variance), group.units), chips)
    if "free" in made.variables:
        made.free = 0
    if "var" in made.variables and not group.layer.learned_variance:
        made.var = variance
    if group.after:
        each_step(made, group.after, order.AFTER, f"{made.name}_after")
    put_on_chip(made, group.blocks, chips)
    return made


def _counter(event: Event) -> str:
    return f"n_{event.sender}"


def _refuse_largest(connection: Connection) -> None:
    """Refuse what needs the largest input of a row: synapses of Brian2 add up, and no more."""
    if any("largest" in line.flags for line in equations(connection.text)):
        raise UnsupportedError(
            "backend brian: hardware: auto_range needs the largest signal of a row, and summed "
            "variables of Brian2 are sums; run it on backend 'continuous'"
        )


def synapses(
    connection: Connection,
    pre: NeuronGroup,
    post: NeuronGroup,
    chips: int = 1,
    **options: Any,
) -> Synapses:
    """Return all-to-all synapses within each chip, in the order (chip, post, pre)."""
    _refuse_largest(connection)
    names = {"name": connection.name, "namespace": _namespace(connection)}
    down, up = (
        {event.name: event.arrival for event in connection.events if event.onto == side}
        for side in ("post", "pre")
    )
    made = Synapses(
        pre,
        post,
        connection.text,
        on_pre=down or None,
        on_post=up or None,
        on_event={event.name: event.name for event in connection.events} or "spike",
        method="euler",
        **names | options,
    )
    _connect_chips(made, chips)
    made.state_updater.order = WEIGHTS
    _order_sums(made)
    for name, index in (("column", made.i), ("row", made.j)):
        if name in made.variables:  # j/n along a line of one chip's array
            count = len(pre if name == "column" else post) // chips
            setattr(made, name, (np.asarray(index) % count + 1) / count)
    put_on_chip(made, connection.blocks, chips)
    return made


def synapses_within(inner: Within, layer: NeuronGroup, chips: int = 1, **options: Any) -> Synapses:
    """Return the synapses of a layer onto itself: one ring per unit, or all to all in each chip."""
    names = {"name": inner.name, "namespace": _namespace(inner)}
    made = Synapses(layer, layer, inner.text, **names | options)
    if not inner.delay:
        _connect_chips(made, chips)
        _order_sums(made)
        return made
    steps = round(inner.constants[inner.delay] / layer.clock.dt_)
    unit, slot = np.indices((len(layer), steps + 1)).reshape(2, -1)
    made.connect(i=unit, j=unit)
    made.slot = slot
    (updater,) = made.summed_updaters.values()
    before, updater.order = order.OF_RING[inner.delay]
    each_step(made, inner.store, before, f"{made.name}_store")
    return made


def build(
    network: Network,
    circuit: Circuit,
    params: Parameters | Weights | None = None,
    mode: Mode = "supervised",
    *,
    extra: Texts | None = None,
    current: Texts | None = None,
    constants: Mapping[str, Any] | None = None,
    f: str | None = None,
    seeds: Sequence[int] = (),
    scale: float = 1.0,
    tau_x: Sequence[ArrayLike] | None = None,
    tau_w: ArrayLike | None = None,
    chips: Chips | None = None,
    noise: bool = True,
    name: str = "pc",
    **options: Any,
) -> Parts:
    """Build the population of a network, in one or more chips that share nothing.

    Main arguments:
        network, circuit: what is simulated; `circuit.tau_w` must be set.
        params: initial weights: one NumPy array (post, pre) per map, onto the output first, or a
            pair of it and the biases; `Parameters`; none: drawn. They are read, not moved.
        mode: which layers can be clamped. Set `layers[k].x` to clamp; `layers[0].free` lets go.
        extra: lines of your own for the hidden layers, or by place: {"hidden": …, "synapses": …}.
        current: what is added to τ_x dx/dt of the hidden layers, or by place; at "synapses" it is
            added to dw/dt.
        constants: what these speak of, with units.
        f: another nonlinearity of the hidden layers, an expression in x; its slope is derived.

    Rarely used:
        seeds: of random feedback weights, one per chip.
        tau_x: seconds per layer, each a number or an array that fits (chip, 1, unit).
        tau_w: seconds per weight, an array that fits (chip, parameter).
        chips: the hardware they are, one per replica; None is ideal hardware.
        noise: whether Brian2 draws noise (`brian2.seed` fixes it); else whoever runs the objects
            draws it before every step: see `draws`.
        name: every object's name starts with it.
        options: for all objects, e.g. `clock`, `dtype`, `codeobj_class`.
    """
    network = with_nonlinearity(network, f) if f else network
    params = parameters_of(network, params, seeds)
    page = PAGES[circuit.kind]
    if tau_x is not None and page.one_capacity:
        raise no("tau_x per unit", f"the cells of a {circuit.kind} circuit share one capacity")
    if tau_w is not None and not page.own_tau_w:
        raise no("tau_w per weight", f"all arrays of a {circuit.kind} circuit share circuit.tau_w")
    dt = options["clock"].dt_ if "clock" in options else float(options.get("dt", defaultclock.dt))
    for field in order.OF_RING:
        whole_steps(f"circuit.{field}", getattr(circuit, field), dt)
    if chips:
        require_sites(chips, circuit, params.replicas)
    own = tau_w is not None
    plan = Plan.of(network, circuit, mode, scale=scale, own_tau_w=own, name=name, chips=chips)
    plan = plan if noise else counted(plan)
    plan = hooked(plan, extra, current, constants)
    count = params.replicas

    def given(part: Group | Connection) -> dict[str, Any]:
        """Return the options of an object that may speak of a user's constants."""
        return options | {"namespace": _namespace(part) | dict(constants)} if constants else options

    layers = tuple(neurons(group, count, **given(group)) for group in plan.groups)
    set_times(layers, plan, network, circuit, tau_x, chips, (count, 1))
    maps = tuple(
        synapses(link, layers[link.pre], layers[link.post], count, **given(link))
        for link in plan.connections
    )
    within = tuple(
        synapses_within(inner, layers[inner.layer], count, **options) for inner in plan.within
    )
    set_initial_weights(layers, maps, circuit, params, list(seeds) or list(range(count)))
    nominal = circuit.weight_time if tau_w is None else torch.as_tensor(tau_w)
    times = fabricated_tau_w(chips, params, nominal)
    if isinstance(times, Tensor):
        set_weight_times(layers, maps, params, numbers(times).reshape(len(times), -1) / scale)
    on_chip = OnChip.of(plan, (*layers, *maps), chips, brian_noise=noise) if chips else None
    return Parts(plan, layers, maps, within, on_chip, count)


def set_times(
    layers: Sequence[NeuronGroup],
    plan: Plan,
    network: Network,
    circuit: Circuit,
    tau_x: Sequence[ArrayLike] | None,
    chips: Chips | None,
    shape: tuple[int, int],
) -> None:
    """Write what every unit has as it was fabricated, in seconds; `shape` is (chip, sample)."""
    count = len(network.nodes)
    given: list[Value] = [circuit.tau_x] * count
    if tau_x is not None:
        given = [torch.as_tensor(tau) for tau in tau_x]
    units: dict[Site, tuple[str, list[Value]]] = {
        "tau_x": ("tau_x", given),
        "tau_err": ("tau_err", [circuit.tau_err] * count),
        "tau_apical": ("tau_apical", [circuit.tau_apical] * count),
        "tau_inter": ("tau_inter", [circuit.tau_inter] * count),
    }
    if isinstance(circuit, Dendritic | Sacramento):
        g = circuit.conductances
        units |= {"g_basal": ("g_B", [g.g_B] * count), "g_apical": ("g_A", [g.g_A] * count)}
    for site, (name, nominal) in units.items():
        made = fabricated(chips, site, network, nominal)
        for layer, group, tau in zip(layers, plan.groups, made, strict=True):
            if name in layer.variables:
                each = np.broadcast_to(np.asarray(tau, dtype=np.float64), (*shape, group.units))
                setattr(layer, name, each.ravel() * (second if unit_of(name) else 1))


def _connect_chips(made: Synapses, chips: int) -> None:
    n_pre, n_post = len(made.source) // chips, len(made.target) // chips
    chip, target, source = np.indices((chips, n_post, n_pre)).reshape(3, -1)
    made.connect(i=chip * n_pre + source, j=chip * n_post + target)


def _order_sums(made: Synapses) -> None:
    for name, updater in made.summed_updaters.items():
        updater.order = order.of_sum(name)


def _namespace(part: Group | Connection | Within) -> dict[str, Any]:
    units = {"": 1, "second": second, "second**-0.5": second**-0.5}
    constants = {name: value * units[unit_of(name)] for name, value in part.constants.items()}
    for block in () if isinstance(part, Within) else part.blocks:
        constants |= block.constants
    return constants
