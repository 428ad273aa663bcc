"""Cases that are drawn anew in each run, for exercises whose own cases are the same for every seed.

Without them, a table of the cases that the notebook shows would be a full answer. A test holds that a good part of every
exercise's cases differs from seed to seed. Expected results come from the course's own function.
"""

from collections.abc import Callable

import numpy as np

Draw = Callable[[np.random.Generator], list[tuple]]


def _whole(rng: np.random.Generator, *ranges: tuple[int, int]) -> tuple[int, ...]:
    return tuple(int(rng.integers(low, high + 1)) for low, high in ranges)


def _causal(rng: np.random.Generator) -> list[tuple]:
    n_query, more = _whole(rng, (2, 9), (1, 7))
    return [(n_query,), (n_query, n_query + more), _whole(rng, (3, 9), (3, 9))]


def _padding(rng: np.random.Generator) -> list[tuple]:
    (n_key,) = _whole(rng, (4, 9))
    return [(rng.integers(1, n_key + 1, size=4), n_key), (rng.integers(1, n_key + 1, size=2), n_key)]


def _additive(rng: np.random.Generator) -> list[tuple]:
    return [(rng.random((3, 4)) < 0.5, np.float64), (rng.random((2, 1, 5)) < 0.5, np.float32)]


def _parameters(rng: np.random.Generator) -> list[tuple]:
    n_heads, d_head, d_k, d_v = _whole(rng, (2, 6), (2, 9), (2, 9), (2, 9))
    return [(n_heads * d_head, n_heads, None, None, True), (n_heads * d_head, n_heads, d_k, d_v, False)]


def _shift(rng: np.random.Generator) -> list[tuple]:
    k, half = _whole(rng, (3, 30), (1, 4))
    return [(k, 2 * half, 200.0), (-k, 2 * half + 2, 1_000.0)]


def _positions(rng: np.random.Generator) -> list[tuple]:
    n, half = _whole(rng, (7, 20), (1, 5))
    return [(n, 2 * half, 300.0), (n + 1, 2 * half + 1, 2_000.0)]


def _reversal(rng: np.random.Generator) -> list[tuple]:
    n, other = _whole(rng, (3, 12), (3, 12))
    return [(n, 6, 100.0), (other, 4, 100.0)]  # wider or slower, and least squares lose digits


def _slopes(rng: np.random.Generator) -> list[tuple]:
    n_query, n_key = _whole(rng, (2, 7), (2, 7))
    return [(8, n_query, n_key), (4, n_query + 1, n_key)]


def _encoder(rng: np.random.Generator) -> list[tuple]:
    n_layers, n_heads, d_head, d_ff, n_symbols = _whole(rng, (2, 9), (2, 6), (2, 9), (20, 90), (0, 99))
    return [(n_layers, n_heads * d_head, n_heads, d_ff, n_symbols)]


DRAWN: dict[str, Draw] = {
    "01-sequential_steps": lambda rng: [_whole(rng, (20, 90), (2, 9)), _whole(rng, (100, 900), (10, 60))],
    "02-query_matrix": lambda rng: [(float(rng.integers(21, 60)),), (float(rng.integers(41, 99)) / 2,)],
    "04-causal_mask": _causal,
    "04-padding_mask": _padding,
    "04-to_additive": _additive,
    "05-count_parameters": _parameters,
    "05-previous_and_first": lambda rng: [(int(rng.integers(4, 12)), float(rng.integers(20, 60)))],
    "06-sinusoidal_positions": _positions,
    "06-shift_rotation": _shift,
    "06-reversal_matrix": _reversal,
    "06-alibi_bias": _slopes,
    "08-from_key_padding_mask": lambda rng: [(rng.random((3, 7)) < 0.5,), (rng.random((2, 4)) < 0.5,)],
    "09-transformer_parameters": _encoder,
}
