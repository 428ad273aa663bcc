"""Counting what heads do over many sentences, and what luck would do among as many heads (lesson 12)."""

from collections.abc import Sequence

import numpy as np
import torch

from attnlib.data.pronouns import Pair
from attnlib.torch.heads import split_heads
from attnlib.torch.pretrained import MiniLM
from attnlib.torch.reading import head_entropy

HABITS = ("previous", "next", "itself", "[CLS]", "[SEP]", "full stop")


def pronoun_weights(model: MiniLM, pairs: Sequence[Pair]) -> np.ndarray:
    """What every head gives from *it* to both nouns of each pair, in both sentences.

    Parameters
    ----------
    model : MiniLM
    pairs : sequence of n_pairs Pair

    Returns
    -------
    weights : array [n_pairs, 2, n_layers * n_heads, 2], float64
        Axes: pair, sentence, head (layer 0 first), noun.

    Raises
    ------
    ValueError
        If a noun or *it* is not one token, or occurs twice.
    """
    found = []
    for pair in pairs:
        for text in pair.sentences():
            tokens, maps = model.maps(text)
            for word in ("it", *pair.nouns):
                if tokens.count(word) != 1:
                    raise ValueError(
                        f"{word!r} occurs {tokens.count(word)} times among the tokens {' '.join(tokens)}; expected once, so "
                        f"that there is one weight. Try another word."
                    )
            rows = maps.flatten(0, 1)[:, tokens.index("it")]  # [heads, n]
            found.append(rows[:, [tokens.index(noun) for noun in pair.nouns]].double().numpy())
    heads = found[0].shape[0] if found else 0
    return np.reshape(found, (len(pairs), 2, heads, 2))


def noun_shifts(weights: np.ndarray) -> np.ndarray:
    """How far the first noun's share moves when the last word changes: above 0 is the right way.

    The share is that of the two nouns alone: first / (first + second).

    Parameters
    ----------
    weights : array [n_pairs, 2, heads, 2]
        From ``pronoun_weights``.

    Returns
    -------
    shifts : array [n_pairs, heads]
        Share where *it* is the first noun, minus share where it is the second: −1 to 1.
    """
    shares = weights[..., 0] / weights.sum(axis=-1)
    return shares[:, 0] - shares[:, 1]


def head_habits(model: MiniLM, texts: Sequence[str]) -> np.ndarray:
    """How much of its weight each head gives to a place that is the same for every token.

    Parameters
    ----------
    model : MiniLM
    texts : sequence of sentences that end in a full stop

    Returns
    -------
    habits : array [n_layers * n_heads, 6], float64
        Mean over the texts of the mean over the tokens, without [CLS] and [SEP], which do not look here. Columns as in
        ``HABITS``. The last token has [SEP] as its next one, and the first has [CLS] as its previous one.
    """
    found = []
    for text in texts:
        maps = model.maps(text)[1].flatten(0, 1).double()  # [heads, n, n]
        end = maps.shape[-1] - 1
        looks = np.arange(1, end)
        for keys in (looks - 1, looks + 1, looks, 0 * looks, 0 * looks + end, 0 * looks + end - 1):
            found.append(maps[:, looks, keys].mean(dim=-1).numpy())
    return np.reshape(found, (len(texts), len(HABITS), -1)).mean(axis=0).T


def entropies(model: MiniLM, texts: Sequence[str]) -> np.ndarray:
    """Entropy of each head over all tokens of some texts, in nats: array [n_layers, n_heads]."""
    ids, lengths = model.tokenize(texts)
    layers = model(ids, lengths, return_weights=True)[1].detach()
    return np.stack([head_entropy(weights, lengths).numpy() for weights in layers])


def lengths_at_start(model: MiniLM, texts: Sequence[str]) -> np.ndarray:
    """How long the vector is that each head hands out from [CLS], as a multiple of what it hands out from other tokens.

    A head adds to a token the sum of weight times value, brought to d_model by its part of the output projection. The length of
    that vector says what a weight of 1 can do: Kobayashi, Kuribayashi, Yokoi, Inui, *Attention is Not Only a Weight* (2020).

    Parameters
    ----------
    model : MiniLM
    texts : sequence of str

    Returns
    -------
    ratios : array [n_layers * n_heads], float64
        Mean over the texts of: length at [CLS], divided by the mean length at the other tokens without [SEP].
    """
    values: list[torch.Tensor] = []
    layers = [layer.attention for layer in model.encoder.layers]
    hooks = [layer.value.register_forward_hook(lambda _, args, value: values.append(value[0])) for layer in layers]
    ratios = []
    try:
        for text in texts:
            values.clear()
            model.maps(text)
            for attention, value in zip(layers, values, strict=True):
                parts = attention.output.weight.unflatten(-1, (attention.n_heads, -1))  # [d_model, n_heads, d_head]
                handed = torch.einsum("hnd,mhd->hnm", split_heads(value, attention.n_heads), parts)
                sizes = handed.norm(dim=-1)  # [n_heads, n]
                ratios.append((sizes[:, 0] / sizes[:, 1:-1].mean(dim=-1)).double().numpy())
    finally:
        for hook in hooks:
            hook.remove()
    return np.reshape(ratios, (len(texts), -1)).mean(axis=0)


def binomial_interval(successes: int, trials: int, z: float = 1.959964) -> tuple[float, float]:
    """Interval that holds a share with 95 %: Wilson, *Probable Inference, the Law of Succession, and Statistical Inference* (1927).

    Parameters
    ----------
    successes, trials : int
        Trials do not depend on each other.
    z : float
        1.96 for 95 %.

    Returns
    -------
    low, high : float
        Between 0 and 1.
    """
    if not 0 <= successes <= trials or trials < 1:
        raise ValueError(f"{successes} successes of {trials}; expected 0 to {max(trials, 1)} of at least one trial.")
    share, spread = successes / trials, z * z / trials
    middle = share + spread / 2
    half = z * np.sqrt(share * (1 - share) / trials + spread / (4 * trials))
    return float((middle - half) / (1 + spread)), float((middle + half) / (1 + spread))


def best_by_luck(shifts: np.ndarray, repeats: int = 10_000, seed: int = 0) -> np.ndarray:
    """How many pairs the luckiest head gets right if last words mean nothing.

    In each repeat a coin says for every pair which sentence is called the first, the same coin for all heads, so that heads
    that move together still do: Westfall, Young, *Resampling-Based Multiple Testing* (1993).

    Parameters
    ----------
    shifts : array [n_pairs, heads]
        From ``noun_shifts``.
    repeats : int
    seed : int

    Returns
    -------
    best : array [repeats]
        Of each repeat the largest number of pairs that any head gets right.
    """
    coins = np.random.default_rng(seed).choice([-1.0, 1.0], size=(repeats, len(shifts)))
    return ((len(shifts) + coins @ np.sign(shifts)) / 2).max(axis=-1)
