"""Metrics against naive code, other libraries, and laws; wrong code serves as control."""

import itertools

import numpy as np
import pytest
import scipy.special
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pcsim import metrics
from pcsim.errors import ConfigError


def naive_ada_ece(confidence, correct, bins):
    """Sample by sample, for distinct confidences."""
    pairs = sorted(zip(confidence, correct, strict=True))
    total = 0.0
    for chunk in np.array_split(np.arange(len(pairs)), bins):
        gap = sum(pairs[i][1] for i in chunk) / len(chunk)
        gap -= sum(pairs[i][0] for i in chunk) / len(chunk)
        total += len(chunk) / len(pairs) * abs(gap)
    return total


def edge_based_ece(confidence, correct, bins):
    """The usual wrong way: quantile edges, with bins open on the left."""
    edges = np.interp(
        np.linspace(0, len(confidence), bins + 1), np.arange(len(confidence)), np.sort(confidence)
    )
    total = 0.0
    for low, high in itertools.pairwise(edges):
        inside = (confidence > low) & (confidence <= high)
        if inside.any():
            total += inside.mean() * abs(correct[inside].mean() - confidence[inside].mean())
    return total


def test_accuracy_equals_counting_and_keeps_leading_axes():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(2, 3, 40, 5)), rng.integers(0, 5, 40)
    found = metrics.accuracy(scores, labels)
    assert found.shape == (2, 3)
    for i in np.ndindex(2, 3):
        right = sum(
            int(max(range(5), key=lambda c, i=i, n=n: scores[i][n][c]) == labels[n])
            for n in range(40)
        )
        assert found[i] == right / 40
    each = np.broadcast_to(labels, (2, 3, 40))
    np.testing.assert_array_equal(found, metrics.accuracy(scores, each))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_diverged_rows_count_as_wrong_and_leave_other_replicas_alone(bad):
    labels = np.zeros(10, int)
    scores = np.tile([1.0, 0.0], (2, 10, 1))
    scores[1, :4, 0] = bad
    np.testing.assert_array_equal(metrics.accuracy(scores, labels), [1.0, 0.6])
    scores[1] = bad
    np.testing.assert_array_equal(metrics.accuracy(scores, labels), [1.0, 0.0])
    # Control: argmax alone calls a NaN row right whenever the NaN stands at the label.
    assert (scores[1].argmax(-1) == labels).mean() == 1.0


def test_minus_infinity_is_a_legitimate_score():
    scores = np.array([[0.0, -np.inf]])
    assert metrics.accuracy(scores, np.array([0])) == 1.0
    confidence, _ = metrics.confidence_and_correct(scores, np.array([0]))
    assert confidence[0] == 1.0


@pytest.mark.parametrize(("n", "bins"), [(100, 15), (45, 15), (15, 15), (7, 1), (31, 4)])
def test_adaptive_ece_equals_naive_code_on_distinct_confidences(n, bins):
    rng = np.random.default_rng(n)
    confidence = rng.permutation(np.linspace(0.1, 0.99, n))
    correct = rng.random(n) < 0.6
    expected = naive_ada_ece(confidence, correct, bins)
    assert metrics.adaptive_ece(confidence, correct, bins) == pytest.approx(expected, abs=1e-12)


def test_constant_confidence_is_not_a_perfect_calibration():
    confidence, correct = np.full(1000, 0.9), np.arange(1000) < 700
    assert metrics.adaptive_ece(confidence, correct) == pytest.approx(0.2, abs=1e-12)
    assert edge_based_ece(confidence, correct, 15) == 0.0  # the trap


def test_edge_based_control_is_otherwise_sound():
    rng = np.random.default_rng(1)
    confidence = rng.random(3000)
    correct = rng.random(3000) < confidence**2
    ours = metrics.adaptive_ece(confidence, correct)
    assert edge_based_ece(confidence, correct, 15) == pytest.approx(float(ours), abs=2e-3)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.5, 0.6, 0.9, 1.0]), st.booleans()), min_size=3, max_size=40
    ),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_adaptive_ece_ignores_the_order_of_samples_under_heavy_ties(pairs, bins, random):
    shuffled = list(pairs)
    random.shuffle(shuffled)
    one, other = np.array(pairs, float).T, np.array(shuffled, float).T
    assert metrics.adaptive_ece(*one, bins) == metrics.adaptive_ece(*other, bins)


def test_naive_code_depends_on_the_order_under_ties():
    confidence = np.full(4, 0.5)
    values = {naive_ada_ece_unsorted(confidence, np.array(c)) for c in ([1, 1, 0, 0], [1, 0, 1, 0])}
    assert values == {0.5, 0.0}


def naive_ada_ece_unsorted(confidence, correct):
    order = np.argsort(confidence, kind="stable")
    halves = np.array_split((correct - confidence)[order], 2)
    return sum(abs(h.sum()) for h in halves) / len(correct)


def test_tie_rule_is_the_mean_over_all_orders_of_each_bin():
    # 3 tied samples with 1 right, edge after the second: bins get 2/3 and 1/3 + the last sample.
    found = metrics.adaptive_ece([0.5, 0.5, 0.5, 0.8], [1, 0, 0, 1], 2)
    assert found == pytest.approx((abs(2 / 3 - 1.0) + abs(1 / 3 + 1 - 1.3)) / 4)


def test_adaptive_ece_of_replicas_is_that_of_each():
    rng = np.random.default_rng(2)
    confidence = np.round(rng.random((3, 2, 200)), 1)
    confidence[1, 1] = confidence[1, 0].max()  # a run must not go on into the next replica
    correct = rng.random((3, 2, 200)) < 0.5
    found = metrics.adaptive_ece(confidence, correct)
    for i in np.ndindex(3, 2):
        assert found[i] == metrics.adaptive_ece(confidence[i], correct[i])


def test_adaptive_ece_of_a_calibrated_model_has_the_known_null_level():
    rng = np.random.default_rng(3)
    confidence = rng.uniform(0.72, 1.0, (60, 10_000))
    found = metrics.adaptive_ece(confidence, rng.random(confidence.shape) < confidence)
    # E|mean gap| of a bin is √(2/π)·σ_b/√n_b
    p = np.sort(confidence[0])
    sigma = np.mean([np.sqrt((b * (1 - b)).mean() / len(b)) for b in np.array_split(p, 15)])
    assert found.mean() == pytest.approx(np.sqrt(2 / np.pi) * sigma, abs=4 * 0.0019 / np.sqrt(60))
    assert found.mean() == pytest.approx(0.0099, abs=0.001)
    assert found.std() == pytest.approx(0.0019, rel=0.35)


def test_confidence_equals_softmax_and_stays_finite_for_large_scores():
    rng = np.random.default_rng(4)
    scores, labels = rng.normal(size=(2, 30, 4)) * 300, rng.integers(0, 4, 30)
    confidence, correct = metrics.confidence_and_correct(scores, labels)
    np.testing.assert_allclose(confidence, scipy.special.softmax(scores, -1).max(-1), rtol=1e-12)
    np.testing.assert_array_equal(correct.mean(-1), metrics.accuracy(scores, labels))
    p = scipy.special.softmax(scores, -1)
    np.testing.assert_allclose(metrics.confidence_and_correct(p, labels, False)[0], p.max(-1))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_is_refused_or_kept_to_its_replica(bad):
    rng = np.random.default_rng(5)
    scores, labels = rng.normal(size=(3, 50, 4)), rng.integers(0, 4, 50)
    scores[1, 7] = bad
    with pytest.raises(ConfigError, match=r"confidence_and_correct\.scores: .*got 1 samples"):
        metrics.confidence_and_correct(scores, labels)
    confidence, correct = metrics.confidence_and_correct(scores, labels, allow_nan=True)
    with pytest.raises(ConfigError, match=r"adaptive_ece\.confidence"):
        metrics.adaptive_ece(confidence, correct)
    found = metrics.adaptive_ece(confidence, correct, allow_nan=True)
    np.testing.assert_array_equal(np.isnan(found), [False, True, False])
    assert found[2] == metrics.adaptive_ece(confidence[2], correct[2])


def test_nll_equals_torch():
    rng = np.random.default_rng(6)
    logits, labels = rng.normal(size=(3, 20, 7)), rng.integers(0, 7, 20)
    log_p = scipy.special.log_softmax(logits, axis=-1)
    for k, found in enumerate(metrics.nll(log_p, labels)):
        expected = torch.nn.functional.cross_entropy(
            torch.from_numpy(logits[k]), torch.from_numpy(labels)
        )
        assert found == pytest.approx(expected.item(), rel=1e-12)
    with pytest.raises(ConfigError, match=r"nll\.log_probs: must be logarithms"):
        metrics.nll(logits, labels)
    log_p[0, 0] = np.nan
    with pytest.raises(ConfigError, match=r"nll\.log_probs"):
        metrics.nll(log_p, labels)
    found = metrics.nll(log_p, labels, allow_nan=True)
    np.testing.assert_array_equal(np.isnan(found), [True, False, False])


def test_perplexity_of_uniform_guessing_is_the_number_of_classes():
    log_p = np.full((2, 9, 32), -np.log(32))
    labels = np.arange(9)
    np.testing.assert_allclose(metrics.perplexity(metrics.nll(log_p, labels)), [32, 32])
    np.testing.assert_allclose(metrics.token_perplexity(log_p[..., 0]), [32, 32])


def test_ignored_tokens_have_no_effect():
    rng = np.random.default_rng(7)
    log_p, ignore = -rng.random((3, 12)), np.arange(12) >= 8
    expected = np.exp(-log_p[:, :8].mean(-1))
    log_p[:, 8:] = [np.nan, np.inf, -np.inf, 1e9]
    np.testing.assert_allclose(metrics.token_perplexity(log_p, ignore), expected)
    with pytest.raises(ConfigError, match=r"ignore: must leave at least one token"):
        metrics.token_perplexity(log_p, np.ones(12, bool))
    assert metrics.perplexity(1e4) == np.inf


def test_paper_energy_is_twice_ours():
    eps = np.random.default_rng(8).normal(size=(4, 25, 6))
    total = 0.5 * (eps**2).sum((1, 2))
    np.testing.assert_allclose(metrics.energy_per_sample(total, 25), total / 25)
    paper = metrics.energy_per_sample(total, 25, paper_energy=True)
    np.testing.assert_allclose(paper, (eps**2).sum((1, 2)) / 25)
    with pytest.raises(ConfigError, match=r"energy_per_sample\.samples: must be at least 1, got 0"):
        metrics.energy_per_sample(total, 0)


@pytest.mark.parametrize("bins", [0, -1, 11, 2.5, True])
def test_bins_out_of_range(bins):
    message = rf"^adaptive_ece\.bins: must be between 1 and N=10, got {bins}$"
    with pytest.raises(ConfigError, match=message):
        metrics.adaptive_ece(np.linspace(0, 1, 10), np.ones(10), bins)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.accuracy(np.ones((5, 3)), np.zeros(4, int)), r"accuracy\.labels"),
        (lambda: metrics.accuracy(np.ones((5, 3)), np.zeros(5)), r"must be integers"),
        (lambda: metrics.accuracy(np.ones((5, 3)), np.full(5, 3)), r"between 0 and C−1=2"),
        (lambda: metrics.accuracy(np.ones(5), np.zeros(5, int)), r"accuracy\.scores"),
        (lambda: metrics.accuracy(np.ones((0, 3)), np.zeros(0, int)), r"accuracy\.scores"),
        (lambda: metrics.accuracy(np.ones((2, 5, 3)), np.zeros((1, 5), int)), r"\(2, 5\)"),
        (lambda: metrics.adaptive_ece(np.ones(5), np.ones(4), 1), r"adaptive_ece\.correct"),
        (lambda: metrics.adaptive_ece(np.full(5, 1.1), np.ones(5), 1), r"between 0 and 1"),
        (lambda: metrics.adaptive_ece(np.ones(5), np.full(5, 2), 1), r"correct: must be between"),
        (
            lambda: metrics.confidence_and_correct([[2.0, 0.0]], [0], softmax=False),
            r"must be probabilities",
        ),
        (lambda: metrics.token_perplexity([-1.0], [0]), r"ignore: must be True or False"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ConfigError, match=message):
        call()


def test_predictions_agree_with_accuracy_and_mark_what_diverged() -> None:
    scores = np.array([[[0.1, 0.9], [2.0, 1.0], [np.nan, 1.0]], [[np.inf, 0.0], [0, 0], [1, 2]]])
    found = metrics.predictions(scores)
    assert found.tolist() == [[1, 0, -1], [-1, 0, 1]]
    labels = np.array([1, 0, 1])
    np.testing.assert_array_equal((found == labels).mean(-1), metrics.accuracy(scores, labels))
    with pytest.raises(ConfigError, match=r"predictions\.scores"):
        metrics.predictions(np.zeros(3))
