"""Sentences, tokens and windows: nothing is lost, nothing is shared, what cannot be is refused."""

import sys

import language_world as world
import numpy as np
import pytest

from pcsim.errors import ConfigError, UnsupportedError
from pcsim.experiments.common.language import text as language_text
from pcsim.experiments.common.language.text import END, MASK, UNKNOWN, Text, Tokenizer, cut


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.learn(world.sentences(), 70)


def test_what_is_encoded_decodes_to_the_same_text(tokenizer):
    assert tokenizer.vocabulary == 70
    for sentence in [*world.sentences(40, seed=5), "horses paint The sea . sees"]:
        tokens = tokenizer.encode(sentence)
        assert tokenizer.decode(tokens) == sentence
        assert len(tokens) < 0.8 * len(sentence)  # pieces, not letters
        assert not {UNKNOWN, END, MASK} & set(tokens)
    assert UNKNOWN in tokenizer.encode("Ω")
    assert tokenizer.decode([*tokenizer.encode("the sea"), MASK, END]) == "the sea"
    assert MASK not in tokenizer.encode("<mask>")


def test_tokens_are_the_same_each_time(tokenizer):
    again = Tokenizer.learn(world.sentences(), 70)
    for sentence in world.sentences(20, seed=3):
        assert again.encode(sentence) == tokenizer.encode(sentence)


def test_windows_hold_the_whole_stream():
    stream = list(range(100))
    windows = cut(stream, 7)
    assert windows.shape == (14, 8)
    np.testing.assert_array_equal(windows[:, :-1].ravel(), stream[:98])
    np.testing.assert_array_equal(windows[1:, 0], windows[:-1, -1])
    np.testing.assert_array_equal(cut(stream[:99], 7), windows)
    assert len(cut(stream[:98], 7)) == 13  # the last window would lack what is asked at its end
    with pytest.raises(ConfigError, match=r"Text.positions: 5 tokens do not fill one window of 7"):
        cut(stream[:5], 7)


def corpus(monkeypatch, **parts):
    """Let the registry offer these sentences."""
    asked = []

    def load_text(name, part, *, unverified=False, limit=None):
        asked.append((name, part, unverified))
        return parts[part][:limit], {part: "published"}

    monkeypatch.setattr(language_text.datasets, "load_text", load_text)
    return asked


def text(source, train, dev, test):
    return Text(source=source, train=train, dev=dev, test=test, vocabulary=70, positions=8)


def test_one_shard_is_split_and_must_be_the_published_one(monkeypatch):
    asked = corpus(monkeypatch, test=[f"s{k}" for k in range(20)])
    found = language_text.load(text("one_shard", 10, 4, 5))
    parts = (found.train, found.dev, found.test)
    assert [*parts[0], *parts[1], *parts[2]] == [f"s{k}" for k in range(19)]
    assert [len(p) for p in parts] == [10, 4, 5]
    assert asked == [("one_billion_word", "test", False)]
    with pytest.raises(ConfigError, match="there are 20 sentences"):
        language_text.load(text("one_shard", 20, 4, 5))


def test_the_benchmark_gives_train_and_dev_from_one_part(monkeypatch):
    lines = [f"s{k}" for k in range(20)]
    corpus(monkeypatch, train=lines, test=["t0", "t1", "t2"])
    found = language_text.load(text("benchmark", 12, 4, 2))
    assert (list(found.train), list(found.dev)) == (lines[:12], lines[12:16])
    assert found.test == ["t0", "t1"]
    assert "published" in found.origin
    scarce = language_text.load(text("benchmark", 20, 4, 2))  # the dev part stays whole
    assert (len(scarce.train), len(scarce.dev)) == (16, 4)


def test_what_cannot_be_learnt_is_refused():
    with pytest.raises(ConfigError, match=r"Text.vocabulary: 5000 tokens cannot be learnt"):
        Tokenizer.learn(world.sentences(), 5000)


def test_without_sentencepiece_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'pcsim\[language\]'"):
        language_text.sentencepiece()
