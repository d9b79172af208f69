# %% [markdown]
# # Dendrites in Brian2
# The dendritic circuit as plain `NeuronGroup`s and `Synapses`, with an adaptation current of
# one's own.

# %%
import brian2
import matplotlib.pyplot as plt
from brian2 import ms

import pcsim.brian as pc

brian2.prefs.codegen.target = "numpy"  # "cython" compiles
parts = pc.build(
    pc.Network.mlp([2, 8, 1]),
    pc.Dendritic(tau_x=0.01, tau_w=1.0),
    extra={"hidden": "da/dt = (x - a)/tau_a : 1"},
    current="- beta*a",
    constants={"beta": 0.5, "tau_a": 50 * ms},
    clock=brian2.Clock(1 * ms),
)
print(parts.layers[1].equations)

# %% [markdown]
# Clamp an input and a target, and watch somas and apical dendrites settle while the weights learn.

# %%
output, hidden, source = parts.layers
seen = brian2.StateMonitor(
    hidden, ["x", "v_apical"], record=True, when="groups", order=pc.RECORD, clock=hidden.clock
)
source.x, output.x = [1.0, -1.0], [0.5]
parts.network(seen).run(100 * ms)
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
left.plot(seen.t / ms, seen.x.T)
left.set(xlabel="time, ms", ylabel="soma")
right.plot(seen.t / ms, seen.v_apical.T)
right.set(xlabel="time, ms", ylabel="apical")
parts.weights(0)  # NumPy, (post, pre)
