"""Cells of transistors and networks made of them: laws of weak inversion, engines, refusals."""

import re
import subprocess

import numpy as np
import pytest
from typer.testing import CliRunner

from pcsim.cli import app
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.spice import ngspice
from pcsim.spice.cells import characterize, network, preset, process
from pcsim.spice.cells.library import Sizes, tail
from pcsim.spice.cells.network import ROLES, Task
from pcsim.spice.cells.trim import corner_levels, simulate, supplies, typical_gains

DEFAULT = "bsim4-default"
ALL = frozenset(ROLES)
MISSING = ngspice.missing()
needs_ngspice = pytest.mark.skipif(bool(MISSING), reason=MISSING or "there")


def _sky130_missing() -> str:
    try:
        process.sky130_folder()
    except UnsupportedError as error:
        return str(error)
    return ""


needs_sky130 = pytest.mark.skipif(bool(_sky130_missing()), reason=_sky130_missing() or "there")


def swept(sizes, pins, kind, source="va -0.12 0.12 0.02", current=10e-9):
    at = corner_levels(DEFAULT, sizes)
    lines = [*supplies(at), *tail("bias", current, sizes), "va la low 0"]
    lines += [f"vb hb high {sizes.unit}", f"x1 {pins} bias vcn vcp vdd {kind} {sizes.suffix}"]
    lines += ["vo out low 0"]
    plot = simulate(process.process(DEFAULT), sizes, lines, [f".dc {source}"])[0]
    return plot["v(v-sweep)"].real, plot["i(vo)"].real


@needs_ngspice
def test_a_transconductor_is_a_tanh():
    """I = I_b tanh(v/V_L) in weak inversion; V_L does not depend on the current."""
    widths = []
    for current in (2e-9, 10e-9):
        v, i = swept(Sizes(), "la low out", "transconductor", current=current)
        slope = (i[7] - i[5]) / (v[7] - v[5])
        tail_current = np.ptp(i) / 2 / np.tanh(0.12 / 0.06)
        widths.append(tail_current / slope)
        shape = np.tanh(v / widths[-1])
        assert np.abs(i / np.abs(i).max() - shape / np.abs(shape).max()).max() < 0.05
    assert widths[0] == pytest.approx(widths[1], rel=0.05)
    assert 0.05 < widths[0] < 0.09  # 2 n U_T with n between 1 and 1.7


@needs_ngspice
def test_a_multiplier_is_odd_in_both_inputs_and_scales_with_its_tail():
    sizes = Sizes()
    for current, share in ((10e-9, 1.0), (5e-9, 0.5)):
        _, i = swept(sizes, "la low hb high out", "multiplier", current=current)
        product = i - i[6]
        assert product == pytest.approx(-product[::-1], abs=0.05 * np.abs(product).max())
        gain = typical_gains(DEFAULT, sizes).multiplier
        small = product[7] / (0.02 * sizes.unit)
        assert small == pytest.approx(share * gain, rel=0.1)


@needs_ngspice
def test_ideal_cells_are_the_dendritic_circuit():
    """Ideal cells against RK4 of the torch engine; the error falls with the tolerance."""
    from pcsim.spice.cells.population import learn

    task = Task(samples=8)
    theirs = [rows[0] for rows in learn(task, solver_name="rk4", step=0.1)]
    moved = max(np.abs(a - b).max() for a, b in zip(theirs, task.weights, strict=True))

    def apart(reltol):
        found = network.run(task, DEFAULT, ideal=ALL, reltol=reltol).weights
        return max(np.abs(a - b).max() for a, b in zip(theirs, found, strict=True))

    coarse, fine = apart(1e-4), apart(1e-6)
    assert moved > 0.1
    assert fine < 5e-4
    assert fine < coarse / 3


@needs_ngspice
def test_transistors_learn_and_stay_near_ideal_cells():
    task = Task(samples=120)
    ideal = network.run(task, DEFAULT, ideal=ALL)
    learnt = network.run(task, DEFAULT)
    assert learnt.transistors == network.count(task) == 359
    assert ideal.learnt
    assert learnt.learnt
    assert learnt.apart(ideal) < 0.2
    start = network.Learnt(**(vars(ideal) | {"weights": task.weights}))
    assert learnt.apart(start) > 0.5  # they went where the ideal ones went, not nowhere
    rails = 10e-9 * 1.1 + 0.6e-9
    # 9 forward and 2 feedback cells of 10 nA, and the rest in proportion
    assert 11 * 10e-9 < learnt.supply_current - rails < 2 * 11 * 10e-9


@needs_ngspice
def test_each_role_can_be_ideal():
    task = Task(samples=4)
    names = process.process(DEFAULT)
    for role in ROLES:
        drawn = network.netlist(task, names, Sizes(), ALL - {role})
        assert drawn.transistors == network.count(task, ALL - {role}) > 0
        assert len(re.findall(r"^x\w+ .* vdd multiplier ", drawn.text, re.M)) == (
            {"forward": 9, "learning": 9, "feedback": 2}.get(role, 0)
        )


@needs_ngspice
def test_a_characterised_chip_is_read_by_pcsim(tmp_path):
    from hw_models.preset_file import load

    out = tmp_path / "cells.toml"
    options = ["--process", DEFAULT, "--monte-carlo", "2", "--out", str(out)]
    result = CliRunner().invoke(app, ["spice", "characterize", "all", *options])
    assert result.exit_code == 0, result.output
    chip = load(out)
    learning = chip.pieces["learning"]
    assert learning.gain_error == pytest.approx(0, abs=1e-3)  # what it was trimmed by
    assert learning.gain_spread < 1e-6  # no foundry, no mismatch
    # A tail of I_b gives at most I_b·tanh(u/V_L): V_L/u · (u/V_L)/tanh(u/V_L) units of e·r
    assert 1 < learning.limit < 4
    assert any("ngspice" in line for line in chip.sources)


@needs_ngspice
@needs_sky130
def test_mismatch_of_the_foundry_falls_with_the_root_of_the_area():
    spreads = []
    for side in (2.0, 8.0):
        sizes = Sizes(side, side)
        rows = characterize._static("sky130:tt_mm", sizes, "transconductor", 40, seed=3)
        spreads.append(rows["offset"].std(ddof=1))
    # 40 draws: standard error of each spread 11 %
    assert spreads[0] / spreads[1] == pytest.approx(4, rel=0.45)
    again = characterize._static("sky130:tt_mm", Sizes(8.0, 8.0), "transconductor", 40, seed=3)
    assert again["offset"].std(ddof=1) == spreads[1]
    other = characterize._static("sky130:tt_mm", Sizes(8.0, 8.0), "transconductor", 40, seed=4)
    assert other["offset"].std(ddof=1) != spreads[1]


@needs_ngspice
@needs_sky130
def test_one_bin_is_the_model_of_the_whole_library(tmp_path):
    """A transistor of the foundry's own sub-circuit, all bins included, has the same current."""
    folder = process.sky130_folder()
    files = re.findall(
        r'"(\S+cells/[np]fet_01v8/\S+)"',
        (folder / "models/corners/tt.spice").read_text(encoding="utf-8"),
    )
    whole = [f'.include "{folder / "models/parameters/lod.spice"}"', ".option scale=1u"]
    whole += [".param mc_mm_switch=0 mc_pr_switch=0 sky130_fd_pr__pfet_01v8__dlc_rotweak=0"]
    whole += [".param sky130_fd_pr__nfet_01v8__dlc_rotweak=0"]
    whole += [f'.include "{(folder / "models/corners" / file).resolve()}"' for file in files]
    device = "x1 d g 0 0 sky130_fd_pr__nfet_01v8 w=2 l=2 nf=1"
    bench = ["vg g 0 0.45", "vd d 0 0.5", ".op", ".end", ""]
    models = process.process("sky130:tt")
    (tmp_path / ".spiceinit").write_text(models.start(), encoding="utf-8")
    full = ngspice.run("\n".join(["* whole", *whole, device, *bench]), tmp_path).plot
    lines = ["* one", *models.devices(2, 2), "x1 d g 0 0 nfet w=2 l=2", *bench]
    one = ngspice.run("\n".join(lines), tmp_path).plot
    assert one.last["i(vd)"] == pytest.approx(full.last["i(vd)"], rel=1e-6)
    assert one.last["i(vd)"] < -1e-9


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sky130:xx", "unknown; there are bsim4-default"),
        ("tsmc65", "unknown"),
        ("none.toml", "cannot read none.toml"),
    ],
)
def test_unknown_processes(name, said):
    with pytest.raises(ConfigError, match=said):
        process.process(name)


def test_a_library_of_ones_own(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('library = "lost.lib"\nnmos = "n"\npmos = "p"\n')
    with pytest.raises(ConfigError, match=r"there is no library .*lost\.lib"):
        process.process(str(file))
    file.write_text('library = "lost.lib"\nnmos = "n"\n')
    with pytest.raises(ConfigError, match="needs pmos"):
        process.process(str(file))
    file.write_text("corner = 3\n")
    with pytest.raises(ConfigError, match="unknown 'corner'"):
        process.process(str(file))


@needs_ngspice
def test_a_library_of_ones_own_gives_the_numbers_of_the_same_models(tmp_path):
    head = "\n".join(process.process(DEFAULT).head)
    (tmp_path / "models.lib").write_text(f".lib tt\n{head}\n.endl tt\n")
    file = tmp_path / "mine.toml"
    fields = {"library": "models.lib", "section": "tt", "nmos": "nch", "pmos": "pch"}
    file.write_text("".join(f'{key} = "{value}"\n' for key, value in fields.items()))
    assert typical_gains(str(file), Sizes()) == typical_gains(DEFAULT, Sizes())


def test_the_package_of_the_foundry_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setattr(process.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnsupportedError, match=r"not installed: pip .* 'pcsim\[spice\]'"):
        process.process("sky130:tt")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["xor", "--layers", "2-400-1"], "needs about .* minutes of CPU time"),
        (["nand"], "task: 'nand' is unknown; there are and, or, xor"),
        (["and", "--layers", "2x2"], "layers: write units as 2-4-1"),
        (["and", "--layers", "3-2-1"], "layers: must be 2-n-1"),
        (["and", "--samples", "6"], "multiple of 4"),
        (["and", "--ideal", "somas"], "'somas' is no role"),
        (["and", "--width", "0.1"], "width: must be 0.42 to 100"),
        (["and", "--draws", "3"], "draws: .* has no mismatch to draw 3 times"),
    ],
)
@needs_ngspice
def test_bad_input_is_one_sentence(arguments, said):
    full = ["spice", "transistor", *arguments, "--process", DEFAULT]
    result = CliRunner().invoke(app, full)
    assert result.exit_code != 0
    assert re.search(said, str(result.exception))
    assert isinstance(result.exception, ConfigError | UnsupportedError)


def test_ngspice_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setenv("PCSIM_NGSPICE", "/no/such/program")
    result = CliRunner().invoke(app, ["spice", "transistor", "and", "--process", DEFAULT])
    assert "ngspice is needed" in str(result.exception)


def test_characterize_refuses_half_a_chip(tmp_path):
    arguments = ["spice", "characterize", "buffer", "--out", str(tmp_path / "a.toml")]
    assert "needs all cells" in str(CliRunner().invoke(app, arguments).exception)
    with pytest.raises(ConfigError, match="'amplifier' is unknown"):
        characterize.characterize(DEFAULT, Sizes(), 2, 1e-3, 1e-2, ("amplifier",))
    with pytest.raises(ConfigError, match="at least 2 draws"):
        characterize.characterize(DEFAULT, Sizes(), 1, 1e-3, 1e-2)


@needs_ngspice
def test_the_folder_runs_without_pcsim(tmp_path):
    found = network.run(Task(samples=4), DEFAULT, ideal=ALL, folder=tmp_path)
    (tmp_path / ngspice.RAW).unlink()
    command = [ngspice.program(), "-b", "-r", "again.raw", ngspice.NETLIST]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    again = ngspice.read_raw(tmp_path / "again.raw")[0]
    at = corner_levels(DEFAULT, Sizes())
    weight = (again["v(w1_0_0)"] - at.high) / Sizes().unit
    assert weight == pytest.approx(found.waves["w1_0_0"], abs=1e-6)


def test_a_chip_file_without_faults_is_the_ideal_population(tmp_path):
    """Offsets move learnt weights; a chip whose pieces do nothing moves none."""
    means = []
    for sigma in (0.0, 0.2):
        file = tmp_path / f"chip_{sigma:g}.toml"
        lines = ['name = "chip"', 'about = "a test"', 'sources = ["none"]', "[pieces.a]"]
        file.write_text("\n".join([*lines, 'kind = "offset"', 'of = "error"', f"sigma = {sigma}"]))
        options = ["--chips", "3", "--samples", "8"]
        result = CliRunner().invoke(app, ["spice", "population", str(file), *options])
        assert result.exit_code == 0, result.exception
        means.append(float(re.search(r"ideal hardware (\S+),", result.output)[1]))
    assert means[0] < 1e-9
    assert means[1] > 0.01


@needs_ngspice
def test_offsets_that_were_put_in_are_found():
    """The bilinear fit returns the offsets and gain of a product that has them."""
    sizes, grid = Sizes(), np.array([-1.0, 0.0, 1.0])
    gain = typical_gains(DEFAULT, sizes).multiplier * sizes.unit**2
    a, b = grid[None, :], grid[:, None]
    current = 1.1 * gain * ((a + 0.2) * (b - 0.3) + 0.05)
    fit = characterize._bilinear(current.reshape(9, 1), sizes, DEFAULT, "multiplier")
    found = {key: float(value[0]) for key, value in fit.items()}
    expected = {"gain": 1.1, "offset_a": 0.2, "offset_b": -0.3, "offset_out": 0.05}
    assert found == pytest.approx(expected, rel=1e-9)
    assert preset._digits(0.123456) == 0.1235
