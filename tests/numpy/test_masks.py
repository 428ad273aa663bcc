"""Masks: the contract by hand, what they do to attention, equality with PyTorch, errors by their text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.data import sentence
from attnlib.numpy import causal_mask, masked_softmax, padding_mask, scaled_dot_product_attention, to_additive

DTYPES = [np.float16, np.float32, np.float64]
sizes = st.integers(0, 6)
seeds = st.integers(0, 2**32)


def arrays(rng, *shapes):
    return [rng.normal(size=shape) for shape in shapes]


# By hand --------------------------------------------------------------------------------------------------------------


def test_padding_by_hand():
    mask = padding_mask(np.array([2, 0, 3]), 3)
    assert mask.dtype == bool and mask.shape == (3, 1, 3)
    assert mask[:, 0].tolist() == [[True, True, False], [False] * 3, [True] * 3]
    assert padding_mask([1], 2).tolist() == [[[True, False]]]
    assert padding_mask([], 2).shape == (0, 1, 2) and padding_mask([0, 0], 0).shape == (2, 1, 0)


def test_causal_by_hand():
    assert causal_mask(3).tolist() == np.tril(np.ones((3, 3))).astype(bool).tolist()
    assert causal_mask(2, 3).tolist() == [[True, True, False], [True, True, True]]
    assert causal_mask(1, 4).all() and causal_mask(np.int64(2)).dtype == bool
    assert causal_mask(3, 2).tolist() == [[False, False], [True, False], [True, True]]
    assert causal_mask(0).shape == (0, 0) and causal_mask(2, 0).shape == (2, 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_additive_by_hand(dtype):
    mask = np.array([[True, False]])
    bias = to_additive(mask, dtype)
    assert bias.dtype == dtype and bias.tolist() == [[0, -np.inf]]
    assert mask.tolist() == [[True, False]]
    assert to_additive(mask, np.dtype(dtype).name).dtype == dtype


# What they do to attention --------------------------------------------------------------------------------------------


@given(sizes, sizes)
def test_the_last_query_sees_the_last_key(n_query, n_key):
    mask = causal_mask(n_query, n_key)
    seen = np.array([[j <= i + n_key - n_query for j in range(n_key)] for i in range(n_query)], dtype=bool)
    np.testing.assert_array_equal(mask, seen.reshape(n_query, n_key))
    if 0 < n_query <= n_key:
        assert mask[-1].all()
        np.testing.assert_array_equal(mask, causal_mask(n_key)[-n_query:])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(2, 7), seeds)
def test_the_causal_prefix_does_not_depend_on_the_suffix(n, seed):
    rng = np.random.default_rng(seed)
    query, key, value = arrays(rng, (n, 3), (n, 3), (n, 2))
    whole = scaled_dot_product_attention(query, key, value, causal_mask(n))
    for t in range(1, n + 1):
        prefix = scaled_dot_product_attention(query[:t], key[:t], value[:t], causal_mask(t))
        last = scaled_dot_product_attention(query[t - 1 : t], key[:t], value[:t], causal_mask(1, t))
        np.testing.assert_allclose(whole[:t], prefix, atol=1e-12)
        np.testing.assert_allclose(whole[t - 1 : t], last, atol=1e-12)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=4), st.integers(0, 4), seeds)
def test_padding_changes_nothing_whatever_stands_in_it(lengths, extra, seed):
    rng = np.random.default_rng(seed)
    n_key = max(lengths) + extra
    query, key, value = arrays(rng, (len(lengths), 2, 3), (len(lengths), n_key, 3), (len(lengths), n_key, 2))
    output = scaled_dot_product_attention(query, 100 * key, value, padding_mask(lengths, n_key))
    for i, length in enumerate(lengths):
        alone = scaled_dot_product_attention(query[i], 100 * key[i, :length], value[i, :length])
        np.testing.assert_allclose(output[i], alone, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_boolean_and_additive_masks_do_the_same(dtype):
    rng = np.random.default_rng(0)
    scores = (10 * rng.normal(size=(3, 4, 5))).astype(dtype)
    mask = causal_mask(4, 5) & padding_mask([5, 2, 0], 5)
    assert mask.shape == (3, 4, 5)
    weights = masked_softmax(scores, mask)
    np.testing.assert_array_equal(weights, masked_softmax(scores, to_additive(mask, dtype)))
    assert weights.dtype == dtype and not weights[~mask].any() and not weights[2].any()


@pytest.mark.parametrize("n_key", [11, 16, 64])
def test_the_sentence_of_the_course_in_a_padded_batch(n_key):
    words = sentence.tokens("tired")
    batch = np.zeros((2, n_key, 5))
    batch[0, :11], batch[1, :4] = sentence.features(words), sentence.features("The animal was tired".split())
    query, key = batch @ sentence.query_matrix(5.0), batch @ sentence.KEY_MATRIX
    mask = padding_mask([11, 4], n_key)
    _, weights = scaled_dot_product_attention(query, key, batch, mask, return_weights=True)
    assert round(weights[0, words.index("tired"), words.index("animal")], 3) == 0.880
    _, leaking = scaled_dot_product_attention(query, key, batch, return_weights=True)
    on_padding = leaking[1, :4, 4:].sum(axis=-1).mean()
    assert round(on_padding, 2) == {11: 0.33, 16: 0.39, 64: 0.54}[n_key]


# PyTorch --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype, atol", [(np.float64, 1e-12), (np.float32, 1e-6)])
def test_attention_under_these_masks_equals_pytorch(dtype, atol):
    torch = pytest.importorskip("torch")
    attend = torch.nn.functional.scaled_dot_product_attention
    rng = np.random.default_rng(1)
    query, key, value = (a.astype(dtype) for a in arrays(rng, (3, 5, 4), (3, 5, 4), (3, 5, 2)))
    theirs = [torch.from_numpy(a) for a in (query, key, value)]
    both = causal_mask(5) & padding_mask([5, 1, 3], 5)
    for mask in (both, to_additive(both, dtype)):
        ours = scaled_dot_product_attention(query, key, value, mask)
        np.testing.assert_allclose(ours, attend(*theirs, attn_mask=torch.from_numpy(mask)), atol=atol)
    ours = scaled_dot_product_attention(query, key, value, causal_mask(5))
    np.testing.assert_allclose(ours, attend(*theirs, is_causal=True), atol=atol)


def test_causal_mask_is_the_lower_right_one_of_pytorch():
    bias = pytest.importorskip("torch.nn.attention.bias")
    np.testing.assert_array_equal(causal_mask(2, 5), bias.causal_lower_right(2, 5)._materialize().numpy())


# Errors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: padding_mask(np.array([1.0]), 2), "lengths has dtype float64; expected whole numbers"),
        (lambda: padding_mask(np.array([True]), 2), "mask.sum(axis=-1) if this is a mask"),
        (lambda: padding_mask(3, 4), "lengths has shape []; expected [batch]"),
        (lambda: padding_mask([[1, 2]], 4), "lengths has shape [1, 2]; expected [batch]"),
        (lambda: padding_mask([2, 5], 4), "lengths are 2 to 5 and n_key=4; expected 0 to n_key. Try n_key=5"),
        (lambda: padding_mask([-1], 4), "lengths are -1 to -1 and n_key=4"),
        (lambda: padding_mask([1], 2.0), "n_key=2.0; expected a whole number of at least 0"),
        (lambda: causal_mask(-1), "n_query=-1; expected a whole number of at least 0"),
        (lambda: causal_mask(2, -3), "n_key=-3; expected a whole number of at least 0"),
        (lambda: causal_mask(np.zeros((2, 2))), "expected a whole number"),
        (lambda: causal_mask(True), "n_query=True; expected a whole number"),
        (lambda: padding_mask(np.ma.array([1, 2]), 2), "lengths is a NumPy masked array"),
        (lambda: to_additive(np.ma.array([True, False])), "mask is a NumPy masked array"),
        (
            lambda: to_additive(np.array([1, 0]), np.float32),
            "mask has dtype int64; expected booleans (True = may attend)",
        ),
        (lambda: to_additive(np.array([0.0, -np.inf])), "Try mask.astype(bool) if 1 means: may attend"),
        (lambda: to_additive(np.array([True]), int), "dtype is int64; expected float16, float32 or float64"),
    ],
)
def test_errors_say_what_was_given_what_was_expected_and_what_to_try(call, text):
    with pytest.raises(ValueError) as caught:
        call()
    assert text in str(caught.value) and "Try" in str(caught.value)
