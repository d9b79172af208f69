"""Text of the language models: sentences of the One Billion Word Benchmark, as windows of tokens.

Sentences are split into pieces by SentencePiece (byte-pair encoding, learnt from the training
sentences alone), joined with an end token behind each, and cut into windows of equal length. So no
position is padding, and none is lost; a window may begin in the middle of a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pcsim import datasets
from pcsim.architectures.fields import Count
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.frozen import Frozen

Tokens = npt.NDArray[np.int64]
CORPUS = "one_billion_word"
UNKNOWN, END, MASK = 0, 1, 2
"""Tokens that are no text: an unknown character, the end of a sentence, a hidden position."""


class Text(Frozen):
    """Which sentences, and how they become tokens."""

    source: Literal["benchmark", "one_shard"]
    """`benchmark`: training and dev sentences from the training part (or what stands in for it in
    the data folder; the result names it), test sentences from the official test shard.
    `one_shard`: all three from the official test shard (0.8 MB), one behind the other."""
    train: Count
    dev: Count
    test: Count
    """Number of sentences of each part; fewer where the corpus has no more."""
    vocabulary: Count
    positions: Count


@dataclass(frozen=True)
class Sentences:
    """Three parts without a common sentence, and where they come from."""

    train: Sequence[str]
    dev: Sequence[str]
    test: Sequence[str]
    origin: str


@dataclass(frozen=True, eq=False)
class Windows:
    """Tokens (window, position + 1) of each part; neighbours share one token."""

    train: Tokens
    dev: Tokens
    test: Tokens
    origin: str


class Tokenizer:
    """Byte-pair encoding by SentencePiece; what is encoded decodes to the same text."""

    def __init__(self, model: bytes) -> None:
        self._processor = sentencepiece().SentencePieceProcessor(model_proto=model)

    @classmethod
    def learn(cls, sentences: Iterable[str], vocabulary: int) -> Tokenizer:
        """Learn `vocabulary` tokens, the three that are no text among them."""
        model = BytesIO()
        try:
            sentencepiece().SentencePieceTrainer.train(
                sentence_iterator=iter(sentences),
                model_writer=model,
                model_type="bpe",
                vocab_size=vocabulary,
                unk_id=UNKNOWN,
                eos_id=END,
                bos_id=-1,
                pad_id=-1,
                control_symbols=["<mask>"],
                normalization_rule_name="identity",  # the text has been normalised by its makers
                num_threads=1,
                minloglevel=2,
            )
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise ConfigError(
                f"Text.vocabulary: {vocabulary} tokens cannot be learnt from these sentences "
                f"({reason}); take fewer tokens or more sentences"
            ) from None
        return cls(model.getvalue())

    @property
    def vocabulary(self) -> int:
        """Number of tokens."""
        return int(self._processor.get_piece_size())

    def encode(self, sentence: str) -> list[int]:
        """Return the tokens of a sentence, without its end."""
        return list(self._processor.encode(sentence))

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens; those that are no text vanish."""
        return str(self._processor.decode(list(tokens)))


def sentencepiece() -> Any:
    """Return the module sentencepiece, or say how to install it."""
    try:
        import sentencepiece as module
    except ImportError:
        raise UnsupportedError(
            "the language models need SentencePiece: pip install 'pcsim[language]'"
        ) from None
    return module


def load(text: Text) -> Sentences:
    """Return the sentences of each part."""
    if text.source == "one_shard":
        total = text.train + text.dev + text.test
        lines, origin = datasets.load_text(CORPUS, "test", limit=total)
        return _parts(lines, text.train, text.dev, dict(origin))
    # The benchmark is shuffled: its first sentences are a random sample.
    lines, origin = datasets.load_text(
        CORPUS, "train", unverified=True, limit=text.train + text.dev
    )
    test, test_origin = datasets.load_text(CORPUS, "test", unverified=True, limit=text.test)
    found = _parts(lines, len(lines) - text.dev, text.dev, {**origin, **test_origin})
    return Sentences(found.train, found.dev, test, found.origin)


def _parts(lines: list[str], train: int, dev: int, origin: dict[str, str]) -> Sentences:
    if not 0 < train < len(lines):
        raise ConfigError(
            f"Text.train, Text.dev: there are {len(lines)} sentences, which are not enough for "
            f"{train} to train and {dev} to choose by"
        )
    end = train + dev
    return Sentences(lines[:train], lines[train:end], lines[end:], json.dumps(origin))


def cut(tokens: Sequence[int], positions: int) -> Tokens:
    """Return windows (window, positions + 1) of a stream; the last token begins the next one."""
    count = (len(tokens) - 1) // positions
    if count < 1:
        raise ConfigError(
            f"Text.positions: {len(tokens)} tokens do not fill one window of {positions}; "
            "take more sentences or fewer positions"
        )
    stream = np.asarray(tokens[: count * positions + 1], dtype=np.int64)
    return np.lib.stride_tricks.sliding_window_view(stream, positions + 1)[::positions].copy()


@cache
def windows(text: Text) -> Windows:
    """Load, learn the tokens, encode and cut; once per process, since all cells share it."""
    found = load(text)
    tokenizer = Tokenizer.learn(found.train, text.vocabulary)
    train, dev, test = (
        cut([t for line in part for t in (*tokenizer.encode(line), END)], text.positions)
        for part in (found.train, found.dev, found.test)
    )
    return Windows(train, dev, test, found.origin)
