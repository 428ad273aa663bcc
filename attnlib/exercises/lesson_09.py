"""Exercises of lesson 09: the parts of a Transformer's block, and what it costs."""

import operator
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from attnlib.exercises.compare import Unfit
from attnlib.exercises.core import Case, Checker, Exercise, Mistake
from attnlib.exercises.modules import array, build, is_stub, on_tensors, tensor
from attnlib.torch import MultiHeadAttention, blocks, counting

# layer_norm -----------------------------------------------------------------------------------------------------------


def layer_norm(x, weight, bias, eps):
    """Give the features of each token of x [..., d_model] mean 0 and variance 1, then times weight, plus bias."""
    mean = x.mean(dim=-1, keepdim=True)  # [..., 1]
    variance = (x - mean).square().mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias


def call_layer_norm(answer, x, weight, bias, eps):
    """Call it with tensors."""
    return on_tensors(answer, x, weight, bias, eps)


def layer_norm_cases(rng):
    def plain(width):
        return np.ones(width), np.zeros(width), 1e-5

    def draw(*shape):
        return rng.normal(scale=3, size=shape).round(1)

    def gain_and_shift(width):
        shift = draw(width)
        return (0.5 + rng.random(width)).round(1) * rng.choice([-1, 1], width), np.where(shift == 0, 0.5, shift)

    apart = np.array([[10_001.0, 10_003.0, 10_005.0, 10_007.0]])
    return [
        Case("one token, by hand", (np.array([[1.0, 5.0]]), *plain(2)), np.array([[-1, 1]], dtype=np.float32)),
        Case("three tokens of three features", (draw(3, 3), *plain(3))),
        Case("gain and shift", (draw(2, 3), np.array([2.0, -1.0, 0.5]), np.array([0.5, 1.0, -2.0]), 1e-5)),
        Case("two tokens of five features", (draw(2, 5), *gain_and_shift(5), 1e-5)),
        Case("a batch", (draw(2, 3, 4), *gain_and_shift(4), 1e-5)),
        Case("a batch and heads, one number of tokens in all", (draw(2, 2, 3, 3), *gain_and_shift(3), 1e-5)),
        Case(
            "a large eps, by hand",
            (np.array([[1.0, 3.0]]), np.ones(2), np.zeros(2), 3.0),
            np.array([[-0.5, 0.5]], dtype=np.float32),
        ),
        Case("features that are nearly equal", (np.array([[0.0, 0.002]]), *plain(2))),
        Case("features that are equal", (np.array([[2.0, 2.0]]), np.ones(2), np.array([0.0, 1.5]), 1e-5)),
        Case("far from 0", (apart, *plain(4)), (np.array([[-3, -1, 1, 3]]) / np.sqrt(5)).astype(np.float32)),
    ]


def _norm(
    *,
    over: Callable = lambda x: -1,
    mean: Callable = lambda x, dim: x.mean(dim=dim, keepdim=True),
    variance: Callable = lambda x, mean, dim: (x - mean).square().mean(dim=dim, keepdim=True),
    divide: Callable = lambda centred, variance, eps: centred / torch.sqrt(variance + eps),
    finish: Callable = lambda normed, weight, bias: normed * weight + bias,
) -> Callable:
    """Layer norm in parts, of which a mistake replaces some. `over` are the axes that are normalised."""

    def function(x, weight, bias, eps):
        dim = over(x)
        centre = mean(x, dim)
        return finish(divide(x - centre, variance(x, centre, dim), eps), weight, bias)

    return function


def _unbiased(x, mean, dim):
    return x.var(dim=dim, keepdim=True)


layer_norm_mistakes = [
    Mistake(
        "normalised over the tokens, not over the features",
        _norm(over=lambda x: -2),
        "Normalise one token alone: the result should not need the others. Which axis holds the features of a token?",
        ("ln01",),
        also=(_norm(over=lambda x: 0), _norm(over=lambda x: 1)),
    ),
    Mistake(
        "normalised over everything but the features, as batch norm does",
        _norm(over=lambda x: tuple(range(x.ndim - 1))),
        "Put a sequence into a batch with another one: its result should not change. Mean and variance belong to one token.",
        ("ln02",),
    ),
    Mistake(
        "one mean and one variance for all numbers of x",
        _norm(over=lambda x: tuple(range(x.ndim))),
        "Each token has a mean and a variance of its own: `dim=-1`.",
    ),
    Mistake(
        "normalised over tokens and features of a sequence together",
        _norm(over=lambda x: (-2, -1)),
        "Two tokens of a sequence should not share their mean. `dim=-1` alone.",
    ),
    Mistake(
        "a variance that divides by n − 1, as torch.var and torch.std do unless told otherwise",
        _norm(variance=_unbiased),
        "The squares of the normalised numbers should have the mean 1. By how much does `.var()` divide? See `correction=`.",
        ("ln04",),
        also=(
            _norm(variance=_unbiased, divide=lambda centred, variance, eps: centred / (variance.sqrt() + eps)),
            _norm(variance=_unbiased, divide=lambda centred, variance, eps: centred / variance.sqrt()),
        ),
    ),
    Mistake(
        "eps is added outside of the root",
        _norm(divide=lambda centred, variance, eps: centred / (torch.sqrt(variance) + eps)),
        "It belongs to the variance: √(variance + eps). Where features are nearly equal, this is another number.",
        ("ln05",),
    ),
    Mistake(
        "eps is missing",
        _norm(divide=lambda centred, variance, eps: centred / torch.sqrt(variance)),
        "A token whose features are all equal has variance 0, and 0 / 0 is NaN.",
        ("ln06",),
    ),
    Mistake(
        "eps has a fixed value",
        _norm(divide=lambda centred, variance, eps: centred / torch.sqrt(variance + 1e-5)),
        "`eps` is an argument; with eps=3 the result is another one.",
        also=(_norm(divide=lambda centred, variance, eps: centred / torch.sqrt(variance + 1e-6)),),
    ),
    Mistake(
        "squared instead of the root: `** 2` for `** 0.5`",
        _norm(divide=lambda centred, variance, eps: centred / (variance + eps) ** 2),
        "Which power undoes a square?",
        ("ln07",),
    ),
    Mistake(
        "divided by the variance, without a root",
        _norm(divide=lambda centred, variance, eps: centred / (variance + eps)),
        "The variance is in squares of x. What brings it back to the size of x?",
    ),
    Mistake(
        "multiplied by the spread instead of divided",
        _norm(divide=lambda centred, variance, eps: centred * torch.sqrt(variance + eps)),
        "A token with large numbers should become smaller.",
    ),
    Mistake(
        "the squares are added up, but not divided by their number",
        _norm(variance=lambda x, mean, dim: (x - mean).square().sum(dim=dim, keepdim=True)),
        "The variance is a *mean* of squares.",
        also=(_norm(divide=lambda centred, variance, eps: F.normalize(centred, dim=-1)),),
    ),
    Mistake(
        "the mean is not subtracted",
        _norm(mean=lambda x, dim: torch.zeros(())),
        "The features of a token should have mean 0 before gain and shift. (Without the mean it is the RMS norm of newer models.)",
        also=(
            lambda x, weight, bias, eps: x / torch.sqrt(x.var(-1, keepdim=True, correction=0) + eps) * weight + bias,
        ),
    ),
    Mistake(
        "the mean is subtracted, and nothing is divided",
        _norm(divide=lambda centred, variance, eps: centred),
        "The mean is right. Now the spread: the squares should have mean 1.",
    ),
    Mistake(
        "the variance as the mean of the squares minus the square of the mean",
        _norm(variance=lambda x, mean, dim: x.square().mean(dim=dim, keepdim=True) - mean.square()),
        "Right on paper. In float32 two numbers near 100,000,000 are subtracted here, and nothing is left of their difference. "
        "Subtract the mean first, then square.",
    ),
    Mistake(
        "gain and shift are forgotten",
        _norm(finish=lambda normed, weight, bias: normed),
        "`weight` and `bias` are what is learned: they give each feature a size and a place of its own.",
    ),
    Mistake(
        "the gain is forgotten",
        _norm(finish=lambda normed, weight, bias: normed + bias),
        "Multiply by `weight` before `bias` is added.",
    ),
    Mistake(
        "the shift is forgotten",
        _norm(finish=lambda normed, weight, bias: normed * weight),
        "`bias` is added at the end.",
    ),
    Mistake(
        "the shift is added before the gain multiplies",
        _norm(finish=lambda normed, weight, bias: (normed + bias) * weight),
        "First times `weight`, then plus `bias`, so that the gain does not scale the shift.",
    ),
    Mistake(
        "gain and shift come before the norm",
        lambda x, weight, bias, eps: blocks.layer_norm(x * weight + bias, eps=eps),
        "The norm undoes what was done before it. Gain and shift come last.",
    ),
    Mistake(
        "`keepdim=True` is missing",
        lambda x, weight, bias, eps: (x - x.mean(-1)) / torch.sqrt(x.var(-1, correction=0) + eps) * weight + bias,
        "The mean is [...], one number for each token; it lines up with the columns. As [..., 1] it lines up with the rows.",
    ),
]

# FeedForward ----------------------------------------------------------------------------------------------------------


class FeedForward(nn.Module):
    """Two linear maps with a ReLU between, for each token alone: [..., n, d_model] -> [..., n, d_model]."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.expand = nn.Linear(d_model, d_ff)
        self.contract = nn.Linear(d_ff, d_model)

    def forward(self, x):
        """x [..., n, d_model] -> [..., n, d_model]"""
        return self.contract(torch.relu(self.expand(x)))


def call_feed_forward(answer, x, weights, look_at):
    """Make a layer, set its weights, and call it."""
    if is_stub(answer):
        return ...
    d_ff, d_model = weights["expand.weight"].shape
    return look(build(answer, d_model, d_ff, weights=weights), (x,), weights, look_at)


def look(layer, inputs, weights, look_at):
    """What a case compares: the output, or the gradient of a weight, where every weight that was set has one."""
    torch.default_generator.manual_seed(0)  # so that what is dropped, though it should not be, is the same each time
    if not look_at.startswith("gradient of "):
        return on_tensors(layer, *inputs)
    trained = {id(parameter) for parameter in layer.parameters()}
    by_name = {name: operator.attrgetter(name)(layer) for name in weights}
    for name, parameter in by_name.items():
        if id(parameter) not in trained:
            raise Unfit(
                f"`{name}` is not in `layer.parameters()`: make its layer in `__init__`, as an attribute of `self`."
            )
        if not parameter.requires_grad:
            raise Unfit(f"`{name}` is frozen: its `requires_grad` is False.")
    output = layer(*map(tensor, inputs))
    if not (isinstance(output, torch.Tensor) and output.requires_grad):
        raise Unfit("The output has no way back to the parameters. What cut it off: `no_grad`, `detach`, `.data`?")
    loss = (output * torch.arange(1.0, 1 + output.shape[-1])).sum()
    gradients = torch.autograd.grad(loss, list(by_name.values()), allow_unused=True)
    for name, gradient in zip(by_name, gradients):
        if gradient is None:
            raise Unfit(f"`{name}` gets no gradient. What cut it off: `no_grad`, `detach`, `.data`?")
    return array(gradients[list(by_name).index(look_at.removeprefix("gradient of "))])


def feed_forward_cases(rng):
    def draw(*shape):
        return rng.normal(size=shape).round(1)

    def weights(d_model, d_ff):
        return {
            "expand.weight": draw(d_ff, d_model),
            "expand.bias": draw(d_ff),
            "contract.weight": draw(d_model, d_ff),
            "contract.bias": draw(d_model),
        }

    by_hand = {
        "expand.weight": np.array([[1.0], [-1.0]]),
        "expand.bias": np.zeros(2),
        "contract.weight": np.array([[1.0, 1.0]]),
        "contract.bias": np.zeros(1),
    }
    shifted = by_hand | {"expand.bias": np.array([1.0, -1.0]), "contract.bias": np.array([0.5])}
    x = np.array([[3.0], [-2.0]])
    return [
        Case("absolute values, by hand", (x, by_hand, "output"), np.array([[3], [2]], dtype=np.float32)),
        Case("with biases, by hand", (x, shifted, "output"), np.array([[4.5], [1.5]], dtype=np.float32)),
        Case("d_ff as wide as d_model, as many tokens", (draw(3, 3), weights(3, 3), "output")),
        Case("all sizes unequal", (draw(2, 3), weights(3, 5), "output")),
        Case("a batch, large numbers", ((10 * draw(2, 3, 4)).round(1), weights(4, 6), "output")),
        Case("a gradient", (draw(3, 2), weights(2, 4), "gradient of expand.weight")),
    ]


def _with(base: type, forward: Callable, **methods: Callable) -> type:
    """A layer with another forward pass."""
    return type(base.__name__, (base,), {"forward": forward} | methods)


def _prepared(base: type, prepare: Callable) -> type:
    """A layer to which something is done at the end of `__init__`."""

    def __init__(self, *sizes):
        base.__init__(self, *sizes)
        prepare(self)

    return type(base.__name__, (base,), {"__init__": __init__})


def _frozen(name: str) -> Callable:
    return lambda layer: getattr(layer, name).requires_grad_(False)


def _hidden(name: str) -> Callable:
    """As an attribute of the class, or of anything else that is not searched for layers."""

    def hide(layer):
        part = getattr(layer, name)
        delattr(layer, name)
        layer.__dict__[name] = part

    return hide


def _dropping(rate: float) -> Callable:
    return lambda self, x: self.contract(F.dropout(torch.relu(self.expand(x)), rate))


feed_forward_mistakes = [
    Mistake(
        "no activation between",
        _with(FeedForward, lambda self, x: self.contract(self.expand(x))),
        "Two linear maps in a row are one linear map. What bends between them?",
    ),
    Mistake(
        "the activation comes at the end",
        _with(FeedForward, lambda self, x: torch.relu(self.contract(self.expand(x)))),
        "The result must be able to be negative, since it is added to x. The ReLU belongs between the two maps.",
    ),
    Mistake(
        "an activation between and another at the end",
        _with(FeedForward, lambda self, x: torch.relu(self.contract(torch.relu(self.expand(x))))),
        "Between is right. The last map has none: what is added to x may be negative.",
    ),
    Mistake(
        "the activation comes first",
        _with(FeedForward, lambda self, x: self.contract(self.expand(torch.relu(x)))),
        "What is negative in x is lost before the first map saw it. First expand.",
    ),
    Mistake(
        "activations before both maps",
        _with(FeedForward, lambda self, x: self.contract(torch.relu(self.expand(torch.relu(x))))),
        "One activation, between the maps.",
    ),
    Mistake(
        "GELU instead of ReLU",
        _with(FeedForward, lambda self, x: self.contract(F.gelu(self.expand(x)))),
        "Newer models use it, this exercise the ReLU of 2017: what is below 0 becomes exactly 0.",
        also=(
            _with(FeedForward, lambda self, x: self.contract(F.gelu(self.expand(x), approximate="tanh"))),
            _with(FeedForward, lambda self, x: self.contract(F.silu(self.expand(x)))),
        ),
    ),
    Mistake(
        "a sigmoid or tanh instead of ReLU",
        _with(FeedForward, lambda self, x: self.contract(torch.sigmoid(self.expand(x)))),
        "ReLU lets what is above 0 pass unchanged, however large.",
        also=(_with(FeedForward, lambda self, x: self.contract(torch.tanh(self.expand(x)))),),
    ),
    Mistake(
        "softmax instead of ReLU",
        _with(FeedForward, lambda self, x: self.contract(torch.softmax(self.expand(x), dim=-1))),
        "Nothing competes here, and nothing needs the sum 1.",
    ),
    Mistake(
        "a leaky ReLU",
        _with(FeedForward, lambda self, x: self.contract(F.leaky_relu(self.expand(x)))),
        "What is below 0 should become 0, not small.",
    ),
    Mistake(
        "the wrong side is kept: what is above 0 becomes 0",
        _with(FeedForward, lambda self, x: self.contract(self.expand(x).clamp(max=0))),
        "max(x, 0), not min(x, 0).",
    ),
    Mistake(
        "x is added here",
        _with(FeedForward, lambda self, x: x + self.contract(torch.relu(self.expand(x)))),
        "The residual connection belongs to the layer around it, which would add x a second time.",
    ),
    Mistake(
        "the two maps in the wrong order",
        _with(FeedForward, lambda self, x: self.expand(torch.relu(self.contract(x)))),
        "First to d_ff, then back.",
    ),
    Mistake(
        "`contract` is not used",
        _with(FeedForward, lambda self, x: torch.relu(self.expand(x))),
        "What comes out should be as wide as what went in.",
    ),
    Mistake(
        "the tokens are mixed: the maps go along the wrong axis",
        _with(
            FeedForward,
            lambda self, x: self.contract(torch.relu(self.expand(x.transpose(-1, -2)))).transpose(-1, -2),
        ),
        "Each token is worked on alone. nn.Linear takes the last axis, the features, as it is.",
    ),
    Mistake(
        "a norm of its own",
        _with(FeedForward, lambda self, x: self.contract(torch.relu(self.expand(F.layer_norm(x, x.shape[-1:]))))),
        "The norm belongs to the layer around it.",
    ),
    Mistake(
        "dropout that is never switched off",
        _with(FeedForward, _dropping(0.1)),
        "`F.dropout(x, p)` drops always, and an nn.Dropout that is made in `forward` too. Say when: `training=self.training`. This "
        "exercise needs none.",
        also=(
            _with(FeedForward, _dropping(0.2)),
            _with(FeedForward, _dropping(0.5)),
            _with(FeedForward, lambda self, x: F.dropout(self.contract(torch.relu(self.expand(x))), 0.1)),
        ),
    ),
    Mistake(
        "the gradient is cut off",
        _with(FeedForward, lambda self, x: FeedForward.forward(self, x).detach()),
        "The numbers are right, and nothing will be learned.",
        also=(_with(FeedForward, lambda self, x: self.contract(torch.relu(self.expand(x)).detach())),),
    ),
    Mistake(
        "a part of the layer is not trained",
        _prepared(FeedForward, _hidden("expand")),
        "The numbers are right, and some of them will never be learned. Both maps are made in `__init__` and given to `self`, and "
        "their `requires_grad` stays True.",
        also=(
            _prepared(FeedForward, _hidden("contract")),
            _prepared(FeedForward, _frozen("expand")),
            _prepared(FeedForward, _frozen("contract")),
        ),
    ),
]

# EncoderLayer ---------------------------------------------------------------------------------------------------------


class EncoderLayer(nn.Module):
    """Attention, then feed-forward, each x + f(norm(x)): [..., n, d_model] -> [..., n, d_model]."""

    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_attention = nn.LayerNorm(d_model)
        self.norm_feed_forward = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        """x [..., n, d_model], mask [..., n, n], True = may attend -> [..., n, d_model]"""
        x = x + self.attention(self.norm_attention(x), mask=mask)
        return x + self.feed_forward(self.norm_feed_forward(x))


def call_encoder_layer(answer, x, mask, n_heads, weights, look_at):
    """Make a layer in which each linear map hands on what it gets, set these weights, and call it."""
    if is_stub(answer):
        return ...
    d_model = x.shape[-1]
    d_ff = len(weights.get("feed_forward.expand.bias", x[..., 0, :].ravel()[:d_model]))
    maps = [f"attention.{name}" for name in ("query", "key", "value", "output")]
    maps += ["feed_forward.expand", "feed_forward.contract"]
    standard = {f"{name}.weight": np.eye(d_model) for name in maps} | {
        f"{name}.bias": np.zeros(d_model) for name in maps
    }
    layer = build(answer, d_model, n_heads, d_ff, weights=standard | weights)
    return look(layer, (x,) if mask is None else (x, mask), standard | weights, look_at)


def encoder_layer_cases(rng):
    def draw(*shape):
        return rng.normal(size=shape).round(1)

    def drawn(d_model, d_ff):
        shapes = {f"attention.{name}": (d_model, d_model) for name in ("query", "key", "value", "output")}
        shapes |= {"feed_forward.expand": (d_ff, d_model), "feed_forward.contract": (d_model, d_ff)}
        weights = {f"{name}.weight": draw(*shape) for name, shape in shapes.items()}
        weights |= {f"{name}.bias": draw(shape[0]) for name, shape in shapes.items()}
        for name in ("norm_attention", "norm_feed_forward"):
            weights |= {f"{name}.weight": 1 + draw(d_model) / 2, f"{name}.bias": draw(d_model)}
        return {name: weight.round(1) for name, weight in weights.items()}

    zeros, none = np.zeros((2, 2)), None
    nothing = {"attention.output.weight": zeros, "feed_forward.contract.weight": zeros}
    x = np.array([[1.0, 5.0], [4.0, 2.0]])
    plus = nothing | {"attention.output.bias": np.array([0.0, 10.0])}
    shares = nothing | {"feed_forward.contract.weight": np.eye(2)}
    norms = {"norm_attention.bias": draw(3), "norm_feed_forward.weight": np.array([2.0, 0.5, 1.0])}
    causal = np.tri(3, dtype=bool)
    return [
        Case("both parts find nothing: x comes out, by hand", (x, none, 1, nothing, "output"), x.astype(np.float32)),
        Case(
            "attention adds 10 to the second feature, by hand",
            (x, none, 1, plus, "output"),
            np.array([[1, 15], [4, 12]], dtype=np.float32),
        ),
        Case(
            "feed-forward adds the positive part of the norm, by hand",
            (x, none, 1, shares, "output"),
            np.array([[1, 6], [5, 2]], dtype=np.float32),
        ),
        Case("three tokens of three features", ((draw(3, 3) * 3).round(1), none, 1, norms, "output")),
        Case("a mask that lets nobody look ahead", ((draw(3, 3) * 3).round(1), causal, 1, norms, "output")),
        Case("two heads, all weights drawn", (draw(3, 4), causal, 2, drawn(4, 3), "output")),
        Case("a batch", (draw(2, 3, 4), none, 2, drawn(4, 5), "output")),
        Case("a gradient", (draw(3, 4), none, 2, drawn(4, 5), "gradient of attention.query.weight")),
    ]


def _encoder(forward: Callable) -> type:
    """The layer with another forward pass; `forward` gets attention as a function of x and the mask alone."""

    def run(self, x, mask=None):
        return forward(
            x,
            lambda query, *rest: self.attention(query, *rest, mask=mask),
            self.feed_forward,
            self.norm_attention,
            self.norm_feed_forward,
        )

    return _with(EncoderLayer, run)


def _two_steps(first: Callable, second: Callable) -> type:
    """The layer as two steps; each is a function of (x, part, norm)."""
    return _encoder(lambda x, attend, feed, norm_a, norm_f: second(first(x, attend, norm_a), feed, norm_f))


def _step(x, part, norm):
    return x + part(norm(x))


def _no_residual(x, part, norm):
    return part(norm(x))


def _normed_residual(x, part, norm):
    x = norm(x)
    return x + part(x)


def _no_norm(x, part, norm):
    return x + part(x)


def _norm_after(x, part, norm):
    return norm(x + part(x))


def _norm_of_what_was_found(x, part, norm):
    return x + norm(part(x))


def _found_alone(x, part, norm):
    return x + part(norm(x)).detach()


def _mask_as_key(self, x, mask=None):
    return _step(x + self.attention(self.norm_attention(x), mask), self.feed_forward, self.norm_feed_forward)


def _all_named(self, x, mask=None):
    tokens = self.norm_attention(x)
    found = x + self.attention(tokens, tokens, tokens, mask)
    return found + self.feed_forward(self.norm_feed_forward(found))


encoder_layer_mistakes = [
    Mistake(
        "no residual connection",
        _two_steps(_no_residual, _no_residual),
        "If both parts found nothing, what should come out? Each is *added* to what was there.",
    ),
    Mistake(
        "the attention is not added to x but replaces it",
        _two_steps(_no_residual, _step),
        "The second step is right. Do the same in the first.",
    ),
    Mistake(
        "the feed-forward part is not added but replaces what was there",
        _two_steps(_step, _no_residual),
        "The first step is right. Do the same in the second.",
    ),
    Mistake(
        "the residual connection starts from the normalised x",
        _two_steps(_normed_residual, _normed_residual),
        "If both parts found nothing, x should come out, not its norm. Do not overwrite x by norm(x).",
        ("ln08",),
    ),
    Mistake(
        "in the first step the residual connection starts from the normalised x",
        _two_steps(_normed_residual, _step),
        "The second step is right. In the first, x itself is what the attention is added to.",
    ),
    Mistake(
        "in the second step the residual connection starts from the normalised x",
        _two_steps(_step, _normed_residual),
        "The first step is right. In the second, what came out of it is what the feed-forward part is added to.",
    ),
    Mistake(
        "the second residual connection starts from the input of the layer",
        _encoder(lambda x, attend, feed, norm_a, norm_f: x + feed(norm_f(x + attend(norm_a(x))))),
        "What the attention found reaches the feed-forward part, and is then lost. What enters the second sum?",
        ("ln09",),
    ),
    Mistake(
        "both parts look at the input of the layer, side by side",
        _encoder(lambda x, attend, feed, norm_a, norm_f: x + attend(norm_a(x)) + feed(norm_f(x))),
        "The feed-forward part should work on what the attention found. (Some large models do it side by side, for speed.)",
    ),
    Mistake(
        "post-norm: the norm of the sum, as in 2017",
        _two_steps(_norm_after, _norm_after),
        "Here the norm stands before each part, and nothing stands behind the sum.",
    ),
    Mistake(
        "what was found is normalised, not what goes in",
        _two_steps(_norm_of_what_was_found, _norm_of_what_was_found),
        "x + f(norm(x)), not x + norm(f(x)).",
    ),
    Mistake(
        "no norm at all",
        _two_steps(_no_norm, _no_norm),
        "Each part gets norm(x). Two norms stand ready in __init__.",
    ),
    Mistake(
        "the attention gets x without a norm",
        _two_steps(_no_norm, _step),
        "The second step is right. Do the same in the first.",
    ),
    Mistake(
        "the feed-forward part gets what was not normalised",
        _two_steps(_step, _no_norm),
        "The first step is right. Do the same in the second.",
    ),
    Mistake(
        "a norm behind the layer as well",
        _encoder(lambda x, attend, feed, norm_a, norm_f: norm_f(_step(_step(x, attend, norm_a), feed, norm_f))),
        "The sum runs on as it is, to the next layer. The one norm at the end of the stack is not part of the layer.",
        also=(_two_steps(_step, lambda x, part, norm: norm(x + part(x))),),
    ),
    Mistake(
        "one norm is used for both parts",
        _encoder(lambda x, attend, feed, norm_a, norm_f: _step(_step(x, attend, norm_a), feed, norm_a)),
        "Each part has a norm with a gain and a shift of its own.",
        also=(_encoder(lambda x, attend, feed, norm_a, norm_f: _step(_step(x, attend, norm_f), feed, norm_f)),),
    ),
    Mistake(
        "the two norms are exchanged",
        _encoder(lambda x, attend, feed, norm_a, norm_f: _step(_step(x, attend, norm_f), feed, norm_a)),
        "Their names say where they belong.",
    ),
    Mistake(
        "only the query is normalised",
        _encoder(lambda x, attend, feed, norm_a, norm_f: _step(x + attend(norm_a(x), x, x), feed, norm_f)),
        "In self-attention query, key and value come from one and the same thing: attention(norm(x)).",
        ("ln10",),
        also=(
            _encoder(lambda x, attend, feed, norm_a, norm_f: _step(x + attend(norm_a(x), norm_a(x), x), feed, norm_f)),
        ),
    ),
    Mistake(
        "first the feed-forward part, then the attention",
        _encoder(lambda x, attend, feed, norm_a, norm_f: _step(_step(x, feed, norm_f), attend, norm_a)),
        "First the tokens exchange, then each works on what it has.",
    ),
    Mistake(
        "the feed-forward part is forgotten",
        _two_steps(_step, lambda x, part, norm: x),
        "There is a second step: the same again, with `feed_forward` and its norm.",
    ),
    Mistake(
        "the attention is forgotten",
        _two_steps(lambda x, part, norm: x, _step),
        "No token hears of another one. The first step: `attention` and its norm.",
    ),
    Mistake(
        "the mask is not handed on",
        _with(EncoderLayer, lambda self, x, mask=None: EncoderLayer.forward(self, x)),
        "Everything is right without a mask. `attention(..., mask=mask)`.",
    ),
    Mistake(
        "the mask is turned around",
        _with(EncoderLayer, lambda self, x, mask=None: EncoderLayer.forward(self, x, None if mask is None else ~mask)),
        "True means: may attend, here as in `attention`. Hand it on as it is.",
    ),
    Mistake(
        "the mask is handed to `attention` in second place, where the key stands",
        _with(EncoderLayer, _mask_as_key),
        "`attention(query, key, value, mask)`: in second place the mask is taken for the key. Write `mask=mask`.",
    ),
    Mistake(
        "the gradient is cut off",
        _with(EncoderLayer, torch.no_grad()(EncoderLayer.forward)),
        "The numbers are right, and a part of the layer, or all of it, will never be learned.",
        also=(
            _encoder(lambda x, attend, feed, norm_a, norm_f: _step(x + attend(norm_a(x)).detach(), feed, norm_f)),
            _encoder(lambda x, attend, feed, norm_a, norm_f: _found_alone(_step(x, attend, norm_a), feed, norm_f)),
        ),
    ),
]

# transformer_parameters -----------------------------------------------------------------------------------------------


def transformer_parameters(n_layers, d_model, n_heads, d_ff, n_symbols):
    """Count the numbers that an encoder of pre-norm layers, its last norm, and an embedding that also reads have to learn."""
    attention = 4 * d_model * d_model + 4 * d_model
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    return n_layers * (attention + feed_forward + 2 * norm) + norm + n_symbols * d_model


def transformer_parameters_cases(rng):
    return [
        Case("one layer, by hand", (1, 2, 1, 3, 0), 53),
        Case("with an embedding of 5 symbols, by hand", (1, 2, 1, 3, 5), 63),
        Case("two heads", (1, 4, 2, 16, 0)),
        Case("three layers, all sizes unequal", (3, 8, 4, 20, 7)),
        Case("the base model of 2017, its encoder", (6, 512, 8, 2048, 37_000)),
        Case("other sizes", (int(rng.integers(2, 9)), 24, 6, int(rng.integers(25, 90)), int(rng.integers(8, 99)))),
    ]


def _parts(
    *,
    weights: Callable = lambda d, h, f: 4 * d * d,
    biases: Callable = lambda d, h, f: 4 * d,
    maps: Callable = lambda d, h, f: 2 * d * f,
    map_biases: Callable = lambda d, h, f: f + d,
    norms: Callable = lambda d: 4 * d,
    last: Callable = lambda d: 2 * d,
    embedding: Callable = lambda s, d: s * d,
    total: Callable = lambda n, layer, last, embedding: n * layer + last + embedding,
) -> Callable:
    """The count in parts, of which a mistake replaces some."""

    def count(n_layers, d_model, n_heads, d_ff, n_symbols):
        sizes = d_model, n_heads, d_ff
        layer = weights(*sizes) + biases(*sizes) + maps(*sizes) + map_biases(*sizes) + norms(d_model)
        return total(n_layers, layer, last(d_model), embedding(n_symbols, d_model))

    return count


def _none(*_):
    return 0


transformer_parameters_mistakes = [
    Mistake(
        "the biases of the linear maps are not counted",
        _parts(biases=_none, map_biases=_none),
        "nn.Linear has a bias, one number for each thing that comes out. There are six linear maps in a layer.",
    ),
    Mistake(
        "the biases of the attention, or the two norms of each layer, are not counted",
        _parts(biases=_none),
        "4 d_model numbers of each layer are missing. Its four projections have so many biases, and its two norms, a gain and a "
        "shift each, have as many.",
    ),
    Mistake(
        "the biases of the feed-forward part are not counted",
        _parts(map_biases=_none),
        "`expand` has d_ff of them, `contract` d_model.",
    ),
    Mistake(
        "both biases of the feed-forward part are as long as d_ff",
        _parts(map_biases=lambda d, h, f: 2 * f),
        "A bias is added to what comes *out*. What comes out of `contract`?",
    ),
    Mistake(
        "both biases of the feed-forward part are as long as d_model",
        _parts(map_biases=lambda d, h, f: 2 * d),
        "A bias is added to what comes *out*. What comes out of `expand`?",
    ),
    Mistake(
        "the attention is multiplied by the number of heads",
        _parts(weights=lambda d, h, f: h * 4 * d * d, biases=lambda d, h, f: h * 4 * d),
        "Lesson 05: more heads are narrower heads. They share d_model.",
        also=(
            _parts(weights=lambda d, h, f: h * 4 * d * d),
            _parts(weights=lambda d, h, f: (3 * h + 1) * d * d, biases=lambda d, h, f: (3 * h + 1) * d),
        ),
    ),
    Mistake(
        "the matrices of one head only",
        _parts(weights=lambda d, h, f: 4 * d * (d // h), biases=lambda d, h, f: 3 * (d // h) + d),
        "The heads stand side by side in one matrix [d_model, d_model]. All of them learn.",
        also=(
            _parts(weights=lambda d, h, f: 4 * d * (d // h)),
            _parts(weights=lambda d, h, f: 3 * d * (d // h) + d * d, biases=lambda d, h, f: 3 * (d // h) + d),
        ),
    ),
    Mistake(
        "the attention's output projection is not counted",
        _parts(weights=lambda d, h, f: 3 * d * d, biases=lambda d, h, f: 3 * d),
        "Query, key, value, and the one that mixes the heads.",
        also=(_parts(weights=lambda d, h, f: 3 * d * d),),
    ),
    Mistake(
        "one of the two maps of the feed-forward part",
        _parts(maps=lambda d, h, f: d * f),
        "To d_ff, and back.",
        also=(_parts(maps=lambda d, h, f: d * f, map_biases=lambda d, h, f: f),),
    ),
    Mistake(
        "d_ff is taken as 4 d_model",
        _parts(maps=lambda d, h, f: 8 * d * d, map_biases=lambda d, h, f: 5 * d),
        "Usually it is, here it is an argument.",
    ),
    Mistake(
        "no norm is counted",
        _parts(norms=_none, last=_none),
        "A norm learns a gain and a shift for each feature.",
    ),
    Mistake(
        "one norm in a layer",
        _parts(norms=lambda d: 2 * d),
        "One before the attention, one before the feed-forward part.",
    ),
    Mistake(
        "the last norm is not counted",
        _parts(last=_none),
        "Behind the last layer of a pre-norm encoder stands one more norm.",
    ),
    Mistake(
        "a norm has a gain, but no shift",
        _parts(norms=lambda d: 2 * d, last=lambda d: d),
        "`weight` and `bias`: two numbers for each feature.",
    ),
    Mistake(
        "a norm has two numbers in all",
        _parts(norms=lambda d: 4, last=lambda d: 2),
        "Each *feature* has a gain and a shift.",
    ),
    Mistake(
        "a last norm in each layer",
        _parts(total=lambda n, layer, last, embedding: n * (layer + last) + embedding),
        "The third norm stands once, behind the stack.",
    ),
    Mistake(
        "the embedding is counted twice",
        _parts(embedding=lambda s, d: 2 * s * d),
        "The reader uses the same matrix as the embedding. It is learned once.",
        also=(_parts(embedding=lambda s, d: 2 * s * d + s),),
    ),
    Mistake(
        "the embedding is not counted",
        _parts(embedding=_none),
        "Each symbol has a row of d_model numbers, and they are learned.",
    ),
    Mistake(
        "the reader has a bias",
        _parts(embedding=lambda s, d: s * d + s),
        "The reader is the embedding's matrix and nothing else.",
    ),
    Mistake(
        "each layer has an embedding",
        _parts(total=lambda n, layer, last, embedding: n * (layer + embedding) + last),
        "Symbols become vectors once, before the first layer.",
        also=(_parts(total=lambda n, layer, last, embedding: n * (layer + last + embedding)),),
    ),
    Mistake(
        "the layers share their weights",
        _parts(total=lambda n, layer, last, embedding: layer + last + embedding),
        "Each layer has weights of its own: times n_layers.",
    ),
]

check = Checker(
    "09",
    [
        Exercise(
            "layer_norm",
            blocks.layer_norm,
            layer_norm,
            layer_norm_cases,
            layer_norm_mistakes,
            [
                _norm(),
                _norm(variance=lambda x, mean, dim: x.var(dim=dim, keepdim=True, correction=0)),
                _norm(divide=lambda centred, variance, eps: centred * torch.rsqrt(variance + eps)),
                lambda x, weight, bias, eps: F.layer_norm(x, x.shape[-1:], weight, bias, eps),
            ],
            call=call_layer_norm,
        ),
        Exercise(
            "FeedForward",
            blocks.FeedForward,
            FeedForward,
            feed_forward_cases,
            feed_forward_mistakes,
            [
                _with(FeedForward, lambda self, x: self.contract(F.relu(self.expand(x)))),
                _with(FeedForward, lambda self, x: self.contract(self.expand(x).clamp(min=0))),
                _with(
                    FeedForward, lambda self, x: self.contract(F.dropout(F.relu(self.expand(x)), 0.1, self.training))
                ),
            ],
            call=call_feed_forward,
        ),
        Exercise(
            "EncoderLayer",
            blocks.EncoderLayer,
            EncoderLayer,
            encoder_layer_cases,
            encoder_layer_mistakes,
            [_with(EncoderLayer, _all_named)],
            call=call_encoder_layer,
        ),
        Exercise(
            "transformer_parameters",
            counting.transformer_parameters,
            transformer_parameters,
            transformer_parameters_cases,
            transformer_parameters_mistakes,
            [_parts()],
        ),
    ],
)
