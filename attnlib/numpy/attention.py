"""Softmax and scaled dot-product attention (lesson 02).

Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin, *Attention Is All You Need* (2017), equation 1.

The axes of this course, in order: ``[..., n_query, d_k]`` for queries, ``[..., n_key, d_k]`` for keys,
``[..., n_key, d_v]`` for values, ``[..., n_query, n_key]`` for scores, weights and masks. Leading axes (batch, heads)
are any in number and broadcast. Scores, weights and values are plain numbers without a unit.
"""

import math

import numpy as np

FLOATS = (np.float16, np.float32, np.float64)


def softmax(scores: np.ndarray, axis: int = -1) -> np.ndarray:
    """Turn scores into weights that are positive and sum to 1 along one axis.

    Parameters
    ----------
    scores : array [..., n]
        Any real numbers, also ±1000; float16, float32 or float64. −inf means: gets no weight.
    axis : int
        The axis whose entries compete: the keys, hence the last one.

    Returns
    -------
    weights : array [..., n]
        Same shape and dtype. A row that holds only −inf becomes zeros; a row with NaN or +inf becomes NaN.

    Raises
    ------
    ValueError
        If scores are not floating, or are a single number, or the axis does not exist.

    Notes
    -----
    The maximum is subtracted first, which changes no weight, since exp(s − c) / Σ exp(s − c) is the same for every c.
    float16 is computed in float32 inside. Bridle, *Probabilistic Interpretation of Feedforward Classification Network
    Outputs* (1990), is where the name comes from.
    """
    (scores,) = check_floats(scores=scores)
    if scores.ndim == 0:
        raise ValueError("scores is a single number; expected [..., n], at least one axis. Try scores[None].")
    work = scores.astype(np.float32) if scores.dtype == np.float16 else scores
    maximum = np.max(work, axis=axis, keepdims=True, initial=-np.inf)
    maximum[maximum == -np.inf] = 0  # nothing to attend to: exp(−inf − 0) = 0 for the whole row
    with np.errstate(invalid="ignore", under="ignore", over="ignore"):
        weights = work - maximum
        np.exp(weights, out=weights)
        total = np.sum(weights, axis=axis, keepdims=True)
        total[total == 0] = 1
        weights /= total
        return weights.astype(scores.dtype, copy=False)


def masked_softmax(scores: np.ndarray, mask: np.ndarray | None = None, axis: int = -1) -> np.ndarray:
    """Softmax over the positions that a mask allows.

    Parameters
    ----------
    scores : array [..., n_query, n_key]
    mask : array, broadcasts to the shape of scores, or None
        Boolean: True = may attend. Floating: added to the scores as it is, so −inf forbids; needs the scores' dtype.
    axis : int
        The axis whose entries compete.

    Returns
    -------
    weights : array [..., n_query, n_key]
        Same dtype as scores. Forbidden positions get exactly 0; a row where all is forbidden is all zeros, in every
        dtype, never NaN and never uniform.

    Raises
    ------
    ValueError
        If dtypes or shapes do not fit; the message says which and what to try.
    """
    (scores,) = check_floats(scores=scores)
    if mask is None:
        return softmax(scores, axis)
    mask = check_mask(mask, scores.shape, scores.dtype)
    if mask.dtype == bool:
        return softmax(np.where(mask, scores, scores.dtype.type(-np.inf)), axis)
    if scores.dtype == np.float16:  # two float16 numbers can overflow in their sum
        return masked_softmax(scores.astype(np.float32), mask.astype(np.float32), axis).astype(np.float16)
    with np.errstate(invalid="ignore"):  # −inf forbids, also where the score is infinite or NaN
        return softmax(np.where(mask == -np.inf, mask, scores + mask), axis)


def attention_scores(query: np.ndarray, key: np.ndarray, *, scale: float | None = None) -> np.ndarray:
    """Compare every query with every key: query · key / √d_k.

    Parameters
    ----------
    query : array [..., n_query, d_k]
    key : array [..., n_key, d_k]
        Same dtype as query (float16, float32 or float64).
    scale : float, optional
        What the products are multiplied by; 1 / √d_k if not given (Vaswani et al. 2017, section 3.2.1).

    Returns
    -------
    scores : array [..., n_query, n_key]
        Entry (i, j) compares query i with key j. Same dtype as the inputs.

    Raises
    ------
    ValueError
        If dtypes or shapes do not fit; the message says which and what to try.
    """
    query, key = check_shapes(query, key)
    half = query.dtype == np.float16
    scores = _scores(query.astype(np.float32) if half else query, key.astype(np.float32) if half else key, scale)
    with np.errstate(over="ignore", under="ignore"):
        return scores.astype(query.dtype, copy=False)


def scaled_dot_product_attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    scale: float | None = None,
    return_weights: bool = False,
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V (Vaswani et al. 2017, equation 1).

    Parameters
    ----------
    query : array [..., n_query, d_k]
    key : array [..., n_key, d_k]
    value : array [..., n_key, d_v]
        All three of one dtype: float16, float32 or float64. Leading axes broadcast.
    mask : array, broadcasts to [..., n_query, n_key], or None
        Boolean: True = may attend. Floating: added to the scores; needs the query's dtype.
    scale : float, optional
        What the products are multiplied by; 1 / √d_k if not given.
    return_weights : bool
        Also return the weights.

    Returns
    -------
    output : array [..., n_query, d_v]
        Row i is the mean of the values, weighted by what query i attends to. Same dtype as the inputs.
    weights : array [..., n_query, n_key]
        Only if asked for. Rows sum to 1.

    Raises
    ------
    ValueError
        If dtypes or shapes do not fit; the message says which and what to try.

    Notes
    -----
    A query with nothing to attend to (all forbidden, or n_key = 0) gets zeros. A value that is NaN or infinite makes the
    outputs NaN of all queries that may attend to anything, as in PyTorch, even where it is masked. With d_k = 0 all scores are equal, so the
    output is the mean of the allowed values. float16 is computed in float32 inside.
    """
    query, key, value = check_shapes(query, key, value)
    dtype = query.dtype
    if dtype == np.float16:
        query, key, value = query.astype(np.float32), key.astype(np.float32), value.astype(np.float32)
    scores = _scores(query, key, scale)
    if mask is not None:
        mask = check_mask(mask, scores.shape, dtype)
        mask = mask if mask.dtype == bool else mask.astype(scores.dtype, copy=False)
    weights = masked_softmax(scores, mask)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        output = weights @ value
        if not np.isfinite(output).all():  # 0 times a value that is NaN or infinite, in rows with nothing to attend to
            output = np.where(weights.any(axis=-1, keepdims=True), output, output.dtype.type(0))
        output, weights = output.astype(dtype, copy=False), weights.astype(dtype, copy=False)
    return (output, weights) if return_weights else output


def _scores(query: np.ndarray, key: np.ndarray, scale: float | None) -> np.ndarray:
    if scale is None:
        scale = 1 / math.sqrt(max(query.shape[-1], 1))  # d_k = 0: the products are 0 whatever the scale
    if isinstance(scale, (str, complex)) or np.ndim(scale):
        raise ValueError(f"scale is {scale!r}; expected one real number, or None for 1 / √d_k. Try scale=1.0.")
    scores = query @ key.swapaxes(-1, -2)  # [..., n_query, n_key]
    scores *= float(scale)
    return scores


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
