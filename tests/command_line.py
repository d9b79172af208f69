"""The command line, called as a person calls it, in this process."""

import sys

from pcsim.cli import main


def exit_code(arguments, monkeypatch) -> int:
    """Return the exit code of `pcsim` with these arguments."""
    monkeypatch.setattr(sys, "argv", ["pcsim", *arguments])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0
