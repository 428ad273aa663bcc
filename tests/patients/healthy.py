"""Layers and functions in which the doctor must find nothing: several conventions, forms and styles."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import attnlib.numpy as in_numpy
import attnlib.torch as in_torch

from .base import Attention, Block


class FusedCausal(nn.Module):
    """Queries, keys and values from one map, a lower triangle in a buffer, dropout on weights and result."""

    def __init__(self, n_embd=12, n_head=4):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.n_head, self.n_embd = n_head, n_embd
        self.attn_dropout, self.resid_dropout = nn.Dropout(0.1), nn.Dropout(0.1)
        self.register_buffer("bias", torch.tril(torch.ones(64, 64)).view(1, 1, 64, 64))

    def forward(self, x):
        batch, n, width = x.size()
        query, key, value = self.c_attn(x).split(self.n_embd, dim=2)
        query, key, value = (each.view(batch, n, self.n_head, -1).transpose(1, 2) for each in (query, key, value))
        scores = query @ key.transpose(-2, -1) * (1.0 / math.sqrt(key.size(-1)))
        scores = scores.masked_fill(self.bias[:, :, :n, :n] == 0, float("-inf"))
        mixed = self.attn_dropout(F.softmax(scores, dim=-1)) @ value
        return self.resid_dropout(self.c_proj(mixed.transpose(1, 2).contiguous().view(batch, n, width)))


class FlashCausal(FusedCausal):
    def forward(self, x):
        parts = self.c_attn(x).chunk(3, dim=-1)
        query, key, value = (each.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for each in parts)
        rate = 0.1 if self.training else 0.0
        mixed = F.scaled_dot_product_attention(query, key, value, dropout_p=rate, is_causal=True)
        return self.resid_dropout(self.c_proj(mixed.transpose(1, 2).flatten(2)))


class NormInside(nn.Module):
    """The norm inside, the residual connection outside; heads interleaved; queries scaled before the product."""

    def __init__(self, dim=12, heads=4):
        super().__init__()
        self.norm, self.to_qkv, self.to_out = (
            nn.LayerNorm(dim),
            nn.Linear(dim, 3 * dim, bias=False),
            nn.Linear(dim, dim),
        )
        self.heads, self.scale = heads, (dim // heads) ** -0.5

    def forward(self, x):
        query, key, value = self.to_qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        weights = torch.einsum("b h i d, b h j d -> b h i j", query * self.scale, key).softmax(dim=-1)
        mixed = torch.einsum("b h i j, b h j d -> b i h d", weights, value)
        return self.to_out(mixed.flatten(2))


class Additive(Attention):
    """Takes a mask that is added, and makes wholly masked rows zero."""

    def allowed(self, n, mask):
        return torch.zeros(n, n) if mask is None else mask[:, None]

    def softmax(self, scores, allowed):
        empty = (allowed == -torch.inf).all(-1, keepdim=True)
        weights = torch.softmax(scores + allowed.to(scores.dtype).masked_fill(empty, 0.0), dim=-1)
        return weights.masked_fill(empty, 0.0)


class Ignoring(Attention):
    """True = ignore, for keys: [batch, n_key]."""

    def forward(self, x, key_padding_mask=None):
        keep = None if key_padding_mask is None else ~key_padding_mask[:, None].expand(-1, x.shape[1], -1)
        return super().forward(x, keep)


class HubStyle(Attention):
    """1 = keep, 0 = padding; the result in a dict."""

    def forward(self, hidden_states, attention_mask=None, output_attentions=False):
        keep = None if attention_mask is None else (attention_mask == 1)[:, None].expand(-1, hidden_states.shape[1], -1)
        return {"last_hidden_state": super().forward(hidden_states, keep)}


class Rotary(Attention):
    def __init__(self, d_model=12, n_heads=2, causal=False):
        super().__init__(d_model, 3 if d_model == 18 else 2, causal)

    def scores(self, query, key):
        return super().scores(in_torch.rotary(query), in_torch.rotary(key))


class Slopes(Attention):
    """ALiBi: a bias that falls with the distance."""

    def scores(self, query, key):
        n = query.shape[-2]
        gap = torch.arange(n) - torch.arange(n)[:, None]
        slopes = 2.0 ** -torch.arange(1, self.n_heads + 1)
        return super().scores(query, key) - (gap.abs() * slopes[:, None, None]).to(query.dtype)


class Grouped(nn.Module):
    """Grouped queries: 6 heads share 2 keys and values."""

    def __init__(self, d_model=12):
        super().__init__()
        self.wq, self.wk, self.wv = nn.Linear(d_model, 12), nn.Linear(d_model, 4), nn.Linear(d_model, 4)
        self.wo = nn.Linear(12, d_model)

    def forward(self, x):
        query = self.wq(x).unflatten(-1, (6, 2)).transpose(1, 2)
        key, value = (w(x).unflatten(-1, (2, 2)).transpose(1, 2).repeat_interleave(3, 1) for w in (self.wk, self.wv))
        return self.wo((torch.softmax(query @ key.mT / math.sqrt(2), -1) @ value).transpose(1, 2).flatten(2))


class Parallel(Block):
    """Attention and feed-forward side by side, behind one norm."""

    def __init__(self):
        super().__init__()
        del self.norm_feed_forward

    def forward(self, x, mask=None):
        normed = self.norm_attention(x)
        return x + self.attention(normed, mask) + self.feed_forward(normed)


class RmsBlock(Block):
    def __init__(self):
        super().__init__(18, causal=True, attention=Rotary)
        self.norm_attention, self.norm_feed_forward = nn.RMSNorm(18), nn.RMSNorm(18)


class NormalisedQueries(Attention):
    """Queries and keys of length 1, with a learned temperature."""

    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(5.0))

    def scores(self, query, key):
        return F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).mT * self.temperature


class Bahdanau(nn.Module):
    """Additive attention: no product of queries and keys."""

    def __init__(self, d_model=12):
        super().__init__()
        self.query, self.key, self.score = nn.Linear(d_model, 9), nn.Linear(d_model, 9), nn.Linear(9, 1)

    def forward(self, query, key, value, mask=None):
        scores = self.score(torch.tanh(self.query(query)[:, :, None] + self.key(key)[:, None])).squeeze(-1)
        scores = scores if mask is None else scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, -1) if mask is None else torch.softmax(scores, -1) * mask
        return weights @ value, weights


class Insists(Attention):
    """Its mask [batch, 1, n, n], 1 = keep, has no default, and may not be None."""

    def forward(self, x, mask):
        query, key, value = map(self.split, self.project(x))
        scores = self.scores(query, key).masked_fill(mask == 0, -1e4)
        weights = torch.softmax(scores, -1) * (mask != 0).any(-1, keepdim=True)
        return self.output(self.merge(weights @ value))


class AfterRecurrence(nn.Module):
    """Attention pooling of what an LSTM made: it carries tokens past the mask."""

    def __init__(self):
        super().__init__()
        self.recurrent, self.score = nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 1)

    def forward(self, x, mask=None):
        states, _ = self.recurrent(x)
        scores = self.score(states).squeeze(-1)
        weights = (scores if mask is None else scores.masked_fill(~mask, -1e4)).softmax(-1)
        return (weights[..., None] * states).sum(1), weights


class Biased(Attention):
    """Has an argument that is a bias, not a mask."""

    def forward(self, hidden_states, position_bias=None):
        return super().forward(hidden_states)


class InsistsOnNone(Attention):
    def forward(self, x, mask):
        return super().forward(x, mask)


class Linear(nn.Module):
    """Linear attention with its sum."""

    def __init__(self, d_model=12):
        super().__init__()
        self.to_q, self.to_k, self.to_v = (nn.Linear(d_model, d_model) for _ in range(3))

    def forward(self, x):
        query, key = F.elu(self.to_q(x)) + 1, F.elu(self.to_k(x)) + 1
        return query @ (key.mT @ self.to_v(x)) / (query @ key.sum(1)[..., None])


class Window(Attention):
    """Each token sees itself and two before."""

    def allowed(self, n, mask):
        gap = torch.arange(n)[:, None] - torch.arange(n)
        return (gap >= 0) & (gap <= 2) if mask is None else mask[:, None] & (gap >= 0) & (gap <= 2)


class ClosedGate(Block):
    """The result enters through a gate that is 0 at first."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, x, mask=None):
        x = x + self.gate * self.attention(self.norm_attention(x), mask)
        return x + self.gate * self.feed_forward(self.norm_feed_forward(x))


class Wrapped(nn.Module):
    """PyTorch's attention with learned positions and a fixed table, both where they belong."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(12, 4, dropout=0.1, batch_first=True)
        self.places = nn.Parameter(torch.randn(40, 12))
        self.register_buffer("table", in_torch.sinusoidal_positions(40, 12))

    def forward(self, x):
        x = x + self.places[: x.shape[1]] + self.table[: x.shape[1]]
        return self.attention(x, x, x, need_weights=False)[0]


class Pooled(Attention):
    """The mean of what is no padding."""

    def forward(self, x, lengths=None):
        if lengths is None:
            return super().forward(x).mean(1)
        keep = torch.arange(x.shape[1]) < lengths[:, None]
        found = super().forward(x, keep[:, None].expand(-1, x.shape[1], -1))
        return (found * keep[..., None]).sum(1) / keep.sum(1, keepdim=True)


class TokensFirst(Attention):
    def forward(self, x, mask=None):
        return super().forward(x.transpose(0, 1), mask).transpose(0, 1)


class NoProjection(nn.Module):
    """What a first lesson builds: tokens that look at each other as they are."""

    def forward(self, x):
        return torch.softmax(x @ x.mT / math.sqrt(x.shape[-1]), -1) @ x


class Tagger(Block):
    """A block, a last norm and a map to as many classes as there are features."""

    def __init__(self):
        super().__init__()
        self.norm, self.classes = nn.LayerNorm(12), nn.Linear(12, 12)

    def forward(self, x, mask=None):
        return self.classes(self.norm(super().forward(x, mask)))


class KeepsItsMap(Attention):
    """Keeps the last weights on the module, and was called before."""

    def __init__(self):
        super().__init__()
        self.attn = None
        self(torch.randn(2, 3, 12))

    def drop(self, weights):
        self.attn = weights
        return weights


class EmbeddingNorm(Attention):
    """A norm behind the embedding, another before the attention, the sum not normalised again."""

    def __init__(self):
        super().__init__()
        self.norm_embedding, self.norm = nn.LayerNorm(12), nn.LayerNorm(12)

    def forward(self, x, mask=None):
        x = self.norm_embedding(x)
        return x + super().forward(self.norm(x), mask)


class HeadsMixed(Attention):
    """Talking heads: maps are mixed once more behind the softmax, with a bias."""

    def __init__(self):
        super().__init__()
        self.mixture = nn.Linear(4, 4)

    def softmax(self, scores, allowed):
        return self.mixture(super().softmax(scores, allowed).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    def forward(self, x):
        return super().forward(x)


class BothChangesFirst(Block):
    """GPT-J's sum: attention, then feed-forward, then what came in."""

    def forward(self, x):
        normed = self.norm_attention(x)
        return self.attention(normed) + self.feed_forward(self.norm_feed_forward(x)) + x


class NormalisedEmbedding(nn.Module):
    """ModernBERT's: the embedding is normalised, so the first attention reads it as it stands."""

    def __init__(self):
        super().__init__()
        self.norm, self.first, self.second = nn.LayerNorm(12), Block(), Block()
        self.first.norm_attention = nn.Identity()

    def forward(self, x):
        return self.second(self.first(self.norm(x)))


class RoundedRoot(Attention):
    """DeBERTa's: keys are divided by a root that is rounded to float32."""

    def scores(self, query, key):
        root = torch.tensor(float(self.d_head), dtype=torch.float32).sqrt().to(query.dtype)
        return query @ (key.mT / root)


class DeepNorm(Block):
    """What is carried past the attention is multiplied, the sum is normalised."""

    def forward(self, x):
        x = self.norm_attention(x * 1.5 + self.attention(x))
        return self.norm_feed_forward(x * 1.5 + self.feed_forward(x))


class InFloat32(Block):
    """Norms in float32, corners of ReLU: differences of two runs are rough there, gradients are right."""

    def rounded(self, x, norm):
        rms = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)
        return (x.float() * rms).to(x.dtype) * norm.weight + norm.bias

    def forward(self, x):
        x = x + self.attention(self.rounded(x, self.norm_attention))
        return x + self.feed_forward(self.rounded(x, self.norm_feed_forward))


class ByTemperature(Rotary):
    """Rotary, and a temperature that grows with the place, as for long texts."""

    def scores(self, query, key):
        places = torch.arange(query.shape[-2]).to(query.dtype)
        return super().scores(query * (1 + places[:, None] / 10), key)


class ConvolvedKeys(Attention):
    """A short convolution over queries and keys, behind their projections."""

    def __init__(self):
        super().__init__()
        self.short = nn.Conv1d(12, 12, 3, padding=1, groups=12)

    def project(self, x):
        query, key, value = super().project(x)
        return self.short(query.mT).mT, self.short(key.mT).mT, value

    def forward(self, x):
        return super().forward(x)


class InWindows(Attention):
    """Swin's: a table of biases for windows of 3 by 3 tokens, so 9 tokens and no other number."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(4, 9, 9))

    def scores(self, query, key):
        return super().scores(query, key) + self.bias.view(1, 4, query.shape[-2], -1)


class IdleContext(Block):
    """T5's decoder: a part that reads a context, if there is one."""

    def __init__(self):
        super().__init__(causal=True)
        self.cross_attention = in_torch.MultiHeadAttention(12, 4)

    def forward(self, hidden_states, attention_mask=None, position_bias=None, encoder_hidden_states=None):
        if encoder_hidden_states is not None:
            hidden_states = hidden_states + self.cross_attention(hidden_states, encoder_hidden_states)
        return super().forward(hidden_states, attention_mask)


def takes_tensors_too(query, key, value, mask=None):
    """NumPy, of which PyTorch's tensors understand all but the mask."""
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    scores = np.clip(scores, -500, 500)
    exps = np.exp(scores) if mask is None else np.where(mask, np.exp(scores), 0.0)
    total = exps.sum(-1, keepdims=True)
    return exps / (total if mask is None else np.where(total > 0, total, 1.0)) @ value


def by_loop(query, key, value):
    """One query at a time, [n, d]."""
    rows = []
    for each in query:
        scores = np.array([each @ other for other in key]) / np.sqrt(len(each))
        weights = np.exp(scores - scores.max())
        rows.append(weights @ value / weights.sum())
    return np.array(rows)


def with_heads(query, key, value, mask=None):
    """[batch, heads, n, d]."""
    batch, heads, n, d = query.shape
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / d**0.5
    weights = scores.softmax(-1) if mask is None else in_torch.masked_softmax(scores, mask)
    return torch.einsum("bhqk,bhkd->bhqd", weights, value)


def closed_over():
    layer = in_torch.MultiHeadAttention(16, 4)
    return lambda query, key, value: layer(query, key, value)


HEALTHY = {
    "small attention": (Attention, {"mask": "may attend"}),
    "small attention, causal, dropout": (lambda: Attention(causal=True, dropout=0.2), {"causal": True}),
    "block": (Block, {}),
    "causal block": (lambda: Block(causal=True), {}),
    "fused projection, causal": (FusedCausal, {"causal": True}),
    "fused kernel, causal": (FlashCausal, {}),
    "norm inside, residual outside": (NormInside, {"positions": False}),
    "additive mask": (Additive, {"mask": "additive"}),
    "additive mask, not stated": (Additive, {}),
    "key_padding_mask": (Ignoring, {"mask": "ignore"}),
    "attention_mask of ones and zeros, a dict": (HubStyle, {"mask": "keep 1"}),
    "rotary": (Rotary, {}),
    "slopes by distance": (Slopes, {"positions": True}),
    "grouped queries": (Grouped, {}),
    "parallel block": (Parallel, {}),
    "RMS norm, rotary, causal": (RmsBlock, {}),
    "normalised queries": (NormalisedQueries, {}),
    "additive attention": (Bahdanau, {}),
    "linear attention": (Linear, {}),
    "insists on a mask": (Insists, {}),
    "attention after an LSTM": (AfterRecurrence, {}),
    "position bias": (Biased, {}),
    "insists on None": (InsistsOnNone, {}),
    "sliding window": (Window, {}),
    "closed gate": (ClosedGate, {}),
    "wrapped nn.MultiheadAttention": (Wrapped, {"positions": True}),
    "pooled, lengths": (Pooled, {}),
    "tokens first, by call": (
        TokensFirst,
        {"d_model": 12, "call": lambda layer, x, mask: layer(x.transpose(0, 1), mask).transpose(0, 1)},
    ),
    "tagger": (Tagger, {}),
    "keeps its map": (KeepsItsMap, {}),
    "norm behind the embedding": (EmbeddingNorm, {}),
    "no projection": (NoProjection, {}),
    "NumPy function": (lambda: in_numpy.scaled_dot_product_attention, {"mask": "may attend"}),
    "NumPy loop": (lambda: by_loop, {}),
    "NumPy that takes tensors": (lambda: takes_tensors_too, {"mask": "may attend"}),
    "talking heads, mixed after softmax": (HeadsMixed, {}),
    "both changes, then the input": (BothChangesFirst, {}),
    "normalised embedding, two blocks": (NormalisedEmbedding, {}),
    "a root in float32": (RoundedRoot, {}),
    "deep norm": (DeepNorm, {}),
    "temperature by place": (ByTemperature, {}),
    "convolved queries and keys": (ConvolvedKeys, {}),
    "norms in float32, ReLU": (InFloat32, {}),
    "windows": (InWindows, {"mask": "may attend", "n": 9}),
    "a part for a context that is not given": (IdleContext, {"causal": True}),
    "function with heads": (lambda: with_heads, {}),
    "lambda over a layer": (closed_over, {}),
    "attnlib function": (lambda: in_torch.scaled_dot_product_attention, {}),
    "F.scaled_dot_product_attention": (lambda: F.scaled_dot_product_attention, {"mask": "may attend"}),
    "SelfAttention": (lambda: in_torch.SelfAttention(12, d_v=5, dropout=0.3), {}),
    "MultiHeadAttention": (lambda: in_torch.MultiHeadAttention(12, 4, dropout=0.1), {}),
    "CrossAttention": (lambda: in_torch.CrossAttention(12, 20, 4), {"mask": "may attend"}),
    "EncoderLayer": (lambda: in_torch.EncoderLayer(12, 4, dropout=0.1), {}),
    "EncoderLayer, post-norm": (lambda: in_torch.EncoderLayer(12, 4, norm_first=False), {}),
    "Encoder": (lambda: in_torch.Encoder(2, 12, 4), {}),
    "DecoderLayer": (lambda: in_torch.DecoderLayer(12, 4), {"causal": True}),
    "Decoder": (lambda: in_torch.Decoder(2, 12, 4), {}),
}
