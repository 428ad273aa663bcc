"""Exercises of lesson 12: entropy of heads, rollout, a head taken away, words taken away."""

import functools

import numpy as np
import torch

from attnlib.exercises.core import Case, Checker, Exercise, Mistake
from attnlib.exercises.modules import on_tensors, tensor
from attnlib.torch import reading


def _float32(*numbers):
    return np.array(numbers, dtype=np.float32)


def _weights(rng, *shape):
    """Weights of one decimal whose rows sum to 1; some are 0."""
    return rng.multinomial(10, np.full(shape[-1], 1 / shape[-1]), size=shape[:-1]) / 10


# head_entropy ---------------------------------------------------------------------------------------------------------


def head_entropy(weights, lengths):
    """Entropy in nats of each head, weights [batch, n_heads, n, n], averaged over all real tokens: [n_heads]."""
    rows = -torch.special.xlogy(weights, weights).sum(dim=-1)  # [batch, n_heads, n]
    real = torch.arange(weights.shape[-1]) < lengths[:, None]  # [batch, n]
    return (rows * real[:, None]).sum(dim=(0, 2)) / lengths.sum()


def call_head_entropy(head_entropy, weights, lengths):
    return on_tensors(head_entropy, weights, lengths)


def _padded(rng, lengths, n_heads, n):
    """Weights [batch, n_heads, n, n] that give nothing to padding, though padding looks as well."""
    weights = np.zeros((len(lengths), n_heads, n, n))
    for text, length in enumerate(lengths):
        weights[text, :, :, :length] = _weights(rng, n_heads, n, length)
    return weights, np.array(lengths)


def head_entropy_cases(rng):
    log2 = float(np.log(2))
    both = np.array([[[[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [0.0, 1.0]]]])
    third = np.array([[[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]]])
    return [
        Case("one head, two tokens alike, by hand: log 2", (both[:, :1], np.array([2])), _float32(log2)),
        Case(
            "two heads, by hand: log 2, and 0 for one that looks at one token", (both, np.array([2])), _float32(log2, 0)
        ),
        Case("the third row is padding, by hand: half of log 2", (third, np.array([2])), _float32(log2 / 2)),
        Case("square: 1 text, 3 heads, 3 tokens", _padded(rng, [3], 3, 3)),
        Case("1 text, 2 heads, 4 tokens", _padded(rng, [4], 2, 4)),
        Case("2 texts of 3 tokens, 2 heads", _padded(rng, [3, 3], 2, 3)),
        Case("2 texts, of 4 and of 2 tokens, 3 heads", _padded(rng, [4, 2], 3, 4)),
        Case("3 texts, of 1, 5 and 2 tokens, 1 head", _padded(rng, [1, 5, 2], 1, 5)),
        Case("5 tokens alike: log 5", (np.full((1, 1, 5, 5), 0.2), np.array([5])), _float32(np.log(5))),
    ]


def _rows(weights):
    return -torch.special.xlogy(weights, weights).sum(dim=-1)


def _real(weights, lengths):
    return (torch.arange(weights.shape[-1]) < lengths[:, None])[:, None]


def _over_real(rows, weights, lengths):
    return (rows * _real(weights, lengths)).sum(dim=(0, 2)) / lengths.sum()


def _entropy(terms):
    """A way of making a mistake with these rows, [batch, n_heads, n], and one that counts padding as well."""
    right = lambda weights, lengths: _over_real(terms(weights), weights, lengths)
    return right, (lambda weights, lengths: terms(weights).mean(dim=(0, 2)),)


def _entropy_mistake(name, terms, hint, bank=()):
    wrong, also = _entropy(terms)
    return Mistake(name, wrong, hint, bank, also)


def _mean_map_first(weights, lengths):
    mean = weights.mean(dim=1, keepdim=True)
    return _over_real(_rows(mean), mean, lengths)


def _entropy_of_the_mean_row(weights, lengths):
    real = _real(weights, lengths)[..., None]
    mean = (weights * real).sum(dim=(0, 2)) / lengths.sum()  # [n_heads, n]
    return _rows(mean)


def _each_text_once(weights, lengths):
    return ((_rows(weights) * _real(weights, lengths)).sum(dim=-1) / lengths[:, None]).mean(dim=0)


head_entropy_mistakes = [
    _entropy_mistake(
        "the minus sign is missing",
        lambda w: -_rows(w),
        "The logarithm of a number below 1 is negative, and an entropy is not.",
    ),
    _entropy_mistake(
        "the logarithm to base 2: bits, not nats",
        lambda w: _rows(w) / np.log(2),
        "For two tokens alike you say 1. The natural logarithm, `torch.log`, says log 2 = 0.693.",
    ),
    Mistake(
        "0 log 0 is not a number",
        lambda w, lengths: _over_real(-(w * torch.log(w)).sum(dim=-1), w, lengths),
        "log 0 is −∞, and 0 times that is NaN. A weight of 0 should add 0: `torch.special.xlogy` knows that.",
    ),
    Mistake(
        "rows of padding are counted",
        lambda w, lengths: _rows(w).mean(dim=(0, 2)),
        "Nobody looks *at* padding, but its own rows are filled in all the same. Which rows does `lengths` allow?",
    ),
    Mistake(
        "padding is left out of the sum, and counted in the divisor",
        lambda w, lengths: (_rows(w) * _real(w, lengths)).mean(dim=(0, 2)),
        "`mean` divides by all rows, also by those that you have set to 0. How many tokens are real?",
    ),
    Mistake(
        "one real token too many, or one too few",
        lambda w, lengths: _over_real(_rows(w), w, lengths + 1),
        "The tokens of a text of length 2 are 0 and 1. Compare `torch.arange(n) < length` with yours.",
        also=(
            lambda w, lengths: _over_real(_rows(w), w, lengths - 1),
            lambda w, lengths: (_rows(w) * _real(w, lengths + 1)).sum(dim=(0, 2)) / lengths.sum(),
            lambda w, lengths: (_rows(w) * _real(w, lengths - 1)).sum(dim=(0, 2)) / lengths.sum(),
        ),
    ),
    Mistake(
        "each text counts once, not each token",
        _each_text_once,
        "You have averaged within each text, and then over texts. Add up over all of them first, then divide once.",
    ),
    Mistake(
        "not averaged over the texts",
        lambda w, lengths: (_rows(w) * _real(w, lengths)).sum(dim=-1) / lengths[:, None],
        "One number for each head is wanted, [n_heads], for all texts together.",
        also=(lambda w, lengths: _rows(w).mean(dim=-1),),
    ),
    Mistake(
        "one number for each token: not averaged over the tokens",
        lambda w, lengths: _rows(w),
        "Each row has its entropy now, [batch, n_heads, n]. What is left is the mean over real tokens.",
    ),
    Mistake(
        "the heads are averaged, not the tokens",
        lambda w, lengths: (_rows(w) * _real(w, lengths)).mean(dim=1),
        "Heads are what we want to tell apart. They stand on axis 1; the means go over axes 0 and 2.",
        also=(lambda w, lengths: _rows(w).mean(dim=1),),
    ),
    Mistake(
        "the maps are averaged over the heads before they are looked at",
        _mean_map_first,
        "Two sharp heads that look at different tokens have a mean that is not sharp. Take the entropy of each head.",
        ("vz01",),
        also=(lambda w, lengths: _mean_map_first(w, lengths)[0].expand(w.shape[1]),),
    ),
    Mistake(
        "one number for all heads",
        lambda w, lengths: _over_real(_rows(w), w, lengths).mean(),
        "Keep the heads apart: sum over axes 0 and 2 alone.",
        also=(lambda w, lengths: _rows(w).mean(),),
    ),
    Mistake(
        # Columns of padding are 0, so that both ways give the same numbers.
        "all cells are added up, also rows of padding: no row is left out, or columns (axis −2) are summed in place of rows",
        lambda w, lengths: _over_real(-torch.special.xlogy(w, w).sum(dim=-2), w, lengths),
        "Sum along the last axis, one number for each query. Then leave out the queries that are padding, and divide.",
    ),
    Mistake(
        "the rows are averaged first, then the entropy is taken",
        _entropy_of_the_mean_row,
        "Tokens that each look at another place have a mean row that looks everywhere. First the entropy of each row.",
        also=(lambda w, lengths: _rows(w.mean(dim=(0, 2))),),
    ),
    _entropy_mistake(
        "the mean over the keys, not their sum",
        lambda w: _rows(w) / w.shape[-1],
        "An entropy adds up −w log w over the keys. For two tokens alike: 0.347 + 0.347.",
    ),
    _entropy_mistake(
        "divided by log n",
        lambda w: _rows(w) / np.log(w.shape[-1]),
        "Now 1 is the most there can be. A fine number to show, but here nats are asked for: log n at most.",
    ),
    _entropy_mistake(
        "the weights are put through softmax again",
        lambda w: _rows(w.softmax(dim=-1)),
        "They are weights already, each row sums to 1. A second softmax makes them nearly equal.",
    ),
    Mistake(
        "the exponential of the entropy",
        lambda w, lengths: _over_real(_rows(w), w, lengths).exp(),
        "That is *how many tokens* a head looks at, so to speak. Leave exp out.",
        also=(lambda w, lengths: _over_real(_rows(w).exp(), w, lengths),),
    ),
    Mistake(
        "only the first text",
        lambda w, lengths: _rows(w[0])[:, : lengths[0]].mean(dim=-1),
        "`weights[0]` is one text of the batch. All of them count.",
        also=(lambda w, lengths: _rows(w[0]).mean(dim=-1),),
    ),
    Mistake(
        "only the first token of each text",
        lambda w, lengths: _rows(w)[..., 0].mean(dim=0),
        "That is how [CLS] looks. Average over all real tokens.",
    ),
]

# attention_rollout ----------------------------------------------------------------------------------------------------


def attention_rollout(weights):
    """Weights [n_layers, ..., n_heads, n, n], first layer first -> [..., n, n]: what came from where."""
    maps = weights.mean(dim=-3)  # [n_layers, ..., n, n]
    identity = torch.eye(maps.shape[-1])
    rollout = identity
    for layer in maps:
        rollout = (0.5 * layer + 0.5 * identity) @ rollout
    return rollout


def call_attention_rollout(attention_rollout, weights):
    return on_tensors(attention_rollout, weights)


def rollout_cases(rng):
    one = np.array([[[[0.0, 1.0], [1.0, 0.0]]]])
    two = np.array([[[[1.0, 0.0], [1.0, 0.0]]], [[[0.0, 1.0], [0.0, 1.0]]]])
    heads = np.array([[[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]])
    previous = np.array([[[np.eye(4)[[0, 0, 1, 2]]]]] * 3)[:, 0]
    return [
        Case(
            "one layer, one head, two tokens that look at each other, by hand", (one,), _float32([0.5, 0.5], [0.5, 0.5])
        ),
        Case(
            "two layers: in the first all look at token 0, in the second at token 1, by hand",
            (two,),
            _float32([0.75, 0.25], [0.5, 0.5]),
        ),
        Case("one layer, two heads, by hand", (heads,), _float32([0.75, 0.25], [0.25, 0.75])),
        Case("square: 3 layers, 3 heads, 3 tokens", (_weights(rng, 3, 3, 3, 3),)),
        Case("2 layers, 1 head, 5 tokens", (_weights(rng, 2, 1, 5, 5),)),
        Case("3 layers, 2 heads, 4 tokens", (_weights(rng, 3, 2, 4, 4),)),
        Case("3 layers, each looks at the previous token", (previous,)),
        Case("2 layers, a batch of 2, 3 heads, 3 tokens", (_weights(rng, 2, 2, 3, 3, 3),)),
    ]


def _mixed(weights, own=0.5, other=0.5):
    """Layers [n_layers, ..., n, n] with their residual connection."""
    maps = weights.mean(dim=-3)
    return other * maps + own * torch.eye(maps.shape[-1])


def _product(layers):
    """Layers multiplied, the last one in front."""
    return functools.reduce(lambda rollout, layer: layer @ rollout, layers)


def _renormalised(x, dim=-1):
    return x / x.sum(dim=dim, keepdim=True)


def _rollout_mistake(name, mix, hint, bank=()):
    """A wrong mixture [n_layers, ..., n, n], multiplied in the right order and in the wrong one."""
    wrong_order = lambda weights: functools.reduce(torch.matmul, mix(weights))
    return Mistake(name, lambda weights: _product(mix(weights)), hint, bank, (wrong_order,))


def _with_residual(maps):
    return 0.5 * maps + 0.5 * torch.eye(maps.shape[-1])


def _identity_behind(weights, multiply):
    """Half of the identity is added after each product."""
    maps = weights.mean(dim=-3)
    identity = torch.eye(maps.shape[-1])
    return functools.reduce(lambda rollout, layer: 0.5 * multiply(layer, rollout) + 0.5 * identity, maps, identity)


rollout_mistakes = [
    Mistake(
        "the layers are multiplied in the wrong order",
        lambda w: functools.reduce(torch.matmul, _mixed(w)),
        "The last layer looks at what the others made, so it stands in front: `layer @ rollout`, not `rollout @ layer`.",
    ),
    _rollout_mistake(
        "the residual connection is forgotten",
        lambda w: _mixed(w, own=0.0, other=1.0),
        "Each layer adds what it found to what was there. Half of a token is taken to be itself.",
    ),
    _rollout_mistake(
        "the identity is added, and the rows are not brought back to 1",
        lambda w: _mixed(w, own=1.0, other=1.0),
        "Add up a row: 2 for each layer. Halve the sum.",
    ),
    _rollout_mistake(
        "half of the map is added to a whole identity",
        lambda w: _mixed(w, own=1.0, other=0.5),
        "Add up a row: 1.5. Both parts are halved.",
    ),
    Mistake(
        "the residual connection is added once, at the end",
        lambda w: _with_residual(_product(_mixed(w, own=0.0, other=1.0))),
        "Every layer has a residual connection of its own. Mix the identity in before you multiply.",
        also=(lambda w: _with_residual(functools.reduce(torch.matmul, _mixed(w, own=0.0, other=1.0))),),
    ),
    Mistake(
        "the identity is added to the product, not to the map",
        lambda w: _identity_behind(w, lambda layer, rollout: layer @ rollout),
        "The half that stays is what the token was *before this layer*: half of `rollout`. Mix first, then multiply.",
        also=(lambda w: _identity_behind(w, lambda layer, rollout: rollout @ layer),),
    ),
    Mistake(
        "the first layer has no residual connection",
        lambda w: _product([w[0].mean(dim=-3), *_mixed(w)[1:]]),
        "You begin with the bare map of layer 0. Begin with the identity, and let the loop run over all layers.",
    ),
    Mistake(
        "the first layer is used twice",
        lambda w: _product([_mixed(w)[0], *_mixed(w)]),
        "You begin with layer 0, and the loop begins with it again. Begin with the identity.",
    ),
    _rollout_mistake(
        "1 is added to every cell, not to the diagonal",
        lambda w: 0.5 * w.mean(dim=-3) + 0.5,
        "A token keeps *itself*: ones on the diagonal, `torch.eye(n)`.",
    ),
    _rollout_mistake(
        "the heads are added up, not averaged",
        lambda w: _with_residual(w.sum(dim=-3)),
        "Two heads hand out 2 together. Rows should sum to 1: take the mean.",
    ),
    Mistake(
        "the largest weight of all heads",
        lambda w: _product(_with_residual(w.amax(dim=-3))),
        "Some programs do this, and then rows no longer sum to 1. In the paper it is the mean of the heads.",
        also=(
            lambda w: functools.reduce(torch.matmul, _with_residual(w.amax(dim=-3))),
            lambda w: _product(_renormalised(_with_residual(w.amax(dim=-3)))),
            lambda w: _product((m := _with_residual(w.amax(dim=-3))) / m.sum(dim=-1)),
        ),
    ),
    _rollout_mistake(
        "only one head",
        lambda w: _with_residual(w[..., 0, :, :]),
        "`weights[:, 0]` is one head of each layer. Average over all of them.",
    ),
    Mistake(
        "the heads are kept apart",
        lambda w: _product(_with_residual(w)),
        "The heads of one layer feed all heads of the next, so a head has no way of its own. Average over axis −3 first.",
    ),
    Mistake(
        "each head is followed through all layers, then the heads are averaged",
        lambda w: _product(_with_residual(w)).mean(dim=-3),
        "Head 1 of layer 1 reads what *all* heads of layer 0 wrote. Average within each layer, before you multiply.",
    ),
    Mistake(
        "averaged over axis 1, which is the batch when there is one",
        lambda w: _product(_with_residual(w.mean(dim=1))),
        "Right without a batch. Count from the other end: the heads are axis −3.",
    ),
    Mistake(
        "averaged over the layers, and multiplied over the heads",
        lambda w: _product(_with_residual(w.mean(dim=0)).movedim(-3, 0)),
        "Axis 0 are the layers, and those are multiplied. The heads are averaged: axis −3.",
    ),
    Mistake(
        "only the last layer",
        lambda w: _mixed(w)[-1],
        "The last layer mixes vectors that are mixtures already. Multiply by the layers below it.",
        also=(lambda w: w[-1].mean(dim=-3),),
    ),
    Mistake(
        "the mean over the layers",
        lambda w: _mixed(w).mean(dim=0),
        "Layers stand behind one another, so what they do is multiplied, not averaged.",
        also=(lambda w: w.mean(dim=-3).mean(dim=0),),
    ),
    Mistake(
        "cell by cell: `*` instead of `@`",
        lambda w: _mixed(w).prod(dim=0),
        "From i to j there are ways over every token in between. The matrix product adds them up: `@`.",
    ),
    Mistake(
        "transposed: row i is where token i went, not where it came from",
        lambda w: _product(_mixed(w)).mT,
        "Add up a row, then a column: which of them should be 1? Row i is the token that has looked.",
        ("vz03",),
    ),
    _rollout_mistake(
        "normalised down the columns",
        lambda w: _renormalised(_mixed(w), dim=-2),
        "Rows sum to 1, since each token hands out 1. `dim=-1`, or no division at all with 0.5 and 0.5.",
    ),
    Mistake(
        "the rollout after every layer",
        lambda w: torch.stack([_product(_mixed(w)[: k + 1]) for k in range(len(w))]),
        "One map is wanted, the one after the last layer.",
    ),
]

# ablate_head ----------------------------------------------------------------------------------------------------------


def ablate_head(weights, value, head):
    """Weights [..., n_heads, n_query, n_key], value [..., n_heads, n_key, d_head] -> merged [..., n_query, n_heads * d_head]."""
    found = weights @ value  # [..., n_heads, n_query, d_head]
    found[..., head, :, :] = 0
    return found.transpose(-2, -3).flatten(-2)


def call_ablate_head(ablate_head, weights, value, head):
    return on_tensors(ablate_head, weights, value, head)


def ablate_cases(rng):
    def arrays(n_heads, n_query, n_key, d_head, head, *batch):
        value = rng.normal(size=(*batch, n_heads, n_key, d_head)).round(1)
        return _weights(rng, *batch, n_heads, n_query, n_key), value, head

    looks = np.array([[[0.0, 1.0], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]])
    values = np.array([[[1.0], [2.0]], [[4.0], [6.0]]])
    return [
        Case("two heads of width 1, without head 0, by hand", (looks, values, 0), _float32([0, 5], [0, 6])),
        Case("the same without head 1, by hand", (looks, values, 1), _float32([2, 0], [1, 0])),
        Case("square: 3 heads, 3 tokens, width 3, without head 1", arrays(3, 3, 3, 3, 1)),
        Case("3 heads, 4 tokens, width 2, without head 2", arrays(3, 4, 4, 2, 2)),
        Case("2 heads, 3 tokens look at 5, width 4, without head 1", arrays(2, 3, 5, 4, 1)),
        Case("4 heads, 2 tokens, width 3, without head 0", arrays(4, 2, 2, 3, 0)),
        Case("a batch of 2, 2 heads, 3 tokens, width 2, without head 1", arrays(2, 3, 3, 2, 1, 2)),
        Case("batch 3, 4 heads, 2 tokens, width 2, without head 2", arrays(4, 2, 2, 2, 2, 3)),
    ]


def _merge(found):
    return found.transpose(-2, -3).flatten(-2)


def _kept(x, head, axis):
    """x with zeros at one place of an axis."""
    x = x.clone()
    x.select(axis, head).zero_()
    return x


def _slice_zeroed(weights, value, columns):
    merged = _merge(weights @ value).clone()
    merged[..., columns] = 0
    return merged


def _replaced(weights, value, head, change):
    found = (weights @ value).clone()
    found[..., head, :, :] = change(found[..., head, :, :], value[..., head, :, :])
    return _merge(found)


def _only(w, v, h):
    return _merge(w @ v) - ablate_head(w, v, h)


ablate_mistakes = [
    Mistake(
        "nothing is taken away",
        lambda w, v, h: _merge(w @ v),
        "That is what all heads found. Head `head` should find zeros.",
    ),
    Mistake(
        "all other heads are taken away",
        _only,
        "You kept the head that should go, and dropped those that should stay.",
    ),
    Mistake(
        "the head before: heads count from 0",
        lambda w, v, h: ablate_head(w, v, h - 1),
        "Head 0 is the first one. Take `head` as it is.",
        also=(lambda w, v, h: ablate_head(w, v, (h + 1) % w.shape[-3]),),
    ),
    Mistake(
        "a row of every map is set to zero: a token that looks, not a head",
        lambda w, v, h: _merge(_kept(w, min(h, w.shape[-2] - 1), -2) @ v),
        "`weights[..., head, :]` is query number `head` in *every* head. Heads are axis −3.",
    ),
    Mistake(
        "a column of every map is set to zero: a token that is looked at, not a head",
        lambda w, v, h: _merge(_kept(w, min(h, w.shape[-1] - 1), -1) @ v),
        "`weights[..., head]` is key number `head` in *every* head. Heads are axis −3.",
        also=(lambda w, v, h: _merge(_renormalised(_kept(w, min(h, w.shape[-1] - 1), -1)) @ v),),
    ),
    Mistake(
        "one feature of every head is set to zero",
        lambda w, v, h: _merge(_kept(w @ v, min(h, v.shape[-1] - 1), -1)),
        "`found[..., head]` is one number of each head. All d_head numbers of one head should go: axis −3.",
    ),
    Mistake(
        "every n_heads-th feature, as if heads alternated",
        lambda w, v, h: _slice_zeroed(w, v, slice(h, None, w.shape[-3])),
        "After merging, the features of one head stand together: `head * d_head` to `(head + 1) * d_head`.",
    ),
    Mistake(
        "the slice begins at `head`, not at `head * d_head`",
        lambda w, v, h: _slice_zeroed(w, v, slice(h, h + v.shape[-1])),
        "Head 1 begins behind the d_head features of head 0, at `1 * d_head`.",
        also=(
            lambda w, v, h: _slice_zeroed(w, v, h),
            lambda w, v, h: _slice_zeroed(w, v, slice(h * w.shape[-3], (h + 1) * w.shape[-3])),
        ),
    ),
    Mistake(
        "the head's features are cut out, so the output is narrower",
        lambda w, v, h: _merge(torch.cat([(w @ v)[..., :h, :, :], (w @ v)[..., h + 1 :, :, :]], dim=-3)),
        "The output projection expects all n_heads · d_head features. Leave zeros where the head was.",
    ),
    Mistake(
        "the other heads are made larger, as dropout would do",
        lambda w, v, h: ablate_head(w, v, h) * w.shape[-3] / (w.shape[-3] - 1),
        "We want to see what is missing, not to make up for it. Leave the others as they are.",
    ),
    Mistake(
        "the head looks everywhere alike, instead of finding nothing",
        lambda w, v, h: _replaced(w, v, h, lambda found, value: value.mean(dim=-2, keepdim=True)),
        "Scores of zero give uniform *weights*, and the head still reports the mean of its values. Set what it *found* to 0.",
    ),
    Mistake(
        "the head keeps its mean over the tokens",
        lambda w, v, h: _replaced(w, v, h, lambda found, value: found.mean(dim=-2, keepdim=True)),
        "That is done too, and is called mean ablation. Here the head finds nothing: zeros.",
    ),
    Mistake(
        "the sign of the head is turned",
        lambda w, v, h: _replaced(w, v, h, lambda found, value: -found),
        "Subtracting it twice takes more away than there was. Zeros in its place.",
    ),
    Mistake(
        "merged by `reshape` alone, which tears the tokens apart",
        lambda w, v, h: (f := _kept(w @ v, h, -3)).reshape(*f.shape[:-3], f.shape[-2], f.shape[-3] * f.shape[-1]),
        "Lesson 05: exchange the axes of heads and tokens before you join: `transpose(-2, -3)`.",
    ),
    Mistake(
        "merged with head and feature exchanged",
        lambda w, v, h: _kept(w @ v, h, -3).movedim(-3, -1).flatten(-2),
        "The features of one head stand together, behind those of the head before.",
    ),
    Mistake(
        "the heads are not merged",
        lambda w, v, h: _kept(w @ v, h, -3),
        "The right head finds nothing now. What is left is to put the heads side by side: [..., n_query, n_heads * d_head].",
        also=(lambda w, v, h: _kept(w @ v, h, -3).transpose(-2, -3),),
    ),
    Mistake(
        "axis 0 instead of axis −3, which is the batch when there is one",
        lambda w, v, h: _merge(_kept(w @ v, h, 0)),
        "Right without a batch. Count from the other end: `found[..., head, :, :]`.",
    ),
    Mistake(
        "axis 1 instead of axis −3, which are the queries when there is no batch",
        lambda w, v, h: _merge(_kept(w @ v, h, 1)),
        "Right with a batch in front, and only then. Count from the other end: `found[..., head, :, :]`.",
    ),
    Mistake(
        "the heads are added up",
        lambda w, v, h: _kept(w @ v, h, -3).sum(dim=-3),
        "Heads stand side by side. What mixes them is the output projection, which comes after.",
    ),
]

# deletion_curve -------------------------------------------------------------------------------------------------------


def deletion_curve(predict, importance, steps):
    """Answers [steps + 1] of predict(masks [steps + 1, n], True = stays) while the most important words go, one by one."""
    rank = importance.argsort(descending=True).argsort()  # [n], 0 for the most important
    masks = rank >= torch.arange(steps + 1)[:, None]  # [steps + 1, n]
    return predict(masks)


def predictor(effect):
    """An answer that hangs on the words which stay."""
    weights = torch.from_numpy(effect.astype(np.float32))

    def predict(masks):
        """Square of the sum of the effects of the words that stay."""
        if not isinstance(masks, torch.Tensor) or masks.dtype != torch.bool:
            raise TypeError("predict wants a boolean tensor, True = the word stays")
        return (masks.float() @ weights).square()

    return predict


def call_deletion_curve(deletion_curve, effect, importance, steps):
    return on_tensors(functools.partial(deletion_curve, predictor(effect)), importance, steps)


def deletion_cases(rng):
    def words(n, steps, negative=False):
        importance = rng.permutation(n) / 10 - (n // 2 / 10 if negative else 0)
        return rng.permutation(np.arange(1, n + 1)) ** 2 / 10, importance.round(1), steps

    effect = np.array([1.0, 2.0, 4.0])
    return [
        Case(
            "three words, the last is the most important, by hand",
            (effect, np.array([0.1, 0.2, 0.7]), 1),
            _float32(49, 9),
        ),
        Case("all of them go, by hand", (effect, np.array([0.3, 0.1, 0.6]), 3), _float32(49, 9, 4, 0)),
        Case("no step: the answer to the whole text", (effect, np.array([0.2, 0.5, 0.3]), 0), _float32(49)),
        Case("square: 4 words, 3 steps", words(4, 3)),
        Case("6 words, 2 steps", words(6, 2)),
        Case("5 words, 5 steps", words(5, 5)),
        Case("6 words, some of which speak against it", words(6, 4, negative=True)),
        Case("9 words, 3 steps", words(9, 3)),
    ]


def _rank(importance):
    return importance.argsort(descending=True).argsort()


def _steps(steps, first=0):
    return torch.arange(first, steps + 1)[:, None]


def _by(rank):
    """The right curve for a wrong order."""
    return lambda predict, importance, steps: predict(rank(importance) >= _steps(steps))


def _masks(make):
    """The right order, and wrong masks of rank [n] and step [steps + 1, 1]."""
    return lambda predict, importance, steps: predict(make(_rank(importance), _steps(steps)))


deletion_mistakes = [
    Mistake(
        "the least important words go first",
        _by(lambda i: i.argsort().argsort()),
        "`argsort` begins with the smallest. The largest importance should go first: `descending=True`.",
    ),
    Mistake(
        "the words that stay and those that go are exchanged",
        _masks(lambda rank, k: rank < k),
        "True means: the word stays. At step 0 all of them stay.",
    ),
    Mistake(
        "places in the order are taken for ranks",
        _by(lambda i: i.argsort(descending=True)),
        "`argsort` says which word comes first, not at which place a word comes. A second `argsort` turns one into the other.",
    ),
    Mistake(
        "the second sorting is descending, too",
        _by(lambda i: i.argsort(descending=True).argsort(descending=True)),
        "Only the first `argsort` is descending. The most important word should have rank 0.",
    ),
    Mistake(
        "the answer to the whole text is missing",
        lambda predict, i, steps: predict(_rank(i) >= _steps(steps, 1)),
        "The curve begins with step 0, where nothing is gone: steps + 1 answers.",
        also=(lambda predict, i, steps: predict(_rank(i) >= torch.arange(steps)[:, None]),),
    ),
    Mistake(
        "one word too many is gone at every step",
        _masks(lambda rank, k: rank > k),
        "At step 0 nothing is gone. Look at the word of rank 0: is `0 > 0` true?",
    ),
    Mistake(
        "each step takes one word away and brings the last one back",
        _masks(lambda rank, k: rank != k - 1),
        "At step 2 two words are gone. Yours lacks one at each step.",
        also=(
            _masks(lambda rank, k: rank != k),
            _masks(lambda rank, k: rank != (k - 1) % rank.shape[-1]),  # order[k - 1] of step 0 is the last word
        ),
    ),
    Mistake(
        "the sign of the importance is dropped",
        _by(lambda i: i.abs().argsort(descending=True).argsort()),
        "A word that speaks strongly *against* the answer goes last, not first. No `abs`.",
    ),
    Mistake(
        "from the beginning of the text, whatever the importance",
        _by(lambda i: torch.arange(len(i))),
        "The importance is not used. Which word has the largest one?",
        also=(_by(lambda i: torch.arange(len(i)).flip(0)),),
    ),
    Mistake(
        "how much the answer has fallen, not the answer",
        lambda predict, i, steps: (c := predict(_rank(i) >= _steps(steps)))[0] - c,
        "Return what `predict` says at each step, as it is.",
        also=(
            lambda predict, i, steps: (c := predict(_rank(i) >= _steps(steps))) - c[0],
            lambda predict, i, steps: (c := predict(_rank(i) >= _steps(steps))) / c[0],
        ),
    ),
    Mistake(
        "only the last step",
        lambda predict, i, steps: predict((_rank(i) >= steps)[None]),
        "One answer for each step from 0 to `steps` is wanted.",
        also=(lambda predict, i, steps: predict(_rank(i) >= steps),),
    ),
    Mistake(
        "one number: the mean of the curve",
        lambda predict, i, steps: predict(_rank(i) >= _steps(steps)).mean(),
        "The mean is a fine summary. Here the whole curve is asked for.",
        also=(lambda predict, i, steps: predict(_rank(i) >= _steps(steps)).sum(),),
    ),
    Mistake(
        "`steps` is not used: all words go",
        lambda predict, i, steps: predict(_rank(i) >= _steps(len(i))),
        "The curve ends after `steps` words: steps + 1 answers.",
    ),
    Mistake(
        "one step too many",
        lambda predict, i, steps: predict(_rank(i) >= _steps(steps + 1)),
        "Steps 0 to `steps` are steps + 1 answers.",
    ),
    Mistake(
        "the words that go are chosen by their importance as it is: masks of numbers",
        lambda predict, i, steps: predict((_rank(i) >= _steps(steps)).float()),
        "`predict` wants a mask of booleans: leave the comparison as it is, without `.float()`.",
    ),
]

check = Checker(
    "12",
    [
        Exercise(
            "head_entropy",
            reading.head_entropy,
            head_entropy,
            head_entropy_cases,
            head_entropy_mistakes,
            [
                lambda w, lengths: _over_real(-(w * torch.log(w + 1e-9)).sum(dim=-1), w, lengths),
                lambda w, lengths: torch.cat(
                    [_rows(text)[:, :length] for text, length in zip(w, lengths.tolist())], dim=1
                ).mean(dim=1),
                lambda w, lengths: torch.stack([_rows(h)[_real(w, lengths)[:, 0]].mean() for h in w.unbind(1)]),
            ],
            call=call_head_entropy,
        ),
        Exercise(
            "attention_rollout",
            reading.attention_rollout,
            attention_rollout,
            rollout_cases,
            rollout_mistakes,
            [
                lambda w: _product(_mixed(w)),
                lambda w: _product(_renormalised(w.mean(dim=-3) + torch.eye(w.shape[-1]))),
                lambda w: functools.reduce(torch.matmul, _mixed(w).flip(0)),
            ],
            call=call_attention_rollout,
        ),
        Exercise(
            "ablate_head",
            reading.ablate_head,
            ablate_head,
            ablate_cases,
            ablate_mistakes,
            [
                lambda w, v, h: _merge(_kept(w, h, -3) @ v),
                lambda w, v, h: _merge(w @ _kept(v, h, -3)),
                lambda w, v, h: _slice_zeroed(w, v, slice(h * v.shape[-1], (h + 1) * v.shape[-1])),
            ],
            call=call_ablate_head,
        ),
        Exercise(
            "deletion_curve",
            reading.deletion_curve,
            deletion_curve,
            deletion_cases,
            deletion_mistakes,
            [
                lambda predict, i, steps: torch.stack([predict(_rank(i) >= k) for k in range(steps + 1)]),
                lambda predict, i, steps: torch.cat(
                    [predict(~torch.isin(torch.arange(len(i)), i.topk(k).indices)[None]) for k in range(steps + 1)]
                ),
            ],
            call=call_deletion_curve,
            given=lambda effect, importance, steps: (predictor(effect), tensor(importance), steps),
        ),
    ],
)
