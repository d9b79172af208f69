"""Pieces of equations that all circuits share: rates, somas, plastic weights."""

from __future__ import annotations

from pcsim.circuits import order
from pcsim.circuits.blocks import Place
from pcsim.circuits.layer import Layer
from pcsim.circuits.section import Circuit
from pcsim.errors import UnsupportedError
from pcsim.maps.nonlinearities import NONLINEARITIES, Row, row
from pcsim.substrate.effect import AGGREGATES, DOWN, LARGEST
from pcsim.substrate.expression import Expression


def rate(f: str, x: str) -> str:
    """Return f(x) for a variable called x."""
    return _known(f).at(x)


def slope(f: str, x: str, r: str) -> str:
    """Return f'(x) for variables called x and r = f(x)."""
    return _known(f).slope_at(x, r)


def _known(f: str) -> Row:
    known = row(f)
    if not known.plain:
        names = [name for name, one in NONLINEARITIES.items() if one.plain]
        raise UnsupportedError(
            f"backend brian: network.f {f!r} has no elementwise Brian2 expression here; "
            f"choose one of {', '.join(names)}, or an expression of your own"
        )
    return known


def rate_lines(layer: Layer, *, once: bool = True) -> list[str]:
    """Return r = f(x) and its slope, for layers that predict another.

    `once`: rates are needed once per time step, before anything has moved.
    """
    if layer.f is None:
        return []
    seen = "x_seen" if "membrane" in layer.sites else "x"
    fired = fired_rate(layer)
    lines = ["x_seen : 1  # x as hardware shows it to f"] if seen != "x" else []
    lines += ["r : 1  # fired, as hardware sends it"] if fired != "r" else []
    if layer.shares_rates:  # the last line is about feedback, as that of a slope is
        sums = ["total_r : 1  # a sum over this layer", "mean_fb : 1  # and another: r fb"]
        return [*lines, f"{fired} = exp({seen})/total_r : 1", *sums]
    # x moves at the end of a time step only, so that its rate is needed once per step.
    return [
        *lines,
        f"{fired} = {rate(layer.f, seen)} : 1{' (constant over dt)' if once else ''}",
        f"slope = {slope(layer.f, seen, fired)} : 1",
    ]


def fired_rate(layer: Layer) -> str:
    """Return the variable that holds f(x), before hardware sends it."""
    return "fired" if "rate" in layer.sites else "r"


def pulled(layer: Layer) -> str:
    """Return what feedback does to x: f'(x) fb, or r (fb − Σ r fb) where rates are a softmax."""
    return f"{fired_rate(layer)}*(fb - mean_fb)" if layer.shares_rates else "slope*fb"


def softmax_sums(layer: Layer) -> str:
    """Return the sums over a layer whose rates are a softmax."""
    seen = "x_seen" if "membrane" in layer.sites else "x"
    total = f"total_r_post = exp({seen}_pre) : 1 (summed)\n"
    pull = f"mean_fb_post = {fired_rate(layer)}_pre*fb_pre : 1 (summed)\n"
    return total if layer.clamped == "always" else total + pull


def soma(
    circuit: Circuit, layer: Layer, force: str, *, over: str = "tau_x", state: str = "x"
) -> str:
    """Return dx/dt = force/over, with white noise; both stop where x is clamped."""
    gate = "free*" if layer.clamped == "switched" else ""
    noise = f" + {gate}sigma_x*xi" if circuit.sigma_x else ""
    return f"d{state}/dt = {gate}({force})/{over}{noise} : 1"


def soma_parameters(layer: Layer) -> list[str]:
    """Return what is set once per unit: its time constant, and the switch of a clamp."""
    lines = ["tau_x : second (constant)"]
    if layer.clamped == "switched":
        lines.append("free : 1 (constant)  # 1: x moves, 0: x is clamped")
    return lines


def weight_rate(circuit: Circuit, name: str, hebb: str) -> str:
    """Return (hebb − λw)/τ_w."""
    return f"{f'({hebb} - decay*{name})' if circuit.weight_decay else hebb}/tau_w"


def plastic(circuit: Circuit, name: str, hebb: str, *, written: bool = False) -> list[str]:
    """Return dw/dt = (hebb − λw)/τ_w of a weight, or what hardware makes of it in one step."""
    if not written:
        return [f"d{name}/dt = {weight_rate(circuit, name, hebb)} : 1 (clock-driven)"]
    return [
        f"d{name}/dt = {name}_change/dt : 1 (clock-driven)",
        f"{name}_change : 1  # what hardware writes in this step",
    ]


def feedback_base(circuit: Circuit) -> str:
    """Return what stands for w on the way back, as it is stored."""
    ways = {"shared": "w", "sign": "size_post*sign(w)"}
    return ways.get(circuit.transport, "w_fb")


def feedback_weight(circuit: Circuit, post: Layer | None = None) -> str:
    """Return what stands for w on the way back, as it is read."""
    if post is None or "weight" not in post.sites:
        return feedback_base(circuit)
    return "w_read" if circuit.transport == "shared" else "w_fb_read"


def feedback_lines(circuit: Circuit, hebb: str, *, written: bool = False) -> list[str]:
    """Return the equations of separate feedback weights, or of what the forward signs need."""
    return {
        "shared": [],
        "random": ["w_fb : 1 (constant)"],
        "kolen_pollack": plastic(circuit, "w_fb", hebb, written=written),
        "sign": ["row_power_post = w**2 : 1 (summed)"],
    }[circuit.transport]


def size_lines(circuit: Circuit, layer: Layer) -> list[str]:
    """Return, for feedback by sign, the size √(mean w²) of the array onto this layer."""
    if circuit.transport != "sign" or not layer.sends_feedback:
        return []
    return [
        "size = sqrt(array_power/n_weights) : 1  # of the weights onto this layer",
        "row_power : 1  # w squared, a sum over the layer above",
        "array_power : 1  # and over this layer",
    ]


def row_sums(
    name: str, wanted: tuple[str, ...], signal: str, weight: str, position: str
) -> list[str]:
    """Return the sums over a row that effects need, as further summed variables."""
    lines = [f"{position} : 1 (constant)  # place along the line, j/n"]
    lines = lines if any("position" in AGGREGATES[each] for each in wanted) else []
    known = {"v": signal, "w": weight, "position": position}
    for each in wanted:
        text = Expression(AGGREGATES[each]).renamed(known)
        largest = ", largest" if each == LARGEST else ""
        lines.append(f"{name.format(each)} = {text} : 1 (summed{largest})")
    return lines


def rate_places(layer: Layer, k: int) -> list[Place]:
    """Return what stands between potentials and the rates that are sent."""
    if layer.f is None:
        return []
    return [
        Place("membrane", k, "x", "x_seen", order.MEMBRANE, "before_start"),
        Place("rate", k, "fired", "r", order.READ),
    ]


def speed_place(layer: Layer, k: int) -> Place:
    """Return what acts on dx/dt; a clamped soma has none."""
    gate, own = "free" if layer.clamped == "switched" else "", {"x": "x"}
    speed = "second*force/tau_x"
    return Place("velocity", k, speed, "speed", order.CHANGE, symbols=own, gate=gate)


def write_place(circuit: Circuit, name: str, hebb: str, k: int, array: str = "") -> Place:
    """Return what acts on the change of a weight that plasticity asks for."""
    asked = f"dt*{weight_rate(circuit, name, hebb)}"
    # One sample asks for one thing; engines that show several side by side add up what each asks.
    known = {
        "w": name,
        "tau_w": "(learning_scale*tau_w/second)",
        DOWN: f"clip(-({asked}), 0, 1e30)",
    }
    return Place("write", k, asked, f"{name}_change", order.CHANGE, symbols=known, array=array)


# -- an array of weights that is used in both directions --------------------------------------


def array_lines(circuit: Circuit, post: Layer, hebb: str, sent: str, line: str) -> list[str]:
    """Return the equations of an array: what it learns, forwards into `line`, backwards `sent`."""
    written, read = "write" in post.sites, "weight" in post.sites
    lines = plastic(circuit, "w", hebb, written=written)
    if post.own_tau_w:
        lines.append("tau_w : second (constant)")
    lines += ["w_read : 1  # w as hardware presents it"] if read else []
    weight = "w_read" if read else "w"
    sums = [f"{line}_post = {weight}*r_pre : 1 (summed)"]
    sums += row_sums("line_{}_post", post.line_sums, "r_pre", weight, "column")
    if post.has_feedback:
        lines += feedback_lines(circuit, hebb, written=written)
    if post.sends_feedback:
        back = feedback_weight(circuit, post)
        lines += ["w_fb_read : 1  # the feedback weight, likewise"] if back == "w_fb_read" else []
        into = "fb_line" if "feedback" in post.sites else "fb"
        sums.append(f"{into}_pre = {back}*{sent} : 1 (summed)")
        sums += row_sums("back_{}_pre", post.back_sums, sent, back, "row")
    return lines + sums


def array_places(circuit: Circuit, post: Layer, k: int, hebb: str) -> list[Place]:
    """Return the places among the synapses of such an array onto layer k."""
    places = [Place("weight", k, "w", "w_read", order.READ), write_place(circuit, "w", hebb, k)]
    if post.has_feedback and circuit.transport != "shared":
        base = feedback_base(circuit)
        places.append(Place("weight", k, base, "w_fb_read", order.READ_ERR, array="feedback"))
        if circuit.transport == "kolen_pollack":
            places.append(write_place(circuit, "w_fb", hebb, k, "feedback"))
    return [place for place in places if place.site in post.sites]


def delivered_product(layer: Layer, line: str) -> list[str]:
    """Return what hardware delivers of a sum over the layer above, and the row sums it needs."""
    if "product" not in layer.sites:
        return []
    delivered = f"{line.removesuffix('_line')} : 1  # with b, as hardware delivers it"
    return [delivered, *(f"line_{name} : 1" for name in layer.line_sums)]


def product_place(layer: Layer, k: int, line: str, result: str) -> Place:
    """Return what acts on a sum over the layer above."""
    sums = {name: f"line_{name}" for name in layer.line_sums}
    signal = f"{line}{' + b' if layer.bias else ''}"
    return Place("product", k, signal, result, order.PRODUCT, symbols=sums)


def feedback_sum(layer: Layer) -> list[str]:
    """Return the sum over the layer below."""
    if "feedback" not in layer.sites:
        return ["fb : 1  # feedback, a sum over the layer below"]
    return [
        "fb_line : 1  # feedback, a sum over the layer below",
        "fb : 1  # the same as hardware delivers it",
        *(f"back_{name} : 1" for name in layer.back_sums),
    ]


def feedback_place(layer: Layer, k: int) -> Place:
    """Return what acts on the sum over the layer below."""
    sums = {name: f"back_{name}" for name in layer.back_sums}
    return Place("feedback", k - 1, "fb_line", "fb", order.READ_FB, symbols=sums)


def moved(layer: Layer, drift: str) -> tuple[str, list[str]]:
    """Return τ_x dx/dt as a soma moves by it, and the lines by which hardware stands between."""
    if "velocity" not in layer.sites:
        return drift, []
    lines = [f"force = {drift} : 1", "speed : 1  # dx/dt as hardware lets x move, per second"]
    return "speed*tau_x/second", lines
