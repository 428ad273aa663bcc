"""Attention with several heads: several looks at once, side by side (lesson 05).

Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin, *Attention Is All You Need* (2017), section 3.2.2.

A head is an axis in front of the tokens: ``[..., n, d_model]`` becomes ``[..., n_heads, n, d_head]``, and the attention of
lesson 02, which takes any leading axes, does the rest. Columns ``h * d_head`` to ``(h + 1) * d_head`` of a weight matrix
belong to head h.
"""

import numpy as np

from attnlib.numpy.attention import scaled_dot_product_attention
from attnlib.numpy.checks import check_floats, check_heads, check_mask, check_plain, check_whole, widen


def split_heads(x: np.ndarray, n_heads: int) -> np.ndarray:
    """Cut the features of every token into n_heads equal parts, and give the parts an axis in front of the tokens.

    Parameters
    ----------
    x : array [..., n, d_model]
        Of any dtype, since nothing is computed.
    n_heads : int
        Must divide d_model.

    Returns
    -------
    heads : array [..., n_heads, n, d_head]
        ``heads[..., h, i, c]`` is ``x[..., i, h * d_head + c]``, with d_head = d_model / n_heads. A view where NumPy can
        make one: copy it before you write into it.

    Raises
    ------
    ValueError
        If x has fewer than two axes or is a masked array, or n_heads does not divide d_model.

    Notes
    -----
    Cutting gives [..., n, n_heads, d_head], and the axes n and n_heads change places. A reshape to the final shape alone
    would run without error, and hand each head some whole tokens instead of a part of every token.
    """
    x = check_plain("x", x)
    if x.ndim < 2:
        raise ValueError(
            f"x has shape {list(x.shape)}; expected [..., n, d_model], at least two axes. Try x[None, :] for a single token."
        )
    *leading, n, d_model = x.shape
    d_head = check_heads(d_model, n_heads)
    return x.reshape(*leading, n, n_heads, d_head).swapaxes(-2, -3)


def merge_heads(heads: np.ndarray) -> np.ndarray:
    """Put the parts of every token side by side again: the inverse of ``split_heads``.

    Parameters
    ----------
    heads : array [..., n_heads, n, d_head]
        Of any dtype.

    Returns
    -------
    x : array [..., n, n_heads * d_head]

    Raises
    ------
    ValueError
        If heads has fewer than three axes, or is a masked array.
    """
    heads = check_plain("heads", heads)
    if heads.ndim < 3:
        raise ValueError(
            f"heads has shape {list(heads.shape)}; expected [..., n_heads, n, d_head], at least three axes. "
            f"Try heads[None] for a single head."
        )
    *leading, n_heads, n, d_head = heads.shape
    return heads.swapaxes(-2, -3).reshape(*leading, n, n_heads * d_head)


def multi_head_attention(
    x: np.ndarray,
    w_query: np.ndarray,
    w_key: np.ndarray,
    w_value: np.ndarray,
    w_output: np.ndarray,
    n_heads: int,
    mask: np.ndarray | None = None,
    *,
    return_weights: bool = False,
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Let every token look n_heads times at once, and mix what was found (Vaswani et al. 2017, section 3.2.2).

    Parameters
    ----------
    x : array [..., n, d_model]
        float16, float32 or float64, the same for all arrays.
    w_query, w_key : array [d_model, n_heads * d_k]
    w_value : array [d_model, n_heads * d_v]
        Used as ``x @ w``. (PyTorch stores them transposed.)
    w_output : array [n_heads * d_v, d_model]
        Mixes the heads. Another number of columns is allowed, and is then the width of the output.
    n_heads : int
    mask : array or None
        Boolean: True = may attend. Floating: added to the scores; needs the dtype of x. With at most as many axes as x,
        ``[..., n, n]``, it holds for all heads. With one axis more, ``[..., n_heads, n, n]``, each head has its own.
    return_weights : bool
        Also return the weights.

    Returns
    -------
    output : array [..., n, d_model]
        Same dtype as x.
    weights : array [..., n_heads, n, n]
        Only if asked for: one map for each head, never averaged.

    Raises
    ------
    ValueError
        If dtypes or shapes do not fit; the message says which and what to try.

    Notes
    -----
    float16 is computed in float32 inside. There are no biases; append a column of ones to x and a row to each of w_query,
    w_key and w_value to have them.
    """
    named = {"x": x, "w_query": w_query, "w_key": w_key, "w_value": w_value, "w_output": w_output}
    x, *weights = check_weights(named, n_heads)
    dtype = x.dtype
    if mask is not None:
        mask = with_head_axis(mask, x, n_heads)
    x, *projections, w_output, mask = map(widen, (x, *weights, mask))
    query, key, value = (split_heads(x @ w, n_heads) for w in projections)  # [..., n_heads, n, d_k or d_v]
    found, maps = scaled_dot_product_attention(query, key, value, mask, return_weights=True)
    output = (merge_heads(found) @ w_output).astype(dtype, copy=False)
    return (output, maps.astype(dtype, copy=False)) if return_weights else output


def count_parameters(
    d_model: int, n_heads: int, d_k: int | None = None, d_v: int | None = None, bias: bool = True
) -> int:
    """Count the numbers that a layer of multi-head attention learns.

    Parameters
    ----------
    d_model : int
        Width of what comes in and goes out.
    n_heads : int
    d_k, d_v : int, optional
        Width of queries and keys, and of values, in *each* head; d_model / n_heads if not given.
    bias : bool
        Whether each of the four projections also adds one number to each of its columns.

    Returns
    -------
    count : int
        The sum of ``w.size`` over w_query, w_key, w_value and w_output, and of their biases.

    Raises
    ------
    ValueError
        If a size is no whole number, or d_k or d_v is left out and n_heads does not divide d_model.
    """
    d_model, n_heads = check_whole("d_model", d_model, 0), check_whole("n_heads", n_heads, 1)
    d_k, d_v = (w if w is None else check_whole(name, w, 0) for name, w in (("d_k", d_k), ("d_v", d_v)))
    if d_k is None or d_v is None:
        d_head = check_heads(d_model, n_heads)
        d_k, d_v = d_head if d_k is None else d_k, d_head if d_v is None else d_v
    columns = n_heads * (d_k + d_k + d_v)  # of w_query, w_key and w_value together
    count = d_model * columns + n_heads * d_v * d_model
    return count + (columns + d_model if bias else 0)


def previous_and_first(n: int, strength: float) -> np.ndarray:
    """Weights, set by hand, by which each of n tokens fetches the vector before it and the first one.

    Parameters
    ----------
    n : int
        Number of tokens. A token is ``[its n numbers | its place, one of n columns]``, so d_model is 2 n.
    strength : float
        0: all tokens are looked at alike; 20: enough to put more than .99 of the weight on one token.

    Returns
    -------
    weights : array [4, 2 n, 2 n], float64
        w_query, w_key, w_value, w_output for two heads of width n. From row 1 on, the output is
        ``[numbers of the previous token | numbers of the first token]``.

    Raises
    ------
    ValueError
        If n is no whole number, or below 1.
    """
    n = check_whole("n", n, 1)
    w_query, w_key, w_value = np.zeros((3, 2 * n, 2 * n))
    w_query[n:, :n] = strength * np.eye(n, k=-1)  # head 0: place i asks for place i − 1
    w_query[n:, n] = strength  # head 1: every place asks for place 0
    w_key[n:] = np.hstack([np.eye(n), np.eye(n)])  # both: a key is the place
    w_value[:n] = np.hstack([np.eye(n), np.eye(n)])  # both: a value is the numbers
    return np.array([w_query, w_key, w_value, np.eye(2 * n)])


def check_weights(named: dict[str, np.ndarray], n_heads: int) -> list[np.ndarray]:
    """Return x and the four weights as arrays that fit together, or raise a ValueError that names the one that does not."""
    x, w_query, w_key, w_value, w_output = arrays = check_floats(**named)
    if x.ndim < 2:
        raise ValueError(
            f"x has shape {list(x.shape)}; expected [..., n, d_model], at least two axes. Try x[None, :] for a single token."
        )
    for name, w in list(zip(named, arrays))[1:]:
        if w.ndim != 2:
            raise ValueError(f"{name} has shape {list(w.shape)}; expected a matrix, two axes, the heads side by side.")
    for name, w in (("w_query", w_query), ("w_key", w_key), ("w_value", w_value)):
        if len(w) != x.shape[-1]:
            raise ValueError(
                f"{name} has {len(w)} rows and x has d_model={x.shape[-1]}; expected one row for each feature, since it "
                f"is used as x @ {name}. Try {name}.T if it was stored as [out, in], as PyTorch does."
            )
        check_heads(w.shape[-1], n_heads, f"{name}.shape[-1]")
    if w_query.shape != w_key.shape:
        raise ValueError(
            f"w_query is {list(w_query.shape)} and w_key is {list(w_key.shape)}; expected the same shape, since queries "
            f"meet keys. Try one d_k for both."
        )
    if len(w_output) != w_value.shape[-1]:
        raise ValueError(
            f"w_output has {len(w_output)} rows and w_value has {w_value.shape[-1]} columns; expected n_heads * d_v of "
            f"both, since w_output mixes the values of all heads. Try w_output.T if it was stored as [out, in]."
        )
    return arrays


def with_head_axis(mask: np.ndarray, x: np.ndarray, n_heads: int) -> np.ndarray:
    """The mask, checked, with an axis for the heads where it has none."""
    *leading, n, _ = x.shape
    if np.ndim(mask) > x.ndim:
        return check_mask(mask, (*leading, n_heads, n, n), x.dtype)
    mask = check_mask(mask, (*leading, n, n), x.dtype)
    return mask if mask.ndim < 3 else mask[..., None, :, :]
