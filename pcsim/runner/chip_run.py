"""A run in continuous time: chips see a stream of presentations, and everything flows.

The stream is a program that yields once per time step; the engine (torch or Brian2) takes the
steps. The same configuration describes a discrete run: with Euler steps, dt = γ τ_x and
τ_w = dt/α, both are the same arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from math import exp
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pcsim.config import Config
from pcsim.engines import Order
from pcsim.hardware import make_chips
from pcsim.kernels.parameters import initial_parameters, initial_states
from pcsim.runner import chip_checkpoint, chip_verdict, memory_need
from pcsim.runner.circuit_readout import CircuitReadout
from pcsim.runner.convergence_window import ConvergenceWindow
from pcsim.runner.engines import engine_for, twin_for
from pcsim.runner.recorder import Recorder, trajectories_of
from pcsim.runner.replicas import Replicas
from pcsim.runner.results import chip_result
from pcsim.runner.resumable import Resumable
from pcsim.runner.task import Clamps, Split, Task
from pcsim.runner.timing import Timing
from pcsim.runner.training import check_device
from pcsim.status import Report, Status
from pcsim.store import Result
from pcsim.substrate import Seeded
from pcsim.verdict import Verdict

INITIAL = 32
"""Samples whose energies tell where a stream began."""
RECORDS = 500
"""Statistics are kept about this often in a run, unless the configuration says how often."""


class ChipRun(Resumable):
    """A population of chips with its data, stream and recorder."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        check_device(config.run.device)
        self.network = config.network.build()
        self.timing = Timing.of(config)
        self.chips = Replicas.of(config)
        self.task = Task.load(config, self.network)
        dtype, device = getattr(torch, config.run.dtype), config.run.device
        self.samples = config.learning.batch or len(self.task.train.x)
        memory_need.check(config, self.network, self.chips, self.task, self.total_steps)
        self.params = initial_parameters(self.network, self.chips.each_seed, dtype, device)
        self.scale = 1.0 if config.learning.reduction == "sum" else 1.0 / self.samples
        self.noise = Seeded(config.solver.noise_seed, self.chips.identities)
        self.hardware = make_chips(config, self.chips, self.timing.dt, dtype, device)
        tau_x, tau_w = self._per_chip_times(dtype, device)
        self.engine = engine_for(
            Order(
                config,
                self.network,
                self.params,
                self.timing.circuit,
                self.timing.dt,
                seeds=self.chips.each_seed,
                samples=self.samples,
                steps=self.total_steps,
                scale=self.scale,
                tau_x=tau_x,
                tau_w=tau_w,
                draw=self._normal,
                noise=self.noise,
                chips=self.hardware,
            )
        )
        self.readout = CircuitReadout(
            self.network,
            self.timing.circuit,
            self.hardware,
            partial(
                twin_for,
                config,
                self.network,
                self.timing,
                seeds=self.chips.each_seed,
                tau_x=tau_x,
            ),
            self.noise,
            lambda: self.engine.steps,
        )
        self.recorder = Recorder(self.engine, config.record, self._record_interval())
        self.label: Tensor | None = None
        self.accuracy_rows: list[tuple[float, np.ndarray]] = []
        self.initial: list[np.ndarray] = []
        """Energy per sample (chip,) before anything was learnt: see `_keep_initial`."""
        self.window = ConvergenceWindow(config.convergence, len(self.chips))
        self.stopped_at = np.full(len(self.chips), np.nan)
        """When each chip of an automatic run stopped by itself, in seconds."""
        self.decided = False
        """Whether an automatic run has come to its end."""

    def _per_chip_times(
        self, dtype: torch.dtype, device: str
    ) -> tuple[list[float | Tensor] | None, Tensor | None]:
        """A grid over gamma or alpha gives chips different time constants at one dt."""
        dt = self.timing.dt
        gamma = self.chips.rate("gamma", dtype, device)
        alpha = self.chips.rate("alpha", dtype, device)
        tau_x: list[float | Tensor] | None = None
        if isinstance(gamma, Tensor):
            tau_x = [(dt / gamma).view(-1, 1, 1)] * len(self.network.nodes)
        return tau_x, (dt / alpha).view(-1, 1) if isinstance(alpha, Tensor) else None

    def _normal(self, state: str, like: Tensor) -> Tensor:
        return self.noise.draw(f"soma.{state}", "normal", like, self.engine.steps)

    @cached_property
    def total_steps(self) -> int:
        """Time steps of the whole run (an automatic one may stop earlier)."""
        if self.config.run.automatic:
            return self.config.convergence.max_steps
        return self._presentations * self.config.learning.epochs * self._period

    @cached_property
    def _presentations(self) -> int:
        """Presentations of one epoch."""
        return len(self.task.train.x) // self.samples

    @cached_property
    def _period(self) -> int:
        """Time steps of one presentation."""
        return self.timing.present + self.settle

    @cached_property
    def switches(self) -> bool:
        """Whether anything happens between presentations: other data, a reset, a label let go."""
        if self.config.run.automatic:
            return False
        whole = self.samples == len(self.task.train.x)
        return not whole or self.config.schedule.init != "carry" or self.settle > 0

    def _record_interval(self) -> int:
        """Records between switches are taken at ends of presentations: always at one phase."""
        every = self.config.record.every or max(1, self.total_steps // RECORDS)
        if self.config.record.every or not self.switches:
            return every
        return self._period * -(-every // self._period)

    def run(self, report: Report | None = None, out: Path | None = None) -> None:
        """Present everything; with `out`, keep a checkpoint beside it, and use one if there."""
        self.warn()
        if self.config.record.trajectories and out:
            self.recorder.stream_to(trajectories_of(out), {"config": self.config.to_json()})
        super().run(report, out)

    def proceed(self) -> None:
        """Present all that is left."""
        if self.config.run.automatic:
            self._automatic()
        else:
            self._epochs()

    def close(self, failed: bool) -> None:
        """Finish the file of trajectories."""
        self.recorder.close(failed)

    def checkpoint(self) -> Result:
        """Return a copy of the run as it stands."""
        return chip_checkpoint.pack(self)

    def restore(self, saved: Result) -> None:
        """Go on from a checkpoint."""
        chip_checkpoint.restore(self, saved, self._kept_at)

    def reached(self) -> str:
        """Say how far the run is."""
        return f"{self.engine.time:.4g} s of simulated time"

    def result(self) -> Result:
        """Return records, accuracy, verdict and final weights."""
        return chip_result(self)

    def _epochs(self) -> None:
        """Present all epochs, from the step on that a checkpoint was made at."""
        engine, steps = self.engine, self._presentations * self._period
        for epoch in range(engine.steps // steps, self.config.learning.epochs):
            done = engine.steps % steps
            engine.drive(self._epoch(epoch, *divmod(done, self._period)), steps - done)

    def _epoch(self, epoch: int, skip: int, steps: int) -> Iterator[None]:
        """Present one epoch, a `yield` for every time step, after `skip` presentations and `steps`
        time steps that are done."""
        batches = self.task.batches(self.chips, epoch, self.config.learning.batch)
        for index, clamps in enumerate(batches):
            if index == skip and steps:
                yield from self._rest(clamps, steps)
            elif index >= skip:
                yield from self.present(clamps)

    @cached_property
    def settle(self) -> int:
        """Time steps at the start of a presentation without a label; only a label can be let go."""
        return self.timing.settle if self.config.data.mode == "supervised" else 0

    def present(self, clamps: Clamps) -> Iterator[None]:
        """Show one batch: switch, settle without label if asked to, then with it."""
        first = self.engine.steps == 0
        self.between_steps = False
        if self.settle:
            self.engine.load([None, *clamps[1:]], steps=self.settle)
        else:
            self.engine.load(self._smoothed(clamps), steps=self.timing.present)
        self.initialise(first)
        yield from self._rest(clamps, 0)

    def _rest(self, clamps: Clamps, done: int) -> Iterator[None]:
        """Go on with a presentation that `done` steps were taken of."""
        if done < self.settle:
            yield from self._advance(self.settle - done)
        if done <= self.settle and self.settle:
            self.between_steps = False
            self.engine.load(self._smoothed(clamps), steps=self.timing.present)
        yield from self._advance(self._period - max(done, self.settle), target=clamps[0])

    def initialise(self, first: bool) -> None:
        """Let states start, or start anew, as `schedule.init` says."""
        init = self.config.schedule.init
        if init == "ff" or (first and init == "carry"):
            self._draw_tops()
            self.engine.feedforward()
        elif init == "zero":
            self.engine.zero_states()

    def _draw_tops(self) -> None:
        """A free top has no prediction to start from: it is drawn, as in the discrete backend."""
        presentation, holds = (
            self.engine.steps // self._period,
            self.network.holds(self.config.data.mode),
        )
        for root in self.network.roots:
            if holds[root] == "free":
                seeds, sd = self.chips.each_seed, self.config.schedule.init_sd
                shape = (self.samples, self.network.nodes[root].units)
                drawn = initial_states(seeds, presentation, root, sd, shape)
                self.engine.set_states({f"x{root}": torch.as_tensor(drawn)})

    def _smoothed(self, clamps: Clamps) -> Clamps:
        """Return the clamps with a label that will follow the target with tau_label."""
        target = clamps[0]
        if not self.config.stream.tau_label or target is None:
            return clamps
        if self.label is None or self.label.shape[1] != target.shape[1]:
            self.label = torch.zeros_like(target)
        return [self.label, *clamps[1:]]

    def _advance(self, steps: int, target: Tensor | None = None) -> Iterator[None]:
        """Record around every step; between steps, let the label follow its target."""
        engine = self.engine
        tau = self.config.stream.tau_label
        follow = 1 - exp(-engine.dt / tau) if tau else 0.0
        for step in range(engine.steps + 1, engine.steps + steps + 1):
            self.between_steps = False
            if follow and target is not None and self.label is not None:
                self.label.add_(target - self.label, alpha=follow)
                engine.clamp_moved(0, self.label)
            looked_at = self._looked_at(step)
            if looked_at:
                self.recorder.before_step()
            yield
            if looked_at:
                self._look()
            self.pause()

    def _looked_at(self, step: int) -> bool:
        """Whether anything is recorded or judged behind this step: most pass unseen."""
        return (
            step % self._period == 0
            or step % self.recorder.every == 0
            or step in (1, self.total_steps)
            or self.config.run.automatic
        )

    def _look(self) -> None:
        """Record and judge what a step has brought."""
        self._keep_initial()
        recorded = self.recorder.after_step()
        if self.config.run.automatic:
            self._judge()
        elif self.engine.steps % (self._presentations * self._period) == 0:
            self.engine.mark_diverged()
            self.keep_accuracy()
        if self.decided or self.engine.steps == self.total_steps:
            self._end()
        if recorded and self._report:
            # said when the run can be interrupted, as its listener may do that
            self.between_steps = True
            self._report(self._status())

    def _end(self) -> None:
        """Record what belongs to the end of the run."""
        if self.config.run.automatic:
            self.recorder.finish()
            self.keep_accuracy()
        elif not self.recorder.rows:
            self.recorder.record()

    def _keep_initial(self) -> None:
        """Keep the energy that the verdict compares with, of the state before the first step.

        Where data are switched or states reset, energies are compared at the ends of presentations:
        then those of the first ones count, until `INITIAL` samples were seen.
        """
        steps, period = self.engine.steps, self._period
        if self.switches:
            wanted = steps % period == 0 and steps // period <= -(-INITIAL // self.samples)
        else:
            wanted = steps == 1
        if wanted:
            self.engine.look_back()
            energy = self.engine.flow.energy_by_node().sum(1) / self.samples
            self.initial.append(energy.double().cpu().numpy())

    def _status(self) -> Status:
        total = self.total_steps * self.timing.dt
        energy = self.recorder.rows["energy"][-1].sum(-1)
        alive = energy[np.isfinite(energy)]
        typical = np.median(alive) if len(alive) else np.nan
        return Status(self.engine.time, total, "s", f"energy {typical:.4g} per sample")

    def _automatic(self) -> None:
        """Full batch, nothing switched, until every chip has converged or diverged."""
        left = self.config.convergence.max_steps - self.engine.steps
        self.engine.drive(self._until_converged(), left)

    def _until_converged(self) -> Iterator[None]:
        if self.engine.steps == 0:
            self.between_steps = False
            self.engine.load(next(self.task.batches(self.chips, 0, 0)))
            self.initialise(first=True)
        while self.engine.steps < self.config.convergence.max_steps and not self.decided:
            yield from self._advance(1)

    def _judge(self) -> None:
        """Let each chip of an automatic run stop when it has converged, rings or has diverged.

        What it reports is its state at its own stop; the run ends with the last one.
        """
        window = self.window
        self.engine.look_back()
        window.add(self.engine.flow.energy_by_node().sum(1).double().cpu().numpy())
        done = window.converged | window.ringing | self.engine.mark_diverged().numpy()
        ends = done & np.isnan(self.stopped_at)
        if ends.any():
            self.recorder.stop(ends)
            self.engine.stop(torch.as_tensor(ends))
            self.stopped_at[ends] = self.engine.time
            self.decided = bool(np.isfinite(self.stopped_at).all())

    def restore_stops(self, stopped_at: np.ndarray, held: Mapping[str, np.ndarray]) -> None:
        """Take up from a checkpoint which chips had stopped, and what they had shown."""
        self.stopped_at = stopped_at
        self.recorder.stopped, self.recorder.held = np.isfinite(stopped_at), dict(held)
        if self.recorder.stopped.any():
            self.engine.stop(torch.as_tensor(self.recorder.stopped))

    def keep_accuracy(self) -> None:
        """Record the test accuracy of a read-out with the label released."""
        if self.config.data.mode == "supervised":
            self.accuracy_rows.append((self.engine.time, self.accuracy(self.task.test)))

    def accuracy(self, split: Split) -> np.ndarray:
        """Return the fraction right (chip,) by a read-out with the label released."""
        return self.task.accuracy(self.readout, self.engine.flow, split)

    def warn(self) -> None:
        """Warn, with the number, before a run that must blow up or may not be stable."""
        chip_verdict.warn(self)

    def verdict(self) -> Verdict:
        """Judge the run from what was recorded."""
        return chip_verdict.verdict(self, self._margin())

    def _margin(self) -> np.ndarray | None:
        """Return the stability margin of each chip at its present weights."""
        return chip_verdict.margin_of(self)
