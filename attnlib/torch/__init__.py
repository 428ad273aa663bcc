"""Parts II and III: attention in PyTorch, under the names of ``attnlib.numpy``, and the layers that hold its weights."""

from attnlib.torch.attention import (
    attention_scores,
    masked_softmax,
    scaled_dot_product_attention,
    softmax,
)
from attnlib.torch.blocks import (
    Encoder,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    layer_norm,
)
from attnlib.torch.conventions import (
    from_additive,
    from_attention_mask,
    from_attn_mask,
    from_key_padding_mask,
    to_attention_mask,
    to_attn_mask,
    to_key_padding_mask,
)
from attnlib.torch.counting import transformer_flops, transformer_parameters
from attnlib.torch.decoder import Decoder, DecoderLayer
from attnlib.torch.heads import merge_heads, multi_head_attention, split_heads
from attnlib.torch.layers import CrossAttention, MultiHeadAttention, SelfAttention
from attnlib.torch.loading import load_torch_weights
from attnlib.torch.masks import causal_mask, padding_mask, to_additive
from attnlib.torch.positions import (
    LearnedPositions,
    SinusoidalPositions,
    alibi_bias,
    rotary,
    sinusoidal_positions,
)
from attnlib.torch.pretrained import MiniLM, load_minilm
from attnlib.torch.reading import ablate_head, attention_rollout, deletion_curve, head_entropy

__all__ = [
    "CrossAttention",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "LayerNorm",
    "LearnedPositions",
    "MiniLM",
    "MultiHeadAttention",
    "SelfAttention",
    "SinusoidalPositions",
    "ablate_head",
    "alibi_bias",
    "attention_rollout",
    "attention_scores",
    "causal_mask",
    "deletion_curve",
    "from_additive",
    "from_attention_mask",
    "from_attn_mask",
    "from_key_padding_mask",
    "head_entropy",
    "layer_norm",
    "load_minilm",
    "load_torch_weights",
    "masked_softmax",
    "merge_heads",
    "multi_head_attention",
    "padding_mask",
    "rotary",
    "scaled_dot_product_attention",
    "sinusoidal_positions",
    "softmax",
    "split_heads",
    "to_additive",
    "to_attention_mask",
    "to_attn_mask",
    "to_key_padding_mask",
    "transformer_flops",
    "transformer_parameters",
]
