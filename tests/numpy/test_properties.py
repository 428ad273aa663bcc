"""Properties of attention that hold for any shape and any numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.numpy import masked_softmax, scaled_dot_product_attention, softmax

sizes = st.integers(1, 4)
settings.register_profile("course", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("course")


@st.composite
def attentions(draw):
    """query, key, value and a mask, with up to two leading axes, all of random sizes."""
    leading = tuple(draw(st.lists(sizes, max_size=2)))
    n_query, n_key, d_k, d_v = (draw(sizes) for _ in range(4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    query, key, value = (
        draw(st.sampled_from([0.1, 1, 30])) * rng.normal(size=(*leading, *shape))
        for shape in ((n_query, d_k), (n_key, d_k), (n_key, d_v))
    )
    mask = rng.random((*leading, n_query, n_key)) < draw(st.sampled_from([0.0, 0.5, 1.0]))
    return query, key, value, mask, rng


@given(attentions())
def test_rows_sum_to_one_or_to_zero(case):
    query, key, value, mask, _ = case
    output, weights = scaled_dot_product_attention(query, key, value, mask, return_weights=True)
    assert (weights >= 0).all() and not weights[~mask].any()
    np.testing.assert_allclose(weights.sum(axis=-1), mask.any(axis=-1).astype(float), atol=1e-12)
    assert not output[~mask.any(axis=-1)].any()


@given(attentions())
def test_outputs_stay_between_the_smallest_and_the_largest_value(case):
    query, key, value, _, _ = case
    output = scaled_dot_product_attention(query, key, value)
    slack = 1e-12 * np.abs(value).max()
    assert (output >= value.min(axis=-2, keepdims=True) - slack).all()
    assert (output <= value.max(axis=-2, keepdims=True) + slack).all()


@given(attentions())
def test_keys_and_values_may_change_places_together(case):
    query, key, value, mask, rng = case
    order = rng.permutation(key.shape[-2])
    once = scaled_dot_product_attention(query, key, value, mask)
    again = scaled_dot_product_attention(query, key[..., order, :], value[..., order, :], mask[..., order])
    np.testing.assert_allclose(once, again, atol=1e-10)


@given(attentions())
def test_queries_in_another_order_give_outputs_in_that_order(case):
    query, key, value, mask, rng = case
    order = rng.permutation(query.shape[-2])
    once = scaled_dot_product_attention(query, key, value, mask)[..., order, :]
    again = scaled_dot_product_attention(query[..., order, :], key, value, mask[..., order, :])
    np.testing.assert_allclose(once, again, atol=1e-12)


@given(attentions())
def test_a_key_that_is_masked_might_as_well_be_absent(case):
    query, key, value, mask, rng = case
    more_key, more_value = (np.concatenate([a, 100 * rng.normal(size=a.shape)], axis=-2) for a in (key, value))
    more_mask = np.concatenate([mask, np.zeros_like(mask)], axis=-1)
    once = scaled_dot_product_attention(query, key, value, mask)
    again = scaled_dot_product_attention(query, more_key, more_value, more_mask)
    np.testing.assert_allclose(once, again, atol=1e-10)


@given(attentions(), st.floats(-1e3, 1e3))
def test_a_shift_of_all_scores_changes_nothing(case, shift):
    query, key, _, mask, _ = case
    scores = query @ key.swapaxes(-1, -2)
    np.testing.assert_allclose(softmax(scores), softmax(scores + shift), atol=1e-10)
    np.testing.assert_allclose(masked_softmax(scores, mask), masked_softmax(scores + shift, mask), atol=1e-10)


@given(attentions())
def test_a_boolean_mask_equals_minus_infinity(case):
    query, key, value, mask, _ = case
    additive = np.where(mask, 0, -np.inf)
    np.testing.assert_array_equal(
        scaled_dot_product_attention(query, key, value, mask), scaled_dot_product_attention(query, key, value, additive)
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@given(case=attentions())
def test_leading_axes_are_separate(dtype, case):
    query, key, value, mask, _ = (*(a.astype(dtype) for a in case[:3]), *case[3:])
    output = scaled_dot_product_attention(query, key, value, mask)
    for index in np.ndindex(query.shape[:-2]):
        alone = scaled_dot_product_attention(query[index], key[index], value[index], mask[index])
        np.testing.assert_allclose(output[index], alone, rtol=1e-2 if dtype == np.float16 else 1e-4, atol=1e-2)
