"""How errors travel: every circuit as its equations, and the plan of a whole network on it."""

from pcsim.circuits.kinds import PAGES
from pcsim.circuits.layer import Layer
from pcsim.circuits.page import Page, Ring
from pcsim.circuits.plan import Plan, layer_equations, synapse_equations

__all__ = ["PAGES", "Layer", "Page", "Plan", "Ring", "layer_equations", "synapse_equations"]
