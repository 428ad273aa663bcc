"""Exercises of lesson 08: a mask translated, two layers as classes of PyTorch, and weights copied from PyTorch's own layer."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from attnlib import torch as ours
from attnlib.exercises.compare import Unfit
from attnlib.exercises.core import Case, Checker, Exercise, Mistake
from attnlib.exercises.modules import array, build, is_stub, on_tensors, tensor

# from_key_padding_mask ------------------------------------------------------------------------------------------------


def from_key_padding_mask(key_padding_mask):
    """Translate a mask [batch, n_key], True = ignore, into one of this course, [batch, 1, n_key], True = may attend."""
    return ~key_padding_mask[:, None, :]


def call_from_key_padding_mask(function, key_padding_mask):
    return on_tensors(function, key_padding_mask)


def key_padding_cases(rng):
    by_hand = np.array([[False, False, True]])
    square = np.array([[False, False, False], [False, False, True], [False, True, True]])
    return [
        Case("one sentence, its third token is padding, by hand", (by_hand,), np.array([[[True, True, False]]])),
        Case("square: 3 sentences of 3 tokens", (square,)),
        Case("2 sentences of 4 tokens", (np.arange(4) >= np.array([[4], [2]]),)),
        Case("padding on the left", (np.arange(4) < np.array([[0], [1], [3]]),)),
        Case("one sentence that is all padding, one that has none", (np.array([[True] * 3, [False] * 3]),)),
        Case("random, 5 sentences of 2 tokens", (rng.random((5, 2)) < 0.5,)),
    ]


key_padding_mistakes = [
    Mistake(
        "True and False are not exchanged: the mask is handed on as it is",
        lambda m: m[:, None, :],
        "There True means *ignore*, here True means *may attend*. Which of the two does your result say of the padding?",
        ("mk02",),
    ),
    Mistake(
        "the new axis is missing",
        lambda m: ~m,
        "[batch, n_key] lines up with [n_query, n_key] from the right, and the batch would be taken for queries. Give the "
        "queries an axis of length 1.",
    ),
    Mistake(
        "the new axis is the first",
        lambda m: ~m[None],
        "You have [1, batch, n_key]. The axis of length 1 stands for the queries: between batch and keys.",
    ),
    Mistake(
        "the new axis is the last",
        lambda m: ~m[:, :, None],
        "You have [batch, n_key, 1], which would forbid *queries*. It is keys that are padding: they stay on the last axis.",
    ),
    Mistake(
        "two new axes",
        lambda m: ~m[:, None, None, :],
        "Heads get an axis later, by the layer. One axis, for the queries, is asked for here.",
    ),
    Mistake(
        "the new axis is missing, and nothing is exchanged",
        lambda m: m.clone(),
        "Two things are to be done: exchange True and False, and give the queries an axis.",
    ),
    Mistake(
        "`1 - mask` of a boolean tensor",
        lambda m: 1 - m[:, None, :],
        "PyTorch says in its error what to use in place of a subtraction.",
    ),
    Mistake(
        "`-mask` of a boolean tensor",
        lambda m: -m[:, None, :],
        "A minus is for numbers. Booleans are turned around by another sign, which the error names.",
    ),
    Mistake(
        "`~` of whole numbers",
        lambda m: ~m.int()[:, None, :],
        "`~` of 0 is −1 and of 1 is −2: it turns bits around, and both are True. Leave the mask boolean.",
        also=(lambda m: (~m.int()[:, None, :]).bool(),),
    ),
    Mistake(
        "`~` of floating numbers",
        lambda m: ~m.float()[:, None, :],
        "Bits of a floating number cannot be turned around. Leave the mask boolean.",
    ),
    Mistake(
        "numbers in place of booleans",
        lambda m: (~m[:, None, :]).float(),
        "Floating numbers are *added* to the scores, and 1 or 0 would hardly matter; 1 and 0 as whole numbers are another "
        "convention (Hugging Face's). Return booleans.",
    ),
    Mistake(
        "an additive mask in place of booleans",
        lambda m: torch.zeros(m.shape).masked_fill(m, -torch.inf)[:, None, :],
        "That would do, added to the scores. Here booleans are asked for.",
    ),
    Mistake(
        "a row for each key as well: padding may not ask either",
        lambda m: ~m[:, None, :] & ~m[:, :, None],
        "You have [batch, n_key, n_key]. The mask does not know how many queries there are: an axis of length 1 is enough.",
        also=(lambda m: (~m[:, None, :]).expand(-1, m.shape[1], -1),),
    ),
    Mistake(
        "the first tokens are allowed, as many as are not padding",
        lambda m: torch.arange(m.shape[1]) < (~m).sum(dim=-1)[:, None, None],
        "Right for padding behind the tokens. Some pad in front: translate the mask as it is, without counting.",
    ),
]

# SelfAttention --------------------------------------------------------------------------------------------------------


class SelfAttention(nn.Module):
    """x [..., n, d_model] -> x + output(attend(norm(x))), with one head. Made of norm, query, key, value, output."""

    def __init__(self, d_model, d_k, d_v, *, dropout=0.0):
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.query = nn.Linear(d_model, d_k)
        self.key = nn.Linear(d_model, d_k)
        self.value = nn.Linear(d_model, d_v)
        self.output = nn.Linear(d_v, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None, *, return_weights=False):
        tokens = self.norm(x)
        query, key, value = self.query(tokens), self.key(tokens), self.value(tokens)
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=-1)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)  # a row with nothing to attend to: zeros
        output = x + self.output(self.dropout(weights) @ value)
        return (output, weights) if return_weights else output


COPIES = 100  # with a rate of 0.2, all of these keep less often than once in 10 ** 9


def call_self_attention(layer_class, x, mask, d_k, d_v, dropout, weights, look_at):
    if is_stub(layer_class):
        return ...
    layer = build(layer_class, x.shape[-1], d_k, d_v, dropout=dropout, weights=weights)
    return look(layer, (tensor(x),), tensor(mask), look_at)


def look(layer, inputs, mask, look_at):
    """What a case compares: the output, the weights, their range over many copies of the input, a gradient, a count."""
    if look_at == "number of parameters":
        return np.array(sum(parameter.numel() for parameter in layer.parameters()))
    if look_at == "gradient of query.weight":
        return gradient_of_query(layer, inputs, mask)
    if "training" in look_at:
        layer.train()
    if "copies" in look_at:
        inputs = tuple(x.expand(COPIES, *x.shape) for x in inputs)
    if "half precision" in look_at:
        layer, inputs = layer.half(), tuple(x.half() for x in inputs)
    asked = {"return_weights": True} if "weights" in look_at else {}
    torch.default_generator.manual_seed(0)  # torch.manual_seed takes a millisecond
    result = layer(*inputs, mask=mask, **asked)
    if result is ... or result is None:
        return result
    if asked and (type(result) is not tuple or len(result) != 2):
        raise Unfit("With `return_weights=True` it returns no pair; expected `output, weights`.")
    if not asked and isinstance(result, (tuple, list)):
        raise Unfit(f"It returns a {type(result).__name__}; expected one tensor, unless weights are asked for.")
    result = array(result[1] if asked else result)
    return np.stack([result.min(axis=0), result.max(axis=0)]) if "copies" in look_at else result


def gradient_of_query(layer, inputs, mask):
    output = layer(*inputs, mask=mask)
    if not (isinstance(output, torch.Tensor) and output.requires_grad):
        raise Unfit("The output has no way back to the parameters. What cut it off: `no_grad`, `detach`, `.data`?")
    loss = (output * torch.arange(1.0, 1 + output.shape[-1])).sum()
    (gradient,) = torch.autograd.grad(loss, layer.query.weight, allow_unused=True)
    if gradient is None:
        raise Unfit("`query.weight` gets no gradient. What cut it off: `no_grad`, `detach`, `.data`?")
    return array(gradient)


def _array(rng, *shape):
    return rng.normal(size=shape).round(1)


def _linear(rng, **widths):
    """Weights and biases by name: ``query=(4, 2)`` leads from 4 to 2."""
    weights = {f"{name}.weight": _array(rng, *shape[::-1]) for name, shape in widths.items()}
    return weights | {f"{name}.bias": _array(rng, shape[1]) for name, shape in widths.items()}


def _one_head(rng, d_model, d_k, d_v):
    return _linear(rng, query=(d_model, d_k), key=(d_model, d_k), value=(d_model, d_v), output=(d_v, d_model))


def _identities(bias=(0.0, 0.0), output=((1.0, 0.0), (0.0, 1.0))):
    """Weights that change nothing, with a bias of the output."""
    weights = {f"{name}.weight": np.eye(2) for name in ("query", "key", "value")}
    weights |= {f"{name}.bias": np.zeros(2) for name in ("query", "key", "value")}
    return weights | {"output.weight": np.array(output), "output.bias": np.array(bias)}


RANGE = f"least and greatest output of {COPIES} copies, {{}}".format


def self_attention_cases(rng):
    x, one_token = _array(rng, 3, 4), np.array([[1.0, 3.0]])
    mixing = _identities((10.0, 20.0), ((1.0, 1.0), (0.0, 1.0)))  # the found [−1, 1] becomes [0, 1]
    causal, lengths = np.tri(4, dtype=bool), np.array([[[True, True, True]], [[True, False, False]]])
    empty = np.array([[True, False, True], [False, False, False], [True, True, True]])
    dropped, kept = [11.0, 23.0], [11.0, 24.25]
    own = _one_head(rng, 4, 3, 3)
    return [
        Case(
            "how many numbers are trained, d_model = 4, d_k = 3, d_v = 5: 8 + 15 + 15 + 25 + 24",
            (x, None, 3, 5, 0.0, {}, "number of parameters"),
            np.array(87),
        ),
        Case(
            "one token, by hand: norm makes [−1, 1] of it, and all weights but the bias of the output are identities",
            (one_token, None, 2, 2, 0.0, _identities((10.0, 20.0)), "output"),
            np.array([[10.0, 24.0]]),
        ),
        Case("square: 4 tokens, all widths 4", (_array(rng, 4, 4), None, 4, 4, 0.0, _one_head(rng, 4, 4, 4), "output")),
        Case("3 tokens, d_model = 4, d_k = 2, d_v = 5", (x, None, 2, 5, 0.0, _one_head(rng, 4, 2, 5), "output")),
        Case("the weights, asked for", (x, None, 2, 5, 0.0, _one_head(rng, 4, 2, 5), "weights")),
        Case("a batch of 2", (_array(rng, 2, 3, 4), None, 2, 3, 0.0, _one_head(rng, 4, 2, 3), "output")),
        Case("a mask: nobody looks ahead", (_array(rng, 4, 4), causal, 2, 3, 0.0, _one_head(rng, 4, 2, 3), "output")),
        Case("a batch with padding", (_array(rng, 2, 3, 4), lengths, 2, 3, 0.0, _one_head(rng, 4, 2, 3), "output")),
        Case(
            "one token, by hand, evaluating: nothing is dropped",
            (one_token, None, 2, 2, 0.2, mixing, RANGE("evaluating")),
            np.array([[[11.0, 24.0]], [[11.0, 24.0]]]),
        ),
        Case(
            "one token, by hand, training at dropout 0.2: its only weight is 0 or 1.25",
            (one_token, None, 2, 2, 0.2, mixing, RANGE("training")),
            np.array([[dropped], [kept]]),
        ),
        Case(
            "the weights, asked for in training at dropout 0.2: as they are before dropout",
            (x, None, 3, 3, 0.2, own, "weights, training"),
        ),
        Case("a token with nothing to attend to", (x, empty, 3, 3, 0.0, own, "output")),
        Case(
            "a gradient, beside a token with nothing to attend to",
            (x, empty, 3, 3, 0.0, own, "gradient of query.weight"),
        ),
        Case("float16, with a mask", (x, empty, 3, 3, 0.0, own, "output in half precision")),
    ]


class _Undrawn(nn.Linear):
    """A linear map whose weights the check sets anyway, so that no time is spent on drawing them."""

    def reset_parameters(self):
        pass


class _Self(nn.Module):
    """The layer in steps, so that a mistake can change one of them."""

    def __init__(self, d_model, d_k, d_v, *, dropout=0.0):
        super().__init__()
        self.rate = dropout
        self.make(d_model, d_k, d_v)

    def make(self, d_model, d_k, d_v):
        self.norm = nn.LayerNorm(d_model)
        self.query, self.key = _Undrawn(d_model, d_k), _Undrawn(d_model, d_k)
        self.value, self.output = _Undrawn(d_model, d_v), _Undrawn(d_v, d_model)

    def normed(self, x):
        return self.norm(x)

    def project(self, tokens, x):
        return self.query(tokens), self.key(tokens), self.value(tokens)

    def score(self, query, key, value):
        return query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])

    def weigh(self, scores, mask):
        return ours.masked_softmax(scores, mask)

    def drop(self, weights):
        return F.dropout(weights, self.rate, self.training)

    def collect(self, weights, value):
        return self.drop(weights) @ value

    def finish(self, found, tokens, x):
        return x + self.output(found)

    def back(self, output, weights, return_weights):
        return (output, weights) if return_weights else output

    def forward(self, x, mask=None, *, return_weights=False):
        tokens = self.normed(x)
        query, key, value = self.project(tokens, x)
        weights = self.weigh(self.score(query, key, value), mask)
        return self.back(self.finish(self.collect(weights, value), tokens, x), weights, return_weights)


def _self(**steps):
    """A layer with some steps done in another way."""
    return type("SelfAttention", (_Self,), steps)


def _plain_softmax(scores, allowed, fill=-torch.inf):
    """Softmax as public code has it: a row that is masked wholly becomes NaN, or uniform."""
    return torch.softmax(scores if allowed is None else scores.masked_fill(~allowed, fill), dim=-1)


def _biased(scores, mask):
    """A mask that is added: −inf meets whatever was there."""
    return (
        scores if mask is None else scores + torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask, -torch.inf)
    )


def _repaired(self, scores, mask):
    """NaN is overwritten after softmax, and stays in the gradient."""
    weights = torch.softmax(_biased(scores, mask), dim=-1)
    return torch.where(torch.isnan(weights), torch.zeros_like(weights), weights)


def _fixed_fill(self, scores, mask):
    """A number for −∞ that float16 cannot hold; what it leaves is zeroed."""
    weights = _plain_softmax(scores, mask, -1e9)
    return weights if mask is None else weights.masked_fill(~mask, 0.0)


class _Unmade(nn.Module):
    """super().__init__() is forgotten."""

    def __init__(self, d_model, d_k, d_v, *, dropout=0.0):
        self.norm = nn.LayerNorm(d_model)
        self.query = nn.Linear(d_model, d_k)

    def forward(self, x, mask=None, *, return_weights=False):
        return self.query(self.norm(x))


def _make_list(self, d_model, d_k, d_v):
    self.norm, self.layers = nn.LayerNorm(d_model), [nn.Linear(d_model, width) for width in (d_k, d_k, d_v)]


def _make_tensors(self, d_model, d_k, d_v):
    self.norm, self.output = nn.LayerNorm(d_model), nn.Linear(d_v, d_model)
    self.query, self.key = torch.randn(d_model, d_k), torch.randn(d_model, d_k)
    self.value = torch.randn(d_model, d_v)


def _make_shared(self, d_model, d_k, d_v):
    self.norm, self.output = nn.LayerNorm(d_model), nn.Linear(d_v, d_model)
    self.query = self.key = nn.Linear(d_model, d_k)
    self.value = nn.Linear(d_model, d_v)


def _make_all_shared(self, d_model, d_k, d_v):
    self.norm = nn.LayerNorm(d_model)
    self.query, self.key, self.value = [nn.Linear(d_model, d_k)] * 3
    self.output = nn.Linear(d_k, d_model)


def _make_late(self, d_model, d_k, d_v):
    self.d_model, self.d_k, self.d_v = d_model, d_k, d_v


def _make_unbiased(self, d_model, d_k, d_v):
    self.norm = nn.LayerNorm(d_model)
    self.query, self.key = nn.Linear(d_model, d_k, bias=False), nn.Linear(d_model, d_k, bias=False)
    self.value, self.output = nn.Linear(d_model, d_v, bias=False), nn.Linear(d_v, d_model, bias=False)


def _make_narrow(self, d_model, d_k, d_v):
    _Self.make(self, d_model, d_k, d_k)


def _make_wide(self, d_model, d_k, d_v):
    _Self.make(self, d_model, d_model, d_model)


def _make_exchanged(self, d_model, d_k, d_v):
    self.norm = nn.LayerNorm(d_model)
    self.query, self.key = nn.Linear(d_k, d_model), nn.Linear(d_k, d_model)
    self.value, self.output = nn.Linear(d_v, d_model), nn.Linear(d_model, d_v)


def _make_without_output(self, d_model, d_k, d_v):
    self.norm, self.value = nn.LayerNorm(d_model), nn.Linear(d_model, d_v)
    self.query, self.key = nn.Linear(d_model, d_k), nn.Linear(d_model, d_k)


def _make_without_norm(self, d_model, d_k, d_v):
    _Self.make(self, d_model, d_k, d_v)
    del self.norm


self_attention_mistakes = [
    Mistake(
        "`super().__init__()` is missing",
        _Unmade,
        "nn.Module keeps lists of its layers and parameters, and `super().__init__()` makes them. It stands before any layer.",
    ),
    Mistake(
        "the layers stand in a plain Python list",
        _self(make=_make_list, forward=lambda self, x, mask=None, return_weights=False: self.layers[0](self.norm(x))),
        "A module finds layers among its attributes and does not look into lists: these would never be trained. Give each a "
        "name of its own, or use nn.ModuleList.",
    ),
    Mistake(
        "weights are plain tensors, not parameters",
        _self(make=_make_tensors, forward=lambda self, x, mask=None, return_weights=False: x @ self.query),
        "A plain tensor is not trained, saved or moved. `nn.Linear` holds its weight and bias as parameters.",
    ),
    Mistake(
        "query and key are one and the same layer",
        _self(make=_make_shared),
        "Two names for one layer: setting one sets the other, so nobody can look for anything but what is like itself. "
        "Make two.",
    ),
    Mistake(
        "one layer is repeated: `[nn.Linear(...)] * 3`",
        _self(make=_make_all_shared),
        "These are three names for one layer. Call nn.Linear once for each.",
    ),
    Mistake(
        "layers are made in `forward`",
        _self(make=_make_late, forward=lambda self, x, mask=None, return_weights=False: nn.Linear(x.shape[-1], 1)(x)),
        "Each call would begin with new random weights, and none would be trained. Make them once, in `__init__`.",
    ),
    Mistake(
        "the projections have no bias",
        _self(make=_make_unbiased),
        "nn.Linear has one unless told otherwise; the check sets it.",
    ),
    Mistake(
        "d_v is not used: values are d_k wide",
        _self(make=_make_narrow),
        "Queries and keys are compared, so both are d_k wide. Values are not compared with anything: d_v.",
    ),
    Mistake(
        "d_k and d_v are not used: everything is d_model wide",
        _self(make=_make_wide),
        "Queries and keys are d_k wide, values d_v. `output` leads from d_v back to d_model.",
    ),
    Mistake(
        "in and out are exchanged in nn.Linear",
        _self(make=_make_exchanged),
        "nn.Linear(what comes in, what goes out). Its *weight* is stored the other way round, [out, in].",
    ),
    Mistake(
        "`output` is missing",
        _self(make=_make_without_output, finish=lambda self, found, tokens, x: x + found),
        "What was found is d_v wide and x is d_model wide: it takes one more layer to add them.",
    ),
    Mistake(
        "there is no norm",
        _self(make=_make_without_norm, normed=lambda self, x: x),
        "x is normalised before it is projected: `self.norm = nn.LayerNorm(d_model)`.",
    ),
    Mistake(
        "the norm is made and never called",
        _self(normed=lambda self, x: x),
        "The projections should get `self.norm(x)`.",
    ),
    Mistake(
        "the residual is missing",
        _self(finish=lambda self, found, tokens, x: self.output(found)),
        "What was found is *added* to x; it does not replace it.",
    ),
    Mistake(
        "the norm comes after the sum, not before the attention",
        _self(normed=lambda self, x: x, finish=lambda self, found, tokens, x: self.norm(x + self.output(found))),
        "That is the older order (post-norm), which lesson 09 compares. Here: x + output(attend(norm(x))).",
    ),
    Mistake(
        "the norm is applied to what was found",
        _self(normed=lambda self, x: x, finish=lambda self, found, tokens, x: x + self.norm(self.output(found))),
        "The norm stands before the projections, not behind the attention.",
    ),
    Mistake(
        "the residual adds the normalised tokens, not x",
        _self(finish=lambda self, found, tokens, x: tokens + self.output(found)),
        "The path beside the attention stays as it is. Did you write `x = self.norm(x)`? Give the result another name.",
    ),
    Mistake(
        "only the query is normalised",
        _self(project=lambda self, tokens, x: (self.query(tokens), self.key(x), self.value(x))),
        "All three projections read the same tokens: norm(x).",
    ),
    Mistake(
        "values are not normalised",
        _self(project=lambda self, tokens, x: (self.query(tokens), self.key(tokens), self.value(x))),
        "All three projections read the same tokens: norm(x).",
    ),
    Mistake(
        "the scores are not divided by √d_k",
        _self(score=lambda self, q, k, v: q @ k.transpose(-1, -2)),
        "Lesson 03: products of d_k numbers grow with √d_k. Divide the scores by it.",
    ),
    Mistake(
        "divided by √d_model",
        _self(score=lambda self, q, k, v: q @ k.transpose(-1, -2) / math.sqrt(self.norm.normalized_shape[0])),
        "The products have as many terms as a query has numbers: `query.shape[-1]`.",
    ),
    Mistake(
        "divided by √d_v",
        _self(score=lambda self, q, k, v: q @ k.transpose(-1, -2) / math.sqrt(v.shape[-1])),
        "Values take no part in the scores. How many terms has a product of a query and a key?",
    ),
    Mistake(
        "divided by d_k, without the root",
        _self(score=lambda self, q, k, v: q @ k.transpose(-1, -2) / q.shape[-1]),
        "The *square root* of d_k.",
    ),
    Mistake(
        "softmax over the queries",
        _self(
            weigh=lambda self, s, mask: torch.softmax(s if mask is None else s.masked_fill(~mask, -torch.inf), dim=-2)
        ),
        "The keys compete for a query: the last axis, `dim=-1`.",
    ),
    Mistake(
        "softmax over axis 1, counted from the front",
        _self(
            weigh=lambda self, s, mask: torch.softmax(s if mask is None else s.masked_fill(~mask, -torch.inf), dim=1)
        ),
        "Right without a batch. With one, axis 1 holds the queries: count from the end.",
    ),
    Mistake(
        "keys and queries are exchanged in the scores",
        _self(score=lambda self, q, k, v: k @ q.transpose(-1, -2) / math.sqrt(q.shape[-1])),
        "Row i of the scores belongs to *query* i: query @ keyᵀ.",
    ),
    Mistake(
        "`.T` of a batch",
        _self(score=lambda self, q, k, v: q @ k.T / math.sqrt(q.shape[-1])),
        "Right for one sequence. `.T` reverses *all* axes: exchange the last two, counted from the end.",
    ),
    Mistake(
        "axes are counted from the front, as if there were always a batch",
        _self(score=lambda self, q, k, v: q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])),
        "A single sequence has no axis 2. Count from the end: `transpose(-1, -2)`.",
    ),
    Mistake(
        "the mask is turned around: what may be attended is forbidden",
        _self(weigh=lambda self, s, mask: ours.masked_softmax(s, None if mask is None else ~mask)),
        "True means *may*. `masked_fill` fills where it reads True, so it must read True where one may *not*.",
    ),
    Mistake(
        "the mask is not used",
        _self(weigh=lambda self, s, mask: torch.softmax(s, dim=-1)),
        "Did you call `scores.masked_fill(...)` without keeping what it returns? It changes nothing in place.",
    ),
    Mistake(
        "the mask is applied after softmax, and nothing is divided anew",
        _self(weigh=lambda self, s, mask: torch.softmax(s, dim=-1) * (1 if mask is None else mask)),
        "What was forbidden took part in the sum, so the rows no longer sum to 1. Forbid in the scores.",
    ),
    Mistake(
        "scores are multiplied by the mask",
        _self(weigh=lambda self, s, mask: torch.softmax(s if mask is None else s * mask, dim=-1)),
        "A score of 0 is not a small one: exp(0) = 1. What must be added so that nothing is left?",
    ),
    Mistake(
        "the booleans are added to the scores",
        _self(weigh=lambda self, s, mask: torch.softmax(s if mask is None else s + mask, dim=-1)),
        "True adds 1 and False 0: it hardly matters. Fill with −∞ where one may not.",
    ),
    Mistake(
        "a row with nothing to attend to becomes NaN",
        _self(weigh=lambda self, s, mask: _plain_softmax(s, mask)),
        "Softmax of −∞ alone is 0 / 0. As in lesson 04, such a row should be zeros: fill with a finite number and zero what is "
        "forbidden after softmax.",
    ),
    Mistake(
        "a row with nothing to attend to attends to all alike",
        _self(weigh=lambda self, s, mask: _plain_softmax(s, mask, torch.finfo(s.dtype).min)),
        "A finite fill leaves a row in which all are equal, and softmax makes 1/n of each. Zero what is forbidden after softmax.",
        also=(_self(weigh=lambda self, s, mask: _plain_softmax(s, mask, -1e9)),),
    ),
    Mistake(
        "NaN is overwritten after softmax, and comes back in the gradient",
        _self(weigh=_repaired),
        "The output is right. On the way back NaN meets a gradient of 0, and 0 · NaN is NaN. At which step did the first NaN "
        "arise? Avoid it there.",
        ("mk16",),
    ),
    Mistake(
        "−1e9 in half precision",
        _self(weigh=_fixed_fill),
        "float16 ends at −65,504, and PyTorch refuses to fill in more. Ask the scores: `torch.finfo(scores.dtype).min`.",
        ("mk12",),
    ),
    Mistake(
        "dropout is made and never called",
        _self(drop=lambda self, weights: weights),
        "In training nothing was ever dropped. The weights go through it before they meet the values.",
        ("do06",),
    ),
    Mistake(
        "dropout is never switched off",
        _self(drop=lambda self, weights: F.dropout(weights, self.rate)),
        "`F.dropout(weights, p)` drops always. nn.Dropout knows whether the layer trains; F.dropout must be told, by "
        "`training=self.training`.",
        ("do02",),
    ),
    Mistake(
        "dropout on the scores, before softmax",
        _self(
            score=lambda self, q, k, v: F.dropout(_Self.score(self, q, k, v), self.rate, self.training),
            drop=lambda self, weights: weights,
        ),
        "A dropped score is 0, and exp(0) = 1: nothing is dropped by it. Drop weights, after softmax.",
        ("do01",),
    ),
    Mistake(
        "what is kept is not divided by 1 − p",
        _self(
            drop=lambda self, weights: F.dropout(weights, self.rate, self.training) * (1 - self.rate * self.training)
        ),
        "If a fifth is dropped, the rest must grow, so that the mean stays the same. nn.Dropout does it.",
        ("do03",),
    ),
    Mistake(
        "the rate is taken for the share that is kept",
        _self(drop=lambda self, weights: F.dropout(weights, 1 - self.rate, self.training and self.rate > 0)),
        "`nn.Dropout(p)` drops a share of p. Which share did you hand on?",
    ),
    Mistake(
        "dropout on what was found, not on the weights",
        _self(collect=lambda self, weights, value: F.dropout(weights @ value, self.rate, self.training)),
        "That drops *features* of the mean. Dropping a weight drops a token: apply it to the weights.",
        ("do05",),
    ),
    Mistake(
        "dropout on the output of the layer, not on the weights",
        _self(
            drop=lambda self, weights: weights,
            finish=lambda self, found, tokens, x: x + F.dropout(self.output(found), self.rate, self.training),
        ),
        "Many layers have such a dropout too. The one asked for here stands between softmax and the values.",
    ),
    Mistake(
        "dropout on the tokens, before they are projected",
        _self(
            normed=lambda self, x: F.dropout(self.norm(x), self.rate, self.training), drop=lambda self, weights: weights
        ),
        "That drops features of what comes in. Dropping a weight drops a token: apply it to the weights.",
    ),
    Mistake(
        "the weights that are returned are those after dropout",
        _self(
            collect=lambda self, weights, value: weights @ value,
            weigh=lambda self, s, mask: F.dropout(ours.masked_softmax(s, mask), self.rate, self.training),
        ),
        "They no longer sum to 1. Keep the weights, and let a dropped copy meet the values.",
        ("do04",),
    ),
    Mistake(
        "the weights are never returned",
        _self(back=lambda self, output, weights, return_weights: output),
        "With `return_weights=True` return a pair.",
    ),
    Mistake(
        "the weights are always returned",
        _self(back=lambda self, output, weights, return_weights: (output, weights)),
        "The pair is for who asks: `if return_weights`.",
    ),
    Mistake(
        "the scores are returned in place of the weights",
        _self(
            score=lambda self, q, k, v: (
                self.__dict__.setdefault("kept", [None]).__setitem__(0, _Self.score(self, q, k, v)) or self.kept[0]
            ),
            back=lambda self, output, weights, return_weights: (output, self.kept[0]) if return_weights else output,
        ),
        "Weights are what softmax makes of the scores: their rows sum to 1.",
    ),
    Mistake(
        "the gradient is cut off",
        _self(project=lambda self, tokens, x: tuple(part.detach() for part in _Self.project(self, tokens, x))),
        "The numbers are right, and nothing will be learned.",
        also=(_self(forward=torch.no_grad()(_Self.forward)),),
    ),
]


def _manual_rows(self, scores, mask):
    """−∞, with rows that hold nothing else left out before softmax and zeroed after it."""
    if mask is None:
        return torch.softmax(scores, dim=-1)
    some = mask.any(dim=-1, keepdim=True)
    return torch.softmax(scores.masked_fill(~mask & some, -torch.inf), dim=-1) * (mask & some)


self_attention_accepts = [
    _self(
        weigh=_manual_rows,
        score=lambda self, q, k, v: torch.einsum("...id,...jd->...ij", q, k) * q.shape[-1] ** -0.5,
        drop=lambda self, weights: nn.Dropout(self.rate).train(self.training)(weights),
    ),
    _self(weigh=lambda self, s, mask: torch.nan_to_num(_plain_softmax(s, mask))),
]

# MultiHeadAttention ---------------------------------------------------------------------------------------------------


class MultiHeadAttention(nn.Module):
    """Attention with several heads, of a sequence with itself or with another. Made of query, key, value, output."""

    def __init__(self, d_model, n_heads, *, dropout=0.0):
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, *, return_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        projected = self.query(query), self.key(key), self.value(value)
        q, k, v = (
            x.unflatten(-1, (self.n_heads, -1)).transpose(-2, -3) for x in projected
        )  # [..., n_heads, n, d_head]
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if mask is not None:
            mask = mask.unsqueeze(-3) if mask.ndim == query.ndim else mask  # an axis for the heads
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=-1)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)
        output = self.output((self.dropout(weights) @ v).transpose(-2, -3).flatten(-2))
        return (output, weights) if return_weights else output


def call_multi_head(layer_class, query, key, value, mask, n_heads, dropout, weights, look_at):
    if is_stub(layer_class):
        return ...
    layer = build(layer_class, query.shape[-1], n_heads, dropout=dropout, weights=weights)
    given = [query, *(x for x in (key, value) if x is not None)]
    return look(layer, tuple(map(tensor, given)), tensor(mask), look_at)


def _heads(rng, d):
    return _linear(rng, query=(d, d), key=(d, d), value=(d, d), output=(d, d))


def multi_head_cases(rng):
    alone = None, None, None  # no key, no value, no mask
    token, two = np.array([[1.0, 3.0]]), np.array([[2.0, 0.0], [0.0, 4.0]])
    swap = _identities((10.0, 20.0), ((0.0, 1.0), (1.0, 0.0)))
    alike = swap | {"query.weight": np.zeros((2, 2))}
    causal, lengths = np.tri(4, dtype=bool), np.array([[[True, True, True]], [[True, False, False]]])
    apart = np.array([np.tri(3), np.ones((3, 3)) - np.eye(3)], dtype=bool)
    x, batch = _array(rng, 3, 4), _array(rng, 2, 3, 4)
    return [
        Case(
            "how many numbers are trained, d_model = 4 (as counted in lesson 05)",
            (x, *alone, 2, 0.0, {}, "number of parameters"),
            np.array(80),
        ),
        Case(
            "one token, 2 heads, by hand: its value is [1, 3], which `output` exchanges",
            (token, *alone, 2, 0.0, swap, "output"),
            np.array([[13.0, 21.0]]),
        ),
        Case(
            "2 tokens, 2 heads that look at all alike, by hand: the mean is [1, 2]",
            (two, *alone, 2, 0.0, alike, "output"),
            np.array([[12.0, 21.0], [12.0, 21.0]]),
        ),
        Case("square: 4 tokens, 2 heads, d_model = 4", (_array(rng, 4, 4), *alone, 2, 0.0, _heads(rng, 4), "output")),
        Case("one head, 3 tokens", (x, *alone, 1, 0.0, _heads(rng, 4), "output")),
        Case("3 tokens, 2 heads of 3 features", (_array(rng, 3, 6), *alone, 2, 0.0, _heads(rng, 6), "output")),
        Case("a batch of 2, with 3 tokens, 2 heads", (batch, *alone, 2, 0.0, _heads(rng, 4), "output")),
        Case("the weights of both heads, asked for", (batch, *alone, 2, 0.0, _heads(rng, 4), "weights")),
        Case(
            "another sequence is looked at: 2 queries, 3 keys, whose values are themselves",
            (_array(rng, 2, 4), x, None, None, 2, 0.0, _heads(rng, 4), "output"),
        ),
        Case(
            "queries, keys and values of three sequences",
            (_array(rng, 2, 4), x, _array(rng, 3, 4), None, 2, 0.0, _heads(rng, 4), "output"),
        ),
        Case("a mask: nobody looks ahead", (_array(rng, 4, 4), None, None, causal, 2, 0.0, _heads(rng, 4), "output")),
        Case("a batch with padding", (batch, None, None, lengths, 2, 0.0, _heads(rng, 4), "output")),
        Case("one mask for each head", (x, None, None, apart, 2, 0.0, _heads(rng, 4), "output")),
        Case(
            "a batch with an empty sentence: nothing to attend to",
            (batch, None, None, lengths & [[[True]], [[False]]], 2, 0.0, _heads(rng, 4), "output"),
        ),
        Case("a gradient", (x, *alone, 2, 0.0, _heads(rng, 4), "gradient of query.weight")),
        Case(
            "one token, one head, by hand, training at dropout 0.2: its only weight is 0 or 1.25",
            (token, *alone, 1, 0.2, swap, RANGE("training")),
            np.array([[[10.0, 20.0]], [[13.75, 21.25]]]),
        ),
        Case("evaluating: nothing is dropped", (x, *alone, 2, 0.2, _heads(rng, 4), RANGE("evaluating"))),
    ]


class _Many(nn.Module):
    """The layer in steps, so that a mistake can change one of them."""

    def __init__(self, d_model, n_heads, *, dropout=0.0):
        super().__init__()
        self.d_model, self.n_heads, self.rate = d_model, n_heads, dropout
        self.make(d_model, n_heads)

    def make(self, d_model, n_heads):
        self.query, self.key = _Undrawn(d_model, d_model), _Undrawn(d_model, d_model)
        self.value, self.output = _Undrawn(d_model, d_model), _Undrawn(d_model, d_model)

    def given(self, query, key, value):
        key = query if key is None else key
        return query, key, key if value is None else value

    def project(self, query, key, value):
        return self.query(query), self.key(key), self.value(value)

    def split(self, x):
        return ours.split_heads(x, self.n_heads)

    def score(self, query, key):
        return query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])

    def widen(self, mask, query):
        return mask.unsqueeze(-3) if mask.ndim == query.ndim else mask

    def weigh(self, scores, mask):
        return ours.masked_softmax(scores, mask)

    def drop(self, weights):
        return F.dropout(weights, self.rate, self.training)

    def merge(self, heads):
        return ours.merge_heads(heads)

    def finish(self, found, query):
        return self.output(found)

    def back(self, output, weights, return_weights):
        return (output, weights) if return_weights else output

    def forward(self, query, key=None, value=None, mask=None, *, return_weights=False):
        query, key, value = self.given(query, key, value)
        q, k, v = map(self.split, self.project(query, key, value))
        weights = self.weigh(self.score(q, k), None if mask is None else self.widen(mask, query))
        return self.back(self.finish(self.merge(self.drop(weights) @ v), query), weights, return_weights)


def _many(**steps):
    """A layer with some steps done in another way."""
    return type("MultiHeadAttention", (_Many,), steps)


def _in_list(self, d_model, n_heads):
    self.layers = [nn.Linear(d_model, d_model) for _ in range(4)]


def _head_lists(self, d_model, n_heads):
    self.query, self.key, self.value = (
        [nn.Linear(d_model, d_model // n_heads) for _ in range(n_heads)] for _ in range(3)
    )
    self.output = nn.Linear(d_model, d_model)


def _module_list(self, d_model, n_heads):
    self.layers = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(4))


def _four_names(self, d_model, n_heads):
    self.query, self.key, self.value, self.output = [nn.Linear(d_model, d_model)] * 4


def _three_names(self, d_model, n_heads):
    self.query, self.key, self.value = [nn.Linear(d_model, d_model)] * 3
    self.output = nn.Linear(d_model, d_model)


def _no_bias(self, d_model, n_heads):
    for name in ("query", "key", "value", "output"):
        setattr(self, name, nn.Linear(d_model, d_model, bias=False))


def _one_head_wide(self, d_model, n_heads):
    d_head = d_model // n_heads
    self.query, self.key = nn.Linear(d_model, d_head), nn.Linear(d_model, d_head)
    self.value, self.output = nn.Linear(d_model, d_head), nn.Linear(d_model, d_model)


def _heads_times_wide(self, d_model, n_heads):
    wide = d_model * n_heads
    self.query, self.key = nn.Linear(d_model, wide), nn.Linear(d_model, wide)
    self.value, self.output = nn.Linear(d_model, wide), nn.Linear(wide, d_model)


def _no_output(self, d_model, n_heads):
    self.query, self.key, self.value = (nn.Linear(d_model, d_model) for _ in range(3))


def _also_normed(self, d_model, n_heads):
    _Many.make(self, d_model, n_heads)
    self.norm = nn.LayerNorm(d_model)


def _cut(x, n_heads):
    return x.unflatten(-1, (n_heads, -1))  # [..., n, n_heads, d_head]


multi_head_mistakes = [
    Mistake(
        "a query with nothing to attend to becomes NaN",
        _many(weigh=lambda self, s, mask: _plain_softmax(s, mask)),
        "Softmax of −∞ alone is 0 / 0. Such a query should find zeros: fill with a finite number, and zero what is forbidden "
        "after softmax.",
    ),
    Mistake(
        "a query with nothing to attend to attends to all alike",
        _many(weigh=lambda self, s, mask: _plain_softmax(s, mask, torch.finfo(s.dtype).min)),
        "A finite fill leaves a row in which all are equal, and softmax makes 1/n of each. Zero what is forbidden after softmax.",
    ),
    Mistake(
        "`super().__init__()` is missing",
        type(
            "MultiHeadAttention",
            (_Many,),
            {"__init__": lambda self, d_model, n_heads, dropout=0.0: self.make(d_model, n_heads)},
        ),
        "nn.Module keeps lists of its layers and parameters, and `super().__init__()` makes them. It stands before any layer.",
    ),
    Mistake(
        "the layers stand in a plain Python list",
        _many(make=_in_list),
        "A module finds layers among its attributes and does not look into lists: nothing would be trained. Name each, or use "
        "nn.ModuleList.",
        ("mh19",),
    ),
    Mistake(
        "each head has a layer of its own, in plain Python lists",
        _many(make=_head_lists),
        "A module does not look into lists: only `output` would be trained. One nn.Linear holds all heads side by side.",
    ),
    Mistake(
        "the four layers stand in one list",
        _many(make=_module_list),
        "That works. The check sets weights by name, so name them: query, key, value, output.",
    ),
    Mistake(
        "one layer is repeated: `[nn.Linear(...)] * 4`",
        _many(make=_four_names),
        "These are four names for one layer, with the numbers of one. Call nn.Linear once for each.",
        ("mh20",),
    ),
    Mistake(
        "query, key and value are one and the same layer",
        _many(make=_three_names),
        "Three names for one layer: setting one sets all three. Call nn.Linear once for each.",
    ),
    Mistake(
        "the projections have no bias",
        _many(make=_no_bias),
        "nn.Linear has one unless told otherwise; the check sets it.",
    ),
    Mistake(
        "the projections are only one head wide",
        _many(make=_one_head_wide),
        "All heads stand side by side in one layer: n_heads * d_head, which is d_model.",
    ),
    Mistake(
        "every head is as wide as d_model",
        _many(make=_heads_times_wide),
        "That is n_heads times as much. Here the heads share d_model among them.",
    ),
    Mistake(
        "`output` is missing",
        _many(make=_no_output, finish=lambda self, found, query: found),
        "Without it the heads never meet: a last layer mixes what they found.",
    ),
    Mistake(
        "`output` is made and never called",
        _many(finish=lambda self, found, query: found),
        "What the heads found still goes through `self.output`.",
    ),
    Mistake(
        "a norm that was not asked for",
        _many(make=_also_normed, finish=lambda self, found, query: self.norm(self.output(found))),
        "This layer is attention alone. Norm and residual stand around it, in the block of lesson 09.",
    ),
    Mistake(
        "a residual that was not asked for",
        _many(finish=lambda self, found, query: query + self.output(found)),
        "This layer is attention alone. Norm and residual stand around it, in the block of lesson 09.",
    ),
    Mistake(
        "heads are split by reshape alone",
        _many(split=lambda self, x: x.reshape(*x.shape[:-2], self.n_heads, x.shape[-2], -1)),
        "The shape is right, yet a head holds whole tokens. Cut the last axis in two, then exchange two axes (lesson 05).",
    ),
    Mistake(
        "the axis of the heads stays behind that of the tokens",
        _many(
            split=lambda self, x: _cut(x, self.n_heads),
            merge=lambda self, heads: heads.flatten(-2),
            widen=lambda self, mask, query: mask,
        ),
        "Scores of [..., n, n_heads, d_head] compare the *heads* of one token. Exchange tokens and heads before you compare.",
    ),
    Mistake(
        "every n_heads-th feature goes to a head",
        _many(split=lambda self, x: x.unflatten(-1, (-1, self.n_heads)).movedim(-1, -3)),
        "Head 0 gets the *first* d_head features. Cut the last axis into (n_heads, d_head), in this order.",
    ),
    Mistake(
        "heads are merged by reshape alone",
        _many(merge=lambda self, heads: heads.reshape(*heads.shape[:-3], heads.shape[-2], -1)),
        "The shape is right, but a token gets parts of several tokens. Exchange the axes back before you join.",
    ),
    Mistake(
        "`view` after transpose",
        _many(merge=lambda self, heads: heads.transpose(-2, -3).view(*heads.shape[:-3], heads.shape[-2], -1)),
        "A transpose changes how memory is read, not how it lies, and `view` must not copy. `reshape` or `flatten` may.",
        ("mh04",),
    ),
    Mistake(
        "the heads are averaged",
        _many(merge=lambda self, heads: heads.mean(dim=-3).repeat_interleave(self.n_heads, dim=-1)),
        "What the heads found stands side by side: d_head features of each.",
    ),
    Mistake(
        "axes are counted from the front, as if there were always one batch axis",
        _many(split=lambda self, x: _cut(x, self.n_heads).transpose(1, 2)),
        "A single sequence has its tokens on axis 0. Count from the end: `transpose(-2, -3)`.",
    ),
    Mistake(
        "axes are counted from the front, as if there were no batch",
        _many(
            split=lambda self, x: _cut(x, self.n_heads).transpose(0, 1),
            merge=lambda self, heads: heads.transpose(0, 1).flatten(-2),
        ),
        "Right for one sequence. With a batch in front exchange only these two, counted from the end.",
    ),
    Mistake(
        "divided by √d_model",
        _many(score=lambda self, q, k: q @ k.transpose(-1, -2) / math.sqrt(self.d_model)),
        "A head compares d_head numbers: √d_head. (Right only with one head.)",
    ),
    Mistake(
        "the scores are not divided by √d_head",
        _many(score=lambda self, q, k: q @ k.transpose(-1, -2)),
        "Lesson 03: products of d_head numbers grow with √d_head. Divide the scores by it.",
    ),
    Mistake(
        "softmax over the queries",
        _many(
            weigh=lambda self, s, mask: torch.softmax(s if mask is None else s.masked_fill(~mask, -torch.inf), dim=-2)
        ),
        "The keys compete for a query: the last axis, `dim=-1`.",
    ),
    Mistake(
        "softmax over the heads",
        _many(
            weigh=lambda self, s, mask: torch.softmax(s if mask is None else s.masked_fill(~mask, -torch.inf), dim=-3)
        ),
        "The keys compete for a query, in each head by itself: the last axis, `dim=-1`.",
    ),
    Mistake(
        "key and value are not used: it always looks at itself",
        _many(given=lambda self, query, key, value: (query, query, query)),
        "`key` stands for another sequence where it is given. Only if it is None is it the query.",
    ),
    Mistake(
        "a value that is not given is the query, not the key",
        _many(
            given=lambda self, query, key, value: (
                query,
                query if key is None else key,
                query if value is None else value,
            )
        ),
        "There must be one value for each *key*: if value is None, it is the key.",
    ),
    Mistake(
        "the values are made of the keys' sequence",
        _many(project=lambda self, query, key, value: (self.query(query), self.key(key), self.value(key))),
        "Where `value` is given, it is what is handed out.",
    ),
    Mistake(
        "the values go through `key`",
        _many(project=lambda self, query, key, value: (self.query(query), self.key(key), self.key(value))),
        "Each of the three has a layer of its own. Which one did you call for the values?",
    ),
    Mistake(
        "the mask is not used",
        _many(weigh=lambda self, s, mask: torch.softmax(s, dim=-1)),
        "Did you call `scores.masked_fill(...)` without keeping what it returns? It changes nothing in place.",
    ),
    Mistake(
        "the mask is turned around: what may be attended is forbidden",
        _many(weigh=lambda self, s, mask: ours.masked_softmax(s, None if mask is None else ~mask)),
        "True means *may*. (PyTorch's own nn.MultiheadAttention reads it the other way round.)",
    ),
    Mistake(
        "the mask is applied after softmax, and nothing is divided anew",
        _many(weigh=lambda self, s, mask: torch.softmax(s, dim=-1) * (1 if mask is None else mask)),
        "What was forbidden took part in the sum, so the rows no longer sum to 1. Forbid in the scores.",
    ),
    Mistake(
        "a mask of a batch gets no axis for the heads",
        _many(widen=lambda self, mask, query: mask),
        "[batch, 1, n_key] lines up with [batch, n_heads, n, n] from the right, and the batch would be taken for heads. Insert an "
        "axis: `unsqueeze(-3)`.",
    ),
    Mistake(
        "a mask for each head gets an axis more",
        _many(widen=lambda self, mask, query: mask.unsqueeze(-3)),
        "With one axis more than the query, a mask has its heads already: leave it as it is.",
    ),
    Mistake(
        "the weights are averaged over the heads",
        _many(
            back=lambda self, output, weights, return_weights: (
                (output, weights.mean(dim=-3)) if return_weights else output
            )
        ),
        "One map for each head is asked for, [..., n_heads, n_query, n_key]; a mean shows what no head does.",
    ),
    Mistake(
        "the weights are never returned",
        _many(back=lambda self, output, weights, return_weights: output),
        "With `return_weights=True` return a pair.",
    ),
    Mistake(
        "the weights are always returned",
        _many(back=lambda self, output, weights, return_weights: (output, weights)),
        "The pair is for who asks: `if return_weights`.",
    ),
    Mistake(
        "dropout is made and never called",
        _many(drop=lambda self, weights: weights),
        "In training nothing was ever dropped. The weights go through it before they meet the values.",
    ),
    Mistake(
        "dropout is never switched off",
        _many(drop=lambda self, weights: F.dropout(weights, self.rate)),
        "`F.dropout(weights, p)` drops always. nn.Dropout knows whether the layer trains; F.dropout must be told, by "
        "`training=self.training`.",
    ),
    Mistake(
        "dropout on the output, not on the weights",
        _many(
            drop=lambda self, weights: weights,
            finish=lambda self, found, query: F.dropout(self.output(found), self.rate, self.training),
        ),
        "Dropping a weight drops a token, dropping an output drops a feature. It stands between softmax and the values.",
    ),
    Mistake(
        "the gradient is cut off",
        _many(project=lambda self, query, key, value: [x.detach() for x in _Many.project(self, query, key, value)]),
        "The numbers are right, and nothing will be learned.",
        also=(_many(forward=torch.no_grad()(_Many.forward)),),
    ),
]

# load_torch_weights ---------------------------------------------------------------------------------------------------


def load_torch_weights(layer, module):
    """Copy the weights of `module`, an nn.MultiheadAttention, into `layer`, a MultiHeadAttention of this course."""
    d_model = module.embed_dim
    with torch.no_grad():
        for i, part in enumerate((layer.query, layer.key, layer.value)):
            rows = slice(i * d_model, (i + 1) * d_model)
            part.weight.copy_(module.in_proj_weight[rows])
            part.bias.copy_(module.in_proj_bias[rows])
        layer.output.weight.copy_(module.out_proj.weight)
        layer.output.bias.copy_(module.out_proj.bias)
    return layer


def two_layers(in_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias, look_at):
    """A layer of the course with random weights, and one of PyTorch with these."""
    d_model = len(out_proj_weight)
    torch.default_generator.manual_seed(0)
    module, layer = nn.MultiheadAttention(d_model, 2), ours.MultiHeadAttention(d_model, 2)
    given = {
        "in_proj_weight": in_proj_weight,
        "in_proj_bias": in_proj_bias,
        "out_proj.weight": out_proj_weight,
        "out_proj.bias": out_proj_bias,
    }
    state = {name: tensor(value) for name, value in given.items()}
    module.load_state_dict(state)
    return layer, module


def call_load_torch_weights(function, in_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias, look_at):
    layer, module = two_layers(in_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias, look_at)
    result = function(layer, module)
    if result is ...:
        return ...
    if look_at == "theirs, after ours were trained further":
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter += 1
        return array(torch.cat([parameter.flatten() for parameter in module.parameters()]))
    if look_at == "number of parameters that are trained":
        named = [parameter for parameter in layer.parameters() if parameter.requires_grad]
        return np.array(sum(parameter.numel() for parameter in named))
    if look_at == "what is returned":
        if result is not layer:
            raise Unfit("Expected that the layer which was given is returned: `return layer`.")
        return np.array(1)
    return array(dict(layer.named_parameters())[look_at])


THEIRS, TRAINED, RETURNED = (
    "theirs, after ours were trained further",
    "number of parameters that are trained",
    "what is returned",
)


def load_torch_weights_cases(rng):
    small = (
        np.arange(12.0).reshape(6, 2),
        np.arange(6.0),
        np.array([[20.0, 21.0], [22.0, 23.0]]),
        np.array([30.0, 31.0]),
    )
    by_hand = {
        "query.weight": [[0.0, 1.0], [2.0, 3.0]],
        "key.weight": [[4.0, 5.0], [6.0, 7.0]],
        "value.weight": [[8.0, 9.0], [10.0, 11.0]],
        "query.bias": [0.0, 1.0],
        "key.bias": [2.0, 3.0],
        "value.bias": [4.0, 5.0],
        "output.weight": [[20.0, 21.0], [22.0, 23.0]],
        "output.bias": [30.0, 31.0],
    }
    wide = _array(rng, 12, 4), _array(rng, 12), _array(rng, 4, 4), _array(rng, 4)
    return [
        *(Case(f"d_model = 2, by hand: {name}", (*small, name), np.array(want)) for name, want in by_hand.items()),
        *(
            Case(f"d_model = 4, 2 heads: {name}", (*wide, name))
            for name in ("query.weight", "key.weight", "value.weight")
        ),
        Case("changing ours leaves theirs as it is", (*small, THEIRS)),
        Case("all parameters are trained further", (*small, TRAINED), np.array(24)),
        Case("the layer is returned", (*small, RETURNED), np.array(1)),
    ]


def _thirds(module):
    """Weights and biases of query, key and value."""
    return list(zip(module.in_proj_weight.chunk(3), module.in_proj_bias.chunk(3)))


def _load(
    thirds=_thirds,
    put=lambda parameter, value: parameter.data.copy_(value),
    output=lambda module: (module.out_proj.weight, module.out_proj.bias),
    result=lambda layer, module: layer,
    biases=True,
):
    """Copying in which some steps are done in another way."""

    def load(layer, module):
        pairs = [*thirds(module), *([output(module)] if output else [])]
        for part, (weight, bias) in zip((layer.query, layer.key, layer.value, layer.output), pairs):
            put(part.weight, weight)
            if biases and bias is not None:
                put(part.bias, bias)
        return result(layer, module)

    return load


def _ordered(*order):
    return lambda module: [_thirds(module)[i] for i in order]


def _by_heads(module):
    """Rows read as q, k, v of head 0, then of head 1."""
    weight, bias, n_heads = module.in_proj_weight, module.in_proj_bias, module.num_heads
    weights = weight.unflatten(0, (n_heads, 3, -1)).transpose(0, 1).flatten(1, 2)
    return list(zip(weights, bias.unflatten(0, (n_heads, 3, -1)).transpose(0, 1).flatten(1, 2)))


def _replace(make, requires_grad=True):
    """Give the layer new parameters instead of copying into the old ones."""

    def load(layer, module):
        pairs = [*_thirds(module), (module.out_proj.weight, module.out_proj.bias)]
        for part, (weight, bias) in zip((layer.query, layer.key, layer.value, layer.output), pairs):
            part.weight = nn.Parameter(make(weight), requires_grad=requires_grad)
            part.bias = nn.Parameter(make(bias), requires_grad=requires_grad)
        return layer

    return load


def _share_data(layer, module):
    pairs = [*_thirds(module), (module.out_proj.weight, module.out_proj.bias)]
    for part, (weight, bias) in zip((layer.query, layer.key, layer.value, layer.output), pairs):
        part.weight.data, part.bias.data = weight.data, bias.data
    return layer


def _assign(layer, module):
    layer.query.weight = module.in_proj_weight[: module.embed_dim]
    return layer


def _without_no_grad(layer, module):
    layer.query.weight.copy_(module.in_proj_weight[: module.embed_dim])
    return layer


def _backwards(layer, module):
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat([layer.query.weight, layer.key.weight, layer.value.weight]))
        module.in_proj_bias.copy_(torch.cat([layer.query.bias, layer.key.bias, layer.value.bias]))
        module.out_proj.weight.copy_(layer.output.weight)
        module.out_proj.bias.copy_(layer.output.bias)
    return layer


def _state_dict(layer, module):
    layer.load_state_dict(module.state_dict())
    return layer


load_torch_weights_mistakes = [
    Mistake(
        "the thirds of in_proj_weight are taken in another order",
        _load(thirds=_ordered(1, 0, 2)),
        "PyTorch's order is query, key, value, from top to bottom.",
        also=(_load(thirds=_ordered(2, 1, 0)), _load(thirds=_ordered(2, 0, 1)), _load(thirds=_ordered(1, 2, 0))),
    ),
    Mistake(
        "key and value are exchanged",
        _load(thirds=_ordered(0, 2, 1)),
        "Query is right. Then comes the third of the key, and the value's is the last.",
    ),
    Mistake(
        "the first third goes to all three",
        _load(thirds=_ordered(0, 0, 0)),
        "Each of the three has its own d_model rows.",
    ),
    Mistake(
        "in_proj_weight is cut along its columns",
        _load(thirds=lambda m: list(zip(m.in_proj_weight.chunk(3, dim=1), m.in_proj_bias.chunk(3)))),
        "It is [3 d_model, d_model]: the three stand one below the other, so cut its rows.",
    ),
    Mistake(
        "every third row is taken",
        _load(thirds=lambda m: [(m.in_proj_weight[i::3], m.in_proj_bias[i::3]) for i in range(3)]),
        "The rows of the query stand together: the first d_model of them.",
    ),
    Mistake(
        "rows are read head by head: q, k, v of head 0, then of head 1",
        _load(thirds=_by_heads),
        "Some programs store them so. nn.MultiheadAttention has all heads' queries first, then all keys, then all values.",
    ),
    Mistake(
        "the weights are transposed",
        _load(
            thirds=lambda m: [(w.T, b) for w, b in _thirds(m)], output=lambda m: (m.out_proj.weight.T, m.out_proj.bias)
        ),
        "Both keep weights as [out, in], so nothing is to be transposed. (That was for `x @ w` in NumPy.)",
        also=(_load(thirds=lambda m: [(w.T, b) for w, b in _thirds(m)]),),
    ),
    Mistake(
        "the weight of `output` is transposed",
        _load(output=lambda m: (m.out_proj.weight.T, m.out_proj.bias)),
        "The other three are right. `module.out_proj` keeps its weight as [out, in], and so does `layer.output`.",
    ),
    Mistake(
        "the weights are divided by √d_head",
        _load(thirds=lambda m: [(w / math.sqrt(m.head_dim), b) for w, b in _thirds(m)]),
        "PyTorch's layer divides the scores too. Copy the weights as they are.",
        also=(
            _load(
                thirds=lambda m: [(w / math.sqrt(m.head_dim) if not i else w, b) for i, (w, b) in enumerate(_thirds(m))]
            ),
            _load(thirds=lambda m: [(w / math.sqrt(m.embed_dim), b) for w, b in _thirds(m)]),
        ),
    ),
    Mistake(
        "no bias is copied",
        _load(biases=False),
        "The weights are right. `in_proj_bias` has three thirds as well, and `out_proj` a bias of its own.",
    ),
    Mistake(
        "the biases of query, key and value are not copied",
        _load(thirds=lambda m: [(w, None) for w, _ in _thirds(m)]),
        "`in_proj_bias` has three thirds, in the order of the weights.",
    ),
    Mistake(
        "the thirds of in_proj_bias are taken in another order than the weights",
        _load(thirds=lambda m: list(zip(m.in_proj_weight.chunk(3), [m.in_proj_bias.chunk(3)[i] for i in (1, 0, 2)]))),
        "The order of the biases is that of the weights: query, key, value.",
        also=(_load(thirds=lambda m: list(zip(m.in_proj_weight.chunk(3), [m.in_proj_bias.chunk(3)[0]] * 3))),),
    ),
    Mistake(
        "`output` is not copied",
        _load(output=None),
        "Four layers, not three: `module.out_proj` goes to `layer.output`.",
    ),
    Mistake(
        "the bias of `output` is not copied",
        _load(output=lambda m: (m.out_proj.weight, None)),
        "`module.out_proj` is an nn.Linear, with a weight and a bias.",
    ),
    Mistake(
        "nothing is copied",
        _load(put=lambda parameter, value: None),
        "The layer keeps its own random weights. `w = ...` gives a new meaning to the name w and changes no layer; "
        "load_state_dict(strict=False) passes over all names that differ, and all do. `layer.query.weight.copy_(...)` does it.",
    ),
    Mistake(
        "the layer's weights are copied into PyTorch's module",
        _backwards,
        "The other way round: `mine.copy_(theirs)` writes into mine.",
    ),
    Mistake(
        "`copy_` outside of `torch.no_grad()`",
        _without_no_grad,
        "PyTorch records what is done to parameters, and refuses to record that one was overwritten. Nothing is to be recorded here: "
        "`with torch.no_grad():`.",
    ),
    Mistake(
        "a tensor is assigned where a parameter stands",
        _assign,
        "A module guards its parameters. Copy the numbers into the parameter that is there: `copy_`.",
    ),
    Mistake(
        "`load_state_dict` of the whole module",
        _state_dict,
        "The names differ: in_proj_weight there, query.weight, key.weight and value.weight here. Translate them.",
    ),
    Mistake(
        "both layers share one memory",
        _share_data,
        "If ours is trained, theirs changes too. Copy numbers: `copy_`, or `.clone()`.",
    ),
    Mistake(
        "the copies are not trained",
        _replace(lambda w: w.detach().clone(), requires_grad=False),
        "The numbers are right, but `requires_grad` is off. Copy into the parameters that are there.",
    ),
    Mistake(
        "the layer is not returned",
        _load(result=lambda layer, module: None),
        "All is copied. End with `return layer`.",
    ),
]

check = Checker(
    "08",
    [
        Exercise(
            "from_key_padding_mask",
            ours.from_key_padding_mask,
            from_key_padding_mask,
            key_padding_cases,
            key_padding_mistakes,
            [
                lambda m: torch.logical_not(m).unsqueeze(1),
                lambda m: (m == 0)[:, None],
                lambda m: ~m.reshape(m.shape[0], 1, -1),
                lambda m: ours.to_additive(~m)[:, None, :] == 0,
            ],
            call=call_from_key_padding_mask,
        ),
        Exercise(
            "SelfAttention",
            ours.SelfAttention,
            SelfAttention,
            self_attention_cases,
            self_attention_mistakes,
            self_attention_accepts,
            call=call_self_attention,
        ),
        Exercise(
            "MultiHeadAttention",
            ours.MultiHeadAttention,
            MultiHeadAttention,
            multi_head_cases,
            multi_head_mistakes,
            [
                _many(
                    split=lambda self, x: torch.stack(x.chunk(self.n_heads, dim=-1), dim=-3),
                    weigh=lambda self, s, mask: torch.nan_to_num(_plain_softmax(s, mask)),
                    drop=lambda self, weights: nn.Dropout(self.rate).train(self.training)(weights),
                    merge=lambda self, heads: heads.transpose(-2, -3).reshape(*heads.shape[:-3], heads.shape[-2], -1),
                ),
                _many(weigh=_manual_rows),
            ],
            call=call_multi_head,
        ),
        Exercise(
            "load_torch_weights",
            ours.load_torch_weights,
            load_torch_weights,
            load_torch_weights_cases,
            load_torch_weights_mistakes,
            [_load(), _replace(lambda w: w.detach().clone())],
            call=call_load_torch_weights,
            given=two_layers,
        ),
    ],
)
