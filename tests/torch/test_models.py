"""Readers of whole texts: padding changes nothing, order counts where it should, and what they are made of."""

import pytest

torch = pytest.importorskip("torch")

from attnlib.torch.models import (  # noqa: E402
    POOLINGS,
    BagOfEmbeddings,
    LSTMClassifier,
    ReviewClassifier,
    masked_max,
    masked_mean,
)

IDS = torch.tensor([[5, 3, 4, 2, 6], [2, 3, 0, 0, 0]])
LENGTHS = torch.tensor([5, 2])
MAKERS = [BagOfEmbeddings, LSTMClassifier, *({"pooling": pooling} for pooling in POOLINGS)]
MAKERS += [{"positions": None}, {"positions": "learned"}, {"norm_first": False}, {"n_layers": 2}, {"n_pairs": 11}]


def build(maker, **options):
    torch.manual_seed(0)
    if isinstance(maker, dict):
        return ReviewClassifier(8, 3, d_model=8, n_heads=2, **maker | options)
    return maker(8, 3, d_model=8, **options)


@pytest.mark.parametrize("maker", MAKERS, ids=str)
def test_padding_changes_nothing(maker):
    model = build(maker).eval()
    logits = model(IDS, LENGTHS)
    assert logits.shape == (2, 3)
    alone = model(IDS[1:, :2], LENGTHS[1:])
    torch.testing.assert_close(logits[1:], alone, atol=1e-6, rtol=1e-6)
    other = IDS.clone()
    other[1, 2:] = 7  # what stands behind the end is never read
    torch.testing.assert_close(model(other, LENGTHS), logits, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("maker", MAKERS, ids=str)
def test_gradients_reach_every_parameter_and_are_finite(maker):
    model = build(maker)
    model(IDS, torch.tensor([5, 0])).square().sum().backward()  # a text without words too
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name


@pytest.mark.parametrize("maker", MAKERS, ids=str)
def test_what_sees_the_order_of_words(maker):
    model = build(maker).eval()
    if isinstance(maker, dict) and "n_pairs" in maker:
        torch.nn.init.normal_(model.pairs.weight)
    turned = model(IDS[:1].flip(1), LENGTHS[:1])
    blind = maker is BagOfEmbeddings or maker == {"positions": None}
    assert torch.allclose(turned, model(IDS[:1], LENGTHS[:1]), atol=1e-6) == blind


def test_a_bag_is_an_embedding_bag_of_pytorch():
    model = build(BagOfEmbeddings).eval()
    bag = torch.nn.EmbeddingBag.from_pretrained(model.embedding.weight, mode="mean", padding_idx=0)
    torch.testing.assert_close(model(IDS, LENGTHS), model.classify(bag(IDS)))


def test_weights_are_those_of_each_layer_head_and_text():
    logits, weights = build({"n_layers": 2}).eval()(IDS, LENGTHS, return_weights=True)
    assert logits.shape == (2, 3) and weights.shape == (2, 2, 2, 5, 5)
    torch.testing.assert_close(weights[:, 1, :, :, 2:], torch.zeros(2, 2, 5, 3))
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 2, 2, 5))


def test_words_are_dropped_in_training_alone_and_padding_never():
    model = build({}, word_dropout=0.9)
    torch.manual_seed(0)
    dropped = model.drop_words(torch.tensor([[5, 0]]).expand(100, 2))
    assert set(dropped[:, 0].tolist()) == {1, 5} and set(dropped[:, 1].tolist()) == {0}
    assert torch.equal(model.eval().drop_words(IDS), IDS)


def test_means_and_maxima_leave_padding_out():
    x = torch.tensor([[[2.0, -1.0], [4.0, -3.0], [9.0, 5.0]], [[float("nan")] * 2] * 3])
    torch.testing.assert_close(masked_mean(x, torch.tensor([2, 0])), torch.tensor([[3.0, -2.0], [0.0, 0.0]]))
    torch.testing.assert_close(masked_max(x, torch.tensor([2, 0])), torch.tensor([[4.0, -1.0], [0.0, 0.0]]))
    assert masked_mean(x.bfloat16(), torch.tensor([2, 0])).dtype == torch.bfloat16


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: masked_mean(torch.ones(2, 3), torch.tensor([1, 2])),
            r"x has shape \[2, 3\].*expected \[batch, n, d\]",
        ),
        (lambda: masked_mean(torch.ones(2, 3, 1), torch.tensor([1])), "there are 1 lengths"),
        (lambda: masked_mean(torch.ones(1, 3, 1), torch.tensor([4])), "Try n_key=4"),
        (lambda: ReviewClassifier(9, pooling="sum"), "expected one of mean, max, mean_max, cls"),
        (lambda: ReviewClassifier(9, positions="none"), "or None for no order"),
        (lambda: ReviewClassifier(9, d_model=10, n_heads=4), "cannot be split into 4 heads"),
        (lambda: BagOfEmbeddings(1), "n_words"),
        (lambda: ReviewClassifier(9, max_len=3)(IDS, LENGTHS), "Try max_len=5"),
        (lambda: ReviewClassifier(9, word_dropout=1.0), "word_dropout=1.0"),
    ],
)
def test_errors_say_what_to_try(make, message):
    with pytest.raises(ValueError, match=message):
        make()
