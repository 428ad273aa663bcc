"""A small healthy attention in steps, so that a patient differs from it in one step; and the card of a patient."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import nn

HUB = "https://github.com/"


@dataclass(frozen=True)
class Patient:
    """``make()`` builds it, ``expected`` is the fault that the doctor must name first, ``bank`` and ``source`` say whence."""

    make: Callable
    expected: str
    bank: str
    source: str
    options: dict = field(default_factory=dict)
    number: str = r"\d"  # what the numbers in the finding must match


class Attention(nn.Module):
    """Self-attention with heads, a boolean mask [batch, n, n] (True = may attend), optionally causal. Healthy."""

    def __init__(self, d_model=12, n_heads=4, causal=False, dropout=0.0):
        super().__init__()
        self.d_model, self.n_heads, self.d_head, self.causal = d_model, n_heads, d_model // n_heads, causal
        self.query, self.key, self.value = (nn.Linear(d_model, d_model) for _ in range(3))
        self.output = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def project(self, x):
        return self.query(x), self.key(x), self.value(x)

    def split(self, x):
        return x.view(*x.shape[:2], self.n_heads, self.d_head).transpose(1, 2)

    def scores(self, query, key):
        return query @ key.transpose(-1, -2) / math.sqrt(self.d_head)

    def allowed(self, n, mask):
        allowed = torch.ones(n, n, dtype=torch.bool)
        allowed = allowed.tril() if self.causal else allowed
        return allowed if mask is None else allowed & mask[:, None]

    def softmax(self, scores, allowed):
        weights = torch.softmax(scores.masked_fill(~allowed, -1e4), dim=-1)
        return weights * allowed.any(-1, keepdim=True)

    def drop(self, weights):
        return self.dropout(weights)

    def mix(self, weights, value):
        return weights @ value

    def merge(self, heads):
        return heads.transpose(1, 2).flatten(-2)

    def forward(self, x, mask=None):
        query, key, value = map(self.split, self.project(x))
        weights = self.softmax(self.scores(query, key), self.allowed(x.shape[1], mask))
        return self.output(self.merge(self.mix(self.drop(weights), value)))


class Block(nn.Module):
    """A pre-norm block: attention and feed-forward, each in a residual connection. Healthy."""

    def __init__(self, d_model=12, n_heads=4, causal=False, attention=Attention):
        super().__init__()
        self.attention = attention(d_model, n_heads, causal)
        self.norm_attention, self.norm_feed_forward = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.feed_forward = nn.Sequential(nn.Linear(d_model, 32), nn.ReLU(), nn.Linear(32, d_model))

    def forward(self, x, mask=None):
        x = x + self.attention(self.norm_attention(x), mask)
        return x + self.feed_forward(self.norm_feed_forward(x))
