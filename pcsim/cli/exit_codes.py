"""How a command ends, for scripts that call it.

0     it did what was asked
1     `pcsim data verify`: a file is not the published one; `pcsim doctor`: engines or devices do
      not give the same numbers
2     it was refused or failed: one sentence on stderr says why
3     `pcsim check`: iPC does not train on this chip by the criterion: it trains with loss, or fails
4     `pcsim run`, `pcsim sweep`: stored, but of no use: every replica diverged, or no point of
      the sweep gave numbers (all failed or diverged); `pcsim check`: not decided, because it is
      marginal (more chips or seeds would decide), or no verdict (the reference has not learnt)
130   interrupted by Ctrl-C; what was kept is said on stderr
143   terminated by SIGTERM, in the same way
"""

from __future__ import annotations

BAD_DATA = 1
DIFFERS = 1
USER_ERROR = 2
DID_NOT_TRAIN = 3
OF_NO_USE = 4

IN_WORDS = (
    "Exit codes: 0 done; 1 a bad data file (data verify), or numbers that differ (doctor); "
    "2 refused, with a sentence; 3 trains with loss or fails (check); 4 stored, but every replica "
    "diverged, no point of a sweep gave "
    "numbers, or marginal or no verdict (check); "
    "130 interrupted, 143 terminated; the same command goes on."
)
