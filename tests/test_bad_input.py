"""Whatever stands in a file, the answer is a configuration or one sentence."""

import fuzz_world
import pytest

from pcsim import config
from pcsim.errors import ConfigError


def test_undamaged_files_are_accepted():
    for data in fuzz_world.BASES:
        config.parse(data)


@pytest.mark.parametrize("block", range(4))
def test_damage_is_refused_in_one_sentence(block):
    sentences = []
    for seed in range(100 * block, 100 * (block + 1)):
        try:
            config.parse(fuzz_world.damaged(seed), "here.toml")
        except ConfigError as error:
            sentences.append(str(error))
    assert 50 < len(sentences) < 100
    assert all(text.startswith("here.toml: ") and "\n" not in text for text in sentences)


@pytest.mark.parametrize("kind", [["mlp"], {"a": 1}, 3, [], True])
def test_a_kind_is_a_text(kind):
    network = {"sizes": [64, 10]}
    with pytest.raises(ConfigError, match=r"network: kind must be one of .*, got "):
        config.parse({"network": network | {"kind": kind}})
    pieces = {"noise": {"kind": kind, "sigma": 0.1}}
    with pytest.raises(ConfigError, match=r"pieces\.noise: there is no kind"):
        config.parse({"network": network, "hardware": {"pieces": pieces}})


@pytest.mark.parametrize("value", [1e-300, 1e-40, 1e40, 1e300])
def test_numbers_that_no_chip_can_hold(value):
    with pytest.raises(ConfigError) as caught:
        config.parse({"network": {"sizes": [64, 10]}, "learning": {"alpha": value}})
    assert f"learning.alpha: must lie between 1e-30 and 1e+30, got {value!r}" in str(caught.value)


@pytest.mark.parametrize("field", ["learning.batch", "schedule.T", "network.sizes", "data.limit"])
def test_counts_that_no_machine_can_hold(field):
    section, name = field.split(".")
    data = {"network": {"sizes": [64, 10]}}
    value = [64, 2**31] if name == "sizes" else 2**31
    data[section] = data.get(section, {}) | {name: value}
    with pytest.raises(ConfigError, match=r"must be less than 2147483648, got 2147483648"):
        config.parse(data)
