"""What follows from the conductances of a circuit with compartments, layer by layer.

    G = g_lk + g_B + g_A (the output has no apical dendrite),  a_B = g_B/G,  a_D = g_D/(g_lk + g_D)

A basal array is stored as θ/a_B, so that a_B W r is the prediction that a soma sees.
"""

from __future__ import annotations

from pcsim.circuits.section import Circuit, Conductances


def conductances(circuit: Circuit, k: int) -> dict[str, float]:
    """Return conductances, attenuations and gains of layer k and of the synapses onto it."""
    g: Conductances | None = getattr(circuit, "conductances", None)
    if g is None:
        return {}
    nudging = g.nudging
    totals = [g.g_lk + g.g_B, g.g_lk + g.g_B + g.g_A]  # the output has no apical dendrite
    below = totals[1 if k > 1 else 0]
    gain = totals[1] / g.g_A / (1 - nudging)
    if circuit.transport in ("shared", "sign"):
        gain *= g.g_B / below  # the forward array below is stored as θ/a_B
    a_inter = g.g_D / (g.g_lk + g.g_D)
    tau_inter = circuit.tau_inter
    if circuit.INTERNEURONS_LIKE_SOMAS and not tau_inter:
        tau_inter = circuit.tau_x * totals[1] / (g.g_lk + g.g_D + g.g_som)
    return {
        "g_lk": g.g_lk,
        "g_B": g.g_B,
        "g_A": g.g_A,
        "g_som": g.g_som,
        "g_total": totals[1 if k else 0],
        "g_cell": totals[1],
        "a_B": g.g_B / totals[1 if k else 0],
        "a_D": a_inter,
        "nudging": nudging,
        "kappa": circuit.inhibition,
        "gain_td": gain,
        "rate_inter": getattr(circuit, "inter_rate", 1.0) / ((nudging or 1.0) * a_inter),
        "tau_inter": tau_inter,
    }
