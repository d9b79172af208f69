"""The configuration: what is read, what is filled in, and what is refused in which words."""

import tomllib
from math import inf, nan
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcsim import config
from pcsim.config import Config
from pcsim.energies import Categorical, Gaussian
from pcsim.errors import ConfigError
from pcsim.meaning import LeftOutWarning

SIZES = {"sizes": [64, 8, 10]}
FULL = """
[network]
sizes = [64, 8, 10]
f = "relu"
convention = "post"
output = { kind = "categorical" }
hidden = { variance = 2.0, learned = true, floor = 0.25 }

[schedule]
rule = "pc"
T = 5
gamma = 0.2
init = "normal"

[learning]
optimizer = "adamw"
weight_decay = 1
betas = [0.8, 0.99]
batch = 16
patience = 3

[data]
name = "digits"
validation = 100

[run]
seeds = [3, 1, 2]
dtype = "float64"

[grid]
alpha = [0, 1e-2]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def sentence(data: dict) -> str:
    """Return the refusal of a configuration; a good network is added unless one is given."""
    with pytest.raises(ConfigError) as caught:
        config.parse({"network": SIZES} | data, "here.toml")
    text = str(caught.value)
    assert text.startswith("here.toml: ")
    assert "\n" not in text
    return text.removeprefix("here.toml: ")


def test_toml_is_read_field_by_field(tmp_path):
    loaded = config.load(write(tmp_path, FULL))
    assert loaded.network.sizes == (64, 8, 10)
    assert loaded.run.seeds == (3, 1, 2)
    assert loaded.grid.alpha == (0.0, 1e-2)
    assert (loaded.schedule.rule, loaded.schedule.T, loaded.schedule.init) == ("pc", 5, "normal")
    # a whole number where a real one is wanted is no mistake
    assert (type(loaded.learning.weight_decay), loaded.learning.weight_decay) == (float, 1.0)
    network = loaded.network.build()
    assert isinstance(network.nodes[0].energy, Categorical)
    assert network.nodes[1].energy == Gaussian(2.0, True, 0.25)
    # what the file sets is what is dumped; everything else is the default
    given_data, dumped = tomllib.loads(FULL), loaded.model_dump(mode="json")
    plain = config.parse({"network": SIZES}).model_dump(mode="json")
    for section, fields in dumped.items():
        for name, value in fields.items():
            expected = given_data.get(section, {}).get(name, plain[section][name])
            if isinstance(expected, dict):
                expected = plain[section][name] | expected
            assert value == expected, (section, name)


def test_defaults_need_only_the_sizes(tmp_path):
    loaded = config.load(write(tmp_path, "network.sizes = [64, 10]"))
    assert loaded == config.parse({"network": {"sizes": [64, 10]}})
    assert (loaded.schedule.rule, loaded.schedule.init, loaded.learning.optimizer) == (
        "ipc",
        "ff",
        "sgd",
    )
    assert (loaded.run.seeds, loaded.run.automatic, loaded.grid.alpha) == ((0,), False, ())


def test_overrides_win_and_parse_as_toml(tmp_path):
    changes = {
        "learning.weight_decay": "2.5e-3",
        "network.sizes": "[64, 4, 10]",
        "schedule.rule": "zil",  # a bare word needs no quotes
        "schedule.init": '"ff"',
        "data.centre": "true",
        "network.output.kind": "gaussian",
        "record.predictions": "false",  # a section that the file does not have
    }
    with pytest.warns(
        LeftOutWarning, match=r"schedule\.T of .*config\.toml is left out: with --set"
    ):
        loaded = config.load(write(tmp_path, FULL), changes)
    assert loaded.learning.weight_decay == 2.5e-3
    assert loaded.network.sizes == (64, 4, 10)
    assert (loaded.schedule.rule, loaded.schedule.init) == ("zil", "ff")
    assert loaded.data.centre is True
    assert loaded.network.output.kind == "gaussian"
    assert loaded.record.predictions is False
    assert loaded.learning.batch == 16  # not touched


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("learning.alhpa", "1", "learning.alhpa: unknown name; did you mean 'alpha'?"),
        ("learning.alpha", "small", "learning.alpha: must be a valid number, got 'small'"),
        ("learning.alpha", "", "learning.alpha: must be a valid number, got ''"),
        ("schedule", "3", "schedule: must be a section, got 3"),
        ("schedule.rule.x", "3", "--set schedule.rule.x: 'rule' is a value, not a section"),
        ("network.sizes", "[64, 10", "network.sizes: must be a list, got '[64, 10'"),
    ],
)
def test_bad_overrides(tmp_path, name, text, words):
    with pytest.raises(ConfigError) as caught:
        config.load(write(tmp_path, FULL), {name: text})
    assert words in str(caught.value)


def net(**fields: object) -> dict:
    return {"network": SIZES | fields}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        # unknown names, with a suggestion where one is near
        ({"lerning": {}}, "lerning: unknown name; did you mean 'learning'?"),
        (net(output={"varianc": 1}), "network.output.varianc: unknown name; did you mean 'varia"),
        ({"grid": {"zzz": [1]}}, "grid.zzz: unknown name; known here: alpha, weight_decay, gamma"),
        # numbers out of range
        ({"learning": {"alpha": -1}}, "learning.alpha: must be greater than or equal to 0, got -1"),
        ({"schedule": {"gamma": 0}}, "schedule.gamma: must be greater than 0, got 0"),
        ({"learning": {"alpha": nan}}, "learning.alpha: must be a finite number, got nan"),
        ({"learning": {"alpha": inf}}, "learning.alpha: must be a finite number, got inf"),
        ({"learning": {"weight_decay": -1e-9}}, "learning.weight_decay: must be greater than or"),
        ({"learning": {"momentum": nan}}, "learning.momentum: must be a finite number, got nan"),
        ({"learning": {"betas": [0.9, 1]}}, "learning.betas.1: must be less than 1, got 1"),
        ({"learning": {"betas": [nan, 0]}}, "learning.betas.0: must be a finite number, got nan"),
        ({"learning": {"betas": [0.9]}}, "learning.betas.1: is missing"),
        ({"learning": {"epochs": 0}}, "learning.epochs: must be greater than or equal to 1, got 0"),
        ({"schedule": {"gamma": -inf}}, "schedule.gamma: must be a finite number, got -inf"),
        ({"schedule": {"T": 0}}, "schedule.T: must be greater than or equal to 1, got 0"),
        ({"schedule": {"discount": 1.1}}, "schedule.discount: must be less than or equal to 1"),
        (net(prior=nan), "network.prior: must be a finite number, got nan"),
        (net(hidden={"variance": 0}), "network.hidden.variance: must be greater than 0, got 0"),
        ({"grid": {"gamma": [0.1, nan]}}, "grid.gamma.1: must be a finite number, got nan"),
        ({"run": {"seeds": [-1]}}, "run.seeds.0: must be greater than or equal to 0, got -1"),
        ({"run": {"seeds": [2**63]}}, "run.seeds.0: must be less than 9223372036854775808"),
        ({"convergence": {"rtol": 0}}, "convergence.rtol: must be greater than 0, got 0"),
        # wrong types, also those that would convert
        ({"learning": {"alpha": "big"}}, "learning.alpha: must be a valid number, got 'big'"),
        ({"learning": {"alpha": True}}, "learning.alpha: must be a valid number, got True"),
        ({"learning": {"batch": 1.5}}, "learning.batch: must be a valid integer, got 1.5"),
        ({"learning": {"batch": "32"}}, "learning.batch: must be a valid integer, got '32'"),
        ({"run": {"automatic": 1}}, "run.automatic: must be a valid boolean, got 1"),
        ({"run": {"seeds": 3}}, "run.seeds: must be a list, got 3"),
        ({"run": {"device": 7}}, "run.device: must be a valid string, got 7"),
        ({"schedule": []}, "schedule: must be a section, got []"),
        # choices
        ({"schedule": {"rule": "ipx"}}, "schedule.rule: must be 'bp', 'pc', 'zil' or 'ipc', got '"),
        (
            net(f="tahn"),
            "network.f: unknown nonlinearity 'tahn'; did you mean 'tanh'? choose",
        ),
        # sizes and sections
        ({"network": {}}, "network.sizes: is missing"),
        ({"network": {"sizes": [64]}}, "network.sizes: must be a list of at least 2 items, got"),
        ({"network": {"sizes": [64, 0, 10]}}, "network.sizes.1: must be greater than or equal to"),
        ({"network": {"sizes": [64, -8, 10]}}, "network.sizes.1: must be greater than or equal to"),
        # contradictions
        ({"run": {"automatic": True}}, "run.automatic needs schedule.rule = 'ipc' and learning.ba"),
        (
            {"run": {"automatic": True}, "learning": {"batch": 0}, "schedule": {"rule": "pc"}},
            "run.automatic needs schedule.rule = 'ipc'",
        ),
        (
            {"run": {"automatic": True}, "learning": {"batch": 0}, "schedule": {"discount": 0.5}},
            "run.automatic needs schedule.discount = 1 and learning.anneal = 'none'",
        ),
        (
            {"run": {"automatic": True}, "learning": {"batch": 0, "anneal": "cosine"}},
            "run.automatic needs schedule.discount = 1 and learning.anneal = 'none'",
        ),
        ({"schedule": {"rule": "zil", "init": "carry"}}, "schedule: Z-IL needs init = 'ff'"),
        (
            {"schedule": {"rule": "bp"}, "data": {"mode": "generative"}},
            "schedule.rule 'bp' needs data.mode = 'supervised'",
        ),
        ({"learning": {"patience": 2}}, "learning.patience needs data.validation > 0"),
        ({"run": {"seeds": [1, 2, 1]}}, "run.seeds must be different numbers, got [1, 2, 1]"),
        ({"run": {"seeds": []}}, "run.seeds must be different numbers, got []"),
        ({"grid": {"alpha": [0.1, 0.1]}}, "grid.alpha must be different numbers, got [0.1, 0.1]"),
    ],
)
def test_one_sentence_names_the_field_and_what_is_allowed(data, words):
    assert sentence(data).startswith(words)


def test_changes_may_not_be_meaningless_themselves(tmp_path):
    text = "network.sizes = [64, 10]\nrecord.units = 3"
    with pytest.raises(ConfigError, match=r"convergence\.window: has no meaning"):
        config.load(write(tmp_path, FULL), {"convergence.window": "7"})
    with pytest.raises(ConfigError, match=r"record\.units: has no meaning"):
        config.load(write(tmp_path, text), {"learning.alpha": "0.1"})  # it had none before


def test_every_field_at_fault_is_named_at_once():
    text = sentence({"learning": {"alpha": -1, "batch": -2}, "schedule": {"T": 0}})
    assert [part.split(":")[0] for part in text.split("; ")] == [
        "schedule.T",
        "learning.alpha",
        "learning.batch",
    ]


def test_missing_section():
    with pytest.raises(ConfigError, match=r"^configuration: network: is missing$"):
        config.parse({})


def test_files_that_cannot_be_read(tmp_path):
    missing = tmp_path / "none.toml"
    with pytest.raises(ConfigError) as caught:
        config.load(missing)
    assert str(caught.value) == f"{missing}: there is no such file"
    with pytest.raises(ConfigError, match="cannot be read"):
        config.load(tmp_path)
    with pytest.raises(ConfigError, match=r"config\.toml: is not valid TOML: .*line 2"):
        config.load(write(tmp_path, "[network]\nsizes = [64,,10]"))
    latin = tmp_path / "latin.toml"
    latin.write_bytes("# Größe\nnetwork.sizes = [64, 10]".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"latin\.toml: cannot be read .*utf-8") as caught:
        config.load(latin)
    assert "\n" not in str(caught.value)


def test_frozen():
    with pytest.raises(ValueError, match="frozen"):
        config.parse({"network": SIZES}).learning.alpha = 3.0  # type: ignore[misc]


positive = st.floats(min_value=1e-30, max_value=1e30)


@settings(max_examples=50, deadline=None)
@given(
    alpha=positive,
    gammas=st.lists(positive, unique=True, max_size=3),
    seeds=st.lists(st.integers(0, 2**63 - 1), unique=True, min_size=1, max_size=3),
    size=positive,
)
def test_json_round_trip_is_exact(alpha, gammas, seeds, size):
    one = config.parse(
        {
            "network": SIZES | {"output": {"variance": size}},
            "learning": {"alpha": alpha},
            "grid": {"gamma": gammas},
            "run": {"seeds": seeds},
        }
    )
    back = config.from_json(one.to_json())
    assert isinstance(back, Config)
    assert back == one
    assert back.to_json() == one.to_json()


def test_stored_text_that_is_no_configuration():
    with pytest.raises(ConfigError, match="stored configuration: is not valid JSON"):
        config.from_json("{nope")
    with pytest.raises(ConfigError, match="stored configuration: network: is missing"):
        config.from_json("{}")
