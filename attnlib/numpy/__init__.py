"""Part I: attention in plain NumPy, one module a lesson topic. Nothing but NumPy is imported."""

from attnlib.numpy.attention import attention_scores, masked_softmax, scaled_dot_product_attention, softmax
from attnlib.numpy.gradients import (
    attention_backward,
    multi_head_attention_backward,
    numeric_gradient,
    softmax_backward,
)
from attnlib.numpy.lookup import mean_of_values, nearest_lookup, sequential_steps, soft_lookup
from attnlib.numpy.recurrent import gradient_norms, last_state, nudge, orthogonal, readout_accuracy
from attnlib.numpy.training import Training, recall_task, train_recall, train_step

__all__ = [
    "Training",
    "attention_backward",
    "attention_scores",
    "gradient_norms",
    "last_state",
    "masked_softmax",
    "mean_of_values",
    "multi_head_attention_backward",
    "nearest_lookup",
    "nudge",
    "numeric_gradient",
    "orthogonal",
    "readout_accuracy",
    "recall_task",
    "scaled_dot_product_attention",
    "sequential_steps",
    "soft_lookup",
    "softmax",
    "softmax_backward",
    "train_recall",
    "train_step",
]
