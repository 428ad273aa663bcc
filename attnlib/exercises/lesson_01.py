"""Exercises of lesson 01: a nudge through a recurrence, a soft lookup, steps in a row, gradients of many steps."""

import numpy as np

from attnlib.exercises.core import Case, Checker, Exercise, Mistake
from attnlib.numpy import lookup, recurrent

# nudge ----------------------------------------------------------------------------------------------------------------


def nudge(w, inputs, move):
    """Return how far the last state moves for each unit that the first input is moved."""
    moved = inputs.copy()
    moved[0] = moved[0] + move
    state, moved_state = np.zeros(len(w)), np.zeros(len(w))
    for x, moved_x in zip(inputs, moved):
        state = np.tanh(state @ w + x)
        moved_state = np.tanh(moved_state @ w + moved_x)
    return np.linalg.norm(moved_state - state) / np.linalg.norm(move)


def nudge_cases(rng):
    half_turn = np.array([[0.0, 0.5], [-0.5, 0.0]])

    def case(name, n, d, size):
        w = (rng.normal(size=(d, d)) / np.sqrt(d)).round(1)
        return Case(name, (w, rng.normal(size=(n, d)).round(1), (size * rng.normal(size=d)).round(4)))

    by_hand = (half_turn, np.zeros((1, 2)), np.array([0.5, 0.0]))
    return [
        Case("one step from rest, by hand: tanh(0.5) / 0.5", by_hand, np.tanh(0.5) / 0.5),
        Case("two steps, as many as the width", (half_turn, np.array([[0.5, -1.0], [1.0, 0.0]]), np.array([0.5, 0.2]))),
        case("three steps", 3, 3, 0.1),
        case("five steps of width 2", 5, 2, 0.1),
        case("two steps of width 4", 2, 4, 0.1),
        case("a tiny move", 4, 3, 0.001),
    ]


def with_last_state(w, inputs, move):
    moved = np.vstack([inputs[:1] + move, inputs[1:]])
    return np.linalg.norm(recurrent.last_state(w, moved) - recurrent.last_state(w, inputs)) / np.linalg.norm(move)


def _ends(w, inputs, moved, activation=np.tanh):
    return recurrent.last_state(w, moved, activation) - recurrent.last_state(w, inputs, activation)


def _moved(inputs, move, where=0):
    moved = inputs.copy()
    moved[where] = moved[where] + move
    return moved


nudge_mistakes = [
    Mistake(
        "the distance is not divided by the length of the move",
        lambda w, x, move: np.linalg.norm(_ends(w, x, _moved(x, move))),
        "Move twice as far and your answer doubles. How far does the state go *for each unit* of the move?",
    ),
    Mistake(
        "the difference is returned as a vector, not its length",
        lambda w, x, move: _ends(w, x, _moved(x, move)) / np.linalg.norm(move),
        "Return one number: the length of that vector, `np.linalg.norm`.",
        also=(lambda w, x, move: _ends(w, x, _moved(x, move)),),
    ),
    Mistake(
        "no copy was made, so both sequences are moved",
        lambda w, x, move: 0.0 * np.linalg.norm(move),
        "Both last states are the same. `moved = inputs` gives the array a second name; `inputs.copy()` makes another.",
    ),
    Mistake(
        "divided by the sum of the move, not by its length",
        lambda w, x, move: np.linalg.norm(_ends(w, x, _moved(x, move))) / move.sum(),
        "Plus and minus cancel in a sum. The length of the move is `np.linalg.norm(move)`.",
    ),
    Mistake(
        "only the first step is run",
        lambda w, x, move: np.linalg.norm(_ends(w, x[:1], x[:1] + move)) / np.linalg.norm(move),
        "The state must meet all inputs. Is your `return` inside the loop?",
    ),
    Mistake(
        "every input is moved",
        lambda w, x, move: np.linalg.norm(_ends(w, x, x + move)) / np.linalg.norm(move),
        "`inputs + move` moves all rows. Only `inputs[0]` should move.",
    ),
    Mistake(
        "the last input is moved",
        lambda w, x, move: np.linalg.norm(_ends(w, x, _moved(x, move, -1))) / np.linalg.norm(move),
        "Your answer does not fall as the sequence grows. Which input is the first?",
    ),
    Mistake(
        "the first input is replaced by the move",
        lambda w, x, move: np.linalg.norm(_ends(w, x, np.vstack([move[None], x[1:]]))) / np.linalg.norm(move),
        "A nudge adds to the first input; yours puts the move in its place.",
    ),
    Mistake(
        "the changes are added up, so that plus and minus cancel",
        lambda w, x, move: _ends(w, x, _moved(x, move)).sum() / np.linalg.norm(move),
        "A vector's length is the root of the sum of squares: `np.linalg.norm`.",
    ),
    Mistake(
        "the largest change in one number, instead of the length",
        lambda w, x, move: np.abs(_ends(w, x, _moved(x, move))).max() / np.linalg.norm(move),
        "A move in two numbers at once is longer than in the larger of them: `np.linalg.norm`.",
    ),
    Mistake(
        "the squared distance",
        lambda w, x, move: (_ends(w, x, _moved(x, move)) ** 2).sum() / np.linalg.norm(move),
        "The root is missing: a length is √(sum of squares).",
    ),
    Mistake(
        "the lengths of the two states are compared, not the states",
        lambda w, x, move: (
            abs(np.linalg.norm(recurrent.last_state(w, _moved(x, move))) - np.linalg.norm(recurrent.last_state(w, x)))
            / np.linalg.norm(move)
        ),
        "Two states of equal length can point in different directions. Subtract first, then take the length.",
    ),
    Mistake(
        "W is multiplied from the other side",
        lambda w, x, move: np.linalg.norm(_ends(w.T, x, _moved(x, move))) / np.linalg.norm(move),
        "In this course a state is a row: `state @ w`, not `w @ state`.",
    ),
    Mistake(
        "tanh is missing",
        lambda w, x, move: np.linalg.norm(_ends(w, x, _moved(x, move), lambda s: s)) / np.linalg.norm(move),
        "This is the linear recurrence. Here each step ends in `np.tanh`.",
    ),
    Mistake(
        "the whole path of states is compared, not the last state",
        lambda w, x, move: (
            np.linalg.norm([_ends(w, x[: t + 1], _moved(x, move)[: t + 1]) for t in range(len(x))])
            / np.linalg.norm(move)
        ),
        "Only the state after the last input counts; yours adds up the differences on the way.",
    ),
]

# soft_lookup ----------------------------------------------------------------------------------------------------------


def soft_lookup(query, keys, values, sharpness):
    """Return the mean of values [n, d_v], each weighted by exp(sharpness * its key · query)."""
    weights = np.exp(sharpness * (keys @ query))
    weights = weights / weights.sum()
    return weights @ values


def soft_lookup_cases(rng):
    def case(name, n, d, d_v, sharpness):
        shapes = ((d,), (n, d), (n, d_v))
        return Case(name, (*(rng.normal(size=shape).round(1) for shape in shapes), sharpness))

    by_hand = (
        np.array([1.0, 0.0]),
        np.array([[1.0, 0.0], [0.0, 1.0]]),
        np.array([[4.0, 0.0], [0.0, 8.0]]),
        np.log(3.0),
    )
    return [
        Case("by hand: exp(log 3) against exp(0), so weights 3/4 and 1/4", by_hand, np.array([3.0, 2.0])),
        case("three of everything", 3, 3, 3, 2.0),
        case("four keys of width 2, values of width 3", 4, 2, 3, 1.5),
        case("two keys of width 3, values of width 1", 2, 3, 1, 0.5),
        case("sharpness 0: the mean of all", 4, 3, 2, 0.0),
        case("sharpness 8: nearly a dictionary", 3, 2, 4, 8.0),
        case("sharpness −1: the farthest key counts most", 3, 2, 2, -1.0),
    ]


def loop_soft_lookup(query, keys, values, sharpness):
    total, result = 0.0, np.zeros(values.shape[1])
    for key, value in zip(keys, values):
        weight = np.exp(sharpness * sum(k * q for k, q in zip(key, query)))
        total += weight
        result += weight * value
    return result / total


def _softmax(x):
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


soft_lookup_mistakes = [
    Mistake(
        "the weights are not divided by their sum",
        lambda q, k, v, s: np.exp(s * (k @ q)) @ v,
        "Give every value the number 7: the answer must be 7. What do your weights add up to?",
    ),
    Mistake(
        "exp is missing in the sum",
        lambda q, k, v, s: np.exp(s * (k @ q)) / (s * (k @ q)).sum() @ v,
        "Above the line you have exp, below it the plain numbers. The weights must add up to 1.",
        ("sm12",),
    ),
    Mistake(
        "exp is missing",
        lambda q, k, v, s: s * (k @ q) / (s * (k @ q)).sum() @ v,
        "A key that points away gets a weight below zero. `np.exp` makes every weight positive.",
    ),
    Mistake(
        "the sharpness is not used",
        lambda q, k, v, s: _softmax(k @ q) @ v,
        "Your answer is the same for every sharpness. Multiply before exp.",
    ),
    Mistake(
        "the sharpness is applied after exp",
        lambda q, k, v, s: s * _softmax(k @ q) @ v,
        "Multiplied after exp, it makes the result longer, not sharper. Multiply before.",
    ),
    Mistake(
        "divided by the sharpness",
        lambda q, k, v, s: _softmax(k @ q / s) @ v,
        "The larger the sharpness, the flatter your weights. (Dividing is what a *temperature* does: lesson 03.)",
    ),
    Mistake(
        "query times keys, instead of keys times query",
        lambda q, k, v, s: _softmax(s * (q @ k)) @ v,
        "`query @ keys` adds up over the keys; a square hides it. Each key should meet the query: `keys @ query`.",
    ),
    Mistake(
        "the weights are lined up with the numbers of a value, not with the values",
        lambda q, k, v, s: (_softmax(s * (k @ q)) * v).sum(axis=0),
        "`weights * values` lines [n] up with the last axis, a square hides it. Use `weights @ values`, or `weights[:, None]`.",
    ),
    Mistake(
        "values times weights, instead of weights times values",
        lambda q, k, v, s: v @ _softmax(s * (k @ q)),
        "`values @ weights` adds up over the numbers of a value; a square hides it. Add up over the keys: `weights @ values`.",
    ),
    Mistake(
        "a minus sign in exp: the farthest key counts most",
        lambda q, k, v, s: _softmax(-s * (k @ q)) @ v,
        "The larger the dot product, the larger the weight should be.",
    ),
    Mistake(
        "divided by the number of keys, not by the sum of the weights",
        lambda q, k, v, s: np.exp(s * (k @ q)) @ v / len(k),
        "Give every value the number 7: the answer must be 7. Divide by what the weights add up to.",
    ),
    Mistake(
        "a hard lookup: only the nearest key counts",
        lambda q, k, v, s: v[np.argmax(s * (k @ q))],
        "That is the nearest key of above. Here every value takes part, according to its weight.",
    ),
    Mistake(
        "the keys are averaged, not the values",
        lambda q, k, v, s: _softmax(s * (k @ q)) @ k,
        "Keys are for finding, values are what one gets. Which of them is handed out?",
    ),
    Mistake(
        "the weights are returned",
        lambda q, k, v, s: _softmax(s * (k @ q)),
        "These are the weights, one for each key. One step is left: the weighted mean of the values.",
    ),
    Mistake(
        "the plain mean of the weighted values",
        lambda q, k, v, s: (_softmax(s * (k @ q))[:, None] * v).mean(axis=0),
        "The weights already add up to 1, so add the weighted values up; `mean` divides by n once more.",
    ),
    Mistake(
        "one sum for everything: the vector became a number",
        lambda q, k, v, s: (_softmax(s * (k @ q))[:, None] * v).sum(),
        "Add over the keys only (`axis=0`), so that the d_v numbers of a value stay apart.",
    ),
    Mistake(
        "weights by distance, not by dot product",
        lambda q, k, v, s: _softmax(-s * np.linalg.norm(k - q, axis=-1)) @ v,
        "A fine idea (it is Nadaraya's and Watson's), but here nearness is the dot product key · query.",
    ),
    Mistake(
        "lengths are divided away: the cosine instead of the dot product",
        lambda q, k, v, s: _softmax(s * (k @ q) / np.linalg.norm(k, axis=-1) / np.linalg.norm(q)) @ v,
        "This is the cosine. The dot product keeps the lengths: a long key speaks louder.",
    ),
]

# sequential_steps -----------------------------------------------------------------------------------------------------


def sequential_steps(n, reach):
    """Return how many steps in a row it takes until the last of n words has heard of the first."""
    steps, heard = 0, 1
    while heard < n:
        heard = heard + reach
        steps = steps + 1
    return steps


def steps_cases(rng):
    return [
        Case("3 words, reach 1: from 1 to 2, from 2 to 3", (3, 1), 2),
        Case("5 words, reach 2: 1 to 3, 3 to 5", (5, 2), 2),
        Case("6 words, reach 2: one step that is not full", (6, 2), 3),
        Case("attention: 64 words, reach 63", (64, 63), 1),
        Case("a recurrence over 64 words", (64, 1), 63),
        Case("one word has heard of itself", (1, 3), 0),
        Case("reach beyond the beginning", (4, 10), 1),
        Case("any numbers", (int(rng.integers(20, 90)), int(rng.integers(3, 9)))),
    ]


steps_mistakes = [
    Mistake(
        "one step too many when it comes out even",
        lambda n, reach: -(-n // reach),
        "Among n words there are n − 1 gaps, not n; or a step was added although nothing was left over.",
        also=(lambda n, reach: n // reach + 1, lambda n, reach: n // reach),
    ),
    Mistake(
        "not rounded up (but down, or to the nearest)",
        lambda n, reach: (n - 1) // reach,
        "After the last full step some words may be left, and they need a step too: round up.",
    ),
    Mistake(
        "the reach is taken one too large",
        lambda n, reach: -(-(n - 1) // (reach + 1)),
        "With reach 1 a word hears from the one before it, so 3 words need 2 steps. Yours cross one gap more in each step.",
    ),
    Mistake(
        "the reach is not used",
        lambda n, reach: n - 1,
        "Your answer is the same for every reach. How many gaps does one step cross?",
    ),
    Mistake(
        "rounded up, but still a float",
        lambda n, reach: np.ceil((n - 1) / reach),
        "`np.ceil` and `round` of a float may give a float: wrap it, `int(...)`.",
    ),
    Mistake(
        "not rounded",
        lambda n, reach: (n - 1) / reach,
        "There is no half step: round up to a whole number, of type int.",
    ),
    Mistake(
        "the last word itself is counted as reached by the reach",
        lambda n, reach: max(1, -(-(n - reach) // reach)),
        "Try n = 1: nothing has to be done, so 0 steps.",
    ),
    Mistake(
        "doubling: as if each step also doubled the reach",
        lambda n, reach: int(np.ceil(np.log2(n) / np.log2(reach + 1))) if n > 1 else 0,
        "The reach stays the same in every step here, so what was heard grows by adding, not by doubling.",
    ),
]

# gradient_norms -------------------------------------------------------------------------------------------------------


def gradient_norms(w, n_steps):
    """Return ‖w‖, ‖w w‖, …, the spectral norms of the products of 1 to n_steps factors w, as an array [n_steps]."""
    product, norms = np.eye(len(w)), []
    for _ in range(n_steps):
        product = product @ w
        norms.append(np.linalg.norm(product, 2))
    return np.array(norms)


def gradient_cases(rng):
    shear = np.array([[0.0, 2.0], [0.0, 0.0]])  # stretches once, then nothing is left
    return [
        Case("halved at every step, by hand", (0.5 * np.eye(2), 3), np.array([0.5, 0.25, 0.125])),
        Case("a matrix whose square is 0", (shear, 2), np.array([2.0, 0.0])),
        Case("a quarter turn, 1.5 times as long", (np.array([[0.0, 1.5], [-1.5, 0.0]]), 4)),
        Case("any matrix, three steps", (rng.normal(size=(3, 3)).round(1), 3)),
        Case("any matrix, five steps", (rng.normal(size=(2, 2)).round(1), 5)),
        Case("one step", (rng.normal(size=(4, 4)).round(1), 1)),
    ]


def _powers(w, n):
    return [np.linalg.matrix_power(w, k + 1) for k in range(n)]


gradient_mistakes = [
    Mistake(
        "each entry raised to a power",
        lambda w, n: np.array([np.linalg.norm(w ** (k + 1), 2) for k in range(n)]),
        "`w ** 2` squares every entry. Two steps in a row are a matrix product: `w @ w`.",
    ),
    Mistake(
        "the norm of one step, raised to a power",
        lambda w, n: np.linalg.norm(w, 2) ** np.arange(1, n + 1),
        "True for radius times orthogonal, an upper bound otherwise: the case with square 0 shows it. Multiply first.",
    ),
    Mistake(
        "the Frobenius norm",
        lambda w, n: np.array([np.linalg.norm(p) for p in _powers(w, n)]),
        "`np.linalg.norm(product)` adds up all entries' squares. How long can a vector of length 1 become? `norm(product, 2)`.",
    ),
    Mistake(
        "the largest eigenvalue",
        lambda w, n: np.array([np.abs(np.linalg.eigvals(p)).max() for p in _powers(w, n)]),
        "An eigenvalue says what happens in the long run. How long a vector can become is the largest singular value.",
    ),
    Mistake(
        "begins with no step at all",
        lambda w, n: np.array([1.0, *(np.linalg.norm(p, 2) for p in _powers(w, n - 1))]),
        "The first entry should be the norm after one step. Multiply before you append.",
    ),
    Mistake(
        "the product is squared at every step",
        lambda w, n: np.array([np.linalg.norm(np.linalg.matrix_power(w, 2**k), 2) for k in range(n)]),
        "`w = w @ w` doubles the number of steps each time. Multiply by the same `w` once a step.",
    ),
    Mistake(
        "another norm of matrices",
        lambda w, n: np.array([np.linalg.norm(p, np.inf) for p in _powers(w, n)]),
        "How long can a vector of length 1 become? That is `np.linalg.norm(product, 2)`, with a 2.",
        also=(lambda w, n: np.array([np.linalg.norm(p, 1) for p in _powers(w, n)]),),
    ),
    Mistake(
        "only the first norm",
        lambda w, n: np.array([np.linalg.norm(w, 2)]),
        "The loop ends after one step. Is your `return` inside it?",
        also=(lambda w, n: np.linalg.norm(w, 2),),
    ),
    Mistake(
        "one factor too many",
        lambda w, n: np.array([np.linalg.norm(p, 2) for p in _powers(w, n + 1)[1:]]),
        "The first entry should be the norm of `w` itself. Begin with `np.eye(len(w))`, or append before you multiply.",
    ),
    Mistake(
        "only the last norm",
        lambda w, n: np.linalg.norm(np.linalg.matrix_power(w, n), 2),
        "Keep the norm of every product on the way, one entry for each number of steps.",
    ),
    Mistake(
        "the determinant",
        lambda w, n: np.array([abs(np.linalg.det(p)) for p in _powers(w, n)]),
        "The determinant is a volume: one direction can vanish while another grows. Use the spectral norm.",
    ),
    Mistake(
        "w times w transposed, instead of w times w",
        lambda w, n: np.array([np.linalg.norm(np.linalg.matrix_power(w @ w.T, k + 1), 2) for k in range(n)]),
        "No step goes back: the state meets `w` at every step, never `w.T`.",
    ),
]

check = Checker(
    "01",
    [
        Exercise("nudge", recurrent.nudge, nudge, nudge_cases, nudge_mistakes, [with_last_state]),
        Exercise(
            "soft_lookup",
            lookup.soft_lookup,
            soft_lookup,
            soft_lookup_cases,
            soft_lookup_mistakes,
            [loop_soft_lookup, lambda q, k, v, s: np.einsum("n,nd->d", _softmax(s * (k @ q)), v)],
        ),
        Exercise(
            "sequential_steps",
            lookup.sequential_steps,
            sequential_steps,
            steps_cases,
            steps_mistakes,
            [
                lambda n, reach: -(-(n - 1) // reach),
                lambda n, reach: int(np.ceil((n - 1) / reach)),
                lambda n, reach: len(range(1, n, reach)),
            ],
        ),
        Exercise(
            "gradient_norms",
            recurrent.gradient_norms,
            gradient_norms,
            gradient_cases,
            gradient_mistakes,
            [
                lambda w, n: np.array([np.linalg.svd(p)[1][0] for p in _powers(w, n)]),
                lambda w, n: [np.linalg.norm(p, 2) for p in _powers(w, n)],
            ],
        ),
    ],
)
