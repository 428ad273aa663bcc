"""Heads: an axis in front of the tokens, and attention along it (lesson 08).

Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin, *Attention Is All You Need* (2017), section 3.2.2.
"""

import torch
from torch import Tensor

from attnlib.torch.attention import attend
from attnlib.torch.checks import check_floats, check_heads, check_mask, check_width


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Cut the features of every token into n_heads equal parts, and give the parts an axis in front of the tokens.

    Parameters
    ----------
    x : tensor [..., n, d_model]
    n_heads : int
        Must divide d_model.

    Returns
    -------
    heads : tensor [..., n_heads, n, d_head]
        ``heads[..., h, i, c]`` is ``x[..., i, h * d_head + c]``. A view: no number is copied.

    Raises
    ------
    ValueError
        If x has fewer than two axes, or n_heads does not divide d_model.
    """
    if x.ndim < 2:
        raise ValueError(
            f"x has shape {list(x.shape)}; expected [..., n, d_model], at least two axes. Try x[None, :] for a single token."
        )
    d_head = check_heads(x.shape[-1], n_heads)
    return x.unflatten(-1, (n_heads, d_head)).transpose(-2, -3)


def merge_heads(heads: Tensor) -> Tensor:
    """Put the parts of every token side by side again: the inverse of ``split_heads``.

    Parameters
    ----------
    heads : tensor [..., n_heads, n, d_head]

    Returns
    -------
    x : tensor [..., n, n_heads * d_head]

    Raises
    ------
    ValueError
        If heads has fewer than three axes.
    """
    if heads.ndim < 3:
        raise ValueError(
            f"heads has shape {list(heads.shape)}; expected [..., n_heads, n, d_head], at least three axes. "
            f"Try heads[None] for a single head."
        )
    return heads.transpose(-2, -3).flatten(-2)  # flatten copies where it must; view would raise


def multi_head_attention(
    x: Tensor,
    w_query: Tensor,
    w_key: Tensor,
    w_value: Tensor,
    w_output: Tensor,
    n_heads: int,
    mask: Tensor | None = None,
    *,
    return_weights: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Let every token look n_heads times at once, and mix what was found: ``attnlib.numpy.multi_head_attention`` on tensors.

    Parameters
    ----------
    x : tensor [..., n, d_model]
    w_query, w_key : tensor [d_model, n_heads * d_k]
    w_value : tensor [d_model, n_heads * d_v]
        Used as ``x @ w``; the weight of an ``nn.Linear`` is the transposed.
    w_output : tensor [n_heads * d_v, d_model]
    n_heads : int
    mask : tensor or None
        With at most as many axes as x it holds for all heads; with one more, ``[..., n_heads, n, n]``, each has its own.
    return_weights : bool
        Also return the weights.

    Returns
    -------
    output : tensor [..., n, d_model]
    weights : tensor [..., n_heads, n, n]
        Only if asked for: one map for each head, never averaged.

    Raises
    ------
    ValueError
        If dtypes or shapes do not fit; the message says which and what to try.
    """
    named = {"w_query": w_query, "w_key": w_key, "w_value": w_value, "w_output": w_output}
    check_floats(x=x, **named)
    if w_query.ndim != 2:
        raise ValueError(f"w_query has shape {list(w_query.shape)}; expected a matrix [d_model, n_heads * d_k].")
    check_width("x", x, w_query.shape[0], "[..., n, d_model]")
    query, key, value = (split_heads(x @ w, n_heads) for w in (w_query, w_key, w_value))
    mask = with_head_axis(mask, x, x, n_heads)
    found, weights = attend(query, key, value, mask, 0.0, return_weights)
    output = merge_heads(found) @ w_output
    return (output, weights) if return_weights else output


def with_head_axis(mask: Tensor | None, query: Tensor, key: Tensor, n_heads: int) -> Tensor | None:
    """The mask, checked against the layer's input, with an axis for the heads where it has none."""
    leading = _leading(query, key)
    if mask is None:
        return None
    n_query, n_key = query.shape[-2], key.shape[-2]
    dtype = query.dtype if not (isinstance(mask, Tensor) and _autocast(query)) else mask.dtype
    if isinstance(mask, Tensor) and mask.ndim > len(leading) + 2:
        check_mask(mask, (*leading, n_heads, n_query, n_key), dtype)
        return mask
    check_mask(mask, (*leading, n_query, n_key), dtype)
    return mask if mask.ndim < 3 else mask.unsqueeze(-3)


def _leading(query: Tensor, key: Tensor) -> tuple[int, ...]:
    try:
        return tuple(torch.broadcast_shapes(query.shape[:-2], key.shape[:-2]))
    except RuntimeError:
        raise ValueError(
            f"query is {list(query.shape)} and key is {list(key.shape)}; expected the same batch. Try key.expand(...) if one "
            f"sequence is looked at by all."
        ) from None


def _autocast(query: Tensor) -> bool:
    return torch.is_autocast_enabled(query.device.type)
