"""How well a network does. Leading axes (replicas, chips) are kept: one number for each of them.

In the shapes below … stands for any number of leading axes, N for samples and C for classes.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from pcsim.errors import ConfigError

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# Softmax in single precision may overshoot 1 by rounding.
_ROUNDING = 1e-5


def accuracy(scores: npt.ArrayLike, labels: npt.ArrayLike) -> Floats:
    """Return the fraction of samples with argmax_c scores = label; shape (…).

    `scores` (…, N, C), `labels` (N,) or (…, N). Of equal scores the first class counts. A sample
    whose largest score is not finite (a diverged replica) has no prediction and counts as wrong.
    """
    s, y = _scores_and_labels("accuracy", scores, labels)
    return np.asarray(_correct(s, y).mean(axis=-1), dtype=np.float64)


def predictions(scores: npt.ArrayLike) -> npt.NDArray[np.int16]:
    """Return argmax_c of scores (…, N, C), or −1 where the largest score is not finite."""
    s = np.asarray(scores)
    if s.dtype.kind not in "biuf" or s.ndim < 2 or 0 in s.shape:
        raise ConfigError(
            f"predictions.scores: must be real numbers of shape (…, N, C), got {s.dtype} {s.shape}"
        )
    return np.where(np.isfinite(s.max(axis=-1)), s.argmax(axis=-1), -1).astype(np.int16)


def confidence_and_correct(
    scores: npt.ArrayLike,
    labels: npt.ArrayLike,
    softmax: bool = True,
    *,
    allow_nan: bool = False,
) -> tuple[Floats, Bools]:
    """Return max_c p and whether argmax_c p is the label, both of shape (…, N).

    p_c = exp(s_c) / Σ_k exp(s_k) of the scores s, or the scores themselves without `softmax`. A
    sample whose largest score is not finite is refused, or gets confidence NaN with `allow_nan`.
    """
    where = "confidence_and_correct"
    s, y = _scores_and_labels(where, scores, labels)
    top = s.max(axis=-1)
    diverged = ~np.isfinite(top)
    _refuse_nan(f"{where}.scores", diverged, allow_nan)
    confidence = top.astype(np.float64)
    if softmax:
        shift = np.where(diverged, 0.0, confidence)[..., None]
        # Only diverged samples can overflow or divide by 0, and those are replaced below.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            confidence = 1.0 / np.exp(s - shift).sum(axis=-1)
    elif np.any((confidence < 0) | (confidence > 1 + _ROUNDING)):
        raise ConfigError(f"{where}.scores: must be probabilities when softmax is False")
    confidence[diverged] = np.nan
    return confidence, _correct(s, y)


def adaptive_ece(
    confidence: npt.ArrayLike,
    correct: npt.ArrayLike,
    bins: int = 15,
    *,
    allow_nan: bool = False,
) -> Floats:
    """Return the adaptive expected calibration error; shape (…).

    AdaECE = Σ_b |b|/N · |mean_b(correct) − mean_b(confidence)|, over `bins` bins of equal count
    (the first N mod `bins` hold one sample more) filled in order of confidence.

    Samples of equal confidence have no order, and a bin edge may fall between them. So `correct` is
    first replaced by its mean over all samples of the same confidence: each bin gets the expected
    share, and the result does not depend on the order of the samples. With one confidence for all
    samples this gives |accuracy − confidence|.

    `confidence` and `correct` (0 or 1) are (…, N). NaN confidence is refused, or with `allow_nan`
    gives NaN for the replica it belongs to.
    """
    where = "adaptive_ece"
    p = _floats(f"{where}.confidence", confidence)
    c = _floats(f"{where}.correct", correct)
    if p.ndim < 1 or p.shape != c.shape:
        raise ConfigError(
            f"{where}.correct: must have the shape of confidence {p.shape}, got {c.shape}"
        )
    n = p.shape[-1]
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or not 1 <= bins <= n:
        raise ConfigError(f"{where}.bins: must be between 1 and N={n}, got {bins}")
    _refuse_nan(f"{where}.confidence", np.isnan(p), allow_nan)
    if np.any((p < 0) | (p > 1 + _ROUNDING)):
        raise ConfigError(f"{where}.confidence: must be between 0 and 1")
    if not np.all((c >= 0) & (c <= 1)):
        raise ConfigError(f"{where}.correct: must be between 0 and 1")

    # Sorted by `correct` too, so that sums are taken in the same order for every permutation.
    order = np.lexsort((c, p), axis=-1)
    p = np.take_along_axis(p, order, axis=-1)
    c = _mean_over_ties(p, np.take_along_axis(c, order, axis=-1))
    starts = np.arange(bins) * (n // bins) + np.minimum(np.arange(bins), n % bins)
    # |b|·|mean_b(correct) − mean_b(confidence)| = |Σ_b (correct − confidence)|
    gaps = np.add.reduceat(c - p, starts, axis=-1)
    return np.asarray(np.abs(gaps).sum(axis=-1) / n, dtype=np.float64)


def nll(log_probs: npt.ArrayLike, labels: npt.ArrayLike, *, allow_nan: bool = False) -> Floats:
    """Return the mean negative log-likelihood −(1/N) Σ_n log p_n[label_n] in nats; shape (…).

    `log_probs` (…, N, C), `labels` (N,) or (…, N). NaN is refused, or with `allow_nan` gives NaN
    for the replica it belongs to.
    """
    s, y = _scores_and_labels("nll", log_probs, labels, "log_probs")
    _check_log_probs("nll.log_probs", s, allow_nan)
    chosen = np.take_along_axis(s, y[..., None], axis=-1)[..., 0].astype(np.float64)
    # A NaN for another class also means that the sample was not predicted.
    chosen = np.where(np.isnan(s).any(axis=-1), np.nan, chosen)
    return np.asarray(-chosen.mean(axis=-1), dtype=np.float64)


def perplexity(mean_nll: npt.ArrayLike) -> Floats:
    """Return exp(mean NLL), element by element."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(_floats("perplexity.mean_nll", mean_nll)))


def token_perplexity(
    token_log_probs: npt.ArrayLike,
    ignore: npt.ArrayLike | None = None,
    *,
    allow_nan: bool = False,
) -> Floats:
    """Return exp(−(1/|K|) Σ_{t∈K} log p_t) over the tokens K which are not ignored; shape (…).

    `token_log_probs` (…, T) holds log p of each true token; `ignore` (T,) or (…, T) is True where a
    token (padding) does not count. What stands at ignored places has no effect.
    """
    where = "token_perplexity"
    log_p = _floats(f"{where}.token_log_probs", token_log_probs)
    if log_p.ndim < 1 or log_p.shape[-1] < 1:
        raise ConfigError(f"{where}.token_log_probs: must have shape (…, T), got {log_p.shape}")
    skip = np.zeros(log_p.shape, np.bool_) if ignore is None else np.asarray(ignore)
    if skip.dtype != np.bool_:
        raise ConfigError(f"{where}.ignore: must be True or False, got {skip.dtype}")
    skip = _spread(f"{where}.ignore", skip, log_p.shape)
    kept = (~skip).sum(axis=-1)
    if np.any(kept == 0):
        raise ConfigError(f"{where}.ignore: must leave at least one token")
    log_p = np.where(skip, 0.0, log_p)
    _check_log_probs(f"{where}.token_log_probs", log_p, allow_nan)
    return perplexity(-log_p.sum(axis=-1) / kept)


def energy_per_sample(
    total_energy: npt.ArrayLike, samples: int, paper_energy: bool = False
) -> Floats:
    """Return F/N with F = ½ Σ‖ε‖²; `paper_energy` doubles it, to F = Σ‖ε‖².

    The paper on incremental predictive coding writes its energy without the ½.
    """
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 1:
        raise ConfigError(f"energy_per_sample.samples: must be at least 1, got {samples}")
    energy = _floats("energy_per_sample.total_energy", total_energy)
    return np.asarray(energy * (2.0 if paper_energy else 1.0) / samples)


def _scores_and_labels(
    where: str, scores: npt.ArrayLike, labels: npt.ArrayLike, name: str = "scores"
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    s = np.asarray(scores)
    y = np.asarray(labels)
    if s.dtype.kind not in "biuf" or s.ndim < 2 or 0 in s.shape:
        raise ConfigError(
            f"{where}.{name}: must be real numbers of shape (…, N, C), got {s.dtype} {s.shape}"
        )
    if s.dtype != np.float32:
        s = s.astype(np.float64, copy=False)
    if y.dtype.kind not in "iu":
        raise ConfigError(f"{where}.labels: must be integers, got {y.dtype}")
    y = _spread(f"{where}.labels", y, s.shape[:-1])
    classes = s.shape[-1]
    if y.min() < 0 or y.max() >= classes:
        raise ConfigError(
            f"{where}.labels: must be between 0 and C−1={classes - 1}, got {y.min()} to {y.max()}"
        )
    return s, y


def _correct(s: npt.NDArray[Any], y: npt.NDArray[Any]) -> Bools:
    # max passes NaN on, so this is False for any NaN in the row.
    predicted = np.isfinite(s.max(axis=-1))
    return np.asarray((s.argmax(axis=-1) == y) & predicted, dtype=np.bool_)


def _mean_over_ties(p: Floats, c: Floats) -> Floats:
    """Replace c by its mean over each run of equal values in the sorted p, row by row."""
    starts = np.ones(p.shape, np.bool_)
    starts[..., 1:] = p[..., 1:] != p[..., :-1]
    # Each row starts a run of its own, so one count serves all rows.
    run = np.cumsum(starts.ravel()) - 1
    mean = np.bincount(run, weights=c.ravel()) / np.bincount(run)
    return np.asarray(mean[run].reshape(p.shape), dtype=np.float64)


def _spread(where: str, values: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Repeat values of shape (N,) over the leading axes of `shape`."""
    if values.shape not in (shape, shape[-1:]):
        raise ConfigError(f"{where}: must have shape {shape[-1:]} or {shape}, got {values.shape}")
    return np.broadcast_to(values, shape)


def _floats(where: str, values: npt.ArrayLike) -> Floats:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ConfigError(f"{where}: must be real numbers, got {array.dtype}")
    return array.astype(np.float64, copy=False)


def _refuse_nan(where: str, bad: npt.NDArray[np.bool_], allow_nan: bool) -> None:
    if not allow_nan and bad.any():
        raise ConfigError(
            f"{where}: must be finite, got {int(bad.sum())} samples that are not; "
            "pass allow_nan=True to get NaN for diverged replicas"
        )


def _check_log_probs(where: str, log_p: npt.NDArray[Any], allow_nan: bool) -> None:
    _refuse_nan(where, np.isnan(log_p), allow_nan)
    if np.any(log_p > _ROUNDING):
        raise ConfigError(f"{where}: must be logarithms of probabilities, so at most 0")
