"""Exercises of lesson 04: causal and padding masks, softmax under a mask, and masks that are added."""

import numpy as np

from attnlib.exercises.core import Case, Checker, Exercise, Mistake
from attnlib.numpy import attention, masks

# causal_mask ----------------------------------------------------------------------------------------------------------


def causal_mask(n_query, n_key=None):
    """Return booleans [n_query, n_key]: True where a query may look; the last query sees the last key."""
    n_key = n_query if n_key is None else n_key
    return np.tril(np.ones((n_query, n_key), dtype=bool), k=n_key - n_query)


LOWER = np.array([[True, False, False], [True, True, False], [True, True, True]])


def causal_cases(rng):
    return [
        Case("3 queries, 3 keys, by hand", (3,), LOWER),
        Case("one position: it sees itself", (1,), np.array([[True]])),
        Case("n_key is given and equal", (4, 4)),
        Case("1 query, 4 keys: the last position sees all", (1, 4), np.ones((1, 4), dtype=bool)),
        Case("2 queries, 3 keys, by hand", (2, 3), np.array([[True, True, False], [True, True, True]])),
        Case("3 queries, 7 keys", (3, 7)),
        Case("more queries than keys: the first see nothing", (3, 2), LOWER[:, 1:]),
    ]


def _triangle(offset):
    """A lower triangle whose last visible key is moved by offset(n_query, n_key)."""

    def mask(n_query, n_key=None):
        n_key = n_query if n_key is None else n_key
        return np.tri(n_query, n_key, offset(n_query, n_key), dtype=bool)

    return mask


def _right_causal(change):
    return lambda *args: change(masks.causal_mask(*args))


def _causal_by_loop(n_query, n_key=None):
    n_key = n_key or n_query
    return [[j <= i + n_key - n_query for j in range(n_key)] for i in range(n_query)]


causal_mistakes = [
    Mistake(
        "n_key is needed, although it may be left away",
        lambda n_query, n_key=None: np.tril(np.ones((n_query, n_key), dtype=bool), k=n_key - n_query),
        "Without `n_key` there are as many keys as queries: begin with `if n_key is None: n_key = n_query`.",
    ),
    Mistake(
        "the triangle is upside down: only the future is visible",
        lambda q, k=None: np.triu(np.ones((q, k or q), dtype=bool), (k or q) - q),
        "Read your first row aloud: the first position sees everything, the last only itself. Which should it be?",
        ("mk27",),
        also=(
            lambda q, k=None: np.triu(np.ones((q, k or q), dtype=bool)),
            lambda *args: masks.causal_mask(*args).T,
        ),
    ),
    Mistake(
        "inverted: True where it may not look",
        _right_causal(np.logical_not),
        "This is the mask of what is *forbidden*. In this course True says: may attend.",
        also=(lambda q, k=None: np.triu(np.ones((q, k or q), dtype=bool), 1),),
    ),
    Mistake(
        "the diagonal is forbidden: a position does not see itself",
        _triangle(lambda q, k: k - q - 1),
        "Look at the first row: it may look at nothing at all. A position has already read itself.",
        ("mk26",),
        also=(_triangle(lambda q, k: -1),),
    ),
    Mistake(
        "off by one: the next position is visible",
        _triangle(lambda q, k: k - q + 1),
        "Row 0 sees key 1, which is the very symbol that it should predict. Count from the diagonal again.",
        ("mk28",),
        also=(_triangle(lambda q, k: 1),),
    ),
    Mistake(
        "the diagonal starts in the upper left corner, however many keys there are",
        _triangle(lambda q, k: 0),
        "With 1 query and 4 keys the query is the *last* position and sees all 4. By how much must the diagonal move?",
    ),
    Mistake(
        "the diagonal is moved the wrong way",
        _triangle(lambda q, k: q - k),
        "With more keys than queries each query sees *more* than its index says. Which difference is positive then?",
    ),
    Mistake(
        "the diagonal is moved by n_key − 1: right for a single query only",
        _triangle(lambda q, k: k - 1 if k != q else 0),
        "The *last* query sees the last key; the one before it sees one key less. How far is query 0 from the last query?",
    ),
    Mistake(
        "n_key is ignored: always a square",
        lambda q, k=None: masks.causal_mask(q),
        "One column for each key. If `n_key` is given, it is how many columns there are.",
    ),
    Mistake(
        "rows and columns are exchanged",
        lambda q, k=None: masks.causal_mask(k or q, q),
        "Queries are rows, keys are columns: the shape is [n_query, n_key].",
    ),
    Mistake(
        "nothing is forbidden unless n_key is given",
        lambda q, k=None: np.ones((q, q), dtype=bool) if k is None else masks.causal_mask(q, k),
        "The causal part hangs on a condition that is about something else. It is needed in every call.",
        ("mk32",),
    ),
    Mistake(
        "nothing is forbidden",
        lambda q, k=None: np.ones((q, k or q), dtype=bool),
        "All True: the first position sees the last. Is the result of `np.tril` thrown away?",
    ),
    Mistake(
        "only the diagonal: a position sees itself and nothing before it",
        lambda q, k=None: np.eye(q, k or q, (k or q) - q, dtype=bool),
        "The last row should be True everywhere: it may look at all that came before.",
        also=(lambda q, k=None: np.eye(q, k or q, dtype=bool),),
    ),
    Mistake(
        "only earlier positions of a fixed window are visible",
        lambda q, k=None: masks.causal_mask(q, k) & ~np.tri(q, k or q, (k or q) - q - 2, dtype=bool),
        "The last row should be True everywhere: no position is too far back.",
    ),
    Mistake(
        "numbers, not booleans",
        _right_causal(lambda mask: mask.astype(int)),
        "The places are right. But 1 and 0 would be *added* to scores, or inverted wrongly by `~`: use `dtype=bool`.",
    ),
    Mistake(
        "0 and −∞ to be added, not booleans",
        _right_causal(masks.to_additive),
        "That is the additive form, which is made of a boolean mask further down. Here: True = may attend.",
    ),
    Mistake(
        "an axis too many in front",
        _right_causal(lambda mask: mask[None]),
        "Two axes are enough: [n_query, n_key] broadcasts to any batch.",
        also=(_right_causal(lambda mask: mask[None, None]),),
    ),
    Mistake(
        "n_key is used while it is None",
        lambda q, k=None: np.tri(q, k, k - q, dtype=bool),
        "Called with one argument, `n_key` is None. Give it a number first: as many keys as queries.",
    ),
]

# masked_softmax -------------------------------------------------------------------------------------------------------


def masked_softmax(scores, mask):
    """Softmax of scores [..., n_query, n_key] over the keys that mask allows; rows without any are zeros."""
    scores = np.where(mask, scores, -np.inf)
    highest = scores.max(axis=-1, keepdims=True)
    highest = np.where(np.isinf(highest), 0.0, highest)  # a row with nothing to attend to
    exponentials = np.exp(scores - highest)
    total = exponentials.sum(axis=-1, keepdims=True)
    return exponentials / np.where(total == 0, 1.0, total)


def masked_cases(rng):
    log3 = np.log(3.0)

    def scores(*shape):
        return rng.normal(size=shape).round(1)

    row, some = np.array([[0.0, log3, 5.0]]), np.array([[True, True, False]])
    half = np.array([[True, False], [True, True]])
    gaps = np.array([[True, False, True], [False, True, True]])
    padded = masks.padding_mask([3, 2], 4)
    return [
        Case("one row, by hand: 1/4, 3/4 and nothing", (row, some), np.array([[0.25, 0.75, 0.0]])),
        Case(
            "2 queries, 2 keys, causal", (np.array([[0.0, log3], [log3, 0.0]]), half), np.array([[1, 0], [0.75, 0.25]])
        ),
        Case("scores below zero", (-1.0 - np.abs(scores(3, 3)), LOWER)),
        Case("2 queries, 3 keys, with gaps", (scores(2, 3), gaps)),
        Case("everything is allowed", (scores(2, 3), np.ones((2, 3), dtype=bool))),
        Case("a batch of 2, one causal mask for both", (scores(2, 3, 4), masks.causal_mask(3, 4))),
        Case("a batch of 2, one padding mask each, for all queries", (scores(2, 3, 4), padded)),
        Case("batch 2, heads 2, the mask the same for all heads", (scores(2, 2, 3, 4), padded[:, None])),
        Case(
            "±1000", (np.array([[1000.0, -1000.0, 1000.0]]), np.array([[True, True, False]])), np.array([[1.0, 0, 0]])
        ),
        Case(
            "one row far above the other",
            (np.array([[1000.0, 1000.0], [-1000.0, -1000.0]]), half),
            np.array([[1.0, 0], [0.5, 0.5]]),
        ),
        Case(
            "a forbidden score far above the others",
            (np.array([[1000.0, 0.0, log3]]), np.array([[False, True, True]])),
            np.array([[0.0, 0.25, 0.75]]),
        ),
        Case(
            "a row with nothing to attend to",
            (np.array([[1.0, 2.0, 3.0], [0.0, 0.0, log3]]), np.array([[False] * 3, [True, False, True]])),
            np.array([[0.0, 0, 0], [0.25, 0, 0.75]]),
        ),
    ]


def _over(exponentials):
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _plain(scores):
    """Softmax as everybody writes it: a row of −∞ becomes NaN."""
    return _over(np.exp(scores - scores.max(axis=-1, keepdims=True)))


def _unkept(scores):
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1)


def _filled(fill):
    return lambda s, m: _plain(np.where(m, s, fill))


def _index_assignment(scores, mask):
    scores = scores.copy()
    scores[~mask] = -np.inf
    return attention.softmax(scores)


def _loop_masked_softmax(scores, mask):
    weights = np.zeros(scores.shape)
    allowed = np.broadcast_to(mask, scores.shape)
    for place in np.ndindex(scores.shape[:-1]):
        keys = np.flatnonzero(allowed[place])
        if len(keys):
            weights[place][keys] = _plain(scores[place][keys])
    return weights


masked_mistakes = [
    Mistake(
        "inverted: the allowed keys are forbidden",
        lambda s, m: _plain(np.where(m, -np.inf, s)),
        "Your weight lies exactly where the mask is False. True says: may attend. (`np.where(mask, a, b)` takes a where True.)",
        ("mk01",),
        also=(
            lambda s, m: attention.softmax(np.where(m, -np.inf, s)),
            lambda s, m: _plain(np.where(m, -1e9, s)),
        ),
    ),
    Mistake(
        "the mask has no effect",
        lambda s, m: _plain(s),
        "`np.where` changes nothing; it *returns* a new array. Does your softmax get that one, or the old scores?",
        ("mk30",),
    ),
    Mistake(
        "1 and 0 are added to the scores",
        lambda s, m: _plain(s + m),
        "Adding 0 forbids nothing. What must a score become, so that exp of it is 0?",
        ("mk03",),
    ),
    Mistake(
        "a forbidden score becomes 0: multiplied by the mask, or filled with 0 or 1e-9",
        lambda s, m: _plain(s * m),
        "A score of 0 is no ban: exp(0) is 1, and exp(1e-9) is too. Which score has exp 0?",
        ("mk07",),
    ),
    Mistake(
        "the mask is applied after softmax, so the rows do not sum to 1",
        lambda s, m: _plain(s) * m,
        "The forbidden keys are gone, but they have already taken their share of the sum. Mask *before* softmax.",
        ("mk08",),
    ),
    Mistake(
        "forbidden keys take part first: masked after softmax and divided again, or the maximum is taken over all",
        lambda s, m: _over(_plain(s) * m),
        "Right, until a forbidden score is far above: then the allowed ones are 0 before you divide. Mask first of all.",
        also=(lambda s, m: np.nan_to_num(_over(_plain(s) * m)),),
    ),
    Mistake(
        "filled with +∞",
        _filled(np.inf),
        "The sign: exp(+∞) is infinite, exp(−∞) is 0. Which one should a forbidden key get?",
        ("mk09",),
    ),
    Mistake(
        "filled with −1e9 (or the lowest number there is), not −∞: a row with nothing becomes uniform",
        _filled(-1e9),
        "If *all* scores are −1e9, they are all equal, and softmax hands out equal weights. Use −∞, and see to that row.",
        ("mk15",),
    ),
    Mistake(
        "−1e9 is added: a row with nothing gets weights as if it were allowed",
        lambda s, m: _plain(s + np.where(m, 0.0, -1e9)),
        "If −1e9 is added to *all* scores, softmax does not notice. Use −∞, and see to that row.",
    ),
    Mistake(
        "a row with nothing to attend to becomes NaN",
        _filled(-np.inf),
        "Its maximum is −∞, and −∞ − (−∞) is not a number. Its sum is 0, too. What should stand there instead?",
    ),
    Mistake(
        "the maximum is not subtracted",
        lambda s, m: _over(np.exp(np.where(m, s, -np.inf))),
        "exp(1000) is infinite, as in lesson 02. Subtract the maximum of each row, of what is allowed.",
        also=(
            lambda s, m: np.nan_to_num(_over(np.exp(np.where(m, s, -np.inf)))),
            lambda s, m: _over(np.exp(s) * m),
        ),
    ),
    Mistake(
        "the maximum of the whole array is subtracted",
        lambda s, m: _over(np.exp(np.where(m, s, -np.inf) - s[np.broadcast_to(m, s.shape)].max())),
        "Each row needs its own maximum: `axis=-1, keepdims=True`.",
    ),
    Mistake(
        "normalised over the queries",
        lambda s, m: attention.softmax(np.where(m, s, -np.inf), axis=-2),
        "Add up one row: that should be 1. The keys are on the last axis.",
        also=(
            lambda s, m: np.exp(np.where(m, s, -np.inf)) / np.exp(np.where(m, s, -np.inf)).sum(axis=-2, keepdims=True),
        ),
    ),
    Mistake(
        "keepdims=True is missing in the sum",
        lambda s, m: _unkept(np.where(m, s, -np.inf)),
        "The sums have lost their last axis, so NumPy lines them up with the columns: silently in a square, else an error.",
        also=(lambda s, m: np.exp(s) * m / (np.exp(s) * m).sum(axis=-1),),
    ),
    Mistake(
        "keepdims=True is missing in the maximum",
        lambda s, m: _over(np.exp(np.where(m, s, -np.inf) - np.where(m, s, -np.inf).max(axis=-1))),
        "The maxima have lost their last axis, so each is subtracted from a column, not from its row.",
    ),
    Mistake(
        "one sum for the whole array",
        lambda s, m: np.exp(s) * m / (np.exp(s) * m).sum(),
        "Each row of weights sums to 1, not the whole array: `sum` needs `axis=-1, keepdims=True`.",
    ),
    Mistake(
        "not normalised",
        lambda s, m: np.exp(s) * m,
        "Forbidden keys have 0, good. Now divide each row by its sum.",
        also=(lambda s, m: np.exp(np.where(m, s - s.max(axis=-1, keepdims=True), -np.inf)),),
    ),
    Mistake(
        "the mask is transposed",
        lambda s, m: attention.softmax(np.where(m.swapaxes(-1, -2), s, -np.inf)),
        "Row i of the mask belongs to row i of the scores, as it is. Nothing needs to be turned.",
        also=(lambda s, m: _plain(np.where(m.swapaxes(-1, -2), s, -np.inf)),),
    ),
    Mistake(
        "the mask is reshaped, as if there were as many queries as keys",
        lambda s, m: attention.softmax(np.where(m.reshape(*m.shape[:-1], m.shape[-2]), s, -np.inf)),
        "A mask [batch, 1, n_key] need not be square. Leave its shape alone: `np.where` broadcasts.",
        ("mk31",),
    ),
    Mistake(
        "`scores[~mask] = …` needs a mask of the full shape",
        _index_assignment,
        "Right where the shapes are equal. A mask for the whole batch is smaller than the scores: `np.where` broadcasts.",
    ),
    Mistake(
        "the mask picks the allowed scores out into one long row",
        lambda s, m: _plain(s[np.broadcast_to(m, s.shape)]),
        "`scores[mask]` forgets which row a score came from. Keep the shape, and make forbidden scores −∞.",
    ),
    Mistake(
        "~ on whole numbers: everything is forbidden",
        lambda s, m: _plain(np.where((~m.astype(int)).astype(bool), -1e9, s)),
        "`~1` is −2, which counts as True. Only on booleans does `~` mean *not*: leave the mask boolean.",
        ("mk05",),
    ),
    Mistake(
        "minus on booleans",
        lambda s, m: attention.softmax(np.where(-m, -np.inf, s)),
        "NumPy does not subtract booleans. *Not* is written `~mask` (or let `np.where` take the other branch).",
        ("mk06",),
    ),
    Mistake(
        "a method that the array does not have",
        lambda s, m: attention.softmax(s.masked_fill(~m, -np.inf)),
        "`masked_fill` is PyTorch's. In NumPy: `np.where(mask, scores, ...)`.",
        ("mk36",),
    ),
]

# padding_mask ---------------------------------------------------------------------------------------------------------


def padding_mask(lengths, n_key):
    """Return booleans [batch, 1, n_key]: True for the tokens of each sentence, False for the padding behind them."""
    return np.arange(n_key) < lengths[:, None, None]


def padding_cases(rng):
    by_hand = np.array([[[True, True, False]], [[True, True, True]]])
    return [
        Case("lengths 2 and 3, by hand", (np.array([2, 3]), 3), by_hand),
        Case("3 sentences, 3 keys", (np.array([2, 3, 1]), 3)),
        Case("2 sentences, 5 keys", (np.array([4, 2]), 5)),
        Case("padded further than the longest", (np.array([1, 3]), 6)),
        Case("a batch of one", (np.array([2]), 4), np.array([[[True, True, False, False]]])),
        Case("a batch of 4", (np.array([*rng.integers(1, 8, size=3), 7]), 7)),
        Case("an empty sentence", (np.array([0, 2]), 2), np.array([[[False, False]], [[True, True]]])),
    ]


def _right_padding(change):
    return lambda lengths, n_key: change(masks.padding_mask(lengths, n_key))


def _last_ones(lengths, n_key):
    """The slice [-0:] is everything."""
    mask = np.ones((len(lengths), 1, n_key), dtype=bool)
    for sentence, length in enumerate(lengths):
        mask[sentence, :, -(n_key - length) :] = False
    return mask


def _one_place(lengths, n_key):
    mask = np.ones((len(lengths), 1, n_key), dtype=bool)
    for sentence, length in enumerate(lengths):
        if length < n_key:
            mask[sentence, 0, length] = False
    return mask


def _one_place_beyond(lengths, n_key):
    mask = np.ones((len(lengths), 1, n_key), dtype=bool)
    mask[np.arange(len(lengths)), 0, lengths] = False
    return mask


def _padding_by_loop(lengths, n_key):
    mask = np.zeros((len(lengths), 1, n_key), dtype=bool)
    for sentence, length in enumerate(lengths):
        mask[sentence, 0, :length] = True
    return mask


padding_mistakes = [
    Mistake(
        "inverted: True for padding",
        _right_padding(np.logical_not),
        "This is the mask of what is *forbidden*. In this course True says: may attend.",
        also=(_right_padding(lambda mask: ~mask[:, 0]),),
    ),
    Mistake(
        "one too many: the first padding is allowed",
        lambda lengths, n_key: np.arange(n_key) <= lengths[:, None, None],
        "A sentence of 2 tokens has places 0 and 1. Is place 2 below its length?",
    ),
    Mistake(
        "one too few: the last token is forbidden",
        lambda lengths, n_key: np.arange(1, n_key + 1) < lengths[:, None, None],
        "Count the True of each row: they should be as many as its length. Places count from 0.",
    ),
    Mistake(
        "padding in front: the last places are allowed",
        lambda lengths, n_key: np.arange(n_key) >= n_key - lengths[:, None, None],
        "As many True as there are tokens, but at the wrong end: here the padding comes *behind*.",
    ),
    Mistake(
        "the axis for the queries is missing: [batch, n_key]",
        _right_padding(lambda mask: mask[:, 0]),
        "[batch, n_key] lines up with [n_query, n_key], so sentences would be taken for queries. Insert an axis of length 1.",
    ),
    Mistake(
        "the axis of length 1 is at the end: it masks queries, not keys",
        _right_padding(lambda mask: mask.swapaxes(-1, -2)),
        "In [..., n_query, n_key] the last axis is the keys. What is forbidden is to look *at* padding.",
    ),
    Mistake(
        "the axis of length 1 is in front",
        _right_padding(lambda mask: mask.swapaxes(0, 1)),
        "[1, batch, n_key] lines the sentences up with the queries. The batch comes first: [batch, 1, n_key].",
    ),
    Mistake(
        "queries are masked too: [batch, n_key, n_key]",
        _right_padding(lambda mask: mask & mask.swapaxes(-1, -2)),
        "The rows of padding now have nothing to attend to. Forbid only that padding is looked *at*: [batch, 1, n_key].",
        also=(_right_padding(lambda mask: np.repeat(mask, mask.shape[-1], axis=1)),),
    ),
    Mistake(
        "two axes for queries and heads: [batch, 1, 1, n_key]",
        _right_padding(lambda mask: mask[:, None]),
        "That is for scores with heads, from lesson 05 on. Without heads: [batch, 1, n_key].",
    ),
    Mistake(
        "1 and 0, not booleans",
        _right_padding(lambda mask: mask.astype(int)),
        "The places are right. But attention would *add* numbers to the scores, or refuse them. A comparison gives booleans.",
        ("mk34", "mk35"),
    ),
    Mistake(
        "0 and −∞ to be added, not booleans",
        _right_padding(masks.to_additive),
        "That is the additive form, which is made of a boolean mask further down. Here: True = may attend.",
    ),
    Mistake(
        "n_key is ignored: as wide as the longest sentence",
        lambda lengths, n_key: masks.padding_mask(lengths, int(lengths.max())),
        "A batch may be padded further than its longest sentence. `n_key` says how far.",
    ),
    Mistake(
        "position j is compared with length j: the lengths have no axis of their own",
        lambda lengths, n_key: np.arange(n_key) < lengths,
        "Every position must meet every length. Where must the lengths get new axes?",
        also=(
            lambda lengths, n_key: (np.arange(n_key) < lengths)[:, None, None],
            lambda lengths, n_key: (np.arange(n_key) < lengths)[None, None],
        ),
    ),
    Mistake(
        "positions in rows, sentences in columns",
        lambda lengths, n_key: np.arange(n_key)[:, None] < lengths,
        "You have [n_key, batch]. Which of the two gets the new axes?",
    ),
    Mistake(
        "all sentences get the length of the longest",
        lambda lengths, n_key: masks.padding_mask(np.full_like(lengths, lengths.max()), n_key),
        "Each row should have as many True as *its* sentence has tokens.",
    ),
    Mistake(
        "all sentences get the length of the first",
        lambda lengths, n_key: masks.padding_mask(np.full_like(lengths, lengths[0]), n_key),
        "Each row should have as many True as *its* sentence has tokens, not the first one's.",
    ),
    Mistake(
        "nothing is forbidden",
        lambda lengths, n_key: np.ones((len(lengths), 1, n_key), dtype=bool),
        "All True, whatever the lengths. Did the comparison get lost?",
    ),
    Mistake(
        "[-0:] is everything: a sentence without padding is forbidden",
        _last_ones,
        "With no padding your slice is `[-0:]`, the whole row. Count from the front: `[length:]`.",
    ),
    Mistake(
        "only the first padding is forbidden",
        _one_place,
        "An index names one place; what is forbidden begins there and goes on to the end: `[length:]`.",
        also=(_one_place_beyond,),
    ),
]

# to_additive ----------------------------------------------------------------------------------------------------------


def to_additive(mask, dtype):
    """Return an array of mask's shape and of this dtype, to be added to scores: 0 = may attend, −∞ = may not."""
    return np.where(mask, 0, -np.inf).astype(dtype)


def additive_cases(rng):
    one = np.array([[True, False]])
    return [
        Case("one row, by hand", (one, np.float64), np.array([[0.0, -np.inf]])),
        Case("causal, 3 × 3", (LOWER, np.float64)),
        Case("a padding mask of 2 sentences", (masks.padding_mask([3, 2], 3), np.float64)),
        Case("float32", (np.array([[False, True, True]]), np.float32), np.array([[-np.inf, 0, 0]], np.float32)),
        Case("float16", (LOWER, np.float16)),
        Case("nothing is allowed", (np.zeros((1, 2), dtype=bool), np.float32)),
        Case("everything is allowed", (np.ones((2, 1), dtype=bool), np.float32)),
    ]


def _additive(change):
    """A wrong array of numbers, brought into the right dtype."""
    return lambda mask, dtype: np.asarray(change(mask, dtype)).astype(dtype)


additive_mistakes = [
    Mistake(
        "inverted: what may be attended gets −∞",
        _additive(lambda mask, dtype: np.where(mask, -np.inf, 0)),
        "Your −∞ stands where the mask is True, and True says: may attend.",
    ),
    Mistake(
        "+∞",
        _additive(lambda mask, dtype: np.where(mask, 0, np.inf)),
        "The sign: exp(+∞) is infinite, exp(−∞) is 0. Which one should a forbidden key get?",
        ("mk09",),
    ),
    Mistake(
        "0 · ∞ is not a number",
        _additive(lambda mask, dtype: (1 - mask.astype(int)) * -np.inf),
        "For an allowed key you compute 0 · (−∞), which is NaN. Choose with `np.where` instead of multiplying.",
        ("mk10",),
        also=(_additive(lambda mask, dtype: mask * -np.inf),),
    ),
    Mistake(
        "−1e9 instead of −∞",
        _additive(lambda mask, dtype: np.where(mask, 0, -1e9)),
        "−1e9 is a finite number, and which weights it leads to depends on the dtype. What does a score need, so that exp is 0?",
    ),
    Mistake(
        "the lowest finite number instead of −∞",
        _additive(lambda mask, dtype: np.where(mask, 0, np.finfo(dtype).min)),
        "Add two such masks and it overflows; a row of nothing but such numbers becomes uniform. −∞ plus −∞ is still −∞.",
        ("mk13",),
        also=(_additive(lambda mask, dtype: np.where(mask, 0, np.finfo(dtype).min / 2)),),
    ),
    Mistake(
        "np.finfo(dtype).tiny, which is not the lowest number",
        _additive(lambda mask, dtype: np.where(mask, 0, np.finfo(dtype).tiny)),
        "`tiny` is a tiny number *above* zero, and exp of it is 1. You need what lies below everything.",
    ),
    Mistake(
        "the logarithm of a number that is only nearly 0",
        _additive(lambda mask, dtype: np.log(mask + 1e-9)),
        "log(0) is −∞, which is what you want. Adding something first brings it up to −20.7.",
    ),
    Mistake(
        "NaN for what is forbidden",
        _additive(lambda mask, dtype: np.where(mask, 0, np.nan)),
        "NaN is contagious: one in a row, and the whole row is NaN. −∞ is a number that softmax understands.",
    ),
    Mistake(
        "1 and 0",
        _additive(lambda mask, dtype: mask),
        "Adding 1 to the allowed and 0 to the others is a nudge, no ban. What must be added so that exp becomes 0?",
        ("mk03",),
    ),
    Mistake(
        "0 and −1",
        _additive(lambda mask, dtype: mask.astype(dtype) - 1),
        "Adding −1 makes a weight e times smaller, not 0. How far below must a score be for exp to be 0?",
    ),
    Mistake(
        "1 and −∞",
        _additive(lambda mask, dtype: np.where(mask, 1, -np.inf)),
        "What is allowed should stay as it is. Which number changes nothing when it is added?",
    ),
    Mistake(
        "the mask is returned as booleans",
        lambda mask, dtype: mask,
        "Booleans say yes or no; here numbers are wanted, to be added to scores.",
    ),
    Mistake(
        "the dtype is not used: always float64",
        lambda mask, dtype: np.where(mask, 0, -np.inf),
        "The numbers are right. Added to float32 scores, a float64 mask makes everything float64: `.astype(dtype)`.",
    ),
    Mistake(
        "always float32",
        lambda mask, dtype: np.where(mask, 0, -np.inf).astype(np.float32),
        "The numbers are right. `dtype` says of which kind the scores are; the result should be of that kind.",
    ),
    Mistake(
        "~ on whole numbers: everything is forbidden",
        _additive(lambda mask, dtype: np.where(~mask.astype(int), -np.inf, 0)),
        "`~1` is −2, which counts as True. Only on booleans does `~` mean *not*.",
    ),
    Mistake(
        "minus on booleans",
        _additive(lambda mask, dtype: np.where(-mask, -np.inf, 0)),
        "NumPy does not subtract booleans. *Not* is written `~mask`.",
        ("mk06",),
    ),
    Mistake(
        "a whole number cannot hold −∞",
        lambda mask, dtype: _fill_whole(mask),
        "`np.zeros_like(mask)` and `mask.astype(int)` have no ∞. Make an array of `dtype` first, then fill it.",
    ),
]


def _fill_whole(mask):
    bias = np.zeros(mask.shape, dtype=int)
    bias[~mask] = -np.inf
    return bias


check = Checker(
    "04",
    [
        Exercise(
            "causal_mask",
            masks.causal_mask,
            causal_mask,
            causal_cases,
            causal_mistakes,
            [
                _causal_by_loop,
                lambda q, k=None: np.arange(k or q) <= np.arange(q)[:, None] + (k or q) - q,
                lambda q, k=None: ~np.triu(np.ones((q, k or q), dtype=bool), (k or q) - q + 1),
            ],
        ),
        Exercise(
            "masked_softmax",
            attention.masked_softmax,
            masked_softmax,
            masked_cases,
            masked_mistakes,
            [
                _loop_masked_softmax,
                lambda s, m: np.nan_to_num(_filled(-np.inf)(s, m)),
                lambda s, m: _filled(-1e9)(s, m) * m,
            ],
        ),
        Exercise(
            "padding_mask",
            masks.padding_mask,
            padding_mask,
            padding_cases,
            padding_mistakes,
            [_padding_by_loop, lambda lengths, n_key: np.array([[np.arange(n_key) < length] for length in lengths])],
        ),
        Exercise(
            "to_additive",
            masks.to_additive,
            to_additive,
            additive_cases,
            additive_mistakes,
            [
                lambda mask, dtype: np.log(mask.astype(dtype)),
                lambda mask, dtype: np.where(mask, dtype(0), dtype(-np.inf)),
            ],
        ),
    ],
)
