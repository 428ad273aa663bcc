"""Exercises on tensors and on layers: arrays go in, tensors are handed on, arrays come out.

The cases of such an exercise are plain arrays, as everywhere, so that a verdict can print them and another process can be
handed them. Its ``call`` turns them into tensors of float32, PyTorch's usual dtype, builds the learner's layer, sets its
weights through the attribute names that the stub gives, and turns the result back into an array.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnlib.exercises.compare import Unfit


def tensor(value: Any) -> Any:
    """An array as a tensor, floating ones as float32; also within tuples, lists and dicts; anything else as it is."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.astype(np.float32) if value.dtype.kind == "f" else value.copy())
    if isinstance(value, (tuple, list)):
        return type(value)(map(tensor, value))
    if isinstance(value, dict):
        return {name: tensor(part) for name, part in value.items()}
    return value


def array(result: Any, what: str = "It returns") -> Any:
    """A tensor as an array; also within tuples. What a stub returns (`...`, None) is handed on; all else is unfit."""
    if isinstance(result, Tensor):
        return result.detach().cpu().numpy()
    if result is ... or result is None:
        return result
    if isinstance(result, tuple) or (isinstance(result, list) and all(isinstance(part, Tensor) for part in result)):
        return tuple(array(part, f"Result {number} is") for number, part in enumerate(result, start=1))
    name = type(result).__name__
    kind = "a NumPy array" if isinstance(result, np.ndarray) else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
    todo = "Use PyTorch's functions all the way." if isinstance(result, np.ndarray) else "Try torch.tensor(...)."
    raise Unfit(f"{what} {kind}; expected a tensor. {todo}")


def on_tensors(function: Any, *args: Any) -> Any:
    """Call a learner's function with tensors in place of arrays; an input that it changes is changed in the array too."""
    given, before = tensor(args), tensor(args)
    result = array(function(*given))
    for arg, now, was in zip(args, given, before):
        if not same(now, was):
            if isinstance(arg, np.ndarray):
                arg[...] = np.resize(now.detach().numpy().astype(arg.dtype), arg.shape)
            elif isinstance(arg, list):
                arg[:] = now
            elif isinstance(arg, dict):
                arg.clear()
                arg.update(now)
    return result


def same(now: Any, was: Any) -> bool:
    """Whether a value is what it was, tensors and what holds them included."""
    if isinstance(was, Tensor):
        return now.shape == was.shape and torch.allclose(now, was, rtol=0, atol=0, equal_nan=True)
    if isinstance(was, (tuple, list)):
        return len(now) == len(was) and all(map(same, now, was))
    if isinstance(was, dict):
        return now.keys() == was.keys() and all(same(now[name], was[name]) for name in was)
    return now == was


def build(layer_class: Any, *args: Any, weights: dict[str, np.ndarray], **options: Any) -> nn.Module:
    """Make a learner's layer in evaluation mode, with these weights, or raise what is unfit about it.

    Ask ``is_stub`` first: a stub has no weights to be set.

    Parameters
    ----------
    layer_class : the learner's class
    args, options :
        What it is made with.
    weights : dict of arrays
        By their names in the layer, such as ``query.weight`` [out, in] and ``query.bias`` [out].
    """
    name = layer_class.__name__
    if not issubclass(layer_class, nn.Module):
        raise Unfit(f"`{name}` is no layer of PyTorch: write `class {name}(nn.Module):`.")
    if "forward" not in vars(layer_class) and layer_class.forward is nn.Module.forward:
        raise Unfit(f"`{name}` has no `forward`: is its name right, and is it indented below `class {name}`?")
    layer = layer_class(*args, **options).eval()
    for path, value in weights.items():
        _set(layer, path, tensor(value))
    return layer


def is_stub(layer_class: Any) -> bool:
    """Whether `forward` still does nothing but return `...`."""
    code = getattr(getattr(layer_class, "forward", None), "__code__", None)
    return code is not None and not code.co_names and ... in code.co_consts


def _set(layer: nn.Module, path: str, value: Tensor) -> None:
    """Copy one array into a layer's parameter."""
    *owners, last = path.split(".")
    owner = layer
    for depth, attribute in enumerate(owners):
        reached = ".".join(owners[: depth + 1])
        if not hasattr(owner, attribute):
            raise Unfit(
                f"`self.{reached}` is missing: make it in `__init__`. The check sets `{path}` through this name."
            )
        owner = getattr(owner, attribute)
    parameter = getattr(owner, last, None)
    if not isinstance(parameter, Tensor):
        kind = type(owner).__name__
        if last == "bias" and isinstance(owner, nn.Module):
            raise Unfit(f"`self.{'.'.join(owners)}` has no bias; expected one, as nn.Linear makes it.")
        raise Unfit(
            f"`self.{'.'.join(owners) or last}` is of type {kind}, without a `{last}`; expected a layer such as nn.Linear."
        )
    if parameter.shape != value.shape:
        raise Unfit(
            f"`{path}` has shape {list(parameter.shape)}; expected {list(value.shape)}"
            + (f", as nn.Linear({value.shape[1]}, {value.shape[0]}) has it." if value.ndim == 2 else ".")
        )
    with torch.no_grad():
        parameter.copy_(value)
