"""Patients in which attention goes over another axis than the tokens, or rotary turns one side only."""

import math

import torch
import torch.nn.functional as F
from torch import nn

import attnlib.torch as in_torch

from .base import HUB, Attention, Block, Patient


class BatchNotFirst(nn.Module):
    """Holds what is declared as [n, batch, d]; only who states that the batch comes first makes it a fault."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(12, 4)

    def forward(self, x):
        return self.attention(x, x, x)[0]


class FirstAxisIsTokens(Attention):
    """Declares nothing, and reads the first axis as tokens."""

    def forward(self, x, mask=None):
        return super().forward(x.transpose(0, 1)).transpose(0, 1)


class FlashLayout(Attention):
    """[batch, n, heads, d_head], as flash-attn takes it, given to PyTorch's own kernel."""

    def split(self, x):
        return x.view(*x.shape[:2], self.n_heads, self.d_head)

    def forward(self, x):
        query, key, value = map(self.split, self.project(x))
        return self.output(F.scaled_dot_product_attention(query, key, value).reshape(x.shape))


class NotTransposed(FlashLayout):
    """The same with a product and a softmax, and a mask argument that then fits nowhere."""

    def forward(self, x, mask=None):
        query, key, value = map(self.split, self.project(x))
        scores = query @ key.transpose(-1, -2) / math.sqrt(self.d_head)
        scores = scores if mask is None else scores.masked_fill(~mask[:, None], -torch.inf)
        return self.output((scores.softmax(-1) @ value).reshape(x.shape))


class FoldedPlaces(FlashLayout):
    """The same with batch and places folded into one axis, for bmm."""

    def forward(self, x):
        query, key, value = (self.split(each).flatten(0, 1) for each in self.project(x))
        weights = torch.softmax(torch.bmm(query, key.mT) / math.sqrt(self.d_head), -1)
        return self.output(torch.bmm(weights, value).reshape(x.shape))


class OverHeadsBlock(Block):
    def __init__(self, attention=FlashLayout):
        super().__init__(attention=attention)

    def forward(self, x):
        x = x + self.attention(self.norm_attention(x))
        return x + self.feed_forward(self.norm_feed_forward(x))


class Forgotten(Attention):
    """The attention is computed, by a function that cannot be seen, and the values go on instead of its result."""

    def forward(self, x):
        query, key, value = self.project(x)
        weights = (query[:, :, None] - key[:, None]).square().sum(-1).neg().exp()
        (weights / weights.sum(-1, keepdim=True))[..., None].mul(value[:, None]).sum(2)
        return self.output(value)


class QueryTurned(Attention):
    def __init__(self, causal=False):
        super().__init__(12, 2, causal)

    def scores(self, query, key):
        return super().scores(in_torch.rotary(query), key)


class KeyTurned(QueryTurned):
    def scores(self, query, key):
        return Attention.scores(self, query, in_torch.rotary(key))


class PairsDiffer(QueryTurned):
    def scores(self, query, key):
        return Attention.scores(self, in_torch.rotary(query), in_torch.rotary(key, interleaved=False))


class FusedPairsDiffer(QueryTurned):
    """The same behind one map for queries, keys and values, with the fused kernel."""

    def __init__(self):
        super().__init__()
        del self.query, self.key, self.value
        self.qkv = nn.Linear(12, 36)

    def forward(self, x):
        query, key, value = map(self.split, self.qkv(x).chunk(3, -1))
        query, key = in_torch.rotary(query), in_torch.rotary(key, interleaved=False)
        return self.output(self.merge(F.scaled_dot_product_attention(query, key, value, is_causal=True)))


def patient(make, expected, bank="", source="", **options):
    return Patient(make, expected, bank, HUB + source if source else "", options)


ROTARY = "rotary differs between queries and keys"
PATIENTS = {
    "batch_first forgotten": patient(
        BatchNotFirst, "attention over the batch", "mh21", "om-ai-lab/OmDet/issues/19", batch_first=True
    ),
    "first axis read as tokens": patient(FirstAxisIsTokens, "attention over the batch"),
    "attention over heads, fused": patient(FlashLayout, "attention over the heads"),
    "attention over heads, a product": patient(NotTransposed, "attention over the heads"),
    "attention over heads, folded": patient(FoldedPlaces, "attention over the heads"),
    "attention over heads in a block": patient(OverHeadsBlock, "attention over the heads"),
    "attention over heads, causal": patient(FlashLayout, "attention over the heads", causal=True, positions=True),
    "result not used": patient(Forgotten, "tokens do not see each other"),
    "rotary on queries": patient(QueryTurned, ROTARY),
    "rotary on queries, causal": patient(lambda: QueryTurned(causal=True), ROTARY, causal=True),
    "rotary on keys": patient(KeyTurned, ROTARY),
    "rotary in pairs and in halves": patient(PairsDiffer, ROTARY, "pe20", "Dao-AILab/flash-attention/issues/288"),
    "rotary in pairs and in halves, fused": patient(FusedPairsDiffer, ROTARY),
}
