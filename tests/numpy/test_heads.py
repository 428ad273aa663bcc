"""Several heads: the contract of splitting, merging and attention, properties, PyTorch's own layer, errors by their text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.numpy import (
    count_parameters,
    merge_heads,
    multi_head_attention,
    previous_and_first,
    scaled_dot_product_attention,
    split_heads,
)

DTYPES = [np.float16, np.float32, np.float64]
TOLERANCE = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-12}
sizes = st.integers(1, 4)
settings.register_profile("course", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("course")


def layer(rng, leading, n, d_model, n_heads, d_k, d_v, dtype=np.float64):
    shapes = [
        (*leading, n, d_model),
        *[(d_model, n_heads * d_k)] * 2,
        (d_model, n_heads * d_v),
        (n_heads * d_v, d_model),
    ]
    return [(rng.normal(size=shape) / np.sqrt(shape[-2])).astype(dtype) for shape in shapes]


@st.composite
def layers(draw):
    """x, weights, number of heads and a mask for each head, with up to two leading axes, all of random sizes."""
    leading = tuple(draw(st.lists(sizes, max_size=2)))
    n, d_model, n_heads, d_k, d_v = (draw(sizes) for _ in range(5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x, *weights = layer(rng, leading, n, d_model, n_heads, d_k, d_v)
    mask = rng.random((*leading, n_heads, n, n)) < draw(st.sampled_from([0.0, 0.5, 1.0]))
    return draw(st.sampled_from([1, 30])) * x, weights, n_heads, mask, rng


def by_loops(x, w_query, w_key, w_value, w_output, n_heads, mask):
    """The specification: one head after the other, each with its own columns of the weights."""
    found = []
    for h in range(n_heads):
        own = [np.split(w, n_heads, axis=1)[h] for w in (w_query, w_key, w_value)]
        found.append(scaled_dot_product_attention(*(x @ w for w in own), mask[..., h, :, :]))
    return np.concatenate(found, axis=-1) @ w_output


def test_splitting_and_merging_by_hand():
    x, heads = np.array([[1, 2], [3, 4]]), np.array([[[1], [3]], [[2], [4]]])
    np.testing.assert_array_equal(split_heads(x, 2), heads)
    np.testing.assert_array_equal(merge_heads(heads), x)


@given(st.lists(sizes, max_size=3), sizes, sizes, sizes)
def test_each_number_goes_where_it_belongs_and_comes_back(leading, n, n_heads, d_head):
    x = np.arange(np.prod([*leading, n, n_heads * d_head], dtype=int)).reshape(*leading, n, n_heads * d_head)
    heads = split_heads(x, n_heads)
    assert heads.shape == (*leading, n_heads, n, d_head)
    for h, i, c in np.ndindex(n_heads, n, d_head):
        np.testing.assert_array_equal(heads[..., h, i, c], x[..., i, h * d_head + c])
    np.testing.assert_array_equal(merge_heads(heads), x)


def test_sizes_of_zero():
    assert split_heads(np.zeros((2, 0, 6)), 3).shape == (2, 3, 0, 2)
    assert merge_heads(np.zeros((0, 3, 4, 2))).shape == (0, 4, 6)
    assert merge_heads(np.zeros((3, 4, 0))).shape == (4, 0)
    x, *weights = layer(np.random.default_rng(0), (2,), 0, 4, 2, 2, 2)
    assert multi_head_attention(x, *weights, 2).shape == (2, 0, 4)


@given(layers())
def test_heads_are_looks_one_beside_the_other(case):
    x, weights, n_heads, mask, _ = case
    output, maps = multi_head_attention(x, *weights, n_heads, mask, return_weights=True)
    np.testing.assert_allclose(output, by_loops(x, *weights, n_heads, mask), atol=1e-10)
    assert maps.shape == mask.shape and not maps[~mask].any()
    np.testing.assert_allclose(maps.sum(axis=-1), mask.any(axis=-1), atol=1e-12)


@given(layers())
def test_tokens_in_another_order_give_outputs_in_that_order(case):
    x, weights, n_heads, mask, rng = case
    order = rng.permutation(x.shape[-2])
    once = multi_head_attention(x, *weights, n_heads, mask)[..., order, :]
    again = multi_head_attention(x[..., order, :], *weights, n_heads, mask[..., order, :][..., order])
    np.testing.assert_allclose(once, again, atol=1e-10)


@given(layers())
def test_the_order_of_the_heads_does_not_matter_if_w_output_follows(case):
    x, (w_query, w_key, w_value, w_output), n_heads, mask, rng = case
    order = rng.permutation(n_heads)
    columns = [
        np.concatenate([np.split(w, n_heads, axis=1)[h] for h in order], axis=1) for w in (w_query, w_key, w_value)
    ]
    rows = np.concatenate([np.split(w_output, n_heads)[h] for h in order])
    once = multi_head_attention(x, w_query, w_key, w_value, w_output, n_heads, mask)
    again = multi_head_attention(x, *columns, rows, n_heads, mask[..., order, :, :])
    np.testing.assert_allclose(once, again, atol=1e-10)


@given(layers())
def test_samples_of_a_batch_are_separate(case):
    x, weights, n_heads, mask, _ = case
    output = multi_head_attention(x, *weights, n_heads, mask)
    for index in np.ndindex(x.shape[:-2]):
        alone = multi_head_attention(x[index], *weights, n_heads, mask[index])
        np.testing.assert_allclose(output[index], alone, atol=1e-12)


@given(layers())
def test_with_a_causal_mask_the_beginning_does_not_know_the_end(case):
    x, weights, n_heads, _, rng = case
    changed = x.copy()
    changed[..., -1, :] = rng.normal(size=changed[..., -1, :].shape)
    causal = np.tri(x.shape[-2], dtype=bool)
    once, again = (multi_head_attention(given, *weights, n_heads, causal)[..., :-1, :] for given in (x, changed))
    np.testing.assert_allclose(once, again, atol=1e-12)


def test_a_mask_with_as_many_axes_as_x_holds_for_all_heads_and_with_one_more_each_head_has_its_own(rng):
    x, *weights = layer(rng, (2,), 3, 4, 2, 2, 2)  # as many sequences as heads: nothing but the rule tells them apart
    mask = rng.random((2, 3, 3)) < 0.6
    expected = by_loops(x, *weights, 2, np.stack([mask, mask], axis=1))
    np.testing.assert_allclose(multi_head_attention(x, *weights, 2, mask), expected, atol=1e-12)
    np.testing.assert_allclose(multi_head_attention(x, *weights, 2, mask[:, None]), expected, atol=1e-12)
    expected = by_loops(x, *weights, 2, np.stack([mask, mask], axis=0))
    np.testing.assert_allclose(multi_head_attention(x, *weights, 2, mask[None]), expected, atol=1e-12)
    single = multi_head_attention(x[0], *weights, 2, mask)  # x has two axes, so this mask has one more
    np.testing.assert_allclose(single, expected[0], atol=1e-12)


def test_a_mask_with_fewer_axes_holds_for_all(rng):
    x, *weights = layer(rng, (5, 2), 3, 4, 2, 2, 2)
    allowed = np.array([True, True, False])
    full = np.broadcast_to(allowed, (5, 2, 2, 3, 3))
    expected = by_loops(x, *weights, 2, full)
    for mask in (allowed, np.tile(allowed, (3, 1)), np.tile(allowed, (2, 3, 1)), full[:, :, 0], full):
        np.testing.assert_allclose(multi_head_attention(x, *weights, 2, mask), expected, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["none", "boolean", "float"])
def test_dtypes_are_kept_and_inputs_too(dtype, kind, rng):
    arrays = layer(rng, (2,), 5, 8, 4, 2, 3, dtype)
    mask = {"none": None, "boolean": rng.random((2, 5, 5)) < 0.6, "float": rng.normal(size=(5, 5)).astype(dtype)}[kind]
    copies = [array.copy() for array in arrays]
    output, maps = multi_head_attention(*arrays, 4, mask, return_weights=True)
    assert output.dtype == maps.dtype == dtype and output.shape == (2, 5, 8) and maps.shape == (2, 4, 5, 5)
    wide = mask.astype(np.float64) if kind == "float" else mask
    exact = multi_head_attention(*(array.astype(np.float64) for array in arrays), 4, wide)
    np.testing.assert_allclose(output, exact, atol=TOLERANCE[np.dtype(dtype).name])
    for now, before in zip(arrays, copies):
        np.testing.assert_array_equal(now, before)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_token_that_may_look_nowhere_gets_zeros(dtype, rng):
    arrays = layer(rng, (), 3, 4, 2, 2, 2, dtype)
    mask = np.array([[True, True, True], [False, False, False], [True, False, False]])
    with np.errstate(all="raise", under="ignore"):
        output = multi_head_attention(*arrays, 2, mask)
    assert not output[1].any() and output[0].any() and np.isfinite(output).all()


@given(sizes, sizes, sizes, sizes, st.booleans())
def test_parameters_are_the_sum_of_sizes(d_model, n_heads, d_k, d_v, bias):
    weights = layer(np.random.default_rng(0), (), 1, d_model, n_heads, d_k, d_v)[1:]
    biases = [np.zeros(w.shape[1]) for w in weights] if bias else []
    assert count_parameters(d_model, n_heads, d_k, d_v, bias) == sum(w.size for w in (*weights, *biases))


def test_heads_cost_nothing():
    assert {count_parameters(512, n_heads) for n_heads in (1, 2, 8, 64)} == {1_050_624}
    assert isinstance(count_parameters(512, 8), int)
    assert count_parameters(6, 3, d_v=5) == count_parameters(6, 3, 2, 5)


@pytest.mark.parametrize("n", [2, 3, 6, 9])
def test_two_heads_set_by_hand_fetch_the_previous_and_the_first_vector(n, rng):
    numbers = rng.normal(size=(4, n, n))
    x = np.concatenate([numbers, np.broadcast_to(np.eye(n), numbers.shape)], axis=-1)
    output, maps = multi_head_attention(x, *previous_and_first(n, 60.0), 2, return_weights=True)
    np.testing.assert_allclose(maps[:, 0, 1:], np.broadcast_to(np.eye(n)[:-1], (4, n - 1, n)), atol=1e-6)
    np.testing.assert_allclose(maps[:, 1, :, 0], 1, atol=1e-6)
    np.testing.assert_allclose(maps[:, 0, 0], 1 / n)  # the first token has no previous one and asks for nothing
    np.testing.assert_allclose(output[:, 1:, :n], numbers[:, :-1], atol=1e-5)
    np.testing.assert_allclose(output[:, 1:, n:], np.broadcast_to(numbers[:, :1], (4, n - 1, n)), atol=1e-5)


# PyTorch -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["none", "boolean", "float", "for each head", "padding"])
@pytest.mark.parametrize("bias", [False, True])
def test_equal_to_pytorchs_layer_weight_for_weight(dtype, kind, bias, rng):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    batch, n, d_model, n_heads = 3, 5, 8, 4
    module = torch.nn.MultiheadAttention(d_model, n_heads, bias=bias, batch_first=True, dtype=getattr(torch, dtype))
    state = {name: array.detach() for name, array in module.named_parameters()}
    if bias:  # PyTorch begins with zeros, which would hide a bias that is left out
        for name in ("in_proj_bias", "out_proj.bias"):
            state[name].copy_(torch.from_numpy(rng.normal(size=state[name].shape)))
    x = rng.normal(size=(batch, n, d_model)).astype(dtype)
    allowed = rng.random((batch, n_heads, n, n)) < 0.6
    allowed[..., 0] = True  # PyTorch gives NaN where nothing may be attended
    mask = {
        "boolean": allowed[0, 0],
        "float": rng.normal(size=(n, n)).astype(dtype),
        "for each head": allowed,
        "padding": np.broadcast_to(allowed[:, 0, :1], (batch, n, n)),
    }.get(kind)
    given = {}
    if kind == "padding":
        given = {"key_padding_mask": torch.from_numpy(~allowed[:, 0, 0])}  # PyTorch's True means: must not
    elif mask is not None:
        theirs = mask if mask.dtype != bool else ~mask
        given = {"attn_mask": torch.from_numpy(theirs.reshape(-1, n, n) if theirs.ndim == 4 else theirs)}
    tensor = torch.from_numpy(x)
    output, maps = module(tensor, tensor, tensor, average_attn_weights=False, **given)

    w_query, w_key, w_value = (w.numpy().T for w in state["in_proj_weight"].chunk(3))  # stored as [out, in]
    w_output, inputs = state["out_proj.weight"].numpy().T, x
    if bias:  # a column of ones and a row of weights
        inputs = np.concatenate([x, np.ones((batch, n, 1), dtype)], axis=-1)
        rows = state["in_proj_bias"].numpy().reshape(3, 1, d_model)
        w_query, w_key, w_value = (np.vstack(pair) for pair in zip((w_query, w_key, w_value), rows))
    ours, our_maps = multi_head_attention(inputs, w_query, w_key, w_value, w_output, n_heads, mask, return_weights=True)
    ours = ours + state["out_proj.bias"].numpy() if bias else ours
    assert str(ours.dtype) == str(our_maps.dtype) == dtype
    np.testing.assert_allclose(ours, output.detach().numpy(), atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    np.testing.assert_allclose(our_maps, maps.detach().numpy(), atol=TOLERANCE[dtype])
    assert count_parameters(d_model, n_heads, bias=bias) == sum(w.numel() for w in state.values())


# Errors --------------------------------------------------------------------------------------------------------------

X, W = np.ones((3, 6)), np.ones((6, 6))
ERRORS = {
    "heads do not divide": (
        lambda: split_heads(np.ones((3, 10)), 4),
        "d_model=10 cannot be split into 4 heads: 10 / 4 is not a whole number. Try n_heads=2 or 5.",
    ),
    "more heads than features": (
        lambda: split_heads(np.ones((3, 4)), 5),
        "d_model=4 cannot be split into 5 heads: 4 / 5 is not a whole number. Try n_heads=4.",
    ),
    "no head": (lambda: split_heads(X, 0), "n_heads=0; expected a whole number of at least 1. Try n_heads=1."),
    "half a head": (lambda: split_heads(X, 1.5), "n_heads=1.5; expected a whole number of at least 1"),
    "true heads": (lambda: split_heads(X, True), "n_heads=True; expected a whole number"),
    "a masked array to split": (lambda: split_heads(np.ma.array(X), 2), "x is a NumPy masked array"),
    "masked heads": (lambda: merge_heads(np.ma.array(X[None])), "heads is a NumPy masked array"),
    "a masked mask": (
        lambda: multi_head_attention(X, W, W, W, W, 2, np.ma.array(np.ones((3, 3), bool))),
        "mask is a NumPy masked array",
    ),
    "half a width": (lambda: count_parameters(8, 2, d_k=1.5), "d_k=1.5; expected a whole number of at least 0"),
    "no heads to count": (lambda: count_parameters(8, 0, 2, 2), "n_heads=0; expected a whole number of at least 1"),
    "a width that is true": (lambda: count_parameters(True, 1), "d_model=True; expected a whole number"),
    "no tokens": (lambda: previous_and_first(0, 1.0), "n=0; expected a whole number of at least 1"),
    "two and a half tokens": (lambda: previous_and_first(2.5, 1.0), "n=2.5; expected a whole number"),
    "one axis": (lambda: split_heads(np.ones(4), 2), "x has shape [4]; expected [..., n, d_model], at least two axes."),
    "merging two axes": (
        lambda: merge_heads(X),
        "heads has shape [3, 6]; expected [..., n_heads, n, d_head], at least three axes. Try heads[None]",
    ),
    "layer and heads": (
        lambda: multi_head_attention(X, W, W, W, W, 4),
        "w_query.shape[-1]=6 cannot be split into 4 heads: 6 / 4 is not a whole number. Try n_heads=3 or 6.",
    ),
    "values and heads": (
        lambda: multi_head_attention(X, W, W, np.ones((6, 5)), np.ones((5, 6)), 3),
        "w_value.shape[-1]=5 cannot be split into 3 heads: 5 / 3 is not a whole number. Try n_heads=1 or 5.",
    ),
    "transposed": (
        lambda: multi_head_attention(X, np.ones((4, 6)), np.ones((4, 6)), W, W, 2),
        "w_query has 4 rows and x has d_model=6; expected one row for each feature, since it is used as x @ w_query. "
        "Try w_query.T if it was stored as [out, in], as PyTorch does.",
    ),
    "query and key": (
        lambda: multi_head_attention(X, W, np.ones((6, 4)), W, W, 2),
        "w_query is [6, 6] and w_key is [6, 4]; expected the same shape, since queries meet keys.",
    ),
    "output": (
        lambda: multi_head_attention(X, W, W, np.ones((6, 4)), W, 2),
        "w_output has 6 rows and w_value has 4 columns; expected n_heads * d_v of both",
    ),
    "weights with a head axis": (
        lambda: multi_head_attention(X, np.ones((2, 6, 3)), W, W, W, 2),
        "w_query has shape [2, 6, 3]; expected a matrix, two axes, the heads side by side.",
    ),
    "dtypes": (
        lambda: multi_head_attention(X, W, W.astype(np.float32), W, W, 2),
        "w_key is float32 and x is float64; expected one dtype",
    ),
    "integers": (lambda: multi_head_attention(X.astype(int), W, W, W, W, 2), "Try np.asarray(x).astype(np.float32)."),
    "vector": (lambda: multi_head_attention(np.ones(6), W, W, W, W, 2), "Try x[None, :] for a single token."),
    "mask": (
        lambda: multi_head_attention(X, W, W, W, W, 2, np.ones((4, 4), bool)),
        "mask has shape [4, 4], which does not broadcast to the scores [..., n_query, n_key] = [3, 3].",
    ),
    "mask for three heads": (
        lambda: multi_head_attention(X, W, W, W, W, 2, np.ones((3, 3, 3), bool)),
        "mask has shape [3, 3, 3], which does not broadcast to the scores [..., n_query, n_key] = [2, 3, 3].",
    ),
    "mask of integers": (
        lambda: multi_head_attention(X, W, W, W, W, 2, np.ones((3, 3), int)),
        "expected booleans (True = may attend)",
    ),
    "parameters": (lambda: count_parameters(10, 4, d_k=3), "d_model=10 cannot be split into 4 heads"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_what_was_given_and_what_to_try(name):
    call, text = ERRORS[name]
    with pytest.raises(ValueError) as error:
        call()
    assert text in str(error.value)
