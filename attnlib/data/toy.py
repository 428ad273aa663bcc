"""Toy tasks, drawn anew each time: small enough to train in seconds, and each fails without the idea of its lesson."""

import numpy as np

from attnlib.numpy.training import recall_task


def recall_tokens(
    n: int, n_symbols: int, n_pairs: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw n lists of associative recall in which keys and values are separate tokens: k v k v … and a key that is asked.

    Parameters
    ----------
    n : int
        How many lists.
    n_symbols : int
        Number of different keys, and of different values.
    n_pairs : int
        Pairs in a list. All its keys differ; values may repeat.
    rng : np.random.Generator

    Returns
    -------
    tokens : integer array [n, 2 * n_pairs + 1]
        Keys are 0 to n_symbols − 1, values n_symbols to 2 * n_symbols − 1. Key j stands at place 2j, its value behind it, the
        question at the end.
    answer : integer array [n]
        The value behind the key that is asked, counted from 0: its token is ``n_symbols + answer``.
    place : integer array [n]
        Where this value stands in the list.

    Raises
    ------
    ValueError
        If there are more pairs than keys.

    Notes
    -----
    The task of lesson 07, ``attnlib.numpy.recall_task``, where a key and its value share one place.
    """
    keys, values, asked, answer = recall_task(n, n_symbols, n_pairs, rng)
    pairs = np.stack([keys, n_symbols + values], axis=-1).reshape(n, -1)  # [n, 2 * n_pairs]
    place = 2 * np.argmax(keys == asked[:, None], axis=1) + 1
    return np.concatenate([pairs, asked[:, None]], axis=1), answer, place


def recall_names(tokens: np.ndarray, n_symbols: int) -> list[str]:
    """The tokens of one list [n] as labels: ``k3`` for key 3, ``v5`` for value 5."""
    return [f"k{token}" if token < n_symbols else f"v{token - n_symbols}" for token in tokens]
