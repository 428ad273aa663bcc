"""Patients whose mask is wrong."""

import torch
from torch import nn

from .base import HUB, Attention, Patient

INF = float("inf")


class Inverted(Attention):
    def softmax(self, scores, allowed):
        return torch.softmax(scores.masked_fill(allowed, -INF), -1)


class TokenizerMask(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(12, 4, batch_first=True)

    def forward(self, x, attention_mask=None):
        drop = None if attention_mask is None else attention_mask.bool()
        return self.attention(x, x, x, key_padding_mask=drop)[0]


class Added(Attention):
    def softmax(self, scores, allowed):
        return torch.softmax(scores + allowed, -1)


class AdditiveGiven(Attention):
    def allowed(self, n, mask):
        return torch.ones(n, n, dtype=torch.bool) if mask is None else mask[:, None] != 0


class TildeOnIntegers(Attention):
    def allowed(self, n, mask):
        return torch.ones(n, n, dtype=torch.bool) if mask is None else ~(~mask[:, None]).bool()

    def softmax(self, scores, allowed):
        return torch.softmax(scores.masked_fill(~allowed, -1e9), -1)


class OneMinus(Attention):
    def allowed(self, n, mask):
        return torch.ones(n, n, dtype=torch.bool) if mask is None else ~(1 - mask[:, None]).bool()


class Multiplied(Attention):
    def softmax(self, scores, allowed):
        return torch.softmax(scores * allowed, -1)


class AfterSoftmax(Attention):
    def softmax(self, scores, allowed):
        return torch.softmax(scores, -1) * allowed


class CausalAfterSoftmax(Attention):
    def softmax(self, scores, allowed):
        return torch.softmax(scores, -1).tril()


class TrilOfScores(Attention):
    def softmax(self, scores, allowed):
        return torch.softmax(scores.tril(), -1)


class PlusInfinity(Attention):
    def softmax(self, scores, allowed):
        return torch.softmax(scores.masked_fill(~allowed, -float("-inf")), -1)


class ZeroTimesInfinity(Attention):
    def softmax(self, scores, allowed):
        return (
            torch.softmax(scores + (1 - allowed.to(scores.dtype)) * -INF, -1)
            if not allowed.all()
            else scores.softmax(-1)
        )


class BigFill(Attention):
    def softmax(self, scores, allowed):
        return torch.softmax(scores.masked_fill(~allowed, -1e9), -1) * allowed.any(-1, keepdim=True)


class UniformRow(Attention):
    def softmax(self, scores, allowed):
        return torch.softmax(torch.where(allowed, scores, torch.finfo(scores.dtype).min), -1)


class NanRow(Attention):
    def softmax(self, scores, allowed):
        return torch.softmax(scores.masked_fill(~allowed, -INF), -1)


class NanInGradient(Attention):
    def softmax(self, scores, allowed):
        bias = torch.zeros(allowed.shape, dtype=scores.dtype).masked_fill(~allowed, -INF)
        weights = torch.softmax(scores + bias, -1)
        return torch.where(allowed, weights, 0.0)


class Folded(Attention):
    def split(self, x):
        return super().split(x).flatten(0, 1)

    def allowed(self, n, mask):
        return torch.ones(n, n, dtype=torch.bool) if mask is None else mask.repeat(self.n_heads, 1, 1)

    def merge(self, heads):
        return super().merge(heads.unflatten(0, (-1, self.n_heads)))


class NoDiagonal(Attention):
    def softmax(self, scores, allowed):
        drop = torch.triu(torch.ones(allowed.shape[-2:], dtype=torch.bool))
        return torch.softmax(scores.masked_fill(drop, -1e4), -1)


class Transposed(Attention):
    def allowed(self, n, mask):
        return torch.ones(n, n, dtype=torch.bool).triu()


class OffByOne(Attention):
    def allowed(self, n, mask):
        return torch.ones(n, n, dtype=torch.bool).tril(diagonal=1)


class ThrownAway(Attention):
    def softmax(self, scores, allowed):
        scores.masked_fill(~allowed, -INF)
        return torch.softmax(scores, -1)


class OnlyWithMask(Attention):
    def allowed(self, n, mask):
        allowed = torch.ones(n, n, dtype=torch.bool)
        if mask is not None:
            allowed = allowed & mask[:, None]
            allowed = allowed.tril()
        return allowed


class AndOfBlocked(Attention):
    def allowed(self, n, mask):
        places = torch.arange(n)
        ahead = places - places[:, None]
        return ~((ahead > 0) & (ahead.abs() > 2))


class Misspelt(Attention):
    def softmax(self, scores, allowed):
        return (
            super().softmax(scores, allowed) if allowed.all() else torch.softmax(scores.mask_fill(~allowed, -INF), -1)
        )


class PooledMean(Attention):
    def forward(self, x, mask=None):
        pairs = None if mask is None else mask[:, None, :].expand(-1, x.shape[1], -1)
        return super().forward(x, pairs).mean(1)


def may(patient, expected, bank, source, mask="may attend", **options):
    return Patient(patient, expected, bank, HUB + source, {"mask": mask} | options)


def causal(patient, expected, bank, source, **options):
    return Patient(patient, expected, bank, HUB + source, {"causal": True} | options)


PATIENTS = {
    "mask inverted": may(Inverted, "mask inverted", "mk01", "lucidrains/x-transformers/issues/160"),
    "tokenizer mask as key_padding_mask": Patient(
        TokenizerMask,
        "mask inverted",
        "mk02",
        "https://openillumi.com/en/en-pytorch-transformer-attention-mask-fix",
        {"mask": "keep 1"},
    ),
    "0/1 mask added": Patient(
        Added, "0/1 mask added", "mk03", "http://www.dtcms.com/a/376670.html", {"mask": "may attend"}
    ),
    "0/1 causal mask added": Patient(
        lambda: Added(causal=True), "0/1 mask added", "mk03", "http://www.dtcms.com/a/376670.html", {"causal": True}
    ),
    "additive mask where 1/0 is expected": may(
        AdditiveGiven, "mask inverted", "mk04", "harvard-edge/cs249r_book/pull/1785", "additive"
    ),
    "~ on integers": may(
        TildeOnIntegers, "the mask hides everything", "mk05", "PaddlePaddle/PaddleFormers/pull/4033", "keep 1"
    ),
    "1 - mask on booleans": may(OneMinus, "the layer raises", "mk06", "facebookresearch/ParlAI/pull/1905"),
    "scores multiplied": may(
        Multiplied, "scores multiplied by the mask", "mk07", "georg-wolflein/good-features/pull/1"
    ),
    "mask after softmax": may(
        AfterSoftmax, "mask after the softmax", "mk08", "huggingface/pytorch-image-models/pull/2236"
    ),
    "causal mask after softmax": Patient(CausalAfterSoftmax, "mask after the softmax", "", ""),
    "causal mask after softmax, stated": Patient(
        CausalAfterSoftmax, "mask after the softmax", "", "", {"causal": True}
    ),
    "tril of the scores": Patient(TrilOfScores, "scores multiplied by the mask", "", ""),
    "tril of the scores, stated": Patient(TrilOfScores, "scores multiplied by the mask", "", "", {"causal": True}),
    "filled with +inf": may(
        PlusInfinity, "the mask gives NaN", "mk09", "lucidrains/memory-compressed-attention/issues/2"
    ),
    "0 times -inf": may(ZeroTimesInfinity, "the mask gives NaN", "mk10", "cerebroai/reformers/issues/3"),
    "-1e9 in half precision": may(
        BigFill, "fill too large for float16", "mk12", "facebookresearch/fairseq/issues/3575"
    ),
    "fully masked row is uniform": may(UniformRow, "fully masked row is not empty", "mk15", "NVIDIA/apex/issues/1390"),
    "fully masked row is NaN": may(NanRow, "fully masked row gives NaN", "mk16", "pytorch/pytorch/issues/41508"),
    "NaN hidden until the gradient": may(
        NanInGradient, "gradient is not finite", "mk16", "pytorch/pytorch/issues/41508"
    ),
    "mask repeated for folded heads": may(
        Folded, "mask lines up with the wrong sequence", "mk21", "lsdefine/attention-is-all-you-need-keras/issues/36"
    ),
    "diagonal hidden": Patient(NoDiagonal, "diagonal hidden", "mk26", HUB + "pbloem/former/issues/10"),
    "causal mask transposed": Patient(
        Transposed, "only the future is visible", "mk27", HUB + "karpathy/nanoGPT/issues/170"
    ),
    "next token visible": Patient(
        OffByOne, "diagonal off by one", "mk28", HUB + "jadore801120/attention-is-all-you-need-pytorch/issues/19"
    ),
    "masked_fill thrown away": Patient(
        ThrownAway, "mask ignored", "mk30", HUB + "lucidrains/flamingo-pytorch/issues/10"
    ),
    "causal only with padding": causal(
        OnlyWithMask, "causal only with a mask", "mk32", "facebookresearch/xformers/issues/103"
    ),
    "two blocked masks with AND": causal(AndOfBlocked, "future leaks", "mk33", "lucidrains/local-attention/issues/5"),
    "misspelt in the mask branch": Patient(
        Misspelt,
        "the layer raises",
        "mk36",
        HUB + "FrancescoSaverioZuppichini/ViT/blob/1d2fb5c1e99755eb318ea0803ffd64f4e17610f5/README.md",
        number="mask_fill",
    ),
    "decoder without a causal mask": causal(
        Attention, "future leaks", "tr06", "alex-matton/causal-transformer-decoder/issues/1"
    ),
    "padding in the pooled mean": Patient(
        PooledMean, "padding enters the mean", "tr13", HUB + "jsboige/CoursIA/issues/15045"
    ),
}
