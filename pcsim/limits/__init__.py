"""Predicted limits of always-on learning, in closed form: how much a circuit bears, before a run.

The fully automatic schedule: somas and weights move all the time, one sample at a time, nothing is
reset. Plain functions of numbers and matrices that know no device, no engine and no data set:

    noise      what read noise lifts the loss by; how it grows with fan-in, depth and step
    writes     coarse writes: stalling, pulses, asymmetry, retention, write noise
    streams    what carried-over states take from a fixed point; the shortest presentation
    lags       error units, dendrites, interneurons, delays, Euler's step, by depth and norms
    offsets    the offset of the learning multiplier, by presentation time and rate
    gains      mismatch of gains and of time constants
    unit       all of them for one always-on linear layer with the inputs of a data set
    margins    how much disturbance of its outputs a classifier bears

`docs/theory.md` has the laws by number, and the test of each. Losses are ½ squared error per output
unit; rates α = dt/τ_w are per read or write, as each function says.
"""

from pcsim.limits.limit import Limit
from pcsim.limits.unit import Always

__all__ = ["Always", "Limit"]
