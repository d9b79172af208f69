# %% [markdown]
# # A first verdict
# Does always-on predictive coding learn on chips with lithium electrochemical memory? Small
# settings: a real answer takes more samples and chips.

# %%
from pcsim import Learner, Network, Stream, check, config_of

config = config_of(
    Network.mlp([64, 16, 10]),
    Stream.of("digits", limit=120),
    hardware="ecram_li",
    chips=2,
    seeds=3,
    learner=Learner(alpha=0.02),
)
config  # what differs from the defaults

# %%
found = check(config, twins=False, search=False)
found  # the answer, and the accuracy of every row

# %%
figure = found.plot()
figure

# %% [markdown]
# Every number is at hand: one line for each row, seed and chip.

# %%
table = found.to_pandas()
table.groupby("row")["accuracy"].describe()
