"""Softmax and scaled dot-product attention on tensors (lesson 08).

Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin, *Attention Is All You Need* (2017), equation 1.

Names, axes and masks are those of ``attnlib.numpy.attention``: ``[..., n_query, d_k]`` for queries, ``[..., n_key, d_k]``
for keys, ``[..., n_key, d_v]`` for values, ``[..., n_query, n_key]`` for scores, weights and masks; True = may attend.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlib.torch.checks import check_floats, check_mask, check_rate, check_scale, check_shapes


def softmax(scores: Tensor, axis: int = -1) -> Tensor:
    """Turn scores into weights that are positive and sum to 1 along one axis.

    Parameters
    ----------
    scores : tensor [..., n]
        Any real numbers, of any floating dtype.
    axis : int
        The axis whose entries compete: the keys, hence the last one.

    Returns
    -------
    weights : tensor [..., n]
        Same shape and dtype. A row that holds only −inf becomes zeros, with gradient zero, where ``torch.softmax`` gives
        NaN; a row with NaN or +inf becomes NaN.

    Raises
    ------
    ValueError
        If scores are no floating tensor, or a single number.

    Notes
    -----
    Empty rows are filled with a finite number before softmax and zeroed after it: a NaN that is overwritten in the forward
    pass would come back in the gradient, since 0 · NaN is NaN. Half precision is computed in float32 inside.
    """
    check_floats(scores=scores)
    if scores.ndim == 0:
        raise ValueError("scores is a single number; expected [..., n], at least one axis. Try scores[None].")
    empty = (scores == -torch.inf).all(dim=axis, keepdim=True)
    filled = scores.masked_fill(empty, 0.0)
    return torch.softmax(filled, axis, dtype=_wide(scores.dtype)).to(scores.dtype).masked_fill(empty, 0.0)


def masked_softmax(scores: Tensor, mask: Tensor | None = None, axis: int = -1) -> Tensor:
    """Softmax over the positions that a mask allows.

    Parameters
    ----------
    scores : tensor [..., n_query, n_key]
    mask : tensor, broadcasts to the shape of scores, or None
        Boolean: True = may attend. Floating: added to the scores as it is, so −inf forbids; needs the scores' dtype.
    axis : int
        The axis whose entries compete.

    Returns
    -------
    weights : tensor [..., n_query, n_key]
        Same dtype as scores. Forbidden positions get exactly 0; a row where all is forbidden is all zeros, and so is its
        gradient, in every dtype.

    Raises
    ------
    ValueError
        If dtypes or shapes do not fit; the message says which and what to try.
    """
    check_floats(scores=scores)
    if mask is None:
        return softmax(scores, axis)
    check_mask(mask, tuple(scores.shape), scores.dtype)
    if mask.dtype == torch.bool:
        return softmax(scores.masked_fill(~mask, -torch.inf), axis)
    wide, bias = (
        scores.to(_wide(scores.dtype)),
        mask.to(_wide(mask.dtype)),
    )  # two float16 numbers can overflow in their sum
    summed = torch.where(bias == -torch.inf, bias, wide + bias)  # −inf forbids, also where the score is infinite or NaN
    return softmax(summed, axis).to(scores.dtype)


def attention_scores(query: Tensor, key: Tensor, *, scale: float | None = None) -> Tensor:
    """Compare every query with every key: query · key / √d_k.

    Parameters
    ----------
    query : tensor [..., n_query, d_k]
    key : tensor [..., n_key, d_k]
        Same floating dtype as query.
    scale : float, optional
        What the products are multiplied by; 1 / √d_k if not given (Vaswani et al. 2017, section 3.2.1).

    Returns
    -------
    scores : tensor [..., n_query, n_key]
        Entry (i, j) compares query i with key j. Same dtype as the inputs.

    Raises
    ------
    ValueError
        If dtypes or shapes do not fit; the message says which and what to try.
    """
    check_shapes(query, key)
    wide = _wide(query.dtype)
    return _scores(query.to(wide), key.to(wide), scale).to(query.dtype)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    scale: float | None = None,
    dropout: float = 0.0,
    return_weights: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V (Vaswani et al. 2017, equation 1).

    Parameters
    ----------
    query : tensor [..., n_query, d_k]
    key : tensor [..., n_key, d_k]
    value : tensor [..., n_key, d_v]
        All three of one floating dtype. Leading axes broadcast.
    mask : tensor, broadcasts to [..., n_query, n_key], or None
        Boolean: True = may attend. Floating: added to the scores; needs the query's dtype.
    scale : float, optional
        What the products are multiplied by; 1 / √d_k if not given.
    dropout : float
        Share of the weights that is dropped after softmax, from 0 to below 1; the others are divided by 1 − dropout. A
        layer hands it on in training only: Srivastava, Hinton, Krizhevsky, Sutskever, Salakhutdinov, *Dropout* (2014).
    return_weights : bool
        Also return the weights, as they are before dropout.

    Returns
    -------
    output : tensor [..., n_query, d_v]
        Row i is the mean of the values, weighted by what query i attends to. Same dtype as the inputs.
    weights : tensor [..., n_query, n_key]
        Only if asked for. Rows sum to 1.

    Raises
    ------
    ValueError
        If dtypes or shapes do not fit; the message says which and what to try.

    Notes
    -----
    A query with nothing to attend to (all forbidden, or n_key = 0) gets zeros, and its gradients are zeros.

    What is masked has to be finite. A value that is NaN or infinite shows even where it is masked, since 0 · ∞ is NaN; in
    the fused kernel so does a key.

    Where neither weights nor dropout are asked for, PyTorch's fused kernel computes the same numbers without keeping the
    weights (Dao, Fu, Ermon, Rudra, Ré, *FlashAttention*, 2022). It gets boolean masks only: to a row that a *finite* fill
    masks wholly its backward pass on the CPU (measured with PyTorch 2.13) gives values a gradient n_key times too large.
    """
    check_shapes(query, key, value)
    scale, dropout = check_scale(scale, query.shape[-1]), check_rate("dropout", dropout)
    if mask is not None:
        leading = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
        check_mask(mask, (*leading, query.shape[-2], key.shape[-2]), query.dtype)
    if not return_weights and not dropout and 0 not in (query.shape[-1], key.shape[-2]):
        allowed = _as_boolean(mask)
        if mask is None or allowed is not None:
            if allowed is not None and allowed.ndim < 2:
                allowed = allowed.expand(query.shape[-2], key.shape[-2])  # the kernel wants an axis for the queries
            return F.scaled_dot_product_attention(query, key, value, allowed, scale=scale)
    dtype, wide = query.dtype, _wide(query.dtype)
    scores = _scores(query.to(wide), key.to(wide), scale)
    if mask is not None and mask.dtype != torch.bool:
        mask = mask.to(scores.dtype)
    weights = masked_softmax(scores, mask)
    output = (F.dropout(weights, dropout) @ value.to(weights.dtype)).to(dtype)  # [..., n_query, d_v]
    return (output, weights.to(dtype)) if return_weights else output


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, return_weights: bool
) -> tuple[Tensor, Tensor | None]:
    """Attention as layers call it: always a pair, whose weights are None where they were not asked for."""
    found = scaled_dot_product_attention(query, key, value, mask, dropout=dropout, return_weights=return_weights)
    return found if return_weights else (found, None)


def in_dtype(mask: Tensor | None, query: Tensor) -> Tensor | None:
    """A layer's float mask in the dtype that autocast gave to its queries; any other mask as it is."""
    if isinstance(mask, Tensor) and mask.is_floating_point() and torch.is_autocast_enabled(query.device.type):
        return mask.to(query.dtype)
    return mask


def _scores(query: Tensor, key: Tensor, scale: float | None) -> Tensor:
    return (query * check_scale(scale, query.shape[-1])) @ key.transpose(-1, -2)  # [..., n_query, n_key]


def _wide(dtype: torch.dtype) -> torch.dtype:
    """What a dtype is computed in: half precision in float32."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def _as_boolean(mask: Tensor | None) -> Tensor | None:
    """A mask of booleans, or of 0 and −inf, as booleans; None for any other, and where its numbers cannot be looked at."""
    if mask is None or mask.dtype == torch.bool:
        return mask
    if mask.requires_grad or torch.compiler.is_compiling():
        return None
    allowed = mask == 0
    try:
        return allowed if bool((allowed | (mask == -torch.inf)).all()) else None
    except RuntimeError:  # under vmap, and of a meta tensor
        return None
