"""A thousand chips of 784-64-64-10 in float32 fit into 1.5 GB, recorder included."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import re, sys
from pathlib import Path
import torch
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.kernels.parameters import initial_parameters
from pcsim.network import Network
from pcsim.runner.recorder import Recorder
from pcsim.stream import Record

def peak():  # of this process alone: getrusage would count the parent's memory before exec
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) * 1024

before = peak()
network = Network.mlp([784, 64, 64, 10])
chips = 1000
params = initial_parameters(network, list(range(chips)), torch.float32)
engine = Continuous(network, params, Circuit(tau_w=1e4), dt=0.5, fast=sys.argv[1] == "fast")
recorder = Recorder(engine, Record(), every=1)
engine.load([torch.rand(1, 1, 10), None, None, torch.rand(1, 1, 784)])
engine.feedforward()
for _ in range(3):
    engine.advance(1)
    recorder.after_step()
engine.flow.settle_weights()
assert len(recorder.times) == 3
print(peak() - before, params.flat.nelement() * 4)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_a_thousand_chips_fit_into_one_and_a_half_gigabytes():
    for mode in ("fast", "direct"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, mode], capture_output=True, text=True, check=True
        )
        used, weights = map(int, done.stdout.split())
        assert weights < used < 1.5e9, f"{mode}: {used / 1e9:.2f} GB"
