"""How mistakes of lesson 11 are made on the inputs of the bank."""

import numpy as np
import torch
from torch import nn


def masked_mean(wrong, space, entry):
    if entry["id"] == "tr14":
        x = torch.from_numpy(space["h"])[:, :, None]
        return wrong(x, torch.from_numpy(space["m"]).sum(dim=1)).numpy()
    return wrong(torch.from_numpy(space["h"])[None], torch.tensor([int(space["keep"].sum())])).numpy()


class Fixed(nn.Module):
    """Returns logits that are given, whatever it reads."""

    def __init__(self, logits):
        super().__init__()
        self.logits = nn.Parameter(logits)

    def forward(self, ids, lengths):
        return self.logits


class Rising(nn.Module):
    """Its cross-entropy with label 1 is w + 100, whose gradient is 1, as that of the bank's loss."""

    def __init__(self, w):
        super().__init__()
        self.w = w

    def forward(self, ids, lengths):
        return torch.stack([self.w[0] + 100, torch.zeros(())])[None]


def train_step(wrong, space, entry):
    if entry["id"] == "tr16":
        model = Rising(nn.Parameter(torch.zeros_like(space["w"])))  # the snippet has moved its own
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        for _ in range(2):
            wrong(model, optimizer, torch.zeros(1, 1, dtype=int), torch.ones(1, dtype=int), torch.tensor([1]), 1e9)
        return model.w.detach().numpy()
    if entry["id"] == "tr03":
        logits, labels = space["z"], space["y"]
    else:  # labels of padding are −100 here
        logits = space["logits"].reshape(-1, 2)
        labels = torch.tensor([int(space["y"].reshape(-1)[0]), -100])
    model = Fixed(logits.clone())
    ids, lengths = torch.zeros(len(labels), 1, dtype=int), torch.ones(len(labels), dtype=int)
    return wrong(model, torch.optim.SGD(model.parameters(), lr=0.0), ids, lengths, labels, 1e9)


class Dropping(nn.Module):
    """The bank's dropout, read as the logits of 50 texts."""

    def __init__(self, layer, x):
        super().__init__()
        self.layer, self.x = layer, x

    def forward(self, ids, lengths):
        return self.layer(self.x).reshape(50, 2)


def evaluate(wrong, space, entry):
    model, places = Dropping(space["m"].train(), space["x"]), [torch.arange(50)]
    zeros = torch.zeros(50, dtype=int)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        shares = {wrong(model, zeros[:, None], zeros, zeros, places) for _ in range(5)}
    return np.array(len(shares) == 1)


ADAPTERS = {"masked_mean": masked_mean, "train_step": train_step, "evaluate": evaluate}
NOT_IN_AN_EXERCISE = {
    "tr04": "targets of text that is generated: lesson 13",
    "tr05": "targets of text that is generated: lesson 13",
    "tr06": "a decoder without a causal mask: lessons 04 and 13, and the doctor finds it",
    "tr08": "loss scaling is for float16; this course's mixed precision is bfloat16, which needs none",
    "tr09": "the schedule is given, attnlib.torch.training.rate_at; a test holds that its first rate is above 0",
    "tr10": "the schedule of 2017 with d_model**-0.5 is not used in this course",
    "tr11": "the schedule is given and counts updates; a test holds where its peak and its end are",
    "tr15": "label smoothing over a vocabulary with a padding class: lesson 14",
    "tr17": "gradients of several batches are not added up in this course",
}
