"""The nouns and the one call: they are the file in another form, and refuse what it refuses."""

import json

import numpy as np
import pytest

import hw_models
import pcsim
from pcsim import (
    Algebraic,
    Dendritic,
    ErrorUnits,
    Learner,
    Network,
    Record,
    Recording,
    Solver,
    Stream,
    compare,
    config_of,
    simulate,
)
from pcsim import config as configuration
from pcsim.architectures.choice import section_of
from pcsim.architectures.graph import Graph
from pcsim.architectures.mlp import Mlp
from pcsim.check.rows import CHIP, settings_of
from pcsim.config import Convergence, Grid
from pcsim.energies import Categorical, Gaussian
from pcsim.errors import ConfigError, DataError, UnsupportedError
from pcsim.maps import Dense, Sum
from pcsim.network import Node
from pcsim.run import run
from pcsim.simulate import nouns
from pcsim.sweep import make_sweep

SMALL = Network.mlp([64, 5, 10])
DIGITS = Stream.of("digits", limit=6, limit_test=20)


def branched():
    """Two paths to the output, and one node with a variance of its own."""
    return Network(
        (
            Node((10,), Sum(10), (1, 2), Gaussian()),
            Node((10,), Dense(6, 10, "tanh"), (3,), None),
            Node((10,), Dense(4, 10, "x/(1 + abs(x))"), (4,), None),
            Node((6,), Dense(64, 6), (5,), Gaussian((1.0, 2.0, 1.0, 1.0, 0.5, 1.0))),
            Node((4,), Dense(64, 4, bias=False), (5,), Gaussian()),
            Node((64,)),
        )
    )


@pytest.mark.parametrize(
    "network",
    [
        Network.mlp([64, 32, 10]),
        Network.mlp([64, 10]),
        Network.mlp([64, 8, 6, 10], "relu", bias=False, output=Categorical()),
        Network.mlp([64, 8, 6, 10], "x/(1 + abs(x))", convention="post", f_output=True),
        Network.mlp([64, 8, 10], f_input=True, hidden=Gaussian(2.0), prior=0.5),
        Network.mlp([64, 8, 7, 10], "sigmoid", hidden=Gaussian(0.5, learned=True, floor=0.01)),
        Network.mlp([64, 8, 7, 10], hidden=Categorical()),
        Network.mlp([64, 8, 10], "identity"),
    ],
)
def test_multilayer_networks_are_told_in_a_line(network):
    section = section_of(network)
    assert isinstance(section, Mlp)
    assert section.build() == network
    assert Graph.of(network).build() == network


@pytest.mark.parametrize(
    "network",
    [
        branched(),
        Network.cnn(image=[1, 8, 8], channels=[2], pool="max", dense=[5], classes=10),
        Network.transformer(vocabulary=11, positions=4, features=6, heads=2, blocks=1),
    ],
)
def test_any_graph_is_written_and_read(network):
    config = config_of(network, DIGITS)
    stored = configuration.from_json(config.to_json())
    assert stored == config
    assert stored.network.build() == network


def test_own_graphs_run_like_what_they_are():
    """A graph with the nodes of a multilayer network is that network; another one trains too."""
    graph = config_of(Graph.of(SMALL), DIGITS, dtype="float64")
    assert graph.network.kind == "graph"
    expected = simulate(SMALL, DIGITS, dtype="float64")
    np.testing.assert_array_equal(run(graph)["parameters"], expected["parameters"])
    moved = simulate(branched(), DIGITS, dtype="float64")["weight_change"]
    assert (moved[..., -1] > 0).all()


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ({"shape": [10], "map": {"type": "dens"}}, "map.type: must be one of scores, mix, dense"),
        ({"shape": [10], "map": {"type": "dense", "n": 3}}, "map.n: unknown name; known for 'dens"),
        ({"shape": [10], "map": {"type": "dense"}}, "cannot be made of these fields"),
        ({"shape": [10], "energy": {"type": "laplace"}}, "energy.type: must be one of gaussian"),
        ({"shape": [10], "parents": [4]}, "must point to later nodes"),
        ({"shape": []}, "network.nodes.0.shape: must be a list of at least 1 items"),
    ],
)
def test_graphs_that_are_none(node, words):
    data = {"network": {"kind": "graph", "nodes": [node, {"shape": [64]}]}}
    with pytest.raises(ConfigError) as error:
        configuration.parse(data)
    assert words in str(error.value)


FILES = {
    "discrete": 'network.sizes = [64, 5, 10]\nlearning.batch = 4\nschedule.rule = "pc"\n',
    "zil": 'network.sizes = [64, 5, 10]\nschedule.rule = "zil"\ndata.limit = 130\n',
    "bp": 'network.sizes = [64, 5, 10]\nschedule.rule = "bp"\nlearning.optimizer = "adam"\n',
    "continuous": """network = { sizes = [64, 5, 10], f = "relu" }
run = { backend = "continuous", seeds = [3, 5], dtype = "float64" }
circuit = { kind = "error_units", tau_err = 0.2 }
solver = { name = "heun", dt = 0.1 }
stream = { t_pres = 2.0, tau_label = 0.5 }
record.every = 3
""",
    "hardware": """network.sizes = [64, 5, 10]
run.backend = "continuous"
hardware = { preset = "ecram_li", chips = 3, seed = 4 }
solver.noise_seed = 3
""",
    "automatic": """network.sizes = [64, 5, 10]
learning.batch = 0
run = { automatic = true }
convergence.max_steps = 50
""",
    "generative": """network = { sizes = [3, 64], prior = 0.0 }
data = { mode = "generative", limit = 200 }
""",
    "cnn": 'network = { kind = "cnn", image = [1, 8, 8], channels = [2], dense = [] }\n',
    "brian": """network.sizes = [64, 5, 10]
run.backend = "brian"
brian.target = "numpy"
learning = { batch = 1 }
""",
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_its_nouns(tmp_path, name):
    file = tmp_path / "run.toml"
    file.write_text(FILES[name])
    config = configuration.load(file)
    assert config_of(**nouns(config)) == config
    assert config_of(**pcsim.read(file)).to_json() == config.to_json()


def test_streams_are_physical_unless_told_otherwise():
    config = config_of(SMALL, Stream.of("digits"))
    assert (config.learning.batch, config.learning.epochs, config.schedule.init) == (1, 1, "carry")
    assert config.run.backend == "continuous"
    assert config_of(SMALL, Stream.of("digits", present=3.0)).stream.t_pres == 3.0
    bp = config_of(SMALL, Stream.of("digits"), learner=Learner(rule="bp"))
    assert (bp.run.backend, bp.schedule.rule) == ("discrete", "bp")
    until = config_of(SMALL, Stream.of("digits"), until=Convergence(max_steps=9))
    assert (until.run.automatic, until.learning.batch) == (True, 0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"engine": "discrete", "circuit": Dendritic()}, "circuit.kind: has no meaning in this"),
        ({"engine": "discrete", "solver": Solver(name="rk4")}, "solver.name: has no meaning"),
        ({"learner": Learner(rule="bp", T=4)}, "schedule.T: has no meaning"),
        ({"learner": Learner(momentum=0.5)}, "learning.momentum: has no meaning"),
        ({"record": Record(units=3)}, "record.units: has no meaning"),
        ({"engine": "warp"}, "run.backend: must be 'discrete', 'continuous'"),
        ({"hardware": "ecram_lo"}, "there is no preset 'ecram_lo'; did you mean 'ecram_"),
        ({"seeds": []}, "run.seeds must be different numbers"),
        ({"chips": 0}, "hardware.chips"),
    ],
)
def test_nothing_is_ignored(given, words):
    with pytest.raises(ConfigError) as error:
        config_of(SMALL, DIGITS, **given)
    assert words in str(error.value)
    stream = Stream.of("digits", init="zero")
    with pytest.raises(ConfigError, match=r"schedule\.init: has no meaning"):
        config_of(SMALL, stream, learner=Learner(rule="bp"))


def test_nouns_refuse_in_one_sentence():
    with pytest.raises(ConfigError, match=r"Stream: batsh: unknown name; did you mean 'batch'\?"):
        Stream.of("digits", batsh=3)
    with pytest.raises(ConfigError, match="Learner: alpha: must be"):
        Learner(alpha=-1.0)
    with pytest.raises(DataError, match=r"Stream\.from_arrays: x has 6 samples, but y 3"):
        Stream.from_arrays(np.zeros((6, 3)), [0, 1, 2])


def test_own_hardware_objects():
    """An object is its pieces: also without a name, or with the name of a preset."""
    noise = {"noise": {"kind": "read_noise", "where": "weight", "sigma": 0.1}}
    chip = hw_models.describe("ideal", noise)
    assert chip.name == "ideal"
    own = config_of(SMALL, DIGITS, hardware=chip, chips=2, dtype="float64")
    assert not own.hardware.ideal
    assert own.hardware.preset == "own"
    file = config_of(
        SMALL,
        DIGITS,
        hardware=pcsim.hardware.HardwareConfig(pieces=noise, chips=2),
        dtype="float64",
    )
    np.testing.assert_array_equal(run(own)["parameters"], run(file)["parameters"])
    stored = configuration.from_json(own.to_json())
    assert stored == own
    preset = config_of(SMALL, DIGITS, hardware=hw_models.preset("ecram_li"))
    assert preset == config_of(SMALL, DIGITS, hardware="ecram_li")
    other = hw_models.describe("ecram_li", noise)
    assert config_of(SMALL, DIGITS, hardware=other).hardware != preset.hardware
    ideal = config_of(SMALL, DIGITS, hardware=hw_models.preset("ideal"))
    assert ideal.hardware.ideal


def test_recordings(tmp_path):
    recording = simulate(SMALL, DIGITS, seeds=(1, 4), out=tmp_path / "a.h5")
    assert isinstance(recording, Recording)
    assert len(repr(recording)) < 600
    assert "seed 2" in repr(recording)
    assert str(recording.verdict()).startswith("2 chips: ")
    dataset = recording.to_xarray()
    assert dataset["accuracy"].dims == ("seed",)
    np.testing.assert_array_equal(dataset["energy"], recording["energy"])
    assert dataset["time"].attrs["units"] == "s"
    assert {"samples", "updates", "simulated_time", "accuracy_updates"} < set(dataset.coords)
    np.testing.assert_allclose(dataset["accuracy_samples"], [6])
    ends = recording["accuracy_updates"] * recording.attrs["time_step"]
    np.testing.assert_allclose(recording["accuracy_simulated_time"], ends)
    assert recording.config.run.seeds == (1, 4)
    discrete = simulate(SMALL, DIGITS, learner=Learner(rule="bp"))
    with pytest.raises(UnsupportedError, match="continuous time and automatic runs"):
        discrete.verdict()


def test_check_compare_and_sweep_take_the_same_objects():
    found = pcsim.check(
        SMALL,
        hw_models.preset("ecram_li"),
        stream=Stream.of("digits", batch=4, limit=8, limit_test=20),
        circuit=Algebraic(tau_x=2.0),
        chips=2,
        seeds=3,
        twins=False,
        search=False,
    )
    assert found.config.hardware.preset == "ecram_li"
    assert found.runs[CHIP]["accuracy"].shape == (3, 2)
    with pytest.raises(ConfigError, match="a network needs a stream"):
        pcsim.check(SMALL)
    with pytest.raises(ConfigError, match="stream, chips belong to a network"):
        pcsim.check(None, stream=DIGITS, chips=2)
    learner = Learner(alpha=0.02)
    plain, quick = simulate(SMALL, DIGITS), simulate(SMALL, DIGITS, learner=learner)
    assert "gap" in "".join(compare({"plain": plain, "quick": quick}).variables)
    base = config_of(SMALL, DIGITS).model_dump(exclude_unset=True)
    points = make_sweep(base | {"sweep": {"axes": {"learning.alpha": [0.01, 0.02]}}}).points
    assert [point.config.learning.alpha for point in points] == [0.01, 0.02]


def test_own_data_by_arrays_is_part_of_the_description():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(20, 3)), rng.integers(0, 2, 20)
    stream = Stream.from_arrays(x, y, present=2.0, epochs=2)
    recording = simulate(
        Network.mlp([3, 4, 2]), stream, circuit=ErrorUnits(tau_err=0.1), solver=Solver(dt=0.05)
    )
    stored = json.loads(str(recording.attrs["config"]))["data"]
    assert stored["name"] == "arrays"
    assert stored["sha256"] == stream.sha256
    assert Stream.from_arrays(x + 1e-9, y).sha256 != stream.sha256
    grid = Grid(alpha=(0.01, 0.02))
    both = simulate(Network.mlp([3, 4, 2]), stream, grid=grid, engine="continuous")
    assert both["accuracy"].shape == (2, 1)


# check --set ------------------------------------------------------------------------------------

SET = {
    "network.sizes": "[64, 6, 10]", "network.f": "relu", "network.bias": "false",
    "schedule.T": "5", "schedule.gamma": "0.3", "schedule.init": "carry", "schedule.rule": "bp",
    "schedule.fast": "false", "schedule.discount": "0.5", "schedule.pc_update_at": "after",
    "learning.alpha": "0.02", "learning.optimizer": "adam", "learning.batch": "4",
    "learning.epochs": "2", "learning.reduction": "mean", "learning.weight_decay": "0.1",
    "learning.anneal": "cosine", "learning.patience": "2",
    "data.limit": "100", "data.validation": "10", "data.centre": "true", "data.mode": "generative",
    "run.backend": "brian", "run.seeds": "[1, 2]", "run.dtype": "float64", "run.automatic": "true",
    "grid.alpha": "[0.1, 0.2]", "grid.gamma": "[0.1, 0.2]",
    "circuit.kind": "dendritic", "circuit.tau_x": "2.0", "circuit.sigma_x": "0.1",
    "circuit.transport": "random", "circuit.delay_err": "1.0", "circuit.tau_err": "1.0",
    "solver.name": "heun", "solver.dt": "0.1", "solver.noise_seed": "4",
    "stream.t_pres": "2.0", "stream.t_settle": "1.0", "stream.tau_label": "0.5",
    "record.every": "2", "record.trajectories": "true", "record.predictions": "false",
    "hardware.preset": "ecram_li", "hardware.chips": "3", "hardware.seed": "3",
    "hardware.lenient": "true", "brian.target": "numpy", "convergence.window": "3",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::pcsim.meaning.LeftOutWarning")
@pytest.mark.parametrize("backend", ["continuous", "brian", "discrete"])
@pytest.mark.parametrize("field", SET)
def test_check_honours_or_refuses_every_change(field, backend):
    """The chips of a check run with the field that `--set` gave, or there is a sentence."""
    from pcsim.check import DIGITS as STANDARD
    from pcsim.check import physical
    from pcsim.check.rows import require_chips

    changes = {"run.backend": backend} | {field: SET[field]}
    try:
        config = configuration.with_changes(STANDARD, changes, "check")
        require_chips(config)
        chip = settings_of(physical(config), [CHIP])[CHIP]
    except ConfigError:
        return
    assert backend != "discrete" or field == "run.backend"
    for name, text in changes.items():
        value = chip
        for part in name.split("."):
            value = getattr(value, part)
        expected = configuration.value_of(text)
        assert (list(value) if isinstance(value, tuple) else value) == expected, name
