"""Associative recall, and one attention that learns it by gradient descent in NumPy alone (lesson 07).

Pairs of a key and a value are shown, then one of the keys: which value was beside it? The task is that of Graves, Wayne,
Danihelka, *Neural Turing Machines* (2014), section 4.3, in its barest form.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from attnlib.numpy.attention import scaled_dot_product_attention
from attnlib.numpy.checks import check_floats, check_real, check_whole
from attnlib.numpy.gradients import attention_backward, grad_matrix


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
        New ones, same dtype; the old are left as they are.

    Raises
    ------
    ValueError
        If dtypes or shapes do not fit, the batch is empty, or rate is not one real number.

    Notes
    -----
    Robbins, Monro, *A Stochastic Approximation Method* (1951): steps along gradients of random samples.
    """
    named = {"w_query": w_query, "w_key": w_key, "w_value": w_value}
    named |= {"asked": asked, "keys": keys, "values": values, "target": target}
    w_query, w_key, w_value, asked, keys, values, target = _check_step(named)
    rate = check_real("rate", rate)
    query, key, value = asked @ w_query, keys @ w_key, values @ w_value
    output = scaled_dot_product_attention(query, key, value)  # [batch, 1, d_v]
    grad_output = (output - target) / len(asked)
    gradients = attention_backward(query, key, value, grad_output)
    parts = zip((w_query, w_key, w_value), (asked, keys, values), gradients)
    return tuple(w - rate * grad_matrix(x, gradient) for w, x, gradient in parts)


STEP_AXES = {
    "w_query": ("d", "d_k"),
    "w_key": ("d", "d_k"),
    "w_value": ("d", "d_v"),
    "asked": ("batch", "1", "d"),
    "keys": ("batch", "n_pairs", "d"),
    "values": ("batch", "n_pairs", "d"),
    "target": ("batch", "1", "d_v"),
}


def _check_step(named: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Return the arrays of a step, if an axis has the same size wherever it stands, or raise a ValueError."""
    arrays, sizes = check_floats(**named), {"1": 1}
    for name, array in zip(named, arrays):
        axes = STEP_AXES[name]
        known = ", ".join(f"{axis}={sizes[axis]}" for axis in axes if axis in sizes and axis != "1")
        if array.ndim != len(axes) or any(sizes.setdefault(a, n) != n for a, n in zip(axes, array.shape)):
            raise ValueError(
                f"{name} has shape {list(array.shape)}; expected [{', '.join(axes)}]{known and f' with {known}'}. "
                f"Try {name}[:, None] if the axis of length 1 is missing, {name}.T if a matrix is transposed."
            )
    if not sizes["batch"]:
        raise ValueError(
            "asked has no lists, batch=0; expected at least 1, since the loss is a mean. Try a larger batch."
        )
    return arrays


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

    Raises
    ------
    ValueError
        If a number is no whole number or too small, or there are more pairs than keys.
    """
    wanted = (("n_symbols", n_symbols, 1), ("n_pairs", n_pairs, 1), ("d", d, 1), ("batch", batch, 1))
    n_symbols, n_pairs, d, batch = (check_whole(*number) for number in wanted)
    n_steps, every = check_whole("n_steps", n_steps, 0), check_whole("every", every, 1)
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
        if number < n_steps:
            keys, values, asked, answer = recall_task(batch, n_symbols, n_pairs, rng)
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
