"""Who may talk to a scheduler: whoever shows its certificates, or is trusted in so many words."""

import pytest
from sweep_world import assert_same_numbers, small

from pcsim.errors import ConfigError
from pcsim.sweep import sweep

distributed = pytest.importorskip("distributed")


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
    with distributed.LocalCluster(**options, dashboard_address="127.0.0.1:0") as cluster:
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
