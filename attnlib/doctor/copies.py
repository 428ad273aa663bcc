"""A copy of a module that may be changed."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn


def copy_of(layer: Callable) -> Callable:
    """A copy that may be changed, on the CPU; functions have no state and are used as they are."""
    if not isinstance(layer, nn.Module):
        return layer
    left = [
        value
        for module in layer.modules()
        for value in vars(module).values()
        if isinstance(value, Tensor) and value.grad_fn
    ]
    return copy.deepcopy(
        layer, {id(value): value.detach().clone() for value in left}
    )  # what a call left cannot be copied


def convert(layer: Callable, dtype: torch.dtype, training: bool = False) -> None:
    """Set dtype and mode, also of what ``.to`` does not reach (told as a finding of its own)."""
    if not isinstance(layer, nn.Module):
        return
    layer.to("cpu", dtype).train(training)
    for module in list(layer.modules()):
        for name, value in list(vars(module).items()):
            if isinstance(value, Tensor) and value.is_floating_point():
                vars(module)[name] = value.detach().to("cpu", dtype)
            for item in (  # what hides in lists
                value if isinstance(value, (list, tuple)) else value.values() if isinstance(value, dict) else ()
            ):
                if isinstance(item, nn.Module) and name not in ("_modules", "_parameters", "_buffers"):
                    convert(item, dtype, training)
                elif isinstance(item, nn.Parameter) and name != "_parameters":
                    item.data = item.data.to("cpu", dtype)
