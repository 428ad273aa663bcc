"""A recurrence, what it remembers of its first input, and why it forgets (lesson 01).

state ← activation(state · W + input), one input after another, is Elman, *Finding Structure in Time* (1990), with the
inputs already embedded.
"""

from collections.abc import Callable

import numpy as np

from attnlib.numpy.checks import check_floats


def orthogonal(d: int, radius: float, rng: np.random.Generator) -> np.ndarray:
    """Random orthogonal matrix times ``radius``: it turns a vector and makes it ``radius`` times as long.

    Parameters
    ----------
    d : int
        Width of the state.
    radius : float
        Every singular value of the result.
    rng : np.random.Generator

    Returns
    -------
    w : array [d, d]
    """
    q, r = np.linalg.qr(rng.normal(size=(d, d)))
    return radius * q * np.sign(np.diag(r))  # the signs make the draw uniform: Mezzadri (2007), section 5


def last_state(w: np.ndarray, inputs: np.ndarray, activation: Callable = np.tanh) -> np.ndarray:
    """Run state ← activation(state @ w + input) over all inputs, from a state of zeros.

    Parameters
    ----------
    w : array [d, d]
    inputs : array [..., n, d]
        Leading axes are separate sequences.
    activation : function of an array
        np.tanh, or a function that returns its argument for a linear recurrence.

    Returns
    -------
    state : array [..., d]
        Same dtype as the inputs.

    Raises
    ------
    ValueError
        If dtypes or shapes do not fit.
    """
    w, inputs = check_recurrence(w, inputs)
    state = np.zeros(inputs.shape[:-2] + inputs.shape[-1:], dtype=inputs.dtype)
    for t in range(inputs.shape[-2]):
        state = activation(state @ w + inputs[..., t, :])
    return state


def check_recurrence(w: np.ndarray, inputs: np.ndarray) -> list[np.ndarray]:
    """Return w [d, d] and inputs [..., n, d] as arrays that fit, or raise a ValueError that says why not."""
    w, inputs = check_floats(w=w, inputs=inputs)
    if inputs.ndim < 2 or w.shape != 2 * inputs.shape[-1:]:
        raise ValueError(
            f"w is {list(w.shape)} and inputs are {list(inputs.shape)}; expected [d, d] and [..., n, d] with the same d. "
            f"Try inputs[:, None] for inputs of one number."
        )
    return [w, inputs]


def nudge(w: np.ndarray, inputs: np.ndarray, move: np.ndarray) -> float:
    """How far the last state of a tanh recurrence moves for each unit that its first input is moved.

    Parameters
    ----------
    w : array [d, d]
    inputs : array [n, d]
    move : array [d]
        What is added to the first input. The smaller it is, the nearer the result to the length of the derivative
        in this direction.

    Returns
    -------
    ratio : float
        ‖moved last state − last state‖ / ‖move‖.

    Raises
    ------
    ValueError
        If dtypes or shapes do not fit, or the move is 0.
    """
    w, inputs = check_recurrence(w, inputs)
    (move,) = check_floats(move=move)
    if inputs.ndim != 2 or move.shape != inputs.shape[1:] or not move.any():
        raise ValueError(
            f"inputs are {list(inputs.shape)} and move is {list(move.shape)}; expected [n, d] and [d], not all zeros. "
            f"Try move = np.full(d, 1e-4)."
        )
    moved = np.array(inputs)
    moved[0] = moved[0] + move
    return float(np.linalg.norm(last_state(w, moved) - last_state(w, inputs)) / np.linalg.norm(move))


def gradient_norms(w: np.ndarray, n_steps: int) -> np.ndarray:
    """Spectral norm of the gradient of a linear recurrence's state with respect to its input 1, 2, …, n_steps earlier.

    Parameters
    ----------
    w : array [d, d]
    n_steps : int

    Returns
    -------
    norms : array [n_steps]
        Entry k is ‖w^(k+1)‖₂, the most that a nudge of length 1 can become after k + 1 steps. It is exactly
        radius^(k+1) where w is radius times an orthogonal matrix. Pascanu, Mikolov, Bengio, *On the Difficulty of
        Training Recurrent Neural Networks* (2013), section 2.
    """
    product, norms = np.eye(len(w)), []
    for _ in range(n_steps):
        product = product @ w
        norms.append(np.linalg.norm(product, 2))
    return np.array(norms)


def readout_accuracy(states: np.ndarray, symbols: np.ndarray, n_symbols: int, train_share: float = 0.5) -> float:
    """Share of held-out sequences whose symbol a linear reader finds in the state.

    Parameters
    ----------
    states : array [n_sequences, d]
    symbols : integer array [n_sequences]
        What is to be reported, from 0 to n_symbols − 1.
    n_symbols : int
    train_share : float
        The first part, by which the reader is fitted (least squares onto one-hot targets, with a constant); the rest
        is what it is tested on.

    Returns
    -------
    accuracy : float
        1 / n_symbols is chance.
    """
    n_train = int(train_share * len(states))
    features = np.hstack([states, np.ones((len(states), 1))])
    targets = np.eye(n_symbols)[symbols]
    reader = np.linalg.lstsq(features[:n_train], targets[:n_train], rcond=None)[0]
    return float(np.mean((features[n_train:] @ reader).argmax(axis=-1) == symbols[n_train:]))
