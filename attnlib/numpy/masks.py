"""Masks: who may attend to what (lesson 04).

A mask of this course is boolean and says what *may* be attended: True = may. It broadcasts to ``[..., n_query, n_key]``,
and masks are combined by ``&``: a key may be attended if every mask allows it. ``to_additive`` translates a mask for code
that adds it to the scores. Masked softmax itself is in ``attention``.

Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin, *Attention Is All You Need* (2017), section 3.2.3,
is where leftward information flow is prevented by −∞ in the input of softmax.
"""

import numpy as np
from numpy.typing import DTypeLike

from attnlib.numpy.checks import FLOATS, check_plain, check_whole


def padding_mask(lengths: np.ndarray, n_key: int) -> np.ndarray:
    """Allow the tokens of each sentence, and forbid the padding behind them.

    Parameters
    ----------
    lengths : array [batch], integers
        How many tokens each sentence really has; 0 to n_key. A list will do. They are counted before padding, never
        guessed from values that happen to be 0.
    n_key : int
        Length to which the batch was padded.

    Returns
    -------
    mask : array [batch, 1, n_key], bool
        True = may attend. The axis of length 1 stands for the queries: padding is forbidden to all of them alike.

    Raises
    ------
    ValueError
        If lengths are not whole numbers, not one for each sentence, or not between 0 and n_key.
    """
    n_key, lengths = check_whole("n_key", n_key, 0), check_plain("lengths", lengths)
    if lengths.size == 0 and lengths.ndim == 1:
        lengths = lengths.astype(int)  # an empty list would be floating
    if lengths.dtype.kind not in "iu":
        raise ValueError(
            f"lengths has dtype {lengths.dtype}; expected whole numbers, one for each sentence. Try lengths.astype(int), "
            f"or mask.sum(axis=-1) if this is a mask."
        )
    if lengths.ndim != 1:
        raise ValueError(
            f"lengths has shape {list(lengths.shape)}; expected [batch], one number for each sentence. Try "
            f"np.ravel(lengths), which makes a batch of a single sentence too."
        )
    if ((lengths < 0) | (lengths > n_key)).any():
        raise ValueError(
            f"lengths are {lengths.min()} to {lengths.max()} and n_key={n_key}; expected 0 to n_key. Try "
            f"n_key={max(lengths.max(), 0)}, or cut the sentences that are longer."
        )
    return np.arange(n_key) < lengths[:, None, None]


def causal_mask(n_query: int, n_key: int | None = None) -> np.ndarray:
    """Allow every position itself and what came before it; the last query sees the last key.

    Parameters
    ----------
    n_query : int
    n_key : int, optional
        As many as queries if not given. If there are more, the queries are the *last* ones of the sequence, as when
        earlier keys were kept from former calls: query i sees keys 0 to i + n_key − n_query.

    Returns
    -------
    mask : array [n_query, n_key], bool
        True = may attend. A lower triangle when square. With more queries than keys the first n_query − n_key rows
        allow nothing.

    Raises
    ------
    ValueError
        If a size is not a whole number, or below 0.
    """
    n_query = check_whole("n_query", n_query, 0)
    n_key = n_query if n_key is None else check_whole("n_key", n_key, 0)
    return np.tri(n_query, n_key, n_key - n_query, dtype=bool)


def to_additive(mask: np.ndarray, dtype: DTypeLike = np.float64) -> np.ndarray:
    """Translate a boolean mask into numbers that are added to the scores: 0 = may attend, −∞ = may not.

    Parameters
    ----------
    mask : array [...], bool
        True = may attend.
    dtype : float16, float32 or float64
        That of the scores.

    Returns
    -------
    bias : array [...], dtype
        Same shape. Exactly 0 and −inf: softmax after it gives exactly 0 to what is forbidden, in every dtype.

    Raises
    ------
    ValueError
        If the mask is not boolean, or the dtype not floating.
    """
    mask, dtype = check_plain("mask", mask), np.dtype(dtype)
    if mask.dtype != bool:
        raise ValueError(
            f"mask has dtype {mask.dtype}; expected booleans (True = may attend). Try mask.astype(bool) if 1 means: may "
            f"attend, mask == 0 if 0 does."
        )
    if dtype not in FLOATS:
        raise ValueError(f"dtype is {dtype}; expected float16, float32 or float64. Try dtype=scores.dtype.")
    return np.where(mask, dtype.type(0), dtype.type(-np.inf))
