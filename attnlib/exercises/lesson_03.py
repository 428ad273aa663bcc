"""Exercises of lesson 03: the variance of scores, temperature, entropy, and the Jacobian of softmax."""

import numpy as np

from attnlib.exercises.core import Case, Checker, Exercise, Mistake
from attnlib.numpy import attention, scaling

# score_variance -------------------------------------------------------------------------------------------------------


def score_variance(query, key):
    """Return the variance of all scores query · key, each query [n_query, d_k] with each key [n_key, d_k]."""
    scores = query @ key.T  # [n_query, n_key]
    return ((scores - scores.mean()) ** 2).mean()


def _arrays(rng, *shapes):
    return tuple(rng.normal(size=shape).round(1) for shape in shapes)


def variance_cases(rng):
    one_asks_two = (np.array([[2.0, 0.0]]), np.array([[1.0, 0.0], [3.0, 5.0]]))
    return [
        Case("1 query, 2 keys, by hand: scores 2 and 6, mean 4", one_asks_two, np.float64(4.0)),
        Case(
            "2 queries, 2 keys, d_k = 1, by hand: scores 1, 3, −1, −3",
            (np.array([[1.0], [-1.0]]), np.array([[1.0], [3.0]])),
            np.float64(5.0),
        ),
        Case("square: 3 queries, 3 keys, d_k = 3", _arrays(rng, (3, 3), (3, 3))),
        Case("2 queries, 3 keys, d_k = 4", _arrays(rng, (2, 4), (3, 4))),
        Case("as many queries as keys: 4, d_k = 6", _arrays(rng, (4, 6), (4, 6))),
        Case("one score alone does not vary", (np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])), np.float64(0.0)),
        Case("large numbers", (1000 * rng.normal(size=(3, 2)).round(1), rng.normal(size=(4, 2)).round(1))),
    ]


def _loop_variance(query, key):
    scores = [sum(a * b for a, b in zip(q, k)) for q in query for k in key]
    mean = sum(scores) / len(scores)
    return sum((score - mean) ** 2 for score in scores) / len(scores)


variance_mistakes = [
    Mistake(
        "the standard deviation, not the variance",
        lambda q, k: np.std(q @ k.T),
        "A variance is a mean of *squares*. Yours has been put under a root.",
    ),
    Mistake(
        "the scores are already divided by √d_k",
        lambda q, k: np.var(q @ k.T / np.sqrt(q.shape[-1])),
        "Here the bare products are measured, so that we see what scaling has to undo. Leave √d_k out.",
        also=(lambda q, k: np.var(q @ k.T / q.shape[-1]),),
    ),
    Mistake(
        "divided by the number of scores minus one",
        lambda q, k: np.var(q @ k.T, ddof=1),
        "The mean of the squares divides by how many there are: the default `ddof=0`.",
    ),
    Mistake(
        "the mean is not subtracted",
        lambda q, k: ((q @ k.T) ** 2).mean(),
        "If all scores were 7, they would not vary at all. What would yours say?",
    ),
    Mistake(
        "the squares are added up, not averaged",
        lambda q, k: ((q @ k.T - (q @ k.T).mean()) ** 2).sum(),
        "Twice as many scores of the same kind should not vary more. Divide by how many there are.",
    ),
    Mistake(
        "averaged before squaring",
        lambda q, k: (q @ k.T - (q @ k.T).mean()).mean() ** 2,
        "Distances from the mean add up to 0, above and below. Square each one first.",
    ),
    Mistake(
        "distances are not squared",
        lambda q, k: np.abs(q @ k.T - (q @ k.T).mean()).mean(),
        "That is the mean distance. A variance takes the mean of the squared distances.",
    ),
    Mistake(
        "only query i with key i",
        lambda q, k: np.var((q * k).sum(axis=-1)),
        "Every query meets every key, so there are n_query times n_key scores: a matrix product.",
    ),
    Mistake(
        "the products are not added up over d_k",
        lambda q, k: np.var(q[:, None, :] * k[None, :, :]),
        "A score is the *sum* of d_k products. Yours is the variance of a single product.",
        also=(lambda q, k: np.var(q * k),),
    ),
    Mistake(
        "one variance for each query",
        lambda q, k: np.var(q @ k.T, axis=-1),
        "One number for all scores together: no `axis`.",
        also=(lambda q, k: np.var(q @ k.T, axis=-1, keepdims=True),),
    ),
    Mistake(
        "one variance for each key",
        lambda q, k: np.var(q @ k.T, axis=0),
        "`axis=0` keeps the keys apart. All scores lie around one mean here: leave the `axis` out.",
    ),
    Mistake(
        "the mean of each query's variance",
        lambda q, k: np.var(q @ k.T, axis=-1).mean(),
        "Each query's scores lie around a mean of their own. Take one mean, that of all scores.",
    ),
    Mistake(
        "the law instead of the measurement: d_k",
        lambda q, k: float(q.shape[-1]),
        "d_k is what we expect, for many independent numbers. Measure what these queries and keys really give.",
    ),
    Mistake(
        "the law instead of the measurement: var(query) · var(key) · d_k",
        lambda q, k: np.var(q) * np.var(k) * q.shape[-1],
        "This would hold for many independent numbers with mean 0. Compute the scores themselves.",
        also=(lambda q, k: np.var(q) * np.var(k),),
    ),
    Mistake(
        "the keys are not transposed",
        lambda q, k: np.var(q @ k),
        "A square hides it, other shapes do not fit. The keys must stand in columns: `key.T`.",
    ),
    Mistake(
        "reshape instead of transpose",
        lambda q, k: np.var(q @ k.reshape(k.shape[::-1])),
        "`reshape` cuts the same row of numbers anew; it does not exchange the axes. Use `key.T`.",
    ),
    Mistake(
        "the scores are returned",
        lambda q, k: q @ k.T,
        "These are the scores. One step is left: how far from their mean are they, squared, on average?",
    ),
    Mistake(
        "the mean of the scores",
        lambda q, k: (q @ k.T).mean(),
        "That is where the scores lie. The variance says how far around it.",
    ),
]

# temperature_softmax --------------------------------------------------------------------------------------------------


def temperature_softmax(scores, temperature):
    """Return softmax of scores [..., n] / temperature, over the last axis."""
    scores = scores / temperature
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def temperature_cases(rng):
    log3 = np.log(3.0)
    return [
        Case("temperature 2, by hand: 2 log 3 becomes log 3", (np.array([0.0, 2 * log3]), 2.0), np.array([0.25, 0.75])),
        Case("temperature 1: the plain softmax", (np.array([0.0, log3]), 1.0), np.array([0.25, 0.75])),
        Case("cold, 0.5", (np.array([0.0, log3]), 0.5), np.array([0.1, 0.9])),
        Case("square: 3 queries, 3 keys, temperature 1.5", (rng.normal(size=(3, 3)).round(1), 1.5)),
        Case("2 queries, 3 keys, temperature 4", ((4 * rng.normal(size=(2, 3))).round(1), 4.0)),
        Case("a batch of 2, with 3 queries and 4 keys", (rng.normal(size=(2, 3, 4)).round(1), 0.7)),
        Case("batch 2, heads 3, 2 queries, 4 keys", (rng.normal(size=(2, 3, 2, 4)).round(1), 3.0)),
        Case("hot: ±1000 at temperature 1000", (np.array([[1000.0, -1000.0, 0.0]]), 1000.0)),
        Case("±1000 at temperature 1", (np.array([[1000.0, -1000.0, 1000.0]]), 1.0), np.array([[0.5, 0.0, 0.5]])),
        Case("very cold: temperature 0.001", (np.array([[1.0, 2.0, -3.0]]), 0.001), np.array([[0.0, 1.0, 0.0]])),
    ]


def _softmax(scores, axis=-1):
    exponentials = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def _plain_softmax(scores, axis=-1):
    """As it is first written: without a maximum."""
    return np.exp(scores) / np.exp(scores).sum(axis=axis, keepdims=True)


def _both(change):
    """A way of making a mistake with a stable softmax, and with a plain one."""
    return lambda s, t: change(_softmax, s, t), (lambda s, t: change(_plain_softmax, s, t),)


def _temperature_mistake(name, change, hint, bank=()):
    wrong, also = _both(change)
    return Mistake(name, wrong, hint, bank, also)


def _powers(weights, temperature):
    powers = weights ** (1 / temperature)
    return powers / powers.sum(axis=-1, keepdims=True)


temperature_mistakes = [
    Mistake(
        "the weights are raised to a power and not normalised again",
        lambda s, temperature: attention.softmax(s) ** (1 / temperature),
        "Almost: what do the rows sum to now? Dividing the scores before softmax takes care of that.",
    ),
    _temperature_mistake(
        "multiplied by the temperature",
        lambda softmax, s, t: softmax(s * t),
        "Heat should make the weights more even. Yours get sharper: that is the sharpness of lesson 01, 1/temperature.",
        ("sc06",),
    ),
    _temperature_mistake(
        "the temperature changes nothing: it is not used, or divides the exps, where it cancels, or is subtracted",
        lambda softmax, s, t: softmax(s),
        "Compare temperature 1 with temperature 100: are your weights the same? Only a division *before* exp counts.",
        ("sc01",),
    ),
    _temperature_mistake(
        "the weights are divided by the temperature, after the softmax",
        lambda softmax, s, t: softmax(s) / t,
        "What should the weights add up to, and what do they add up to? Divide the scores, not the weights.",
        ("sc03",),
    ),
    _temperature_mistake(
        "divided by the temperature twice",
        lambda softmax, s, t: softmax(s / t**2),
        "At temperature 2 a score of 4 should become 2. Is there a second division somewhere?",
        ("sc04", "sc05"),
    ),
    _temperature_mistake(
        "divided by the root of the temperature",
        lambda softmax, s, t: softmax(s / np.sqrt(t)),
        "The root belongs to d_k. The temperature is the divisor itself, whatever it was made from.",
    ),
    Mistake(
        "divided by √n, the number of scores",
        lambda s, t: _softmax(s / np.sqrt(s.shape[-1])),
        "Print the divisor: does it change when a word is added? It should be `temperature` alone.",
        ("sc07",),
    ),
    Mistake(
        "the temperature acts on one side only, in the sum or above it",
        lambda s, t: np.exp(s / t) / np.exp(s).sum(axis=-1, keepdims=True),
        "The exps that are added up below the line must be the same as those above it.",
        also=(lambda s, t: np.exp(s) / np.exp(s / t).sum(axis=-1, keepdims=True),),
    ),
    Mistake(
        "the maximum is not subtracted, so exp overflows",
        lambda s, t: _plain_softmax(s / t),
        "A small temperature makes large numbers: 2/0.001 = 2000. Subtract the maximum of each row before exp.",
    ),
    Mistake(
        "the maximum is taken before the division and subtracted after it",
        lambda s, t: _plain_softmax(s / t - s.max(axis=-1, keepdims=True)),
        "The largest exponent must become 0. Divide first, then take the maximum of what you have.",
    ),
    Mistake(
        "the weights are raised to the power 1/temperature: what was rounded to 0 stays 0",
        lambda s, t: _powers(_softmax(s), t),
        "Right in theory, but a weight that was too small for the computer does not come back. Divide the scores first.",
        also=(lambda s, t: _powers(_plain_softmax(s), t),),
    ),
    _temperature_mistake(
        "softmax twice",
        lambda softmax, s, t: softmax(softmax(s) / t),
        "After one softmax all numbers lie between 0 and 1, and a second one makes them nearly equal. Once is enough.",
    ),
    _temperature_mistake(
        "normalised over the queries (axis −2)",
        lambda softmax, s, t: softmax(s / t, axis=-2),
        "Add up one row: it should be 1. The scores that compete are on the last axis.",
    ),
    _temperature_mistake(
        "normalised over the first axis",
        lambda softmax, s, t: softmax(s / t, axis=0),
        "Right for a single row. With queries or a batch in front, count from the other end: `axis=-1`.",
    ),
    Mistake(
        "one sum for the whole array",
        lambda s, t: np.exp(s / t - (s / t).max()) / np.exp(s / t - (s / t).max()).sum(),
        "Each row should sum to 1 by itself. `sum` needs `axis=-1, keepdims=True`.",
        also=(lambda s, t: np.exp(s / t) / np.exp(s / t).sum(),),
    ),
    Mistake(
        "keepdims=True is missing in the sum",
        lambda s, t: np.exp(s / t) / np.exp(s / t).sum(axis=-1),
        "The sums have lost their last axis, so NumPy lines them up with the columns: silently in a square, else an error.",
        also=(
            lambda s, t: (e := np.exp(s / t - (s / t).max(axis=-1, keepdims=True))) / e.sum(axis=-1),
            lambda s, t: (e := np.exp(s / t - (s / t).max(axis=-1))) / e.sum(axis=-1),
        ),
    ),
    Mistake(
        "not normalised",
        lambda s, t: np.exp(s / t),
        "Each row should sum to 1. Divide by the sum of its exps.",
        also=(lambda s, t: np.exp(s / t - (s / t).max(axis=-1, keepdims=True)),),
    ),
    Mistake(
        "the scores are returned before softmax",
        lambda s, t: s / t,
        "That is the first step. exp and the division by the sum are left.",
    ),
]

# entropy --------------------------------------------------------------------------------------------------------------


def entropy(weights):
    """Return −Σ w log w over the last axis of weights [..., n], with 0 log 0 = 0."""
    logarithms = np.log(np.where(weights > 0, weights, 1.0))  # log 1 = 0 where the weight is 0
    return -(weights * logarithms).sum(axis=-1)


def _weights(rng, *shape, zeros=False):
    """Weights of one decimal whose rows sum to 1, without a 0 unless zeros are wanted."""
    n = shape[-1]
    least = 0 if zeros else 1
    counts = rng.multinomial(10 - least * n, np.full(n, 1 / n), size=shape[:-1]) + least
    return counts / 10


def entropy_cases(rng):
    log2 = np.log(2.0)
    shared = np.array([[0.25, 0.75], [0.5, 0.5]])
    by_hand = np.array([2 * log2 - 0.75 * np.log(3.0), log2])
    return [
        Case("two words alike, by hand: log 2", (np.array([0.5, 0.5]),), np.float64(log2)),
        Case("two rows, by hand", (shared,), by_hand),
        Case("square: 3 queries, 3 keys", (_weights(rng, 3, 3),)),
        Case("2 queries, 4 keys", (_weights(rng, 2, 4),)),
        Case("5 words alike: log 5", (np.full((1, 5), 0.2),), np.array([np.log(5.0)])),
        Case("a batch of 2, with 3 queries and 4 keys", (_weights(rng, 2, 3, 4),)),
        Case("batch 2, heads 3, 2 queries, 5 keys", (_weights(rng, 2, 3, 2, 5),)),
        Case("one word has it all: 0", (np.array([[0.0, 1.0, 0.0]]),), np.array([0.0])),
        Case("some weights are 0", (np.array([[0.5, 0.0, 0.5], [0.0, 0.3, 0.7]]),)),
    ]


def _terms(weights):
    return weights * np.log(weights)


def _safe_terms(weights):
    return weights * np.log(np.where(weights > 0, weights, 1.0))


def _entropy_ways(finish):
    """A way of making a mistake with 0 log 0 = 0, and without it."""
    return lambda w: finish(_safe_terms(w)), (lambda w: finish(_terms(w)),)


def _entropy_mistake(name, finish, hint):
    wrong, also = _entropy_ways(finish)
    return Mistake(name, wrong, hint, also=also)


def _with_epsilon(epsilon):
    return lambda w: -(w * np.log(w + epsilon)).sum(axis=-1)


def _with_epsilon_twice(epsilon):
    return lambda w: -((w + epsilon) * np.log(w + epsilon)).sum(axis=-1)


entropy_mistakes = [
    _entropy_mistake(
        "the minus sign is missing",
        lambda terms: terms.sum(axis=-1),
        "The logarithm of a number below 1 is negative, and an entropy is not.",
    ),
    _entropy_mistake(
        "the logarithm to base 2: bits, not nats",
        lambda terms: -terms.sum(axis=-1) / np.log(2),
        "For two words alike you say 1. The natural logarithm, `np.log`, says log 2 = 0.693.",
    ),
    _entropy_mistake(
        "the logarithm to base 10",
        lambda terms: -terms.sum(axis=-1) / np.log(10),
        "For two words alike you say 0.301. The natural logarithm, `np.log`, says log 2 = 0.693.",
    ),
    Mistake(
        "0 log 0 is not a number",
        lambda w: -_terms(w).sum(axis=-1),
        "log 0 is −∞, and 0 times that is NaN. A weight of 0 should add 0: give the logarithm a 1 there.",
    ),
    Mistake(
        "a small number is added inside the logarithm",
        _with_epsilon(1e-8),
        "It avoids the NaN, but moves every result a little, and in float16 it vanishes. `np.where` is exact.",
        also=(
            _with_epsilon(1e-9),
            _with_epsilon(1e-7),
            _with_epsilon(1e-6),
            _with_epsilon(1e-5),
            _with_epsilon_twice(1e-8),
            _with_epsilon_twice(1e-9),
        ),
    ),
    _entropy_mistake(
        "one sum for the whole array",
        lambda terms: -terms.sum(),
        "Each row of weights has an entropy of its own. `sum` needs `axis=-1`.",
    ),
    Mistake(
        "`weights[weights > 0]` has lost the rows",
        lambda w: np.atleast_1d(-_terms(w[w > 0]).sum()),
        "Picking by a condition makes one long row of all that is left. Keep the shape: `np.where`.",
        also=(lambda w: -_terms(w[w > 0]),),
    ),
    _entropy_mistake(
        "added up over the queries (axis −2)",
        lambda terms: -terms.sum(axis=-2),
        "A row is what one query hands out. Its numbers stand along the last axis: `axis=-1`.",
    ),
    _entropy_mistake(
        "added up over the first axis",
        lambda terms: -terms.sum(axis=0),
        "Right for a single row. With queries or a batch in front, count from the other end: `axis=-1`.",
    ),
    _entropy_mistake(
        "an axis of length 1 is kept",
        lambda terms: -terms.sum(axis=-1, keepdims=True),
        "One number for each row, [...], without `keepdims`.",
    ),
    _entropy_mistake(
        "the mean of the terms, not their sum",
        lambda terms: -terms.mean(axis=-1),
        "The weights in front do the averaging already. Add the terms up.",
    ),
    _entropy_mistake(
        "the terms are not added up",
        lambda terms: -terms,
        "Each entry is one term. One step is left: their sum over the last axis.",
    ),
    Mistake(
        "the weight in front of the logarithm is missing",
        lambda w: -np.log(w).sum(axis=-1),
        "A word that is hardly looked at should hardly count. Each logarithm is multiplied by its weight.",
        also=(lambda w: -np.log(w).mean(axis=-1), lambda w: -np.log(np.where(w > 0, w, 1.0)).sum(axis=-1)),
    ),
    Mistake(
        "softmax is applied to the weights",
        lambda w: -_terms(_softmax(w)).sum(axis=-1),
        "They are weights already and sum to 1. A second softmax makes them nearly equal.",
    ),
    _entropy_mistake(
        "exp of the entropy",
        lambda terms: np.exp(-terms.sum(axis=-1)),
        "That is how many words it is as good as looking at alike, a fine number, but not the entropy. Leave exp out.",
    ),
    Mistake(
        "divided by log n",
        lambda w: -_safe_terms(w).sum(axis=-1) / np.log(w.shape[-1]),
        "Yours runs from 0 to 1. Here it runs from 0 to log n: leave the division out.",
        also=(lambda w: -_terms(w).sum(axis=-1) / np.log(w.shape[-1]),),
    ),
    Mistake(
        "only the largest weight counts: −log max",
        lambda w: -np.log(w.max(axis=-1)),
        "Right if all that are looked at are looked at alike. Every weight takes part.",
    ),
    Mistake(
        "squares instead of logarithms",
        lambda w: 1 - (w**2).sum(axis=-1),
        "1 − Σ w² measures spread too, but it is not the entropy. Use the logarithm.",
        also=(lambda w: (w**2).sum(axis=-1), lambda w: -np.log((w**2).sum(axis=-1))),
    ),
    Mistake(
        "log n, whatever the weights",
        lambda w: np.full(w.shape[:-1], np.log(w.shape[-1])),
        "That is the most it can be, when all weights are equal. Yours does not look at the weights.",
    ),
    Mistake(
        "(1 − w) log(1 − w) is added",
        lambda w: -(_safe_terms(w) + _safe_terms(1 - w)).sum(axis=-1),
        "That belongs to a yes-or-no question about each word. Here the words share one look: the terms w log w are all.",
        also=(lambda w: -(_terms(w) + _terms(1 - w)).sum(axis=-1),),
    ),
]

# softmax_jacobian -----------------------------------------------------------------------------------------------------


def softmax_jacobian(weights):
    """Return how weight i moves with score j, for weights [..., n]: an array [..., n, n]."""
    identity = np.eye(weights.shape[-1])
    return weights[..., :, None] * (identity - weights[..., None, :])


def jacobian_cases(rng):
    quarter = np.array([[0.1875, -0.1875], [-0.1875, 0.1875]])
    return [
        Case("two words alike, by hand", (np.array([0.5, 0.5]),), np.array([[0.25, -0.25], [-0.25, 0.25]])),
        Case("weights 1/4 and 3/4, by hand", (np.array([0.25, 0.75]),), quarter),
        Case("four words", (_weights(rng, 4),)),
        Case("one word has it all: nothing moves", (np.array([0.0, 1.0, 0.0]),), np.zeros((3, 3))),
        Case("square: 3 queries, 3 keys", (_weights(rng, 3, 3),)),
        Case("2 queries, 4 keys", (_weights(rng, 2, 4),)),
        Case("a batch of 2, with 3 queries and 4 keys", (_weights(rng, 2, 3, 4),)),
        Case("batch 2, heads 3, 2 queries, 3 keys", (_weights(rng, 2, 3, 2, 3),)),
        Case("a single word: its weight is 1 whatever its score", (np.array([[1.0]]),), np.array([[[0.0]]])),
    ]


def _outer(w):
    return w[..., :, None] * w[..., None, :]


def _diagonal(w):
    return w[..., :, None] * np.eye(w.shape[-1])


def _eye_like(w):
    return np.broadcast_to(np.eye(w.shape[-1]), (*w.shape, w.shape[-1])).copy()


def _loop_jacobian(w):
    if w.ndim > 1:
        return np.array([_loop_jacobian(row) for row in w])
    n = len(w)
    return np.array([[w[i] * ((i == j) - w[j]) for j in range(n)] for i in range(n)])


jacobian_mistakes = [
    Mistake(
        "the square is taken away twice on the diagonal",
        lambda w: np.eye(w.shape[-1]) * (w * (1 - w))[..., None] - _outer(w),
        "w (1 − w) has the − w² already. Either fill the diagonal, or start from w there and subtract all products.",
    ),
    Mistake(
        "only the diagonal: the other weights do not move",
        lambda w: _diagonal(w * (1 - w)),
        "Raise one weight, and the others must fall, since the sum stays 1. What should each column add up to?",
        also=(lambda w: np.diag(w * (1 - w)),),
    ),
    Mistake(
        "w (1 − w) alone, without the effect on the others",
        lambda w: w * (1 - w),
        "That is how each weight moves with its *own* score. Every weight moves with every score: [..., n, n].",
    ),
    Mistake(
        "the others rise instead of falling",
        lambda w: _diagonal(w) + _outer(w),
        "If one weight rises, the others must fall: the sum stays 1. Look at the signs off the diagonal.",
        also=(lambda w: np.where(np.eye(w.shape[-1]) == 1, _diagonal(w) - _outer(w), _outer(w)),),
    ),
    Mistake(
        "the diagonal lacks its + w",
        lambda w: -_outer(w),
        "Raising a score raises its own weight, yet your diagonal is negative. What is added where i = j?",
    ),
    Mistake(
        "every sign is turned round",
        lambda w: _outer(w) - _diagonal(w),
        "Raising a score should raise its own weight: the diagonal is positive.",
    ),
    Mistake(
        "the factor w_i is missing: the derivative of log w_i",
        lambda w: np.eye(w.shape[-1]) - w[..., None, :],
        "A weight of 0 cannot move, but yours does. The logarithm's derivative still has to be multiplied by w_i.",
        also=(lambda w: np.eye(w.shape[-1]) - w[..., :, None],),
    ),
    Mistake(
        "the 1 is everywhere, not only on the diagonal",
        lambda w: w[..., :, None] * (1 - w[..., None, :]),
        "w_i (1 − w_j) is right only where i = j. Elsewhere the 1 is a 0: use `np.eye(n)`.",
        also=(lambda w: w[..., None, :] * (1 - w[..., :, None]),),
    ),
    Mistake(
        "the identity instead of the weights on the diagonal",
        lambda w: np.eye(w.shape[-1]) - _outer(w),
        "On the diagonal stands w_i, not 1: what is w_i (1 − w_i), multiplied out?",
    ),
    Mistake(
        "the product of two weights is missing",
        lambda w: _diagonal(w),
        "Your matrix moves each weight alone. From w_i on the diagonal, w_i w_j is subtracted everywhere.",
    ),
    Mistake(
        "w_j is subtracted, not w_i w_j",
        lambda w: _diagonal(w) - w[..., None, :],
        "Which factor belongs to both terms?",
        also=(lambda w: _diagonal(w) - w[..., :, None],),
    ),
    Mistake(
        "the same weight in both factors: a square where two different weights are multiplied",
        lambda w: w[..., None, :] * (np.eye(w.shape[-1]) - w[..., None, :]),
        "One factor belongs to row i, the other to column j. One needs `[..., :, None]`, the other `[..., None, :]`.",
        also=(
            lambda w: w[..., :, None] * (np.eye(w.shape[-1]) - w[..., :, None]),
            lambda w: w * (np.eye(w.shape[-1]) - w),
        ),
    ),
    Mistake(
        "np.diag and np.outer, which know one row only",
        lambda w: np.diag(w) - np.outer(w, w),
        "Right for one row. For more, build both from `weights[..., :, None]` and `weights[..., None, :]`.",
        also=(
            lambda w: np.diagflat(w) - np.dot(w.reshape(-1, 1), w.reshape(1, -1)),
            lambda w: np.diag(w) - w[:, None] @ w[None, :],
        ),
    ),
    Mistake(
        "`weights[:, None]` counts from the front",
        lambda w: w[:, None] * (np.eye(w.shape[-1]) - w),
        "Right for one row. With queries or a batch in front the new axis must stand at the end: `[..., :, None]`.",
    ),
    Mistake(
        "the queries are mixed by a matrix product",
        lambda w: np.diag(w) - w * w[:, None] if w.ndim == 1 else _diagonal(w) - w.swapaxes(-1, -2) @ w,
        "`@` adds up over the queries, and each query has a Jacobian of its own. Use `*` with two new axes.",
    ),
    Mistake(
        "softmax is applied to the weights",
        lambda w: _diagonal(_softmax(w)) - _outer(_softmax(w)),
        "These are weights already, what softmax gave. Use them as they are.",
    ),
    Mistake(
        "the matrix is added up over the scores",
        lambda w: (_diagonal(w) - _outer(w)).sum(axis=-1),
        "Adding up a row gives 0, always, since raising all scores alike changes nothing. Return the whole matrix.",
    ),
]

check = Checker(
    "03",
    [
        Exercise(
            "score_variance",
            scaling.score_variance,
            score_variance,
            variance_cases,
            variance_mistakes,
            [
                lambda q, k: np.var(q @ k.T),
                lambda q, k: np.einsum("id,jd->ij", q, k).std() ** 2,
                _loop_variance,
            ],
        ),
        Exercise(
            "temperature_softmax",
            scaling.temperature_softmax,
            temperature_softmax,
            temperature_cases,
            temperature_mistakes,
            [
                lambda s, t: attention.softmax(s / t),
                lambda s, t: _softmax((s - s.max(axis=-1, keepdims=True)) / t),
                lambda s, t: attention.softmax((s / t).astype(np.float32)),
            ],
        ),
        Exercise(
            "entropy",
            scaling.entropy,
            entropy,
            entropy_cases,
            entropy_mistakes,
            [
                lambda w: -np.nansum(_terms(w), axis=-1),
                lambda w: -(w * np.log(np.clip(w, 1e-12, None))).sum(axis=-1),
                lambda w: -(w * np.log(w + 1e-12)).sum(axis=-1),
                lambda w: -np.einsum("...i,...i->...", w, np.log(np.where(w > 0, w, 1.0))),
            ],
        ),
        Exercise(
            "softmax_jacobian",
            scaling.softmax_jacobian,
            softmax_jacobian,
            jacobian_cases,
            jacobian_mistakes,
            [
                _loop_jacobian,
                lambda w: _diagonal(w) - np.einsum("...i,...j->...ij", w, w),
                lambda w: w[..., None] * _eye_like(w) - w[..., None] @ w[..., None, :],
            ],
        ),
    ],
)
