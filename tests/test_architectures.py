"""Networks with images and sequences: built, described in a file, trained, stored, refused."""

import numpy as np
import pytest
import torch

from pcsim import config, store
from pcsim.architectures.levelling import levelled
from pcsim.circuit import Circuit
from pcsim.circuits.support import refuse
from pcsim.energies import Categorical, Gaussian
from pcsim.errors import ConfigError, DataError, UnsupportedError
from pcsim.kernels.field import Field
from pcsim.kernels.parameters import initial_parameters
from pcsim.maps import Convolution, Dense, Embedding, LayerNorm, Mix, Pool, Scores, Sum
from pcsim.network import Network, Node
from pcsim.run import run
from pcsim.runner import checkpoint
from pcsim.runner.training import Training

CNN = {
    "kind": "cnn",
    "image": [1, 8, 8],
    "channels": [4, 6],
    "stride": 1,
    "pool": "max",
    "dense": [16],
    "f": "tanh",
}


def setting(**sections):
    base = {
        "network": CNN,
        "schedule": {"rule": "ipc", "T": 6, "gamma": 0.3},
        "learning": {"alpha": 2e-3, "batch": 50, "epochs": 2, "optimizer": "adam"},
        "data": {"name": "digits", "limit": 400},
        "run": {"seeds": [0, 1]},
    }
    return config.changed(config.parse(base), sections)


def torch_parameters(model):
    return sum(p.numel() for p in model.parameters())


def test_sizes_are_those_of_torch():
    """Independent count: the same layers from torch.nn."""
    conv, linear = torch.nn.Conv2d, torch.nn.Linear
    alexnet = torch.nn.Sequential(
        conv(3, 64, 3, 2, 1), torch.nn.MaxPool2d(2), conv(64, 192, 3, 1, 1), torch.nn.MaxPool2d(2),
        conv(192, 384, 3, 1, 1), conv(384, 256, 3, 1, 1), conv(256, 256, 3, 1, 1),
        torch.nn.MaxPool2d(2), torch.nn.Flatten(), linear(1024, 4096), linear(4096, 4096),
        linear(4096, 10),
    )  # fmt: skip
    assert alexnet(torch.zeros(1, 3, 32, 32)).shape == (1, 10)
    for place in ("pre_act", "post_act", "post_pool"):
        network = Network.alexnet(place=place)
        assert network.parameter_count == torch_parameters(alexnet)
        assert sum(not n.transparent for n in network.nodes) == 9
    cnn = torch.nn.Sequential(
        conv(3, 64, 3, 2, 1), conv(64, 128, 3, 2, 1), conv(128, 64, 3, 2, 1), linear(1024, 128),
        linear(128, 10),
    )  # fmt: skip
    assert Network.cnn().parameter_count == torch_parameters(cnn)
    layer = torch.nn.TransformerEncoderLayer(128, 1, 512)
    without_norms = 2 * (torch_parameters(layer) - 4 * 128)
    rest = 8001 * 128 + 32 * 128 + 128 * 129 + 8001 * 129
    assert Network.transformer().parameter_count == without_norms + rest
    norms = 6 * 2 * 128
    assert Network.transformer(layer_norm=True).parameter_count == without_norms + rest + norms


@pytest.mark.parametrize(
    ("place", "kinds"),
    [
        ("pre_act", [Dense, Dense, Pool, Convolution]),
        ("post_act", [Dense, Dense, Pool, Convolution]),
        ("post_pool", [Dense, Dense, Pool, Convolution]),
    ],
)
def test_where_value_nodes_sit(place, kinds):
    network = Network.cnn(channels=(4,), pool="max", stride=1, place=place)
    assert [type(node.map) for node in network.nodes[:-1]] == kinds
    *_, pool, conv, _ = network.nodes
    assert pool.transparent == (place != "post_pool")
    assert conv.transparent == (place == "post_pool")
    assert (conv.map.f, conv.map.g) == ("identity", "identity" if place == "pre_act" else "relu")
    assert pool.map.f == ("relu" if place == "pre_act" else "identity")


def test_all_places_are_one_function():
    outputs = []
    for place in ("pre_act", "post_act", "post_pool"):
        network = Network.cnn(channels=(4, 3), pool="max", stride=1, place=place, f="gelu")
        params = initial_parameters(network, [3], torch.float64)
        field = Field(network, params, "free")
        x = torch.rand(1, 2, 3072, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        room = [x.new_zeros(1, 2, n.units) if not n.transparent else None for n in network.nodes]
        field.load([*room[:-1], x])
        field.feedforward()
        outputs.append(field.x[0])
    assert outputs[0].abs().max() > 1e-3
    assert torch.equal(outputs[0], outputs[1])
    assert torch.allclose(outputs[0], outputs[2], rtol=0, atol=1e-14)


def test_start_of_the_weights():
    network = Network.transformer(vocabulary=500, features=64, intermediate=16, embedding_sd=0.02)
    params = initial_parameters(network, [0, 1], torch.float64)
    for node, views in zip(network.nodes, params.of, strict=True):
        if isinstance(node.map, Embedding):
            assert float(views["w"].std()) == pytest.approx(0.02, rel=0.02)
        if isinstance(node.map, Dense):
            bound = node.map.n_in**-0.5
            assert float(views["w"].abs().max()) == pytest.approx(bound, rel=0.02)
    network = Network.cnn(channels=(64,), dense=(4,))
    views = initial_parameters(network, [0], torch.float64).of[-2]
    assert float(views["w"].abs().max()) == pytest.approx(27**-0.5, rel=0.02)
    norm = Network.transformer(vocabulary=5, features=4, intermediate=2, layer_norm=True)
    for node, views in zip(
        norm.nodes, initial_parameters(norm, [0], torch.float64).of, strict=True
    ):
        if isinstance(node.map, LayerNorm):
            assert (views["gain"] == 1).all()
            assert (views["b"] == 0).all()


@pytest.mark.parametrize("rule", ["bp", "pc", "zil", "ipc"])
def test_a_file_describes_and_a_run_trains(rule, tmp_path):
    """From TOML to a stored result that has learnt the digits."""
    text = """
        network = {kind = "cnn", image = [1, 8, 8], channels = [4, 6], stride = 1, pool = "max",
                   dense = [16], f = "tanh"}
        learning = {alpha = 5e-3, batch = 50, epochs = 6, optimizer = "adam"}
        data = {name = "digits", limit = 800}
    """
    (tmp_path / "cnn.toml").write_text(text.replace("\n                   ", " "))
    steps = {"schedule.T": "6"} if rule in ("pc", "ipc") else {}
    settings = config.load(tmp_path / "cnn.toml", {"schedule.rule": rule} | steps)
    run(settings, tmp_path / "cnn.h5")
    result = store.load(tmp_path / "cnn.h5")
    assert config.from_json(str(result.attrs["config"])) == settings
    # chance is 0.1; PC writes its weights once per batch and learns more slowly
    assert float(result.variables["accuracy"].values.min()) > (0.4 if rule == "pc" else 0.75)
    assert (
        result.variables["parameters"].values.shape[-1] == settings.network.build().parameter_count
    )


def test_checkpoint_goes_on_where_it_was(tmp_path):
    whole = Training(setting())
    whole.run()
    first = Training(setting())
    first._epoch()
    store.save(first.checkpoint(), checkpoint.path_for(tmp_path / "run.h5"))
    second = Training(setting())
    second.run(out=tmp_path / "run.h5")
    assert second.progress.epoch == 2
    assert torch.equal(second.params.flat, whole.params.flat)


def test_continuous_run_of_a_cnn(tmp_path):
    """The same section with backend = "continuous" is the same training, up to round-off."""
    shared = {"learning": {"optimizer": "sgd"}, "run": {"dtype": "float64"}}
    discrete = run(setting(**shared))
    continuous = run(setting(**shared | {"run": {"dtype": "float64", "backend": "continuous"}}))
    weights = [np.asarray(r.variables["parameters"].values) for r in (discrete, continuous)]
    assert np.abs(weights[0] - weights[1]).max() <= 1e-10
    energy = np.asarray(continuous.variables["energy"].values)
    assert energy.shape[-1] == 4  # value nodes, not the transparent pools


@pytest.mark.parametrize(
    ("network", "words"),
    [
        ({"kind": "cnm"}, r"network: kind must be one of .*'cnn'.*, got 'cnm'"),
        (CNN | {"chanels": [4]}, r"network\.chanels: unknown name; did you mean 'channels'"),
        (CNN | {"channels": [0]}, r"network\.channels\.0: must be greater than or equal to 1"),
        (CNN | {"pool": "none", "place": "post_pool"}, r"network\.place: 'post_pool' needs"),
        (CNN | {"kernel": 11}, r"Convolution\.kernel: 11 is larger"),
        (CNN | {"image": [2, 8, 4]}, r"network\.image: .*\[1, 8, 8\].*takes \[2, 8, 4\]"),
        (CNN | {"classes": 9}, r"network\.classes: the data has 64 inputs and 10 classes"),
        ({"kind": "transformer", "heads": 3}, r"Scores\.heads: 3 must divide the 128"),
        ({"kind": "transformer"}, r"network\.kind 'transformer': reads token numbers"),
    ],
)
def test_mistakes_are_named(network, words):
    with pytest.raises((ConfigError, UnsupportedError), match=words):
        Training(config.parse({"network": network, "data": {"name": "digits"}}))


def test_mistakes_of_a_call_are_named():
    with pytest.raises(ConfigError, match=r"Network.cnn: stride: must be greater"):
        Network.cnn(stride=0)
    with pytest.raises(ConfigError, match=r"Network.transformer: heds: unknown name"):
        Network.transformer(heds=2)


def nodes_of(*last):
    return (*last, Node((4, 6)))


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (nodes_of(Node((24,), Sum(24), (1,))), r"nodes\[0\]\.parents: Sum takes 2"),
        (nodes_of(Node((24,), Sum(23, 1), (1,))), r"nodes\[0\]\.map: Sum maps \(23,\) to 23"),
        (nodes_of(Node((24,), Sum(24, 1), (1,), None)), r"nodes\[0\]\.energy: the datum"),
        (nodes_of(Node((24,), None, (1,))), r"nodes\[0\]\.map: a node with parents"),
        (
            nodes_of(Node((48,), Embedding(9, 24, 2), (1,)), Node((24,), Sum(24, 1), (2,))),
            r"nodes\[0\]\.parents: an embedding reads token numbers",
        ),
    ],
)
def test_graphs_that_make_no_sense(nodes, words):
    with pytest.raises(ConfigError, match=words):
        Network(nodes)


def test_tokens_are_data():
    network = Network.transformer(vocabulary=5, positions=3, features=4, intermediate=2)
    with pytest.raises(ConfigError, match="token numbers cannot be inferred"):
        network.holds("generative")
    params = initial_parameters(network, [0], torch.float32)
    field = Field(network, params, "free")
    room = [None if n.transparent else torch.zeros(1, 1, n.units) for n in network.nodes[:-1]]
    field.load([*room, torch.tensor([[[0.0, 4.0, 2.0]]])])
    with pytest.raises(DataError, match=r"token numbers must lie in 0 … 4, got 0 … 5"):
        field.load([*room, torch.tensor([[[0.0, 5.0, 2.0]]])])


@pytest.mark.parametrize("make", [Network.cnn, Network.transformer])
def test_brian_refuses_by_name(make):
    with pytest.raises(UnsupportedError, match=r"backend brian: network node \d: .*: "):
        refuse(make(), Circuit(tau_w=1.0), "supervised")


def test_levelling_a_short_cut_by_hand():
    """0 ← 1 ← 2 ← 3 and 0 ← 3: two relays, one per value node that the short cut leaves out."""
    nodes = (
        Node((2,), Sum(2, 2), (1, 3)),
        Node((2,), Dense(2, 2, "tanh"), (2,)),
        Node((2,), Dense(2, 2, "tanh"), (3,)),
        Node((2,), Dense(3, 2), (4,)),
        Node((3,)),
    )
    network = Network(nodes)
    assert network.levels == (0, 1, 2, 3, 4)
    assert network.reach == (0, 1, 1, 1, 2)  # node 3 moves first, which its children notice
    made = levelled(network)
    assert [node.parents for node in made.nodes] == [(1, 3), (2,), (5,), (4,), (5,), (6,), ()]
    assert made.levelled
    assert made.levels == made.reach == (0, 1, 2, 1, 2, 3, 4)
    assert [type(n.map) for n in made.nodes].count(Sum) == 3
    assert levelled(Network.cnn()) == Network.cnn()


def test_energies_of_the_transformer():
    network = Network.transformer(causal=True)
    energies = {type(n.map): n.energy for n in network.nodes}
    assert energies[Scores] == Categorical(causal=True)
    assert energies[Mix] is None
    assert network.nodes[0].energy == Categorical()
    assert Network.transformer(nodes="all").nodes[2].energy == Gaussian()
