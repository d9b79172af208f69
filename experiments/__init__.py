"""Studies: one folder per question, run as `pcsim experiment NAME`; `common` is what they share.

A folder with a module `study` is a study; `pcsim.cli.experiment` tells what that module has. The
package is `pcsim.experiments` (see `pcsim/experiments.py`), so its modules import each other
relatively.
"""
