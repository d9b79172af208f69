# %% [markdown]
# # From a verdict to transistors and back
# A small network that learns AND: does it train, what does its circuit look like in SPICE, what do
# transistors make of it, and what does a chip of such transistors do? Needs ngspice.

# %%
from pathlib import Path

patterns = "-1,-1,0,{0}\n-1,1,0,{0}\n1,-1,0,{0}\n1,1,1,{0}\n"
rows = 60 * patterns.format("train") + patterns.format("test")
Path("and.csv").write_text("a,b,label,split\n" + rows)
Path("and.toml").write_text("""
network.sizes = [2, 3, 2]
data.name = "and.csv"
learning = { batch = 1, epochs = 1 }
schedule.init = "carry"
circuit = { kind = "dendritic", tau_x = "1 ms", tau_w = "100 ms" }
solver.dt = "50 us"
stream.t_pres = "20 ms"
run = { backend = "continuous", dtype = "float64" }
""")

# %%
import pcsim

ideal = pcsim.simulate(**pcsim.read("and.toml"))
ideal.verdict()

# %% [markdown]
# The same run as a netlist of ideal sources, in a folder that needs no pcsim.

# %%
import subprocess
import sys

from pcsim.config import load
from pcsim.spice.folder.export import export

config = load(Path("and.toml"), {"run.engine": "spice"})
export(config, Path("ideal"), samples=5)


def compare(folder):
    command = [sys.executable, "compare.py"]
    print(subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout)


compare("ideal")
print(Path("ideal/cells.cir").read_text()[:700])

# %% [markdown]
# The same run with transistors: multipliers, dendrites, somas and interneurons.

# %%
from pcsim.spice.cells.library import Sizes
from pcsim.spice.cells.network import ROLES
from pcsim.spice.cells.process import process
from pcsim.spice.folder import transistor

bsim4, sizes = process("bsim4-default"), Sizes(width=2, length=2)
transistor.export(config, Path("cells"), 5, bsim4, sizes, frozenset(ROLES))
transistor.export(config, Path("transistors"), 5, bsim4, sizes)
compare("cells")
compare("transistors")

# %% [markdown]
# Waveforms: a hidden soma, the error of an output (soma minus basal dendrite), and weights; dashed
# with ideal cells.

# %%
import matplotlib.pyplot as plt

from pcsim.spice.ngspice import read_raw

figure, axes = plt.subplots(3, 1, figsize=(8, 7), sharex=True, layout="constrained")
for folder, style in (("cells", "--"), ("transistors", "-")):
    plot = read_raw(Path(folder, "circuit.raw"))[0]
    time = 1e3 * plot["time"]
    axes[0].plot(time, 1e3 * plot["v(x1_0)"], "C0" + style, label=folder)
    axes[1].plot(time, 1e3 * (plot["v(x2_0)"] - plot["v(vb2_0)"]), "C3" + style)
    for j in range(4):
        axes[2].plot(time, 1e3 * plot[f"v(w2_0_{j})"], f"C{j}{style}")
for axis, about in zip(axes, ("soma, mV", "error, mV", "weights, mV"), strict=True):
    axis.set_ylabel(about)
axes[0].legend()
axes[1].set_ylim(-45, 45)
axes[2].set_xlabel("time, ms")
figure

# %% [markdown]
# And back: the cells are measured, become a chip file, and chips of that file run in pcsim. This
# process has no mismatch, so that only systematic errors are in the file; `sky130` has it.

# %%
from hw_models.description import made_of
from pcsim.spice.cells import preset
from pcsim.spice.cells.characterize import characterize

measured = characterize("bsim4-default", sizes, draws=2, tau_x=1e-3, tau_w=100e-3)
pieces = preset.pieces(measured, 1e-3, fan_in=3)
chip = made_of("measured", pieces)
print({name: fields for name, fields in pieces["learning"].items() if name != "kind"})

# %%
measured_chips = pcsim.simulate(**{**pcsim.read("and.toml"), "hardware": chip})
measured_chips.verdict()
