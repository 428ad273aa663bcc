"""Exercises of lesson 06: sinusoids, the shift as a rotation, the reversal as a reflection, rotary, a bias by distance."""

import numpy as np

from attnlib.exercises.core import Case, Checker, Exercise, Mistake
from attnlib.numpy import positions as right

SIN_1, COS_1, SIN_TENTH, COS_TENTH = np.sin(1.0), np.cos(1.0), np.sin(0.1), np.cos(0.1)

# sinusoidal_positions -------------------------------------------------------------------------------------------------


def sinusoidal_positions(n, d_model, base=10_000.0):
    """Return [n, d_model]: column 2i is sin(place * base ** (-2i / d_model)), column 2i + 1 the cosine of the same."""
    angles = np.arange(n)[:, None] * base ** (-np.arange(0, d_model, 2) / d_model)
    positions = np.zeros((n, d_model))
    positions[:, 0::2] = np.sin(angles)
    positions[:, 1::2] = np.cos(angles[:, : d_model // 2])
    return positions


def sinusoidal_cases(rng):
    base = 50.0 * int(rng.integers(3, 12))
    two_places = np.array([[0.0, 1.0, 0.0, 1.0], [SIN_1, COS_1, SIN_TENTH, COS_TENTH]])
    return [
        Case("2 places, one hand: angles 0 and 1", (2, 2, 100.0), np.array([[0.0, 1.0], [SIN_1, COS_1]])),
        Case("2 places, 2 hands, base 100, by hand: the second turns by 1/10", (2, 4, 100.0), two_places),
        Case("5 places, 8 columns, base 10,000", (5, 8, 10_000.0)),
        Case("place 0 only: the sines are 0, the cosines 1", (1, 4, base), np.array([[0.0, 1.0, 0.0, 1.0]])),
        Case("square: 6 places, 6 columns", (6, 6, base)),
        Case("40 places, 4 columns", (40, 4, base)),
        Case("an odd width: 4 places, 5 columns", (4, 5, base)),
        Case("an odd width, square: 3 places, 3 columns", (3, 3, 10_000.0)),
        Case("one column, a sine", (3, 1, 100.0), np.array([[0.0], [SIN_1], [np.sin(2.0)]])),
    ]


def _from_angles(angle, even=np.sin, odd=np.cos):
    """Sinusoids from angle(place, i, d_model, base), where i counts pairs."""

    def sinusoids(n, d_model, base):
        positions = np.zeros((n, d_model))
        for column in range(d_model):
            angles = np.array([angle(place, column // 2, d_model, base) for place in range(n)], dtype=float)
            positions[:, column] = (odd if column % 2 else even)(angles)
        return positions

    return sinusoids


def _each_column(exponent):
    """Sinusoids whose columns j have frequencies of their own: base ** -exponent(j, d_model)."""

    def sinusoids(n, d_model, base):
        angles = np.arange(n)[:, None] * np.array([float(base) ** -exponent(j, d_model) for j in range(d_model)])
        return np.where(np.arange(d_model) % 2, np.cos(angles), np.sin(angles))

    return sinusoids


def _sines_first(n, d_model, base):
    positions = right.sinusoidal_positions(n, d_model, base)
    return np.concatenate([positions[:, 0::2], positions[:, 1::2]], axis=1)


def _over_rows(n, d_model, base):
    angles = np.arange(n)[:, None] * base ** (-2 * (np.arange(d_model) // 2) / d_model)
    return np.where(np.arange(n)[:, None] % 2, np.cos(angles), np.sin(angles))


def _even_only(n, d_model, base):
    positions = np.zeros((n, d_model))
    angles = np.arange(n)[:, None] * base ** (-np.arange(0, d_model, 2) / d_model)
    positions[:, 0::2] = np.sin(angles)
    positions[:, 1::2] = np.cos(angles)
    return positions


def _odd_last(change):
    """Right for even widths; the last column of an odd width is made by change(sines of it, cosines of it)."""

    def sinusoids(n, d_model, base):
        positions = right.sinusoidal_positions(n, d_model, base)
        if d_model % 2:
            angles = np.arange(n) * float(base) ** (-(d_model - 1) / d_model)
            positions[:, -1] = change(angles)
        return positions

    return sinusoids


def _one_narrower(n, d_model, base):
    even = d_model - d_model % 2
    positions = np.zeros((n, d_model))
    positions[:, :even] = right.sinusoidal_positions(n, max(even, 1), base)[:, :even]
    return positions


sinusoidal_mistakes = [
    Mistake(
        "sine and cosine are exchanged",
        _from_angles(lambda t, i, d, b: t * b ** (-2 * i / d), np.cos, np.sin),
        "At place 0 every angle is 0, so a row reads sin 0, cos 0, sin 0, cos 0. What does yours read?",
    ),
    Mistake(
        "all sines first, then all cosines",
        _sines_first,
        "The numbers are right, their order is another: sine and cosine of one angle stand side by side, `[:, 0::2]` and `[:, 1::2]`.",
        ("pe16",),
    ),
    Mistake(
        "only sines",
        _from_angles(lambda t, i, d, b: t * b ** (-2 * i / d), np.sin, np.sin),
        "A sine alone does not say on which side the hand points: each second column is a cosine.",
    ),
    Mistake(
        "sine and cosine alternate over the rows",
        _over_rows,
        "`a[::2]` chooses places, `a[:, ::2]` chooses columns. Every place has sines and cosines.",
        ("pe09",),
    ),
    Mistake(
        "the exponent is doubled and each column has a frequency of its own: 2j / d_model for column j",
        _each_column(lambda j, d: 2 * j / d),
        "In the formula i counts pairs of columns; what does yours count? For a true pair sin² + cos² is 1.",
        ("pe02", "pe03"),
    ),
    Mistake(
        "each column has a frequency of its own: j / d_model for column j",
        _each_column(lambda j, d: j / d),
        "A sine and its cosine share one angle, so that they are the two coordinates of one hand.",
    ),
    Mistake(
        "the exponent is doubled: the counter already steps by 2",
        _from_angles(lambda t, i, d, b: t * b ** (-4 * i / d)),
        "`np.arange(0, d_model, 2)` is 2i already. Print your exponents: they should stay below 1.",
    ),
    Mistake(
        "the 2 of the exponent is missing",
        _from_angles(lambda t, i, d, b: t * b ** (-i / d)),
        "Print your exponents: for 4 columns the two pairs should have 0 and 2/4.",
    ),
    Mistake(
        "integer division in the exponent: every hand turns alike",
        _from_angles(lambda t, i, d, b: t * b ** (-(2 * i // d))),
        "Print the frequencies: all are 1. `//` cuts off what makes them differ.",
        ("pe15",),
    ),
    Mistake(
        "`-log(base) / d_model // 2`: the division is rounded down before it is used",
        _from_angles(lambda t, i, d, b: t * np.exp(i * (-np.log(b) / d // 2))),
        "Print the factor alone: should it be a whole number? `/` and `//` are done from left to right.",
        ("pe05",),
    ),
    Mistake(
        "base and exponent are exchanged",
        _from_angles(lambda t, i, d, b: t * (2 * i / d) ** (1 / b)),
        "Print the frequencies: should all but the first be nearly 1? The base is what is raised to a power.",
        ("pe06",),
    ),
    Mistake(
        "the minus sign of the exponent is missing: later hands turn faster",
        _from_angles(lambda t, i, d, b: t * b ** (2 * i / d)),
        "The first hand turns by 1 radian a place, and each later one should be slower.",
    ),
    Mistake(
        "the base has a zero too few",
        lambda n, d, b: right.sinusoidal_positions(n, d, b / 10),
        "The first two columns cannot show it, since any base to the power 0 is 1. Read the third against the formula.",
        ("pe04",),
    ),
    Mistake(
        "`base` is not used",
        lambda n, d, b: right.sinusoidal_positions(n, d),
        "10,000 is only what `base` is if nobody says otherwise.",
    ),
    Mistake(
        "divided by the number of pairs less one, so that the slowest hand turns by 1 / base",
        _from_angles(lambda t, i, d, b: t * b ** (-i / max((d + 1) // 2 - 1, 1))),
        "Some libraries do this. Here the exponents are 2i / d_model and never reach 1.",
    ),
    Mistake(
        "angles in degrees",
        _from_angles(lambda t, i, d, b: np.radians(t * b ** (-2 * i / d))),
        "The first hand turns by 1 radian a place, which is 57 degrees. `np.sin` takes radians as they are.",
    ),
    Mistake(
        "places begin at 1, or are typed by hand with a 0 at the end",
        lambda n, d, b: right.sinusoidal_positions(n + 1, d, b)[1:],
        "The first place is 0 and the last n − 1: `np.arange(n)`.",
        ("pe17",),
        also=(lambda n, d, b: np.roll(right.sinusoidal_positions(n, d, b), -1, axis=0),),
    ),
    Mistake(
        "every row holds the same place",
        lambda n, d, b: np.tile(right.sinusoidal_positions(n + 1, d, b)[n], (n, 1)),
        "Print the rows, not only the shape: `n` is one place, `np.arange(n)` are n of them.",
        ("pe08",),
        also=(lambda n, d, b: np.tile(right.sinusoidal_positions(n, d, b)[-1], (n, 1)),),
    ),
    Mistake(
        "the table is transposed",
        lambda n, d, b: right.sinusoidal_positions(n, d, b).T,
        "One row for each place: the shape is [n, d_model].",
    ),
    Mistake(
        "cosines do not fit into an odd width",
        _even_only,
        "How many columns `1::2` are there in a width of 3, and how many angles do you give them?",
        ("pe01",),
    ),
    Mistake(
        "an odd width loses its last column",
        lambda n, d, b: right.sinusoidal_positions(n, d, b)[:, : d - d % 2],
        "Width 5 is two pairs and a sine. There are ⌈d_model / 2⌉ angles: `np.arange(0, d_model, 2)`.",
    ),
    Mistake(
        "the last column of an odd width stays 0",
        _odd_last(np.zeros_like),
        "The last column of an odd width is a sine like every other even column.",
    ),
    Mistake(
        "the last column of an odd width is a cosine",
        _odd_last(np.cos),
        "Columns 0, 2, 4, … are sines, the last of an odd width too.",
    ),
    Mistake(
        "an odd width is built one wider, and cut",
        lambda n, d, b: right.sinusoidal_positions(n, d + d % 2, b)[:, :d],
        "Right for even widths. The exponent has d_model itself, not the width rounded up.",
    ),
    Mistake(
        "an odd width is built one narrower, and filled up with zeros",
        _one_narrower,
        "Right for even widths. The exponent has d_model itself, and the last column of an odd width is a sine.",
    ),
]


def _loop_sinusoids(n, d_model, base=10_000.0):
    def number(place, column):
        angle = place / base ** (2 * (column // 2) / d_model)
        return np.cos(angle) if column % 2 else np.sin(angle)

    return [[number(place, column) for column in range(d_model)] for place in range(n)]


def _log_sinusoids(n, d_model, base=10_000.0):
    phase = np.pi / 2 * (np.arange(d_model) % 2)  # a cosine is a sine, a quarter turn ahead
    return np.sin(np.outer(np.arange(n), np.exp(-np.log(base) * 2 * (np.arange(d_model) // 2) / d_model)) + phase)


# shift_rotation and reversal_matrix -----------------------------------------------------------------------------------


def shift_rotation(k, d_model, base=10_000.0):
    """Return the matrix [d_model, d_model] for which positions @ matrix are the rows of the places k further on."""
    rotation = np.zeros((d_model, d_model))
    for i in range(0, d_model, 2):
        angle = k * base ** (-i / d_model)
        cos, sin = np.cos(angle), np.sin(angle)
        rotation[i : i + 2, i : i + 2] = [[cos, -sin], [sin, cos]]
    return rotation


def reversal_matrix(n, d_model, base=10_000.0):
    """Return a matrix [d_model, d_model] for which row t of positions @ matrix is the row of place n - 1 - t."""
    reflection = np.zeros((d_model, d_model))
    for i in range(0, d_model, 2):
        angle = (n - 1) * base ** (-i / d_model)
        cos, sin = np.cos(angle), np.sin(angle)
        reflection[i : i + 2, i : i + 2] = [[-cos, sin], [sin, cos]]
    return reflection


def _blocks(block, frequency=lambda i, d, b: b ** (-2 * i / d), steps=lambda k: k):
    """A matrix with block(cos, sin, cos', sin') of each pair, for steps(k) places."""

    def matrix(k, d_model, base=10_000.0):
        result = np.zeros((d_model, d_model))
        for i in range(d_model // 2):
            angle = steps(k) * frequency(i, d_model, base)
            result[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block(np.cos(angle), np.sin(angle))
        return result

    return matrix


def _halves(block):
    """The same numbers for positions whose sines all come first."""

    def matrix(k, d_model, base=10_000.0):
        order = [*range(0, d_model, 2), *range(1, d_model, 2)]
        return _blocks(block)(k, d_model, base)[np.ix_(order, order)]

    return matrix


def _turn(cos, sin):
    return [[cos, -sin], [sin, cos]]


def _mirror(cos, sin):
    return [[-cos, sin], [sin, cos]]


def _first_block_only(block):
    def matrix(k, d_model, base=10_000.0):
        result = np.eye(d_model)
        result[:2, :2] = _blocks(block)(k, 2, base)
        return result

    return matrix


FREQUENCIES = [
    (
        "every pair turns alike: the frequency is missing",
        lambda i, d, b: 1.0,
        "Each pair of columns has its own frequency, base ** (-2i / d_model). Only the first has 1.",
    ),
    (
        "the exponent is doubled: the counter already steps by 2",
        lambda i, d, b: b ** (-4 * i / d),
        "The frequencies must be those of the positions. `range(0, d_model, 2)` is 2i already.",
    ),
    (
        "the 2 of the exponent is missing",
        lambda i, d, b: b ** (-i / d),
        "The frequencies must be those of the positions: for 4 columns the exponents are 0 and 2/4.",
    ),
    (
        "the minus sign of the exponent is missing",
        lambda i, d, b: b ** (2 * i / d),
        "The frequencies must be those of the positions: each pair slower than the one before.",
    ),
    (
        "`base` is not used",
        lambda i, d, b: 10_000.0 ** (-2 * i / d),
        "The matrix fits only positions that were made with the same base.",
    ),
]


def _frequency_mistakes(block, steps=lambda k: k):
    return [Mistake(name, _blocks(block, frequency, steps), hint) for name, frequency, hint in FREQUENCIES]


def shift_cases(rng):
    by_hand = np.zeros((4, 4))
    by_hand[:2, :2] = [[COS_1, -SIN_1], [SIN_1, COS_1]]
    by_hand[2:, 2:] = [[COS_TENTH, -SIN_TENTH], [SIN_TENTH, COS_TENTH]]
    return [
        Case("no shift, one hand: the identity", (0, 2, 100.0), np.eye(2)),
        Case("one place, one hand, by hand: a turn by 1", (1, 2, 100.0), by_hand[:2, :2]),
        Case("one place, two hands, base 100, by hand: turns by 1 and 1/10", (1, 4, 100.0), by_hand),
        Case("two places, two hands", (2, 4, 50.0 * int(rng.integers(3, 12)))),
        Case("3 places, 6 columns, base 10,000", (3, 6, 10_000.0)),
        Case("back by two places", (-2, 4, 100.0)),
        Case("far: 40 places, 8 columns", (40, 8, 10_000.0)),
    ]


shift_mistakes = [
    Mistake(
        "it turns the wrong way: place 5 goes to place 5 − k",
        _blocks(lambda c, s: [[c, s], [-s, c]]),
        "Try it on the row of place 0, which is 0, 1: after one place it should be sin 1, cos 1. Rows stand on the left: `row @ matrix`.",
    ),
    Mistake(
        "the blocks belong to positions whose sines all come first",
        _halves(_turn),
        "Sine and cosine of one angle stand side by side, so each 2 × 2 block stands on the diagonal.",
    ),
    Mistake(
        "the shift k is not used",
        _blocks(_turn, steps=lambda k: 1),
        "k places further, k times the angle: what should no shift at all look like?",
    ),
    Mistake(
        "the sign of k is lost",
        _blocks(_turn, steps=abs),
        "Back by two places is a turn the other way.",
    ),
    Mistake(
        "both sines have the same sign",
        _blocks(lambda c, s: [[c, s], [s, c]]),
        "sin(a + b) = sin a cos b + cos a sin b, but cos(a + b) = cos a cos b − sin a sin b: one sine is subtracted.",
    ),
    Mistake(
        "a reflection, not a rotation",
        _blocks(_mirror),
        "No shift should leave every row as it is. Yours turns over the sines.",
    ),
    Mistake(
        "sine and cosine are exchanged",
        _blocks(lambda c, s: [[s, -c], [c, s]]),
        "For no shift the block should be [[1, 0], [0, 1]]: which of the two is 1 at angle 0?",
    ),
    Mistake(
        "only the first pair is turned",
        _first_block_only(_turn),
        "Every pair of columns has its block, not only the first.",
    ),
    Mistake(
        "k times the shift by one: adding is not turning again",
        lambda k, d, b: k * right.shift_rotation(1, d, b),
        "Turned twice is not twice as long. Multiply the angle by k, not the matrix.",
    ),
    Mistake(
        "`**` raises each entry to the power k, not the matrix",
        lambda k, d, b: right.shift_rotation(1, d, b) ** k,
        "`matrix ** 2` squares each entry. For powers of a matrix there is `np.linalg.matrix_power`, or turn by k times the angle.",
    ),
    Mistake(
        "the columns of the row are moved, not its place",
        lambda k, d, b: np.roll(np.eye(d), k, axis=1),
        "Your matrix pushes numbers into other columns. The next place has other numbers: they must be computed.",
    ),
    Mistake(
        "angles in degrees",
        _blocks(_turn, steps=np.radians),
        "The first hand turns by 1 radian a place. `np.sin` takes radians as they are.",
    ),
    *_frequency_mistakes(_turn),
]


def _by_powers(k, d_model, base=10_000.0):
    one = right.shift_rotation(1, d_model, base)
    return np.linalg.matrix_power(one if k >= 0 else one.T, abs(k))


def _by_complex_numbers(k, d_model, base=10_000.0):
    rotation = np.zeros((d_model, d_model))
    for i, turn in enumerate(np.exp(1j * k / base ** (np.arange(d_model // 2) / (d_model / 2)))):
        rotation[2 * i, 2 * i] = rotation[2 * i + 1, 2 * i + 1] = turn.real
        rotation[2 * i + 1, 2 * i], rotation[2 * i, 2 * i + 1] = turn.imag, -turn.imag
    return rotation


def reversal_cases(rng):
    by_hand = np.zeros((4, 4))
    by_hand[:2, :2] = [[-COS_1, SIN_1], [SIN_1, COS_1]]
    by_hand[2:, 2:] = [[-COS_TENTH, SIN_TENTH], [SIN_TENTH, COS_TENTH]]
    return [
        Case("two places, one hand, by hand: 0 becomes 1, 1 becomes 0", (2, 2, 100.0), by_hand[:2, :2]),
        Case("two places, two hands, base 100, by hand", (2, 4, 100.0), by_hand),
        Case("one place: it stays", (1, 2, 100.0), np.diag([-1.0, 1.0])),
        Case("3 places, 4 columns", (3, 4, 50.0 * int(rng.integers(3, 12)))),
        Case("8 places, 8 columns", (8, 8, 100.0)),
        Case("6 places, 4 columns, base 10,000", (6, 4, 10_000.0)),
        Case("33 places, 6 columns", (33, 6, 10_000.0)),
    ]


def reversed_rows(matrix, n, d_model, base):
    """Rows of the places, times the matrix: of few places, or many columns, there are other matrices that reverse."""
    return right.sinusoidal_positions(n, d_model, base) @ matrix


def _by_least_squares(n, d_model, base=10_000.0):
    rows = right.sinusoidal_positions(n, d_model, base)
    return np.linalg.pinv(rows) @ rows[::-1]


def _minus_one(n):
    return n - 1


reversal_mistakes = [
    Mistake(
        "place t goes to n − t: one too far",
        _blocks(_mirror),
        "In two places 0 becomes 1 and 1 becomes 0. To what does yours send place 0, and is there such a place?",
    ),
    Mistake(
        "place t goes to −t: there is no shift",
        _blocks(_mirror, steps=lambda n: 0),
        "You turn the order around, about place 0. The last place must come to lie on the first.",
    ),
    Mistake(
        "a rotation: it shifts by n − 1",
        _blocks(_turn, steps=_minus_one),
        "A rotation keeps the order and moves all. To reverse the order takes a reflection: t must enter with a minus.",
    ),
    Mistake(
        "a rotation backwards: it shifts by −(n − 1)",
        _blocks(lambda c, s: [[c, s], [-s, c]], steps=_minus_one),
        "A rotation keeps the order and moves all, here back. To reverse the order takes a reflection.",
    ),
    Mistake(
        "the minus is missing",
        _blocks(lambda c, s: [[c, s], [s, c]], steps=_minus_one),
        "sin(a − b) = sin a cos b − cos a sin b: one of the four has a minus. A reflection's determinant is −1.",
    ),
    Mistake(
        "the minus stands at the wrong cosine",
        _blocks(lambda c, s: [[c, s], [s, -c]], steps=_minus_one),
        "cos(a − b) = cos a cos b + sin a sin b has no minus; sin(a − b) has. Try it on place 0: sine 0, cosine 1.",
    ),
    Mistake(
        "all signs are turned over",
        _blocks(lambda c, s: [[c, -s], [-s, -c]], steps=_minus_one),
        "Your rows point the opposite way. Try it on place 0: sine 0, cosine 1.",
    ),
    Mistake(
        "the sines have the wrong sign",
        _blocks(lambda c, s: [[-c, -s], [-s, c]], steps=_minus_one),
        "Yours sends place t to −(n − 1) − t. sin(a − b) = sin a cos b − cos a sin b, with a the last place.",
    ),
    Mistake(
        "sine and cosine are exchanged",
        _blocks(lambda c, s: [[-s, c], [c, s]], steps=_minus_one),
        "With one place all angles are 0, and the block should be [[−1, 0], [0, 1]]: where is the cosine, which is 1?",
    ),
    Mistake(
        "reflected at half the angle: place t goes to (n − 1) / 2 − t",
        _blocks(_mirror, steps=lambda n: (n - 1) / 2),
        "The mirror stands in the middle, but the angle in the formula is where place 0 goes: to n − 1.",
    ),
    Mistake(
        "the columns are reversed, not the places",
        lambda n, d, b: np.fliplr(np.eye(d)),
        "Your matrix turns around the numbers of one row. The row of another place has other numbers.",
    ),
    Mistake(
        "the blocks belong to positions whose sines all come first",
        lambda n, d, b: _halves(_mirror)(n - 1, d, b),
        "Sine and cosine of one angle stand side by side, so each 2 × 2 block stands on the diagonal.",
    ),
    Mistake(
        "only the first pair is reflected",
        lambda n, d, b: _first_block_only(_mirror)(n - 1, d, b),
        "Every pair of columns has its block, not only the first.",
    ),
    *_frequency_mistakes(_mirror, _minus_one),
]

# rotary ---------------------------------------------------------------------------------------------------------------


def rotary(x, positions, base=10_000.0, interleaved=True):
    """Turn each pair of numbers of x [..., n, d] by place * base ** (-2i / d), the places being positions [n]."""
    half = x.shape[-1] // 2
    angles = positions[:, None] * base ** (-np.arange(half) / half)
    cos, sin = np.cos(angles), np.sin(angles)
    first, second = (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    turned = first * cos - second * sin, first * sin + second * cos
    return np.stack(turned, axis=-1).reshape(x.shape) if interleaved else np.concatenate(turned, axis=-1)


def rotary_cases(rng):
    def x(*shape):
        return rng.normal(size=shape).round(1)

    def places(n, first=0):
        return np.arange(first, first + n, dtype=float)

    base = 50.0 * int(rng.integers(3, 12))
    ones = np.array([[1.0, 0.0], [1.0, 0.0]])
    two_hands = np.array([[COS_1, SIN_1, 10 * COS_TENTH, 10 * SIN_TENTH]])
    halves = np.array([[COS_1, 10 * COS_TENTH, SIN_1, 10 * SIN_TENTH]])
    return [
        Case("2 places, one pair, by hand", (ones, places(2), 100.0, True), np.array([[1.0, 0.0], [COS_1, SIN_1]])),
        Case("place 1, two pairs, by hand", (np.array([[1.0, 0, 10, 0]]), np.ones(1), 100.0, True), two_hands),
        Case("square: 4 places, width 4", (x(4, 4), places(4), base, True)),
        Case("the halves are pairs, by hand", (np.array([[1.0, 10, 0, 0]]), np.ones(1), 100.0, False), halves),
        Case("3 places, width 8, the halves are pairs", (x(3, 8), places(3), 10_000.0, False)),
        Case("places that begin at 5, as after 5 words", (x(3, 4), places(3, 5), base, True)),
        Case("a batch of 1", (x(1, 3, 4), places(3), base, True)),
        Case("a batch of 2", (x(2, 3, 4), places(3), base, True)),
        Case("batch 2, heads 3, 3 places", (x(2, 3, 3, 4), places(3), base, True)),
        Case("batch 1, heads 2, 4 places, the halves are pairs", (x(1, 2, 4, 6), places(4), base, False)),
        Case("far places: 2048 and 2049", (x(2, 4), places(2, 2048), base, True)),
    ]


def _rotated(turn, frequency=lambda i, d, b: b ** (-2 * i / d), places=lambda x, p: p, split=None, join=None):
    """Rotary with one part exchanged: turn(a, b, cos, sin), the frequencies, the places, or how pairs are formed."""

    def rotate(x, positions, base=10_000.0, interleaved=True):
        half = x.shape[-1] // 2
        angles = places(x, positions)[..., None] * frequency(np.arange(half), x.shape[-1], base)
        pairs = interleaved if split is None else split
        first, second = (x[..., 0::2], x[..., 1::2]) if pairs else (x[..., :half], x[..., half:])
        turned = turn(first, second, np.cos(angles), np.sin(angles))
        joined = pairs if join is None else join
        return np.stack(turned, axis=-1).reshape(x.shape) if joined else np.concatenate(turned, axis=-1)

    return rotate


def _forwards(a, b, cos, sin):
    return a * cos - b * sin, a * sin + b * cos


def _overwritten(a, b, cos, sin):
    a = a * cos - b * sin
    return a, a * sin + b * cos


def _turned_by(x, angles, interleaved):
    """Each number by the angle of its own column, together with its partner."""
    half, partner = x.shape[-1] // 2, np.empty_like(x)
    if interleaved:
        partner[..., 0::2], partner[..., 1::2] = -x[..., 1::2], x[..., 0::2]
    else:
        partner[..., :half], partner[..., half:] = -x[..., half:], x[..., :half]
    return x * np.cos(angles) + partner * np.sin(angles)


def _angles_of(interleaved_layout):
    """The numbers are paired as asked, but cos and sin are laid out for one pairing only."""

    def rotate(x, positions, base=10_000.0, interleaved=True):
        half = x.shape[-1] // 2
        angles = positions[:, None] * base ** (-np.arange(half) / half)
        angles = np.repeat(angles, 2, axis=-1) if interleaved_layout else np.tile(angles, 2)
        return _turned_by(x, angles, interleaved)

    return rotate


def _angle_of_each_column(exponent):
    """Every column j turns by base ** -exponent(j, d), whichever its partner is."""

    def rotate(x, positions, base=10_000.0, interleaved=True):
        d = x.shape[-1]
        angles = positions[:, None] * base ** -exponent(np.arange(d), d)
        return _turned_by(x, angles, interleaved)

    return rotate


def _along(axis):
    """Places counted along another axis of x than the one before the last."""

    def rotate(x, positions, base=10_000.0, interleaved=True):
        if x.ndim == 2:
            return right.rotary(x, positions, base, interleaved)
        return right.rotary(x.swapaxes(axis, -2), positions, base, interleaved).swapaxes(axis, -2)

    return rotate


def _table(x, positions, base, interleaved):
    rows = right.rotary(np.tile(x[..., :1, :], (x.shape[-2], 1)), None, base, interleaved)  # as many places as rows
    rows[..., positions.astype(int), :]
    return right.rotary(x, positions, base, interleaved)


def _half_precision(x, positions, base=10_000.0, interleaved=True):
    return right.rotary(x, positions.astype(np.float16).astype(float), base, interleaved)


def _added(x, positions, base=10_000.0, interleaved=True):
    table = right.sinusoidal_positions(int(positions.max()) + 1, x.shape[-1], base)
    return x + table[positions.astype(int)]


rotary_mistakes = [
    Mistake(
        "nothing is turned",
        lambda x, p, b, i: x.copy(),
        "Place 0 stays as it is; every other place should be turned.",
    ),
    Mistake(
        "it turns backwards",
        _rotated(lambda a, b, cos, sin: (a * cos + b * sin, b * cos - a * sin)),
        "[1, 0] at place 1 should become [cos 1, sin 1], above the axis. Exchange the signs of the two sines.",
    ),
    Mistake(
        "no sign is minus",
        _rotated(lambda a, b, cos, sin: (a * cos + b * sin, a * sin + b * cos)),
        "A rotation keeps every length. One of the two sines is subtracted.",
        also=(_rotated(lambda a, b, cos, sin: (a * cos - b * sin, b * cos - a * sin)),),
    ),
    Mistake(
        "each number meets its own sine, not that of its partner",
        _rotated(lambda a, b, cos, sin: (a * cos - a * sin, b * cos + b * sin)),
        "In a rotation each new number mixes both old ones: what the first loses, the second gains.",
        also=(_rotated(lambda a, b, cos, sin: (a * cos + a * sin, b * cos + b * sin)),),
    ),
    Mistake(
        "the sines are missing",
        _rotated(lambda a, b, cos, sin: (a * cos, b * cos)),
        "Multiplying by the cosine shortens a pair, but does not turn it.",
    ),
    Mistake(
        "the first of a pair is overwritten before the second has used it",
        _rotated(_overwritten),
        "Both new numbers are made of both *old* ones. Keep the old first until the second is done.",
    ),
    Mistake(
        "positions are added, not turned by",
        _added,
        "Rotary adds nothing: it turns the query and the key themselves. A row keeps its length.",
    ),
    Mistake(
        "neighbours are always paired",
        _rotated(_forwards, split=True),
        "With `interleaved=False` column i is paired with column i + d / 2.",
    ),
    Mistake(
        "the halves are always paired",
        _rotated(_forwards, split=False),
        "With `interleaved=True` columns 2i and 2i + 1 are a pair.",
    ),
    Mistake(
        "the two ways of pairing are exchanged",
        lambda x, p, b, i: right.rotary(x, p, b, not i),
        "`interleaved=True` pairs neighbours, False pairs the halves.",
    ),
    Mistake(
        "turned as neighbours, put back as halves",
        _rotated(_forwards, join=False),
        "The pairs are turned rightly, but they do not stand where they stood. `np.stack(…, axis=-1)` puts them side by side.",
    ),
    Mistake(
        "each column has an angle of its own",
        _angle_of_each_column(lambda j, d: j / d),
        "Print the lengths of your rows: a rotation keeps them. It does if both numbers of a pair turn by one angle.",
        also=(_angle_of_each_column(lambda j, d: 2 * j / d),),
    ),
    Mistake(
        "angles are repeated side by side also when the halves are pairs",
        _angles_of(True),
        "Both numbers of a pair turn by one angle. Where do the two angles of column 0 and column d / 2 stand? `np.tile`.",
    ),
    Mistake(
        "angles are laid out as two halves also when neighbours are pairs",
        _angles_of(False),
        "Both numbers of a pair turn by one angle. Columns 0 and 1 need the same: `np.repeat`.",
    ),
    Mistake(
        "`positions` is not used: places always begin at 0",
        lambda x, p, b, i: right.rotary(x, None, b, i),
        "Whoever goes on after 5 words gives places that begin at 5. Take the angles from `positions`.",
    ),
    Mistake(
        "a table with as many rows as x: later places fall off its end",
        _table,
        "Place 7 has an angle even if x has only 3 rows. Compute angles from `positions` instead of looking them up.",
        ("pe12",),
    ),
    Mistake(
        "the number of places is read from the first axis, which is the batch",
        lambda x, p, b, i: right.rotary(x, p[: len(x)], b, i),
        "With one sentence in the batch, how many different angles did you use? Places are axis −2.",
        ("pe07",),
    ),
    Mistake(
        "turned along the axis before the places, which is heads or batch",
        _along(-3),
        "Do two places of the same head really turn by different angles? Places are the last axis but one.",
        ("pe21",),
    ),
    Mistake(
        "positions in half precision: 2048 and 2049 become one",
        _half_precision,
        "float16 counts in twos from 2048 on. Keep positions and angles in float32 or float64.",
        ("pe14",),
    ),
    Mistake(
        "the 2 of the exponent is missing",
        _rotated(_forwards, lambda i, d, b: b ** (-i / d)),
        "d / 2 pairs, with exponents from 0 to below 1: divide the number of the pair by d / 2, not by d.",
    ),
    Mistake(
        "the exponent is doubled: the counter already steps by 2",
        _rotated(_forwards, lambda i, d, b: b ** (-4.0 * i / d)),
        "`np.arange(0, d, 2)` is 2i already. Print your exponents: they should stay below 1.",
    ),
    Mistake(
        "every pair turns alike: the frequency is missing",
        _rotated(_forwards, lambda i, d, b: np.ones(len(i))),
        "Each pair has its own frequency, base ** (-2i / d). Only the first has 1.",
    ),
    Mistake(
        "the minus sign of the exponent is missing",
        _rotated(_forwards, lambda i, d, b: b ** (2.0 * i / d)),
        "The first pair turns by 1 radian a place, and each later one should be slower.",
    ),
    Mistake(
        "`base` is not used",
        lambda x, p, b, i: right.rotary(x, p, 10_000.0, i),
        "10,000 is only what `base` is if nobody says otherwise.",
    ),
]


def _complex_rotary(x, positions, base=10_000.0, interleaved=True):
    half = x.shape[-1] // 2
    first, second = (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    turned = (first + 1j * second) * np.exp(1j * np.outer(positions, base ** (-np.arange(half) / half)))
    parts = turned.real, turned.imag
    return np.stack(parts, axis=-1).reshape(x.shape) if interleaved else np.concatenate(parts, axis=-1)


def _matrix_rotary(x, positions, base=10_000.0, interleaved=True):
    d = x.shape[-1]
    order = np.arange(d) if interleaved else np.argsort([*range(0, d, 2), *range(1, d, 2)])
    result = np.empty(x.shape)
    for row, place in enumerate(positions):
        turn = right.shift_rotation(int(place), d, base).T[np.ix_(np.argsort(order), np.argsort(order))]
        result[..., row, :] = x[..., row, :] @ turn
    return result


# alibi_bias -----------------------------------------------------------------------------------------------------------


def alibi_bias(n_heads, n_query, n_key):
    """Return [n_heads, n_query, n_key]: minus slope of the head times distance, the last query standing at the last key."""
    power = 2 ** int(np.log2(n_heads))
    slopes = 2.0 ** (-8 * np.arange(1, power + 1) / power)
    between = 2.0 ** (-8 * np.arange(1, 2 * power, 2) / (2 * power))
    slopes = np.concatenate([slopes, between[: n_heads - power]])
    query_places = np.arange(n_query) + n_key - n_query
    distance = np.abs(query_places[:, None] - np.arange(n_key))
    return -slopes[:, None, None] * distance


def alibi_cases(rng):
    one_step = np.array([[0.0, -1.0], [-1.0, 0.0]])
    slopes = np.array([1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256])
    two = np.array([1 / 16, 1 / 256])
    six = np.array([1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8])
    extra = int(rng.integers(1, 4))
    return [
        Case("2 heads, 2 places, by hand: slopes 1/16 and 1/256", (2, 2, 2), two[:, None, None] * one_step),
        Case("8 heads, 2 places, by hand: slopes 1/2, 1/4, …, 1/256", (8, 2, 2), slopes[:, None, None] * one_step),
        Case("4 heads, 3 places: slopes 1/4, 1/16, 1/64, 1/256", (4, 3, 3)),
        Case("1 head, 3 places: slope 1/256", (1, 3, 3)),
        Case("16 heads, 2 places", (16, 2, 2)),
        Case("2 heads: 2 queries after 3 keys already seen", (2, 2, 5)),
        Case("4 heads: one query, the newest", (4, 1, 3 + extra)),
        Case("6 heads, by hand: 1/4, 1/16, 1/64, 1/256, then 1/2, 1/8", (6, 2, 2), six[:, None, None] * one_step),
        Case("12 heads, 3 places", (12, 3, 3)),
        Case("3 heads, 2 queries, 4 keys", (3, 2, 4)),
    ]


def _alibi(slopes=right.alibi_slopes, distance=None):
    def bias(n_heads, n_query, n_key):
        steps = np.arange(n_query)[:, None] + n_key - n_query - np.arange(n_key)
        return -np.asarray(slopes(n_heads))[:, None, None] * (distance or np.abs)(steps)

    return bias


def _power(n):
    return 2 ** int(np.log2(n))


def _of_power(n):
    return 2.0 ** (-8 * np.arange(1, n + 1) / n)


def _only_powers(n_heads, n_query, n_key):
    if n_heads != _power(n_heads):
        raise ValueError("n_heads must be a power of two")
    return right.alibi_bias(n_heads, n_query, n_key)


alibi_mistakes = [
    Mistake(
        "the slopes begin at 1: the exponent is one too small",
        _alibi(lambda n: 2.0 ** (-8 * np.arange(n) / n)),
        "For eight heads the first slope is one half. Count the heads from 1.",
        ("pe22",),
    ),
    Mistake(
        "the sign is missing: far places are preferred",
        lambda h, q, k: -right.alibi_bias(h, q, k),
        "The bias is added to scores, so it should be smaller the farther away a key is.",
    ),
    Mistake(
        "keys ahead of the query get a bonus: the distance has a sign",
        _alibi(distance=lambda steps: steps),
        "Distance is never below 0, whichever of the two comes first: `np.abs`.",
    ),
    Mistake(
        "keys ahead of the query get −∞: that is a mask",
        _alibi(distance=lambda steps: np.where(steps < 0, np.inf, steps)),
        "The bias forbids nothing. A causal mask is added where it is needed, by whoever needs it.",
    ),
    Mistake(
        "keys ahead of the query get 0, as if they were near",
        _alibi(distance=lambda steps: np.maximum(steps, 0)),
        "Two places ahead is as far as two places back: `np.abs`.",
    ),
    Mistake(
        "every head has the same slope",
        _alibi(lambda n: np.full(n, 2.0 ** (-8 / n))),
        "The heads should see differently far. Raise the first slope to the powers 1, 2, 3, …",
    ),
    Mistake(
        "the slopes shrink by a half whatever the number of heads",
        _alibi(lambda n: 0.5 ** np.arange(1, n + 1)),
        "With 2, 4 or 8 heads the last slope is 1/256. With 4 heads each is a quarter of the one before.",
    ),
    Mistake(
        "the 8 of the exponent is missing",
        _alibi(lambda n: 2.0 ** (-np.arange(1, n + 1) / n)),
        "With 8 heads the last slope should be 1/256 = 2⁻⁸; yours is 1/2.",
    ),
    Mistake(
        "the slopes are in the other order",
        _alibi(lambda n: right.alibi_slopes(n)[::-1]),
        "The first head has the steepest slope, the last of a power of two has 1/256.",
    ),
    Mistake(
        "the slopes fall in equal steps, not by equal factors",
        _alibi(lambda n: np.linspace(2.0 ** (-8 / n), 2.0**-8, n)),
        "Each slope is the one before times the same number: 1/2, 1/4, 1/8, …",
    ),
    Mistake(
        "the distance is squared",
        _alibi(distance=np.square),
        "Two places away costs twice as much as one, not four times.",
    ),
    Mistake(
        "the heads are the last axis",
        lambda h, q, k: np.moveaxis(right.alibi_bias(h, q, k), 0, -1),
        "The axes are [heads, query, key]: `slopes[:, None, None]`.",
    ),
    Mistake(
        "queries are counted from the first key",
        lambda h, q, k: -right.alibi_slopes(h)[:, None, None] * np.abs(np.arange(q)[:, None] - np.arange(k)),
        "After 3 words already seen, the first of 2 queries stands at place 3: add n_key − n_query.",
    ),
    Mistake(
        "queries and keys are exchanged",
        lambda h, q, k: right.alibi_bias(h, q, k).swapaxes(-1, -2),
        "Rows are queries, columns are keys.",
    ),
    Mistake(
        "6 heads: the formula for powers of two is used for any number",
        _alibi(_of_power),
        "Take the slopes of the largest power of two below (4 of 6), then fill up from those of twice that power.",
    ),
    Mistake(
        "6 heads: filled up with the first slopes of twice the power, without leaving out every second",
        _alibi(lambda n: np.concatenate([_of_power(_power(n)), _of_power(2 * _power(n))[: n - _power(n)]])),
        "Every second slope of 8 heads stands among those of 4 already. Take the ones between: 1/2, 1/8, …",
    ),
    Mistake(
        "6 heads: the first slopes of the next larger power",
        _alibi(lambda n: _of_power(n if n == _power(n) else 2 * _power(n))[:n]),
        "Begin with *all* slopes of the power below, so that some head sees far; then fill up from the power above.",
    ),
    Mistake(
        "6 heads: the slopes are sorted",
        _alibi(lambda n: np.sort(right.alibi_slopes(n))[::-1]),
        "The slopes are right. Weights trained elsewhere expect the added ones at the end.",
    ),
    Mistake(
        "6 heads: refused",
        _only_powers,
        "There is a rule for the others: the slopes of the power of two below, then every second one of the power above.",
    ),
]


def _alibi_recursive(n_heads, n_query, n_key):
    def slopes(n):
        if n == _power(n):
            return [(2.0 ** (-8 / n)) ** (h + 1) for h in range(n)]
        return slopes(_power(n)) + slopes(2 * _power(n))[0::2][: n - _power(n)]

    rows = [
        [[-s * abs(i + n_key - n_query - j) for j in range(n_key)] for i in range(n_query)] for s in slopes(n_heads)
    ]
    return np.array(rows)


check = Checker(
    "06",
    [
        Exercise(
            "sinusoidal_positions",
            right.sinusoidal_positions,
            sinusoidal_positions,
            sinusoidal_cases,
            sinusoidal_mistakes,
            [_loop_sinusoids, _log_sinusoids],
        ),
        Exercise(
            "shift_rotation",
            right.shift_rotation,
            shift_rotation,
            shift_cases,
            shift_mistakes,
            [_by_powers, _by_complex_numbers],
        ),
        Exercise(
            "reversal_matrix",
            right.reversal_matrix,
            reversal_matrix,
            reversal_cases,
            reversal_mistakes,
            [
                lambda n, d, b: _blocks(lambda c, s: [[-1, 0], [0, 1]])(1, d, b) @ right.shift_rotation(n - 1, d, b),
                lambda n, d, b: right.shift_rotation(1 - n, d, b) @ np.diag(np.tile([-1.0, 1.0], d // 2)),
                _by_least_squares,
            ],
            view=reversed_rows,
        ),
        Exercise("rotary", right.rotary, rotary, rotary_cases, rotary_mistakes, [_complex_rotary, _matrix_rotary]),
        Exercise("alibi_bias", right.alibi_bias, alibi_bias, alibi_cases, alibi_mistakes, [_alibi_recursive]),
    ],
)
