"""How mistakes of lesson 08 are made on the inputs of the bank."""

from unittest import mock

import numpy as np
import torch

from attnlib.exercises.modules import build
from attnlib.torch import scaled_dot_product_attention

FAR = torch.tensor([[1000.0, -1000.0], [-1000.0, 1000.0]])  # two tokens that a norm turns into ±1


def from_key_padding_mask(wrong, space, entry):
    """Weights under the mask that is made of PyTorch's right one, with equal scores everywhere."""
    mask = wrong(space["attention_mask"] == 0)
    scores = torch.zeros(1, 3, 1)
    return scaled_dot_product_attention(scores, scores, scores, mask, return_weights=True)[1]


def self_attention(wrong, space, entry):
    """Two tokens; only the first one's row counts, whose scores are those of the bank."""
    match entry["id"]:
        case "mk12":
            layer, mask = layer_of(wrong, np.zeros(2)), ~space["drop"]
            return layer.half()(FAR.half() / 100, mask)
        case "mk16":
            layer = wrong(2, 1, 1)
            layer(FAR, torch.zeros(2, 2, dtype=torch.bool)).sum().backward()
            return layer.query.weight.grad
        case "do01" | "do03":
            scores = space["S"] if "S" in space else np.log(space["w"])
            return found(layer_of(wrong, scores, dropout=space["p"]), space["keep"])[0]
        case "do04":
            with dropped(space["keep"]):
                layer = layer_of(wrong, space["S"], dropout=space["p"]).train()
                return layer(FAR, return_weights=True)[1][0].sum().item()
        case "do05":
            return found(layer_of(wrong, np.zeros(2), space["V"], dropout=space["p"]), space["keep_o"])[:1]
        case "do02":
            layer = layer_of(wrong, np.zeros(2), dropout=0.5)
            return all(torch.equal(layer(FAR), layer(FAR)) for _ in range(20))
        case "do06":
            layer = layer_of(wrong, np.zeros(2), dropout=0.5)
            calm = layer(FAR)
            layer.train()
            return not all(torch.equal(layer(FAR), calm) for _ in range(20))


def layer_of(wrong, scores, values=((1.0, 0.0), (0.0, 1.0)), dropout=0.0):
    """A layer whose first token has these scores, and whose tokens have these values."""
    first, other = np.asarray(scores, dtype=float)
    one, two = np.asarray(values, dtype=float)
    weights = {
        "query.weight": np.zeros((1, 2)),
        "query.bias": np.ones(1),
        "key.weight": np.array([[(first - other) / 2, 0.0]]),
        "key.bias": np.array([(first + other) / 2]),
        "value.weight": np.stack([(one - two) / 2, np.zeros(2)], axis=1),
        "value.bias": (one + two) / 2,
        "output.weight": np.eye(2),
        "output.bias": np.zeros(2),
    }
    return build(wrong, 2, 1, 2, dropout=dropout, weights=weights)


def dropped(keep):
    """Dropout that keeps what the bank says."""
    keep = torch.as_tensor(np.asarray(keep), dtype=torch.float32)

    def dropout(x, p=0.5, training=True, inplace=False):
        return x * keep / (1 - p) if training else x

    return mock.patch("torch.nn.functional.dropout", dropout)


def found(layer, keep):
    """What training adds to the tokens."""
    with dropped(keep), torch.no_grad():
        return layer.train()(FAR) - FAR


def multi_head(wrong, space, entry):
    match entry["id"]:
        case "mh04":
            return wrong(4, 2)(torch.zeros(1, 2, 4))
        case "mh19" | "mh20":
            return sum(p.numel() for p in wrong(1, 1).parameters())


ADAPTERS = {
    "from_key_padding_mask": from_key_padding_mask,
    "SelfAttention": self_attention,
    "MultiHeadAttention": multi_head,
}
NOT_IN_AN_EXERCISE = {
    "nu01": "Shown in lesson 08, tensors that learn: an array of float64 meets a layer of float32.",
    "nu04": "About a check, not about an answer: those of classes set the weights themselves, by name (modules.py).",
}
