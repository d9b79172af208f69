"""Bad inputs over all verbs: one sentence on stderr, no traceback, exit code 2."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import exit_code

GOOD = 'network = { sizes = [64, 8, 10] }\ndata = { name = "digits", limit = 200 }\n'
FILES = {
    "good.toml": GOOD,
    "continuous.toml": GOOD + 'run = { backend = "continuous" }\n',
    "torn.toml": "network = { sizes = [64",
    "empty.toml": "",
    "unknown.toml": GOOD + "colour = 1\n",
    "typed.toml": 'network = { sizes = "64" }\n',
    "short.toml": "network = { sizes = [64] }\n",
    "shape.toml": 'network = { sizes = [63, 10] }\ndata = { name = "digits" }\n',
    "sweep.toml": GOOD + '[sweep]\n"learning.alpha" = []\n',
    "no_axis.toml": GOOD + '[sweep]\n"learning.colour" = [1, 2]\n',
    "chip.toml": '[pieces.noise]\nkind = "read_nois"\nsigma = 1\n',
    "curve.csv": "pulse,conductance\n1,2\n",
    "text.csv": "pulse,conductance\none,two\nthree,four\n",
    "log.csv": "epoch,val_acc\n1,50\n",
    "other.csv": "seed,test_accuracy\n0,0.5\n",
    "bad.jsonl": "{epoch: 1}\n",
    "list.jsonl": "[1]\n",
    "not.h5": "this is text",
    "mine.png": "my own picture",
    "data.npz": "no archive",
    "binary.toml": b"\xff\xfe\x00",
}
COMMANDS = """
run missing.toml
run torn.toml
run empty.toml
run unknown.toml
run typed.toml
run short.toml
run shape.toml
run binary.toml
run .
run sweep.toml
run good.toml --set learning.alpha
run good.toml --set learning.alpha=fast
run good.toml --set learning.colour=1
run good.toml --set learning.alpha=-1
run good.toml --set schedule.rule=hebb
run good.toml --set network.f=tanhh
run good.toml --set network.f=x*y
run good.toml --set data.name=mnits
run good.toml --set data.name=none.npz
run good.toml --set data.name=data.npz
run good.toml --set data.limit=100000000
run good.toml --set run.device=warp
run good.toml --set run.dtype=float16
run good.toml --set run.seeds=[1,1]
run good.toml --set circuit.kind=dendritc
run good.toml --set circuit.tau_x=5
run good.toml --set hardware.preset=unobtainium
run good.toml --out result.txt
run good.toml --out not.h5
run continuous.toml --set solver.name=leapfrog
run continuous.toml --set circuit.kind=error_units
run continuous.toml --set stream.t_pres=-1
run continuous.toml --set hardware.chips=0
check --hardware unobtainium
check --hardware chip.toml
check --present never
check --tolerance -5
check --yield 300
check missing.toml
check good.toml --regime chaos
margins --hardware ideal
margins --hardware ecram_li --only device.colour
margins --hardware unobtainium
remedies --hardware ideal
specs --hardware ecram_li
margins missing.toml
margins --tolerance -5
sweep good.toml
sweep sweep.toml
sweep no_axis.toml
sweep missing.toml
sweep no_axis.toml --workers 0
compare good.toml
compare missing.h5 not.h5
compare not.h5 other.csv
compare log.csv other.csv
compare log.csv other.csv --column test_accuracy=val_ac
compare log.csv other.csv --column test_accuracy=val_acc
compare log.csv other.csv --column colour=val_acc
compare log.csv other.csv --column test_accuracy
compare bad.jsonl other.csv
compare list.jsonl other.csv
compare other.csv log.csv --target 50
compare other.csv log.csv --confidence 95
compare other.csv log.csv --at alpha=big
compare other.csv log.csv --name one
compare other.csv log.csv --train-samples 0
report missing.h5
report not.h5
report good.toml
experiment alchemy
experiment speed --scale paper
experiment stability --device cuda
experiment complexity --scale huge
data fetch mnits
data verify mnits
hardware show unobtainium
hardware kinds read_nois
hardware check missing.toml
hardware check torn.toml
hardware check chip.toml
hardware new chip.txt
hardware new new.toml --bits 0
hardware new new.toml --read-noise lots
hardware new new.toml --preset unobtainium
hardware new chip.toml
hardware fit missing.csv -o new.toml
hardware fit curve.csv -o new.toml
hardware fit text.csv -o new.toml
config colour
config learning.colour
equations missing.toml
equations good.toml --set circuit.kind=none
equations continuous.toml --script circuit.txt
equations continuous.toml --script mine.png
cost missing.toml
cost torn.toml
deploy missing.toml
deploy not.h5
deploy --hardware unobtainium
deploy --hardware photonic
deploy --hardware rram_wan --wait 1h
deploy --hardware pcm_programmed --program sloppy
deploy --hardware pcm_programmed --wait soon
doctor --device warp
spice export missing.toml --out folder
spice export good.toml --out folder
spice population missing.toml
"""
LIST = [line.split() for line in COMMANDS.strip().splitlines()]
USAGE = [
    ["levitate"],
    ["run"],
    ["run", "good.toml", "--colour"],
    ["sweep", "no_axis.toml", "--workers", "many"],
    ["hardware", "levitate"],
    ["compare", "a", "b", "--confidence", "high"],
]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    for name, content in FILES.items():
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("arguments", LIST, ids=" ".join)
def test_a_bad_input_is_refused_in_one_sentence(arguments, folder, monkeypatch, capsys):
    before = sorted(path.name for path in folder.rglob("*"))
    assert exit_code(arguments, monkeypatch) == 2
    told = capsys.readouterr()
    sentences = [line for line in told.err.splitlines() if line.startswith("error: ")]
    if arguments[:2] == ["hardware", "check"]:  # one for every fault, and how many there are
        assert sentences.pop().endswith(f"{len(sentences)} error, see above")
    else:
        assert told.err.strip().splitlines()[-1] == sentences[0]
    assert len(sentences) == 1, told.err
    assert len(sentences[0]) > 25
    assert "Traceback" not in told.err + told.out
    assert "Error:" not in sentences[0], "the name of a class is no sentence"
    kept = {path.name for path in folder.rglob("*") if path.is_file()}
    assert set(FILES) <= kept
    assert not [n for n in kept - set(before) if n.endswith((".h5", ".png", ".html"))]


@pytest.mark.parametrize("arguments", USAGE, ids=" ".join)
def test_a_wrong_word_on_the_command_line(arguments, folder, monkeypatch, capsys):
    assert exit_code(arguments, monkeypatch) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_there_are_enough_of_them_over_all_verbs():
    assert len(LIST) >= 60
    asked = {arguments[0] for arguments in LIST}
    assert asked >= {"run", "check", "sweep", "compare", "report", "experiment", "data", "hardware"}
    assert asked >= {"config", "equations", "doctor", "cost", "spice"}


@pytest.mark.parametrize(
    ("words", "wanted"),
    [("pcsim che", "check"), ("pcsim hardware ki", "kinds"), ("pcsim run --s", "--set")],
)
def test_the_shell_completes_verbs_and_options(words, wanted):
    """As the script of `pcsim --show-completion` asks."""
    asked = {"_PCSIM_COMPLETE": "complete_bash", "COMP_WORDS": words}
    asked |= {"COMP_CWORD": str(len(words.split()) - 1)}
    code = "import sys; from pcsim.cli import main; sys.argv = ['pcsim']; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **asked}, capture_output=True, text=True
    )
    assert wanted in done.stdout.split(), done.stderr
