"""Engines that integrate the equations of a plan outside torch, in the memory of a torch circuit.

Data, resets, checkpoints and observers see the tensors of `pcsim.backends.continuous`; only the
steps between two looks are somebody else's. What the plan calls by name is found here: what is
clamped, what was set at fabrication, states and weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.circuits.plan import Plan
from pcsim.continuous.error_flow import ErrorFlow
from pcsim.continuous.flow import Flow
from pcsim.continuous.plan_flow import PlanFlow
from pcsim.continuous.spiking import SpikingFlow
from pcsim.errors import UnsupportedError
from pcsim.kernels.parameters import Parameters
from pcsim.network import Network
from pcsim.substrate import Chips

Value = float | Tensor


class Planned(Continuous):
    """Chips in continuous time whose steps are counted first, and taken when somebody looks."""

    who: ClassVar[str]
    """Who refuses what it cannot do."""
    trains: ClassVar[bool] = False
    """Whether rows and columns may send pulse trains."""

    def __init__(
        self,
        network: Network,
        params: Parameters,
        circuit: Circuit,
        *,
        scale: float = 1.0,
        tau_w: Tensor | None = None,
        chips: Chips | None = None,
        **options: Any,
    ) -> None:
        """Build a population, as `Continuous` does."""
        self.pending = 0
        """Steps that were asked for and not yet taken."""
        self._flow: Flow | None = None
        self.scale, self.own_tau_w = scale, tau_w is not None
        self.held_clamps: dict[tuple[int, str], Tensor] = {}
        """What is clamped by layer and name, as it was then: the steps are taken with these."""
        self.mask: Tensor | None = None
        if chips and not chips.substrate.effects:
            chips = None
        super().__init__(
            network,
            params,
            circuit,
            scale=scale,
            tau_w=tau_w,
            fast=False,
            chips=chips,
            **options,
        )

    def settle(self) -> None:
        """Take all steps that were asked for."""
        raise NotImplementedError

    def drive(self, program: Iterator[None], steps: int) -> None:
        """Count the steps that a program yields, and take them when somebody looks."""
        for _ in program:
            self.pending += 1
            self.steps += 1
        self.settle()

    def advance(self, steps: int, watch: Callable[[], None] | None = None) -> None:
        """Integrate `steps` time steps; `watch` is called after each."""
        for count in [1] * steps if watch else [steps]:
            self.pending += count
            self.steps += count
            self.settle()
            if watch:
                watch()

    def refuse_clamps(self, clamps: Sequence[Tensor | None]) -> None:
        """Refuse clamps that the equations of this mode have no place for."""
        holds = self.network.holds(self.mode)
        for k, (clamp, hold) in enumerate(zip(clamps, holds, strict=True)):
            where = f"{self.who}: clamps[{k}]"
            kind = self.circuit.kind
            given = clamp is not None and hold == "free"
            if given and (kind == "dendritic" or (kind == "spiking" and not k)):
                raise UnsupportedError(f"{where}: layer {k} is free in mode {self.mode}")
            if clamp is None and hold == "clamped" and k == len(holds) - 1:
                raise UnsupportedError(f"{where}: an input cannot be let go")

    @property
    def flow(self) -> Flow:
        """The circuit, with all steps taken that were asked for."""
        assert self._flow is not None
        if self.pending:
            self.settle()
        return self._flow

    @flow.setter
    def flow(self, flow: Flow) -> None:
        self._flow = flow

    def note_clamps(self, mask: Tensor | None) -> None:
        """Take note of what is clamped now, in memory of its own."""
        flow = self.flow
        self.mask = mask
        if isinstance(flow, ErrorFlow):
            fixed = [k for k in range(len(flow.field.x)) if k not in flow.field.free]
            held = {(k, "x"): flow.field.x[k] for k in fixed}
        else:
            assert isinstance(flow, PlanFlow | SpikingFlow)
            held = flow.clamped()
        self.held_clamps = {key: _copied(state) for key, state in held.items()}

    @cached_property
    def plan(self) -> Plan:
        """The equations that somebody else integrates."""
        return Plan.of(
            self.network,
            self.circuit,
            self.mode,
            scale=self.scale,
            own_tau_w=self.own_tau_w,
            chips=self.chips,
            who=self.who,
            unheard=True,
            trains=self.trains,
        )

    @cached_property
    def fixed(self) -> dict[str, Value]:
        """Return what is set once per unit or weight, by name and part."""
        flow, sites = self._flow, self.chips.substrate.sites if self.chips else frozenset()
        if isinstance(flow, ErrorFlow | SpikingFlow):
            fabricated = {"tau_x": flow.tau_x}
            if isinstance(flow, ErrorFlow) and "tau_err" in sites:
                fabricated |= {"tau_err": flow.tau_err}
        else:
            assert isinstance(flow, PlanFlow)
            fabricated = flow.fabricated
        fixed = {
            f"{name}@g{k}": v for name, values in fabricated.items() for k, v in enumerate(values)
        }
        for k, group in enumerate(self.plan.groups):
            if group.layer.precision and not group.layer.learned_variance:
                variance = torch.as_tensor(group.variance, dtype=torch.float64).reshape(1, 1, -1)
                fixed[f"var@g{k}"] = float(variance) if variance.numel() == 1 else variance
        if isinstance(flow, ErrorFlow | SpikingFlow) and isinstance(flow.tau_w, Tensor):
            whole = flow.tau_w.expand(self.params.flat.shape) / self.scale
            for k, views in enumerate(self.params.views(whole.contiguous())):
                names = {"w": f"tau_w@m{k}", "b": f"tau_b@g{k}", "log_var": f"tau_var@g{k}"}
                fixed |= {
                    names[n]: v if n == "w" else v.unsqueeze(1)
                    for n, v in views.items()
                    if n in names
                }
        return fixed

    @property
    def somas(self) -> list[Tensor]:
        """The somas."""
        flow = self._flow
        if isinstance(flow, ErrorFlow):
            return flow.field.x
        if isinstance(flow, SpikingFlow):
            return flow.x
        assert isinstance(flow, PlanFlow)
        return [flow.held(k, "x") for k in range(len(self.network.nodes))]

    def memory_of(self, k: int, part: str, name: str) -> Tensor:
        """Return a state or a weight of the torch circuit, by its name in the plan."""
        flow = self._flow
        if isinstance(flow, PlanFlow):
            if part[0] == "m":
                return flow.of[name][k]["w"]
            return flow.held(k, name)
        assert isinstance(flow, ErrorFlow | SpikingFlow)
        if part[0] == "m":
            separate = flow.feedback if name != "w" else None
            return (separate or self.params).of[k]["w"]
        if name in ("b", "log_var"):
            return self.params.of[k][name].unsqueeze(1)
        return flow.held(k, name)


def _copied(state: Tensor) -> Tensor:
    """Return a copy; what all chips share is kept once."""
    return (state[:1] if state.stride(0) == 0 else state).clone(
        memory_format=torch.contiguous_format
    )
