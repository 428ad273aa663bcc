"""Part I: attention in plain NumPy, one module a lesson topic. Nothing but NumPy is imported."""

from attnlib.numpy.attention import attention_scores, masked_softmax, scaled_dot_product_attention, softmax
from attnlib.numpy.heads import (
    count_parameters,
    merge_heads,
    multi_head_attention,
    previous_and_first,
    split_heads,
)
from attnlib.numpy.lookup import mean_of_values, nearest_lookup, sequential_steps, soft_lookup
from attnlib.numpy.recurrent import gradient_norms, last_state, nudge, orthogonal, readout_accuracy

__all__ = [
    "attention_scores",
    "count_parameters",
    "gradient_norms",
    "last_state",
    "masked_softmax",
    "mean_of_values",
    "merge_heads",
    "multi_head_attention",
    "nearest_lookup",
    "nudge",
    "orthogonal",
    "previous_and_first",
    "readout_accuracy",
    "scaled_dot_product_attention",
    "sequential_steps",
    "soft_lookup",
    "softmax",
    "split_heads",
]
