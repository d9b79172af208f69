"""Who may talk to the scheduler of a sweep: nobody without the certificates of that run."""

import os

import pytest
from sweep_world import assert_same_numbers, small

from pcsim.errors import ConfigError, UnsupportedError
from pcsim.sweep import distribute, sweep

distributed = pytest.importorskip("distributed")


def rejected(address, certificates=None):
    """Whether a client with these certificates can do nothing at a scheduler."""
    try:
        client = distributed.Client(address, security=certificates, timeout=1)
    except (OSError, TimeoutError, TypeError):
        return True
    client.close()
    return False


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_local_workers_listen_to_their_own_run_only():
    with distribute.local_cluster(distributed, 1) as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tls://127.0.0.1:")
        with distributed.Client(cluster) as own:
            workers = list(own.nthreads())
            assert own.submit(os.getpid).result() != os.getpid()  # the control: its own may
        assert workers
        assert all(worker.startswith("tls://127.0.0.1:") for worker in workers)
        assert rejected(address.replace("tls", "tcp"))
        assert rejected(address, distributed.Security.temporary())


def written(folder, security):
    """Write certificates as the owner of a cluster would, with a file that names them."""
    for name, text in (
        ("ca.pem", security.tls_ca_file),
        ("cert.pem", security.tls_client_cert),
        ("key.pem", security.tls_client_key),
    ):
        (folder / name).write_text(text)
    file = folder / "cluster.toml"
    file.write_text('ca = "ca.pem"\ncert = "cert.pem"\nkey = "key.pem"\n')
    return file


def test_a_cluster_with_certificates_takes_the_jobs(tmp_path):
    certificates = distributed.Security.temporary()
    options = {"processes": False, "n_workers": 1, "protocol": "tls://", "security": certificates}
    with distributed.LocalCluster(**options, dashboard_address=distribute.LOCAL_PORT) as cluster:
        there = {"cluster": cluster.scheduler_address, "security": written(tmp_path, certificates)}
        merged = sweep(small(), tmp_path / "s", **there)
    assert_same_numbers(merged, sweep(small(), tmp_path / "calm"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cluster": "tcp://h:1"}, r"--cluster tcp://h:1: a scheduler can run code .* --insecure"),
        ({"cluster": "tls://h:1"}, "--security FILE, or --insecure"),
        ({"cluster": "tcp://h:1", "security": "cluster.toml"}, "need an address tls://"),
        ({"cluster": "tls://h:1", "security": "nothing.toml"}, "there is no such file"),
        ({"cluster": "tls://h:1", "security": "bad.toml"}, "must hold three paths, ca, cert, key"),
        ({"cluster": "tls://h:1", "security": "far.toml"}, "there is no file far/ca.pem"),
        ({"cluster": "tls://h:1", "security": "bad.toml", "insecure": True}, "contradicts"),
        ({"insecure": True}, "give its --cluster"),
    ],
)
def test_what_is_not_safe_is_refused_before_any_work(tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.toml").write_text('ca = "ca.pem"\n')
    (tmp_path / "cluster.toml").write_text('ca = "a"\ncert = "a"\nkey = "a"\n')
    (tmp_path / "far.toml").write_text('ca = "far/ca.pem"\ncert = "a"\nkey = "a"\n')
    with pytest.raises(ConfigError, match=words):
        sweep(small(), tmp_path / "s", **options)
    assert not (tmp_path / "s").exists()


def test_workers_need_what_makes_certificates(tmp_path, monkeypatch):
    def missing(*_):
        raise ImportError("cryptography")

    monkeypatch.setattr(distributed.Security, "temporary", missing)
    with pytest.raises(UnsupportedError, match=r"cryptography, .* pip install 'pcsim\[sweep\]'"):
        sweep(small(), tmp_path / "s", workers=1)
    assert not (tmp_path / "s").exists()
