"""Who may talk to a dask scheduler: certificates made for one run, or those of a running cluster.

Whoever reaches a scheduler can run any code as the user who started it, and a scheduler can make
its clients run code: what travels is pickled. So both sides show a certificate.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pcsim import config as configuration
from pcsim.errors import ConfigError, UnsupportedError

FILES = {"ca": "tls_ca_file", "cert": "tls_client_cert", "key": "tls_client_key"}
"""The fields of a security file, and what dask calls them."""


def for_one_run(distributed: Any) -> Any:
    """Return certificates that nobody else has; they live in memory and end with the run."""
    try:
        return distributed.Security.temporary()
    except ImportError:
        raise UnsupportedError(
            "--workers needs the package cryptography, which makes the certificates of the "
            "processes: pip install 'pcsim[sweep]'"
        ) from None


def of_cluster(distributed: Any, cluster: str, file: Path | None, insecure: bool) -> Any:
    """Return the certificates for a running scheduler, or None if it is trusted without."""
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
    found = {name: file.parent / given[field] for field, name in FILES.items()}
    for path in found.values():
        if not path.is_file():
            raise ConfigError(f"{file}: there is no file {path}")
    return {name: str(path) for name, path in found.items()}
