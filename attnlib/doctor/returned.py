"""What a layer returned: the output and what came with it, out of tuples, dicts, dataclasses and objects."""

import dataclasses

import numpy as np
import torch
from torch import Tensor

ARRAYS = (Tensor, np.ndarray, np.generic)
PLAIN = (str, bytes, int, float, complex, type(None))


class UnreadableError(TypeError):
    """An object came back in which no tensor was found: no fault of the layer, but ``call=`` has to take it out."""


def fields_of(result: object) -> list | None:
    """The values of an object with named parts, or None if it is no such object."""
    if isinstance(result, dict):
        return list(result.values())
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return [getattr(result, each.name) for each in dataclasses.fields(result)]
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return list(result)
    if isinstance(result, (*ARRAYS, *PLAIN, tuple, list, type)):
        return None
    return list(vars(result).values()) if hasattr(result, "__dict__") else []


def arrays_in(result: object, depth: int = 1) -> list:
    """All tensors and arrays among what was returned, in order; those one level deeper where there are no others."""
    named = fields_of(result)
    items = named if named is not None else result if isinstance(result, (tuple, list)) else [result]
    arrays = [item for item in items if isinstance(item, ARRAYS)]
    return arrays or [each for item in items if depth for each in arrays_in(item, depth - 1)]


def parts_of(result: object, lengths: set[int]) -> list[Tensor]:
    """All tensors among what was returned, the output first.

    In a tuple or a list the output comes first. Where parts have names any may: it is the first floating tensor of three
    axes, rather one whose last axis is none of ``lengths``, as that of attention maps is.
    """
    named = fields_of(result) is not None
    tensors = [torch.as_tensor(each) for each in arrays_in(result)]
    if not tensors:
        error = UnreadableError if named else TypeError
        raise error(f"returned {type(result).__name__}, not a tensor or an array")
    if named:
        tensors.sort(
            key=lambda each: (not each.is_floating_point(), each.ndim != 3, each.shape[-1:].numel() in lengths)
        )
    return tensors
