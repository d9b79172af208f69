"""What a step causes: events, sent where receivers are wrong by half a step or more.

    k = floor((signal − belief)/step + ½)      belief += step·k      total += w·step·k

Signals, beliefs and weights are those that this step has left behind.
"""

from __future__ import annotations

from pcsim.circuits.page import Event
from pcsim.circuits.text import Equation
from pcsim.native.formula import apply, symbol
from pcsim.native.synapses import Synapses
from pcsim.native.writer import Array, Var


class Events(Synapses):
    """The events of a plan."""

    def _communicate(self) -> None:
        """Let every layer send, and all of it arrive at once."""
        self.begin_again()
        for event, k in self.plan.senders:
            self._send(k, event)
        self.flush()
        for k, link in enumerate(self.plan.connections):
            for event in link.events:
                receiver = link.post if event.onto == "post" else link.pre
                self._arrive(k, receiver, event)
        self.flush()

    def _send(self, k: int, event: Event) -> None:
        """Find the events of a layer, and let the sender know what is believed from now on."""
        part = f"g{k}"
        steps, belief = self.read(part, event.steps), self.vars[f"{event.belief}@{part}"]
        self.need(k, steps)
        loop = self.loop(k)
        sent = apply("mul", self.read(part, event.step), steps)
        loop.stores.append((belief.c, apply("add", symbol(f"{event.belief}@{part}"), sent), {}))
        count = f"count_{part}_{event.sender}"
        array = Array("count", part, event.sender)
        self._pointer(array, count, self.units[k], "int64_t")
        loop.text.append(f"{count}[u] += {self.vars[steps.name].c}[{loop.at}] != R(0.0);")

    def _arrive(self, k: int, receiver: int, event: Event) -> None:
        """Add what was sent, through the synapses of map k, to the sum of its receivers."""
        target, _, text = event.arrival.partition(" += ")
        name = f"arrived_{event.total}"
        self.vars[f"{name}@g{receiver}"] = Var(ready=False)
        self._sum(k, Equation(target.replace(event.total, name, 1), "sum", text))
        total, arrived = (symbol(f"{each}@g{receiver}") for each in (event.total, name))
        own = self.vars[total.name].c
        self.loop(receiver).stores.append((own, apply("add", total, arrived), {}))
