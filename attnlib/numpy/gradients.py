"""The backward pass of softmax, attention and several heads, and its check by central differences (lesson 07).

A gradient has the shape of what it belongs to, and says how much the loss grows for each unit by which that is raised.
Every function takes the gradient of its forward function's result and returns the gradients of the inputs: Rumelhart,
Hinton, Williams, *Learning Representations by Back-propagating Errors* (1986). The weights are computed again from the
inputs, as in Dao, Fu, Ermon, Rudra, Ré, *FlashAttention* (2022), appendix B.2, where these equations stand as well.
"""

import math
from collections.abc import Callable

import numpy as np

from attnlib.numpy.attention import scaled_dot_product_attention
from attnlib.numpy.checks import check_floats, check_mask, check_scale, check_shapes, widen
from attnlib.numpy.heads import check_weights, merge_heads, split_heads, with_head_axis


def numeric_gradient(function: Callable, x: np.ndarray, epsilon: float = 1e-5) -> np.ndarray:
    """Gradient of a function by central differences: move one entry at a time, up and down, and look.

    Parameters
    ----------
    function : function of an array like x that returns one number
        Called twice for each entry of x, with float64.
    x : array [...]
        Where the gradient is taken.
    epsilon : float
        How far an entry is moved. Too large, and the function bends on the way; too small, and rounding shows.

    Returns
    -------
    gradient : array [...], float64
        Entry i is (function(x with x_i + epsilon) − function(x with x_i − epsilon)) / (2 epsilon). The error falls with
        epsilon²: Press, Teukolsky, Vetterling, Flannery, *Numerical Recipes* (2007), section 5.7.

    Raises
    ------
    ValueError
        If epsilon is not above 0, or the function does not return one number.
    """
    if not epsilon > 0:
        raise ValueError(f"epsilon={epsilon}; expected a number above 0. Try epsilon=1e-5.")
    x = np.array(x, dtype=np.float64)  # a copy, so that the caller's stays as it is
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        ends = []
        for move in (epsilon, -epsilon):
            moved = x.copy()
            moved[index] += move
            ends.append(np.asarray(function(moved)))
        if ends[0].size != 1:
            raise ValueError(
                f"function returned shape {list(ends[0].shape)}; expected one number, a loss. Try adding it up, as in "
                f"lambda x: (grad_output * function(x)).sum()."
            )
        gradient[index] = (ends[0].item() - ends[1].item()) / (2 * epsilon)
    return gradient


def softmax_backward(weights: np.ndarray, grad_weights: np.ndarray) -> np.ndarray:
    """Gradient of the scores, from the weights that softmax made of them and from the gradient of these weights.

    Parameters
    ----------
    weights : array [..., n]
        What softmax returned; it ran over the last axis.
    grad_weights : array [..., n]
        Same shape and dtype (float16, float32 or float64).

    Returns
    -------
    grad_scores : array [..., n]
        weights · (grad_weights − Σ weights · grad_weights), the sum over the last axis. Each row sums to 0, since a
        shift of all scores changes no weight. A row of zeros (nothing to attend to) gives zeros, whatever its gradient.

    Raises
    ------
    ValueError
        If dtypes or shapes differ; the message says which and what to try.

    Notes
    -----
    The Jacobian, diag(weights) − weights weightsᵀ, is never written down. Its entries: Bridle, *Probabilistic
    Interpretation of Feedforward Classification Network Outputs* (1990).
    """
    weights, grad_weights = check_floats(weights=weights, grad_weights=grad_weights)
    if weights.shape != grad_weights.shape or weights.ndim == 0:
        raise ValueError(
            f"weights has shape {list(weights.shape)} and grad_weights {list(grad_weights.shape)}; expected [..., n] for "
            f"both. Try np.broadcast_to(grad_weights, weights.shape) if one gradient serves all rows."
        )
    dtype = weights.dtype
    weights, grad_weights = widen(weights), widen(grad_weights)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        mean = np.sum(weights * grad_weights, axis=-1, keepdims=True)  # [..., 1], what the row has at present
        grad_scores = np.where(weights == 0, weights, weights * (grad_weights - mean))  # 0, also where 0 meets NaN
        return grad_scores.astype(dtype, copy=False)


def attention_backward(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    grad_output: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    scale: float | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients of the three inputs of scaled dot-product attention, from the gradient of its output.

    Parameters
    ----------
    query : array [..., n_query, d_k]
    key : array [..., n_key, d_k]
    value : array [..., n_key, d_v]
        As in the forward pass: one dtype (float16, float32 or float64), leading axes broadcast.
    grad_output : array [..., n_query, d_v]
        In the shape and dtype of the output.
    mask : array, broadcasts to [..., n_query, n_key], or None
        The mask of the forward pass. Boolean: True = may attend. Floating: was added to the scores.
    scale : float, optional
        The scale of the forward pass; 1 / √d_k if not given.

    Returns
    -------
    grad_query, grad_key, grad_value : arrays
        Each in the shape and dtype of its input; over axes that were broadcast, gradients are added up. A query with
        nothing to attend to gets zeros and gives zeros; so does a key that no query may attend to.

    Raises
    ------
    ValueError
        If dtypes or shapes do not fit; the message says which and what to try.

    Notes
    -----
    Dao et al., *FlashAttention* (2022), appendix B.2. float16 is computed in float32 inside.
    """
    query, key, value = check_shapes(query, key, value)
    inputs, dtype = (query, key, value), query.dtype
    _, _, grad_output = check_floats(query=query, key=key, grad_output=grad_output)
    scale = check_scale(scale, query.shape[-1])
    if mask is not None:
        leading = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
        mask = check_mask(mask, (*leading, query.shape[-2], key.shape[-2]), dtype)
    query, key, value, grad_output, mask = map(widen, (*inputs, grad_output, mask))
    output, weights = scaled_dot_product_attention(query, key, value, mask, scale=scale, return_weights=True)
    if grad_output.shape != output.shape:
        raise ValueError(
            f"grad_output has shape {list(grad_output.shape)}; expected the shape of the output, {list(output.shape)}. "
            f"Try np.broadcast_to(grad_output, output.shape) if one gradient serves all."
        )
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):  # values may be infinite, as in the forward pass
        grad_value = weights.swapaxes(-1, -2) @ grad_output  # [..., n_key, d_v]
        grad_weights = grad_output @ value.swapaxes(-1, -2)  # [..., n_query, n_key]
        grad_scores = softmax_backward(weights, grad_weights)
        grad_scores *= scale
        grad_query = grad_scores @ key  # [..., n_query, d_k]
        grad_key = grad_scores.swapaxes(-1, -2) @ query  # [..., n_key, d_k]
        gradients = zip((grad_query, grad_key, grad_value), inputs)
        return tuple(_sum_to(gradient, array.shape).astype(dtype, copy=False) for gradient, array in gradients)


def multi_head_attention_backward(
    x: np.ndarray,
    w_query: np.ndarray,
    w_key: np.ndarray,
    w_value: np.ndarray,
    w_output: np.ndarray,
    n_heads: int,
    grad_output: np.ndarray,
    mask: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Gradients of the input and the four matrices of multi-head self-attention, from the gradient of its output.

    Parameters
    ----------
    x : array [..., n, d_model]
    w_query, w_key, w_value : arrays [d_model, n_heads · d_head]
        Used as ``x @ w``.
    w_output : array [n_heads · d_head, d_model]
    n_heads : int
    grad_output : array [..., n, d_model]
    mask : array or None
        As in the forward pass. With at most as many axes as x it holds for all heads; with one more, each head has its own.

    Returns
    -------
    grad_x, grad_w_query, grad_w_key, grad_w_value, grad_w_output : arrays
        Each in the shape and dtype of its input. x is used three times, so three gradients are added up in grad_x.

    Raises
    ------
    ValueError
        If dtypes or shapes do not fit, or a width cannot be split into n_heads.

    Notes
    -----
    The forward pass is Vaswani et al., *Attention Is All You Need* (2017), section 3.2.2, without biases. float16 is
    computed in float32 inside.
    """
    named = {"x": x, "w_query": w_query, "w_key": w_key, "w_value": w_value, "w_output": w_output}
    inputs = check_weights(named, n_heads)
    _, grad_output = check_floats(x=x, grad_output=grad_output)
    x, dtype = inputs[0], inputs[0].dtype
    expected = (*x.shape[:-1], inputs[-1].shape[-1])
    if grad_output.shape != expected:
        raise ValueError(
            f"grad_output has shape {list(grad_output.shape)}; expected the shape of the output, {list(expected)}. Try "
            f"np.broadcast_to(grad_output, output.shape) if one gradient serves all."
        )
    if mask is not None:
        mask = with_head_axis(mask, x, n_heads)
    x, w_query, w_key, w_value, w_output, grad_output, mask = map(widen, (*inputs, grad_output, mask))
    query, key, value = (split_heads(x @ w, n_heads) for w in (w_query, w_key, w_value))
    merged = merge_heads(scaled_dot_product_attention(query, key, value, mask))  # [..., n, n_heads · d_v]
    grad_found = split_heads(grad_output @ w_output.T, n_heads)
    gradients = attention_backward(query, key, value, grad_found, mask)
    grad_query, grad_key, grad_value = (merge_heads(gradient) for gradient in gradients)
    grad_x = grad_query @ w_query.T + grad_key @ w_key.T + grad_value @ w_value.T
    grad_matrices = (grad_matrix(x, gradient) for gradient in (grad_query, grad_key, grad_value))
    found = (grad_x, *grad_matrices, grad_matrix(merged, grad_output))
    with np.errstate(over="ignore", under="ignore"):
        return tuple(gradient.astype(dtype, copy=False) for gradient in found)


def grad_matrix(x: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """Gradient of w in ``x @ w``: xᵀ grad, added up over all leading axes."""
    n = math.prod(x.shape[:-1])  # counted, since −1 cannot be told where a width is 0
    return x.reshape(n, x.shape[-1]).T @ grad.reshape(n, grad.shape[-1])


def _sum_to(gradient: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Add a gradient up over the axes along which an input of this shape was broadcast."""
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    stretched = tuple(axis for axis, size in enumerate(shape) if size == 1 and gradient.shape[axis] != 1)
    return gradient.sum(axis=stretched, keepdims=True)
