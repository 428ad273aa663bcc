"""More layers in which the doctor must find nothing, in the styles of well-known code bases."""

import functools
import math
from collections import namedtuple
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import attnlib.torch as in_torch

from .base import Attention, Block


class Stack(nn.Module):
    """A stack of PyTorch's layers, [n, batch, d], inside a module of one's own."""

    def __init__(self, d_model=12):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(d_model, 4, 24), 2, enable_nested_tensor=False)

    def forward(self, src):
        return self.encoder(src)


class PlacesFirst(Stack):
    """As PyTorch's tutorial of language models: places along axis 0, a causal mask of floats."""

    def __init__(self, d_model=12):
        super().__init__(d_model)
        self.register_buffer("table", in_torch.sinusoidal_positions(60, d_model)[:, None])

    def forward(self, src):
        n = src.size(0)
        mask = torch.full((n, n), -torch.inf, dtype=src.dtype).triu(1)
        return self.encoder(src + self.table[:n], mask)


class ClipBlock(nn.Module):
    """As CLIP's: [n, batch, d], a causal mask that is kept, GELU by a sigmoid."""

    def __init__(self, d_model=12, n_head=4, causal=True):
        super().__init__()
        self.attn, self.causal = nn.MultiheadAttention(d_model, n_head), causal
        self.ln_1, self.ln_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.c_fc, self.c_proj = nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, d_model)

    def attention(self, x):
        n = len(x)
        mask = torch.full((n, n), -torch.inf, dtype=x.dtype).triu_(1) if self.causal else None
        return self.attn(x, x, x, need_weights=False, attn_mask=mask)[0]

    def forward(self, x: Tensor):
        x = x + self.attention(self.ln_1(x))
        hidden = self.c_fc(self.ln_2(x))
        return x + self.c_proj(hidden * torch.sigmoid(1.702 * hidden))


class DetrLayer(nn.Module):
    """As DETR's encoder: [n, batch, d], positions in queries and keys only, post-norm."""

    def __init__(self, d_model=12, nhead=4):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d_model, nhead, dropout=0.1)
        self.linear1, self.linear2 = nn.Linear(d_model, 24), nn.Linear(24, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(0.1)
        self.places = nn.Parameter(torch.randn(60, 1, d_model))

    def forward(self, src):
        query = key = src + self.places[: len(src)]
        src = self.norm1(src + self.dropout(self.self_attn(query, key, value=src)[0]))
        return self.norm2(src + self.dropout(self.linear2(self.dropout(F.relu(self.linear1(src))))))


class BmmHeads(nn.Module):
    """As fairseq's: [n, batch, d], heads folded into the batch, products by bmm; a residual and a norm around it."""

    def __init__(self, embed_dim=12, num_heads=4):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, embed_dim // num_heads
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(embed_dim, embed_dim) for _ in range(3))
        self.out_proj, self.norm = nn.Linear(embed_dim, embed_dim), nn.LayerNorm(embed_dim)

    def forward(self, x):
        length, batch, width = x.size()
        query = self.q_proj(x) * self.head_dim**-0.5
        query, key, value = (
            each.contiguous().view(length, batch * self.num_heads, self.head_dim).transpose(0, 1)
            for each in (query, self.k_proj(x), self.v_proj(x))
        )
        mixed = torch.bmm(F.softmax(torch.bmm(query, key.transpose(1, 2)), dim=-1), value)
        return self.norm(x + self.out_proj(mixed.transpose(0, 1).contiguous().view(length, batch, width)))


class LatticeHeads(BmmHeads):
    """As Transformer-XL's: axes [i, j, batch, head]."""

    def forward(self, x):
        query, key, value = (
            each(x).unflatten(-1, (self.num_heads, -1)) for each in (self.q_proj, self.k_proj, self.v_proj)
        )
        scores = torch.einsum("ibnd,jbnd->ijbn", query, key) * self.head_dim**-0.5
        mixed = torch.einsum("ijbn,jbnd->ibnd", scores.softmax(1), value)
        return self.norm(x + self.out_proj(mixed.flatten(-2)))


class Halves(Attention):
    """Rotary in halves, with cosines and sines in buffers, grouped keys, the fused kernel; as Llama's."""

    def __init__(self):
        super().__init__(24, 4)
        self.key, self.value = nn.Linear(24, 12, bias=False), nn.Linear(24, 12, bias=False)
        angles = torch.outer(torch.arange(64.0), 10_000 ** (-torch.arange(0, 6, 2) / 6)).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def turn(self, x):
        one, other = x.chunk(2, -1)
        n = x.shape[-2]
        return x * self.cos[:n] + torch.cat([-other, one], -1) * self.sin[:n]

    def forward(self, x):
        query, key, value = (each.unflatten(-1, (-1, 6)).transpose(1, 2) for each in self.project(x))
        query, key = self.turn(query), self.turn(key)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        return self.output(self.merge(mixed))


class ByComplexNumbers(Attention):
    """Rotary as a product with complex numbers, one map for queries, keys and values."""

    def __init__(self):
        super().__init__(24, 4)
        del self.query, self.key, self.value
        self.qkv = nn.Linear(24, 72)

    def forward(self, x):
        batch, n, _ = x.shape
        query, key, value = self.qkv(x).view(batch, n, 3, 4, 6).unbind(2)
        angles = torch.outer(torch.arange(n), 10_000 ** (-torch.arange(0, 6, 2) / 6))
        turns = torch.polar(torch.ones_like(angles), angles)[:, None]
        query, key = (
            torch.view_as_real(torch.view_as_complex(each.float().unflatten(-1, (-1, 2))) * turns)
            .flatten(-2)
            .to(x.dtype)
            for each in (query, key)
        )
        query, key, value = (each.transpose(1, 2) for each in (query, key, value))
        return self.output(self.merge(F.scaled_dot_product_attention(query, key, value)))


class OnAGrid(Attention):
    """Rotary in two axes, for 16 patches of an image: scores depend on both distances, not on the places' difference."""

    def __init__(self):
        super().__init__(24, 3)

    def scores(self, query, key):
        rows, columns = torch.arange(16) // 4, torch.arange(16) % 4
        query, key = (
            torch.cat([in_torch.rotary(x, p) for x, p in zip(each.chunk(2, -1), (rows, columns))], -1)
            for each in (query, key)
        )
        return super().scores(query, key)


class PartlyTurned(Attention):
    """Rotary on the first two of six columns, as GPT-NeoX's, after learned positions were added."""

    def __init__(self):
        super().__init__(12, 2)
        self.places = nn.Parameter(torch.randn(64, 12))

    def scores(self, query, key):
        query, key = (torch.cat([in_torch.rotary(each[..., :2]), each[..., 2:]], -1) for each in (query, key))
        return super().scores(query, key)

    def forward(self, x, mask=None):
        return super().forward(x + self.places[: x.shape[1]], mask)


class UnitPlaces(Attention):
    """Queries and keys of length 1, of tokens to which positions were added: they differ by place, and not in length."""

    def __init__(self):
        super().__init__()
        self.places = nn.Parameter(torch.randn(64, 12))

    def scores(self, query, key):
        return 10 * F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).mT

    def forward(self, x, mask=None):
        return super().forward(x + self.places[: x.shape[1]], mask)


class Buckets(Attention):
    """As T5's: no positions in the tokens, a learned bias for each distance."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Embedding(32, 4)

    def scores(self, query, key):
        n = query.shape[-2]
        gap = (torch.arange(n) - torch.arange(n)[:, None]).clamp(-15, 15) + 16
        return super().scores(query, key) + self.bias(gap).permute(2, 0, 1)


class MaskedTwice(Attention):
    """As AllenNLP's masked softmax: multiplied before and after, then divided by the sum."""

    def softmax(self, scores, allowed):
        weights = torch.softmax(scores * allowed, -1) * allowed
        return weights / (weights.sum(-1, keepdim=True) + 1e-13)


class TrilThenInfinity(Attention):
    """The zeros that tril leaves are replaced before the softmax."""

    def softmax(self, scores, allowed):
        scores = scores.tril()
        return torch.softmax(scores.masked_fill(scores == 0, -torch.inf), -1)

    def forward(self, x):
        return super().forward(x)


class ZeroLast(nn.Module):
    """Linear attention in a residual, its last map 0 at first: no weights to be seen, no token seen by another yet."""

    def __init__(self, dim=12):
        super().__init__()
        self.to_qkv, self.to_out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        nn.init.zeros_(self.to_out.weight)
        nn.init.zeros_(self.to_out.bias)

    def forward(self, x):
        query, key, value = self.to_qkv(x).chunk(3, -1)
        query, key = query.softmax(-1), key.softmax(1)
        return x + self.to_out(query @ (key.mT @ value))


class Modulated(Block):
    """As DiT's: scale, shift and gate from a map that starts at 0."""

    def __init__(self):
        super().__init__()
        self.modulation = nn.Linear(12, 24)
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)

    def forward(self, x):
        one, other = self.modulation(F.silu(x.mean(1, keepdim=True))).chunk(2, -1)
        x = x + one * self.attention(self.norm_attention(x))
        return x + other * self.feed_forward(self.norm_feed_forward(x))


class Channels(nn.Module):
    """As XCiT's: channels attend to channels, so tokens reach each other through these weights."""

    def __init__(self, dim=12, num_heads=2):
        super().__init__()
        self.num_heads, self.qkv, self.proj = num_heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.temperature = nn.Parameter(torch.ones(num_heads, 1, 1))

    def forward(self, x):
        query, key, value = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 4, 1)
        query, key = F.normalize(query, dim=-1), F.normalize(key, dim=-1)
        mixed = (query @ key.mT * self.temperature).softmax(-1) @ value
        return self.proj(mixed.permute(0, 3, 1, 2).flatten(-2))


class TalkingHeads(Attention):
    """Maps that mix the heads before and after softmax."""

    def __init__(self):
        super().__init__()
        self.before, self.after = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        nn.init.eye_(self.after.weight)

    def softmax(self, scores, allowed):
        scores = self.before(scores.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        weights = super().softmax(scores, allowed)
        return self.after(weights.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Latents(nn.Module):
    """As Perceiver's: learned queries ask a sequence of any length."""

    def __init__(self, rows=5):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(rows, 12))
        self.attention = Attention()

    def forward(self, x, mask=None):
        each = self.attention
        query, key, value = map(
            each.split, (each.query(self.latents.expand(len(x), -1, -1)), each.key(x), each.value(x))
        )
        allowed = torch.ones(x.shape[1], dtype=torch.bool) if mask is None else mask[:, None, None]
        return each.output(each.merge(each.softmax(each.scores(query, key), allowed) @ value))


class DecoderFirst(nn.Module):
    """A decoder's layer of [n, batch, d], with a mask of the target only."""

    def __init__(self, d_model=12, nhead=4):
        super().__init__()
        self.self_attn, self.multihead_attn = (nn.MultiheadAttention(d_model, nhead) for _ in range(2))
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, tgt, memory):
        mask = torch.ones(len(tgt), len(tgt), dtype=torch.bool).triu(1)
        tgt = self.norm1(tgt + self.self_attn(tgt, tgt, tgt, attn_mask=mask)[0])
        return self.norm2(tgt + self.multihead_attn(tgt, memory, memory)[0])


class Hub(nn.Module):
    """As BERT's of the Hugging Face library: a mask of heads, and a context that may be left out, with its own mask."""

    def __init__(self, hidden_size=12, heads=4):
        super().__init__()
        self.num_attention_heads = heads
        self.query, self.key, self.value = (nn.Linear(hidden_size, hidden_size) for _ in range(3))
        self.dropout = nn.Dropout(0.1)

    def split(self, x):
        return x.unflatten(-1, (self.num_attention_heads, -1)).permute(0, 2, 1, 3)

    def forward(
        self,
        hidden_states,
        attention_mask=None,
        head_mask=None,
        encoder_hidden_states=None,
        encoder_attention_mask=None,
        past_key_value=None,
        output_attentions=False,
    ):
        source = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        mask = attention_mask if encoder_hidden_states is None else encoder_attention_mask
        query, key, value = (
            self.split(self.query(hidden_states)),
            self.split(self.key(source)),
            self.split(self.value(source)),
        )
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(query.shape[-1])
        if mask is not None:
            empty = (mask == -torch.inf).all(-1, keepdim=True)
            scores = scores + mask.masked_fill(empty, 0.0)
        weights = self.dropout(scores.softmax(-1) if mask is None else scores.softmax(-1).masked_fill(empty, 0.0))
        weights = weights if head_mask is None else weights * head_mask
        context = torch.matmul(weights, value).permute(0, 2, 1, 3).contiguous().flatten(-2)
        return (context, weights) if output_attentions else (context,)


class HubAlone(Hub):
    """The same without a context."""

    def forward(self, hidden_states, attention_mask=None, head_mask=None, output_attentions=False):
        return super().forward(hidden_states, attention_mask, head_mask, output_attentions=output_attentions)


class EitherMask(Attention):
    """As x-transformers': one mask for its own tokens, another for a context that may be left out."""

    def forward(self, x, context=None, mask=None, context_mask=None):
        source = x if context is None else context
        keep = mask if context is None else context_mask
        query, key, value = map(self.split, (self.query(x), self.key(source), self.value(source)))
        allowed = torch.ones(source.shape[1], dtype=torch.bool) if keep is None else keep[:, None, None]
        return self.output(self.merge(self.softmax(self.scores(query, key), allowed) @ value))


@dataclass
class Output:
    loss: Tensor | None
    attentions: Tensor
    hidden: Tensor


Pair = namedtuple("Pair", "weights output")


class Bag:
    def __init__(self, **named):
        self.__dict__.update(named)


class InAnObject(Attention):
    """The output in an object, behind the weights."""

    def __init__(self, pack=Output):
        super().__init__()
        self.pack = pack

    def drop(self, weights):
        self.attn = weights
        return weights

    def forward(self, x, mask=None):
        output = super().forward(x, mask)
        if self.pack is Output:
            return Output(None, self.attn, output)
        return Pair(self.attn, output) if self.pack is Pair else Bag(step=3, output=output)


class Talks(Attention):
    def forward(self, x, mask=None):
        print("scores", x.shape)
        return super().forward(x, mask)


def tokens_before_heads(query, key, value):
    """[batch, n, heads, d], as flash-attn's and JAX's functions take it."""
    scores = torch.einsum("bqhd,bkhd->bhqk", query, key) / math.sqrt(query.shape[-1])
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), value)


HEALTHY = {
    "nn.TransformerEncoder of one's own, [n, batch, d]": (Stack, {}),
    "places along axis 0": (PlacesFirst, {"causal": True}),
    "CLIP's block": (ClipBlock, {}),
    "CLIP's block, not causal": (lambda: ClipBlock(causal=False), {"positions": False}),
    "DETR's layer": (DetrLayer, {"positions": True}),
    "fairseq's heads": (BmmHeads, {"batch_first": False}),
    "Transformer-XL's axes": (LatticeHeads, {"batch_first": False}),
    "rotary in halves, grouped": (Halves, {}),
    "rotary by complex numbers": (ByComplexNumbers, {}),
    "rotary on a grid": (OnAGrid, {"n": 16}),
    "rotary on a part": (PartlyTurned, {}),
    "queries of length 1, with places": (UnitPlaces, {}),
    "T5's buckets": (Buckets, {}),
    "masked twice": (MaskedTwice, {}),
    "masked twice, causal": (lambda: MaskedTwice(causal=True), {"causal": True}),
    "tril, then infinity": (TrilThenInfinity, {}),
    "last map 0": (ZeroLast, {}),
    "modulated": (Modulated, {}),
    "channels": (Channels, {}),
    "talking heads": (TalkingHeads, {}),
    "Hugging Face's BERT": (Hub, {"mask": "additive"}),
    "Hugging Face's BERT, not stated": (Hub, {}),
    "Hugging Face's BERT alone": (HubAlone, {}),
    "x-transformers' masks": (EitherMask, {"mask": "may attend"}),
    "learned queries": (Latents, {}),
    "one learned query": (lambda: Latents(1), {"mask": "may attend"}),
    "decoder's layer, [n, batch, d]": (DecoderFirst, {"causal": True}),
    "dataclass": (InAnObject, {}),
    "namedtuple": (lambda: InAnObject(Pair), {}),
    "object": (lambda: InAnObject(Bag), {}),
    "prints": (Talks, {}),
    "function, tokens before heads": (lambda: tokens_before_heads, {}),
    "partial of the fused kernel": (lambda: functools.partial(F.scaled_dot_product_attention, is_causal=True), {}),
}
