"""Reading the maps of trained models: entropy of heads, rollout, and what happens when a head or a word is taken away (lesson 12).

Whether a map explains what a model answers is disputed: Jain, Wallace, *Attention is not Explanation* (2019); Wiegreffe, Pinter,
*Attention is not not Explanation* (2019). Nothing here decides that. These are the measurements.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from attnlib.torch.checks import check_floats, check_whole
from attnlib.torch.heads import merge_heads


def head_entropy(weights: Tensor, lengths: Tensor | None = None) -> Tensor:
    """How widely each head looks: the entropy of its weights in nats, averaged over all real tokens of a batch.

    Parameters
    ----------
    weights : tensor [batch, n_heads, n, n]
        Rows that sum to 1.
    lengths : tensor [batch] of whole numbers, optional
        How many tokens of each text are real; rows of padding are left out. All of them if not given.

    Returns
    -------
    entropy : tensor [n_heads]
        0: all on one token; log(n): the same for all n. Every real token counts once, so a long text counts more than a short one.

    Raises
    ------
    ValueError
        If weights have not four axes, or lengths do not fit.
    """
    check_floats(weights=weights)
    if weights.ndim != 4 or weights.shape[-1] != weights.shape[-2]:
        raise ValueError(
            f"weights have shape {list(weights.shape)}; expected [batch, n_heads, n, n]. Try weights[None] for a single text, "
            f"or weights[layer] for one layer of a stack."
        )
    batch, _, n, _ = weights.shape
    lengths = torch.full((batch,), n) if lengths is None else lengths
    if lengths.shape != (batch,) or lengths.min() < 1 or lengths.max() > n:
        raise ValueError(f"lengths are {lengths.tolist()}; expected {batch} whole numbers from 1 to {n}.")
    rows = -torch.special.xlogy(weights, weights).sum(dim=-1)  # [batch, n_heads, n]; 0 log 0 = 0
    real = (torch.arange(n, device=weights.device) < lengths[:, None])[:, None]  # [batch, 1, n]
    return (rows * real).sum(dim=(0, 2)) / lengths.sum()


def attention_rollout(weights: Tensor) -> Tensor:
    """Follow the maps through all layers: how much of what stands at token i at the end came from token j at the start.

    Abnar, Zuidema, *Quantifying Attention Flow in Transformers* (2020), section 3: each layer is taken as the mean of its heads,
    half of which is the residual connection, ``mix = 0.5 * mean + 0.5 * identity``, and layers are multiplied, the last one in front.

    Parameters
    ----------
    weights : tensor [n_layers, ..., n_heads, n, n]
        As ``Encoder`` returns them, the first layer first.

    Returns
    -------
    rollout : tensor [..., n, n]
        Rows sum to 1.

    Raises
    ------
    ValueError
        If there are fewer than four axes, or maps are not square.

    Notes
    -----
    It knows nothing of values, of the output projection, of the feed-forward part or of norms, takes all heads as equal, and
    assumes that half of a token stays where it is. It is a summary of the maps, not of the model.
    """
    check_floats(weights=weights)
    if weights.ndim < 4 or weights.shape[-1] != weights.shape[-2]:
        raise ValueError(
            f"weights have shape {list(weights.shape)}; expected [n_layers, ..., n_heads, n, n]. Try torch.stack over the layers."
        )
    maps = weights.mean(dim=-3)  # [n_layers, ..., n, n]
    identity = torch.eye(maps.shape[-1], dtype=maps.dtype, device=maps.device)
    rollout = identity.expand(maps.shape[1:])
    for layer in 0.5 * maps + 0.5 * identity:
        rollout = layer @ rollout
    return rollout


def ablate_head(weights: Tensor, value: Tensor, head: int) -> Tensor:
    """What all heads found, side by side, with zeros in place of what one head found.

    It is what enters the output projection: Michel, Levy, Neubig, *Are Sixteen Heads Really Better than One?* (2019), section 2.3.

    Parameters
    ----------
    weights : tensor [..., n_heads, n_query, n_key]
    value : tensor [..., n_heads, n_key, d_head]
    head : int
        From 0.

    Returns
    -------
    merged : tensor [..., n_query, n_heads * d_head]

    Raises
    ------
    ValueError
        If there is no such head, or weights and values do not fit.
    """
    check_floats(weights=weights, value=value)
    n_heads = weights.shape[-3] if weights.ndim >= 3 else 0
    if value.ndim < 3 or value.shape[-3] != n_heads or value.shape[-2] != weights.shape[-1]:
        raise ValueError(
            f"weights are {list(weights.shape)} and value is {list(value.shape)}; expected [..., n_heads, n_query, n_key] and "
            f"[..., n_heads, n_key, d_head]. Try split_heads before."
        )
    check_head(head, n_heads)
    found = weights @ value  # [..., n_heads, n_query, d_head]
    kept = (torch.arange(n_heads, device=value.device) != head)[:, None, None]
    return merge_heads(found * kept)


def check_head(head: int, n_heads: int) -> int:
    """Return the number of a head, or raise a ValueError."""
    if check_whole("head", head, 0) >= n_heads:
        raise ValueError(f"head={head}; expected a whole number from 0 to {n_heads - 1}, since heads count from 0.")
    return head


@contextmanager
def without_head(attention: nn.Module, head: int) -> Iterator[None]:
    """Within a ``with`` block, one head of a layer finds nothing: zeros enter the output projection in its place.

    Parameters
    ----------
    attention : MultiHeadAttention
        Such as ``model.encoder.layers[3].attention``.
    head : int
    """
    check_head(head, attention.n_heads)
    d_head = attention.output.in_features // attention.n_heads

    def silence(_, args: tuple[Tensor]) -> tuple[Tensor]:
        (merged,) = args
        kept = torch.arange(merged.shape[-1], device=merged.device) // d_head != head
        return (merged * kept,)

    handle = attention.output.register_forward_pre_hook(silence)
    try:
        yield
    finally:
        handle.remove()


def deletion_curve(predict: Callable[[Tensor], Tensor], importance: Tensor, steps: int) -> Tensor:
    """What a model answers when its most important words are taken away, one after the other.

    Samek, Binder, Montavon, Lapuschkin, Müller, *Evaluating the Visualization of What a Deep Neural Network has Learned* (2017),
    section 3, for pixels; DeYoung et al., *ERASER* (2020), section 4.2, for words.

    Parameters
    ----------
    predict : function
        Of masks [steps + 1, n], boolean, True = the word stays; returns [steps + 1].
    importance : tensor [n]
        The largest goes first. The sign counts.
    steps : int
        How many words are taken away in the end, 0 to n.

    Returns
    -------
    curve : tensor [steps + 1]
        Begins with the answer to the whole text.

    Raises
    ------
    ValueError
        If importance has not one axis, or there are fewer words than steps.
    """
    check_floats(importance=importance)
    if importance.ndim != 1 or not 0 <= check_whole("steps", steps, 0) <= len(importance):
        raise ValueError(
            f"importance has shape {list(importance.shape)} and steps={steps}; expected [n], and at most n steps. Try one text "
            f"at a time, without its padding."
        )
    rank = importance.argsort(descending=True, stable=True).argsort()  # [n]: 0 for the most important
    return predict(rank >= torch.arange(steps + 1, device=importance.device)[:, None])


def shorter_texts(model: nn.Module, ids: Tensor, label: int) -> Callable[[Tensor], Tensor]:
    """The function of masks that ``deletion_curve`` asks for: how probable a label is if words are left out of a text.

    Words that are left out are gone: those behind them move up, and the model reads a shorter text.

    Parameters
    ----------
    model : layer called (ids [batch, n], lengths [batch]), which returns logits [batch, n_classes]
    ids : tensor [n], int64
        One text without padding.
    label : int

    Returns
    -------
    predict : function of masks [batch, n], which returns probabilities [batch]
    """

    @torch.no_grad()
    def predict(masks: Tensor) -> Tensor:
        texts = [ids[mask] for mask in masks]
        lengths = torch.tensor([len(text) for text in texts])
        return model(nn.utils.rnn.pad_sequence(texts, batch_first=True), lengths).softmax(dim=-1)[:, label]

    return predict


def attention_received(model: nn.Module, ids: Tensor) -> Tensor:
    """How much each word of one text is looked at: the mean over layers, heads and all words that look, [n]."""
    with torch.no_grad():
        weights = model(ids[None], torch.tensor([len(ids)]), return_weights=True)[1]  # [n_layers, 1, n_heads, n, n]
    return weights[:, 0].mean(dim=(0, 1, 2))


def gradient_times_input(model: nn.Module, ids: Tensor, label: int) -> Tensor:
    """How much each word of one text speaks for a label, if the model were linear: gradient · embedding, [n].

    Shrikumar, Greenside, Shcherbina, Kundaje, *Not Just a Black Box* (2016), for images; Denil, Demiraj, de Freitas,
    *Extraction of Salient Sentences from Labelled Documents* (2014), for words.
    """
    seen = []

    def keep(_, args: tuple, output: Tensor) -> Tensor:
        seen.append(output.detach().requires_grad_())
        return seen[0]

    handle = model.embedding.register_forward_hook(keep)
    try:
        logits = model(ids[None], torch.tensor([len(ids)]))[0]  # [n_classes]
    finally:
        handle.remove()
    others = torch.cat([logits[:label], logits[label + 1 :]])
    (gradient,) = torch.autograd.grad(logits[label] - others.mean(), seen)
    return (gradient * seen[0].detach()).sum(dim=-1)[0]
