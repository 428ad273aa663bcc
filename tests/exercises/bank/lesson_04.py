"""How mistakes of lesson 04 are made on the inputs of the bank."""

import numpy as np

from attnlib.numpy import scaled_dot_product_attention


def plain_softmax(scores):
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def causal_mask(wrong, space, entry):
    return plain_softmax(np.where(wrong(len(space["S"])), space["S"], -np.inf))


def masked_softmax(wrong, space, entry):
    mask = space["m"] == 1 if "m" in space else keep_of(space)
    return wrong(np.asarray(space.get("S", np.zeros(mask.shape)), dtype=float), mask)


def padding_mask(wrong, space, entry):
    q, k, v = (space[name].numpy() for name in "qkv")
    mask = wrong(np.array([1]), k.shape[-2])  # a sentence of one token, padded to two
    return scaled_dot_product_attention(q, k, v, mask.astype(q.dtype) if entry["id"] == "mk35" else mask)


def to_additive(wrong, space, entry):
    if entry["id"] == "mk13":
        return sum(wrong(space[name] == 0, np.float32) for name in ("causal", "pad"))
    mask = keep_of(space)
    return plain_softmax(np.asarray(space.get("S", np.zeros(mask.shape))) + wrong(mask, np.float64))


def keep_of(space):
    return np.asarray(space["keep"]).astype(bool) if "keep" in space else ~np.asarray(space["drop"])


ADAPTERS = {
    "causal_mask": causal_mask,
    "masked_softmax": masked_softmax,
    "padding_mask": padding_mask,
    "to_additive": to_additive,
}
NOT_IN_AN_EXERCISE = {  # id of the bank: why it cannot be made in an exercise, and where it is shown instead
    "mk04": "Shown in lesson 04, what goes wrong in the wild: one side writes 0 = allowed, the other reads 1 = allowed.",
    "mk19": "Shown in lesson 04, what goes wrong in the wild: the batch of a mask lines up with the heads of the scores.",
    "mk21": "Shown in lesson 04, what goes wrong in the wild: np.repeat where np.tile was needed.",
    "mk22": "Shown in lesson 04, what goes wrong in the wild: padding guessed from a sum of features.",
    "mk23": "Shown in lesson 04, what goes wrong in the wild: padding guessed after positions were added.",
    "mk25": "Shown in lesson 04, what goes wrong in the wild: padding guessed by the id of another vocabulary.",
    "mk33": "Shown in lesson 04, what goes wrong in the wild: two masks of what is forbidden, combined by and.",
}
