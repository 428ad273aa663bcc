"""What a signature and a module tell before the first call: sequences, masks, widths."""

import functools
import inspect
from collections.abc import Callable

import torch.nn.functional as F
from torch import nn

KEYS, VALUES = ("key", "keys", "k", "key_states"), ("value", "values", "v", "value_states")
CONTEXTS = (
    "context memory encoder_output encoder_outputs encoder_hidden_states enc_output enc_out enc source kv"
).split()
TARGETS = ("tgt", "target", "trg", "y", "decoder_input", "decoder_inputs")  # second, but they ask
EMBEDDED = ("inputs_embeds", "input_embeds")  # what stands in for the ids of tokens, in whole models of Hugging Face
MASKS = ("mask", "keep", "valid", "allowed", "visible", "length", "attn_bias", "attention_bias")
WEIGHTS = (
    "return_weights",
    "need_weights",
    "return_attention",
    "return_attn",
    "output_attentions",
    "return_attn_weights",
)
WIDTHS = (
    "d_model embed_dim d_query hidden_size n_embd dim d_in embedding_dim in_channels width query_dim hidden_dim"
).split()
HEADS = ("n_heads", "num_heads", "heads", "n_head", "nhead", "h")
CONTEXT_WIDTHS = ("d_context", "kdim", "context_dim", "d_memory", "cross_dim")
FUSED = "query key value attn_mask dropout_p is_causal scale".split()  # a built-in, whose signature Python cannot read


def parameters_of(layer: Callable, call: Callable | None = None) -> list[inspect.Parameter]:
    """The parameters of a call, without ``self``; those of the fused attention are known by heart."""
    if isinstance(layer, functools.partial):
        return left_by(layer)
    if layer is F.scaled_dot_product_attention:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return [
            inspect.Parameter(name, kind, default=inspect.Parameter.empty if i < 3 else None)
            for i, name in enumerate(FUSED)
        ]
    target = layer.forward if isinstance(layer, nn.Module) else layer
    try:
        found = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return []
    return [each for each in found if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]


def left_by(layer: functools.partial) -> list[inspect.Parameter]:
    """The parameters that a partial leaves open; next to ``is_causal`` the fused attention takes no mask."""
    bound = set(layer.keywords)
    if layer.func is F.scaled_dot_product_attention and layer.keywords.get("is_causal"):
        bound.add("attn_mask")
    return [each for each in parameters_of(layer.func)[len(layer.args) :] if each.name not in bound]


def is_mask(name: str) -> bool:
    """Whether a parameter of this name is a mask of tokens; one of heads is none."""
    other = name.startswith(("is_", "use_", "return_", "max_")) or "head_mask" in name.lower()
    return any(part in name.lower() for part in MASKS) and not other


def of_context(name: str) -> bool:
    """Whether a mask of this name is one of a context."""
    return name.lower().startswith(("encoder", "enc_", "memory", "context", "cross"))


def read_signature(layer: Callable) -> tuple[str, list[str], list[str], str | None]:
    """Kind, names of the sequences, names of the masks, and the name of the switch that returns weights."""
    parameters = parameters_of(layer)
    names = [each.name for each in parameters]
    masks = [name for name in names if is_mask(name)]
    weights = next((name for name in names if name in WEIGHTS), None)
    if embedded := [name for name in names if name in EMBEDDED]:
        return "self", embedded[:1], masks, weights
    positional = [each for each in parameters if each.kind != each.KEYWORD_ONLY and each.name not in masks]
    if len(positional) >= 3 and positional[1].name.lower() in KEYS and positional[2].name.lower() in VALUES:
        return "qkv", [each.name for each in positional[:3]], masks, weights
    needed = [each for each in positional if each.default is each.empty]
    if len(positional) >= 2 and (positional[1].name.lower() in CONTEXTS or len(needed) == 2):
        return "context", [each.name for each in positional[:2]], masks, weights
    if len(needed) == 3:
        return "qkv", [each.name for each in needed], masks, weights
    return "self", [each.name for each in positional[:1]] or ["x"], masks, weights


def may_have_context(layer: Callable) -> bool:
    """Whether any argument is a context by its name."""
    return any(each.name.lower() in CONTEXTS for each in parameters_of(layer))


def left_out(layer: Callable) -> list[str]:
    """The arguments that a call with the sequences alone leaves out, and that are no masks or switches."""
    given = read_signature(layer)[1]
    return [
        each.name
        for each in parameters_of(layer)
        if each.name not in given and not is_mask(each.name) and not isinstance(each.default, (bool, int, float, str))
    ]


def without_context(layer: Callable) -> tuple[str, list[str], list[str], str | None] | None:
    """The signature, read as if it had no context; None if it has none, or insists on it."""
    kind, names, masks, weights = read_signature(layer)
    optional = [each.name for each in parameters_of(layer) if each.default is not each.empty]
    if kind != "context" or names[1] not in optional:
        return None
    return "self", names[:1], masks, weights


def required_masks(layer: Callable) -> list[str]:
    """Masks that the layer insists on."""
    return [each.name for each in parameters_of(layer) if is_mask(each.name) and each.default is each.empty]


def guess_widths(layer: Callable, names: tuple[str, ...] | list[str] = WIDTHS) -> list[int]:
    """Widths that the layer may have been made for, the likeliest first."""
    if not isinstance(layer, nn.Module):
        return []
    modules = list(layer.modules())
    for each in list(modules):  # also those that hide in plain lists
        modules += [
            item
            for value in vars(each).values()
            if isinstance(value, (list, tuple))
            for item in value
            if isinstance(item, nn.Module)
        ]
    found = (
        [vars(each)[name] for name in names for each in modules if isinstance(vars(each).get(name), int)]
        if modules
        else []
    )
    found = [vars(layer)[name] for name in names if isinstance(vars(layer).get(name), int)] + found
    found += [each.normalized_shape[-1] for each in modules if isinstance(each, nn.LayerNorm)]
    found += [each.in_features for each in modules if isinstance(each, nn.Linear)]
    found += [size for each in layer.parameters() if each.ndim >= 2 for size in reversed(each.shape[-2:])]
    return [width for width in dict.fromkeys(found) if width > 0]


def unlike_others(layer: Callable, d_model: int | None) -> int:
    """A number of tokens that no other axis has, nor does it minus 2, so that no axis is taken for another."""
    widths, heads = guess_widths(layer) + [d_model or 0], guess_widths(layer, HEADS)
    taken = {*widths, *heads, *(width // count for width in widths for count in heads)}
    return next((n for n in (7, 9, 11, 13, 15, 19, 21) if not taken & {n, n - 2}), 7)


def tries(forms: list, required: list[str]) -> list:
    """Each form with each way to say that nothing is hidden, for a layer that insists on a mask."""
    return [(form, empty) for empty in (range(5) if required else [0]) for form in forms]
