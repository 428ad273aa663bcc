"""Patients whose heads, projections, positions, context or module are wrong."""

import math

import torch
from torch import nn

from .base import HUB, Attention, Block, Patient


class ViewOnly(Attention):
    def split(self, x):
        return x.view(len(x), self.n_heads, x.shape[1], self.d_head)


class MergedWithoutTranspose(Attention):
    def merge(self, heads):
        return heads.reshape(len(heads), heads.shape[2], self.d_model)


class ValuesAreKeys(Attention):
    def project(self, x):
        key = self.key(x)
        return self.query(x), key, key


class OneProjection(Attention):
    def project(self, x):
        return self.query(x), self.query(x), self.value(x)


class ListOfHeads(nn.Module):
    def __init__(self, d_model=12, n_heads=4):
        super().__init__()
        self.heads = [Attention(d_model, 1) for _ in range(n_heads)]
        self.output = nn.Linear(n_heads * d_model, d_model)

    def forward(self, x):
        return self.output(torch.cat([head(x) for head in self.heads], -1))


class Repeated(nn.Module):
    def __init__(self, d_model=12):
        super().__init__()
        self.layers = nn.ModuleList([Block(d_model)] * 3)

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return x


def sinusoids(n, width):
    angles = torch.arange(n)[:, None] / 10_000 ** (torch.arange(0, width, 2) / width)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)


class FromTheBatch(Attention):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", sinusoids(50, 12)[:, None])

    def forward(self, x, mask=None):
        return super().forward(x + self.table[: x.size(0)], mask)


class PlainTable(Attention):
    def __init__(self):
        super().__init__()
        self.table = sinusoids(50, 12)

    def forward(self, x, mask=None):
        return super().forward(x + self.table[: x.shape[1]], mask)


class PlainLearned(Attention):
    def __init__(self):
        super().__init__()
        self.places = torch.randn(50, 12) * 0.02

    def forward(self, x, mask=None):
        return super().forward(x + self.places[: x.shape[1]], mask)


class Cross(Attention):
    """Attention to a context [batch, n_key, 10]."""

    def __init__(self):
        super().__init__()
        self.key, self.value = nn.Linear(10, 12), nn.Linear(10, 12)

    def ask(self, query, context):
        return self.query(query), self.key(context), self.value(context)

    def allow(self, n_query, n_key, mask):
        return torch.ones(n_query, n_key, dtype=torch.bool) if mask is None else mask[:, None]

    def forward(self, query, context, mask=None):
        query, key, value = map(self.split, self.ask(query, context))
        weights = self.softmax(self.scores(query, key), self.allow(query.shape[2], key.shape[2], mask))
        return self.output(self.merge(weights @ value))


class ContextAsks(Cross):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(10, 12), nn.Linear(12, 12), nn.Linear(12, 12)

    def ask(self, query, context):
        return self.query(context), self.key(query), self.value(query)

    def allow(self, n_query, n_key, mask):
        return torch.ones(n_query, n_key, dtype=torch.bool)


class CausalOnContext(Cross):
    def allow(self, n_query, n_key, mask):
        return super().allow(n_query, n_key, mask) & torch.ones(n_query, n_key, dtype=torch.bool).tril()


class ContextMaskForgotten(Cross):
    def allow(self, n_query, n_key, mask):
        return torch.ones(n_query, n_key, dtype=torch.bool)


class WritesIntoItsInput(Attention):
    def forward(self, x, mask=None):
        x *= math.sqrt(self.d_model)
        return super().forward(x, mask)


class UnusedProjection(Attention):
    def merge(self, heads):
        self.unused = None
        return super().merge(heads)

    def forward(self, x, mask=None):
        query, key, value = map(self.split, self.project(x))
        return self.merge(self.softmax(self.scores(query, key), self.allowed(x.shape[1], mask)) @ value)


def patient(make, expected, bank, source, **options):
    return Patient(make, expected, bank, HUB + source if source else "", options)


PATIENTS = {
    "heads by view alone": patient(ViewOnly, "heads split without transpose", "mh01", "reczoo/FuxiCTR/issues/30"),
    "heads merged without transpose": patient(
        MergedWithoutTranspose, "heads merged without transpose", "mh02", "jsbaan/transformer-from-scratch/pull/6"
    ),
    "keys by the query's matrix": patient(
        OneProjection, "queries and keys are the same", "mh11", "Khaliladib11/Transformer-from-scratch/pull/2"
    ),
    "values copied from keys": patient(
        ValuesAreKeys, "values copied from the keys", "mh12", "meta-pytorch/torchtune/pull/21"
    ),
    "heads in a list": patient(ListOfHeads, "heads in a plain list", "mh19", "pytorch/pytorch/issues/38639"),
    "[layer] * 3": patient(Repeated, "one layer used several times", "mh20", "zalandoresearch/pytorch-vq-vae/issues/2"),
    "positions from the batch axis": patient(
        FromTheBatch, "positions from the batch axis", "pe07", "cmu-l3/anlp-fall2025-code/issues/1"
    ),
    "table is a plain attribute": patient(PlainTable, "table is no buffer", "pe11", "wingedsheep/transformer/issues/4"),
    "no positions": patient(
        Block, "order does not matter", "pe18", "DaoyuanLi2816/Molecule-Generator/pull/23", positions=True
    ),
    "learned positions as a plain tensor": patient(PlainLearned, "learned tensor is no parameter", "pe24", ""),
    "queries from the encoder": patient(
        ContextAsks, "queries come from the context", "ca01", "humza909/LLM_Survey/issues/2", d_model=12, d_context=10
    ),
    "causal mask on the source": patient(
        CausalOnContext, "causal mask on the context", "ca04", "keras-team/keras-io/pull/1046"
    ),
    "source mask forgotten": patient(
        ContextMaskForgotten, "mask ignored", "ca05", "speechbrain/speechbrain/issues/1107"
    ),
    "input scaled in place": patient(WritesIntoItsInput, "input changed", "", ""),
    "output projection never used": patient(UnusedProjection, "no gradient", "", ""),
}
