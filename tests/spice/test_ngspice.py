"""ngspice in batch mode: waveforms against closed forms, and what is said when it fails."""

from pathlib import Path

import numpy as np
import pytest

from pcsim.errors import StoreError, UnsupportedError
from pcsim.spice import ngspice
from pcsim.spice.ngspice import SpiceError, StoppedEarlyError, read_raw, run

needed = pytest.mark.skipif(bool(ngspice.missing()), reason=ngspice.missing())

RC = """* a capacitor follows one volt
B1 0 x I=1e-3*(1-v(x))
C1 x 0 1u ic=0.25
.options reltol=1e-6
.tran 1e-5 5m uic
.save v(x)
.end
"""
BLOWN = """* dx/dt = exp(x): infinite at t = exp(-x0)
B1 0 x I=1e-3*exp(v(x))
C1 x 0 1u ic=0.25
.tran 1e-4 500m uic
.save v(x)
.end
"""


@needed
def test_a_capacitor_charges_as_its_closed_form(tmp_path: Path) -> None:
    """Binary: x = 1 − ¾ exp(−t/RC), from its initial condition."""
    plot = run(RC, tmp_path).plot
    expected = 1 - 0.75 * np.exp(-plot["time"] / 1e-3)
    assert np.abs(plot["V(X)"] - expected).max() < 1e-5
    assert plot.last["v(x)"] == pytest.approx(expected[-1], abs=1e-5)
    assert plot.last["time"] == pytest.approx(5e-3)
    with pytest.raises(SpiceError, match=r"no variable 'v\(y\)'.*it has time, v\(x\)"):
        plot["v(y)"]


@needed
def test_ascii_complex_and_several_plots(tmp_path: Path) -> None:
    """A control section writes .ac (complex) and .tran (real) as text and as bytes, alike."""
    body = "* low pass\nV1 in 0 dc 1 ac 1\nR1 in x 1k\nC1 x 0 1u\n"
    control = (
        ".control\nset filetype={}\nac dec 5 1 10k\ntran 1e-4 2m\nwrite {} ac1.all tran1.all\n"
    )
    text = body + control.format("ascii", "a.raw") + ".endc\n.end\n"
    run(text, tmp_path)
    run(text.replace("ascii", "binary").replace("a.raw", "b.raw"), tmp_path)
    as_text, as_bytes = read_raw(tmp_path / "a.raw"), read_raw(tmp_path / "b.raw")
    assert len(as_text) == len(as_bytes) == 2
    for one, two in zip(as_text, as_bytes, strict=True):
        assert one.variables == two.variables
        np.testing.assert_allclose(one.values, two.values, rtol=1e-12)
    ac = as_bytes[0]
    expected = 1 / (1 + 2j * np.pi * ac["frequency"] * 1e-3)
    np.testing.assert_allclose(ac["v(x)"], expected, rtol=1e-9)


@needed
def test_no_convergence_is_one_sentence_and_keeps_the_last_good_state(tmp_path: Path) -> None:
    """ngspice stops where dx/dt = exp(x) blows up; the points before are there."""
    with pytest.raises(
        StoppedEarlyError, match=r"no convergence .*last good point is t = 0.0007"
    ) as caught:
        run(BLOWN, tmp_path)
    assert "\n" not in str(caught.value)
    plot = caught.value.done.plot
    reached = plot["time"] < 6e-4
    exact = -np.log(np.exp(-0.25) - plot["time"][reached] / 1e-3)
    assert reached.sum() > 3
    np.testing.assert_allclose(plot["v(x)"][reached], exact, rtol=0.03)


@needed
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("X1 x y nosuch", "unknown subckt"),
        (".include nosuch.lib", "Could not find include file nosuch.lib"),
        ("B2 0 x I=foo(v(x))", "foo"),
    ],
)
def test_a_bad_netlist_is_one_sentence(tmp_path: Path, line: str, said: str) -> None:
    """The first fault that says something, and where the netlist is."""
    with pytest.raises(SpiceError, match=said) as caught:
        run(RC.replace(".options", f"{line}\n.options"), tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


@needed
def test_a_netlist_without_analysis_says_so(tmp_path: Path) -> None:
    """Nothing asked, nothing written."""
    with pytest.raises(SpiceError, match=r"analysis|no simulations"):
        run("* nothing\nR1 a 0 1\nV1 a 0 1\n.end\n", tmp_path).plot  # noqa: B018


@needed
def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """The time limit is in the sentence."""
    slow = RC.replace(".tran 1e-5 5m", ".tran 1e-8 500m 0 1e-8")
    with pytest.raises(SpiceError, match=r"not done after 0.3 s"):
        run(slow, tmp_path, seconds=0.3)


def test_where_it_is_missing_the_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian and conda."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("PCSIM_NGSPICE", raising=False)
    with pytest.raises(UnsupportedError, match=r"apt install ngspice.*conda install .*ngspice"):
        ngspice.program()
    monkeypatch.setenv("PCSIM_NGSPICE", "/nowhere/spice")
    assert "/nowhere/spice" in ngspice.missing()


@pytest.mark.parametrize(
    "text", ["hello", "Title: x\nBinary:\n", "Title: x\nno colon here\n", "Title: x\n"]
)
def test_damaged_raw_files_are_refused(tmp_path: Path, text: str) -> None:
    """One sentence with the path."""
    path = tmp_path / "bad.raw"
    path.write_text(text)
    with pytest.raises(StoreError, match="not a raw file"):
        read_raw(path)
    with pytest.raises(StoreError, match="cannot be read"):
        read_raw(tmp_path / "none.raw")
