"""Why scores are divided by √d_k: variance, temperature, entropy, and the Jacobian of softmax (lesson 03).

Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin, *Attention Is All You Need* (2017), section 3.2.1
and its footnote 4.
"""

import math

import numpy as np

from attnlib.numpy.attention import softmax
from attnlib.numpy.checks import check_floats, check_real, check_scale, check_shapes, check_whole, widen


def score_variance(query: np.ndarray, key: np.ndarray) -> float:
    """Variance of all scores query · key, before any scaling.

    Parameters
    ----------
    query : array [..., n_query, d_k]
    key : array [..., n_key, d_k]
        Same dtype as query (float16, float32 or float64).

    Returns
    -------
    variance : float
        Mean squared distance of the scores [..., n_query, n_key] from their mean, over all of them. Near d_k if all
        entries are independent with mean 0 and variance 1 (Vaswani et al. 2017, footnote 4).

    Raises
    ------
    ValueError
        If dtypes or shapes do not fit, or there is no score at all; the message says which and what to try.
    """
    query, key = (array.astype(np.float64) for array in check_shapes(query, key))
    scores = query @ key.swapaxes(-1, -2)  # [..., n_query, n_key]
    if not scores.size:
        raise ValueError(
            f"query is {list(query.shape)} and key is {list(key.shape)}; expected at least one of each. Nothing varies "
            f"among no scores. Try more rows."
        )
    return float(np.var(scores))


def temperature_softmax(scores: np.ndarray, temperature: float) -> np.ndarray:
    """Softmax of scores / temperature: the hotter, the more even; the colder, the nearer to the best key alone.

    Parameters
    ----------
    scores : array [..., n]
        float16, float32 or float64.
    temperature : float
        Above 0. Scores are in its units: 1 leaves them as they are, √d_k is what attention uses on query · key. The
        sharpness of lesson 01 is 1 / temperature.

    Returns
    -------
    weights : array [..., n]
        Same shape and dtype; each row sums to 1, or is zeros if it holds only −inf.

    Raises
    ------
    ValueError
        If scores are not floating or a single number, or the temperature is not a finite number above 0.

    Notes
    -----
    The maximum is subtracted before the division, which is done in float64, so that no temperature is too small. Ackley, Hinton, Sejnowski, *A
    Learning Algorithm for Boltzmann Machines* (1985), is where the temperature comes from.
    """
    scores = _check_rows(scores=scores)
    if not (np.ndim(temperature) == 0 and 0 < temperature < math.inf):
        raise ValueError(
            f"temperature={temperature}; expected one finite number above 0. Try 1e-3 for all weight on the largest "
            f"score, 1e3 for nearly equal weights."
        )
    work = widen(scores)
    maximum = np.max(work, axis=-1, keepdims=True, initial=-np.inf)
    maximum[maximum == -np.inf] = 0  # a row that holds only −inf stays as it is
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        divided = (work - maximum).astype(np.float64) / float(temperature)  # in float32 a temperature of 1e-46 is 0
        return softmax(divided.astype(work.dtype, copy=False)).astype(scores.dtype, copy=False)


def entropy(weights: np.ndarray) -> np.ndarray:
    """How spread out weights are: −Σ w log w over the last axis, in nats, with 0 log 0 = 0.

    Parameters
    ----------
    weights : array [..., n]
        Not negative; rows sum to 1. float16, float32 or float64.

    Returns
    -------
    entropy : array [...]
        Same dtype. From 0 (one position has all the weight) to log n (all have the same). A row of zeros, where there
        was nothing to attend to, has 0.

    Raises
    ------
    ValueError
        If weights are not floating, are a single number, or hold a number below 0 or above 1.

    Notes
    -----
    Shannon, *A Mathematical Theory of Communication* (1948), section 6. float16 is computed in float32 inside.
    """
    weights = _check_rows(weights=weights)
    wrong = weights[(weights < 0) | (weights > 1 + 1e-3)]  # rounding may lift a weight a little above 1
    if wrong.size:
        raise ValueError(
            f"weights hold {wrong[0]:.3g}; expected numbers from 0 to 1. Try softmax(scores), if these are scores."
        )
    work = widen(weights)
    logarithms = np.log(np.where(work == 0, 1, work))  # log 1 = 0 where the weight is 0
    total = -np.sum(work * logarithms, axis=-1) + 0.0  # + 0.0 turns −0.0 into 0.0
    return np.asarray(total).astype(weights.dtype, copy=False)


def softmax_jacobian(weights: np.ndarray) -> np.ndarray:
    """How each weight moves when each score moves: ∂ weights_i / ∂ scores_j = weights_i (δ_ij − weights_j).

    Parameters
    ----------
    weights : array [..., n]
        What softmax gave; float16, float32 or float64.

    Returns
    -------
    jacobian : array [..., n, n]
        Same dtype. Row i: weight i; column j: score j. Symmetric; rows and columns sum to 0. For scores that were
        divided by a temperature, divide by it once more.

    Raises
    ------
    ValueError
        If weights are not floating, or are a single number.

    Notes
    -----
    Bridle, *Training Stochastic Model Recognition Algorithms as Networks* (1990). float16 is computed in float32 inside.
    """
    weights = _check_rows(weights=weights)
    work = widen(weights)
    identity = np.eye(work.shape[-1], dtype=work.dtype)
    jacobian = work[..., :, None] * (identity - work[..., None, :])  # [..., n, n]
    return jacobian.astype(weights.dtype, copy=False)


def steer_query(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    target: np.ndarray,
    *,
    scale: float | None = None,
    rate: float = 1.0,
    n_steps: int = 200,
) -> np.ndarray:
    """Move a query by gradient descent, until softmax(scale · key · query) · value comes near a target.

    Parameters
    ----------
    query : array [..., d_k]
        One query for each of the leading axes; it is not changed.
    key : array [..., n_key, d_k]
    value : array [..., n_key, d_v]
    target : array [..., d_v]
        What the output should be.
    scale : float, optional
        What the products are multiplied by; 1 / √d_k if not given.
    rate : float
        Learning rate: the query moves by −rate · gradient in each step.
    n_steps : int
        0 returns a copy of the query, in the shape of the result.

    Returns
    -------
    query : array [..., d_k]
        The steered query, same dtype; its leading axes are those of all four arrays, broadcast.

    Raises
    ------
    ValueError
        If dtypes or shapes do not fit; the message says which and what to try.

    Notes
    -----
    The error is Σ (output − target)². By the chain rule its gradient with respect to the query is
    scale · keyᵀ J value · 2 (output − target), where J is the Jacobian of softmax. Where J is nearly 0, nothing moves.
    float16 is computed in float32 inside.
    """
    query = _check_rows(query=query)
    row, key, value = check_shapes(query[..., None, :], key, value)
    _, target = check_floats(query=query, target=target)
    if target.shape[-1:] != value.shape[-1:]:
        raise ValueError(
            f"target is {list(target.shape)} and value is {list(value.shape)}; expected the same width d_v in the last "
            f"axis. Try one row of value as the target."
        )
    scale, rate = check_scale(scale, query.shape[-1]), check_real("rate", rate)
    n_steps = check_whole("n_steps", n_steps, 0)
    try:
        leading = np.broadcast_shapes(target.shape[:-1], *(array.shape[:-2] for array in (row, key, value)))
    except ValueError:
        raise ValueError(
            f"target is {list(target.shape)} and query is {list(query.shape)}; expected leading axes that broadcast with "
            f"those of query, key and value. Try one target for each query."
        ) from None
    row = np.broadcast_to(row, (*leading, *row.shape[-2:])).copy()  # [..., 1, d_k]
    row, key, value, target = map(widen, (row, key, value, target))
    for _ in range(n_steps):
        weights = softmax(scale * (row @ key.swapaxes(-1, -2)))  # [..., 1, n_key]
        grad_output = 2 * (weights @ value - target[..., None, :])  # [..., 1, d_v]
        grad_weights = grad_output @ value.swapaxes(-1, -2)  # [..., 1, n_key]
        grad_scores = grad_weights @ softmax_jacobian(weights)[..., 0, :, :]  # [..., 1, n_key]
        row = row - rate * scale * (grad_scores @ key)
    return row[..., 0, :].astype(query.dtype, copy=False)


def _check_rows(**named: np.ndarray) -> np.ndarray:
    """Return the one named array, floating and with at least one axis, or raise a ValueError."""
    ((name, array),) = zip(named, check_floats(**named))
    if array.ndim == 0:
        raise ValueError(f"{name} is a single number; expected [..., n], at least one axis. Try {name}[None].")
    return array
