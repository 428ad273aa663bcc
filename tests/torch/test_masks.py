"""Masks on tensors equal those of NumPy; each convention of another library means what that library makes of it."""

import numpy as np
import pytest

import attnlib.numpy as by_numpy

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from attnlib.torch import (  # noqa: E402
    MultiHeadAttention,
    causal_mask,
    from_additive,
    from_attention_mask,
    from_attn_mask,
    from_key_padding_mask,
    load_torch_weights,
    masked_softmax,
    padding_mask,
    scaled_dot_product_attention,
    to_additive,
    to_attention_mask,
    to_attn_mask,
    to_key_padding_mask,
)

LENGTHS = [3, 5, 1]


@pytest.mark.parametrize("n_query, n_key", [(3, 3), (2, 5), (5, 2), (0, 3), (1, 1)])
def test_causal_mask_is_that_of_numpy(n_query, n_key):
    assert np.array_equal(causal_mask(n_query, n_key).numpy(), by_numpy.causal_mask(n_query, n_key))
    assert causal_mask(3).dtype == torch.bool


def test_padding_mask_is_that_of_numpy():
    for lengths in (LENGTHS, torch.tensor(LENGTHS), []):
        assert np.array_equal(padding_mask(lengths, 5).numpy(), by_numpy.padding_mask(list(map(int, lengths)), 5))


def test_additive_masks_there_and_back():
    mask = padding_mask(LENGTHS, 5)
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        bias = to_additive(mask, dtype)
        assert bias.dtype == dtype and set(bias.unique().tolist()) == {0.0, -torch.inf}
        assert torch.equal(from_additive(bias), mask)
    for fill in (-1e9, -10_000.0, torch.finfo(torch.float32).min):
        assert torch.equal(from_additive(torch.where(mask, 0.0, fill)), mask)


@pytest.fixture
def pair():
    """PyTorch's layer and ours with the same weights, and a batch of sentences, padded with noise."""
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64).eval()
    ours = load_torch_weights(MultiHeadAttention(8, 2).double(), theirs)
    return ours, theirs, torch.randn(3, 5, 8, dtype=torch.float64)


def test_key_padding_mask_means_what_pytorch_makes_of_it(pair):
    ours, theirs, x = pair
    mask = padding_mask(LENGTHS, 5)
    expected, _ = theirs(x, x, x, key_padding_mask=to_key_padding_mask(mask))
    assert torch.allclose(ours(x, mask=mask), expected, atol=1e-12)
    assert torch.equal(from_key_padding_mask(to_key_padding_mask(mask)), mask)
    floating = to_additive(mask[:, 0], torch.float64)  # PyTorch adds it
    expected, _ = theirs(x, x, x, key_padding_mask=floating)
    assert torch.allclose(ours(x, mask=from_key_padding_mask(floating)), expected, atol=1e-12)


def test_attn_mask_means_what_pytorch_makes_of_it(pair):
    ours, theirs, x = pair
    for mask in (causal_mask(5), causal_mask(5) & padding_mask(LENGTHS, 5)):
        expected, _ = theirs(x, x, x, attn_mask=to_attn_mask(mask, 2))
        assert torch.allclose(ours(x, mask=mask), expected, atol=1e-12)
    per_head = torch.stack([causal_mask(5), torch.ones(5, 5).bool()]).expand(3, 2, 5, 5)
    attn_mask = to_attn_mask(per_head, 2)
    expected, weights = theirs(x, x, x, attn_mask=attn_mask, average_attn_weights=False)
    output, our_weights = ours(x, mask=per_head, return_weights=True)
    assert torch.allclose(output, expected, atol=1e-12) and torch.allclose(our_weights, weights, atol=1e-12)
    assert torch.equal(from_attn_mask(attn_mask, 2), per_head)
    assert torch.equal(from_attn_mask(to_attn_mask(causal_mask(5))), causal_mask(5))
    floating = to_additive(causal_mask(5), torch.float64)
    assert torch.equal(from_attn_mask(floating), floating)


def test_the_mask_of_the_function_is_ours(pair):
    *_, x = pair
    mask = causal_mask(5)
    theirs = nn.functional.scaled_dot_product_attention(x, x, x, mask)
    assert torch.allclose(scaled_dot_product_attention(x, x, x, mask, return_weights=True)[0], theirs, atol=1e-12)


def test_attention_mask_of_hugging_face():
    mask = padding_mask(LENGTHS, 5)
    ones = to_attention_mask(mask)
    assert ones.tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]] and ones.dtype == torch.int64
    for kind in (ones, ones.double(), ones.bool()):
        assert torch.equal(from_attention_mask(kind), mask)


@pytest.mark.parametrize("ones", [[[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]])
def test_attention_mask_means_what_models_of_hugging_face_make_of_it(ones):
    """Where a small BERT and a small GPT-2 put weight is what the translated mask allows, padded at the end or the beginning."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    attention_mask, ids = torch.tensor(ones), torch.randint(9, (2, 5))
    options = {"vocab_size": 9, "attn_implementation": "eager"}
    bert = transformers.BertModel(
        transformers.BertConfig(
            hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8, **options
        )
    )
    gpt = transformers.GPT2Model(transformers.GPT2Config(n_embd=8, n_layer=2, n_head=2, **options))
    may = from_attention_mask(attention_mask)  # [2, 1, 5]
    for model, allowed in ((bert, may.expand(2, 5, 5)), (gpt, may & causal_mask(5))):
        with torch.no_grad():
            maps = model.eval()(input_ids=ids, attention_mask=attention_mask, output_attentions=True).attentions
        rows = allowed.any(dim=-1)  # a row with nothing to look at is uniform there, since its fill is finite
        for weights in maps:  # [2, 2, 5, 5], one map for each head
            for head in (0, 1):
                assert torch.equal((weights[:, head] > 0)[rows], allowed[rows])
    scores = torch.randn(2, 5, 5)
    added = torch.softmax(scores + (1.0 - attention_mask[:, None]) * torch.finfo(torch.float32).min, dim=-1)
    assert torch.allclose(masked_softmax(scores, may), added, atol=1e-7)


def test_two_conventions_confused_leak(pair):
    """Lesson 08's numbers: with the mask of one library in another, a query sees what it should not, and only that."""
    ours, theirs, x = pair
    mask = padding_mask(LENGTHS, 5)
    _, weights = theirs(x, x, x, key_padding_mask=to_attention_mask(mask).bool())
    assert torch.allclose(weights[0, :, 3:].sum(dim=-1), torch.ones(5).double())
    _, causal = theirs(x, x, x, attn_mask=causal_mask(5))
    assert (causal[:, :-1].tril() == 0).all() and causal[:, -1].isnan().all()  # the last query may see nothing


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: padding_mask([1.5], 3), "lengths has dtype float32; expected whole numbers"),
        (lambda: padding_mask([[1]], 3), "lengths has shape [1, 1]; expected [batch]"),
        (lambda: padding_mask([4], 3), "lengths are 4 to 4 and n_key=3; expected 0 to n_key. Try n_key=4"),
        (lambda: causal_mask(2.0), "n_query=2.0; expected a whole number of at least 0"),
        (
            lambda: to_additive(torch.ones(2)),
            "mask is a tensor of float32; expected a tensor of booleans (True = may attend)",
        ),
        (lambda: to_additive(causal_mask(2), torch.int64), "dtype is torch.int64; expected a floating one"),
        (lambda: from_additive(causal_mask(2)), "bias is a tensor of bool; expected floating numbers"),
        (lambda: from_additive(torch.tensor([0.0, -0.5])), "bias holds -0.5; expected only 0 (may attend)"),
        (lambda: from_key_padding_mask(torch.ones(2, 3).long()), "expected a tensor of booleans (True = ignore)"),
        (lambda: from_key_padding_mask(causal_mask(3)[0]), "key_padding_mask has shape [3]; expected [batch, n_key]"),
        (lambda: to_key_padding_mask(causal_mask(3)), "mask has shape [3, 3]; expected [batch, 1, n_key]"),
        (lambda: from_attn_mask(torch.ones(6, 2, 2).bool()), "attn_mask has shape [6, 2, 2] and n_heads=None"),
        (lambda: to_attn_mask(torch.ones(2, 3, 4, 4).bool(), 2), "mask has shape [2, 3, 4, 4] and n_heads=2"),
        (lambda: to_attn_mask(torch.ones(2, 4, 4).bool()), "mask has shape [2, 4, 4] and n_heads=None"),
        (lambda: to_attn_mask(torch.ones(2, 1, 4).bool(), 2), "one row for all queries; expected a row for each"),
        (lambda: padding_mask("ab", 3), "lengths are 'ab'; expected [batch] whole numbers"),
        (lambda: from_attention_mask(torch.tensor([[5, 2]])), "attention_mask holds other numbers than 1"),
        (lambda: from_attention_mask([[1]]), "attention_mask is of type list; expected a tensor of 1 and 0"),
    ],
)
def test_errors_say_what_was_given_and_what_to_try(call, text):
    with pytest.raises(ValueError) as error:
        call()
    assert text in str(error.value)


def test_masks_are_made_under_vmap_and_in_compiled_code():
    lengths = torch.tensor([[3, 1], [2, 5]])
    assert torch.equal(torch.func.vmap(lambda row: padding_mask(row, 5))(lengths)[1], padding_mask(lengths[1], 5))
    compiled = torch.compile(lambda row: padding_mask(row, 5), fullgraph=True, backend="eager")
    assert torch.equal(compiled(lengths[0]), padding_mask(lengths[0], 5))
    ones = to_attention_mask(padding_mask(LENGTHS, 5))
    compiled = torch.compile(from_attention_mask, fullgraph=True, backend="eager")
    assert torch.equal(compiled(ones), padding_mask(LENGTHS, 5))
