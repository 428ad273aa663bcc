"""Attention on tensors: equal to NumPy's and PyTorch's, on both paths, in every dtype, with gradients that stay finite."""

import copy
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attnlib.numpy as by_numpy

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from attnlib.torch import (  # noqa: E402
    SelfAttention,
    alibi_bias,
    attention_scores,
    causal_mask,
    masked_softmax,
    scaled_dot_product_attention,
    softmax,
    to_additive,
)

TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2e-2, torch.float16: 3e-3}


@pytest.fixture
def make():
    """Tensors of normal numbers."""
    generator = torch.Generator().manual_seed(0)
    return lambda *shape, dtype=torch.float64: torch.randn(*shape, dtype=dtype, generator=generator)


def masks(n_query, n_key, dtype):
    allowed = torch.rand(n_query, n_key, generator=torch.Generator().manual_seed(1)) < 0.6
    allowed[0] = False  # nothing to attend to
    allowed[1:, 0] = True
    return {
        "none": None,
        "boolean": allowed,
        "minus infinity": to_additive(allowed, dtype),
        "floating": torch.linspace(-2, 2, n_query * n_key).reshape(n_query, n_key).to(dtype),
        "floating and minus infinity": to_additive(allowed, dtype) + 0.5,
        "for all queries": allowed[1:2],
        "with heads": allowed.expand(3, -1, -1),
        "for all keys": allowed[:, :1],
        "one for all": torch.tensor(True),
    }


KINDS = list(masks(2, 2, torch.float32))


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(5, 4, 3, 3), (4, 6, 5, 2), (2, 1, 1, 1)], ids=str)
def test_both_paths_equal_the_float64_result_of_numpy(make, dtype, kind, shape):
    n_query, n_key, d_k, d_v = shape
    query, key, value = (make(2, 3, *s).to(dtype) for s in ((n_query, d_k), (n_key, d_k), (n_key, d_v)))
    mask = masks(n_query, n_key, dtype)[kind]
    wide = [x.double().numpy() for x in (query, key, value)]
    theirs = mask if mask is None or mask.dtype == torch.bool else mask.double()
    expected, expected_weights = by_numpy.scaled_dot_product_attention(
        *wide, None if mask is None else theirs.numpy(), return_weights=True
    )
    fused = scaled_dot_product_attention(query, key, value, mask)
    output, weights = scaled_dot_product_attention(query, key, value, mask, return_weights=True)
    assert fused.dtype == output.dtype == weights.dtype == dtype
    for ours, wanted in ((fused, expected), (output, expected), (weights, expected_weights)):
        assert torch.allclose(ours.double(), torch.from_numpy(wanted), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_both_paths_have_the_same_gradients_and_empty_rows_have_none(make, dtype, kind):
    query, key, value = (make(2, 3, *s).to(dtype).requires_grad_() for s in ((5, 4), (6, 4), (6, 4)))
    mask = masks(5, 6, dtype)[kind]
    towards = make(2, 3, 5, 4).to(dtype)
    fused = torch.autograd.grad(scaled_dot_product_attention(query, key, value, mask), (query, key, value), towards)
    output, _ = scaled_dot_product_attention(query, key, value, mask, return_weights=True)
    plain = torch.autograd.grad(output, (query, key, value), towards)
    for one, other in zip(fused, plain):
        assert one.isfinite().all() and other.isfinite().all()
        assert torch.allclose(one.double(), other.double(), rtol=4 * TOLERANCE[dtype], atol=4 * TOLERANCE[dtype])
    if kind in ("boolean", "minus infinity", "floating and minus infinity", "with heads"):
        assert (output[..., 0, :] == 0).all() and (plain[0][..., 0, :] == 0).all() and (fused[0][..., 0, :] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("return_weights", [False, True])
def test_half_precision_with_all_rows_masked_gives_zero_gradients(make, dtype, return_weights):
    query, key, value = (make(2, 4, 3).to(dtype).requires_grad_() for _ in range(3))
    mask = torch.zeros(4, 4, dtype=torch.bool)
    output = scaled_dot_product_attention(query, key, value, mask, return_weights=return_weights)
    output = output[0] if return_weights else output
    output.sum().backward()
    assert (output == 0).all() and all((x.grad == 0).all() for x in (query, key, value))


def test_autograd_equals_the_gradients_of_lesson_07(make):
    query, key, value = (make(2, *s).requires_grad_() for s in ((5, 4), (6, 4), (6, 3)))
    mask, towards = masks(5, 6, torch.float64)["boolean"], make(2, 5, 3)
    scaled_dot_product_attention(query, key, value, mask).backward(towards)
    by_hand = by_numpy.attention_backward(
        *(x.detach().numpy() for x in (query, key, value)), towards.numpy(), mask.numpy()
    )
    for tensor, expected in zip((query, key, value), by_hand):
        assert torch.allclose(tensor.grad, torch.from_numpy(expected), rtol=1e-10, atol=1e-10)


def test_gradcheck_of_second_order_on_the_plain_path(make):
    inputs = [make(*s).requires_grad_() for s in ((3, 2), (4, 2), (4, 2))]
    mask = masks(3, 4, torch.float64)["boolean"]

    def plain(*inputs):
        return scaled_dot_product_attention(*inputs, mask, return_weights=True)[0]

    assert torch.autograd.gradcheck(plain, inputs) and torch.autograd.gradgradcheck(plain, inputs)


# Which path -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def fused_calls(monkeypatch):
    """The masks with which PyTorch's kernel was called."""
    calls, kernel = [], F.scaled_dot_product_attention
    monkeypatch.setattr(F, "scaled_dot_product_attention", lambda *a, **k: (calls.append(a[3]), kernel(*a, **k))[1])
    return calls


@pytest.mark.parametrize(
    "kind, is_fused",
    [
        ("none", True),
        ("boolean", True),
        ("minus infinity", True),
        ("floating", False),
        ("floating and minus infinity", False),
    ],
)
def test_the_fused_kernel_is_used_where_it_is_right(make, fused_calls, kind, is_fused):
    query, key, value = (make(2, 5, 4) for _ in range(3))
    scaled_dot_product_attention(query, key, value, masks(5, 5, torch.float64)[kind])
    assert len(fused_calls) == is_fused
    assert all(mask is None or mask.dtype == torch.bool for mask in fused_calls)


def test_weights_dropout_and_trained_biases_take_the_plain_path(make, fused_calls):
    query, key, value = (make(2, 5, 4) for _ in range(3))
    scaled_dot_product_attention(query, key, value, return_weights=True)
    scaled_dot_product_attention(query, key, value, dropout=0.5)
    bias = torch.zeros(5, 5, dtype=torch.float64, requires_grad=True)
    scaled_dot_product_attention(query, key, value, bias)[..., 0].sum().backward()
    assert fused_calls == [] and bias.grad.abs().sum() > 0


@pytest.mark.parametrize("fill", [-1e9, torch.finfo(torch.float32).min])
def test_a_row_that_a_finite_fill_masks_wholly_has_the_right_gradient_here(make, fill):
    """PyTorch 2.13's kernel on the CPU gives each value n_key times its gradient; told in lesson 08."""
    query, key, value = (make(1, 1, 6, 8, dtype=torch.float32).requires_grad_() for _ in range(3))
    mask = torch.zeros(6, 6)
    mask[2] = fill
    ours = torch.autograd.grad(scaled_dot_product_attention(query, key, value, mask)[0, 0, 2].sum(), value)[0]
    assert torch.allclose(ours, torch.full_like(ours, 1 / 6))  # uniform: a finite fill does not forbid
    if torch.__version__.startswith("2.13."):
        theirs = F.scaled_dot_product_attention(query, key, value, mask)[0, 0, 2].sum()
        assert torch.allclose(torch.autograd.grad(theirs, value)[0], torch.ones_like(ours))


# Softmax, scores, edges -----------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from([-np.inf, -1000.0, -1.5, 0.0, 2.0, 1000.0]), min_size=4, max_size=4), min_size=1),
    st.sampled_from([0, 1, -1]),
)
def test_softmax_is_that_of_numpy(rows, axis):
    scores = np.array(rows)
    ours = softmax(torch.from_numpy(scores), axis)
    assert np.allclose(ours.numpy(), by_numpy.softmax(scores, axis), rtol=1e-12, atol=1e-12)


def test_softmax_and_scores_where_half_precision_would_overflow():
    query = torch.full((1, 64), 60.0, dtype=torch.float16)
    assert attention_scores(query, query).item() == 28800  # 64 · 60² / 8; the product alone, 230,400, is beyond float16
    scores = torch.tensor([[6e4, 6e4]], dtype=torch.float16)
    assert masked_softmax(scores, scores).tolist() == [[0.5, 0.5]]
    nan = softmax(torch.tensor([[torch.inf, 0.0], [torch.nan, 0.0]]))
    assert nan.isnan().any(dim=-1).all()


def test_edges_of_the_contract(make):
    query, key, value = make(2, 5, 0), make(2, 4, 0), make(2, 4, 3)
    mask = torch.tensor([True, True, False, False])
    mean = scaled_dot_product_attention(query, key, value, mask)
    assert torch.allclose(mean, value[:, :2].mean(dim=1, keepdim=True).expand(2, 5, 3))
    nothing = scaled_dot_product_attention(make(2, 5, 3), make(2, 0, 3), make(2, 0, 4))
    assert nothing.shape == (2, 5, 4) and (nothing == 0).all()
    broadcast = scaled_dot_product_attention(make(2, 1, 5, 3), make(3, 4, 3), make(4, 2))
    assert broadcast.shape == (2, 3, 5, 2)
    one = scaled_dot_product_attention(make(5, 3), make(5, 3), make(5, 3), causal_mask(5), scale=0.1)
    assert one.shape == (5, 3)


def test_inputs_and_masks_stay_as_they_are(make):
    given_ = [make(2, 5, 4), make(2, 5, 4), make(2, 5, 4), causal_mask(5)]
    before = copy.deepcopy(given_)
    for return_weights in (False, True):
        scaled_dot_product_attention(*given_, return_weights=return_weights)
    assert all(map(torch.equal, given_, before))


def test_dropout_keeps_the_mean_and_returns_weights_from_before_it(make):
    torch.manual_seed(0)
    query, key = make(1, 3), make(8, 3)
    value = torch.eye(8, dtype=torch.float64)  # the output is then the row of weights after dropout
    expected = scaled_dot_product_attention(query, key, value)
    drawn = torch.stack([scaled_dot_product_attention(query, key, value, dropout=0.25) for _ in range(4_000)])
    assert torch.allclose(drawn.mean(dim=0), expected, atol=0.02)
    kept = drawn[drawn != 0].reshape(-1)
    assert 0.24 < (drawn == 0).double().mean() < 0.26
    assert torch.isclose(kept[:, None], expected / 0.75).any(dim=1).all()
    _, weights = scaled_dot_product_attention(query, key, value, dropout=0.25, return_weights=True)
    assert torch.allclose(weights, expected)


# Errors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change, text",
    [
        ({"query": np.ones((2, 4))}, "query is an array of NumPy; expected a tensor. Try torch.from_numpy(query)"),
        (
            {"key": torch.ones(3, 4, dtype=torch.int64)},
            "key has dtype int64; expected float16, bfloat16, float32 or float64",
        ),
        ({"value": torch.ones(3, 4).double()}, "value is float64 and query is float32; expected one dtype"),
        ({"query": torch.ones(4)}, "query has shape [4]; expected [..., n_query, d_k]"),
        ({"query": torch.ones(2, 5)}, "query has d_k=5 in its last axis and key has d_k=4"),
        ({"value": torch.ones(2, 4)}, "key has n_key=3 rows and value has 2"),
        ({"query": torch.ones(2, 2, 4), "key": torch.ones(3, 3, 4)}, "the leading axes do not broadcast"),
        ({"mask": torch.ones(2, 3)[:, :2]}, "mask has shape [2, 2], which does not broadcast to the scores"),
        ({"mask": torch.ones(2, 3).long()}, "mask has dtype int64; expected booleans (True = may attend)"),
        ({"mask": torch.ones(2, 3).double()}, "mask is float64 and the scores are float32"),
        ({"mask": [[True]]}, "mask is a list; expected a tensor of booleans"),
        ({"mask": torch.ones(1, 1, 2, 3).bool()}, "mask has shape [1, 1, 2, 3], which does not broadcast"),
        ({"dropout": 1.0}, "dropout=1.0; expected a number from 0 to below 1"),
        ({"scale": "half"}, "scale is 'half'; expected one real number"),
        ({"scale": torch.ones(1)}, "scale is a tensor; expected a number. Try multiplying the query by it"),
    ],
)
def test_errors_say_what_was_given_and_what_to_try(change, text):
    arguments = {"query": torch.ones(2, 4), "key": torch.ones(3, 4), "value": torch.ones(3, 4)} | change
    with pytest.raises(ValueError) as error:
        scaled_dot_product_attention(**arguments)
    assert text in str(error.value)


# Transformations ------------------------------------------------------------------------------------------------------

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_no_graph_break_under_compile(make, kind):
    torch.compiler.reset()
    query, key, value = (make(2, 3, 5, 4, dtype=torch.float32) for _ in range(3))
    mask = masks(5, 5, torch.float32)[kind]
    for return_weights in (False, True):

        def attend(*inputs, return_weights=return_weights):
            return scaled_dot_product_attention(*inputs, return_weights=return_weights)

        compiled = torch.compile(attend, fullgraph=True, backend="eager")(query, key, value, mask)
        expected = attend(query, key, value, mask)
        pairs = zip(compiled, expected) if return_weights else [(compiled, expected)]
        assert all(torch.allclose(one, other, atol=1e-6) for one, other in pairs)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("with heads", "one for all")])
def test_vmap(make, kind):
    query, key, value = (make(3, 5, 4) for _ in range(3))
    mask = masks(5, 5, torch.float64)[kind]
    axes = (0, 0, 0, None)
    for return_weights in (False, True):

        def attend(*inputs, return_weights=return_weights):
            return scaled_dot_product_attention(*inputs, return_weights=return_weights)

        mapped, expected = torch.func.vmap(attend, axes)(query, key, value, mask), attend(query, key, value, mask)
        pairs = zip(mapped, expected) if return_weights else [(mapped, expected)]
        assert all(torch.allclose(one, other) for one, other in pairs)
    if mask is not None:
        per_sample = torch.func.vmap(scaled_dot_product_attention)(query, key, value, mask.expand(3, 5, 5))
        assert torch.allclose(per_sample, scaled_dot_product_attention(query, key, value, mask))


# One head as a layer --------------------------------------------------------------------------------------------------


def test_self_attention_adds_to_x_what_it_found(make):
    layer = SelfAttention(6, d_k=3, d_v=5).double()
    x, mask = make(2, 4, 6), causal_mask(4)
    output, weights = layer(x, mask, return_weights=True)
    tokens = F.layer_norm(x, (6,))
    query, key, value = (tokens @ p.weight.T + p.bias for p in (layer.query, layer.key, layer.value))
    expected = weights @ value @ layer.output.weight.T + layer.output.bias + x
    assert torch.allclose(output, expected) and torch.allclose(layer(x, mask), output)
    assert torch.allclose(weights, torch.softmax((query @ key.mT / 3**0.5).masked_fill(~mask, -torch.inf), -1))
    assert layer.value.weight.shape == (5, 6) and layer.output.weight.shape == (6, 5)
    plain = SelfAttention(6, norm=False, bias=False).double()
    assert plain(x).shape == x.shape and not any(name.startswith("norm") for name, _ in plain.named_parameters())


def test_self_attention_drops_weights_in_training_only(make):
    layer = SelfAttention(6, dropout=0.5).double()
    x = make(2, 4, 6)
    assert not torch.equal(layer(x), layer(x))
    assert torch.equal(layer.eval()(x), layer(x))


def test_self_attention_takes_alibi_and_says_what_it_wants(make):
    layer = SelfAttention(6)
    x = make(2, 4, 6, dtype=torch.float32)
    assert layer(x, alibi_bias(1, 4)[0]).shape == x.shape
    with pytest.raises(ValueError, match="d_model=6, as this layer was made for"):
        layer(x[..., :5])
    with pytest.raises(ValueError, match="x is float64 and the weights of this layer are float32"):
        layer(x.double())
    with pytest.raises(ValueError, match="d_v=0; expected a whole number of at least 1"):
        SelfAttention(6, d_v=0)
