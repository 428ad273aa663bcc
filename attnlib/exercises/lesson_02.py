"""Exercises of lesson 02: softmax, scores, attention, and a query matrix set by hand."""

import numpy as np

from attnlib.data import sentence
from attnlib.exercises.core import Case, Checker, Exercise, Mistake
from attnlib.numpy import attention

# softmax --------------------------------------------------------------------------------------------------------------


def softmax(scores):
    """Turn scores [..., n] into weights that are positive and sum to 1 over the last axis."""
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def softmax_cases(rng):
    log3 = np.log(3.0)
    return [
        Case("one row, by hand: exp(0) = 1 and exp(log 3) = 3", (np.array([[0.0, log3]]),), np.array([[0.25, 0.75]])),
        Case("two rows, by hand", (np.array([[0.0, log3], [0.0, 0.0]]),), np.array([[0.25, 0.75], [0.5, 0.5]])),
        Case("2 queries and 3 keys", (rng.normal(size=(2, 3)).round(1),)),
        Case("scores below zero", (np.array([[-1.0, -3.0, -0.5], [-2.0, -2.5, -4.0]]),)),
        Case("no query axis, only keys", (rng.normal(size=4).round(1),)),
        Case("a batch of 2, with 3 queries and 4 keys", (rng.normal(size=(2, 3, 4)).round(1),)),
        Case("batch 2, heads 3, 2 queries, 4 keys", (rng.normal(size=(2, 3, 2, 4)).round(1),)),
        Case("large scores: 800 and 900", (np.array([[800.0, 900.0]]),), np.array([[0.0, 1.0]])),
        Case("±1000", (np.array([[1000.0, -1000.0, 1000.0]]),), np.array([[0.5, 0.0, 0.5]])),
        Case("one score far above the others", (np.array([[-1000.0, 1000.0, -1000.0]]),), np.array([[0.0, 1.0, 0.0]])),
        Case("a row of large scores and a row of very small ones", (np.array([[1000.0, 999.0], [-1000.0, -999.0]]),)),
    ]


def _loop_softmax(scores):
    if scores.ndim > 1:
        return np.array([_loop_softmax(row) for row in scores])
    exponentials = [np.exp(score - max(scores)) for score in scores]
    return [exponential / sum(exponentials) for exponential in exponentials]


def _stable_along(axis):
    def along(scores):
        exponentials = np.exp(scores - scores.max(axis=axis, keepdims=True))
        return exponentials / exponentials.sum(axis=axis, keepdims=True)

    return along


def _plain_along(axis):
    """Softmax along another axis as it is first written: without a maximum."""
    return lambda s: np.exp(s) / np.exp(s).sum(axis=axis, keepdims=True)


def _above(scores):
    """exp of each score, the largest of a row being 1."""
    return np.exp(scores - scores.max(axis=-1, keepdims=True))


def _shared_overflow(scores):
    exponentials = np.exp(scores)
    infinite = np.isinf(exponentials)
    shares = infinite / infinite.sum(axis=-1, keepdims=True)
    plain = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return np.where(infinite.any(axis=-1, keepdims=True), shares, plain)


def _log_softmax(scores):
    below = scores - scores.max(axis=-1, keepdims=True)
    return below - np.log(np.exp(below).sum(axis=-1, keepdims=True))


def _over(exponentials):
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


softmax_mistakes = [
    Mistake(
        "normalised over the queries (axis −2)",
        _stable_along(-2),
        "Pick one query, one row, and add up everything it hands out. That should be 1, not the columns.",
        ("sm01",),
        also=(_plain_along(-2),),
    ),
    Mistake(
        "normalised over the first axis (axis 0), which holds queries or the batch",
        _stable_along(0),
        "What competes for one query's attention are the keys, and they are on the last axis: `axis=-1`.",
        ("sm01", "sm02"),
        also=(_plain_along(0),),
    ),
    Mistake(
        "axis 1, counted from the front",
        _stable_along(1),
        "Right for a matrix, wrong once a batch or heads come in front. Count from the other end: `axis=-1`.",
        ("sm04",),
        also=(_plain_along(1),),
    ),
    Mistake(
        "axis 2, counted from the front",
        _stable_along(2),
        "Right for three axes only. Count from the other end: `axis=-1`.",
        ("sm03",),
    ),
    Mistake(
        "one sum for the whole array",
        lambda s: _above(s) / _above(s).sum(),
        "Print the sum of each row, then of the whole array: which did you want to be 1? `sum` needs an `axis=`.",
        ("sm05",),
        also=(
            lambda s: np.exp(s) / np.exp(s).sum(),
            lambda s: np.exp(s - s.max()) / np.exp(s - s.max()).sum(),
        ),
    ),
    Mistake(
        "keepdims=True is missing in the sum",
        lambda s: _above(s) / _above(s).sum(axis=-1),
        "The sums have lost their last axis, so NumPy lines them up with the columns: silently in a square, else an error.",
        ("sm06",),
        also=(
            lambda s: np.exp(s) / np.exp(s).sum(axis=-1),
            lambda s: np.exp(s - s.max()) / np.exp(s - s.max()).sum(axis=-1),
            lambda s: np.exp(s - s.max(axis=-1)) / np.exp(s - s.max(axis=-1)).sum(axis=-1),
        ),
    ),
    Mistake(
        "keepdims=True is missing in the maximum",
        lambda s: _over(np.exp(s - s.max(axis=-1))),
        "The maxima have lost their last axis, so each is subtracted from a column, not from its row.",
    ),
    Mistake(
        "every weight is 1: normalised over an axis of length one",
        lambda s: np.ones_like(s),
        "Among a single candidate there is only one possible answer. How long is the axis that you normalise over?",
        ("sm07", "sm02", "sm04"),
    ),
    Mistake(
        "the maximum is not subtracted, so exp overflows",
        lambda s: _over(np.exp(s)),
        "exp(1000) is infinite, and ∞/∞ is not a number. Subtracting the same number from a row changes no weight: which?",
        ("sm08",),
    ),
    Mistake(
        "the minimum is subtracted, so exp still overflows",
        lambda s: _over(np.exp(s - s.min(axis=-1, keepdims=True))),
        "The largest exponent must become 0, so that exp is at most 1. Which number of the row do you subtract for that?",
    ),
    Mistake(
        "the maximum of the whole array is subtracted, not of each row",
        lambda s: _over(np.exp(s - s.max())),
        "A row far below the others becomes 0/0. Each row needs its own maximum: `axis=-1, keepdims=True`.",
    ),
    Mistake(
        "the mean (or the first entry) is subtracted, not the maximum",
        lambda s: _over(np.exp(s - s.mean(axis=-1, keepdims=True))),
        "One score far above the rest still overflows. Only subtracting the largest keeps every exponent at 0 or below.",
    ),
    Mistake(
        "the maximum is subtracted above the line only",
        lambda s: _above(s) / np.exp(s).sum(axis=-1, keepdims=True),
        "The factor cancels only if it stands above and below. Compute the exps once and use them twice.",
    ),
    Mistake(
        "the sign is turned: the smallest score gets the largest weight",
        lambda s: _over(np.exp(s.min(axis=-1, keepdims=True) - s)),
        "A higher score should get a larger weight: `scores - maximum`, not `maximum - scores`.",
        also=(lambda s: _over(np.exp(-s)), lambda s: _over(np.exp(s.max(axis=-1, keepdims=True) - s))),
    ),
    Mistake(
        "a small number is added to the sum",
        lambda s: _above(s) / (_above(s).sum(axis=-1, keepdims=True) + 1e-8),
        "With the maximum subtracted the sum is at least 1, so nothing can be divided by 0. Leave it away.",
        also=(
            lambda s: _above(s) / (_above(s).sum(axis=-1, keepdims=True) + 1e-6),
            lambda s: np.exp(s) / (np.exp(s).sum(axis=-1, keepdims=True) + 1e-8),
        ),
    ),
    Mistake(
        "divided by the mean, not by the sum",
        lambda s: _above(s) / _above(s).mean(axis=-1, keepdims=True),
        "Your rows sum to n. Divide by what the exps add up to.",
        also=(lambda s: np.exp(s) / np.exp(s).mean(axis=-1, keepdims=True),),
    ),
    Mistake(
        "divided by the length (the root of the sum of squares)",
        lambda s: _above(s) / np.linalg.norm(_above(s), axis=-1, keepdims=True),
        "`np.linalg.norm` makes the squares sum to 1. Weights themselves should sum to 1.",
    ),
    Mistake(
        "softmax twice",
        lambda s: attention.softmax(attention.softmax(s)),
        "After the first softmax all numbers lie between 0 and 1; a second one makes them nearly equal.",
    ),
    Mistake(
        "written for a matrix: a loop over the rows",
        lambda s: np.array([np.exp(row - row.max()) / np.exp(row - row.max()).sum() for row in s]),
        "With a batch in front a *row* is a matrix. `axis=-1, keepdims=True` works for any number of axes, without a loop.",
        also=(lambda s: np.array([np.exp(row) / np.exp(row).sum() for row in s]),),
    ),
    Mistake(
        "divided by the maximum before exp, instead of subtracted",
        lambda s: _over(np.exp(s / s.max(axis=-1, keepdims=True))),
        "Dividing changes the differences between scores, and with them the weights. Subtract.",
    ),
    Mistake(
        "not-a-number is replaced after the overflow",
        lambda s: np.nan_to_num(_over(np.exp(s))),
        "That hides the overflow, but the weights are lost. Prevent it: subtract the maximum first.",
    ),
    Mistake(
        "overflow repaired afterwards: the infinite entries share the weight",
        _shared_overflow,
        "After the overflow 800 and 900 look the same. Act before the difference is lost: subtract the maximum first.",
        ("sm13",),
    ),
    Mistake(
        "scores are clipped before exp",
        lambda s: _over(np.exp(np.clip(s, -500, 500))),
        "Clipping makes 800 and 900 equal. Subtracting the maximum keeps their difference.",
        ("sm13",),
    ),
    Mistake(
        "exp is missing in the sum",
        lambda s: np.exp(s) / s.sum(axis=-1, keepdims=True),
        "Above the line there is exp, below it there is not. Each row should sum to 1.",
        ("sm12",),
        also=(lambda s: _above(s) / s.sum(axis=-1, keepdims=True),),
    ),
    Mistake(
        "exp is missing",
        lambda s: s / s.sum(axis=-1, keepdims=True),
        "Scores below zero would give weights below zero. exp makes everything positive first.",
        also=(lambda s: s / s.sum(),),
    ),
    Mistake(
        "not normalised",
        _above,
        "The largest is 1, but the row does not sum to 1. Divide by the sum of the row.",
        also=(np.exp,),
    ),
    Mistake(
        "divided by the largest, not by the sum of exps",
        lambda s: np.exp(s) / np.exp(s).max(axis=-1, keepdims=True),
        "Check the one property every row of weights has: what do yours add up to?",
        also=(lambda s: np.exp(s) / np.exp(s).max(),),
    ),
    Mistake(
        "a sigmoid: each score for itself",
        lambda s: 1 / (1 + np.exp(-s)),
        "In a softmax the scores compete: raise one, and the others fall. Yours do not see each other.",
    ),
    Mistake(
        "the logarithm of the weights",
        _log_softmax,
        "Weights lie between 0 and 1; yours are below zero. Take exp of them, or do not take log.",
        also=(lambda s: np.log(_over(np.exp(s))),),
    ),
]

# attention_scores -----------------------------------------------------------------------------------------------------


def attention_scores(query, key):
    """Compare each query [..., n_query, d_k] with each key [..., n_key, d_k]: query · key / √d_k."""
    return query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])


def _arrays(rng, *shapes):
    return tuple(rng.normal(size=shape).round(1) for shape in shapes)


ONE_ASKS_TWO = (np.ones((1, 4)), np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]]))


def scores_cases(rng):
    return [
        Case("1 query, 2 keys, d_k = 4, by hand: 4/√4 and 0", ONE_ASKS_TWO, np.array([[2.0, 0.0]])),
        Case("square: 3 queries, 3 keys, d_k = 3", _arrays(rng, (3, 3), (3, 3))),
        Case("2 queries, 3 keys, d_k = 4", _arrays(rng, (2, 4), (3, 4))),
        Case("4 queries, 2 keys, d_k = 1", _arrays(rng, (4, 1), (2, 1))),
        Case("a batch of 2, with 2 queries, 3 keys, d_k = 4", _arrays(rng, (2, 2, 4), (2, 3, 4))),
        Case("batch 2, heads 3, 2 queries, 4 keys, d_k = 5", _arrays(rng, (2, 3, 2, 5), (2, 3, 4, 5))),
        Case("large numbers", (1000 * rng.normal(size=(2, 2)).round(1), rng.normal(size=(3, 2)).round(1))),
    ]


def _products(query, key):
    return query @ key.swapaxes(-1, -2)


scores_mistakes = [
    Mistake(
        "not divided by √d_k",
        _products,
        "With d_k = 4 your scores are twice as large as they should be. What is still to be divided away?",
        ("sc01",),
    ),
    Mistake(
        "divided by d_k instead of √d_k, or by √d_k twice (in the query and in the key)",
        lambda q, k: _products(q, k) / q.shape[-1],
        "Shrink once, by √d_k: a sum of d_k products of spread 1 has spread √d_k, not d_k.",
        ("sc04", "sc05"),
    ),
    Mistake(
        "divided by √3, the d_k of the example above",
        lambda q, k: _products(q, k) / np.sqrt(3),
        "d_k was 3 there. Here it is whatever the last axis of `query` has: `query.shape[-1]`.",
    ),
    Mistake(
        "divided by d_k and then by 2: `** 1/2` is (…) ** 1, divided by 2",
        lambda q, k: _products(q, k) / q.shape[-1] ** 1 / 2,
        "`**` binds more strongly than `/`. Write `** 0.5`, or `np.sqrt`.",
        also=(lambda q, k: _products(q, k) / (q.shape[-1] ** 1 / 2),),
    ),
    Mistake(
        "multiplied by √d_k instead of divided",
        lambda q, k: _products(q, k) * np.sqrt(q.shape[-1]),
        "The longer the vectors, the larger the products already are. Should scaling make them larger still?",
        ("sc06",),
    ),
    Mistake(
        "the scale is taken from the number of keys",
        lambda q, k: _products(q, k) / np.sqrt(k.shape[-2]),
        "Print the number under your root: does it change when a word is added? It should be d_k, `query.shape[-1]`.",
        ("sc07",),
    ),
    Mistake(
        "the scale is taken from the number of queries",
        lambda q, k: _products(q, k) / np.sqrt(q.shape[-2]),
        "Print the number under your root: does it change when a query is added? It should be d_k, `query.shape[-1]`.",
    ),
    Mistake(
        "keys times queries: the scores are transposed",
        lambda q, k: _products(k, q) / np.sqrt(q.shape[-1]),
        "Entry (i, j) should compare query i with key j, so the queries come first: `query @ ...`.",
        ("at02",),
        also=(lambda q, k: _products(k, q),),
    ),
    Mistake(
        "the keys are not transposed",
        lambda q, k: q @ k / np.sqrt(q.shape[-1]),
        "A square hides it, other shapes do not fit. Each query must meet each key: swap the last two axes of `key`.",
        also=(lambda q, k: q @ k,),
    ),
    Mistake(
        "reshape instead of transpose",
        lambda q, k: q @ k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2]) / np.sqrt(q.shape[-1]),
        "`reshape` cuts the same row of numbers anew; it does not swap axes. Use `swapaxes(-1, -2)`.",
        also=(lambda q, k: q @ k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2]),),
    ),
    Mistake(
        "`.T` reverses all axes, the batch too",
        lambda q, k: q @ k.T / np.sqrt(q.shape[-1]),
        "Right for a matrix. With a batch in front swap only the last two axes: `key.swapaxes(-1, -2)`.",
        ("mh06",),
    ),
    Mistake(
        "axes are counted from the front: swapaxes(1, 2)",
        lambda q, k: q @ np.swapaxes(k, 1, 2) / np.sqrt(q.shape[-1]),
        "Right for three axes only. Count from the other end: `swapaxes(-1, -2)`.",
        also=(lambda q, k: q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]),),
    ),
    Mistake(
        "d_k is read from axis 1",
        lambda q, k: _products(q, k) / np.sqrt(q.shape[1]),
        "Right for a matrix. With a batch in front, axis 1 is something else: d_k is `query.shape[-1]`.",
    ),
    Mistake(
        "written for a matrix: loops over queries and keys",
        lambda q, k: np.array([[one @ other / np.sqrt(len(one)) for other in k] for one in q]),
        "With a batch in front, `for one in query` runs over the batch. A matrix product works for any number of axes.",
        also=(
            lambda q, k: np.array([[(one * other).sum() / np.sqrt(q.shape[-1]) for other in k] for one in q]),
            lambda q, k: np.einsum("id,jd->ij", q, k) / np.sqrt(q.shape[-1]),
        ),
    ),
    Mistake(
        "np.dot pairs each batch with each other batch",
        lambda q, k: np.dot(q, k.swapaxes(-1, -2)) / np.sqrt(q.shape[-1]),
        "Right for a matrix. With more axes `np.dot` makes all pairs; `@` keeps each batch to itself.",
    ),
    Mistake(
        "query and key are multiplied entry by entry",
        lambda q, k: (q * k).sum(axis=-1) / np.sqrt(q.shape[-1]),
        "`*` compares query i with key i only. Every query should meet every key: a matrix product.",
        also=(lambda q, k: (q * k).sum(axis=-1), lambda q, k: q * k / np.sqrt(q.shape[-1]), lambda q, k: q * k),
    ),
    Mistake(
        "products are not added up over d_k",
        lambda q, k: q[..., :, None, :] * k[..., None, :, :] / np.sqrt(q.shape[-1]),
        "There is an axis too many: a dot product is the sum of the products over d_k.",
    ),
    Mistake(
        "the cosine: lengths are divided away",
        lambda q, k: (
            _products(q, k)
            / np.linalg.norm(q, axis=-1, keepdims=True)
            / np.linalg.norm(k, axis=-1, keepdims=True).swapaxes(-1, -2)
        ),
        "A cosine forgets how long the vectors are. Here the scale is √d_k, the same for all.",
    ),
    Mistake(
        "softmax is already applied",
        lambda q, k: attention.softmax(_products(q, k) / np.sqrt(q.shape[-1])),
        "Scores are what goes *into* softmax. Return them before it.",
    ),
]

# scaled_dot_product_attention -----------------------------------------------------------------------------------------


def scaled_dot_product_attention(query, key, value):
    """Give each query the mean of value [..., n_key, d_v], weighted by softmax(query · key / √d_k)."""
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return weights @ value


def attention_cases(rng):
    third = np.log(3.0) * np.ones((1, 4)) / 2  # its product with four ones is 2 log 3, over √4: log 3
    by_hand = (third, ONE_ASKS_TWO[1], np.array([[4.0, 0.0], [0.0, 8.0]]))
    return [
        Case("1 query, 2 keys, d_k = 4, by hand: weights 3/4 and 1/4", by_hand, np.array([[3.0, 2.0]])),
        Case("square: 3 of everything", _arrays(rng, (3, 3), (3, 3), (3, 3))),
        Case("2 queries, 3 keys, d_k = 4, d_v = 5", _arrays(rng, (2, 4), (3, 4), (3, 5))),
        Case("one key: its value, whatever the query", _arrays(rng, (2, 3), (1, 3), (1, 2))),
        Case("a batch of 2", _arrays(rng, (2, 2, 4), (2, 3, 4), (2, 3, 5))),
        Case("batch 2, heads 3", _arrays(rng, (2, 3, 2, 5), (2, 3, 4, 5), (2, 3, 4, 1))),
        Case("scores beyond ±1000", (np.array([[1500.0, -1500.0]]), np.eye(2), np.array([[1.0], [2.0]]))),
        Case(
            "a query of large scores and one of very small ones",
            (np.array([[1500.0, -1500.0], [-1500.0, -1500.0]]), np.eye(2), np.array([[1.0], [2.0]])),
        ),
    ]


def _with_scores(change):
    return lambda q, k, v: attention.softmax(change(q, k)) @ v


def _with_weights(change, scores=attention.attention_scores):
    return lambda q, k, v: change(attention.softmax(scores(q, k)), v, q, k)


def _composed(query, key, value):
    return attention.softmax(attention.attention_scores(query, key)) @ value


def _loop(query, key, value):
    if query.ndim > 2:
        return np.array([_loop(q, k, v) for q, k, v in zip(query, key, value)])
    rows = []
    for q in query:
        scores = np.array([sum(q * k) / len(q) ** 0.5 for k in key])
        weights = np.exp(scores - max(scores))
        rows.append(sum(w * v for w, v in zip(weights, value)) / sum(weights))
    return np.array(rows)


attention_mistakes = [
    Mistake(
        "not divided by √d_k",
        _with_scores(_products),
        "Your weights are too peaked, the more so the larger d_k. Divide the scores by √d_k before softmax.",
        ("sc01",),
    ),
    Mistake(
        "divided by √d_k after the softmax",
        lambda q, k, v: attention.softmax(_products(q, k)) / np.sqrt(q.shape[-1]) @ v,
        "What should your weights add up to, and what do they add up to? Scale the scores, not the weights.",
        ("sc03",),
    ),
    Mistake(
        "divided by d_k instead of √d_k, or by √d_k twice",
        _with_scores(lambda q, k: _products(q, k) / q.shape[-1]),
        "Shrink once, by √d_k. `attention_scores` has divided already; in query and in key it would be twice, too.",
        ("sc04", "sc05"),
    ),
    Mistake(
        "multiplied by √d_k instead of divided",
        _with_scores(lambda q, k: _products(q, k) * np.sqrt(q.shape[-1])),
        "The longer the vectors, the larger the products already are. Should scaling make them larger still?",
        ("sc06",),
    ),
    Mistake(
        "the scale is taken from the number of keys",
        _with_scores(lambda q, k: _products(q, k) / np.sqrt(k.shape[-2])),
        "Print the number under your root: does it change when a word is added? It should be d_k, `query.shape[-1]`.",
        ("sc07",),
    ),
    Mistake(
        "the scale is taken from the width of the values",
        lambda q, k, v: attention.softmax(_products(q, k) / np.sqrt(v.shape[-1])) @ v,
        "Queries and keys are compared, so it is their width, d_k, that counts; the values may have another.",
    ),
    Mistake(
        "softmax over the queries (axis −2)",
        lambda q, k, v: attention.softmax(attention.attention_scores(q, k), axis=-2) @ v,
        "If all values are 7, every output must be 7. Which axis of the weights holds the keys?",
        ("sm01",),
        also=(lambda q, k, v: attention.softmax(_products(q, k), axis=-2) @ v,),
    ),
    Mistake(
        "softmax over the first axis (axis 0), which holds queries or the batch",
        lambda q, k, v: attention.softmax(attention.attention_scores(q, k), axis=0) @ v,
        "What competes are the keys, on the last axis of the scores: `axis=-1`.",
        ("sm01", "sm02"),
    ),
    Mistake(
        "one sum for the whole array of weights",
        lambda q, k, v: np.exp(attention.attention_scores(q, k)) / np.exp(attention.attention_scores(q, k)).sum() @ v,
        "Each row of weights should sum to 1 by itself. `sum` needs `axis=-1, keepdims=True`.",
        ("sm05",),
    ),
    Mistake(
        "the maximum is not subtracted in the softmax",
        lambda q, k, v: _over(np.exp(attention.attention_scores(q, k))) @ v,
        "With scores of ±1000 exp overflows. Use your `softmax` from above.",
        ("sm08",),
    ),
    Mistake(
        "the maximum of all scores is subtracted, not of each row",
        lambda q, k, v: _over(np.exp(attention.attention_scores(q, k) - attention.attention_scores(q, k).max())) @ v,
        "A query whose scores are far below the others becomes 0/0. Use your `softmax` from above.",
    ),
    Mistake(
        "keepdims=True is missing in the softmax",
        lambda q, k, v: (
            np.exp(attention.attention_scores(q, k)) / np.exp(attention.attention_scores(q, k)).sum(axis=-1) @ v
        ),
        "The sums line up with the columns instead of the rows. Use your `softmax` from above.",
        ("sm06",),
    ),
    Mistake(
        "axis 1 in the softmax, counted from the front",
        lambda q, k, v: attention.softmax(attention.attention_scores(q, k), axis=1) @ v,
        "Right for a matrix, wrong once a batch comes in front. The keys are on the last axis: `axis=-1`.",
        ("sm04",),
    ),
    Mistake(
        "d_k is read from axis 1",
        _with_scores(lambda q, k: _products(q, k) / np.sqrt(q.shape[1])),
        "Right for a matrix. With a batch in front, axis 1 is something else: d_k is `query.shape[-1]`.",
    ),
    Mistake(
        "the keys are not transposed",
        _with_scores(lambda q, k: q @ k / np.sqrt(q.shape[-1])),
        "A square hides it, other shapes do not fit. Each query must meet each key: swap the last two axes of `key`.",
    ),
    Mistake(
        "`.T` reverses all axes, the batch too",
        _with_scores(lambda q, k: q @ k.T / np.sqrt(q.shape[-1])),
        "Right for a matrix. With a batch in front swap only the last two axes: `key.swapaxes(-1, -2)`.",
    ),
    Mistake(
        "values times weights, instead of weights times values",
        _with_weights(lambda w, v, q, k: v @ w),
        "The weights are [n_query, n_key] and the values [n_key, d_v]: in which order does their product make sense?",
    ),
    Mistake(
        "the scores are returned",
        lambda q, k, v: attention.attention_scores(q, k),
        "These are the scores. Two steps are left: softmax, and the weighted mean of the values.",
        also=(lambda q, k, v: _products(q, k),),
    ),
    Mistake(
        "no softmax",
        lambda q, k, v: attention.attention_scores(q, k) @ v,
        "Scores can be below zero and do not sum to 1. What turns scores into weights?",
        also=(lambda q, k, v: _products(q, k) @ v,),
    ),
    Mistake(
        "softmax twice",
        _with_weights(lambda w, v, q, k: attention.softmax(w) @ v),
        "After the first softmax all numbers lie between 0 and 1; a second one makes them nearly equal.",
        also=(_with_weights(lambda w, v, q, k: attention.softmax(w) @ v, _products),),
    ),
    Mistake(
        "the weights are transposed before they meet the values",
        _with_weights(lambda w, v, q, k: w.swapaxes(-1, -2) @ v),
        "If all values are 7, every output must be 7: is it? Row i of the weights belongs to query i.",
        ("at01",),
        also=(_with_weights(lambda w, v, q, k: w.swapaxes(-1, -2) @ v, _products),),
    ),
    Mistake(
        "keys times queries: the scores are transposed",
        lambda q, k, v: attention.softmax(attention.attention_scores(k, q)) @ v,
        "Entry (i, j) of the scores should compare query i with key j: queries first.",
        ("at02",),
        also=(lambda q, k, v: attention.softmax(_products(k, q)) @ v,),
    ),
    Mistake(
        "the weights are multiplied with the values entry by entry",
        _with_weights(lambda w, v, q, k: w * v),
        "Weights [n_query, n_key] and values [n_key, d_v] meet in a matrix product: `weights @ value`.",
        also=(_with_weights(lambda w, v, q, k: w * v, _products),),
    ),
    Mistake(
        "the keys are averaged, not the values",
        _with_weights(lambda w, v, q, k: w @ k),
        "Keys are for finding, values are what is handed out. Which do the weights multiply at the end?",
        also=(_with_weights(lambda w, v, q, k: w @ k, _products),),
    ),
    Mistake(
        "the queries are averaged, not the values",
        _with_weights(lambda w, v, q, k: w @ q),
        "A query asks; what it gets is made of values. Which do the weights multiply at the end?",
        also=(_with_weights(lambda w, v, q, k: w @ q, _products),),
    ),
    Mistake(
        "the weights are returned",
        _with_weights(lambda w, v, q, k: w),
        "These are the weights [n_query, n_key]. One step is left: the weighted mean of the values.",
        also=(_with_weights(lambda w, v, q, k: w, _products),),
    ),
    Mistake(
        "output and weights are returned",
        _with_weights(lambda w, v, q, k: (w @ v, w)),
        "Return the output alone; weights come when asked for, in a later lesson.",
        also=(_with_weights(lambda w, v, q, k: (w @ v, w), _products),),
    ),
    Mistake(
        "a hard lookup: only the best key counts",
        lambda q, k, v: np.take_along_axis(v, _products(q, k).argmax(axis=-1)[..., None], axis=-2),
        "That is the nearest key of lesson 01. Here every value takes part, according to its weight.",
    ),
    Mistake(
        "the plain mean of the values",
        lambda q, k, v: np.broadcast_to(v.mean(axis=-2, keepdims=True), (*q.shape[:-1], v.shape[-1])).copy(),
        "This is lesson 00: every asker hears the same. The query should decide the weights.",
    ),
]

# query_matrix ---------------------------------------------------------------------------------------------------------

ASKERS = [("tired", "tired"), ("tired", "cross"), ("wide", "wide"), ("wide", "cross"), ("tired", "it")]


def query_matrix(strength):
    """Return W_query [5, 3], by which living askers find a living thing and broad askers a broad one."""
    w_query = np.zeros((5, 3))
    w_query[1] = [strength, strength, 0]  # living asks for thing and living
    w_query[2] = [strength, 0, strength]  # broad asks for thing and broad
    return w_query


def weights_of_askers(w_query, strength):
    """what tired, cross, wide, cross (twin), it give to [animal, street, other words]; a word with .8 or more counts as 1

    A word that gets .8 or more counts as found: that is how good a matrix must be, and many matrices are.
    """
    rows = []
    for last_word, asker in ASKERS:
        words = sentence.tokens(last_word)
        x = sentence.features(words)
        weights = attention.softmax(attention.attention_scores(x @ w_query, x @ sentence.KEY_MATRIX))[
            words.index(asker)
        ]
        nouns = weights[[words.index("animal"), words.index("street")]]
        rows.append([*(1.0 * (nouns >= 0.8)), 0.0] if nouns.max() >= 0.8 else [*nouns, 1 - nouns.sum()])
    return np.array(rows)


def query_matrix_cases(rng):
    return [
        Case("strength 5", (5.0,)),
        Case("strength 0: nobody asks, all weights are equal", (0.0,)),
        Case("strength 20", (20.0,)),
    ]


def _rows(living, broad, pronoun=(0, 0, 0), quality=(0, 0, 0)):
    """A matrix that takes its rows, times the strength."""
    return lambda strength: strength * np.array([(0, 0, 0), living, broad, quality, pronoun], dtype=float)


query_matrix_mistakes = [
    Mistake(
        "asks only for the feature that it shares",
        _rows((0, 1, 0), (0, 0, 1)),
        "*tired* is living too, so it finds itself as much as the animal. What does a noun have that *tired* has not?",
    ),
    Mistake(
        "asks only for a thing",
        _rows((1, 0, 0), (1, 0, 0)),
        "Animal and street are both things, so they share the weight. What sets apart the one that is meant?",
    ),
    Mistake(
        "living and broad are exchanged",
        _rows((1, 0, 1), (1, 1, 0)),
        "*tired* looks at the street now. Row 1 belongs to living askers, row 2 to broad ones.",
    ),
    Mistake(
        "every asker asks for everything",
        _rows((1, 1, 1), (1, 1, 1)),
        "Asking for thing, living and broad alike fits animal and street equally. Ask for two of the three.",
        also=(lambda strength: strength * np.ones((5, 3)),),
    ),
    Mistake(
        "the strength is not used",
        lambda strength: _rows((1, 1, 0), (1, 0, 1))(5.0),
        "With strength 0 nobody should ask for anything. Multiply by `strength`.",
    ),
    Mistake(
        "the strength is left at 1: too weak to choose",
        lambda strength: _rows((1, 1, 0), (1, 0, 1))(min(strength, 1.0)),
        "The right words lead, but by less than .8. Where could `strength` go?",
    ),
    Mistake(
        "the quality asks, not what the quality is about",
        _rows((0, 0, 0), (0, 0, 0), quality=(1, 1, 0)),
        "*tired* and *wide* are both qualities, so they ask the same. Let living ask for living, broad for broad.",
    ),
    Mistake(
        "all rows ask, *it* too",
        _rows((1, 1, 0), (1, 0, 1), pronoun=(1, 0, 0)),
        "Here *it* should stay silent: its row is zeros. (It will have its turn below.)",
    ),
    Mistake(
        "only living askers have a row",
        _rows((1, 1, 0), (0, 0, 0)),
        "*tired* finds its noun. *wide* and *cross* are broad: what does row 2 ask for?",
    ),
    Mistake(
        "nobody asks for anything",
        _rows((0, 0, 0), (0, 0, 0)),
        "With zeros every weight is 1/11. Fill the rows of *living* and *broad*.",
    ),
    Mistake(
        "one row too high: *thing* and *living* ask",
        lambda strength: strength * np.array([(1, 1, 0), (1, 0, 1), (0, 0, 0), (0, 0, 0), (0, 0, 0)], dtype=float),
        "Rows are counted from 0: row 0 is *thing*, row 1 *living*, row 2 *broad*.",
    ),
    Mistake(
        "the row of *living* asks for *living* twice, that of *broad* for *broad* twice",
        _rows((0, 2, 0), (0, 0, 2)),
        "Asking harder for one feature does not help: *tired* has it too. Ask for two features, one of them *thing*.",
    ),
    Mistake(
        "the matrix is transposed",
        lambda strength: _rows((1, 1, 0), (1, 0, 1))(strength).T,
        "x is [11, 5] and a query has 3 numbers, so W_query is [5, 3]: one row for each feature.",
    ),
    Mistake(
        "a minus sign: it asks for the opposite",
        _rows((-1, -1, 0), (-1, 0, -1)),
        "Now the words without these features win. A large score should mean: this is what I look for.",
    ),
]

check = Checker(
    "02",
    [
        Exercise(
            "softmax",
            attention.softmax,
            softmax,
            softmax_cases,
            softmax_mistakes,
            [
                _loop_softmax,
                lambda s: np.exp(_log_softmax(s)),
                lambda s: attention.softmax(s.astype(np.float32)),
            ],
        ),
        Exercise(
            "attention_scores",
            attention.attention_scores,
            attention_scores,
            scores_cases,
            scores_mistakes,
            [
                lambda q, k: np.einsum("...id,...jd->...ij", q, k) / q.shape[-1] ** 0.5,
                lambda q, k: (q[..., :, None, :] * k[..., None, :, :]).sum(axis=-1) / np.sqrt(k.shape[-1]),
                lambda q, k: (q / q.shape[-1] ** 0.25) @ (k / q.shape[-1] ** 0.25).swapaxes(-1, -2),
            ],
        ),
        Exercise(
            "scaled_dot_product_attention",
            attention.scaled_dot_product_attention,
            scaled_dot_product_attention,
            attention_cases,
            attention_mistakes,
            [_composed, _loop],
        ),
        Exercise(
            "query_matrix",
            sentence.query_matrix,
            query_matrix,
            query_matrix_cases,
            query_matrix_mistakes,
            [
                lambda strength: np.vstack(
                    [np.zeros(3), [strength, strength, 0], [strength, 0, strength], np.zeros((2, 3))]
                ),
                lambda strength: _rows((1.2, 1, 0), (1.5, 0, 1.1))(strength),
            ],
            view=weights_of_askers,
        ),
    ],
)
