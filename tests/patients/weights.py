"""Patients whose weights are wrong: softmax over the wrong axis, scale, linear attention without its sum; also functions."""

import math

import numpy as np
import torch

from .base import HUB, Attention, Patient


class OverQueries(Attention):
    def softmax(self, scores, allowed):
        return torch.softmax(scores, dim=-2)


class OverHeads(Attention):
    def softmax(self, scores, allowed):
        return torch.softmax(scores, dim=1)


class OverBatch(Attention):
    def softmax(self, scores, allowed):
        return torch.softmax(scores, dim=0)


class OneSum(Attention):
    def softmax(self, scores, allowed):
        exps = torch.exp(scores)
        return exps / exps.sum(dim=(-1, -2), keepdim=True)


class TransposedWeights(Attention):
    def mix(self, weights, value):
        return torch.einsum("bhqk,bhqd->bhkd", weights, value)


class TransposedBeforeMix(Attention):
    def mix(self, weights, value):
        return weights.mT @ value


class ScaledAfter(Attention):
    def scores(self, query, key):
        return query @ key.mT

    def drop(self, weights):
        return weights / math.sqrt(self.d_head)


class NoScale(Attention):
    def scores(self, query, key):
        return query @ key.mT


class ByWidth(Attention):
    def scores(self, query, key):
        return query @ key.mT / self.d_head


class Twice(Attention):
    def scores(self, query, key):
        scale = self.d_head**-0.5
        return (query * scale) @ (key * scale).mT


class TimesRoot(Attention):
    def scores(self, query, key):
        return torch.einsum("bhqd,bhkd->bhqk", query, key) * self.d_head**0.5


class ByLength(Attention):
    def scores(self, query, key):
        keys = key.mT
        return query @ keys / math.sqrt(keys.shape[-1])


def softmax(scores, axis=-1):
    exps = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exps / exps.sum(axis=axis, keepdims=True)


def queries_compete(query, key, value):
    return softmax(query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1]), axis=-2) @ value


def unscaled(query, key, value):
    return softmax(query @ key.swapaxes(-1, -2)) @ value


def keys_are_mixed(query, key, value):
    return softmax(query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])) @ key


def mask_after(query, key, value, mask=None):
    weights = softmax(query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1]))
    return (weights if mask is None else weights * mask) @ value


def positive(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def linear_without_sum(query, key, value):
    return positive(query) @ (positive(key).swapaxes(-1, -2) @ value)


def linear_times_sum(query, key, value):
    query, key = positive(query), positive(key)
    total = query @ key.sum(-2)[..., None]
    return query @ (key.swapaxes(-1, -2) @ value) * total


def linear_mask_in_values_only(query, key, value, keep=None):
    query, key = positive(query), positive(key)
    kept = value if keep is None else value * keep[..., :1, :].swapaxes(-1, -2)
    return query @ (key.swapaxes(-1, -2) @ kept) / (query @ key.sum(-2)[..., None])


def fixed_axis(query, key, value):
    """Written for [n, d]; here for heads [batch, heads, n, d], where axis 1 is the heads."""
    batch, heads, n, d = query.shape
    return torch.softmax(query @ key.mT / math.sqrt(d), dim=1) @ value


def patient(make, expected, bank, source, **options):
    return Patient(make, expected, bank, HUB + source if source else "", options)


def function(make, *rest, **options):
    return patient(lambda: make, *rest, **options)


PATIENTS = {
    "softmax over queries": patient(
        OverQueries,
        "softmax over the queries",
        "sm01",
        "labmlai/annotated_deep_learning_paper_implementations/issues/146",
    ),
    "softmax over the batch": patient(OverBatch, "softmax over the batch", "sm02", "PetrochukM/PyTorch-NLP/issues/2"),
    "softmax over heads": patient(
        OverHeads, "softmax over the heads", "sm04", "labmlai/annotated_deep_learning_paper_implementations/issues/146"
    ),
    "dim fixed for other axes": function(fixed_axis, "softmax over the heads", "sm03", "FudanNLP/fastNLP/issues/254"),
    "one sum": patient(OneSum, "one sum for the whole map", "sm05", "deeplearning4j/nd4j/issues/44"),
    "weights transposed": patient(
        TransposedBeforeMix, "weights transposed", "at01", "Open-Deep-ML/DML-OpenProblem/issues/424"
    ),
    "scaled after softmax": patient(
        ScaledAfter, "scaled after the softmax", "sc03", "FrancescoSaverioZuppichini/ViT/issues/2"
    ),
    "no scaling": patient(NoScale, "no scaling", "sc01", "delzac/cntkx/issues/10"),
    "divided by d_head": patient(ByWidth, "scaled by d_head, not its root", "sc04", "thegregyang/NTK4A/issues/3"),
    "scaled twice": patient(Twice, "scaled by d_head, not its root", "sc05", "openai/guided-diffusion/issues/38"),
    "times the root": patient(TimesRoot, "multiplied by the root", "sc06", "Shen-Lab/TALE/issues/5"),
    "root of the length": patient(
        ByLength, "scaled by the number of tokens", "sc07", "lucidrains/denoising-diffusion-pytorch/issues/265"
    ),
    "NumPy: softmax over queries": function(
        queries_compete,
        "softmax over the queries",
        "sm01",
        "labmlai/annotated_deep_learning_paper_implementations/issues/146",
    ),
    "NumPy: no scaling": function(unscaled, "no scaling", "sc01", "delzac/cntkx/issues/10"),
    "NumPy: values copied from keys": function(
        keys_are_mixed, "values copied from the keys", "mh12", "meta-pytorch/torchtune/pull/21"
    ),
    "NumPy: mask after softmax": function(
        mask_after, "mask after the softmax", "mk08", "huggingface/pytorch-image-models/pull/2236"
    ),
    "linear attention without its sum": function(
        linear_without_sum, "rows do not sum to 1", "lc08", "lucidrains/performer-pytorch/issues/40"
    ),
    "linear attention times its sum": function(
        linear_times_sum, "rows do not sum to 1", "lc09", "lucidrains/performer-pytorch/issues/40"
    ),
    "linear attention, mask in values only": function(
        linear_mask_in_values_only, "mask after the softmax", "lc12", "fla-org/flash-linear-attention/issues/1263"
    ),
}
