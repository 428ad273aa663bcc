"""Masks of other libraries, translated into those of this course and back (lesson 08).

A mask of this course is boolean and says what *may* be attended: True = may. It broadcasts to ``[..., n_query, n_key]``.
Others differ, and a mask in the wrong convention runs without error:

=====================================================  =====================  ======================================
where                                                  shape                  what forbids
=====================================================  =====================  ======================================
this course, ``F.scaled_dot_product_attention``        [..., n_query, n_key]  False, or −inf that is added
``nn.MultiheadAttention(key_padding_mask=...)``        [batch, n_key]         True, or −inf that is added
``nn.MultiheadAttention(attn_mask=...)``               [n_query, n_key]       True, or −inf that is added
Hugging Face ``attention_mask``                        [batch, n_key]         0 (1 = a real token)
added to the scores                                    [..., n_query, n_key]  −inf, or a very negative number
=====================================================  =====================  ======================================
"""

from torch import Tensor

from attnlib.torch.checks import check_whole
from attnlib.torch.masks import can_look_at, check_bool, describe


def from_additive(bias: Tensor) -> Tensor:
    """Translate numbers that are added to the scores into a boolean mask, if they only allow and forbid.

    Parameters
    ----------
    bias : tensor [...], floating
        0 where a key may be attended. −inf, or a finite fill of at most −10,000 such as −1e9 or ``torch.finfo(dtype).min``,
        where it may not.

    Returns
    -------
    mask : tensor [...], bool
        True = may attend. A row of a *finite* fill forbids all here; code that adds it attends to all, uniformly.

    Raises
    ------
    ValueError
        If other numbers occur, such as those of ALiBi: these weigh, and a boolean mask cannot.
    """
    if not isinstance(bias, Tensor) or not bias.is_floating_point():
        raise ValueError(f"bias is {describe(bias)}; expected floating numbers to add to the scores.")
    forbidden = bias <= -10_000
    if not bool(((bias == 0) | forbidden).all()):
        other = bias[(bias != 0) & ~forbidden].flatten()[0].item()
        raise ValueError(
            f"bias holds {other:g}; expected only 0 (may attend), and −inf or at most −10,000 (may not). Try giving it as "
            f"mask=bias, since such numbers weigh rather than forbid, or mask == 1 if it holds 1 and 0."
        )
    return ~forbidden


def from_key_padding_mask(key_padding_mask: Tensor) -> Tensor:
    """Translate the padding mask of ``nn.MultiheadAttention``, where True = ignore, into one of this course.

    Parameters
    ----------
    key_padding_mask : tensor [batch, n_key], bool
        True where a key is padding. Floating numbers, which PyTorch adds to the scores, are accepted as well.

    Returns
    -------
    mask : tensor [batch, 1, n_key]
        Boolean with True = may attend, or the floating numbers as they are.

    Raises
    ------
    ValueError
        If it is neither boolean nor floating, or has not two axes.
    """
    if isinstance(key_padding_mask, Tensor) and key_padding_mask.is_floating_point():
        check_axes("key_padding_mask", key_padding_mask, "[batch, n_key]")
        return key_padding_mask[:, None, :]
    check_bool("key_padding_mask", key_padding_mask, "True = ignore", remedy="key_padding_mask == 1 if 1 means: ignore")
    check_axes("key_padding_mask", key_padding_mask, "[batch, n_key]")
    return ~key_padding_mask[:, None, :]


def to_key_padding_mask(mask: Tensor) -> Tensor:
    """Translate a padding mask of this course, [batch, 1, n_key], into that of ``nn.MultiheadAttention``, [batch, n_key].

    Raises
    ------
    ValueError
        If the mask is not boolean, or is not the same for all queries.
    """
    check_bool("mask", mask, "True = may attend")
    if mask.ndim != 3 or mask.shape[1] != 1:
        raise ValueError(
            f"mask has shape {list(mask.shape)}; expected [batch, 1, n_key], the same for all queries. Try to_attn_mask for "
            f"a mask that differs from query to query."
        )
    return ~mask[:, 0, :]


def from_attn_mask(attn_mask: Tensor, n_heads: int | None = None) -> Tensor:
    """Translate the ``attn_mask`` of ``nn.MultiheadAttention``, where True = may *not* attend, into one of this course.

    Parameters
    ----------
    attn_mask : tensor [n_query, n_key] or [batch * n_heads, n_query, n_key]
        Boolean, or floating numbers that are added to the scores.
    n_heads : int, optional
        Needed for three axes, to take batch and heads apart.

    Returns
    -------
    mask : tensor [n_query, n_key] or [batch, n_heads, n_query, n_key]
        Boolean with True = may attend, or the floating numbers as they are.

    Raises
    ------
    ValueError
        If it is neither boolean nor floating, or its shape is another.
    """
    floating = isinstance(attn_mask, Tensor) and attn_mask.is_floating_point()
    if not floating:
        check_bool("attn_mask", attn_mask, "True = may not attend", remedy="attn_mask == 1 if 1 means: may not attend")
    mask = attn_mask if floating else ~attn_mask
    if mask.ndim == 2:
        return mask
    if mask.ndim != 3 or n_heads is None or mask.shape[0] % check_whole("n_heads", n_heads, 1):
        raise ValueError(
            f"attn_mask has shape {list(mask.shape)} and n_heads={n_heads}; expected [n_query, n_key], or [batch * n_heads, "
            f"n_query, n_key] with n_heads given. Try n_heads=module.num_heads."
        )
    return mask.unflatten(0, (-1, n_heads))


def to_attn_mask(mask: Tensor, n_heads: int | None = None) -> Tensor:
    """Translate a mask of this course into the ``attn_mask`` of ``nn.MultiheadAttention``, where True = may *not* attend.

    Parameters
    ----------
    mask : tensor [n_query, n_key], [batch, n_query, n_key] or [batch, n_heads, n_query, n_key], bool
        True = may attend.
    n_heads : int, optional
        Needed for more than two axes: PyTorch has batch and heads on one axis, the heads of a sentence side by side.

    Returns
    -------
    attn_mask : tensor [n_query, n_key] or [batch * n_heads, n_query, n_key], bool

    Raises
    ------
    ValueError
        If the mask is not boolean, or its shape is another.
    """
    check_bool("mask", mask, "True = may attend")
    if mask.ndim == 2:
        return ~mask
    if mask.ndim > 2 and mask.shape[-2] == 1 and mask.shape[-1] > 1:
        raise ValueError(
            f"mask has shape {list(mask.shape)}, one row for all queries; expected a row for each, since nn.MultiheadAttention "
            f"does not broadcast. Try to_key_padding_mask(mask), or mask & causal_mask(n)."
        )
    if mask.ndim == 3 and n_heads is not None:
        mask = mask[:, None].expand(-1, check_whole("n_heads", n_heads, 1), -1, -1)
    if mask.ndim != 4 or n_heads is None or mask.shape[1] not in (1, n_heads):
        raise ValueError(
            f"mask has shape {list(mask.shape)} and n_heads={n_heads}; expected [n_query, n_key], [batch, n_query, n_key] or "
            f"[batch, n_heads, n_query, n_key]. Try n_heads=module.num_heads."
        )
    return ~mask.expand(-1, n_heads, -1, -1).flatten(0, 1)


def from_attention_mask(attention_mask: Tensor) -> Tensor:
    """Translate the ``attention_mask`` of a Hugging Face tokenizer, where 1 = a real token, into one of this course.

    Parameters
    ----------
    attention_mask : tensor [batch, n_key]
        Whole numbers 1 and 0, floating ones, or booleans.

    Returns
    -------
    mask : tensor [batch, 1, n_key], bool
        True = may attend.

    Raises
    ------
    ValueError
        If other numbers than 0 and 1 occur, or it has not two axes.
    """
    if not isinstance(attention_mask, Tensor):
        raise ValueError(f"attention_mask is {describe(attention_mask)}; expected a tensor of 1 and 0.")
    check_axes("attention_mask", attention_mask, "[batch, n_key]")
    real = attention_mask == 1
    if can_look_at(attention_mask) and not bool((real | (attention_mask == 0)).all()):
        raise ValueError(
            "attention_mask holds other numbers than 1 (a real token) and 0 (padding). Try from_additive if it is added to "
            "the scores, or ids != pad_id if these are ids of tokens."
        )
    return real[:, None, :]


def to_attention_mask(mask: Tensor) -> Tensor:
    """Translate a padding mask of this course, [batch, 1, n_key], into whole numbers [batch, n_key], 1 = a real token.

    Raises
    ------
    ValueError
        If the mask is not boolean, or is not the same for all queries.
    """
    return (~to_key_padding_mask(mask)).long()


def check_axes(name: str, mask: Tensor, axes: str) -> None:
    """Raise a ValueError if a mask has not two axes."""
    if mask.ndim != 2:
        raise ValueError(
            f"{name} has shape {list(mask.shape)}; expected {axes}. Try {name}[None, :] for a single sentence."
        )
