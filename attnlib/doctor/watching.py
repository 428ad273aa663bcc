"""What happens inside a layer while it runs: its products, its softmax, its dropout, seen without changing it.

PyTorch shows every call of its functions to a ``TorchFunctionMode``. From the products alone one can tell what attention
is made of: a product that ends in [n_query, n_key] compares queries with keys, and the product that such a matrix then
enters mixes the values. No attribute has to have a certain name. NumPy functions cannot be watched.
"""

import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

PRODUCTS = {"matmul", "__matmul__", "bmm", "baddbmm", "einsum"}
ADDS = {"add", "add_", "__add__", "__radd__", "__iadd__"}
KEPT = PRODUCTS | ADDS | {"linear", "softmax", "dropout", "layer_norm", "scaled_dot_product_attention"}


@dataclass(eq=False)
class Call:
    """One call of a PyTorch function: its name, the tensors it was given (copies) and its result (a copy)."""

    name: str
    given: list[Tensor]
    result: Tensor
    equation: str = ""
    rate: float = 0.0  # of the dropout inside the fused attention


@dataclass(eq=False)
class Look:
    """One attention: ``query [..., n_query, d]``, ``key``, ``value``, ``weights [..., n_query, n_key]``, ``output``.

    Leading axes are as the layer has them: [batch, heads], [batch * heads] or [batch]. What was not seen is None.
    ``dropped`` is the input of a dropout that was applied to scores or weights.
    """

    weights: Tensor
    query: Tensor | None = None
    key: Tensor | None = None
    value: Tensor | None = None
    output: Tensor | None = None
    dropped: Tensor | None = None
    entering: int = 0  # the place, among all calls, where queries and keys are compared
    leaving: int = 0  # and where the values are mixed


@dataclass
class Watched:
    """All calls of one run, in order, and the looks found among them."""

    calls: list[Call] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)


class Watch(TorchFunctionMode):
    """Keeps copies of what enters and leaves the functions that attention is made of."""

    def __init__(self):
        super().__init__()
        self.calls: list[Call] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        given = [copied(item) for item in flat(args) if isinstance(item, Tensor)] if name in KEPT else []
        result = func(*args, **kwargs)
        if name == "multi_head_attention_forward":
            self.calls.append(of_torch(func, args, kwargs))
        elif name in KEPT and isinstance(result, Tensor):
            if name == "scaled_dot_product_attention":
                given.append(copied(fused_weights(*args, **kwargs)))
            equation = args[0] if name == "einsum" and isinstance(args[0], str) else ""
            rate = fused_rate(*args, **kwargs) if name == "scaled_dot_product_attention" else 0.0
            self.calls.append(Call(name, given, copied(result), equation, rate))
        return result


def copied(tensor: Tensor) -> Tensor:
    """A copy that later changes in place do not reach."""
    return tensor.detach().clone()


def flat(args) -> list:
    """The arguments, with the members of lists among them."""
    return [item for arg in args for item in (arg if isinstance(arg, (list, tuple)) else [arg])]


def fused_weights(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **options) -> Tensor:
    """The weights that PyTorch's fused attention does not return: its output for values that are the unit vectors."""
    options = {name: option for name, option in options.items() if name in ("scale", "enable_gqa")}
    units = torch.eye(key.shape[-2], dtype=query.dtype, device=query.device).expand(*key.shape[:-1], -1)
    return F.scaled_dot_product_attention(query, key, units, attn_mask, 0.0, is_causal, **options)


def fused_rate(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **options) -> float:
    """The rate of dropout that PyTorch's fused attention was given."""
    return dropout_p


def of_torch(func, args, kwargs) -> Call:
    """``nn.MultiheadAttention`` in one call: run once more for the weights of each head [batch, heads, n_query, n_key]."""
    names = (
        "query key value embed_dim_to_check num_heads in_proj_weight in_proj_bias bias_k bias_v add_zero_attn dropout_p"
    )
    named = dict(zip((names + " out_proj_weight out_proj_bias").split(), args)) | kwargs
    _, weights = func(**(named | {"need_weights": True, "average_attn_weights": False, "training": False}))
    return Call("multi_head_attention_forward", [], copied(weights))


def operands(call: Call, axes: str) -> tuple[Tensor, Tensor] | None:
    """Both operands of a product, each with its last two axes in the order that the course uses, or None.

    ``axes`` is "scores" for a product [.., n_query, d] with [.., n_key, d], "mix" for [.., n_query, n_key] with
    [.., n_key, d].
    """
    if len(call.given) < 2:
        return None
    first, second = call.given[-2:]
    if not call.equation:
        if min(first.ndim, second.ndim) < 2:
            return None
        return (first, second.transpose(-1, -2)) if axes == "scores" else (first, second)
    left, _, out = call.equation.replace(" ", "").partition("->")
    one, _, two = left.partition(",")
    if not out or "." in left or len(out) < 3:
        return None
    summed = [letter for letter in one if letter in two and letter not in out]
    own_one = [letter for letter in one if letter not in two and letter in out]
    own_two = [letter for letter in two if letter not in one and letter in out]
    if not (len(summed) == len(own_two) == 1 <= len(own_one)):
        return None
    shared = [letter for letter in out if letter in one and letter in two]
    own_one.sort(
        key=(out if axes == "scores" else one).index
    )  # the rows last; before them heads, if the keys have none
    ends = own_two + summed if axes == "scores" else summed + own_two
    first = first.permute([one.index(letter) for letter in shared + own_one + summed])
    second = second.permute([two.index(letter) for letter in shared + ends])
    for size in first.shape[len(shared) : -2]:
        second = second.unsqueeze(len(shared)).expand(*second.shape[: len(shared)], size, *second.shape[len(shared) :])
    return first, second


def find_looks(calls: list[Call], n_query: int, n_key: int) -> list[Look]:
    """The attentions among the calls of one run."""
    looks, compared = [], None
    ends = (n_query, n_key)
    for place, call in enumerate(calls):
        if call.name == "multi_head_attention_forward":
            looks.append(Look(call.result, entering=place, leaving=place))
        elif call.name == "scaled_dot_product_attention" and call.given[-1].shape[-2:] == ends:
            query, key, value = call.given[:3]
            looks.append(Look(call.given[-1], query, key, value, call.result, None, place, place))
        elif call.name in PRODUCTS:
            pair = operands(call, "scores")
            if (
                pair
                and pair[0].shape[-2] == n_query
                and pair[1].shape[-2] == n_key
                and tuple(result_ends(call)) == ends
            ):
                compared = (place, *pair)
                continue
            pair = operands(call, "mix")
            if pair and tuple(pair[0].shape[-2:]) == ends and pair[1].shape[-2] == n_key:
                look = Look(pair[0], value=pair[1], output=mixed(call), entering=place, leaving=place)
                if compared is not None:
                    look.entering, look.query, look.key = compared
                inside = [each for each in calls[look.entering : place] if each.name == "dropout"]
                look.dropped = inside[-1].given[0] if inside and inside[-1].given[0].shape[-2:] == ends else None
                looks.append(look)
                compared = None
    return looks


def result_ends(call: Call) -> list[int]:
    """The last two sizes of a product [.., n_query, n_key], wherever einsum put these axes."""
    if not call.equation:
        return list(call.result.shape[-2:])
    one, _, rest = call.equation.replace(" ", "").partition(",")
    two, _, out = rest.partition("->")
    sizes = dict(zip(out, call.result.shape))
    rows, columns = ([sizes[k] for k in out if k not in other] for other in (two, one))
    return rows[-1:] + columns


def mixed(call: Call) -> Tensor:
    """The mixed values as [.., n_query, d], wherever einsum put these axes."""
    if not call.equation:
        return call.result
    one, _, rest = call.equation.replace(" ", "").partition(",")
    two, _, out = rest.partition("->")
    order = [
        *(k for k in out if k in one and k in two),
        *(k for k in one if k in out and k not in two),
        *(k for k in out if k not in one),
    ]
    return call.result.permute([out.index(letter) for letter in order])


def slope_of(weights: Tensor, products: Tensor, allowed: Tensor) -> float | None:
    """What the products of queries and keys were multiplied by before softmax, or None if that explains no weights.

    Where weights are softmax(c · products), log weight is c · product up to one number a row; both are centred by row
    over the allowed keys and compared. A bias in the scores, or another similarity, gives None.
    """
    if weights.shape != products.shape:
        return None
    kept = allowed & (weights > 1e-12)
    count = kept.sum(-1, keepdim=True).clamp(min=1)
    logs = torch.where(kept, weights.clamp(min=1e-30).log(), 0.0)
    products = torch.where(kept, products, 0.0)
    logs = torch.where(kept, logs - logs.sum(-1, keepdim=True) / count, 0.0)
    products = torch.where(kept, products - products.sum(-1, keepdim=True) / count, 0.0)
    square = float((products * products).sum())
    if square < 1e-12:
        return None
    slope = float((products * logs).sum()) / square
    left = float((logs - slope * products).abs().max())
    return slope if math.isfinite(slope) and left < 1e-5 * max(float(logs.abs().max()), 1e-6) else None
