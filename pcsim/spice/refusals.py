"""What a netlist has no elements for, refused by name with the reason."""

from __future__ import annotations

from pcsim.circuit import Circuit
from pcsim.circuits.blocks import Block
from pcsim.circuits.plan import Plan
from pcsim.errors import UnsupportedError

WHO = "engine spice"


def refuse_plan(plan: Plan, circuit: Circuit) -> None:
    """Refuse what a netlist has no elements for, by name."""
    for name in ("delay_err", "delay_fb", "look_soma"):
        if getattr(circuit, name):
            raise UnsupportedError(
                f"{WHO}: circuit.{name}: values of whole past steps have no netlist; set it to 0"
            )
    if circuit.transport == "sign":
        raise UnsupportedError(
            f"{WHO}: circuit.transport 'sign': the size of a whole array is no local signal; use "
            f"'shared', 'random' or 'kolen_pollack'"
        )
    for k, group in enumerate(plan.groups):
        if group.layer.categorical or group.layer.shares_rates:
            what = "energy categorical" if group.layer.categorical else "f 'softmax' of its rates"
            raise UnsupportedError(
                f"{WHO}: network node {k}: {what}: a softmax over a layer has no cell here; use a "
                f"Gaussian energy"
            )
        if group.after:
            raise UnsupportedError(
                f"{WHO}: network node {k}: energy.learned: the floor of a variance acts after "
                f"steps, which a netlist does not have; use a fixed variance"
            )


def refuse_block(block: Block) -> None:
    """Refuse effects that remember or draw at every synapse, by name."""
    site = block.place.site
    for key in block.memory:
        if key.startswith("since."):
            continue
        raise UnsupportedError(
            f"{WHO}: hardware {key.split('.')[0]!r} at {site}: it remembers from clock to clock, "
            f"which a netlist without a clock cannot; leave it out, or use run.engine 'native'"
        )
    if block.noise and len(block.shape) == 2:
        raise UnsupportedError(
            f"{WHO}: hardware {block.noise[0].key.split('.')[0]!r} at {site}: noise of every "
            f"synapse in every step would be a source each; leave it out, or use run.engine "
            f"'native'"
        )
