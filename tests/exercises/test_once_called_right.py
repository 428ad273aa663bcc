"""Answers that a check once called right, though they are not, and what it says of them now."""

import re

import pytest

from attnlib.exercises.core import judge

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

from attnlib.exercises import all_exercises  # noqa: E402
from attnlib.torch import MultiHeadAttention  # noqa: E402

HAN = r"[\u4e00-\u9fff]"


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.expand, self.contract = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.contract(F.relu(self.expand(x)))


class Detached(FeedForward):
    def forward(self, x):
        return super().forward(x).detach()


class Frozen(FeedForward):
    def __init__(self, d_model, d_ff):
        super().__init__(d_model, d_ff)
        self.expand.requires_grad_(False)


class OfTheClass(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.contract = nn.Linear(d_ff, d_model)
        OfTheClass.expand = nn.Linear(d_model, d_ff)

    def forward(self, x):
        return self.contract(F.relu(self.expand(x)))


class Dropping(FeedForward):
    def forward(self, x):
        return self.contract(F.dropout(F.relu(self.expand(x)), 0.1))


class DroppingAnew(FeedForward):
    def forward(self, x):
        return self.contract(nn.Dropout(0.1)(F.relu(self.expand(x))))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attention, self.feed_forward = MultiHeadAttention(d_model, n_heads), FeedForward(d_model, d_ff)
        self.norm_attention, self.norm_feed_forward = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def attend(self, x, mask):
        return self.attention(self.norm_attention(x), mask=mask)

    def forward(self, x, mask=None):
        x = x + self.attend(x, mask)
        return x + self.feed_forward(self.norm_feed_forward(x))


class WithoutGrad(EncoderLayer):
    @torch.no_grad()
    def forward(self, x, mask=None):
        return super().forward(x, mask)


class AttentionDetached(EncoderLayer):
    def attend(self, x, mask):
        return super().attend(x, mask).detach()


class MaskAsKey(EncoderLayer):
    def attend(self, x, mask):
        return self.attention(self.norm_attention(x), mask)


def pieces(pattern):
    return lambda text: re.findall(HAN + "|" + pattern, text)


def filled_in_place(sequences, padding_id):
    lengths = [len(sequence) for sequence in sequences]
    for sequence in sequences:
        sequence.extend([padding_id] * (max(lengths) - len(sequence)))
    return torch.tensor(sequences), torch.tensor(lengths)


def over_axis_1(x, weight, bias, eps):
    mean, variance = x.mean(dim=1, keepdim=True), x.var(dim=1, keepdim=True, correction=0)
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias


@pytest.mark.parametrize(
    "key, answer, says",
    [
        ("09-layer_norm", over_axis_1, "over the tokens"),
        ("09-FeedForward", Detached, "the gradient is cut off"),
        ("09-FeedForward", Frozen, "is frozen"),
        ("09-FeedForward", OfTheClass, "not in `layer.parameters()`"),
        ("09-FeedForward", Dropping, "never switched off"),
        ("09-FeedForward", DroppingAnew, "never switched off"),
        ("09-EncoderLayer", WithoutGrad, "the gradient is cut off"),
        ("09-EncoderLayer", AttentionDetached, "the gradient is cut off"),
        ("09-EncoderLayer", MaskAsKey, "Write `mask=mask`"),
        ("10-tokenize", pieces(r"[^\W\d_\u4e00-\u9fff]+(?:['’]\w+)*|\d+|[^\w\s]|_"), "cut from each other"),
        ("10-tokenize", pieces(r"[a-zA-ZÀ-ÿ0-9]+(?:['’][a-zA-ZÀ-ÿ]+)*|[^\w\s]|_"), "only Latin letters"),
        ("10-tokenize", pieces(r"(?:[^\W_\u4e00-\u9fff]|['’])+|[^\w\s]|_"), "every apostrophe"),
        ("10-tokenize", pieces(r"[^\W_\u4e00-\u9fff]+(?:['’][^\W_\u4e00-\u9fff]+)*|[^\w\s]|_"), "joins digits"),
        ("10-tokenize", pieces(r"[^\W_\u4e00-\u9fff]+(?:'[^\W_\u4e00-\u9fff]+)*|[^\w\s]|_"), "one of the two"),
        ("10-tokenize", lambda text: list(reversed(text_tokens(text))), "from behind"),
        ("10-encode", lambda tokens, ids: [ids.get(token) or ids["<unk>"] for token in tokens], "`or`"),
        ("10-encode", lambda tokens, ids: [ids.get(token, min(ids.values()) + 1) for token in tokens], "always 1"),
        ("10-collate", filled_in_place, "it changes its input `sequences`"),
    ],
)
def test_it_is_seen_now(key, answer, says):
    verdict = judge(all_exercises()[key], answer)
    assert verdict.status == "not yet"
    assert says in verdict.text


def text_tokens(text):
    return all_exercises()["10-tokenize"].solution(text)


@pytest.mark.parametrize("key, answer", [("09-FeedForward", FeedForward), ("09-EncoderLayer", EncoderLayer)])
def test_what_these_were_made_of_is_right(key, answer):
    assert judge(all_exercises()[key], answer).status == "right"
