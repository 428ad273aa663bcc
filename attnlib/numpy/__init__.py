"""Part I: attention in plain NumPy, one module a lesson topic. Nothing but NumPy is imported."""

from attnlib.numpy.attention import attention_scores, masked_softmax, scaled_dot_product_attention, softmax
from attnlib.numpy.lookup import mean_of_values, nearest_lookup, sequential_steps, soft_lookup
from attnlib.numpy.positions import (
    alibi_bias,
    alibi_slopes,
    reversal_matrix,
    rotary,
    shift_rotation,
    sinusoidal_positions,
)
from attnlib.numpy.recurrent import gradient_norms, last_state, nudge, orthogonal, readout_accuracy

__all__ = [
    "alibi_bias",
    "alibi_slopes",
    "attention_scores",
    "gradient_norms",
    "last_state",
    "masked_softmax",
    "mean_of_values",
    "nearest_lookup",
    "nudge",
    "orthogonal",
    "readout_accuracy",
    "reversal_matrix",
    "rotary",
    "scaled_dot_product_attention",
    "sequential_steps",
    "shift_rotation",
    "sinusoidal_positions",
    "soft_lookup",
    "softmax",
]
