"""From a configuration to the discrete rule that trains it, and to who takes its steps."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from pcsim.backends.array_backprop import ArrayBackprop
from pcsim.backends.backprop import Backprop
from pcsim.backends.discrete import Discrete
from pcsim.config import Config
from pcsim.errors import UnsupportedError
from pcsim.kernels.optim import Optimizer, Rate
from pcsim.kernels.parameters import Parameters
from pcsim.native.choice import why_torch_batches
from pcsim.native.discrete import NativeBackprop, NativeDiscrete
from pcsim.network import Network
from pcsim.substrate import Chips

Rule = Discrete | Backprop | ArrayBackprop
AUTOGRAD = "backpropagation through ideal layers is autograd's"
ASKED = "run.engine asks for it"


def rule_for(
    config: Config,
    network: Network,
    params: Parameters,
    optimizer: Optimizer,
    *,
    gamma: Rate,
    seeds: Sequence[int],
    chips: Chips | None,
    steps: int,
) -> tuple[Rule, str]:
    """Return the rule of `schedule.rule`, and why torch takes its steps ("": compiled code does).

    `steps` are those of the whole run.
    """
    schedule, mode, engine = config.schedule, config.data.mode, config.run.engine
    if schedule.rule == "bp" and chips is None:
        if engine == "native":
            raise UnsupportedError(f"engine native: schedule.rule 'bp': {AUTOGRAD}")
        return Backprop(network, params, optimizer), ASKED if engine == "torch" else AUTOGRAD
    reason = ASKED if engine == "torch" else ""
    if engine == "auto":
        reason = why_torch_batches(
            network,
            mode,
            None if schedule.rule == "bp" else schedule,
            optimizer,
            device=config.run.device,
            steps=steps,
            automatic=config.run.automatic,
        )
    if schedule.rule == "bp":
        assert chips
        # A batch takes BP as long as the schedules, so that devices drift alike.
        made = ArrayBackprop if reason else NativeBackprop
        return made(network, params, optimizer, chips, steps=schedule.T), reason
    kind = Discrete if reason else NativeDiscrete
    rule = kind(
        network, params, schedule, optimizer, gamma=gamma, mode=mode, seeds=seeds, chips=chips
    )
    return rule, reason


def about(rule: Rule, reason: str) -> dict[str, str | int]:
    """Return who took the steps, by how many threads, and why torch did."""
    if isinstance(rule, NativeDiscrete | NativeBackprop):
        return rule.about()
    return {"engine": "torch", "threads": torch.get_num_threads(), "engine_reason": reason}
