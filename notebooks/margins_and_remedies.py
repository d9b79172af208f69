# %% [markdown]
# # Margins and remedies
# How far may each number of a chip go, which piece is the bottleneck, and what helps? Small
# settings with a loose criterion, so that it takes seconds: a real answer takes more chips.

# %%
import hw_models
import pcsim
from pcsim import Criterion, Learner, Network, Stream

chip = hw_models.Hardware(
    name="six_bits",
    pieces={
        "weights": hw_models.QuantizedWeights(bits=6, accumulator=False),
        "noise": hw_models.ReadNoise(where="product", sigma=0.05),
    },
)
setting = {
    "stream": Stream.of("digits", limit=120, t_pres=6.0, epochs=2),
    "learner": Learner(alpha=0.01),
    "seeds": 3,
    "criterion": Criterion(tolerance=0.25, yield_=0.6),
    "twins": False,
    "search": False,
}
network = Network.mlp([64, 16, 10])
found = pcsim.check(network, hardware=chip, chips=4, **setting)
found

# %% [markdown]
# A chip that trains is asked how far a number may go before it does not; this one, which does
# not train, how far it alone must go until it does. Each piece is made ideal in turn: the
# one that gains most is the bottleneck.

# %%
margins = pcsim.margins(found, chips=2, rounds=0, only=["weights.bits"])
margins

# %%
figure = margins.plot()
figure

# %% [markdown]
# What could be built around the chip? Each remedy says which pieces it adds or changes.

# %%
from hw_models.remedies import applicable

remedies = applicable(chip)
for name, (remedy, changes) in remedies.items():
    print(f"{name}: {remedy.about}: {', '.join(changes)}")

# %% [markdown]
# The same chip with one of them, on the same terms.

# %%
remedy, changes = remedies["hidden weight"]
mended = hw_models.describe(chip, changes)
again = pcsim.check(network, hardware=mended, chips=2, **setting)
for name, one in {"six bits": found, "with a hidden weight": again}.items():
    print(f"{name}: {one.outcome}, mean accuracy {one.verdict.accuracy.mean():.0%}")
