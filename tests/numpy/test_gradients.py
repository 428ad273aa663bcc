"""Backward passes: values by hand, central differences, the contract, properties, and PyTorch's autograd."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.numpy import (
    attention_backward,
    multi_head_attention,
    multi_head_attention_backward,
    numeric_gradient,
    recall_task,
    scaled_dot_product_attention,
    softmax,
    softmax_backward,
    train_recall,
    train_step,
)

DTYPES = [np.float16, np.float32, np.float64]
TOLERANCE = {np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-12}
settings.register_profile("course", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("course")


def arrays(rng, *shapes, dtype=np.float64):
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def relative(found, numeric):
    return np.abs(found - numeric).max() / max(np.abs(numeric).max(), 1e-3)


def agrees(gradients, function, inputs, grad_output):
    """Each gradient against central differences of Σ grad_output · function(*inputs) in that input alone."""
    for i, gradient in enumerate(gradients):
        numeric = numeric_gradient(
            lambda moved, i=i: (grad_output * function(*inputs[:i], moved, *inputs[i + 1 :])).sum(), inputs[i]
        )
        assert gradient.shape == inputs[i].shape
        assert relative(gradient, numeric) < 1e-7, i


def multi_head(x, w_query, w_key, w_value, w_output, n_heads, mask=None):
    """The specification: one head after the other, each with its own columns; mask [..., n, n] or one for each head."""
    heads = []
    for head in range(n_heads):
        query, key, value = (x @ np.split(w, n_heads, axis=1)[head] for w in (w_query, w_key, w_value))
        own = mask[..., head, :, :] if mask is not None and mask.ndim > x.ndim else mask
        heads.append(scaled_dot_product_attention(query, key, value, own))
    return np.concatenate(heads, axis=-1) @ w_output


def step(**changed):
    """A step of training with all arrays ones, some of them changed."""
    shapes = {"w_query": (3, 4), "w_key": (3, 4), "w_value": (3, 2), "asked": (5, 1, 3)}
    shapes |= {"keys": (5, 6, 3), "values": (5, 6, 3), "target": (5, 1, 2)}
    return train_step(**{name: np.ones(shape) for name, shape in shapes.items()} | {"rate": 0.1} | changed)


# By hand and by central differences ----------------------------------------------------------------------------------


def test_numeric_gradient_by_hand():
    np.testing.assert_allclose(numeric_gradient(lambda x: (x**3).sum(), np.array([1.0]), 0.1), [3.01], atol=1e-12)
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    before = x.copy()
    np.testing.assert_allclose(numeric_gradient(lambda x: x[0] @ x[1], x), x[::-1], atol=1e-9)
    np.testing.assert_array_equal(x, before)
    assert numeric_gradient(np.sum, np.ones((2, 0, 3))).shape == (2, 0, 3)
    assert numeric_gradient(np.sum, np.float32(2)).dtype == np.float64

    def spoils(x):
        x *= 2
        return x.sum()

    np.testing.assert_allclose(numeric_gradient(spoils, x), np.full((2, 2), 2), atol=1e-9)


def test_softmax_backward_by_hand():
    np.testing.assert_array_equal(softmax_backward(np.array([0.5, 0.5]), np.array([1.0, 0.0])), [0.25, -0.25])
    assert not softmax_backward(np.zeros((2, 3)), np.ones((2, 3))).any()


def test_attention_backward_by_hand():
    query = np.log(3.0) * np.ones((1, 4)) / 2
    found = attention_backward(query, np.array([[1.0] * 4, [0.0] * 4]), np.array([[4.0], [0.0]]), np.array([[1.0]]))
    for gradient, by_hand in zip(found, ([[0.375] * 4], [[0.375], [-0.375]] * query, [[0.75], [0.25]])):
        np.testing.assert_allclose(gradient, by_hand, atol=1e-15)


def test_softmax_and_central_differences():
    rng = np.random.default_rng(0)
    scores, grad_weights = arrays(rng, (2, 3, 5), (2, 3, 5))
    agrees([softmax_backward(softmax(scores), grad_weights)], softmax, [scores], grad_weights)


@pytest.mark.parametrize("kind", ["none", "causal", "empty row", "float", "scale", "broadcast"])
def test_attention_and_central_differences(kind):
    rng = np.random.default_rng(0)
    inputs = arrays(rng, (2, 1, 4, 3), (3, 5, 3), (2, 3, 5, 2) if kind != "broadcast" else (1, 5, 2))
    grad_output = rng.normal(size=(2, 3, 4, 2))
    mask = {
        "causal": np.tri(4, 5, 1, dtype=bool),
        "empty row": np.array([[True], [False], [True], [True]]) & np.ones((4, 5), dtype=bool),
        "float": rng.normal(size=(4, 5)),
        "broadcast": rng.random((2, 1, 1, 5)) < 0.7,
    }.get(kind)
    scale = 2.0 if kind == "scale" else None
    found = attention_backward(*inputs, grad_output, mask, scale=scale)
    agrees(found, lambda *a: scaled_dot_product_attention(*a, mask, scale=scale), inputs, grad_output)


@pytest.mark.parametrize("mask", ["none", "causal", "batch", "each head"])
def test_several_heads_and_central_differences(mask):
    rng = np.random.default_rng(0)
    inputs = arrays(rng, (2, 4, 6), (6, 8), (6, 8), (6, 8), (8, 6))
    grad_output = rng.normal(size=(2, 4, 6))
    mask = {
        "causal": np.tri(4, dtype=bool),
        "batch": rng.random((2, 4, 4)) < 0.7,
        "each head": rng.random((2, 2, 4, 4)) < 0.7,
    }.get(mask)
    found = multi_head_attention_backward(*inputs, 2, grad_output, mask)
    agrees(found, lambda *a: multi_head(*a, 2, mask), inputs, grad_output)


@pytest.mark.parametrize("batch", [(), (2,), (3, 2)])
@pytest.mark.parametrize("leading", ["none", "batch", "heads"])
def test_masks_are_read_as_in_the_forward_pass(batch, leading):
    rng = np.random.default_rng(1)
    inputs = arrays(rng, (*batch, 4, 6), (6, 8), (6, 8), (6, 4), (4, 5))
    grad_output = rng.normal(size=(*batch, 4, 5))
    mask = rng.random({"none": (4, 4), "batch": (*batch, 4, 4), "heads": (*batch, 2, 4, 4)}[leading]) < 0.7
    found = multi_head_attention_backward(*inputs, 2, grad_output, mask)
    agrees(found, lambda *a: multi_head_attention(*a, 2, mask), inputs, grad_output)


# The contract --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_and_inputs_are_kept_and_half_precision_is_near(dtype):
    rng = np.random.default_rng(0)
    given_ = arrays(rng, (2, 3, 4), (2, 5, 4), (2, 5, 3), (2, 3, 3), dtype=dtype)
    before = [array.copy() for array in given_]
    found = attention_backward(*given_, np.tri(3, 5, 2, dtype=bool))
    exact = attention_backward(*(array.astype(np.float64) for array in given_), np.tri(3, 5, 2, dtype=bool))
    for gradient, better in zip(found, exact):
        assert gradient.dtype == dtype
        np.testing.assert_allclose(gradient, better, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    assert softmax_backward(softmax(given_[0]), given_[0]).dtype == dtype
    for array, was in zip(given_, before):
        np.testing.assert_array_equal(array, was)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("additive", [False, True])
def test_a_query_with_nothing_to_attend_to_gives_and_gets_zeros_and_warns_of_nothing(dtype, additive):
    rng = np.random.default_rng(0)
    query, key, value, grad_output = arrays(rng, (2, 4), (3, 4), (3, 2), (2, 2), dtype=dtype)
    mask = np.array([[True, True, False], [False, False, False]])
    given_ = np.where(mask, 0, -np.inf).astype(dtype) if additive else mask
    with np.errstate(all="raise", under="ignore"):
        grad_query, grad_key, grad_value = attention_backward(query, key, value, grad_output, given_)
        nothing = attention_backward(query, key, value, grad_output, np.zeros((2, 3), dtype=bool))
    assert not grad_query[1].any() and not grad_key[2].any() and not grad_value[2].any()
    assert grad_query[0].any() and not any(gradient.any() for gradient in nothing)
    alone = attention_backward(query[:1], key, value, grad_output[:1], given_[:1])
    np.testing.assert_allclose(grad_value, alone[2], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("n_query, n_key, d_k, d_v", [(2, 0, 3, 2), (0, 2, 3, 2), (2, 3, 0, 2), (2, 3, 4, 0)])
def test_empty_axes(n_query, n_key, d_k, d_v):
    shapes = (n_query, d_k), (n_key, d_k), (n_key, d_v)
    found = attention_backward(*map(np.ones, shapes), np.ones((n_query, d_v)))
    assert [gradient.shape for gradient in found] == list(shapes)
    assert all(np.isfinite(gradient).all() for gradient in found)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: numeric_gradient(np.sum, np.ones(2), 0), "epsilon=0; expected a number above 0. Try epsilon=1e-5."),
        (lambda: numeric_gradient(np.exp, np.ones(2)), "function returned shape [2]; expected one number, a loss."),
        (lambda: softmax_backward(np.ones((2, 3)), np.ones(3)), "weights has shape [2, 3] and grad_weights [3]"),
        (lambda: softmax_backward(np.ones(2, dtype=int), np.ones(2)), "weights has dtype int64"),
        (
            lambda: attention_backward(*4 * (np.ones((2, 3)),), np.ones((3, 3), dtype=bool)),
            "mask has shape [3, 3], which does not broadcast",
        ),
        (
            lambda: attention_backward(*3 * (np.ones((2, 3)),), np.ones((2, 4))),
            "grad_output has shape [2, 4]; expected the shape of the output, [2, 3]. Try np.broadcast_to",
        ),
        (
            lambda: attention_backward(*3 * (np.ones((2, 3)),), np.ones((2, 3), dtype=np.float32)),
            "grad_output is float32 and query is float64",
        ),
        (
            lambda: multi_head_attention_backward(np.ones((2, 6)), *4 * (np.ones((6, 6)),), 4, np.ones((2, 6))),
            "w_query.shape[-1]=6 cannot be split into 4 heads",
        ),
        (
            lambda: multi_head_attention_backward(np.ones((2, 6)), *4 * (np.ones((6, 8)),), 4, np.ones((2, 6))),
            "w_output has 6 rows and w_value has 8 columns",
        ),
        (
            lambda: multi_head_attention_backward(np.ones((2, 6)), *4 * (np.ones((6, 6)),), 2, np.ones((2, 5))),
            "grad_output has shape [2, 5]; expected the shape of the output, [2, 6]",
        ),
        (
            lambda: multi_head_attention_backward(
                np.ones((2, 6)), *4 * (np.ones((6, 6)),), 2, np.ones((2, 6)), np.ma.array(np.ones((2, 2), bool))
            ),
            "mask is a NumPy masked array",
        ),
        (
            lambda: attention_backward(*4 * (np.ones((2, 3), np.float16),), np.ma.array(np.zeros((2, 2), np.float16))),
            "mask is a NumPy masked array",
        ),
        (
            lambda: attention_backward(*4 * (np.ones((2, 3), np.float16),), np.zeros((2, 2), np.float32)),
            "mask is float32 and the scores are float16",
        ),
        (
            lambda: attention_backward(*4 * (np.ones((2, 3)),), scale="2"),
            "scale is '2'; expected one real number, or None",
        ),
        (
            lambda: step(w_key=np.ones((3, 4), np.float32)),
            "w_key is float32 and w_query is float64; expected one dtype",
        ),
        (lambda: step(w_key=np.ones((4, 3))), "w_key has shape [4, 3]; expected [d, d_k] with d=3, d_k=4"),
        (lambda: step(asked=np.ones((5, 3))), "asked has shape [5, 3]; expected [batch, 1, d] with d=3"),
        (lambda: step(target=np.ones((5, 2))), "target has shape [5, 2]; expected [batch, 1, d_v] with batch=5, d_v=2"),
        (lambda: step(values=np.ma.ones((5, 6, 3))), "values is a NumPy masked array"),
        (lambda: step(rate="fast"), "rate is 'fast'; expected one real number. Try rate=1.0."),
        (lambda: step(rate=np.ones(3)), "expected one real number"),
        (
            lambda: step(
                asked=np.ones((0, 1, 3)), keys=np.ones((0, 6, 3)), values=np.ones((0, 6, 3)), target=np.ones((0, 1, 2))
            ),
            "batch=0",
        ),
        (lambda: train_recall(4, 2, 8, rate=1.0, n_steps=1.5), "n_steps=1.5; expected a whole number of at least 0"),
        (lambda: train_recall(4, 2, True, rate=1.0, n_steps=1), "d=True; expected a whole number of at least 1"),
        (lambda: train_recall(4, 2, 8, rate=1.0, n_steps=1, every=0), "every=0; expected a whole number of at least 1"),
        (lambda: recall_task(1, 4, 5, np.random.default_rng(0)), "n_pairs=5 and n_symbols=4; expected 1 to 4 pairs"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError) as error:
        call()
    assert text in str(error.value)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wild", [np.nan, np.inf, -np.inf])
def test_nothing_to_attend_to_gives_zeros_whatever_the_values_hold(dtype, wild):
    weights, grad_weights = np.zeros((1, 3), dtype), np.array([[wild, 1, -wild]], dtype)
    np.testing.assert_array_equal(softmax_backward(weights, grad_weights), weights)
    query, key, value, grad_output = arrays(np.random.default_rng(0), (2, 4), (3, 4), (3, 2), (2, 2), dtype=dtype)
    value[1, 0] = wild
    gradients = attention_backward(query, key, value, grad_output, np.zeros((2, 3), bool))
    assert not any(gradient.any() for gradient in gradients)
    grad_query, _, _ = attention_backward(query, key, value, grad_output, np.array([[False], [True]]))
    assert not grad_query[0].any() and np.isnan(grad_query[1]).all()  # NaN where the output is NaN


@pytest.mark.parametrize("additive", [False, True])
def test_several_heads_in_half_precision_are_computed_in_single(additive):
    rng = np.random.default_rng(0)
    half = arrays(rng, (2, 4, 6), (6, 8), (6, 8), (6, 8), (8, 6), (2, 4, 6), dtype=np.float16)
    half[1] *= np.float16(200)  # queries and scores beyond what float16 holds
    half[0] *= np.float16(200)
    mask = np.where(np.tri(4, dtype=bool), 0, -np.inf).astype(np.float16) if additive else np.tri(4, dtype=bool)
    *inputs, grad_output = (array.astype(np.float32) for array in half)
    single = mask.astype(np.float32) if additive else mask
    expected = multi_head_attention_backward(*inputs, 2, grad_output, single)
    found = multi_head_attention_backward(*half[:-1], 2, half[-1], mask)
    for one, other in zip(found, expected):
        assert one.dtype == np.float16
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(one, other.astype(np.float16))


def test_width_0_changes_no_matrix():
    changed = {"w_query": np.ones((3, 0)), "w_key": np.ones((3, 0))}
    w_query, w_key, w_value = step(**changed)
    assert w_query.shape == w_key.shape == (3, 0) and w_value.shape == (3, 2)
    no_input = {"w_query": (0, 4), "w_key": (0, 4), "w_value": (0, 2), "asked": (5, 1, 0), "keys": (5, 6, 0)}
    no_input |= {"values": (5, 6, 0)}
    assert [w.shape for w in step(**{name: np.ones(shape) for name, shape in no_input.items()})] == [
        (0, 4),
        (0, 4),
        (0, 2),
    ]
    gradients = multi_head_attention_backward(
        *(np.ones(s) for s in ((2, 6), (6, 0), (6, 0), (6, 4), (4, 6))), 2, np.ones((2, 6))
    )
    assert [gradient.shape for gradient in gradients] == [(2, 6), (6, 0), (6, 0), (6, 4), (4, 6)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_step_keeps_the_dtype_whatever_that_of_the_rate(dtype):
    shapes = ((3, 4), (3, 4), (3, 2), (5, 1, 3), (5, 6, 3), (5, 6, 3), (5, 1, 2))
    for w in train_step(*arrays(np.random.default_rng(0), *shapes, dtype=dtype), np.float64(0.1)):
        assert w.dtype == dtype


# Properties ----------------------------------------------------------------------------------------------------------

sizes = st.integers(1, 4)


@st.composite
def backwards(draw):
    """query, key, value, grad_output and a mask, with up to two leading axes, all of random sizes."""
    leading = tuple(draw(st.lists(sizes, max_size=2)))
    n_query, n_key, d_k, d_v = (draw(sizes) for _ in range(4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shapes = (n_query, d_k), (n_key, d_k), (n_key, d_v), (n_query, d_v)
    given_ = [draw(st.sampled_from([0.1, 1, 30])) * rng.normal(size=(*leading, *shape)) for shape in shapes]
    return given_, rng.random((*leading, n_query, n_key)) < draw(st.sampled_from([0.0, 0.5, 1.0])), rng


def near(one, other):
    np.testing.assert_allclose(one, other, atol=1e-9 * max(1, np.abs(one).max(initial=0)))


@given(backwards())
def test_gradients_are_finite_and_rows_of_scores_sum_to_zero(case):
    (query, key, value, grad_output), mask, _ = case
    assert all(np.isfinite(gradient).all() for gradient in attention_backward(query, key, value, grad_output, mask))
    weights = scaled_dot_product_attention(query, key, value, mask, return_weights=True)[1]
    grad_weights = grad_output @ value.swapaxes(-1, -2)
    near(softmax_backward(weights, grad_weights).sum(axis=-1), 0 * weights[..., 0])
    near(softmax_backward(weights, grad_weights + 5.0), softmax_backward(weights, grad_weights) + 0 * weights)


@given(backwards())
def test_keys_and_values_in_another_order_get_their_gradients_in_that_order(case):
    (query, key, value, grad_output), mask, rng = case
    order = rng.permutation(key.shape[-2])
    once = attention_backward(query, key, value, grad_output, mask)
    again = attention_backward(query, key[..., order, :], value[..., order, :], grad_output, mask[..., order])
    near(once[0], again[0])
    near(once[1][..., order, :], again[1])
    near(once[2][..., order, :], again[2])


@given(backwards())
def test_a_shared_key_adds_up_what_its_copies_would_get(case):
    (query, key, value, grad_output), mask, _ = case
    key, value = key[(0,) * (key.ndim - 2)], value[(0,) * (value.ndim - 2)]  # [n_key, d]: the same for all leading axes
    shared = attention_backward(query, key, value, grad_output, mask)
    copies = (np.broadcast_to(array, (*query.shape[:-2], *array.shape)) for array in (key, value))
    apart = attention_backward(query, *copies, grad_output, mask)
    near(shared[0], apart[0])
    for one, many in zip(shared[1:], apart[1:]):
        near(one, many.reshape(-1, *one.shape).sum(axis=0))


# Training ------------------------------------------------------------------------------------------------------------


def test_the_task_has_one_right_answer_which_stands_beside_the_key():
    keys, values, asked, answer = recall_task(500, 6, 4, np.random.default_rng(0))
    assert all(len(set(row)) == 4 for row in keys)
    np.testing.assert_array_equal(values[keys == asked[:, None]], answer)
    assert set(asked) == set(answer) == set(range(6))


def test_a_step_goes_against_the_gradient_and_leaves_its_inputs():
    rng = np.random.default_rng(0)
    matrices = arrays(rng, (3, 4), (3, 4), (3, 2))
    inputs = arrays(rng, (5, 1, 3), (5, 6, 3), (5, 6, 3), (5, 1, 2))
    before = [w.copy() for w in matrices]

    def loss(*matrices):
        asked, keys, values, target = inputs
        projected = (x @ w for x, w in zip((asked, keys, values), matrices))
        return 0.5 * ((scaled_dot_product_attention(*projected) - target) ** 2).sum() / len(asked)

    updated = train_step(*matrices, *inputs, 0.1)
    agrees([(w - new) / 0.1 for w, new in zip(matrices, updated)], loss, matrices, 1.0)
    for w, was in zip(matrices, before):
        np.testing.assert_array_equal(w, was)
    assert loss(*updated) < loss(*matrices)


def test_recall_is_learned_and_the_map_is_the_identity():
    reported = []
    result = train_recall(
        16, 8, 32, rate=5.0, n_steps=400, every=50, report=lambda step, loss: reported.append((step, loss))
    )
    assert result.accuracies[-1] >= 0.99 > 0.5 > result.accuracies[1]
    assert reported == list(zip(result.steps, result.losses)) and result.steps == list(range(0, 401, 50))
    w_query, w_key, _ = result.matrices
    of_key = result.vectors[0]
    weights = softmax(of_key @ w_query @ (of_key @ w_key).T / np.sqrt(32))
    assert np.diag(weights).min() > 0.5 and (weights - np.diag(np.diag(weights))).max() < 0.2


# PyTorch -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["none", "boolean", "float", "minus infinity", "broadcast", "scale"])
def test_equal_to_autograd(dtype, kind):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    shapes = (2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 2)
    if kind == "broadcast":
        shapes = (1, 3, 4, 5), (2, 1, 6, 5), (6, 2)
    query, key, value, grad_output = arrays(rng, *shapes, (2, 3, 4, 2), dtype=dtype)
    allowed = rng.random((2, 3, 4, 6)) < 0.6
    allowed[..., 0] = True
    mask = {
        "boolean": allowed,
        "float": rng.normal(size=(4, 6)).astype(dtype),
        "minus infinity": np.where(allowed, 0, -np.inf).astype(dtype),
        "broadcast": allowed[:, :1, :1],
    }.get(kind)
    scale = 0.3 if kind == "scale" else None
    found = attention_backward(query, key, value, grad_output, mask, scale=scale)
    inputs = [torch.from_numpy(array).requires_grad_() for array in (query, key, value)]
    output = torch.nn.functional.scaled_dot_product_attention(
        *(tensor.expand(2, 3, *tensor.shape[-2:]) for tensor in inputs),
        attn_mask=None if mask is None else torch.from_numpy(mask),
        scale=scale,
    )
    for ours, theirs in zip(found, torch.autograd.grad(output, inputs, torch.from_numpy(grad_output))):
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, theirs.numpy(), atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("masked", [False, True])
def test_several_heads_equal_to_autograd_through_multi_head_attention(dtype, masked):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x, *matrices, grad_output = arrays(rng, (2, 5, 8), *4 * ((8, 8),), (2, 5, 8), dtype=dtype)
    matrices = [w / np.sqrt(dtype(8)) for w in matrices]
    mask = np.tri(5, dtype=bool) if masked else None
    layer = torch.nn.MultiheadAttention(8, 4, bias=False, batch_first=True, dtype=getattr(torch, np.dtype(dtype).name))
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.from_numpy(np.concatenate([w.T for w in matrices[:3]])))
        layer.out_proj.weight.copy_(torch.from_numpy(matrices[3].T))
    tensor = torch.from_numpy(x).requires_grad_()
    forbidden = None if mask is None else torch.from_numpy(~mask)  # this layer's True means: ignore
    output = layer(tensor, tensor, tensor, attn_mask=forbidden, need_weights=False)[0]
    parameters = (tensor, layer.in_proj_weight, layer.out_proj.weight)
    grad_x, grad_in, grad_out = torch.autograd.grad(output, parameters, torch.from_numpy(grad_output))
    theirs = [grad_x.numpy(), *(part.T for part in np.split(grad_in.numpy(), 3)), grad_out.numpy().T]
    found = multi_head_attention_backward(x, *matrices, 4, grad_output, mask)
    for ours, other in zip(found, theirs):
        size = max(1, np.abs(other).max())
        np.testing.assert_allclose(ours, other, atol=TOLERANCE[dtype] * size, rtol=0)
