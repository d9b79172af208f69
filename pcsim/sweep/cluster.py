"""Jobs on a running dask scheduler, and who may talk to it: whoever has its certificates.

Whoever reaches a scheduler can run any code as the user who started it, and a scheduler can make
its clients run code: what travels is pickled. So both sides show a certificate.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pcsim import config as configuration
from pcsim.errors import ConfigError, InterruptedRunError, PcsimError, UnsupportedError
from pcsim.sweep.processes import Died, Job, Key, Outcome, Outcomes

CONNECT_SECONDS = 10.0
FILES = {"ca": "tls_ca_file", "cert": "tls_client_cert", "key": "tls_client_key"}
"""The fields of a security file, and what dask calls them."""


def compute(
    jobs: Mapping[Key, Job[Outcome]], address: str, certificates: Any
) -> Outcomes[Key, Outcome]:
    """Give all jobs to a scheduler, which gives those of a dead worker to another one."""
    distributed = _distributed()
    with _client(distributed, address, certificates) as client:
        futures = {
            # Not pure: dask must not take the result of an earlier sweep from its memory.
            client.submit(job, pure=False): key
            for key, job in jobs.items()
        }
        for future in distributed.as_completed(list(futures)):
            yield futures.pop(future), _outcome(distributed, future)
            future.release()


def _outcome(distributed: Any, future: Any) -> Any:
    try:
        return future.result()
    except distributed.KilledWorker:
        return Died()
    except distributed.CancelledError:
        raise InterruptedRunError(
            "the dask scheduler has gone; what was finished is stored, "
            "and the same command goes on when there is one again"
        ) from None
    except PcsimError:
        raise
    except Exception as error:
        # Points record their own errors: what arrives here is a worker that cannot work at all.
        raise UnsupportedError(
            f"a dask worker could not take a job ({type(error).__name__}: {error}); "
            "is the same pcsim installed there?"
        ) from error


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise UnsupportedError("--cluster needs dask: pip install 'pcsim[sweep]'") from None
    return distributed


def _client(distributed: Any, address: str, certificates: Any) -> Any:
    try:
        return distributed.Client(address, timeout=CONNECT_SECONDS, security=certificates)
    except (OSError, ValueError, TimeoutError) as error:
        raise UnsupportedError(
            f"--cluster {address}: there is no dask scheduler that answers ({error})"
        ) from None


def certificates(cluster: str, file: Path | None, insecure: bool) -> Any:
    """Return the certificates for a running scheduler, or None if it is trusted without."""
    distributed = _distributed()
    if file and insecure:
        raise ConfigError(f"--security {file}: contradicts --insecure; give one of them")
    if insecure:
        return None
    if file is None:
        raise ConfigError(
            f"--cluster {cluster}: a scheduler can run code on this machine; give its "
            "certificates with --security FILE, or --insecure if you trust all who reach it"
        )
    if not cluster.startswith("tls://"):
        raise ConfigError(f"--cluster {cluster}: certificates need an address tls://HOST:PORT")
    return distributed.Security(**_paths(file), require_encryption=True)


def _paths(file: Path) -> dict[str, str]:
    """Read a security file: three paths, relative to it."""
    given = configuration.read(file)
    if given.keys() != FILES.keys() or not all(isinstance(v, str) for v in given.values()):
        raise ConfigError(f"{file}: must hold three paths, {', '.join(FILES)}; got {sorted(given)}")
    paths = {name: file.parent / given[field] for field, name in FILES.items()}
    for path in paths.values():
        if not path.is_file():
            raise ConfigError(f"{file}: there is no file {path}")
    return {name: str(path) for name, path in paths.items()}
