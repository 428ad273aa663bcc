"""Exercises of lesson 05: heads split and merged, attention with several heads, two heads set by hand, parameters."""

import numpy as np

from attnlib.exercises.core import Case, Checker, Exercise, Mistake
from attnlib.numpy import attention, heads

# split_heads ----------------------------------------------------------------------------------------------------------


def split_heads(x, n_heads):
    """Cut each token's features into n_heads parts: [..., n, d_model] -> [..., n_heads, n, d_head]."""
    parts = x.reshape(*x.shape[:-1], n_heads, -1)  # [..., n, n_heads, d_head]
    return parts.swapaxes(-2, -3)


def _array(rng, *shape):
    return rng.normal(size=shape).round(1)


def split_cases(rng):
    by_hand = (np.array([[1.0, 2.0], [3.0, 4.0]]), 2)
    return [
        Case("2 tokens, 2 heads of 1 feature, by hand", by_hand, np.array([[[1.0], [3.0]], [[2.0], [4.0]]])),
        Case("square: 2 tokens, 2 heads of 2 features", (_array(rng, 2, 4), 2)),
        Case("3 tokens, 2 heads of 4 features", (_array(rng, 3, 8), 2)),
        Case("one head", (_array(rng, 3, 4), 1)),
        Case("one token, 3 heads of 2 features", (_array(rng, 1, 6), 3)),
        Case("a batch of 5, with 3 tokens, 2 heads of 4 features", (_array(rng, 5, 3, 8), 2)),
        Case("two axes in front: 2 and 3", (_array(rng, 2, 3, 4, 6), 3)),
    ]


def _cut(x, n_heads):
    """[..., n, n_heads, d_head]."""
    return x.reshape(*x.shape[:-1], n_heads, -1)


def _reshaped(x, n_heads):
    return x.reshape(*x.shape[:-2], n_heads, x.shape[-2], -1)


def _interleaved(x, n_heads):
    return np.moveaxis(x.reshape(*x.shape[:-1], -1, n_heads), -1, -3)


split_mistakes = [
    Mistake(
        "reshape alone, without exchanging axes",
        _reshaped,
        "The shape is right, yet head 0 holds whole tokens. Number the features of two tokens: which belong to head 0?",
        ("mh01",),
    ),
    Mistake(
        "the axes n and n_heads are not exchanged",
        _cut,
        "You have [..., n, n_heads, d_head]. Each head should hold all tokens, so its axis stands in front of n.",
    ),
    Mistake(
        "every n_heads-th feature: the last axis is cut into [d_head, n_heads]",
        _interleaved,
        "Head 0 should hold the *first* d_head features of each token. Which of the two new axes should come first?",
        also=(lambda x, n_heads: np.stack([x[..., h::n_heads] for h in range(n_heads)], axis=-2),),
    ),
    Mistake(
        "n_heads is taken for the width of a head",
        lambda x, n_heads: x.reshape(*x.shape[:-1], -1, n_heads).swapaxes(-2, -3),
        "n_heads says into how many parts to cut, not how wide each is. How wide is a head of d_model / n_heads?",
    ),
    Mistake(
        "`.T` or transpose() reverses all axes",
        lambda x, n_heads: _cut(x, n_heads).T,
        "Only two axes should change places, those of tokens and heads: exchange only these two, counted from the end.",
    ),
    Mistake(
        "axes are counted from the front, as if there were no batch",
        lambda x, n_heads: _cut(x, n_heads).transpose(1, 0, 2),
        "Right for one sequence. With axes in front exchange only these two, counted from the end.",
        also=(lambda x, n_heads: _cut(x, n_heads).swapaxes(0, 1),),
    ),
    Mistake(
        "axes are counted from the front, as if there always were one batch axis",
        lambda x, n_heads: _cut(x, n_heads).transpose(0, 2, 1, 3),
        "Right for one axis in front, no more and no fewer. Exchange only these two, counted from the end.",
        also=(lambda x, n_heads: _cut(x, n_heads).swapaxes(1, 2),),
    ),
    Mistake(
        "the heads stand in front of the batch",
        lambda x, n_heads: np.stack(np.split(x, n_heads, axis=-1)),
        "Right without a batch. The head axis belongs between the batch and the tokens: `axis=-3`.",
    ),
    Mistake(
        "batch and heads are folded into one axis",
        lambda x, n_heads: _cut(x, n_heads).swapaxes(-2, -3).reshape(-1, x.shape[-2], x.shape[-1] // n_heads),
        "Right without a batch. Keep the axes in front as they are, and add one.",
    ),
    Mistake(
        "the tokens are divided among the heads, not the features",
        lambda x, n_heads: np.stack(np.split(x, n_heads, axis=-2), axis=-3),
        "Each head must see every token, or it could not compare them all. It is the *features* that are divided.",
    ),
    Mistake(
        "a head's last two axes are exchanged",
        lambda x, n_heads: _cut(x, n_heads).swapaxes(-2, -3).swapaxes(-1, -2),
        "You have [..., n_heads, d_head, n]. Features stay on the last axis; keys are turned later, for the scores.",
    ),
    Mistake(
        "the first head only",
        lambda x, n_heads: x[..., : x.shape[-1] // n_heads],
        "The other heads are missing. All of them go into one array, along an axis of their own.",
    ),
    Mistake(
        "every head gets all features",
        lambda x, n_heads: np.stack([x] * n_heads, axis=-3),
        "The heads share the features among them: each gets d_model / n_heads of every token.",
    ),
    Mistake(
        "the batch is folded into the tokens",
        lambda x, n_heads: x.reshape(-1, n_heads, x.shape[-1] // n_heads).swapaxes(0, 1),
        "Right without a batch. Now the tokens of all sequences stand in one row. Keep the axes in front: `*x.shape[:-1]`.",
    ),
]

# merge_heads ----------------------------------------------------------------------------------------------------------


def merge_heads(heads):
    """Put each token's parts side by side again: [..., n_heads, n, d_head] -> [..., n, n_heads * d_head]."""
    parts = heads.swapaxes(-2, -3)  # [..., n, n_heads, d_head]
    return parts.reshape(*parts.shape[:-2], -1)


def merge_cases(rng):
    by_hand = (np.array([[[1.0], [3.0]], [[2.0], [4.0]]]),)
    return [
        Case("2 heads of 1 feature, 2 tokens, by hand", by_hand, np.array([[1.0, 2.0], [3.0, 4.0]])),
        Case("square: 2 heads of 2 features, 2 tokens", (_array(rng, 2, 2, 2),)),
        Case("2 heads of 4 features, 3 tokens", (_array(rng, 2, 3, 4),)),
        Case("one head", (_array(rng, 1, 3, 4),)),
        Case("3 heads of 2 features, one token", (_array(rng, 3, 1, 2),)),
        Case("a batch of 5, with 2 heads of 4 features, 3 tokens", (_array(rng, 5, 2, 3, 4),)),
        Case("two axes in front: 2 and 3", (_array(rng, 2, 3, 3, 4, 2),)),
    ]


def _joined(heads):
    return heads.reshape(*heads.shape[:-3], heads.shape[-2], -1)


def _batch_for_heads(heads):
    """A batch [batch, heads, n, d] read as [heads, batch, n, d]; without a batch there is nothing to confuse."""
    if heads.ndim < 4:
        return merge_heads(heads)
    *leading, batch, n_heads, n, d_head = heads.shape
    confused = heads.reshape(*leading, n_heads, batch, n, d_head)
    return np.moveaxis(confused, -4, -2).reshape(*leading, batch, n, -1)


merge_mistakes = [
    Mistake(
        "reshape alone, without exchanging axes back",
        _joined,
        "The shape is right, but token 0 gets head 0 of several tokens. It should get its own part from *every* head.",
        ("mh02", "mh10", "mh22"),
    ),
    Mistake(
        "the parts are not joined",
        lambda h: h.swapaxes(-2, -3),
        "You have [..., n, n_heads, d_head]. The last two axes are still to become one: `reshape`.",
    ),
    Mistake(
        "the features are interleaved",
        lambda h: np.moveaxis(h, -3, -1).reshape(*h.shape[:-3], h.shape[-2], -1),
        "Head 0 comes first with all its features, then head 1. Bring the axes to [..., n, n_heads, d_head] before you join.",
    ),
    Mistake(
        "the wrong two axes are exchanged (the last two)",
        lambda h: h.swapaxes(-1, -2).reshape(*h.shape[:-3], h.shape[-2], -1),
        "Heads and tokens should change places, so that the heads of a token stand side by side.",
    ),
    Mistake(
        "the heads are averaged",
        lambda h: h.mean(axis=-3),
        "A mean would lose what the heads found apart. Put them side by side: n_heads * d_head features.",
    ),
    Mistake(
        "the heads are added up",
        lambda h: h.sum(axis=-3),
        "A sum would lose what the heads found apart. Put them side by side: n_heads * d_head features.",
    ),
    Mistake(
        "the heads are put below one another, along the tokens",
        lambda h: h.reshape(*h.shape[:-3], -1, h.shape[-1]),
        "There are still n tokens, and each has become wider. Join along the features.",
    ),
    Mistake(
        "the first head only",
        lambda h: h[..., 0, :, :],
        "The other heads are missing: a token should come out n_heads times as wide as in one head.",
    ),
    Mistake(
        "`.T` or transpose() reverses all axes",
        lambda h: h.T.reshape(*h.shape[:-3], h.shape[-2], -1),
        "Only two axes should change places, those of heads and tokens: exchange only these two, counted from the end.",
    ),
    Mistake(
        "batch and heads are exchanged",
        _batch_for_heads,
        "Right without a batch. Merge two samples together and each alone: do you get the same rows?",
        ("mh03",),
    ),
    Mistake(
        "axes are counted from the front, as if there were no batch",
        lambda h: h.transpose(1, 0, 2).reshape(h.shape[1], -1),
        "Right for one sequence. With axes in front exchange only these two, counted from the end.",
        also=(lambda h: h.swapaxes(0, 1).reshape(*h.shape[:-3], h.shape[-2], -1),),
    ),
    Mistake(
        "axes are counted from the front, as if there always were one batch axis",
        lambda h: h.transpose(0, 2, 1, 3).reshape(h.shape[0], h.shape[2], -1),
        "Right for one axis in front, no more and no fewer. Exchange only these two, counted from the end.",
        also=(lambda h: h.swapaxes(1, 2).reshape(*h.shape[:-3], h.shape[-2], -1),),
    ),
    Mistake(
        "the samples of the batch are put side by side, not the heads",
        lambda h: np.concatenate(list(h), axis=-1),
        "Right without a batch. A loop over an array runs over its *first* axis, and that is then the batch.",
    ),
    Mistake(
        "np.hstack of a list of heads, which joins axis 1",
        lambda h: np.hstack(list(h)),
        "Right without a batch. With one, the list holds samples, not heads, and axis 1 their tokens, not their features.",
    ),
    Mistake(
        "the batch is joined as well",
        lambda h: np.moveaxis(h, -2, 0).reshape(h.shape[-2], -1),
        "Right without a batch. Only two axes become one: keep all those in front of them, `*heads.shape[:-3]`.",
    ),
]

# multi_head_attention -------------------------------------------------------------------------------------------------


def multi_head_attention(x, w_query, w_key, w_value, w_output, n_heads, mask=None):
    """Let each token of x [..., n, d_model] look n_heads times, and mix with w_output what the heads found."""
    cut = [(x @ w).reshape(*x.shape[:-1], n_heads, -1) for w in (w_query, w_key, w_value)]
    query, key, value = (part.swapaxes(-2, -3) for part in cut)  # [..., n_heads, n, d_head]
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    if mask is not None:
        scores = np.where(mask[..., None, :, :] if mask.ndim == x.ndim else mask, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    found = (weights / weights.sum(axis=-1, keepdims=True) @ value).swapaxes(-2, -3)
    return found.reshape(*x.shape[:-1], -1) @ w_output


def _layer(rng, leading, d_model, n_heads, d_k, d_v):
    """x and the four weights, wide enough apart that softmax has something to choose."""
    shapes = [(d_model, n_heads * d_k)] * 2 + [(d_model, n_heads * d_v), (n_heads * d_v, d_model)]
    return (_array(rng, *leading, d_model), *(_array(rng, *shape) for shape in shapes), n_heads)


def multi_head_cases(rng):
    one_token = np.array([[1.0, 2.0]]), np.eye(2), np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]), np.eye(2)[:, ::-1] * 2
    blank = np.zeros((2, 2)), np.zeros((2, 2)), np.eye(2), np.array([[1.0, 0.0], [0.0, 10.0]])
    causal = np.tri(4, dtype=bool)
    lengths = np.array([[[True, True, True]], [[True, False, False]]])  # [2, 1, 3]
    apart = np.array([np.tri(3), np.ones((3, 3)) - np.eye(3)], dtype=bool)
    return [
        Case(
            "one token, 2 heads, by hand: its value [7, 10], times w_output", (*one_token, 2), np.array([[20.0, 14.0]])
        ),
        Case(
            "2 tokens, 2 heads that look at all alike, by hand",
            (np.array([[2.0, 0.0], [0.0, 4.0]]), *blank, 2),
            np.array([[1.0, 20.0], [1.0, 20.0]]),
        ),
        Case("square: 4 tokens, 2 heads, all widths 2, d_model = 4", _layer(rng, (4,), 4, 2, 2, 2)),
        Case("3 tokens, d_model = 4, 2 heads, d_k = 5, d_v = 3", _layer(rng, (3,), 4, 2, 5, 3)),
        Case("one head", _layer(rng, (3,), 4, 1, 2, 4)),
        Case("a batch of 2, with 3 tokens, 3 heads", _layer(rng, (2, 3), 6, 3, 2, 2)),
        Case("a mask: nobody looks ahead", (*_layer(rng, (4,), 4, 2, 2, 3), causal)),
        Case("a batch of 2, one mask for each sequence, 2 heads", (*_layer(rng, (2, 3), 4, 2, 2, 3), lengths)),
        Case("one mask for each head", (*_layer(rng, (3,), 4, 2, 2, 2), apart)),
        Case("scores beyond ±1000", (1000 * np.eye(3)[:2], *_layer(rng, (3,), 3, 2, 2, 2)[1:])),
    ]


def _own(
    project=lambda x, w: x @ w,
    projections=lambda x, wq, wk, wv, project: (project(x, wq), project(x, wk), project(x, wv)),
    split=heads.split_heads,
    scores=lambda q, k, x: q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]),
    mask_scores=lambda s, mask, x: np.where(mask[..., None, :, :] if mask.ndim == x.ndim else mask, s, -np.inf),
    weigh=lambda s, mask, x: attention.softmax(s),
    collect=lambda w, v: w @ v,
    merge=heads.merge_heads,
    out=lambda found, w, x: found @ w,
):
    """Attention with several heads in which some steps are done in another way."""

    def layer(x, w_query, w_key, w_value, w_output, n_heads, mask=None):
        q, k, v = (split(part, n_heads) for part in projections(x, w_query, w_key, w_value, project))
        s = scores(q, k, x)
        if mask is not None:
            s = mask_scores(s, mask, x)
        return out(merge(collect(weigh(s, mask, x), v)), w_output, x)

    return layer


def _parts_first(x, w_query, w_key, w_value, w_output, n_heads, mask=None):
    """Each head projects only its own part of the input, with the block of the weights on the diagonal."""
    found = []
    for parts in zip(*(_blocks(x, w, n_heads) for w in (w_query, w_key, w_value))):
        allowed = mask[..., len(found), :, :] if mask is not None and mask.ndim > x.ndim else mask
        found.append(attention.scaled_dot_product_attention(*parts, allowed))
    return np.concatenate(found, axis=-1) @ w_output


def _blocks(x, w, n_heads):
    parts, rows = np.split(x, n_heads, axis=-1), np.split(w, n_heads, axis=0)
    return [part @ np.split(row, n_heads, axis=-1)[h] for h, (part, row) in enumerate(zip(parts, rows))]


def _over_the_batch(x, *rest):
    return (heads.multi_head_attention(x.swapaxes(0, 1), *rest).swapaxes(0, 1)) if x.ndim > 2 else right(x, *rest)


def _values_as_wide_as_keys(x, w_query, w_key, w_value, w_output, n_heads, mask=None):
    d_k = w_query.shape[-1] // n_heads
    value = (x @ w_value).reshape(*x.shape[:-1], n_heads, d_k).swapaxes(-2, -3)
    query, key = heads.split_heads(x @ w_query, n_heads), heads.split_heads(x @ w_key, n_heads)
    mask = mask[..., None, :, :] if mask is not None and mask.ndim == x.ndim else mask
    return heads.merge_heads(attention.scaled_dot_product_attention(query, key, value, mask)) @ w_output


def _single(x, w_query, w_key, w_value, w_output, n_heads, mask=None):
    mask = mask[0] if mask is not None and mask.ndim > x.ndim else mask
    return heads.multi_head_attention(x, w_query, w_key, w_value, w_output, 1, mask)


def _multiplied(weights, mask, x):
    return weights * (mask[..., None, :, :] if mask.ndim == x.ndim else mask)


right = _own()

multi_head_mistakes = [
    Mistake(
        "heads are split by reshape alone",
        _own(split=_reshaped),
        "A head should hold a part of every token, not some whole tokens. Use your `split_heads`.",
        also=(_own(split=_reshaped, merge=_joined),),
    ),
    Mistake(
        "heads are merged by reshape alone",
        _own(merge=_joined),
        "Row i of the output should come from row i of every head. Use your `merge_heads`.",
    ),
    Mistake(
        "the heads are not merged",
        _own(merge=lambda found: found, out=lambda found, w, x: found),
        "You have [..., n_heads, n, d_v]. Put the heads of each token side by side, then multiply by `w_output`.",
    ),
    Mistake(
        "the heads are averaged, not put side by side",
        _own(merge=lambda found: found.mean(axis=-3)),
        "w_output has n_heads * d_v rows, since it wants all heads side by side. Use your `merge_heads`.",
    ),
    Mistake(
        "the heads of one token attend to each other",
        _own(
            split=_cut,
            merge=lambda found: found.reshape(*found.shape[:-2], -1),
        ),
        "Your scores are [..., n, n_heads, n_heads]: no token sees another. Heads belong in front of the tokens.",
    ),
    Mistake(
        "the heads are not split: one look of full width",
        _single,
        "n_heads changes nothing in your answer. Each head needs a map of its own.",
    ),
    Mistake(
        "the scale is √d_model, or that of all heads together",
        _own(scores=lambda q, k, x: q @ k.swapaxes(-1, -2) / np.sqrt(x.shape[-1])),
        "A head sums d_head products, so its scores are divided by the root of *its* width, `query.shape[-1]`.",
        also=(_own(scores=lambda q, k, x: q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1] * q.shape[-3])),),
    ),
    Mistake(
        "not divided by √d_head",
        _own(scores=lambda q, k, x: q @ k.swapaxes(-1, -2)),
        "Divide the scores by the root of the width of a head, as in lesson 02.",
    ),
    Mistake(
        "softmax over the heads",
        _own(weigh=lambda s, mask, x: attention.softmax(s, axis=-3)),
        "Heads do not compete. In each head the keys do: the last axis.",
    ),
    Mistake(
        "w_output is not used",
        _own(out=lambda found, w, x: found),
        "The heads stand side by side, but nothing has mixed them, and the width may not be that of x. Multiply by `w_output`.",
        ("mh15",),
    ),
    Mistake(
        "the keys are made with w_query",
        _own(projections=lambda x, wq, wk, wv, project: (project(x, wq), project(x, wq), project(x, wv))),
        "Set w_key to zeros: all scores should then be equal. Are they?",
        ("mh11",),
    ),
    Mistake(
        "the values are made with w_key",
        _own(projections=lambda x, wq, wk, wv, project: (project(x, wq), project(x, wk), project(x, wk))),
        "Set w_value to zeros: nothing should come out. What does?",
        ("mh12",),
    ),
    Mistake(
        "the weights are transposed",
        lambda x, wq, wk, wv, wo, *rest: right(x, wq.T, wk.T, wv.T, wo.T, *rest),
        "Here weights are [in, out] and used as `x @ w`. (PyTorch stores [out, in], hence the habit.)",
        ("mh08",),
    ),
    Mistake(
        "only the diagonal of the weights is used",
        _own(
            project=lambda x, w: np.einsum("...d,dd->...d", x, w), out=lambda f, w, x: np.einsum("...d,dd->...d", f, w)
        ),
        "In einsum the same letter twice reads the diagonal. Each output feature hears from *all* input features: `x @ w`.",
        ("mh23",),
        also=(_own(project=lambda x, w: np.einsum("...d,dd->...d", x, w)),),
    ),
    Mistake(
        "nothing is projected: x is split as it is",
        _own(project=lambda x, w: x),
        "w_query, w_key and w_value change nothing in your answer. First `x @ w`, then split.",
    ),
    Mistake(
        "the input is split before it is projected",
        _parts_first,
        "May head 0 use the last feature of x? It may: project all of x first, then split what comes out.",
        ("mh24",),
    ),
    Mistake(
        "each token keeps its own value: the weights are summed away",
        _own(collect=lambda w, v: v * w.sum(axis=-1, keepdims=True)),
        "Your output does not depend on the scores. In einsum queries and keys need two letters: 'hqk,hkd->hqd'.",
        ("mh09",),
    ),
    Mistake(
        "values are cut as wide as keys",
        _values_as_wide_as_keys,
        "Nothing says that values must be as wide as keys: each has the columns of its own weights, divided by n_heads.",
        ("mh14",),
    ),
    Mistake(
        "attention runs over the batch, not over the tokens",
        _over_the_batch,
        "Change the second sequence: does the output of the first move? It must not. Tokens are on axis −2 of x.",
        ("mh21",),
    ),
    Mistake(
        "x is added to the output",
        _own(out=lambda found, w, x: x + found @ w),
        "That is the residual connection of a layer. Here return the attention alone.",
    ),
    Mistake(
        "the mask is not used",
        _own(mask_scores=lambda s, mask, x: s),
        "With a mask some tokens may not be looked at: their scores become −∞ before softmax.",
    ),
    Mistake(
        "the mask is read the wrong way round",
        _own(
            mask_scores=lambda s, mask, x: np.where(mask[..., None, :, :] if mask.ndim == x.ndim else mask, -np.inf, s)
        ),
        "True means: may attend. Which scores should become −∞?",
    ),
    Mistake(
        "the mask is applied after softmax",
        _own(
            mask_scores=lambda s, mask, x: s,
            weigh=lambda s, mask, x: (
                attention.softmax(s) if mask is None else _multiplied(attention.softmax(s), mask, x)
            ),
        ),
        "The weights that are left no longer sum to 1. Mask the scores, then take softmax.",
    ),
    Mistake(
        "the mask of a sequence lines up with the heads",
        _own(mask_scores=lambda s, mask, x: np.where(mask, s, -np.inf)),
        "A mask [batch, n, n] meets scores [batch, n_heads, n, n] from the right, so its batch meets the heads. Give it an axis.",
    ),
    Mistake(
        "each head's own mask gets a head axis too",
        _own(mask_scores=lambda s, mask, x: np.where(mask[..., None, :, :], s, -np.inf)),
        "A mask with one axis more than x has its heads already. Add the axis only if it has as many axes as x.",
    ),
]

# count_parameters -----------------------------------------------------------------------------------------------------


def count_parameters(d_model, n_heads, d_k=None, d_v=None, bias=True):
    """Count the numbers in w_query, w_key, w_value, w_output, and their biases; d_k and d_v are widths per head."""
    d_k = d_model // n_heads if d_k is None else d_k
    d_v = d_model // n_heads if d_v is None else d_v
    columns = n_heads * (2 * d_k + d_v)  # of w_query, w_key, w_value
    count = d_model * columns + n_heads * d_v * d_model
    return count + (columns + d_model if bias else 0)


def count_cases(rng):
    return [
        Case("d_model = 2, one head, no bias, by hand: four matrices of 2 × 2", (2, 1, None, None, False), 16),
        Case("d_model = 4, 2 heads, no bias, by hand: four matrices of 4 × 4", (4, 2, None, None, False), 64),
        Case("the same with biases: 4 more for each", (4, 2, None, None, True), 80),
        Case("d_model = 6, 2 heads, d_k = 5, d_v = 4, no bias", (6, 2, 5, 4, False), 216),
        Case("the same with biases: 10 + 10 + 8 + 6 more", (6, 2, 5, 4, True), 250),
        Case("only d_k is given", (6, 3, 4, None, True)),
        Case("only d_v is given", (6, 3, None, 5, True)),
        Case("widths given, and d_model / n_heads is not whole", (10, 4, 3, 2, True)),
        Case("as in the paper: d_model = 512, 8 heads", (512, 8, None, None, True), 1_050_624),
    ]


def _count(
    query=lambda d, h, k, v: d * h * k,
    key=lambda d, h, k, v: d * h * k,
    value=lambda d, h, k, v: d * h * v,
    output=lambda d, h, k, v: h * v * d,
    biases=lambda d, h, k, v: h * (2 * k + v) + d,
    default=lambda d, h: d // h,
    total=lambda weights, biases, bias: weights + (biases if bias else 0),
):
    """A count in which some part is done in another way."""

    def count(d_model, n_heads, d_k=None, d_v=None, bias=True):
        k, v = (default(d_model, n_heads) if width is None else width for width in (d_k, d_v))
        parts = [part(d_model, n_heads, k, v) for part in (query, key, value, output)]
        return total(sum(parts), biases(d_model, n_heads, k, v), bias)

    return count


count_mistakes = [
    Mistake(
        "w_output is forgotten",
        _count(output=lambda d, h, k, v: 0, biases=lambda d, h, k, v: h * (2 * k + v)),
        "There are four matrices: the heads, side by side, are mixed by one more.",
        also=(
            _count(output=lambda d, h, k, v: 0),
            lambda d, h, k=None, v=None, bias=True: 3 * d * d + (3 * d if bias else 0),
        ),
    ),
    Mistake(
        "w_output sized n_heads * d_model instead of n_heads * d_v",
        _count(output=lambda d, h, k, v: h * d * d),
        "How wide is a token after its heads have been put side by side? So many rows has w_output.",
        ("mh13",),
    ),
    Mistake(
        "every head is as wide as d_model",
        _count(default=lambda d, h: d),
        "Several heads cost no more than one: where no width is given, they share d_model among them.",
        also=(lambda d, h, k=None, v=None, bias=True: h * (4 * d * d + (4 * d if bias else 0)),),
    ),
    Mistake(
        "one head is counted",
        _count(
            query=lambda d, h, k, v: d * k,
            key=lambda d, h, k, v: d * k,
            value=lambda d, h, k, v: d * v,
            output=lambda d, h, k, v: v * d,
            biases=lambda d, h, k, v: 2 * k + v + d,
        ),
        "d_k and d_v are the widths of *one* head. A matrix has the columns of all of them.",
        also=(_count(query=lambda d, h, k, v: d * k, key=lambda d, h, k, v: d * k, value=lambda d, h, k, v: d * v),),
    ),
    Mistake(
        "d_k and d_v are taken for the width of all heads together",
        _count(
            query=lambda d, h, k, v: d * k,
            key=lambda d, h, k, v: d * k,
            value=lambda d, h, k, v: d * v,
            output=lambda d, h, k, v: v * d,
            biases=lambda d, h, k, v: 2 * k + v + d,
            default=lambda d, h: d,
        ),
        "d_k and d_v are widths of one head: times n_heads.",
    ),
    Mistake(
        "the biases of one head only",
        _count(biases=lambda d, h, k, v: 2 * k + v + d),
        "The weights are right. A bias has one number for each column of its matrix, and those of all heads are in it.",
    ),
    Mistake(
        "the biases are forgotten",
        _count(total=lambda weights, biases, bias: weights),
        "With bias=True each projection also adds one number to each of its columns.",
    ),
    Mistake(
        "biases are always counted",
        _count(total=lambda weights, biases, bias: weights + biases),
        "With bias=False there are only the four matrices.",
    ),
    Mistake(
        "the bias of the output is forgotten",
        _count(biases=lambda d, h, k, v: h * (2 * k + v)),
        "Four projections, four biases: the one of w_output has d_model numbers.",
    ),
    Mistake(
        "one number of bias for each matrix",
        _count(biases=lambda d, h, k, v: 4),
        "A bias has one number for each *column* of its matrix.",
    ),
    Mistake(
        "every bias has d_model numbers",
        _count(biases=lambda d, h, k, v: 4 * d),
        "Right as long as n_heads * d_k is d_model. A bias is as long as what its projection puts out.",
    ),
    Mistake(
        "the bias of the output is as long as its input",
        _count(biases=lambda d, h, k, v: h * (2 * k + 2 * v)),
        "A bias is added to what comes *out* of w_output, and that is d_model wide.",
    ),
    Mistake(
        "d_k and d_v are not used",
        lambda d, h, k=None, v=None, bias=True: _count()(d, h, d // h, d // h, bias),
        "If widths are given, they count; d_model / n_heads is only for those that are not.",
        also=(lambda d, h, k=None, v=None, bias=True: 4 * d * d + (4 * d if bias else 0),),
    ),
    Mistake(
        "values are counted as wide as keys",
        _count(
            value=lambda d, h, k, v: d * h * k,
            output=lambda d, h, k, v: h * k * d,
            biases=lambda d, h, k, v: 3 * h * k + d,
        ),
        "Values have a width of their own, d_v, and so has what w_output takes in.",
        also=(_count(value=lambda d, h, k, v: d * h * k, biases=lambda d, h, k, v: 3 * h * k + d),),
    ),
    Mistake(
        "a missing d_v is taken from d_k",
        lambda d, h, k=None, v=None, bias=True: _count()(d, h, k, k if v is None else v, bias),
        "Each width that is missing is d_model / n_heads by itself, whatever the other one is.",
    ),
    Mistake(
        "only three matrices of one size, as if query, key and value were one",
        _count(query=lambda d, h, k, v: 0),
        "Query and key have a matrix each.",
        also=(_count(query=lambda d, h, k, v: 0, biases=lambda d, h, k, v: h * (k + v) + d),),
    ),
    Mistake(
        "the result is not a whole number, since `/` divides",
        _count(default=lambda d, h: d / h),
        "`/` makes a float of two whole numbers, `//` a whole number.",
    ),
]

# previous_and_first ---------------------------------------------------------------------------------------------------


def previous_and_first(n, strength):
    """Return w_query, w_key, w_value, w_output, stacked [4, 2n, 2n]: head 0 fetches the previous token, head 1 the first."""
    w_query, w_key, w_value, w_output = np.zeros((4, 2 * n, 2 * n))
    w_query[n:, :n] = strength * np.eye(n, k=-1)  # head 0: place i asks for place i − 1
    w_query[n:, n] = strength  # head 1: every place asks for place 0
    w_key[n:, :n] = w_key[n:, n:] = np.eye(n)  # both heads: the key is the place
    w_value[:n, :n] = w_value[:n, n:] = np.eye(n)  # both heads: the value is the numbers
    w_output[:] = np.eye(2 * n)
    return np.array([w_query, w_key, w_value, w_output])


def rows_fetched(weights, n, strength):
    """Rows 1 to n − 1 of the output on one sequence; a map row with .9 or more on one token counts as that token.

    That is how strong right matrices must be, and all that they must be: many are right.
    """
    w_query, w_key, w_value, w_output = weights.astype(float)
    x = np.hstack([np.random.default_rng(n).normal(size=(n, n)).round(1), np.eye(n)])
    query, key, value = (heads.split_heads(x @ w, 2) for w in (w_query, w_key, w_value))
    maps = attention.softmax(attention.attention_scores(query, key))  # [2, n, n]
    maps = np.where(maps.max(axis=-1, keepdims=True) >= 0.9, np.eye(n)[maps.argmax(axis=-1)], maps)
    return (heads.merge_heads(maps @ value) @ w_output)[1:]


def previous_and_first_cases(rng):
    return [
        Case("3 tokens, strength 20", (3, 20.0)),
        Case("6 tokens, strength 20", (6, 20.0)),
        Case("6 tokens, strength 0: all weights are equal", (6, 0.0)),
        Case("4 tokens, strength 50", (4, 50.0)),
    ]


def _set(**changes):
    """The right matrices, with functions of (matrix, n, strength) that change some of them."""

    def weights(n, strength):
        names = ("w_query", "w_key", "w_value", "w_output")
        matrices = dict(zip(names, heads.previous_and_first(n, strength)))
        for name, change in changes.items():
            matrices[name] = change(matrices[name], n, strength)
        return np.array([*matrices.values()])

    return weights


def _blocks_of(top_left, top_right, bottom_left, bottom_right):
    """A matrix of four blocks [n, n], each 0, 1 (the identity) or a function of n."""

    def matrix(_, n, strength):
        blocks = [part(n) if callable(part) else part * np.eye(n) for part in (top_left, top_right)]
        below = [part(n) if callable(part) else part * np.eye(n) for part in (bottom_left, bottom_right)]
        return np.block([blocks, below])

    return matrix


def _asks(left, right):
    """w_query in which both heads read the places, with these questions [n, n]."""
    return lambda _, n, strength: strength * np.block([[np.zeros((n, 2 * n))], [left(n), right(n)]])


def _to_previous(n):
    return np.eye(n, k=-1)


def _to_first(n):
    return np.eye(n)[np.zeros(n, int)]


previous_and_first_mistakes = [
    Mistake(
        "both heads ask for the previous token",
        _set(w_query=_asks(_to_previous, _to_previous)),
        "The right half should be the first token. What should head 1, the columns n to 2n, ask for at *every* place?",
    ),
    Mistake(
        "both heads ask for the first token",
        _set(w_query=_asks(_to_first, _to_first)),
        "The left half should be the previous token, another one at each place: ones beside the diagonal.",
    ),
    Mistake(
        "the heads are exchanged: first, then previous",
        _set(w_query=_asks(_to_first, _to_previous)),
        "The previous token belongs in the left half of the output, the first in the right half.",
    ),
    Mistake(
        "one head asks both questions",
        _set(w_query=_asks(lambda n: _to_previous(n) + _to_first(n), lambda n: np.zeros((n, n)))),
        "That is the one map of the beginning: it mixes. Give one question to the columns of each head.",
        also=(
            _set(w_query=_asks(*[lambda n: _to_previous(n) + _to_first(n)] * 2)),
            _set(
                w_query=_asks(lambda n: _to_previous(n) + _to_first(n), lambda n: np.zeros((n, n))),
                w_value=_blocks_of(1, 0, 0, 0),
            ),
        ),
    ),
    Mistake(
        "the next token instead of the previous one",
        _set(w_query=_asks(lambda n: np.eye(n, k=1), _to_first)),
        "Row i is who asks, column j what is asked for, and j should be i − 1: below the diagonal, `k=-1`.",
    ),
    Mistake(
        "each token asks for itself",
        _set(w_query=_asks(np.eye, _to_first)),
        "Head 0 brings each token its own numbers. Move the ones to the column before.",
    ),
    Mistake(
        "the queries read the numbers, not the places",
        _set(w_query=lambda w, n, s: np.roll(w, n, axis=0)),
        "Rows 0 to n of a matrix meet the numbers of a token, rows n to 2n its place. Who asks is known by its place.",
    ),
    Mistake(
        "the keys are made of the numbers, not of the places",
        _set(w_key=_blocks_of(1, 1, 0, 0)),
        "A key should say *where* a token is. Rows n to 2n of w_key meet the place.",
    ),
    Mistake(
        "head 1 looks at all alike: it has no keys, or only place 0 asks",
        _set(w_key=_blocks_of(0, 0, 1, 0)),
        "Zeros meet everything alike. Head 1 needs keys too, columns n to 2n, and *every* place asks: a column, not a row.",
    ),
    Mistake(
        "w_key is the identity: head 0 gets the numbers as keys",
        _set(w_key=lambda w, n, s: np.eye(2 * n)),
        "Head 0 asks for a place and meets numbers. Both heads need the place as key: rows n to 2n.",
    ),
    Mistake(
        "the values are the places, not the numbers",
        _set(w_value=_blocks_of(0, 0, 1, 1)),
        "The places are for finding. What is to be handed out are the first n features: rows 0 to n of w_value.",
    ),
    Mistake(
        "w_value is the identity: head 1 hands out places",
        _set(w_value=_blocks_of(1, 0, 0, 1)),
        "The left half is right. Head 1 hands out the columns n to 2n of x @ w_value: let these be the numbers too.",
    ),
    Mistake(
        "only head 0 has values",
        _set(w_value=_blocks_of(1, 0, 0, 0)),
        "The right half of the output is zeros: head 1 has found the token and hands out nothing.",
    ),
    Mistake(
        "w_output is left at zeros",
        _set(w_output=lambda w, n, s: np.zeros((2 * n, 2 * n))),
        "Everything is found and then multiplied by zeros. The heads stand side by side as they should: what leaves them so?",
    ),
    Mistake(
        "w_output adds the two heads up",
        _set(w_output=_blocks_of(1, 1, 1, 1)),
        "Both halves hold the sum of previous and first. Each head should go to its own half: `np.eye(2 * n)`.",
        also=(_set(w_output=_blocks_of(1, 0, 1, 0)),),
    ),
    Mistake(
        "the strength is not used",
        lambda n, strength: heads.previous_and_first(n, 20.0),
        "With strength 0 nobody should ask for anything. Multiply w_query by `strength`.",
    ),
    Mistake(
        "all four matrices are multiplied by the strength",
        lambda n, strength: strength * heads.previous_and_first(n, 1.0),
        "Only the question is multiplied. What is fetched should come out as it is.",
        also=(_set(w_value=lambda w, n, s: s * w),),
    ),
    Mistake(
        "too weak to choose: the strength is left at 1",
        lambda n, strength: heads.previous_and_first(n, min(strength, 1.0)),
        "The right tokens lead, but by less than .9. Where could `strength` go?",
    ),
    Mistake(
        "a minus sign: it asks for all but the right one",
        _set(w_query=lambda w, n, s: -w),
        "A large score should mean: this is what I look for.",
    ),
    Mistake(
        "w_query is transposed",
        _set(w_query=lambda w, n, s: w.T),
        "It is used as `x @ w_query`: rows belong to the features of who asks, columns to the heads.",
    ),
]

check = Checker(
    "05",
    [
        Exercise(
            "split_heads",
            heads.split_heads,
            split_heads,
            split_cases,
            split_mistakes,
            [
                lambda x, n_heads: np.stack(np.split(x, n_heads, axis=-1), axis=-3),
                lambda x, n_heads: np.moveaxis(_cut(x, n_heads), -2, -3),
                lambda x, n_heads: np.einsum("...nhd->...hnd", _cut(x, n_heads)),
            ],
        ),
        Exercise(
            "merge_heads",
            heads.merge_heads,
            merge_heads,
            merge_cases,
            merge_mistakes,
            [
                lambda h: np.concatenate([h[..., i, :, :] for i in range(h.shape[-3])], axis=-1),
                lambda h: np.concatenate(list(np.moveaxis(h, -3, 0)), axis=-1),
            ],
        ),
        Exercise(
            "multi_head_attention",
            heads.multi_head_attention,
            multi_head_attention,
            multi_head_cases,
            multi_head_mistakes,
            [right],
        ),
        Exercise(
            "count_parameters",
            heads.count_parameters,
            count_parameters,
            count_cases,
            count_mistakes,
            [_count()],
        ),
        Exercise(
            "previous_and_first",
            heads.previous_and_first,
            previous_and_first,
            previous_and_first_cases,
            previous_and_first_mistakes,
            [
                lambda n, strength: (*heads.previous_and_first(n, strength)[:3], np.eye(2 * n)),
                lambda n, strength: heads.previous_and_first(n, 1.5 * strength),
                _set(  # the heads exchanged, and exchanged back by w_output
                    w_query=_asks(_to_first, _to_previous), w_output=_blocks_of(0, 1, 1, 0)
                ),
                _set(w_query=lambda w, n, s: w / 4, w_key=lambda w, n, s: 4 * w),  # the strength in the keys
            ],
            view=rows_fetched,
        ),
    ],
)
