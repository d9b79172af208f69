"""`pcsim data`: list, fetch and verify, without a network."""

from pathlib import Path

import pytest
from dataset_world import World, add_mini
from typer.testing import CliRunner

from pcsim.cli.data import app
from pcsim.errors import DataError

run = CliRunner().invoke


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("COLUMNS", "160")
    return World(tmp_path, monkeypatch)


@pytest.fixture
def mini(world: World) -> dict[str, bytes]:
    return add_mini(world)


def test_list_without_any_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PCSIM_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path)
    result = run(app, ["list"])
    assert result.exit_code == 0
    for text in ("digits", "embedded", "one_billion_word", "CC BY 4.0", "248.1 MB"):
        assert text in result.stdout


def test_list_says_what_is_odd(world: World, mini: dict[str, bytes]) -> None:
    assert "PCSIM_DATA" in run(app, ["list"]).stdout
    (world.data / "m/x_test.gz").unlink()
    world.put("m/y_test.gz", b"short")
    text = " ".join(run(app, ["list"]).stdout.replace("│", " ").split())
    assert "3 of 4" in text
    assert "not the" in text


def test_fetch_downloads_what_is_missing(world: World, mini: dict[str, bytes]) -> None:
    (world.data / "m/x_test.gz").unlink()
    world.served["u://x_test"] = mini["x_test"]
    result = run(app, ["fetch", "mini"])
    assert result.exit_code == 0
    assert "mini: m/x_test.gz: downloaded" in result.stdout
    assert "mini: m/x_train.gz: already there (PCSIM_DATA)" in result.stdout
    assert world.asked == ["u://x_test"]


def test_fetch_without_network(world: World, mini: dict[str, bytes]) -> None:
    (world.data / "m/x_test.gz").unlink()
    result = run(app, ["fetch", "mini"])
    assert isinstance(result.exception, DataError)
    assert "no network" in str(result.exception)


def test_fetch_refuses_a_wrong_name_before_any_download(
    world: World, mini: dict[str, bytes]
) -> None:
    (world.data / "m/x_test.gz").unlink()
    result = run(app, ["fetch", "mini", "minni"])
    assert isinstance(result.exception, DataError)
    assert "did you mean 'mini'" in str(result.exception)
    assert not world.asked


def test_fetch_needs_a_name(world: World) -> None:
    assert run(app, ["fetch"]).exit_code == 2


@pytest.mark.parametrize("arguments", [["verify"], ["verify", "mini"]])
def test_verify_good(world: World, mini: dict[str, bytes], arguments: list[str]) -> None:
    result = run(app, arguments)
    assert result.exit_code == 0
    assert result.stdout.count("ok ") == 4


@pytest.mark.parametrize("arguments", [["verify"], ["verify", "mini"]])
def test_verify_damaged(world: World, mini: dict[str, bytes], arguments: list[str]) -> None:
    path = world.put("m/x_train.gz", mini["x_train"][:-1])
    result = run(app, arguments)
    assert result.exit_code == 1
    bad = [line for line in result.output.splitlines() if line.startswith("BAD")]
    assert len(bad) == 1
    assert str(path) in bad[0]
    assert result.output.count("ok ") == 3


def test_verify_missing_counts_only_when_asked_for(world: World, mini: dict[str, bytes]) -> None:
    (world.data / "m/x_train.gz").unlink()
    assert run(app, ["verify"]).exit_code == 0
    result = run(app, ["verify", "mini"])
    assert result.exit_code == 1
    assert "missing  mini: m/x_train.gz; run `pcsim data fetch mini`" in result.output


def test_verify_embedded_digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path)
    result = run(app, ["verify", "digits"])
    assert result.exit_code == 0
    assert result.stdout.startswith("ok       digits: digits.csv.gz (sha256:09f66e6d")
