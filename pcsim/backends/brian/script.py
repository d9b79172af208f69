"""A circuit as a script of its own: Brian2 and NumPy alone, the equations in it as they run."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from brian2 import Clock, second
from brian2.core.variables import ArrayVariable

from pcsim.backends.brian.build import Parts, build
from pcsim.circuit import Circuit
from pcsim.circuits import order
from pcsim.circuits.page import Event
from pcsim.circuits.plan import Connection, Group, Within, unit_of
from pcsim.errors import UnsupportedError
from pcsim.network import Mode, Network
from pcsim.store.files import MADE_BY_PCSIM, check_suffix, write_own

_HEAD = '''# {made}; it needs Brian2, NumPy and matplotlib, and nothing of pcsim.
"""One sample is clamped, and the circuit infers and learns for {steps} steps of {dt:g} s."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from brian2 import Network, NeuronGroup, StateMonitor, Synapses, defaultclock, prefs, second

prefs.codegen.target = "numpy"  # "cython" compiles
defaultclock.dt = {dt!r} * second
start = np.load(Path(__file__).with_suffix(".npz"))  # initial weights, and the sample
'''
_TAIL = """
for part in (*layers, *maps, *within):
    for key in start.files:
        owner, _, variable = key.partition(".")
        if owner == part.name:
            setattr(part, variable + "_", start[key])

# Here all states, sums and weights are of one instant; at Brian2's usual place sums are late.
shown = [
    StateMonitor(layer, "x", record=range(min(8, len(layer))), when="groups", order={record})
    for layer in layers[:-1]
]
net = Network(layers, maps, within, shown)
net.run({steps} * defaultclock.dt)

figure, axes = plt.subplots(1, len(shown), squeeze=False, figsize=(4 * len(shown), 3))
for axis, monitor in zip(axes[0], shown):
    axis.plot(monitor.t / second, monitor.x.T)
    axis.set(title=monitor.source.name, xlabel="time, s", ylabel="x")
figure.tight_layout()
figure.savefig(Path(__file__).with_suffix(".png"))
for synapses in maps:
    print(synapses.name, "mean |w|", np.abs(synapses.w[:]).mean())
"""


def script(
    path: Path | str,
    network: Network,
    circuit: Circuit,
    clamps: Sequence[np.ndarray | None],
    *,
    mode: Mode = "supervised",
    dt: float,
    steps: int = 200,
    **hooks: Any,
) -> Path:
    """Write a script, and beside it (.npz) where it starts; return its path.

    Main arguments:
        network, circuit: what is simulated.
        clamps: the value of every layer from the datum upwards, None where it is free.
        dt, steps: seconds per time step, and how many of them.

    Rarely used:
        mode: which layers can be clamped.
        hooks: whatever `build` takes besides: params, extra, current, f, seeds.
    """
    path = Path(path)
    check_suffix(path, ".py")
    if hooks.get("constants"):
        raise UnsupportedError("script: write constants as numbers into the lines that you add")
    parts = build(network, circuit, mode=mode, clock=Clock(dt * second), **hooks)
    for k, clamp in enumerate(clamps):
        if clamp is not None:
            parts.layers[k].x = np.asarray(clamp, dtype=np.float64).ravel()
    text = _text(parts, dt, steps)
    compile(text, str(path), "exec")
    write_own(path, text.encode())
    buffer = io.BytesIO()
    start: dict[str, Any] = _start(parts) | {"about": np.array(MADE_BY_PCSIM.encode())}
    np.savez(buffer, **start)
    write_own(path.with_suffix(".npz"), buffer.getvalue())
    return path


def _text(parts: Parts, dt: float, steps: int) -> str:
    plan = parts.plan
    delayed = [inner.delay for inner in plan.within if inner.delay]
    if (parts.on_chip is not None and plan.blocks) or delayed or parts.chips > 1:
        what = "delays" if delayed else "hardware and several chips"
        raise UnsupportedError(f"script: {what} need pcsim while they run; leave them out")
    lines = [_HEAD.format(made=MADE_BY_PCSIM, steps=steps, dt=dt)]
    lines += [_layer(group) for group in plan.groups]
    lines.append(f"layers = [{', '.join(g.name for g in plan.groups)}]\n")
    lines += [
        _synapses(link, plan.groups[link.pre], plan.groups[link.post]) for link in plan.connections
    ]
    lines.append(f"maps = [{', '.join(c.name for c in plan.connections)}]\n")
    lines += [_within(inner, plan.groups[inner.layer]) for inner in plan.within]
    lines.append(f"within = [{', '.join(w.name for w in plan.within)}]")
    lines.append(_TAIL.format(record=order.RECORD, steps=steps))
    return "\n".join(lines)


def _layer(group: Group) -> str:
    counters = "".join(f"n_{event.sender} : integer\n" for event in group.events)
    options = f", order={order.NEURONS}, namespace={_constants(group)}"
    if group.events:
        options += f", events={ {e.name: e.condition for e in group.events}!r}"
    text = (
        f"{group.name} = NeuronGroup(\n    {group.units},\n    {_quoted(group.text + counters)},\n"
    )
    text += f'    method="euler",\n    name="{group.name}"{options},\n)\n'
    for event in group.events:
        update = f"{event.update}\nn_{event.sender} += 1"
        text += f"{group.name}.run_on_event({event.name!r}, {update!r}, when='resets')\n"
    if group.after:
        text += f"{group.name}.run_regularly({group.after!r}, when='groups', order={order.AFTER})\n"
    return text


def _synapses(link: Connection, pre: Group, post: Group) -> str:
    options = f", namespace={_constants(link)}"
    if link.events:
        options += (
            f", on_pre={_arrivals(link.events, 'post')}, on_post={_arrivals(link.events, 'pre')}"
        )
        options += f", on_event={ {e.name: e.name for e in link.events}!r}"
    text = (
        f"{link.name} = Synapses(\n    {pre.name},\n    {post.name},\n    {_quoted(link.text)},\n"
    )
    text += f'    method="euler",\n    name="{link.name}"{options},\n)\n'
    text += _connected(link.name, pre.units, post.units)
    return (
        text + f"{link.name}.state_updater.order = {order.WEIGHTS}\n" + _sums(link.name, link.text)
    )


def _within(inner: Within, layer: Group) -> str:
    text = f"{inner.name} = Synapses(\n    {layer.name},\n    {layer.name},\n"
    text += f"    {_quoted(inner.text)},\n"
    text += f'    name="{inner.name}", namespace={_constants(inner)},\n)\n'
    return text + _connected(inner.name, layer.units, layer.units) + _sums(inner.name, inner.text)


def _connected(name: str, pre: int, post: int) -> str:
    return (
        f"post, pre = np.indices(({post}, {pre})).reshape(2, -1)  # weights are in this order\n"
        f"{name}.connect(i=pre, j=post)\n"
    )


def _sums(name: str, text: str) -> str:
    """Return the lines that put every sum at its place within a step."""
    sums = [line.split("=")[0].strip() for line in text.splitlines() if "(summed)" in line]
    return "".join(f"{name}.summed_updaters[{one!r}].order = {order.of_sum(one)}\n" for one in sums)


def _arrivals(events: Sequence[Event], side: str) -> str:
    return repr({e.name: e.arrival for e in events if e.onto == side} or None)


def _constants(part: Group | Connection | Within) -> str:
    units = {"": "", "second": " * second", "second**-0.5": " * second**-0.5"}
    pairs = [f'"{n}": {v!r}{units[unit_of(n)]}' for n, v in part.constants.items()]
    return "{" + ", ".join(pairs) + "}"


def _quoted(text: str) -> str:
    return '"""\n' + "".join(f"    {line}\n" for line in text.splitlines()) + '    """'


def _start(parts: Parts) -> dict[str, np.ndarray]:
    """Return every number that an object starts with and that is not zero anyway."""
    numbers = {}
    for owner in (*parts.layers, *parts.maps, *parts.within):
        for name, variable in owner.variables.items():
            given = isinstance(variable, ArrayVariable) and variable.owner.name == owner.name
            if given and not variable.read_only and not variable.scalar:
                values = np.array(variable.get_value())
                if values.dtype.kind == "f" and np.any(values):
                    numbers[f"{owner.name}.{name}"] = values
    return numbers
