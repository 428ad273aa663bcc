"""Patients whose norm, residual connection or dropout is wrong."""

import torch
import torch.nn.functional as F
from torch import nn

from .base import HUB, Attention, Block, Patient


class TimeNorm(nn.Module):
    def __init__(self, d_model=12):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        mean, variance = x.mean(1, keepdim=True), x.var(1, keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(variance + 1e-5) * self.weight + self.bias


class OverTime(Block):
    def __init__(self):
        super().__init__()
        self.norm_attention, self.norm_feed_forward = TimeNorm(), TimeNorm()


class FeaturesFirst(nn.BatchNorm1d):
    def forward(self, x):
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


class OverBatch(Block):
    def __init__(self):
        super().__init__()
        self.norm_attention, self.norm_feed_forward = FeaturesFirst(12), FeaturesFirst(12)


class NormalisedResidual(Block):
    def forward(self, x, mask=None):
        x = self.norm_attention(x)
        x = x + self.attention(x, mask)
        x = self.norm_feed_forward(x)
        return x + self.feed_forward(x)


class SecondFromInput(Block):
    def forward(self, x, mask=None):
        attended = x + self.attention(self.norm_attention(x), mask)
        return x + self.feed_forward(self.norm_feed_forward(attended))


class NoResidual(Block):
    def forward(self, x, mask=None):
        x = self.attention(self.norm_attention(x), mask)
        return self.feed_forward(self.norm_feed_forward(x))


class QueryNormalised(Attention):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(12)

    def project(self, x):
        return self.query(self.norm(x)), self.key(x), self.value(x)

    def forward(self, x, mask=None):
        return x + super().forward(x, mask)


class Dropping(Attention):
    def __init__(self):
        super().__init__(dropout=0.4)


class BeforeSoftmax(Dropping):
    def softmax(self, scores, allowed):
        return super().softmax(self.dropout(scores), allowed)

    def drop(self, weights):
        return weights


class AlwaysOn(Attention):
    def drop(self, weights):
        return F.dropout(weights, 0.4)


class AlwaysOnFused(Attention):
    def forward(self, x, mask=None):
        query, key, value = map(self.split, self.project(x))
        return self.output(self.merge(F.scaled_dot_product_attention(query, key, value, dropout_p=0.4)))


class NotRescaled(Attention):
    rate = 0.4

    def __init__(self):
        super().__init__()
        self.dropout_rate = self.rate

    def drop(self, weights):
        return weights * (torch.rand_like(weights) > self.rate) if self.training else weights


class NeverCalled(Dropping):
    def drop(self, weights):
        return weights


def patient(make, expected, bank, source, **options):
    return Patient(make, expected, bank, HUB + source if source else "", options)


PATIENTS = {
    "norm over time": patient(
        OverTime, "norm over time", "ln01", "jadore801120/attention-is-all-you-need-pytorch/pull/17"
    ),
    "batch norm": patient(OverBatch, "sequences mix in training", "ln02", "Kyubyong/transformer/issues/40"),
    "residual of the normalised input": patient(
        NormalisedResidual, "residual of the normalised input", "ln08", "Howuhh/faster-trajectory-transformer/issues/3"
    ),
    "second residual from the input": patient(
        SecondFromInput, "residual skips the attention", "ln09", "strutive07/transformer-tensorflow2.0/issues/14"
    ),
    "only the query normalised": patient(
        QueryNormalised, "only the query is normalised", "ln10", "facebookresearch/xformers/pull/233"
    ),
    "no residual": patient(NoResidual, "residual missing", "", ""),
    "dropout before softmax": patient(
        BeforeSoftmax, "dropout before the softmax", "do01", "PaddlePaddle/Parakeet/pull/75"
    ),
    "functional dropout stays on": patient(AlwaysOn, "random in eval", "do02", "karpathy/nanoGPT/pull/240"),
    "fused dropout stays on": patient(AlwaysOnFused, "random in eval", "do02", "karpathy/nanoGPT/pull/240"),
    "kept weights not rescaled": patient(NotRescaled, "dropout not rescaled", "do03", "pytorch/pytorch/issues/27968"),
    "dropout never called": patient(NeverCalled, "dropout never applied", "do06", "zhouhaoyi/Informer2020/issues/97"),
}
