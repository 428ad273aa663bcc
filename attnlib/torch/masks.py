"""Masks on tensors, as in ``attnlib.numpy.masks`` (lesson 08).

A mask of this course is boolean and says what *may* be attended: True = may. It broadcasts to ``[..., n_query, n_key]``. Those of
other libraries are translated in ``conventions``.
"""

import torch
from torch import Tensor

from attnlib.torch.checks import FLOATS, check_whole


def padding_mask(lengths: Tensor, n_key: int) -> Tensor:
    """Allow the tokens of each sentence, and forbid the padding behind them.

    Parameters
    ----------
    lengths : tensor [batch], integers
        How many tokens each sentence really has; 0 to n_key. A list will do. They are counted before padding, never
        guessed from values that happen to be 0.
    n_key : int
        Length to which the batch was padded.

    Returns
    -------
    mask : tensor [batch, 1, n_key], bool
        True = may attend. The axis of length 1 stands for the queries. On the device of lengths.

    Raises
    ------
    ValueError
        If lengths are not whole numbers, not one for each sentence, or not between 0 and n_key.
    """
    n_key = check_whole("n_key", n_key, 0)
    try:
        lengths = torch.as_tensor(lengths)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(
            f"lengths are {lengths!r}; expected [batch] whole numbers. Try [len(row) for row in rows]."
        ) from None
    if lengths.numel() == 0 and lengths.ndim == 1:
        lengths = lengths.long()  # an empty list would be floating
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool:
        raise ValueError(
            f"lengths has dtype {str(lengths.dtype).removeprefix('torch.')}; expected whole numbers, one for each "
            f"sentence. Try lengths.long(), or mask.sum(dim=-1) if this is a mask."
        )
    if lengths.ndim != 1:
        raise ValueError(
            f"lengths has shape {list(lengths.shape)}; expected [batch], one number for each sentence. Try "
            f"lengths.reshape(-1), which makes a batch of a single sentence too."
        )
    if lengths.numel() and can_look_at(lengths) and not 0 <= int(lengths.min()) <= int(lengths.max()) <= n_key:
        raise ValueError(
            f"lengths are {int(lengths.min())} to {int(lengths.max())} and n_key={n_key}; expected 0 to n_key. Try "
            f"n_key={max(int(lengths.max()), 0)}, or cut the sentences that are longer."
        )
    return torch.arange(n_key, device=lengths.device) < lengths[:, None, None]


def causal_mask(n_query: int, n_key: int | None = None, *, device: torch.device | str | None = None) -> Tensor:
    """Allow every position itself and what came before it; the last query sees the last key.

    Parameters
    ----------
    n_query : int
    n_key : int, optional
        As many as queries if not given. If there are more, the queries are the *last* ones of the sequence, as when
        earlier keys were kept from former calls: query i sees keys 0 to i + n_key − n_query.
    device : device, optional

    Returns
    -------
    mask : tensor [n_query, n_key], bool
        True = may attend. A lower triangle when square. (``F.scaled_dot_product_attention(is_causal=True)`` agrees only
        then: with more keys than queries it lets the *first* query see the first key alone.)

    Raises
    ------
    ValueError
        If a size is not a whole number, or below 0.
    """
    n_query = check_whole("n_query", n_query, 0)
    n_key = n_query if n_key is None else check_whole("n_key", n_key, 0)
    return torch.ones(n_query, n_key, dtype=torch.bool, device=device).tril(n_key - n_query)


def to_additive(mask: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Translate a boolean mask into numbers that are added to the scores: 0 = may attend, −∞ = may not.

    Parameters
    ----------
    mask : tensor [...], bool
        True = may attend.
    dtype : torch.dtype
        That of the scores.

    Returns
    -------
    bias : tensor [...], dtype
        Same shape. Exactly 0 and −inf.

    Raises
    ------
    ValueError
        If the mask is not boolean, or the dtype not floating.
    """
    check_bool("mask", mask, "True = may attend")
    if dtype not in FLOATS:
        raise ValueError(f"dtype is {dtype}; expected a floating one. Try dtype=scores.dtype.")
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -torch.inf)


def can_look_at(tensor: Tensor) -> bool:
    """Whether the numbers of a tensor can be looked at: not while code is compiled, nor under vmap."""
    if torch.compiler.is_compiling():
        return False
    try:
        return tensor.flatten()[:1].tolist() is not None
    except RuntimeError:
        return False


def check_bool(name: str, mask: Tensor, meaning: str, remedy: str | None = None) -> None:
    """Raise a ValueError if a mask is no tensor of booleans."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        remedy = remedy or f"{name}.bool() if 1 means: may attend, {name} == 0 if 0 does, from_additive if it is added"
        raise ValueError(f"{name} is {describe(mask)}; expected a tensor of booleans ({meaning}). Try {remedy}.")


def describe(value: object) -> str:
    """What a value is, as far as its type tells."""
    if isinstance(value, Tensor):
        return f"a tensor of {str(value.dtype).removeprefix('torch.')}"
    return f"of type {type(value).__name__}"
