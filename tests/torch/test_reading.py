"""Reading maps: entropy, rollout, heads and words taken away; each against a plain loop, with its errors."""

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from attnlib.numpy import entropy as numpy_entropy  # noqa: E402
from attnlib.torch import Encoder, MultiHeadAttention, reading, split_heads  # noqa: E402


@pytest.fixture
def weights():
    """Maps of 3 layers, 2 texts, 4 heads, 5 tokens."""
    torch.manual_seed(0)
    return torch.randn(3, 2, 4, 5, 5, dtype=torch.float64).softmax(dim=-1)


def test_entropy_is_that_of_lesson_03_for_each_row(weights):
    lengths = torch.tensor([5, 2])
    rows = numpy_entropy(weights[0].numpy())  # [2, 4, 5]
    expected = np.concatenate([rows[0], rows[1, :, :2]], axis=-1).mean(axis=-1)
    np.testing.assert_allclose(reading.head_entropy(weights[0], lengths).numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(reading.head_entropy(weights[0]).numpy(), rows.mean(axis=(0, 2)), atol=1e-12)


def test_entropy_of_one_token_is_0_and_of_n_alike_log_n():
    one, alike = torch.eye(4)[None, None], torch.full((1, 1, 4, 4), 0.25)
    assert reading.head_entropy(torch.cat([one, alike], dim=1)).tolist() == pytest.approx([0, np.log(4)])


@pytest.mark.parametrize(
    ("shape", "lengths", "message"),
    [
        ((4, 5, 5), None, "weights have shape [4, 5, 5]; expected [batch, n_heads, n, n]"),
        ((1, 4, 5, 6), None, "expected [batch, n_heads, n, n]"),
        ((2, 4, 5, 5), [5, 6], "lengths are [5, 6]; expected 2 whole numbers from 1 to 5"),
        ((2, 4, 5, 5), [5], "lengths are [5]"),
    ],
)
def test_entropy_refuses(shape, lengths, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        reading.head_entropy(torch.ones(shape), None if lengths is None else torch.tensor(lengths))


def test_rollout_is_the_sum_over_all_ways_through_the_layers(weights):
    maps = 0.5 * weights[:, 0].mean(dim=1) + 0.5 * torch.eye(5, dtype=torch.float64)  # [3, 5, 5]
    ways = torch.zeros(5, 5, dtype=torch.float64)
    for i, j, k, m in np.ndindex(5, 5, 5, 5):  # from m through k and j to i
        ways[i, m] += maps[2, i, j] * maps[1, j, k] * maps[0, k, m]
    rollout = reading.attention_rollout(weights)
    assert rollout.shape == (2, 5, 5) and rollout.dtype == torch.float64
    torch.testing.assert_close(rollout[0], ways)
    torch.testing.assert_close(rollout.sum(dim=-1), torch.ones(2, 5, dtype=torch.float64))


def test_rollout_of_tokens_that_look_at_themselves_is_the_identity():
    torch.testing.assert_close(reading.attention_rollout(torch.eye(3).expand(6, 2, 3, 3)), torch.eye(3))


def test_rollout_refuses():
    with pytest.raises(ValueError, match=r"expected \[n_layers, ..., n_heads, n, n\]. Try torch.stack"):
        reading.attention_rollout(torch.ones(2, 3, 3))


def test_without_a_head_the_others_are_as_they_were():
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(8, 4), torch.randn(2, 5, 8)
    whole, weights = layer(x, return_weights=True)
    value = split_heads(layer.value(x), 4)
    parts = [whole - layer.output(reading.ablate_head(weights, value, head)) for head in range(4)]
    torch.testing.assert_close(sum(parts) + layer.output.bias, whole)  # what the heads add up to
    for head in range(4):
        with reading.without_head(layer, head):
            torch.testing.assert_close(layer(x), whole - parts[head])
    torch.testing.assert_close(layer(x), whole)  # nothing is left behind


def test_a_head_comes_back_after_an_error():
    layer = MultiHeadAttention(8, 4)
    with pytest.raises(RuntimeError), reading.without_head(layer, 1):
        raise RuntimeError
    assert not layer.output._forward_pre_hooks


def test_ablation_keeps_dtype_and_gradients_and_changes_nothing():
    weights, value = torch.full((2, 3, 3), 1 / 3, dtype=torch.float64), torch.ones(2, 3, 2, dtype=torch.float64)
    value.requires_grad_()
    merged = reading.ablate_head(weights, value, 1)
    merged.sum().backward()
    assert merged.dtype == torch.float64 and value.grad[1].eq(0).all() and value.grad[0].eq(1).all()
    assert value.eq(1).all()


@pytest.mark.parametrize(
    ("weights", "value", "head", "message"),
    [
        ((2, 3, 3), (2, 3, 4), 2, "head=2; expected a whole number from 0 to 1"),
        ((2, 3, 3), (2, 3, 4), -1, "head=-1"),
        ((2, 3, 3), (3, 8), 0, "weights are [2, 3, 3] and value is [3, 8]"),
        ((2, 3, 3), (2, 4, 8), 0, "Try split_heads before"),
    ],
)
def test_ablation_refuses(weights, value, head, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        reading.ablate_head(torch.ones(weights), torch.ones(value), head)


class Bag(torch.nn.Module):
    """A model of which everything is known: the logit of class 1 is the sum of its words' embeddings."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(5, 1)
        with torch.no_grad():
            self.embedding.weight.copy_(torch.tensor([[0.0], [1.0], [-2.0], [3.0], [0.5]]))

    def forward(self, ids, lengths, *, return_weights=False):
        real = torch.arange(ids.shape[1]) < lengths[:, None]
        logit = (self.embedding(ids)[..., 0] * real).sum(dim=-1)
        logits = torch.stack([torch.zeros_like(logit), logit], dim=-1)
        maps = torch.eye(ids.shape[1])[None, None, None]
        return (logits, maps) if return_weights else logits


IDS = torch.tensor([1, 2, 3, 4])


def test_gradient_times_input_of_a_linear_model_is_what_each_word_adds():
    assert reading.gradient_times_input(Bag(), IDS, 1).tolist() == [1, -2, 3, 0.5]
    assert reading.gradient_times_input(Bag(), IDS, 0).tolist() == [-1, 2, -3, -0.5]


def test_gradients_are_found_though_the_model_is_frozen():
    model = Bag().requires_grad_(False)
    assert reading.gradient_times_input(model, IDS, 1).tolist() == [1, -2, 3, 0.5]
    assert not model.embedding._forward_hooks


def test_deletion_curve_of_a_model_of_which_everything_is_known():
    predict = reading.shorter_texts(Bag(), IDS, 1)
    curve = reading.deletion_curve(predict, reading.gradient_times_input(Bag(), IDS, 1), 3)
    expected = torch.tensor([2.5, -0.5, -1.5, -2.0]).sigmoid()  # without 3, then 1, then 0.5
    torch.testing.assert_close(curve, expected)


def test_steps_may_be_none_or_all():
    predict = reading.shorter_texts(Bag(), IDS, 1)
    assert len(reading.deletion_curve(predict, torch.rand(4), 0)) == 1
    assert reading.deletion_curve(predict, torch.rand(4), 4)[-1] == 0.5  # an empty text: both logits are 0
    with pytest.raises(ValueError, match=r"importance has shape \[4\] and steps=5"):
        reading.deletion_curve(predict, torch.rand(4), 5)


def test_attention_received_sums_to_1():
    assert reading.attention_received(Bag(), IDS).tolist() == [0.25] * 4


def test_maps_of_an_encoder_can_be_followed_as_they_are():
    x = torch.randn(2, 4, 8)
    _, weights = Encoder(3, 8, 2)(x, return_weights=True)
    assert reading.attention_rollout(weights).shape == (2, 4, 4)
    assert reading.head_entropy(weights[0]).shape == (2,)
