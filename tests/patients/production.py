"""Patients in the styles of code that is in use, most of them with one slip that gives no error."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import attnlib.torch as in_torch

from .base import Attention, Block, Patient


class HeadsCompete(Attention):
    """Behind a causal mask of −inf, softmax over the heads is 0 / 0 in the future."""

    def softmax(self, scores, allowed):
        return torch.softmax(scores.masked_fill(~allowed, -torch.inf), dim=1)


class RowsOfPadding(Attention):
    """A mask of keys [batch, n], put on the queries."""

    def forward(self, x, mask=None):
        query, key, value = map(self.split, self.project(x))
        scores = self.scores(query, key)
        scores = scores if mask is None else scores.masked_fill(~mask[:, None, :, None], self.fill)
        return self.output(self.merge(scores.softmax(-1) @ value))

    fill = -torch.inf


class FiniteRows(RowsOfPadding):
    fill = -1e4


class MultiQuery(nn.Module):
    """One head of keys and values for all queries, without an axis of its own."""

    def __init__(self, scale=1.0, fetch="value"):
        super().__init__()
        self.projection, self.output = nn.Linear(12, 18), nn.Linear(12, 12)
        self.scale, self.fetch = scale, fetch

    def forward(self, x):
        query, key, value = self.projection(x).split((12, 3, 3), -1)
        query = query.unflatten(-1, (4, 3)).transpose(1, 2)
        weights = torch.softmax(torch.einsum("bhqd,bkd->bhqk", query, key) * self.scale, -1)
        mixed = torch.einsum("bhqk,bkd->bqhd", weights, {"key": key, "value": value}[self.fetch])
        return self.output(mixed.flatten(2))


class GroupedRotary(nn.Module):
    """6 heads of queries, 2 of keys and values, rotary, as in Llama."""

    def __init__(self, scale=None, keys="neighbours", values="neighbours", turn=in_torch.rotary, turn_values=False):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(12, 24), nn.Linear(12, 8), nn.Linear(12, 8)
        self.output = nn.Linear(24, 12)
        self.scale, self.repeats, self.turn, self.turn_values = scale, (keys, values), turn, turn_values

    def repeated(self, heads, how):
        return heads.repeat_interleave(3, 1) if how == "neighbours" else heads.repeat(1, 3, 1, 1)

    def forward(self, x):
        query, key, value = (f(x).unflatten(-1, (-1, 4)).transpose(1, 2) for f in (self.query, self.key, self.value))
        query, key = self.turn(query), self.turn(key)
        value = self.turn(value) if self.turn_values else value
        key, value = map(self.repeated, (key, value), self.repeats)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=self.scale)
        return self.output(mixed.transpose(1, 2).flatten(2))


def halves_with_angles_of_pairs(x):
    """rotate_half, with each angle twice in a row."""
    angles = torch.outer(torch.arange(x.shape[-2]), 1e4 ** -torch.arange(0, 1, 2 / x.shape[-1])).repeat_interleave(
        2, -1
    )
    one, other = x.chunk(2, -1)
    return x * angles.cos().to(x.dtype) + torch.cat((-other, one), -1) * angles.sin().to(x.dtype)


class BiasedWide(Attention):
    """A bias by distance on scores that are divided by √d_model."""

    def scores(self, query, key):
        n = query.shape[-2]
        gap = (torch.arange(n) - torch.arange(n)[:, None]).abs()
        return query @ key.mT / math.sqrt(self.d_model) - gap.to(query.dtype)


class RmsOverTime(nn.Module):
    def __init__(self, d_model=12):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-6) * self.weight


class Normed(Block):
    """A causal block with another norm."""

    def __init__(self, norm):
        super().__init__(causal=True)
        self.norm_attention, self.norm_feed_forward = norm, norm


class OverAll(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(12))

    def forward(self, x):
        return F.layer_norm(x, x.shape[1:]) * self.weight


class AttentionNotAdded(Block):
    def forward(self, x):
        x = self.attention(self.norm_attention(x))
        return x + self.feed_forward(self.norm_feed_forward(x))


class FeedForwardNotAdded(Block):
    def forward(self, x):
        x = x + self.attention(self.norm_attention(x))
        return self.feed_forward(self.norm_feed_forward(x))


class FirstAddsNormalised(Block):
    def forward(self, x):
        x = self.norm_attention(x)
        x = x + self.attention(x)
        return x + self.feed_forward(self.norm_feed_forward(x))


class Detached(Attention):
    def mix(self, weights, value):
        return weights.detach() @ value


class OneMapDetached(nn.Module):
    """Queries, keys and values from one map, so that no parameter is without a gradient."""

    def __init__(self):
        super().__init__()
        self.projection, self.output = nn.Linear(12, 36), nn.Linear(12, 12)

    def forward(self, x):
        query, key, value = (each.unflatten(-1, (4, 3)).transpose(1, 2) for each in self.projection(x).chunk(3, -1))
        with torch.no_grad():
            weights = torch.softmax(query @ key.mT / math.sqrt(3), -1)
        return self.output((weights @ value).transpose(1, 2).flatten(2))


class ListedParameters(nn.Module):
    def __init__(self):
        super().__init__()
        self.queries = [nn.Parameter(torch.randn(12, 3) / 4) for _ in range(4)]
        self.value, self.output = nn.Linear(12, 12), nn.Linear(12, 12)

    def forward(self, x):
        values = self.value(x).chunk(4, -1)
        heads = [torch.softmax(x @ w @ (x @ w.flip(0)).mT / math.sqrt(3), -1) @ v for w, v in zip(self.queries, values)]
        return self.output(torch.cat(heads, -1))


class PlainGate(Attention):
    def __init__(self):
        super().__init__()
        self.gamma = torch.ones(1, requires_grad=True)

    def forward(self, x):
        return x + self.gamma.to(x.dtype) * super().forward(x)


class OutputIsValue(Attention):
    def __init__(self):
        super().__init__()
        self.output = self.value


class DropsTwice(Attention):
    def __init__(self):
        super().__init__(dropout=0.2)

    def drop(self, weights):
        return F.dropout(self.dropout(weights), 0.2, self.training)


class ComesOutWider(Attention):
    def forward(self, x):
        return super().forward(x).float()


class KeepsItsMask(Attention):
    """A causal mask for the batch and the length of the first call."""

    kept = None

    def forward(self, x):
        if self.kept is None:
            self.kept = torch.ones(len(x), x.shape[1], x.shape[1], dtype=torch.bool).tril()
        return super().forward(x, self.kept)


class KeepsTheGivenMask(Attention):
    kept = None

    def forward(self, x, mask=None):
        self.kept = mask if self.kept is None else self.kept
        return super().forward(x, self.kept)


class TableNotCut(Attention):
    def __init__(self):
        super().__init__(causal=True)
        self.register_buffer("triangle", torch.ones(16, 16, dtype=torch.bool).tril())

    def forward(self, x):
        return super().forward(x, self.triangle[None])


class BesideAConvolution(nn.Module):
    """Tokens reach each other through the convolution, sequences through an attention that is not batch_first."""

    def __init__(self):
        super().__init__()
        self.attention, self.convolution = nn.MultiheadAttention(12, 4), nn.Conv1d(12, 12, 3, padding=1)

    def forward(self, x):
        x = x + self.attention(x, x, x)[0]
        return x + self.convolution(x.mT).mT


class WithCache(nn.Module):
    """Takes and returns keys and values; `late` says whether the mask knows of those that came before."""

    def __init__(self, late=True):
        super().__init__()
        self.projection, self.output, self.late = nn.Linear(12, 36), nn.Linear(12, 12), late

    def forward(self, x, past_kv=None):
        query, key, value = (each.unflatten(-1, (4, 3)).transpose(1, 2) for each in self.projection(x).chunk(3, -1))
        if past_kv is not None:
            key, value = (torch.cat(pair, 2) for pair in zip(past_kv, (key, value)))
        offset = key.shape[2] - query.shape[2] if self.late else 0
        allowed = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool).tril(offset)
        mixed = F.scaled_dot_product_attention(query, key, value, allowed)
        return self.output(mixed.transpose(1, 2).flatten(2)), (key, value)


def exp_as_it_stands(query, key, value):
    exps = np.exp(query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1]))
    return exps / exps.sum(-1, keepdims=True) @ value


def patient(make, expected, **options):
    return Patient(make, expected, "", "", options)


PATIENTS = {
    "softmax over heads, causal": patient(lambda: HeadsCompete(causal=True), "softmax over the heads", causal=True),
    "mask on the queries": patient(RowsOfPadding, "mask on the query axis", mask="may attend"),
    "mask on the queries, finite": patient(FiniteRows, "mask on the query axis", mask="may attend"),
    "multi-query, not scaled": patient(MultiQuery, "no scaling"),
    "multi-query fetches keys": patient(lambda: MultiQuery(3**-0.5, "key"), "values copied from the keys"),
    "grouped rotary, not scaled": patient(lambda: GroupedRotary(1.0), "no scaling", causal=True),
    "a bias, and √d_model": patient(lambda: BiasedWide(), "scaled by d_model"),
    "groups in turn": patient(lambda: GroupedRotary(keys="turn", values="turn"), "groups of heads in turn"),
    "keys in turn, values not": patient(lambda: GroupedRotary(keys="turn"), "keys and values of other heads"),
    "rotary, angles of pairs": patient(lambda: GroupedRotary(turn=halves_with_angles_of_pairs), "rotary does not turn"),
    "rotary on values": patient(lambda: GroupedRotary(turn_values=True), "rotary on the values"),
    "RMS norm over time": patient(lambda: Normed(RmsOverTime()), "norm over time", causal=True),
    "norm over both axes": patient(lambda: Normed(OverAll()), "norm over time", causal=True),
    "attention not added": patient(AttentionNotAdded, "residual missing"),
    "feed-forward not added": patient(FeedForwardNotAdded, "residual missing"),
    "first residual normalised": patient(FirstAddsNormalised, "residual of the normalised input"),
    "weights detached": patient(Detached, "gradient is cut"),
    "weights without gradients": patient(OneMapDetached, "gradient is cut"),
    "parameters in a list": patient(ListedParameters, "heads in a plain list"),
    "a plain gate": patient(PlainGate, "learned tensor is no parameter"),
    "output is value": patient(OutputIsValue, "one layer used several times"),
    "dropped twice": patient(DropsTwice, "dropout twice"),
    "comes out wider": patient(ComesOutWider, "result in another dtype"),
    "exp as it stands": patient(lambda: exp_as_it_stands, "large scores overflow"),
    "mask of the first batch": patient(KeepsItsMask, "an earlier call matters", causal=True),
    "mask of the first call": patient(KeepsTheGivenMask, "an earlier call matters", mask="may attend"),
    "is_causal behind a cache": patient(lambda: WithCache(late=False), "a cache changes the result", causal=True),
    "table not cut": patient(TableNotCut, "one number of tokens only", causal=True),
    "beside a convolution": patient(BesideAConvolution, "attention over the batch", batch_first=True),
}
