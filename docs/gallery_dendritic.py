"""A two-layer dendritic circuit learns XOR, and nobody tells it when a pattern begins.

Run `python docs/gallery_dendritic.py`; it writes docs/figures/gallery_dendritic.png. What is seen
there is explained in gallery_dendritic.md. Options: --cycles, --out.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from brian2 import Network, StateMonitor, TimedArray, defaultclock, ms, prefs, second
from matplotlib.figure import Figure

from pcsim.backends.brian import RECORD, build
from pcsim.circuit import Circuit
from pcsim.kernels.parameters import initial_parameters
from pcsim.network import Network as Layers
from pcsim.plots import COLOURS, DASHES, save

PATTERNS = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
LABELS = np.array([[-1.0], [1.0], [1.0], [-1.0]])
SHOWN_FOR = 500 * ms
FIGURE = Path(__file__).parent / "figures" / "gallery_dendritic.png"

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--cycles", type=int, default=40, help="how often all four patterns are shown")
parser.add_argument("--out", type=Path, default=FIGURE, help="the figure")
options = parser.parse_args()

# 1. The circuit. Clock and code generation are the script's own business.
prefs.codegen.target = "numpy"
defaultclock.dt = 1 * ms
layers = Layers.mlp([2, 8, 1], "tanh")  # from input to output
circuit = Circuit(kind="dendritic", tau_x=0.01, tau_inter=0.002, tau_w=2.0)
weights = initial_parameters(layers, seeds=[7], dtype=torch.float64)
parts = build(layers, circuit, weights)
output, hidden, source = parts.layers

# 2. The stream: a pattern and its label, another every half second, in random order. States are
#    never reset, and plasticity is never switched off.
rng = np.random.default_rng(0)
order = np.concatenate([rng.permutation(4) for _ in range(options.cycles)])
pattern = TimedArray(PATTERNS[order], dt=SHOWN_FOR)
label = TimedArray(LABELS[order], dt=SHOWN_FOR)
source.run_regularly("x = pattern(t, i)", when="start")
output.run_regularly("x = label(t, i)", when="start")

# 3. Monitors at RECORD see states and sums of one instant.
at = {"when": "groups", "order": RECORD}
cells = StateMonitor(hidden, ["x", "err", "v_apical"], record=True, name="cells", **at)
below = StateMonitor(output, ["x", "inter"], record=True, name="below", **at)
net = Network(parts.objects, cells, below)
net.run(len(order) * SHOWN_FOR)

# 4. One neuron, before and after: the one whose apical dendrite had most to say at first.
time, cycle = cells.t / second, round(4 * SHOWN_FOR / defaultclock.dt)
neuron = int(np.abs(cells.v_apical[:, :cycle]).mean(1).argmax())
soma, apical = cells.x[neuron], cells.v_apical[neuron]
figure = Figure(figsize=(11, 8.5), layout="constrained")
grid = figure.add_gridspec(4, 2)
windows = {"before: the first four patterns": slice(0, cycle)}
windows["after: the last four patterns"] = slice(-cycle, None)
rows = {
    "soma, basal": {"soma x": soma, "what its basal dendrite predicts": soma - cells.err[neuron]},
    "apical": {"apical v_apical = top-down − inhibition": apical},
    "layer below": {"output soma (clamped)": below.x[0], "interneuron inter": below.inter[0]},
}
for row, (name, curves) in enumerate(rows.items()):
    first = None
    for column, (title, window) in enumerate(windows.items()):
        axes = first = figure.add_subplot(grid[row, column], sharey=first)
        for k, (curve, values) in enumerate(curves.items()):
            style = {"color": COLOURS[2 * row + k], "linestyle": DASHES[k]}
            axes.plot(time[window], values[window], label=curve, **style)
        axes.set_title(title if row == 0 else "", pad=20)  # the legend stands below it
        axes.set(ylabel="" if column else name)
        axes.grid(alpha=0.25)
        if column == 0:
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, fontsize=8)
ends = slice(round(SHOWN_FOR / defaultclock.dt) - 1, None, round(SHOWN_FOR / defaultclock.dt))
axes = figure.add_subplot(grid[3, :], xlabel="time, s", ylabel="at the end of a pattern")
miss = np.abs(below.x[0] - below.inter[0])[ends]
axes.plot(time[ends], np.abs(apical[ends]), ".", color=COLOURS[2], label="|v_apical|")
axes.plot(time[ends], miss, "x", color=COLOURS[0], ms=4, label="|output − interneuron|")
axes.grid(alpha=0.25)
axes.legend(frameon=False)
figure.suptitle(
    f"hidden neuron {neuron} of a 2-8-1 dendritic circuit on XOR; potentials are dimensionless"
)
save(figure, options.out)
first, last = miss[:4].mean(), miss[-4:].mean()
print(f"|output - interneuron| at the end of a pattern: first cycle {first:.3f}, last {last:.3f}")

# 5. What has it learnt? The forward pass through its basal dendrites, without any label.
a_basal = hidden.namespace["a_B"]
rates = np.tanh(a_basal * (PATTERNS @ parts.maps[1].w[:].reshape(8, 2).T + hidden.b[:]))
answers = rates @ parts.maps[0].w[:] + output.b[:]
print("answers", *(f"{answer:+.2f}" for answer in answers), "to be", *LABELS.ravel())
