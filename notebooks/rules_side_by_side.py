# %% [markdown]
# # iPC, PC and BP side by side
# The same network, data and seeds under three rules; gaps with intervals, seed by seed. Small
# settings.

# %%
from pcsim import Learner, Network, Stream, compare, simulate

network, stream = Network.mlp([64, 16, 10]), Stream.of("digits", limit=300, epochs=3)
rules = {
    "BP": Learner(rule="bp", alpha=0.01),
    "PC": Learner(rule="pc", alpha=0.01),
    "iPC": Learner(rule="ipc", alpha=0.002),
}
runs = {name: simulate(network, stream, learner=rule, seeds=3) for name, rule in rules.items()}
gaps = compare(runs)
gaps  # tables

# %%
figure = gaps.plot()
figure

# %% [markdown]
# One rate for each rule and 300 samples say nothing about which is better: search rates on
# held-out samples, as `check` does.

# %%
gaps.to_pandas("accuracy")["accuracy"].unstack("run")
