"""Checks at the door, shared by all modules: each returns what it was given, ready to use, or says what to try.

Every error is a ValueError that names the argument and says what was given, what was expected, and what to try.
"""

import math
from operator import index

import numpy as np

FLOATS = (np.float16, np.float32, np.float64)


def check_floats(**arrays: np.ndarray) -> list[np.ndarray]:
    """Return the named arrays, all of one floating dtype, or raise a ValueError that says which one is not and why."""
    checked, first = [], None
    for name, array in arrays.items():
        if isinstance(array, np.ma.MaskedArray):
            raise ValueError(
                f"{name} is a NumPy masked array, whose mask would be lost here. Try {name}.data, and give what may be "
                f"attended as mask=~np.ma.getmaskarray({name})."
            )
        array = np.asarray(array)
        if array.dtype not in FLOATS:
            wanted = "float64" if array.dtype.kind == "f" else "float32"
            raise ValueError(
                f"{name} has dtype {array.dtype}; expected float16, float32 or float64, in this machine's byte order. "
                f"Try np.asarray({name}).astype(np.{wanted})."
            )
        first = first or (name, array.dtype)
        if array.dtype != first[1]:
            raise ValueError(
                f"{name} is {array.dtype} and {first[0]} is {first[1]}; expected one dtype, since nothing is promoted "
                f"behind your back. Try {name}.astype(np.{first[1]})."
            )
        checked.append(array)
    return checked


def widen(array: np.ndarray | None) -> np.ndarray | None:
    """Return float16 as float32, to compute in; any other array, a boolean mask or None as it is."""
    return array.astype(np.float32) if array is not None and array.dtype == np.float16 else array


def check_shapes(query: np.ndarray, key: np.ndarray, value: np.ndarray | None = None) -> list[np.ndarray]:
    """Return query, key (and value) as arrays that fit together, or raise a ValueError that names the axis."""
    named = {"query": query, "key": key} | ({} if value is None else {"value": value})
    arrays = check_floats(**named)
    for (name, array), axes in zip(
        zip(named, arrays), ("[..., n_query, d_k]", "[..., n_key, d_k]", "[..., n_key, d_v]")
    ):
        if array.ndim < 2:
            raise ValueError(
                f"{name} has shape {list(array.shape)}; expected {axes}, at least two axes. Try {name}[None, :] for a "
                f"single {name}{', or value[:, None] for values of one number' if name == 'value' else ''}."
            )
    query, key = arrays[:2]
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query has d_k={query.shape[-1]} in its last axis and key has d_k={key.shape[-1]}; expected the same width. "
            f"query is {list(query.shape)}, key is {list(key.shape)}. Try projecting both to one d_k, or swapping the "
            f"last two axes of the one that is transposed."
        )
    if value is not None and key.shape[-2] != arrays[2].shape[-2]:
        raise ValueError(
            f"key has n_key={key.shape[-2]} rows and value has {arrays[2].shape[-2]}; expected one value for each key. "
            f"key is {list(key.shape)}, value is {list(arrays[2].shape)}. Try the same tokens for both."
        )
    try:
        np.broadcast_shapes(*(array.shape[:-2] for array in arrays))
    except ValueError:
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in zip(named, arrays))
        raise ValueError(
            f"the leading axes do not broadcast: {shapes}; expected equal sizes, or 1, in all but the last two axes. "
            f"Try inserting an axis of size 1, as in key[:, None]."
        ) from None
    return arrays


def check_mask(mask: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return the mask as an array that fits scores of this shape and dtype, or raise a ValueError that says why not."""
    if isinstance(mask, np.ma.MaskedArray):
        raise ValueError("mask is a NumPy masked array, whose own mask would be lost here. Try mask.filled(False).")
    mask = np.asarray(mask)
    if mask.dtype.kind == "f" and mask.dtype not in FLOATS:
        raise ValueError(f"mask has dtype {mask.dtype}; expected {dtype}. Try mask.astype(np.{dtype}).")
    if mask.dtype != bool and mask.dtype not in FLOATS:
        raise ValueError(
            f"mask has dtype {mask.dtype}; expected booleans (True = may attend) or {dtype} numbers to add to the scores. "
            f"Try mask.astype(bool) if 1 means: may attend."
        )
    if mask.dtype != bool and mask.dtype != dtype:
        raise ValueError(
            f"mask is {mask.dtype} and the scores are {dtype}; expected one dtype. Try mask.astype(np.{dtype}), or a "
            f"boolean mask (True = may attend)."
        )
    try:
        fits = np.broadcast_shapes(mask.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"mask has shape {list(mask.shape)}, which does not broadcast to the scores [..., n_query, n_key] = "
            f"{list(shape)}. Try inserting axes of size 1, as in mask[:, None, :], so that the axes line up from the right."
        )
    return mask


def check_plain(name: str, array: np.ndarray) -> np.ndarray:
    """Return an array of any dtype, or raise a ValueError if it is a masked array, whose mask would be lost."""
    if isinstance(array, np.ma.MaskedArray):
        raise ValueError(
            f"{name} is a NumPy masked array, whose mask would be lost here; expected a plain array. Try {name}.data, or "
            f"{name}.filled(...) with what should stand where it is masked."
        )
    return np.asarray(array)


def check_whole(name: str, value: int, least: int | None = None) -> int:
    """Return a whole number of at least ``least``, or raise a ValueError; True and 2.0 are no whole numbers here."""
    bound = "" if least is None else f" of at least {least}"
    try:
        whole = None if isinstance(value, bool) else index(value)
    except TypeError:
        whole = None
    if whole is None or (least is not None and whole < least):
        raise ValueError(f"{name}={value!r}; expected a whole number{bound}. Try {name}={least or 1}.")
    return whole


def check_heads(width: int, n_heads: int, name: str = "d_model") -> int:
    """Return the width of one head, or raise a ValueError that says which numbers of heads would do."""
    n_heads = check_whole("n_heads", n_heads, 1)
    if width % n_heads:
        divisors = [number for number in range(1, width + 1) if width % number == 0]
        nearest = [*[d for d in divisors if d < n_heads][-1:], *[d for d in divisors if d > n_heads][:1]]
        raise ValueError(
            f"{name}={width} cannot be split into {n_heads} heads: {width} / {n_heads} is not a whole number. "
            f"Try n_heads={' or '.join(map(str, nearest))}."
        )
    return width // n_heads


def check_real(name: str, value: float, otherwise: str = "") -> float:
    """Return one real number as a Python float, which promotes no array, or raise a ValueError."""
    if np.ndim(value) or np.asarray(value).dtype.kind not in "iuf":
        raise ValueError(f"{name} is {value!r}; expected one real number{otherwise}. Try {name}=1.0.")
    return float(value)


def check_scale(scale: float | None, d_k: int) -> float:
    """Return what the products of queries and keys are multiplied by: the scale, or 1 / √d_k if it is None."""
    if scale is None:
        return 1 / math.sqrt(max(d_k, 1))  # d_k = 0: the products are 0 whatever the scale
    return check_real("scale", scale, ", or None for 1 / √d_k")
