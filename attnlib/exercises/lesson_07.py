"""Exercises of lesson 07: central differences, the backward pass of softmax and of attention, one step of training."""

import functools
from dataclasses import dataclass

import numpy as np

from attnlib.exercises.core import Case, Checker, Exercise, Mistake
from attnlib.numpy import attention, gradients, training


def _arrays(rng, *shapes):
    return tuple(rng.normal(size=shape).round(1) for shape in shapes)


def _t(array):
    """The last two axes exchanged."""
    return array.swapaxes(-1, -2)


# numeric_gradient -----------------------------------------------------------------------------------------------------


@functools.cache
def compiled(source):
    return eval(source, {"np": np})


@dataclass(frozen=True)
class Formula:
    """A function that shows its source, so that a case that holds it can be copied, compared and sent elsewhere."""

    source: str

    def __call__(self, x):
        """Apply it."""
        return compiled(self.source)(x)

    def __repr__(self):
        return self.source


def numeric_gradient(function, x, epsilon):
    """Return how fast function(x), one number, grows with each entry of x, by central differences: an array like x."""
    gradient = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[index] = up[index] + epsilon
        down[index] = down[index] - epsilon
        gradient[index] = (function(up) - function(down)) / (2 * epsilon)
    return gradient


SQUARES, CUBES = Formula("lambda x: (x**2).sum()"), Formula("lambda x: (x**3).sum()")


def numeric_cases(rng):
    product = Formula("lambda x: x[0] * x[1] + 3 * x[1]")
    matrix = Formula("lambda x: (x[0] * x[-1]).sum() + (np.arange(x.size) * x.ravel()).sum()")
    softmax = Formula("lambda x: (np.exp(x) / np.exp(x).sum())[0]")
    return [
        Case("a cube, by hand: (1.1³ − 0.9³) / 0.2", (CUBES, np.array([1.0]), 0.1), np.array([3.01])),
        Case("squares, by hand: twice each entry", (SQUARES, np.array([1.0, -2.0]), 0.5), np.array([2.0, -4.0])),
        Case("a product, by hand", (product, np.array([2.0, 5.0]), 0.5), np.array([5.0, 5.0])),
        Case("a matrix of 2 × 2", (matrix, rng.normal(size=(2, 2)).round(1), 0.01)),
        Case("a matrix of 2 × 3", (matrix, rng.normal(size=(2, 3)).round(1), 0.01)),
        Case("three axes", (CUBES, rng.normal(size=(2, 1, 2)).round(1), 0.1)),
        Case("the first weight of a softmax", (softmax, rng.normal(size=3).round(1), 0.001)),
    ]


def _flat_numeric(function, x, epsilon):
    moves = epsilon * np.eye(x.size).reshape(x.size, *x.shape)
    return np.array([(function(x + m) - function(x - m)) / (2 * epsilon) for m in moves]).reshape(x.shape)


def _restored_numeric(function, x, epsilon):
    x, gradient = x.copy(), np.zeros_like(x)
    for index in np.ndindex(*x.shape):
        before = x[index]
        x[index] = before + epsilon
        up = function(x)
        x[index] = before - epsilon
        gradient[index] = (up - function(x)) / (2 * epsilon)
        x[index] = before
    return gradient


def _by_entry(quotient):
    """Each entry from function, x, the move of this entry, and epsilon."""

    def numeric(function, x, epsilon):
        gradient = np.zeros(x.shape)
        for index in np.ndindex(x.shape):
            move = np.zeros(x.shape)
            move[index] = epsilon
            gradient[index] = quotient(function, x, move, epsilon)
        return gradient

    return numeric


def _not_put_back(function, x, epsilon):
    moved, gradient = x.copy(), np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        moved[index] = x[index] + epsilon
        up = function(moved)
        moved[index] = x[index] - epsilon
        gradient[index] = (up - function(moved)) / (2 * epsilon)
    return gradient


def _one_array(function, x, epsilon):
    gradient = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        up = down = x.copy()
        up[index] += epsilon
        down[index] -= epsilon
        gradient[index] = (function(up) - function(down)) / (2 * epsilon)
    return gradient


def _rows(function, x, epsilon):
    gradient = np.zeros(x.shape)
    for i in range(len(x)):
        move = np.zeros(x.shape)
        move[i] = epsilon
        gradient[i] = (function(x + move) - function(x - move)) / (2 * epsilon)
    return gradient


_central = _by_entry(lambda f, x, m, e: (f(x + m) - f(x - m)) / (2 * e))

numeric_mistakes = [
    Mistake(
        "a one-sided difference, forward",
        _by_entry(lambda f, x, m, e: (f(x + m) - f(x)) / e),
        "Of a square you get a little too much. Go as far down as up, so that the bend cancels.",
    ),
    Mistake(
        "a one-sided difference, backward",
        _by_entry(lambda f, x, m, e: (f(x) - f(x - m)) / e),
        "Of a square you get a little too little. Go as far up as down, so that the bend cancels.",
    ),
    Mistake(
        "divided by epsilon, not by twice epsilon",
        _by_entry(lambda f, x, m, e: (f(x + m) - f(x - m)) / e),
        "How far apart are the two points at which you call the function?",
    ),
    Mistake(
        "not divided by epsilon",
        _by_entry(lambda f, x, m, e: f(x + m) - f(x - m)),
        "This is how much the function grew. How much is that for each unit of the way?",
        also=(_by_entry(lambda f, x, m, e: (f(x + m) - f(x - m)) / 2), _by_entry(lambda f, x, m, e: f(x + m) - f(x))),
    ),
    Mistake(
        "brackets: divided by 2, then multiplied by epsilon",
        _by_entry(lambda f, x, m, e: (f(x + m) - f(x - m)) / 2 * e),
        "`a / 2 * epsilon` is read from left to right. Write `a / (2 * epsilon)`.",
    ),
    Mistake(
        "brackets: only the second value is divided",
        _by_entry(lambda f, x, m, e: f(x + m) - f(x - m) / (2 * e)),
        "Division binds more tightly than minus. Put the difference into brackets.",
    ),
    Mistake(
        "the sign is turned: down minus up",
        _by_entry(lambda f, x, m, e: (f(x - m) - f(x + m)) / (2 * e)),
        "A function that grows should have a gradient above 0. Which of the two values comes first?",
    ),
    Mistake(
        "all entries are moved at once",
        lambda f, x, e: np.full(x.shape, (f(x + e) - f(x - e)) / (2 * e)),
        "`x + epsilon` moves every entry, so you get the sum of all slopes. Move one, leave the rest.",
        also=(lambda f, x, e: (f(x + e) - f(x - e)) / (2 * e),),
    ),
    Mistake(
        "whole rows are moved",
        _rows,
        "`x[i]` is a whole row if x is a matrix. `np.ndindex(x.shape)` goes through single entries.",
    ),
    Mistake(
        "a moved entry is not put back",
        _not_put_back,
        "The first entry is right, the later ones are not: what has x become by then? Begin each time from a fresh copy.",
    ),
    Mistake(
        "up and down are the same array",
        _one_array,
        "`down = up` is a second name for one array: every move up is undone. Make two copies.",
    ),
    Mistake(
        "the result is flat",
        lambda f, x, e: _central(f, x, e).ravel(),
        "A gradient has the shape of what it belongs to. Begin with `np.zeros(x.shape)`.",
    ),
    Mistake(
        "epsilon is not used",
        lambda f, x, e: _central(f, x, 1e-5),
        "Your result is the same for every epsilon. It comes as an argument; use that one.",
        also=(lambda f, x, e: _central(f, x, 1e-3),),
    ),
    Mistake(
        "one number: the slopes are added up",
        lambda f, x, e: _central(f, x, e).sum(),
        "Each entry of x has a slope of its own. Store it at the entry's index.",
    ),
    Mistake(
        "the second derivative",
        _by_entry(lambda f, x, m, e: (f(x + m) - 2 * f(x) + f(x - m)) / e**2),
        "That is how the slope changes. The slope itself needs two values only.",
    ),
    Mistake(
        "moved by half of epsilon, divided by twice epsilon",
        _by_entry(lambda f, x, m, e: (f(x + m / 2) - f(x - m / 2)) / (2 * e)),
        "From x − ε/2 to x + ε/2 it is ε, not 2 ε. Move by epsilon on each side.",
        also=(_by_entry(lambda f, x, m, e: (f(x + m / 2) - f(x - m / 2)) / e),),
    ),
]

# softmax_backward -----------------------------------------------------------------------------------------------------


def softmax_backward(weights, grad_weights):
    """Return the gradient of the scores [..., n], from the weights that softmax made of them and their gradient."""
    mean = (weights * grad_weights).sum(axis=-1, keepdims=True)
    return weights * (grad_weights - mean)


def _weights(rng, *shape):
    """Weights with one decimal, rows that sum to 1."""
    ten = rng.multinomial(10, np.full(shape[-1], 1 / shape[-1]), size=shape[:-1])
    return ten / 10


def softmax_cases(rng):
    half = np.array([[0.5, 0.5]])
    empty = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])
    return [
        Case("two equal weights, by hand", (half, np.array([[1.0, 0.0]])), np.array([[0.25, -0.25]])),
        Case("3/4 and 1/4, by hand", (np.array([0.75, 0.25]), np.array([4.0, 0.0])), np.array([0.75, -0.75])),
        Case("square: 3 queries, 3 keys", (_weights(rng, 3, 3), rng.normal(size=(3, 3)).round(1))),
        Case("2 queries, 4 keys", (_weights(rng, 2, 4), rng.normal(size=(2, 4)).round(1))),
        Case("a batch of 2", (_weights(rng, 2, 3, 4), rng.normal(size=(2, 3, 4)).round(1))),
        Case("batch 2, heads 3", (_weights(rng, 2, 3, 2, 4), rng.normal(size=(2, 3, 2, 4)).round(1))),
        Case("a row with nothing to attend to", (empty, np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))),
        Case(
            "all weight on one key: nothing can change", (np.array([[0.0, 1.0, 0.0]]), np.array([[5.0, -7.0, 900.0]]))
        ),
    ]


def _by_jacobian(weights, grad_weights):
    jacobian = np.eye(weights.shape[-1]) * weights[..., None, :] - weights[..., :, None] * weights[..., None, :]
    return (jacobian @ grad_weights[..., None])[..., 0]


def _by_loops(weights, grad_weights):
    result = np.zeros(weights.shape)
    for row in np.ndindex(weights.shape[:-1]):
        for i in range(weights.shape[-1]):
            for j in range(weights.shape[-1]):
                result[row][i] += weights[row][j] * ((i == j) - weights[row][i]) * grad_weights[row][j]
    return result


def _mean(p, g):
    return (p * g).sum(axis=-1, keepdims=True)


softmax_mistakes = [
    Mistake(
        "the Jacobian is taken as diagonal",
        lambda p, g: p * (1 - p) * g,
        "Raising one weight lowers the others, and yours do not see each other. Each row of the result must sum to 0: does it?",
        ("bw01",),
    ),
    Mistake(
        "the sum below the line is treated as a constant",
        lambda p, g: p * g,
        "Each score stands above *and* below the line. This is the path above only; raise all scores alike, and nothing may change.",
        ("bw05",),
    ),
    Mistake(
        "only the path below the line: the direct one is missing",
        lambda p, g: -p * _mean(p, g),
        "This is what the shared sum contributes. A score also raises its own weight directly.",
    ),
    Mistake(
        "the gradient of log softmax",
        lambda p, g: g - p * g.sum(axis=-1, keepdims=True),
        "That is the derivative of log softmax. Multiply by the weights.",
        ("bw06",),
        also=(lambda p, g: g + p, lambda p, g: g + p * g.sum(axis=-1, keepdims=True)),
    ),
    Mistake(
        "the sum runs over the queries (axis −2)",
        lambda p, g: p * (g - (p * g).sum(axis=-2, keepdims=True)),
        "Along which axis did softmax run in the forward pass? The sum runs there too.",
    ),
    Mistake(
        "the sum runs over the first axis (axis 0)",
        lambda p, g: p * (g - (p * g).sum(axis=0)),
        "Softmax ran over the last axis, where the keys are: `axis=-1, keepdims=True`.",
        ("bw07",),
    ),
    Mistake(
        "axis 1, counted from the front",
        lambda p, g: p * (g - (p * g).sum(axis=1, keepdims=True)),
        "Right for a matrix, wrong once a batch or heads come in front. Count from the other end: `axis=-1`.",
    ),
    Mistake(
        "keepdims=True is missing",
        lambda p, g: p * (g - (p * g).sum(axis=-1)),
        "The sums have lost their last axis and line up with the columns: silently in a square, else an error.",
    ),
    Mistake(
        "one sum for the whole array",
        lambda p, g: p * (g - (p * g).sum()),
        "Each row is a softmax of its own, so each has its own sum: `axis=-1, keepdims=True`.",
    ),
    Mistake(
        "the sum of the gradients, without the weights",
        lambda p, g: p * (g - g.sum(axis=-1, keepdims=True)),
        "Print the sum of each row of your result: 0 only if what is subtracted is the mean *weighted by the weights*.",
    ),
    Mistake(
        "the plain mean of the gradients",
        lambda p, g: p * (g - g.mean(axis=-1, keepdims=True)),
        "A key with little weight counts little in the mean: weight the gradients before you add them up.",
    ),
    Mistake(
        "the weighted gradients are averaged, not added up",
        lambda p, g: p * (g - (p * g).mean(axis=-1, keepdims=True)),
        "The weights sum to 1 already: add up, do not average.",
        also=(lambda p, g: p * (g - (p * g).mean()),),
    ),
    Mistake(
        "the weight in front belongs to the gradient only, not to the sum",
        lambda p, g: p * g - _mean(p, g),
        "The sum is taken away from the gradient, and what is left is multiplied by the weight. Where do the brackets stand?",
    ),
    Mistake(
        "the weights are missing in front",
        lambda p, g: g - _mean(p, g),
        "A key of weight 0 cannot be moved by its score (a masked one, say). By what is the bracket multiplied?",
    ),
    Mistake(
        "plus instead of minus",
        lambda p, g: p * (g + _mean(p, g)),
        "If every weight is pushed up equally, nothing can change, since they must sum to 1. What does yours give then?",
    ),
    Mistake(
        "the sign is turned",
        lambda p, g: -p * (g - _mean(p, g)),
        "Push up one weight alone: its own score should get a gradient above 0.",
    ),
    Mistake(
        "softmax is skipped: the gradient is handed on as it is",
        lambda p, g: g.copy(),
        "Softmax stands between scores and weights, so its derivative belongs in the chain.",
    ),
    Mistake(
        "the Jacobian is returned, not its product with the gradient",
        lambda p, g: np.eye(p.shape[-1]) * p[..., None, :] - p[..., :, None] * p[..., None, :],
        "One axis too many: multiply the Jacobian by `grad_weights` and add up.",
    ),
    Mistake(
        "the Jacobian meets the gradient as a matrix: its last axis is missing",
        lambda p, g: (np.eye(p.shape[-1]) * p[..., None, :] - p[..., :, None] * p[..., None, :]) @ g,
        "Right for one row. `@` takes gradients of several rows for one matrix: give each a last axis of 1, and drop it after.",
    ),
    Mistake(
        "np.diag and np.outer, which know one row only",
        lambda p, g: (np.diag(p) - np.outer(p, p)) @ g,
        "Right for one row. For more, the Jacobian needs two last axes, or none at all: what does each row subtract?",
        also=(lambda p, g: g @ (np.diag(p) - np.outer(p, p)),),
    ),
    Mistake(
        "softmax is applied to the weights once more",
        lambda p, g: softmax_backward(attention.softmax(p), g),
        "What comes in are the weights already, after softmax. Use them as they are.",
    ),
    Mistake(
        "divided by the weights",
        lambda p, g: (g - _mean(p, g)) / p,
        "A weight of 0 makes yours infinite. The derivative of exp multiplies; nothing is divided.",
        also=(lambda p, g: g / p,),
    ),
    Mistake(
        "the weight in front is squared",
        lambda p, g: p * (p * g - _mean(p, g)),
        "One weight too many inside the bracket: there stands the gradient alone, minus the mean.",
    ),
]

# attention_backward ---------------------------------------------------------------------------------------------------


def attention_backward(query, key, value, grad_output, mask=None):
    """Return (grad_query, grad_key, grad_value) of attention, from the gradient of its output [..., n_query, d_v]."""
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    weights = np.exp(scores - np.maximum(scores.max(axis=-1, keepdims=True), -1e300))  # a row of −inf becomes zeros
    weights = weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-300)
    grad_value = weights.swapaxes(-1, -2) @ grad_output
    grad_weights = grad_output @ value.swapaxes(-1, -2)
    grad_scores = weights * (grad_weights - (weights * grad_weights).sum(axis=-1, keepdims=True))
    grad_scores = grad_scores / np.sqrt(query.shape[-1])
    return grad_scores @ key, grad_scores.swapaxes(-1, -2) @ query, grad_value


def attention_cases(rng):
    third = np.log(3.0) * np.ones((1, 4)) / 2  # its products with the keys, over √4, are log 3 and 0
    by_hand = (third, np.array([[1.0] * 4, [0.0] * 4]), np.array([[4.0], [0.0]]), np.array([[1.0]]))
    results = (
        np.full((1, 4), 0.375),  # grad_scores 3/4 and −3/4, over √4, times the keys
        np.array([[1.0], [-1.0]]) * 0.375 * third,
        np.array([[0.75], [0.25]]),
    )
    mask = np.array([[True, False, True], [True, True, False]])
    return [
        Case("1 query, 2 keys, d_k = 4, by hand: weights 3/4 and 1/4", by_hand, results),
        Case("square: 3 of everything", _arrays(rng, (3, 3), (3, 3), (3, 3), (3, 3))),
        Case("2 queries, 3 keys, d_k = 4, d_v = 5", _arrays(rng, (2, 4), (3, 4), (3, 5), (2, 5))),
        Case("the same with a mask", (*_arrays(rng, (2, 4), (3, 4), (3, 5), (2, 5)), mask)),
        Case("a batch of 2", _arrays(rng, (2, 2, 4), (2, 3, 4), (2, 3, 5), (2, 2, 5))),
        Case("batch 2, heads 3, a mask", (*_arrays(rng, (2, 3, 2, 4), (2, 3, 3, 4), (2, 3, 3, 1), (2, 3, 2, 1)), mask)),
        Case("scores beyond ±1000", (np.array([[1500.0, -1500.0]]), np.eye(2), *_arrays(rng, (2, 3), (1, 3)))),
        Case(
            "a query with nothing to attend to", (*_arrays(rng, (2, 2), (3, 2), (3, 1), (2, 1)), mask * [[0], [1]] > 0)
        ),
    ]


def _attention_way(
    *,
    scores=lambda q, k: q @ _t(k) / np.sqrt(q.shape[-1]),
    weigh=lambda s, mask: s if mask is None else np.where(mask, s, -np.inf),
    softmax=attention.softmax,
    through=softmax_backward,
    scale=lambda g, q, k, v: g / np.sqrt(q.shape[-1]),
    into_value=lambda w, go, s, gw: _t(w) @ go,
    into_weights=lambda go, v: go @ _t(v),
    into_query=lambda gs, q, k: gs @ k,
    into_key=lambda gs, q, k: _t(gs) @ q,
    back=lambda gq, gk, gv: (gq, gk, gv),
):
    """The backward pass with one line replaced."""

    def backward(query, key, value, grad_output, mask=None):
        raw = scores(query, key)
        weights = softmax(weigh(raw, mask))
        grad_weights = into_weights(grad_output, value)
        grad_scores = scale(through(weights, grad_weights), query, key, value)
        grad_value = into_value(weights, grad_output, raw, grad_weights)
        return back(into_query(grad_scores, query, key), into_key(grad_scores, query, key), grad_value)

    return backward


def _plain_softmax(scores):
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _masked_after(query, key, value, grad_output, mask=None):
    return _attention_way(
        weigh=lambda s, m: s,
        softmax=lambda s: attention.softmax(s) * (1 if mask is None else mask),
    )(query, key, value, grad_output)


def _composed(query, key, value, grad_output, mask=None):
    _, weights = attention.scaled_dot_product_attention(query, key, value, mask, return_weights=True)
    grad_scores = _by_jacobian(weights, grad_output @ _t(value)) / np.sqrt(query.shape[-1])
    return grad_scores @ key, _t(_t(query) @ grad_scores), _t(weights) @ grad_output


def _scaled_operands(query, key, value, grad_output, mask=None):
    root = np.sqrt(query.shape[-1])
    _, weights = attention.scaled_dot_product_attention(query / root, key, value, mask, scale=1, return_weights=True)
    grad_scores = softmax_backward(weights, grad_output @ _t(value))
    return [grad_scores @ key / root, _t(grad_scores) @ (query / root), _t(weights) @ grad_output]


attention_mistakes = [
    Mistake(
        "the scale is missing in grad_key",
        _attention_way(into_key=lambda gs, q, k: _t(gs) @ q * np.sqrt(q.shape[-1])),
        "Write down the chain from key to loss: how many factors are there? 1/√d_k multiplies the scores, so it multiplies both gradients.",
        ("bw02",),
    ),
    Mistake(
        "the scale is missing in grad_query",
        _attention_way(into_query=lambda gs, q, k: gs @ k * np.sqrt(q.shape[-1])),
        "1/√d_k stands between query and scores too. Scale grad_scores once, and both gradients have it.",
    ),
    Mistake(
        "the scale is missing in the backward pass",
        _attention_way(scale=lambda g, q, k, v: g),
        "grad_value is right, the other two are too large by √d_k. What multiplied the products in the forward pass?",
    ),
    Mistake(
        "the scale is applied twice in the backward pass",
        _attention_way(scale=lambda g, q, k, v: g / q.shape[-1]),
        "There is one factor 1/√d_k between grad_scores and each of query and key, not two.",
    ),
    Mistake(
        "the scores are not divided by √d_k when the weights are computed again",
        _attention_way(scores=lambda q, k: q @ _t(k)),
        "The backward pass must use the very weights of the forward pass, and those had the scale.",
        also=(_attention_way(scores=lambda q, k: q @ _t(k), scale=lambda g, q, k, v: g),),
    ),
    Mistake(
        "the scale is taken from the width of the values",
        _attention_way(scale=lambda g, q, k, v: g / np.sqrt(v.shape[-1])),
        "The forward pass divided by the root of d_k, `query.shape[-1]`. The backward pass divides by the same.",
    ),
    Mistake(
        "grad_value without transposing the weights",
        _attention_way(into_value=lambda w, go, s, gw: w @ go),
        "Which queries used value 1? Only they may send it a gradient: column 1 of the weights.",
        ("bw03",),
    ),
    Mistake(
        "grad_value uses the scores, not the weights",
        _attention_way(into_value=lambda w, go, s, gw: _t(s) @ go),
        "The output is weights times value, so value gets back the weights' share of grad_output.",
        also=(_attention_way(into_value=lambda w, go, s, gw: _t(gw) @ go),),
    ),
    Mistake(
        "grad_weights without transposing the values",
        _attention_way(into_weights=lambda go, v: go @ v),
        "Entry (i, j) of grad_weights is grad_output of query i times value j: a dot product. Which must be turned?",
    ),
    Mistake(
        "grad_key without transposing grad_scores",
        _attention_way(into_key=lambda gs, q, k: gs @ q),
        "Key j hears from all queries: column j of grad_scores, not row j.",
    ),
    Mistake(
        "query and key are exchanged: each gets back itself",
        _attention_way(into_query=lambda gs, q, k: gs @ q, into_key=lambda gs, q, k: _t(gs) @ k),
        "In a product each factor gets the *other* one back. What stood beside query in the scores?",
    ),
    Mistake(
        "the mask is forgotten when the weights are computed again",
        _attention_way(weigh=lambda s, m: s),
        "May a hidden value receive a gradient? The backward pass must use the weights of the forward pass.",
        ("bw04",),
    ),
    Mistake(
        "the mask is the wrong way round",
        _attention_way(weigh=lambda s, m: s if m is None else np.where(m, -np.inf, s)),
        "True means: may attend. Your gradients go to the hidden keys.",
    ),
    Mistake(
        "the mask is applied after softmax",
        _masked_after,
        "A row whose weights are cut afterwards no longer sums to 1. Put −∞ into the scores before softmax.",
    ),
    Mistake(
        "a row with nothing to attend to becomes NaN",
        _attention_way(softmax=_plain_softmax),
        "0/0: that row's sum is 0, and one NaN spoils grad_key and grad_value of all. Such a row has weights 0, as in lesson 04.",
    ),
    Mistake(
        "a row with nothing to attend to is spread over all keys: −1e9 instead of −∞",
        _attention_way(weigh=lambda s, m: s if m is None else np.where(m, s, -1e9)),
        "If all scores of a row are −1e9, softmax makes them equal, and hidden values receive a gradient.",
    ),
    Mistake(
        "the softmax is skipped on the way back",
        _attention_way(through=lambda w, gw: gw),
        "Between grad_weights and grad_scores stands softmax: use your `softmax_backward`.",
    ),
    Mistake(
        "the arguments of softmax_backward are exchanged",
        _attention_way(through=lambda w, gw: softmax_backward(gw, w)),
        "`softmax_backward(weights, grad_weights)`: the weights come first.",
    ),
    Mistake(
        "the Jacobian of softmax is taken as diagonal",
        _attention_way(through=lambda w, gw: w * (1 - w) * gw),
        "Raising one weight lowers the others. Rows of grad_scores must sum to 0: do they?",
    ),
    Mistake(
        "the sum below the line of softmax is treated as a constant",
        _attention_way(through=lambda w, gw: w * gw),
        "Subtract from grad_weights the row's mean, weighted by the weights, before you multiply by the weights.",
    ),
    Mistake(
        "the sum of softmax_backward runs over the queries",
        _attention_way(through=lambda w, gw: w * (gw - (w * gw).sum(axis=-2, keepdims=True))),
        "Softmax ran over the keys, the last axis; so does its sum on the way back.",
    ),
    Mistake(
        "the maximum is not subtracted in the softmax",
        _attention_way(softmax=lambda s: np.exp(s) / np.maximum(np.exp(s).sum(axis=-1, keepdims=True), 1e-300)),
        "With scores of 1000 exp overflows. Subtract the maximum of each row, as in lesson 02.",
    ),
    Mistake(
        "the order of the results: key, query, value",
        _attention_way(back=lambda gq, gk, gv: (gk, gq, gv)),
        "Gradients come in the order of the arguments: query first.",
    ),
    Mistake(
        "the order of the results: value first",
        _attention_way(back=lambda gq, gk, gv: (gv, gk, gq)),
        "You found value first, going backwards, but return in the order of the arguments: query, key, value.",
    ),
    Mistake(
        "the sign is turned",
        _attention_way(back=lambda gq, gk, gv: (-gq, -gk, -gv)),
        "The gradient points uphill. The minus comes later, in the step of the training.",
    ),
    Mistake(
        "`.T` reverses all axes, the batch too",
        _attention_way(
            scores=lambda q, k: q @ k.T / np.sqrt(q.shape[-1]),
            into_value=lambda w, go, s, gw: w.T @ go,
            into_weights=lambda go, v: go @ v.T,
            into_key=lambda gs, q, k: gs.T @ q,
        ),
        "Right for matrices. With a batch in front swap only the last two axes: `swapaxes(-1, -2)`.",
    ),
    Mistake(
        "only two gradients are returned",
        _attention_way(back=lambda gq, gk, gv: (gq, gk)),
        "Three arrays went in, so three gradients come out: query, key, value.",
    ),
]

# train_step -----------------------------------------------------------------------------------------------------------


def train_step(w_query, w_key, w_value, asked, keys, values, target, rate):
    """Return new (w_query, w_key, w_value) after one step of gradient descent on half of the mean squared distance."""
    query, key, value = asked @ w_query, keys @ w_key, values @ w_value
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    grad_output = (weights @ value - target) / len(asked)
    grad_weights = grad_output @ value.swapaxes(-1, -2)
    grad_scores = weights * (grad_weights - (weights * grad_weights).sum(-1, keepdims=True)) / np.sqrt(query.shape[-1])
    grads = grad_scores @ key, grad_scores.swapaxes(-1, -2) @ query, weights.swapaxes(-1, -2) @ grad_output
    steps = [(x.swapaxes(-1, -2) @ grad).sum(axis=0) for x, grad in zip((asked, keys, values), grads)]
    return tuple(w - rate * step for w, step in zip((w_query, w_key, w_value), steps))


def step_cases(rng):
    def case(name, batch, pairs, d, d_k, d_v, rate):
        shapes = ((d, d_k), (d, d_k), (d, d_v), (batch, 1, d), (batch, pairs, d), (batch, pairs, d), (batch, 1, d_v))
        return Case(name, (*_arrays(rng, *shapes), rate))

    one = np.array([[1.0]])
    half = np.log(3.0) / 2
    by_hand = (half * one, one, one, one[None], np.array([[[1.0], [-1.0]]]), np.array([[[2.0], [0.0]]]), one[None] / 2)
    results = ((half - 0.375) * one, (1 - 0.375 * half) * one, 0.25 * one)
    return [
        # scores ±half; weights 3/4, 1/4; output 1.5, grad_output 1; grad_weights 2, 0, their mean 1.5; grad_scores ±3/8
        # grad_query 3/8 + 3/8; grad_key ±3/8 half, so w_key gets 3/4 half; grad_value 3/4, 1/4, so w_value gets 1.5
        Case("1 list of 2 pairs, width 1, by hand", (*by_hand, 0.5), results),
        case("1 list, all widths 2", 1, 2, 2, 2, 2, 1.0),
        case("1 list of 3 pairs, widths 2, 4 and 3", 1, 3, 2, 4, 3, 0.5),
        case("a batch of 3 lists", 3, 2, 2, 3, 2, 1.0),
        case("a batch of 2 lists of 4 pairs", 2, 4, 3, 2, 2, 0.1),
        case("rate 0: nothing changes", 2, 2, 2, 2, 2, 0.0),
    ]


def _with_parts(w_query, w_key, w_value, asked, keys, values, target, rate):
    inputs, matrices = (asked, keys, values), (w_query, w_key, w_value)
    projected = [x @ w for x, w in zip(inputs, matrices)]
    grad_output = (attention.scaled_dot_product_attention(*projected) - target) / len(asked)
    grads = gradients.attention_backward(*projected, grad_output)
    return tuple(w - rate * np.einsum("bnd,bne->de", x, grad) for w, x, grad in zip(matrices, inputs, grads))


def _step_way(
    *,
    grad_output=lambda output, target: (output - target) / len(output),
    backward=lambda q, k, v, go: gradients.attention_backward(q, k, v, go),
    factors=lambda inputs, projected: inputs,
    into_matrix=lambda x, grad, w: (_t(x) @ grad).sum(axis=0),
    update=lambda w, grad, rate: w - rate * grad,
    back=tuple,
):
    """The step with one line replaced."""

    def step(w_query, w_key, w_value, asked, keys, values, target, rate):
        inputs, matrices = (asked, keys, values), (w_query, w_key, w_value)
        query, key, value = (x @ w for x, w in zip(inputs, matrices))
        output = attention.scaled_dot_product_attention(query, key, value)
        grads = backward(query, key, value, grad_output(output, target))
        xs = factors(inputs, (query, key, value))
        return back([update(w, into_matrix(x, g, w), rate) for w, x, g in zip(matrices, xs, grads)])

    return step


def _through(jacobian):
    return lambda q, k, v, go: _attention_way(through=jacobian)(q, k, v, go)


def _one_after_the_other(w_query, w_key, w_value, *rest):
    w_query = training.train_step(w_query, w_key, w_value, *rest)[0]
    w_key = training.train_step(w_query, w_key, w_value, *rest)[1]
    return w_query, w_key, training.train_step(w_query, w_key, w_value, *rest)[2]


step_mistakes = [
    Mistake(
        "uphill: the gradient is added, or the error is target − output",
        _step_way(update=lambda w, grad, rate: w + rate * grad),
        "The gradient points to where the loss grows: take it away. And an output that is too large has an error above 0.",
    ),
    Mistake(
        "the gradients are returned, not the new matrices",
        _step_way(update=lambda w, grad, rate: grad),
        "These are the gradients. Take `rate` times each away from its matrix.",
        also=(
            _step_way(update=lambda w, grad, rate: rate * grad),
            _step_way(update=lambda w, grad, rate: -rate * grad),
        ),
    ),
    Mistake(
        "the rate is not used",
        _step_way(update=lambda w, grad, rate: w - grad),
        "Your step is the same for every rate. Multiply the gradient by it.",
    ),
    Mistake(
        "divided by the rate",
        _step_way(update=lambda w, grad, rate: w - grad / rate),
        "A small rate should make a small step.",
    ),
    Mistake(
        "not divided by the size of the batch",
        _step_way(grad_output=lambda output, target: output - target),
        "The loss is a mean over the batch. A list more should not make the step longer.",
    ),
    Mistake(
        "the half is forgotten: twice the gradient",
        _step_way(grad_output=lambda output, target: 2 * (output - target) / len(output)),
        "The loss is *half* of the squared distance, so the 2 of the square cancels.",
    ),
    Mistake(
        "divided by all numbers of the output, not by the lists",
        _step_way(grad_output=lambda output, target: (output - target) / output.size),
        "The squared distance adds up the numbers of a vector; the mean is over the lists only: `len(asked)`.",
    ),
    Mistake(
        "the target is not used",
        _step_way(grad_output=lambda output, target: output / len(output)),
        "Your step pulls the output towards 0. The loss is its distance from the target.",
    ),
    Mistake(
        "the gradient of the matrix is not transposed",
        _step_way(into_matrix=lambda x, grad, w: (_t(grad) @ x).sum(axis=0)),
        "A gradient has the shape of its matrix, [d, d_k]: inputs first, turned, then the gradient.",
    ),
    Mistake(
        "`.T` reverses all axes, the batch too",
        _step_way(into_matrix=lambda x, grad, w: x.T @ grad),
        "With a batch in front swap only the last two axes, `swapaxes(-1, -2)`, then add up over the batch.",
    ),
    Mistake(
        "query, key and value are taken for asked, keys and values",
        _step_way(factors=lambda inputs, projected: projected),
        "In `asked @ w_query` the matrix stands beside `asked`. That is the factor its gradient is made of.",
    ),
    Mistake(
        "the keys are taken for the values in the third gradient",
        _step_way(factors=lambda inputs, projected: (inputs[0], inputs[1], inputs[1])),
        "w_query and w_key are right. What does w_value multiply in the forward pass?",
    ),
    Mistake(
        "the gradient of the batch's first list only",
        _step_way(into_matrix=lambda x, grad, w: _t(x[0]) @ grad[0]),
        "All lists share one matrix, so their gradients are added up.",
    ),
    Mistake(
        "averaged over the batch once more",
        _step_way(into_matrix=lambda x, grad, w: (_t(x) @ grad).mean(axis=0)),
        "The loss is divided by the batch already. From there on gradients add up.",
    ),
    Mistake(
        "not added up over the batch",
        _step_way(into_matrix=lambda x, grad, w: _t(x) @ grad),
        "One matrix came in, and a stack of them goes out: add up over the batch, `.sum(axis=0)`.",
    ),
    Mistake(
        "the inputs are left out: the gradient of query, key and value is taken for that of the matrices",
        _step_way(into_matrix=lambda x, grad, w: np.broadcast_to(grad.sum(axis=(0, 1)), w.shape)),
        "In `asked @ w_query` the matrix gets back the other factor: askedᵀ times the gradient of the query.",
    ),
    Mistake(
        "the scale is missing in the backward pass",
        _step_way(backward=_attention_way(scale=lambda g, q, k, v: g)),
        "w_value is right; the steps of w_query and w_key are √d_k times too long. Your `attention_backward` has the scale.",
    ),
    Mistake(
        "the Jacobian of softmax is taken as diagonal",
        _step_way(backward=_through(lambda w, gw: w * (1 - w) * gw)),
        "It trains all the same, which makes it hard to see. Use your `softmax_backward`.",
    ),
    Mistake(
        "the sum below the line of softmax is treated as a constant",
        _step_way(backward=_through(lambda w, gw: w * gw)),
        "It trains all the same, which makes it hard to see. Subtract the weighted mean of the row.",
    ),
    Mistake(
        "the softmax is skipped on the way back",
        _step_way(backward=_through(lambda w, gw: gw)),
        "Softmax stands between scores and weights, so its derivative belongs in the chain.",
    ),
    Mistake(
        "the matrices are updated one after the other",
        _one_after_the_other,
        "All three gradients belong to the matrices as they were. Compute them all, then take the step.",
    ),
    Mistake(
        "only w_value is trained",
        lambda wq, wk, *rest: (wq, wk, training.train_step(wq, wk, *rest)[2]),
        "w_query and w_key come back as they went in. They have gradients too.",
    ),
    Mistake(
        "the order of the results",
        _step_way(back=lambda new: (new[1], new[0], new[2])),
        "The new matrices come in the order of the arguments: query, key, value.",
    ),
]

check = Checker(
    "07",
    [
        Exercise(
            "numeric_gradient",
            reference=gradients.numeric_gradient,
            solution=numeric_gradient,
            cases=numeric_cases,
            mistakes=numeric_mistakes,
            accepts=[_flat_numeric, _restored_numeric],
        ),
        Exercise(
            "softmax_backward",
            reference=gradients.softmax_backward,
            solution=softmax_backward,
            cases=softmax_cases,
            mistakes=softmax_mistakes,
            accepts=[_by_jacobian, _by_loops],
        ),
        Exercise(
            "attention_backward",
            reference=gradients.attention_backward,
            solution=attention_backward,
            cases=attention_cases,
            mistakes=attention_mistakes,
            accepts=[_composed, _scaled_operands],
        ),
        Exercise(
            "train_step",
            reference=training.train_step,
            solution=train_step,
            cases=step_cases,
            mistakes=step_mistakes,
            accepts=[_with_parts],
        ),
    ],
)
