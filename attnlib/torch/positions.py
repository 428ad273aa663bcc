"""Places in a sequence: sinusoids, rotary, a bias by distance, and the two layers that add a row for each place (lesson 08).

Axes and formulas are those of ``attnlib.numpy.positions`` (lesson 06). Angles are computed in float64 and then rounded, since
float16 cannot tell place 2048 from 2049.
"""

import torch
from torch import Tensor, nn

from attnlib.numpy import positions as by_numpy
from attnlib.torch.checks import check_dtype, check_floats, check_whole, check_width


def sinusoidal_positions(
    n: int,
    d_model: int,
    base: float = 10_000.0,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | None = None,
) -> Tensor:
    """One row for each place, with a sine and a cosine of one angle in each pair of columns.

    Vaswani et al., *Attention Is All You Need* (2017), section 3.5.

    Parameters
    ----------
    n : int
        Number of places, 0 or more.
    d_model : int
        Width, at least 1. If it is odd, the last column is a sine without its cosine.
    base : float
        Above 0. The larger, the slower the last hands turn.
    dtype, device : optional
        Of the result.

    Returns
    -------
    positions : tensor [n, d_model]
        Columns 2i and 2i + 1 of row t are sin and cos of t · base^(−2i / d_model).

    Raises
    ------
    ValueError
        If n is no whole number or below 0, d_model below 1, or base not above 0.
    """
    rows = torch.from_numpy(by_numpy.sinusoidal_positions(n, d_model, base))
    return rows.to(dtype=check_dtype(dtype), device=torch.get_default_device() if device is None else device)


def rotary(x: Tensor, positions: Tensor | None = None, base: float = 10_000.0, interleaved: bool = True) -> Tensor:
    """Turn each pair of numbers of a query or key by an angle that grows with its place.

    Su, Lu, Pan, Murtadha, Wen, Liu, *RoFormer: Enhanced Transformer with Rotary Position Embedding* (2021), equation 34.

    Parameters
    ----------
    x : tensor [..., n, d]
        Queries or keys of one head width d, even; any floating dtype.
    positions : tensor [n], or anything that broadcasts to x without its last axis
        Place of each row. 0 to n − 1 if not given. Of a batch [batch, n], with heads in x, give ``positions[:, None]``.
    base : float
        Above 0.
    interleaved : bool
        True: neighbours (columns 2i and 2i + 1) are a pair, as in the paper. False: columns i and i + d / 2 are, as in
        GPT-NeoX. Queries and keys need the same.

    Returns
    -------
    turned : tensor [..., n, d]
        Same dtype and, in each pair, same length.

    Raises
    ------
    ValueError
        If d is odd, or positions do not fit.
    """
    check_floats(x=x)
    n, d = x.shape[-2:] if x.ndim >= 2 else (0, 1)
    if d % 2 or d == 0:
        raise ValueError(
            f"x has shape {list(x.shape)}; expected [..., n, d] with an even d of at least 2, since numbers are turned in pairs."
        )
    places = torch.arange(n, device=x.device) if positions is None else torch.as_tensor(positions, device=x.device)
    fits = places.ndim < x.ndim and all(mine in (1, its) for mine, its in zip(places.shape[::-1], x.shape[-2::-1]))
    if places.dtype in (torch.float16, torch.bfloat16, torch.bool) or not fits:
        raise ValueError(
            f"positions are {list(places.shape)} of {str(places.dtype).removeprefix('torch.')}; expected whole numbers or "
            f"float32 of shape [{n}], or what broadcasts to {list(x.shape[:-1])}. Try torch.arange({n}), or positions[:, None] if each "
            f"sentence of a batch has its own and x has an axis for heads."
        )
    pairs = by_numpy.frequencies(d, base)
    angles = places.double()[..., None] * torch.from_numpy(pairs).to(x.device)  # [..., n, d / 2]
    work = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    cos, sin = angles.cos().to(work.dtype), angles.sin().to(work.dtype)
    first, second = (work[..., 0::2], work[..., 1::2]) if interleaved else work.chunk(2, dim=-1)
    turned = first * cos - second * sin, first * sin + second * cos
    turned = torch.stack(turned, dim=-1).flatten(-2) if interleaved else torch.cat(turned, dim=-1)
    return turned.to(x.dtype)


def alibi_bias(n_heads: int, n_query: int, n_key: int | None = None, *, dtype: torch.dtype = torch.float32) -> Tensor:
    """Numbers that lower each score in proportion to the distance between query and key; a slope for each head.

    Press, Smith, Lewis, *Train Short, Test Long: Attention with Linear Biases* (2022), section 3.

    Parameters
    ----------
    n_heads, n_query : int
    n_key : int, optional
        As many as queries if not given; if there are more, the queries are the last ones.
    dtype : torch.dtype
        That of the queries.

    Returns
    -------
    bias : tensor [n_heads, n_query, n_key]
        To be given as a floating mask.

    Raises
    ------
    ValueError
        If a size is no whole number, or too small.
    """
    return torch.from_numpy(by_numpy.alibi_bias(n_heads, n_query, n_key)).to(check_dtype(dtype))


class _Positions(nn.Module):
    """Adds rows of ``self.positions``, which is a buffer in one layer and a parameter in the other."""

    def __init__(self, d_model: int, max_len: int):
        super().__init__()
        self.d_model, self.max_len = check_whole("d_model", d_model, 1), check_whole("max_len", max_len, 1)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Add to each token the row of its place.

        Parameters
        ----------
        x : tensor [..., n, d_model]
        start : int
            Place of the first token, above 0 when earlier tokens were handled by former calls.

        Returns
        -------
        x : tensor [..., n, d_model]
            Same dtype.

        Raises
        ------
        ValueError
            If x is wider or longer than the layer was made for.
        """
        check_width("x", x, self.d_model, "[..., n, d_model]")
        end = check_whole("start", start, 0) + x.shape[-2]
        if end > self.max_len:
            raise ValueError(
                f"places {start} to {end - 1} are asked for, and this layer has {self.max_len}, 0 to {self.max_len - 1}. Try "
                f"max_len={end} when it is made, or cut the sequence to {max(self.max_len - start, 0)} tokens."
            )
        return x + self.positions[start:end].to(x.dtype)


class SinusoidalPositions(_Positions):
    """Adds a fixed row of sines and cosines to each token (Vaswani et al. 2017, section 3.5).

    Parameters
    ----------
    d_model : int
        Width, odd ones too.
    max_len : int
        Number of places.
    base : float
        See ``sinusoidal_positions``.

    Attributes
    ----------
    positions : buffer [max_len, d_model]
        Moves with ``.to(...)`` and is not trained. Not in the ``state_dict``, since it can be computed again.
    """

    def __init__(self, d_model: int, max_len: int = 5_000, base: float = 10_000.0):
        super().__init__(d_model, max_len)
        self.base = base
        self.register_buffer("positions", self._rows(torch.get_default_dtype(), None), persistent=False)

    def _rows(self, dtype: torch.dtype, device: torch.device | None) -> Tensor:
        return sinusoidal_positions(self.max_len, self.d_model, self.base, dtype=dtype, device=device)

    def _apply(self, *args: object, **options: object) -> nn.Module:
        """Compute the rows again where the module was moved or converted, so that float16 leaves no trace in them."""
        super()._apply(*args, **options)
        self.positions = self._rows(self.positions.dtype, self.positions.device)
        return self


class LearnedPositions(_Positions):
    """Adds a row that is learned to each token: Gehring et al., *Convolutional Sequence to Sequence Learning* (2017), 3.1.

    Parameters
    ----------
    d_model : int
    max_len : int
        Number of places. Rows of places that never occur in training stay as they were drawn.

    Attributes
    ----------
    positions : parameter [max_len, d_model]
        Drawn from N(0, 0.02²), as in BERT and GPT-2.
    """

    def __init__(self, d_model: int, max_len: int):
        super().__init__(d_model, max_len)
        self.positions = nn.Parameter(torch.empty(max_len, d_model))
        nn.init.normal_(self.positions, std=0.02)
