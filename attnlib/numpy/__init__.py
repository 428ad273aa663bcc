"""Part I: attention in plain NumPy, one module a lesson topic. Nothing but NumPy is imported."""

from attnlib.numpy.attention import attention_scores, masked_softmax, scaled_dot_product_attention, softmax
from attnlib.numpy.gradients import (
    attention_backward,
    multi_head_attention_backward,
    numeric_gradient,
    softmax_backward,
)
from attnlib.numpy.heads import count_parameters, merge_heads, multi_head_attention, previous_and_first, split_heads
from attnlib.numpy.lookup import mean_of_values, nearest_lookup, sequential_steps, soft_lookup
from attnlib.numpy.masks import causal_mask, padding_mask, to_additive
from attnlib.numpy.positions import (
    alibi_bias,
    alibi_slopes,
    reversal_matrix,
    rotary,
    shift_rotation,
    sinusoidal_positions,
)
from attnlib.numpy.recurrent import gradient_norms, last_state, nudge, orthogonal, readout_accuracy
from attnlib.numpy.scaling import entropy, score_variance, softmax_jacobian, steer_query, temperature_softmax
from attnlib.numpy.training import Training, recall_task, train_recall, train_step

__all__ = [
    "Training",
    "alibi_bias",
    "alibi_slopes",
    "attention_backward",
    "attention_scores",
    "causal_mask",
    "count_parameters",
    "entropy",
    "gradient_norms",
    "last_state",
    "masked_softmax",
    "mean_of_values",
    "merge_heads",
    "multi_head_attention",
    "multi_head_attention_backward",
    "nearest_lookup",
    "nudge",
    "numeric_gradient",
    "orthogonal",
    "padding_mask",
    "previous_and_first",
    "readout_accuracy",
    "recall_task",
    "reversal_matrix",
    "rotary",
    "scaled_dot_product_attention",
    "score_variance",
    "sequential_steps",
    "shift_rotation",
    "sinusoidal_positions",
    "soft_lookup",
    "softmax",
    "softmax_backward",
    "softmax_jacobian",
    "split_heads",
    "steer_query",
    "temperature_softmax",
    "to_additive",
    "train_recall",
    "train_step",
]
