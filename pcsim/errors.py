"""Errors that speak to a person.

Every error a user can cause is a `PcsimError`. The command line prints its message as one sentence
and exits with a non-zero code; only `--debug` shows a traceback.
"""


class PcsimError(Exception):
    """Something the user can understand and mend: what was wrong, where, what is allowed."""


class ConfigError(PcsimError):
    """A description (network, schedule, data, hardware, …) that makes no sense."""


class FieldError(ConfigError, ValueError):
    """Fields that a description cannot take; inside another description, one error of many."""


class DataError(PcsimError):
    """A data set that is missing, damaged, or not the published one."""


class StoreError(PcsimError):
    """A result file that cannot be written or read."""


class InterruptedRunError(PcsimError):
    """The user stopped a run; the message says what was kept and how to go on."""

    def __init__(self, message: str, exit_code: int = 130) -> None:
        """`exit_code`: of the process, 130 after Ctrl-C, 143 after SIGTERM."""
        super().__init__(message)
        self.exit_code = exit_code


class UnsupportedError(PcsimError):
    """A valid request which this backend cannot honour; the message gives name and reason."""
