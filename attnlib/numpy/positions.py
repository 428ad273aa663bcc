"""Places in a sequence: sinusoids and their maps, rotary, and a bias by distance (lesson 06).

Axes are those of the course: ``[..., n, d]`` for vectors, ``[n_heads, n_query, n_key]`` for scores of heads. A place is
counted from 0; an angle is in radians; pair i of the columns of a width d turns by ``base ** (-2 i / d)`` for each place.
"""

import numpy as np

from attnlib.numpy.checks import check_floats, check_plain, check_whole


def sinusoidal_positions(n: int, d_model: int, base: float = 10_000.0) -> np.ndarray:
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

    Returns
    -------
    positions : array [n, d_model], float64
        Columns 2i and 2i + 1 of row t are sin and cos of t · base^(−2i / d_model), between −1 and 1.

    Raises
    ------
    ValueError
        If n is no whole number or below 0, d_model below 1, or base not above 0.
    """
    n, d_model = check_whole("n", n, 0), check_whole("d_model", d_model, 1)
    angles = np.arange(n)[:, None] * frequencies(d_model, base)  # [n, ⌈d_model / 2⌉]
    positions = np.empty((n, d_model))
    positions[:, 0::2] = np.sin(angles)
    positions[:, 1::2] = np.cos(angles[:, : d_model // 2])
    return positions


def shift_rotation(k: int, d_model: int, base: float = 10_000.0) -> np.ndarray:
    """Return the matrix that takes the row of every place to the row of the place k further on.

    Parameters
    ----------
    k : int
        How far; negative goes back.
    d_model, base : int, float
        Those of the positions. d_model is even: a sine without its cosine cannot be shifted.

    Returns
    -------
    rotation : array [d_model, d_model], float64
        ``sinusoidal_positions(n, d_model) @ rotation`` are the rows of places k to n − 1 + k.

    Raises
    ------
    ValueError
        If d_model is odd or below 2, k is no whole number, or base is not above 0.

    Notes
    -----
    Vaswani et al. (2017), section 3.5, say that such a map exists; it follows from the sine and cosine of a sum.
    """
    k = check_whole("k", k)
    _check_even(d_model, "d_model")
    angles = k * frequencies(d_model, base)
    return _blocks(np.cos(angles), -np.sin(angles), np.sin(angles), np.cos(angles))


def reversal_matrix(n: int, d_model: int, base: float = 10_000.0) -> np.ndarray:
    """Return the matrix that takes the row of place t to the row of place n − 1 − t: a reflection in each frequency.

    Parameters
    ----------
    n : int
        Length of the sequence that is reversed, at least 1. The matrix is right for this length alone.
    d_model, base : int, float
        Those of the positions. d_model is even.

    Returns
    -------
    reflection : array [d_model, d_model], float64
        Symmetric, and its own inverse.

    Raises
    ------
    ValueError
        If d_model is odd or below 2, n below 1, or base not above 0.

    Notes
    -----
    From sin(c − t) = sin c cos t − cos c sin t and cos(c − t) = cos c cos t + sin c sin t, with c = n − 1 in each frequency.
    """
    n = check_whole("n", n, 1)
    _check_even(d_model, "d_model")
    angles = (n - 1) * frequencies(d_model, base)
    return _blocks(-np.cos(angles), np.sin(angles), np.sin(angles), np.cos(angles))


def rotary(
    x: np.ndarray, positions: np.ndarray | None = None, base: float = 10_000.0, interleaved: bool = True
) -> np.ndarray:
    """Turn each pair of numbers of a query or key by an angle that grows with its place.

    Parameters
    ----------
    x : array [..., n, d]
        Queries or keys of one head width d, even; float16, float32 or float64.
    positions : array [n], or anything that broadcasts to x without its last axis
        Place of each row, also a place beyond n. 0 to n − 1 if not given.
    base : float
        Above 0.
    interleaved : bool
        True: neighbours (columns 2i and 2i + 1) are a pair, as in the paper. False: columns i and i + d / 2 are, as in
        GPT-NeoX. Queries and keys need the same.

    Returns
    -------
    turned : array [..., n, d]
        Same dtype as x, every row as long as before. The dot product of a turned query and a turned key depends on the
        difference of their places only.

    Raises
    ------
    ValueError
        If d is odd or 0, x has fewer than two axes or is not floating, or positions do not fit or are float16.

    Notes
    -----
    Su, Lu, Pan, Wen, Liu, *RoFormer: Enhanced Transformer with Rotary Position Embedding* (2021), equation 34. Angles are
    computed in float64; float16 is turned in float32.
    """
    (x,) = check_floats(x=x)
    if x.ndim < 2:
        raise ValueError(f"x has shape {list(x.shape)}; expected [..., n, d], at least two axes. Try x[None, :].")
    half = _check_even(x.shape[-1], "the width d of x") // 2
    places = _check_places(positions, x.shape)
    work = np.float32 if x.dtype == np.float16 else x.dtype
    angles = places[..., None] * frequencies(x.shape[-1], base)  # [..., n, d / 2]
    cos, sin = np.cos(angles).astype(work), np.sin(angles).astype(work)
    pairs = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(half), slice(half, None))
    first, second = (x[..., pair].astype(work, copy=False) for pair in pairs)  # [..., n, d / 2] each
    turned = np.empty_like(x)
    turned[..., pairs[0]] = first * cos - second * sin
    turned[..., pairs[1]] = first * sin + second * cos
    return turned


def alibi_slopes(n_heads: int) -> np.ndarray:
    """How much each head takes off for each step of distance: a geometric sequence from 2^(−8 / n_heads) to 2^−8.

    Returned as an array [n_heads] of float64. If n_heads is no power of two: the slopes of the largest power of two below
    it, then as many as are missing of every second slope of twice that power, as in the authors' code. ValueError if
    n_heads is below 1.
    """
    n_heads = check_whole("n_heads", n_heads, 1)
    power = 1 << (n_heads.bit_length() - 1)  # the largest power of two that is not above n_heads
    slopes = 2.0 ** (-8 * np.arange(1, power + 1) / power)
    between = 2.0 ** (-8 * np.arange(1, 2 * power, 2) / (2 * power))
    return np.concatenate([slopes, between[: n_heads - power]])


def alibi_bias(n_heads: int, n_query: int, n_key: int | None = None) -> np.ndarray:
    """Bias to add to scores: −slope of the head × distance.

    Parameters
    ----------
    n_heads, n_query, n_key : int
        n_key is n_query if not given. The last query stands at the last key.

    Returns
    -------
    bias : array [n_heads, n_query, n_key], float64
        0 where a query meets its own place, below 0 elsewhere, on both sides alike. It forbids nothing: it is no mask.

    Raises
    ------
    ValueError
        If n_heads is below 1, or a number of queries or keys below 0.

    Notes
    -----
    Press, Smith, Lewis, *Train Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation* (2022),
    section 3, which speaks of keys behind the query only.
    """
    n_query = check_whole("n_query", n_query, 0)
    n_key = n_query if n_key is None else check_whole("n_key", n_key, 0)
    query_places = np.arange(n_query) + n_key - n_query
    distance = np.abs(query_places[:, None] - np.arange(n_key))  # [n_query, n_key]
    return -alibi_slopes(n_heads)[:, None, None] * distance


def frequencies(d: int, base: float = 10_000.0) -> np.ndarray:
    """Radians by which each pair of columns turns from one place to the next: base^(−2i / d), [⌈d / 2⌉]."""
    if not base > 0:
        raise ValueError(f"base={base}; expected a number above 0. Try base=10_000.0.")
    return float(base) ** (-np.arange(0, d, 2) / d)


def _check_even(d: int, name: str) -> int:
    d = check_whole(name, d)
    if d < 2 or d % 2:
        raise ValueError(
            f"{name} is {d}; expected an even number, at least 2, since numbers are turned in pairs. Try {max(d + 1, 2)}."
        )
    return d


def _check_places(positions: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    if positions is None:
        return np.arange(shape[-2])
    places = check_plain("positions", positions)
    if places.dtype == np.float16 or places.dtype.kind not in "iuf":
        raise ValueError(
            f"positions have dtype {places.dtype}; expected whole numbers, float32 or float64 (float16 cannot tell 2048 "
            f"from 2049). Try np.arange({shape[-2]})."
        )
    try:
        fits = np.broadcast_shapes(places.shape, shape[:-1]) == shape[:-1]
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"positions have shape {list(places.shape)} and x is {list(shape)}; expected [n] = [{shape[-2]}], or what "
            f"broadcasts to {list(shape[:-1])}. Try positions[:, None, :] if each sequence of a batch has places of its own."
        )
    return places.astype(np.float64)


def _blocks(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """A matrix with the block [[a, b], [c, d]] of each frequency on its diagonal."""
    even = np.arange(0, 2 * len(a), 2)
    matrix = np.zeros((2 * len(a), 2 * len(a)))
    matrix[even, even], matrix[even, even + 1] = a, b
    matrix[even + 1, even], matrix[even + 1, even + 1] = c, d
    return matrix
