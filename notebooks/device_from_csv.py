# %% [markdown]
# # A device of your own, from a CSV file
# A measured pulse curve becomes a device; here one that was made up: 100 pulses up and 100 down,
# each step smaller than the one before.

# %%
from pathlib import Path

import numpy as np

from hw_models.fit import fit_curve, read_curve
from hw_models.fit_plot import fit_figure

rng = np.random.default_rng(0)
pulses = np.arange(100)
up = 1 + 9 * (1 - np.exp(-pulses / 40)) + rng.normal(0, 0.05, 100)
down = up[-1] - 9 * (1 - np.exp(-pulses / 40)) + rng.normal(0, 0.05, 100)
rows = [f"{k},{g:.4f},up" for k, g in enumerate(up)]
rows += [f"{k},{g:.4f},down" for k, g in enumerate(down)]
Path("device.csv").write_text("Pulse,G (uS),direction\n" + "\n".join(rows) + "\n")

# %% [markdown]
# Columns have the names they have; the laws are ranked by what they explain.

# %%
curve = read_curve(Path("device.csv"), {"pulse": "Pulse", "conductance": "G (uS)"})
fitted = fit_curve(curve)
figure = fit_figure(fitted, "my device")
figure

# %%
print(fitted.ranking[0].law, "states up and down:", fitted.states)
chip = fitted.hardware("mine", "device.csv")

# %% [markdown]
# Chips with that device, one sample at a time.

# %%
from pcsim import Network, Stream, simulate

chips = simulate(Network.mlp([64, 12, 10]), Stream.of("digits", limit=100), hardware=chip, chips=2)
print(chips.verdict())
chips.plot("my device")
