"""Checks at the door, shared by all modules: each returns what it was given, ready to use, or says what to try.

Every error is a ValueError that names the argument and says what was given, what was expected, and what to try. Checks of
sizes are those of Part I.
"""

import math
from numbers import Real

import numpy as np
import torch
from torch import Tensor

from attnlib.numpy.checks import check_heads, check_real, check_whole

__all__ = ["check_floats", "check_heads", "check_mask", "check_rate", "check_scale", "check_shapes", "check_whole"]

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def check_floats(**tensors: Tensor) -> list[Tensor]:
    """Return the named tensors, all of one floating dtype, or raise a ValueError that says which one is not and why."""
    first = None
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            remedy = f"torch.from_numpy({name})" if isinstance(tensor, np.ndarray) else f"torch.tensor({name})"
            raise ValueError(
                f"{name} is {_kind(tensor)}; expected a tensor. Try {remedy}, or attnlib.numpy for arrays of NumPy."
            )
        if tensor.dtype not in FLOATS:
            raise ValueError(
                f"{name} has dtype {_name(tensor.dtype)}; expected float16, bfloat16, float32 or float64. "
                f"Try {name}.to(torch.float32), or an embedding if these are ids of tokens."
            )
        first = first or (name, tensor.dtype)
        if tensor.dtype != first[1]:
            raise ValueError(
                f"{name} is {_name(tensor.dtype)} and {first[0]} is {_name(first[1])}; expected one dtype, since nothing "
                f"is promoted behind your back. Try {name}.to({first[0]}.dtype)."
            )
    return list(tensors.values())


def check_shapes(query: Tensor, key: Tensor, value: Tensor | None = None) -> None:
    """Raise a ValueError that names the axis if query, key (and value) do not fit together."""
    named = {"query": query, "key": key} | ({} if value is None else {"value": value})
    check_floats(**named)
    axes = ("[..., n_query, d_k]", "[..., n_key, d_k]", "[..., n_key, d_v]")
    for (name, tensor), wanted in zip(named.items(), axes):
        if tensor.ndim < 2:
            raise ValueError(
                f"{name} has shape {list(tensor.shape)}; expected {wanted}, at least two axes. Try {name}[None, :] for a "
                f"single {name}{', or value[:, None] for values of one number' if name == 'value' else ''}."
            )
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query has d_k={query.shape[-1]} in its last axis and key has d_k={key.shape[-1]}; expected the same width. "
            f"query is {list(query.shape)}, key is {list(key.shape)}. Try projecting both to one d_k, or swapping the "
            f"last two axes of the one that is transposed."
        )
    if value is not None and key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"key has n_key={key.shape[-2]} rows and value has {value.shape[-2]}; expected one value for each key. "
            f"key is {list(key.shape)}, value is {list(value.shape)}. Try the same tokens for both."
        )
    leading = [tuple(tensor.shape[:-2]) for tensor in named.values()]
    if not _broadcast(*leading):
        shapes = ", ".join(f"{name} {list(tensor.shape)}" for name, tensor in named.items())
        raise ValueError(
            f"the leading axes do not broadcast: {shapes}; expected equal sizes, or 1, in all but the last two axes. "
            f"Try inserting an axis of size 1, as in key[:, None]."
        )


def check_mask(mask: Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Raise a ValueError that says why, if a mask does not fit scores of this shape and dtype."""
    if not isinstance(mask, Tensor):
        raise ValueError(
            f"mask is {_kind(mask)}; expected a tensor of booleans (True = may attend) or of {_name(dtype)} numbers to add "
            f"to the scores. Try torch.as_tensor(mask)."
        )
    if mask.dtype != torch.bool and mask.dtype not in FLOATS:
        raise ValueError(
            f"mask has dtype {_name(mask.dtype)}; expected booleans (True = may attend) or {_name(dtype)} numbers to add "
            f"to the scores. Try mask.bool() if 1 means: may attend."
        )
    if mask.dtype != torch.bool and mask.dtype != dtype:
        raise ValueError(
            f"mask is {_name(mask.dtype)} and the scores are {_name(dtype)}; expected one dtype. Try mask.to(query.dtype), "
            f"or a boolean mask (True = may attend)."
        )
    if mask.ndim > len(shape) or any(mine not in (1, its) for mine, its in zip(mask.shape[::-1], shape[::-1])):
        raise ValueError(
            f"mask has shape {list(mask.shape)}, which does not broadcast to the scores [..., n_query, n_key] = "
            f"{list(shape)}. Try inserting axes of size 1, as in mask[:, None, :], so that the axes line up from the right."
        )


def check_width(name: str, tensor: Tensor, width: int, axes: str, weight: Tensor | None = None) -> None:
    """Raise a ValueError if a tensor has not the width that a layer was made for, or not the dtype of its weight."""
    check_floats(**{name: tensor})
    if tensor.ndim < 2 or tensor.shape[-1] != width:
        label = axes.removesuffix("]").split(", ")[-1]
        raise ValueError(
            f"{name} has shape {list(tensor.shape)}; expected {axes} with {label}={width}, as this layer was made for, and "
            f"at least two axes. Try a layer of that width, or {name}[None, :] for a single token."
        )
    if weight is not None and weight.dtype != tensor.dtype and not torch.is_autocast_enabled(tensor.device.type):
        raise ValueError(
            f"{name} is {_name(tensor.dtype)} and the weights of this layer are {_name(weight.dtype)}; expected one dtype "
            f"(NumPy makes float64, PyTorch's layers are float32). Try {name}.to(torch.{_name(weight.dtype)}), or layer.to(...)."
        )


def check_eps(eps: float) -> float:
    """Return what is added to a variance, or raise a ValueError if it is no number of at least 0."""
    if isinstance(eps, bool) or not isinstance(eps, Real) or not 0 <= eps < math.inf:
        raise ValueError(f"eps={eps!r}; expected a number of at least 0. Try eps=1e-5.")
    return float(eps)


def check_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return a floating dtype, or raise a ValueError."""
    if dtype not in FLOATS:
        raise ValueError(f"dtype is {dtype}; expected a floating one. Try dtype=torch.float32.")
    return dtype


def check_scale(scale: float | None, d_k: int) -> float:
    """Return what the products of queries and keys are multiplied by: the scale, or 1 / √d_k if it is None."""
    if scale is None:
        return 1 / math.sqrt(max(d_k, 1))  # d_k = 0: the products are 0 whatever the scale
    if isinstance(scale, Tensor):
        raise ValueError("scale is a tensor; expected a number. Try multiplying the query by it, with scale=1.0.")
    if type(scale) in (int, float):
        return float(scale)  # what torch.compile can follow
    return check_real("scale", scale, ", or None for 1 / √d_k")


def check_rate(name: str, rate: float) -> float:
    """Return a rate of dropout, or raise a ValueError; 1 would drop everything."""
    if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 <= rate < 1:
        raise ValueError(
            f"{name}={rate!r}; expected a number from 0 to below 1, a share of what is dropped. Try {name}=0.1."
        )
    return float(rate)


def _broadcast(*shapes: tuple[int, ...]) -> bool:
    """Whether shapes broadcast together."""
    longest = max(map(len, shapes))
    known = [1] * longest
    for shape in shapes:
        for place, size in enumerate(shape, start=longest - len(shape)):
            if size != 1 and known[place] != 1 and size != known[place]:
                return False
            known[place] = known[place] if size == 1 else size
    return True


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _kind(value: object) -> str:
    """What a value is, with its article."""
    if isinstance(value, np.ndarray):
        return "an array of NumPy"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
