"""Associative recall, and one attention that learns it by gradient descent in NumPy alone (lesson 07).

Pairs of a key and a value are shown, then one of the keys: which value was beside it? The task is that of Graves, Wayne,
Danihelka, *Neural Turing Machines* (2014), section 4.3, in its barest form.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from attnlib.numpy.attention import scaled_dot_product_attention
from attnlib.numpy.gradients import attention_backward


def recall_task(
    n: int, n_symbols: int, n_pairs: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Draw n lists of pairs, with a question about each.

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
    keys, values : integer arrays [n, n_pairs]
    asked, answer : integer arrays [n]
        One of the keys of each list, and the value beside it.

    Raises
    ------
    ValueError
        If there are more pairs than keys.
    """
    if not 1 <= n_pairs <= n_symbols:
        raise ValueError(
            f"n_pairs={n_pairs} and n_symbols={n_symbols}; expected 1 to {n_symbols} pairs, since the keys of a list "
            f"differ. Try n_pairs={max(1, n_symbols // 2)}."
        )
    keys = np.argsort(rng.random((n, n_symbols)), axis=1)[:, :n_pairs]
    values = rng.integers(n_symbols, size=(n, n_pairs))
    lists, place = np.arange(n), rng.integers(n_pairs, size=n)
    return keys, values, keys[lists, place], values[lists, place]


def train_step(
    w_query: np.ndarray,
    w_key: np.ndarray,
    w_value: np.ndarray,
    asked: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    target: np.ndarray,
    rate: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One step of gradient descent on the three matrices of an attention: forward, backward, update.

    The loss is half of the squared distance between output and target, averaged over the batch.

    Parameters
    ----------
    w_query, w_key : arrays [d, d_k]
    w_value : array [d, d_v]
    asked : array [batch, 1, d]
        Becomes the query, ``asked @ w_query``.
    keys, values : arrays [batch, n_pairs, d]
        Become key and value.
    target : array [batch, 1, d_v]
        What the output should be.
    rate : float
        The learning rate: how far to go against the gradient.

    Returns
    -------
    w_query, w_key, w_value : arrays
        New ones; the old are left as they are.

    Notes
    -----
    Robbins, Monro, *A Stochastic Approximation Method* (1951): steps along gradients of random samples.
    """
    query, key, value = asked @ w_query, keys @ w_key, values @ w_value
    output = scaled_dot_product_attention(query, key, value)  # [batch, 1, d_v]
    grad_output = (output - target) / len(asked)
    gradients = attention_backward(query, key, value, grad_output)
    updated = []
    for w, x, gradient in zip((w_query, w_key, w_value), (asked, keys, values), gradients):
        grad_w = x.reshape(-1, x.shape[-1]).T @ gradient.reshape(-1, gradient.shape[-1])  # added up over the batch
        updated.append(w - rate * grad_w)
    return tuple(updated)


class Training(NamedTuple):
    """What came of a training: when it was measured and how it stood then, and the vectors and matrices at the end."""

    steps: list[int]
    losses: list[float]  # on lists that were not trained on
    accuracies: list[float]
    vectors: np.ndarray  # [2, n_symbols, d], of the keys and of the values; random, and not trained
    matrices: tuple[np.ndarray, np.ndarray, np.ndarray]  # w_query, w_key, w_value


def train_recall(
    n_symbols: int,
    n_pairs: int,
    d: int,
    *,
    rate: float,
    n_steps: int,
    seed: int = 0,
    every: int = 10,
    batch: int = 64,
    step: Callable = train_step,
    report: Callable[[int, float], None] | None = None,
) -> Training:
    """Train one attention on associative recall, every step on fresh lists.

    Parameters
    ----------
    n_symbols, n_pairs : int
        As in ``recall_task``.
    d : int
        Width of all vectors and matrices, which are drawn with variance 1 / d.
    rate : float
        Learning rate.
    n_steps : int
    seed : int
    every : int
        Loss and accuracy are measured every so many steps, on 1,000 fresh lists.
    batch : int
        Lists in a step.
    step : function
        With the arguments of ``train_step``, for example your own.
    report : function of a step and a loss, optional
        Called whenever they are measured.

    Returns
    -------
    training : Training
    """
    rng, fresh = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    vectors = rng.normal(size=(2, n_symbols, d)) / np.sqrt(d)
    matrices = tuple(rng.normal(size=(3, d, d)) / np.sqrt(d))
    training = Training([], [], [], vectors, matrices)
    for number in range(n_steps + 1):
        if number % every == 0:
            loss, accuracy = measure(matrices, vectors, recall_task(1_000, n_symbols, n_pairs, fresh))
            for history, measured in zip(training, (number, loss, accuracy)):
                history.append(measured)
            if report is not None:
                report(number, loss)
        keys, values, asked, answer = recall_task(batch, n_symbols, n_pairs, rng)
        if number < n_steps:
            of_key, of_value = vectors
            inputs = of_key[asked][:, None], of_key[keys], of_value[values], of_value[answer][:, None]
            matrices = step(*matrices, *inputs, rate)
    return training._replace(matrices=tuple(matrices))


def measure(matrices: tuple, vectors: np.ndarray, task: tuple) -> tuple[float, float]:
    """Loss, and share of lists for which the value nearest in direction to the output is the answer."""
    (w_query, w_key, w_value), (of_key, of_value), (keys, values, asked, answer) = matrices, vectors, task
    query, key, value = of_key[asked][:, None] @ w_query, of_key[keys] @ w_key, of_value[values] @ w_value
    output = scaled_dot_product_attention(query, key, value)[:, 0]  # [n, d]
    loss = 0.5 * np.mean(np.sum((output - of_value[answer]) ** 2, axis=-1))
    return float(loss), float(np.mean((output @ of_value.T).argmax(axis=-1) == answer))
