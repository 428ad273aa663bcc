"""How mistakes of lesson 12 are made on the inputs of the bank."""

import numpy as np
import torch


def head_entropy(wrong, space, entry):
    """Two keys with entropy H have weights (p, p) if H = −log p: so the entropy tells the map that was looked at."""
    weights = torch.from_numpy(space["w"])[None].expand(1, 2, 2, 2)  # the one query of the entry, twice
    entropy = np.ravel(wrong(weights, torch.tensor([2])))[0]
    return np.full((1, 2), np.exp(-entropy))


def attention_rollout(wrong, space, entry):
    """Row sums of one layer's map, from those of its mixture with the identity."""
    mixture = wrong(torch.from_numpy(space["W"])[None, None])
    return 2 * mixture.sum(dim=-1).numpy() - 1


ADAPTERS = {"head_entropy": head_entropy, "attention_rollout": attention_rollout}
