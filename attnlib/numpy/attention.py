"""Softmax and scaled dot-product attention (lesson 02).

Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin, *Attention Is All You Need* (2017), equation 1.

The axes of this course, in order: ``[..., n_query, d_k]`` for queries, ``[..., n_key, d_k]`` for keys,
``[..., n_key, d_v]`` for values, ``[..., n_query, n_key]`` for scores, weights and masks. Leading axes (batch, heads)
are any in number and broadcast. Scores, weights and values are plain numbers without a unit.
"""

import numpy as np

from attnlib.numpy.checks import check_floats, check_mask, check_scale, check_shapes, widen


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
    work = widen(scores)
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
        return masked_softmax(widen(scores), widen(mask), axis).astype(np.float16)
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
    scores = _scores(widen(query), widen(key), scale)
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
    A query with nothing to attend to (all forbidden, or n_key = 0) gets zeros. To all other queries a value that is NaN
    or infinite shows even where it is masked, as in PyTorch, since 0 · ∞ is NaN. With d_k = 0 all scores are equal, so
    the output is the mean of the allowed values. float16 is computed in float32 inside.
    """
    query, key, value = check_shapes(query, key, value)
    dtype = query.dtype
    query, key, value = map(widen, (query, key, value))
    scores = _scores(query, key, scale)
    if mask is not None:
        mask = widen(check_mask(mask, scores.shape, dtype))
    weights = masked_softmax(scores, mask)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        output = weights @ value
        if not np.isfinite(output).all():  # 0 times a value that is NaN or infinite, in rows with nothing to attend to
            output = np.where(weights.any(axis=-1, keepdims=True), output, output.dtype.type(0))
        output, weights = output.astype(dtype, copy=False), weights.astype(dtype, copy=False)
    return (output, weights) if return_weights else output


def _scores(query: np.ndarray, key: np.ndarray, scale: float | None) -> np.ndarray:
    scale = check_scale(scale, query.shape[-1])
    scores = query @ key.swapaxes(-1, -2)  # [..., n_query, n_key]
    scores *= scale
    return scores
