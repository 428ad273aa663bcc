"""Library functions that do what an exercise asks for: reported to the instructor, never punished."""

import re

SOFTMAX = {"softmax", "softmin", "log_softmax", "special_softmax"}
ATTENTION = {"scaled_dot_product_attention", "multiheadattention", "multi_head_attention_forward", "flex_attention"}
GRADIENT = {"grad", "backward", "jacobian", "jacrev", "jacfwd", "vjp", "vmap", "approx_fprime"}
BLOCK = {"transformerencoderlayer", "transformerencoder", "transformer", "transformerdecoderlayer"}
NORM = {"layer_norm", "layernorm", "native_layer_norm", "rms_norm", "rmsnorm"}
DOES = {
    "softmax": SOFTMAX,
    "masked_softmax": SOFTMAX,
    "temperature_softmax": SOFTMAX,
    "softmax_jacobian": SOFTMAX | GRADIENT,
    "softmax_backward": SOFTMAX | GRADIENT,
    "numeric_gradient": GRADIENT,
    "attention_backward": GRADIENT | ATTENTION,
    "train_step": GRADIENT | ATTENTION,
    "soft_lookup": ATTENTION,
    "scaled_dot_product_attention": ATTENTION,
    "multi_head_attention": ATTENTION,
    "SelfAttention": ATTENTION | BLOCK,
    "MultiHeadAttention": ATTENTION | BLOCK,
    "layer_norm": NORM,
    "LayerNorm": NORM,
    "EncoderLayer": BLOCK,
    "DecoderLayer": BLOCK,
    "causal_mask": {"generate_square_subsequent_mask", "create_causal_mask"},
    "entropy": {"entropy", "categorical"},
}


def library_calls(exercise: str, calls: list[str]) -> list[str]:
    """Of the dotted paths that an answer uses, those that may do the exercise's work; its own name counts always."""
    wanted = DOES.get(exercise, set()) | {plain(exercise)}
    found = [path for path in calls if plain(path.rsplit(".", 1)[-1]) in wanted]
    return [path for path in found if path.startswith(".") or path.split(".")[0] in ROOTS]


def plain(name: str) -> str:
    """A name without what differs between libraries' ways of writing."""
    return re.sub(r"^_+", "", name).lower()


ROOTS = {"torch", "scipy", "numpy", "attnlib", "jax", "tensorflow", "keras", "transformers", "einops", "sklearn"}
