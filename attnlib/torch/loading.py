"""Weights of PyTorch's own layers in the layers of this course (lessons 08 and 09)."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from attnlib.torch.blocks import EncoderLayer, FeedForward, LayerNorm
from attnlib.torch.decoder import DecoderLayer
from attnlib.torch.layers import CrossAttention, MultiHeadAttention


def load_torch_weights(layer: nn.Module, module: nn.Module) -> nn.Module:
    """Copy the weights of PyTorch's own layer into one of this course, so that both compute the same numbers.

    Parameters
    ----------
    layer : MultiHeadAttention, CrossAttention, EncoderLayer or DecoderLayer
        Gets the weights, in its own dtype and on its own device. Dropout is not a weight and stays as it is.
    module : nn.MultiheadAttention, nn.TransformerEncoderLayer or nn.TransformerDecoderLayer
        Stays as it is.

    Returns
    -------
    layer : the layer that was given

    Raises
    ------
    ValueError
        If the kinds do not belong together, or widths, heads, biases, the place of the norm, or the activation differ.
        Nothing was copied then.

    Notes
    -----
    ``nn.MultiheadAttention`` keeps the weights of query, key and value in one matrix ``in_proj_weight`` [3 d_model, d_model],
    one below the other, if keys and values are as wide as queries, else in three.
    """
    pairs = _pairs(layer, module)  # everything is checked before anything is copied
    with torch.no_grad():
        for ours, theirs in pairs:
            ours.copy_(theirs)
    return layer


def _pairs(layer: nn.Module, module: nn.Module) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Which tensor of ours gets which of theirs."""
    match layer, module:
        case MultiHeadAttention() | CrossAttention(), nn.MultiheadAttention():
            return _attention(layer, module)
        case EncoderLayer(), nn.TransformerEncoderLayer():
            _check_block(layer, module)
            norms = (layer.norm_attention, module.norm1), (layer.norm_feed_forward, module.norm2)
            return _attention(layer.attention, module.self_attn) + _rest(layer.feed_forward, module, norms)
        case DecoderLayer(), nn.TransformerDecoderLayer():
            _check_block(layer, module)
            norms = (
                (layer.norm_attention, module.norm1),
                (layer.norm_context, module.norm2),
                (layer.norm_feed_forward, module.norm3),
            )
            attentions = _attention(layer.attention, module.self_attn)
            attentions += _attention(layer.context_attention, module.multihead_attn)
            return attentions + _rest(layer.feed_forward, module, norms)
    raise ValueError(
        f"layer is {type(layer).__name__} and module is {type(module).__name__}; expected MultiHeadAttention and "
        f"nn.MultiheadAttention, EncoderLayer and nn.TransformerEncoderLayer, or DecoderLayer and nn.TransformerDecoderLayer. "
        f"Try a stack layer by layer, as in zip(encoder.layers, module.layers)."
    )


def _attention(
    layer: MultiHeadAttention | CrossAttention, module: nn.MultiheadAttention
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    if module.bias_k is not None or module.add_zero_attn:
        raise ValueError(
            "module has bias_k or add_zero_attn, which add a key of their own; expected neither. Try a module without them."
        )
    if layer.n_heads != module.num_heads:
        raise ValueError(
            f"layer has n_heads={layer.n_heads} and module has {module.num_heads} heads; expected as many. "
            f"Try n_heads={module.num_heads} when the layer is made."
        )
    if module.kdim != module.vdim:
        raise ValueError(
            f"module has kdim={module.kdim} and vdim={module.vdim}; expected the same, since keys and values of our layers come "
            f"from one sequence. Try kdim=vdim."
        )
    if module.in_proj_weight is not None:
        weights = module.in_proj_weight.chunk(3)
    else:
        weights = module.q_proj_weight, module.k_proj_weight, module.v_proj_weight
    biases = (None,) * 3 if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
    pairs = []
    for name, weight, bias in zip(("query", "key", "value"), weights, biases):
        pairs += _linear(name, getattr(layer, name), weight, bias)
    return pairs + _linear("output", layer.output, module.out_proj.weight, module.out_proj.bias)


def _rest(feed_forward: FeedForward, module: nn.Module, norms: tuple) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Feed-forward part and norms of a block."""
    pairs = _linear("expand", feed_forward.expand, module.linear1.weight, module.linear1.bias)
    pairs += _linear("contract", feed_forward.contract, module.linear2.weight, module.linear2.bias)
    for ours, theirs in norms:
        pairs += _linear("norm", ours, theirs.weight, theirs.bias)
    return pairs


def _linear(
    name: str, ours: nn.Linear | LayerNorm, weight: torch.Tensor, bias: torch.Tensor | None
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    if ours.weight.shape != weight.shape:
        raise ValueError(
            f"{name}.weight of the layer is {list(ours.weight.shape)} and of the module {list(weight.shape)}; expected the "
            f"same. Try a layer of the module's widths (d_model, d_ff; CrossAttention where kdim differs)."
        )
    if (ours.bias is None) != (bias is None):
        has = "the module" if ours.bias is None else "the layer"
        raise ValueError(
            f"{name}: only {has} has a bias; expected both or neither. Try bias={ours.bias is None} when the layer is made, or "
            f"bias=True for a module of PyTorch whose counterpart here always has them."
        )
    return [(ours.weight, weight)] + ([] if bias is None else [(ours.bias, bias)])


def _check_block(layer: EncoderLayer | DecoderLayer, module: nn.Module) -> None:
    if layer.norm_first != module.norm_first:
        raise ValueError(
            f"layer has norm_first={layer.norm_first} and module {module.norm_first}; expected the same. "
            f"Try norm_first={module.norm_first} when the layer is made."
        )
    ours, theirs = _activation(layer.feed_forward.activation), _activation(module.activation)
    if ours != theirs:
        wanted = repr(theirs) if isinstance(theirs, str) else "the module's own, module.activation,"
        raise ValueError(f"the activations differ; expected the same. Try activation={wanted} when the layer is made.")
    for norm in (module.norm1, module.norm2, *([module.norm3] if hasattr(module, "norm3") else [])):
        if layer.norm_attention.eps != norm.eps:
            raise ValueError(
                f"layer has eps={layer.norm_attention.eps} and module {norm.eps}; expected the same in all norms. "
                f"Try eps={norm.eps} when the layer is made."
            )


def _activation(activation: Callable) -> Callable | str:
    """A name for each way of writing an activation that PyTorch's layers know, else the function itself."""
    if activation in (F.relu, torch.relu) or isinstance(activation, nn.ReLU):
        return "relu"
    if activation is F.gelu or (isinstance(activation, nn.GELU) and activation.approximate == "none"):
        return "gelu"
    return activation
