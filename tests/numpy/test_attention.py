"""The contract of attention in NumPy: values by hand, dtypes, masks, empty rows, edge cases, errors by their text."""

import numpy as np
import pytest

from attnlib.numpy import attention_scores, masked_softmax, scaled_dot_product_attention, softmax

DTYPES = [np.float16, np.float32, np.float64]
TOLERANCE = {np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-12}
LOG3 = np.log(3.0)


def arrays(rng, *shapes, dtype=np.float64):
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def test_softmax_by_hand():
    np.testing.assert_allclose(softmax(np.array([[0, LOG3], [0, 0]])), [[0.25, 0.75], [0.5, 0.5]], atol=1e-15)
    np.testing.assert_allclose(softmax(np.array([[0, LOG3], [0, 0]]), axis=0), [[0.5, 0.75], [0.5, 0.25]], atol=1e-15)
    np.testing.assert_array_equal(softmax(np.array([1000.0, -1000.0, 1000.0])), [0.5, 0, 0.5])


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_keeps_the_dtype_and_its_input(dtype):
    scores = np.array([[-300.0, 2.5, 300.0], [1.0, -1.0, 0.0]], dtype=dtype)
    before = scores.copy()
    weights = softmax(scores)
    assert weights.dtype == dtype
    np.testing.assert_array_equal(scores, before)
    np.testing.assert_allclose(weights, softmax(scores.astype(np.float64)), atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_with_nothing_to_attend_to_is_zero_and_warns_of_nothing(dtype):
    with np.errstate(all="raise"):
        assert not softmax(np.full((2, 3), -np.inf, dtype=dtype)).any()
        scores = np.ones((2, 3), dtype=dtype)
        mask = np.array([[True, False, True], [False, False, False]])
        additive = np.where(mask, 0, -np.inf).astype(dtype)
        for given in (mask, additive):
            weights = masked_softmax(scores, given)
            assert weights.dtype == dtype
            np.testing.assert_array_equal(weights, np.array([[0.5, 0, 0.5], [0, 0, 0]], dtype=dtype))


def test_nan_stays_in_its_row():
    weights = softmax(np.array([[np.nan, 0.0], [np.inf, 0.0], [0.0, 0.0]]))
    assert np.isnan(weights[:2]).all()
    np.testing.assert_array_equal(weights[2], [0.5, 0.5])


@pytest.mark.parametrize("score", [np.nan, np.inf, -np.inf])
def test_a_masked_score_does_no_harm_whatever_it_is(score):
    allowed = np.array([False, True, True])
    for mask in (allowed, np.where(allowed, 0, -np.inf)):
        weights = masked_softmax(np.array([[score, 0.0, 0.0]]), mask)
        np.testing.assert_array_equal(weights, [[0, 0.5, 0.5]])


def test_a_row_with_nothing_to_attend_to_is_zero_even_where_values_are_not_numbers():
    value = np.array([[np.nan, np.inf], [1.0, 2.0]])
    mask = np.array([[False, False], [True, True]])
    output = scaled_dot_product_attention(np.ones((2, 3)), np.ones((2, 3)), value, mask)
    np.testing.assert_array_equal(output[0], [0, 0])
    assert np.isnan(output[1, 0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_extreme_numbers_raise_no_floating_point_error(dtype):
    with np.errstate(all="raise"):
        largest = np.finfo(dtype).max
        np.testing.assert_array_equal(softmax(np.array([largest, -largest], dtype)), [1, 0])
        softmax(np.array([0, -12], dtype))
        scaled_dot_product_attention(*3 * (np.array([[1e-3, 5], [-3, 1e-4]], dtype),))


def test_a_finite_fill_is_added_as_it_is_given():
    scores = np.array([[0.0, LOG3]])
    np.testing.assert_allclose(masked_softmax(scores, np.array([[-5.0, -5.0]])), [[0.25, 0.75]], atol=1e-15)
    half = masked_softmax(np.array([[60000.0, 0.0]], np.float16), np.array([[60000.0, 0.0]], np.float16))
    np.testing.assert_array_equal(half, [[1, 0]])  # the sum does not overflow


def test_scores_by_hand():
    query, key = np.ones((1, 4)), np.array([[1.0, 1, 1, 1], [0, 0, 0, 0]])
    np.testing.assert_array_equal(attention_scores(query, key), [[2, 0]])
    np.testing.assert_array_equal(attention_scores(query, key, scale=1), [[4, 0]])


def test_attention_by_hand():
    query, key = np.full((1, 4), LOG3 / 2), np.array([[1.0, 1, 1, 1], [0, 0, 0, 0]])
    output, weights = scaled_dot_product_attention(query, key, np.array([[4.0, 0], [0, 8]]), return_weights=True)
    np.testing.assert_allclose(weights, [[0.75, 0.25]], atol=1e-15)
    np.testing.assert_allclose(output, [[3, 2]], atol=1e-15)


def loop_attention(query, key, value, mask=None):
    """The specification: one query, one key, one number at a time."""
    output = np.zeros((len(query), value.shape[1]))
    for i in range(len(query)):
        allowed = [j for j in range(len(key)) if mask is None or mask[i, j]]
        scores = {j: sum(query[i, c] * key[j, c] for c in range(len(key[j]))) / len(key[j]) ** 0.5 for j in allowed}
        total = sum(np.exp(score) for score in scores.values())
        for j in allowed:
            output[i] += np.exp(scores[j]) / total * value[j]
    return output


def test_attention_equals_the_loop(rng):
    query, key, value = arrays(rng, (3, 4), (5, 4), (5, 2))
    mask = rng.random((3, 5)) < 0.6
    mask[1] = False
    for given in (None, mask):
        np.testing.assert_allclose(
            scaled_dot_product_attention(query, key, value, given), loop_attention(query, key, value, given), atol=1e-12
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["none", "boolean", "float"])
def test_dtypes_are_kept_and_near_the_float64_result(dtype, kind, rng):
    query, key, value = arrays(rng, (2, 3, 4, 8), (2, 1, 5, 8), (2, 3, 5, 6), dtype=dtype)
    mask = {"none": None, "boolean": rng.random((4, 5)) < 0.7, "float": rng.normal(size=(4, 5)).astype(dtype)}[kind]
    copies = query.copy(), key.copy(), value.copy()
    output, weights = scaled_dot_product_attention(query, key, value, mask, return_weights=True)
    assert output.dtype == weights.dtype == dtype
    assert output.shape == (2, 3, 4, 6) and weights.shape == (2, 3, 4, 5)
    wide = mask.astype(np.float64) if kind == "float" else mask
    exact, exact_weights = scaled_dot_product_attention(
        *(a.astype(np.float64) for a in (query, key, value)), wide, return_weights=True
    )
    np.testing.assert_allclose(output, exact, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    np.testing.assert_allclose(weights, exact_weights, atol=TOLERANCE[dtype])
    for now, before in zip((query, key, value), copies):
        np.testing.assert_array_equal(now, before)


@pytest.mark.parametrize("dtype", DTYPES)
def test_edge_cases_have_the_defined_result(dtype):
    def ones(*shape):
        return np.ones(shape, dtype=dtype)

    value = np.array([[1, 10], [3, 30]], dtype=dtype)
    no_width = scaled_dot_product_attention(ones(3, 0), ones(2, 0), value)  # d_k = 0: the mean
    np.testing.assert_array_equal(no_width, np.full((3, 2), [2, 20], dtype=dtype))
    one_allowed = scaled_dot_product_attention(ones(1, 0), ones(2, 0), value, np.array([[False, True]]))
    np.testing.assert_array_equal(one_allowed, value[1:])
    no_keys = scaled_dot_product_attention(ones(3, 4), ones(0, 4), ones(0, 2))
    np.testing.assert_array_equal(no_keys, np.zeros((3, 2), dtype=dtype))
    no_queries = scaled_dot_product_attention(ones(0, 4), ones(2, 4), value)
    assert no_queries.shape == (0, 2) and no_queries.dtype == no_keys.dtype == no_width.dtype == dtype
    assert softmax(ones(3, 0)).shape == (3, 0)


def test_lists_of_floats_are_arrays():
    np.testing.assert_array_equal(softmax([0.0, 0.0]), [0.5, 0.5])


Q, K, V = np.ones((2, 4)), np.ones((3, 4)), np.ones((3, 5))
ERRORS = {
    "wrong last axis": (
        lambda: attention_scores(Q, np.ones((3, 5))),
        "query has d_k=4 in its last axis and key has d_k=5; expected the same width. query is [2, 4], key is [3, 5].",
    ),
    "key for each value": (
        lambda: scaled_dot_product_attention(Q, K, np.ones((2, 5))),
        "key has n_key=3 rows and value has 2; expected one value for each key.",
    ),
    "integers": (
        lambda: scaled_dot_product_attention(Q, K.astype(int), V),
        "key has dtype int64; expected float16, float32 or float64, in this machine's byte order. "
        "Try np.asarray(key).astype(np.float32).",
    ),
    "integer scores": (lambda: softmax(np.array([1, 2])), "Try np.asarray(scores).astype(np.float32)."),
    "booleans": (lambda: softmax(np.array([True, False])), "scores has dtype bool"),
    "complex numbers": (lambda: softmax(np.array([1j])), "scores has dtype complex128"),
    "other byte order": (
        lambda: softmax(np.ones(2, ">f8" if np.little_endian else "<f8")),
        "in this machine's byte order. Try np.asarray(scores).astype(np.float64).",
    ),
    "scale of another kind": (lambda: attention_scores(Q, K, scale="2"), "scale is '2'; expected one real number"),
    "scale with axes": (lambda: attention_scores(Q, K, scale=np.ones((2, 1))), "expected one real number, or None"),
    "masked array as mask": (
        lambda: masked_softmax(Q, np.ma.masked_array(np.ones((2, 4), bool))),
        "mask is a NumPy masked array",
    ),
    "additive mask of another byte order": (
        lambda: masked_softmax(Q, np.zeros((2, 4), ">f8" if np.little_endian else "<f8")),
        "Try mask.astype(np.float64).",
    ),
    "one number for each value": (
        lambda: scaled_dot_product_attention(Q, K, np.ones(3)),
        "or value[:, None] for values of one number",
    ),
    "two dtypes": (
        lambda: attention_scores(Q, K.astype(np.float32)),
        "key is float32 and query is float64; expected one dtype, since nothing is promoted behind your back. "
        "Try key.astype(np.float64).",
    ),
    "masked array": (
        lambda: softmax(np.ma.masked_array([1.0, 2.0], [True, False])),
        "mask=~np.ma.getmaskarray(scores)",
    ),
    "one axis": (
        lambda: attention_scores(np.ones(4), K),
        "query has shape [4]; expected [..., n_query, d_k], at least two axes. Try query[None, :] for a single query.",
    ),
    "a number": (lambda: softmax(np.float64(1)), "scores is a single number; expected [..., n]"),
    "no such axis": (lambda: softmax(Q, axis=2), "axis 2 is out of bounds for array of dimension 2"),
    "leading axes": (
        lambda: attention_scores(np.ones((2, 3, 4)), np.ones((5, 3, 4))),
        "the leading axes do not broadcast: query [2, 3, 4], key [5, 3, 4]",
    ),
    "mask shape": (
        lambda: scaled_dot_product_attention(Q, K, V, np.ones((2, 4), bool)),
        "mask has shape [2, 4], which does not broadcast to the scores [..., n_query, n_key] = [2, 3].",
    ),
    "mask with more axes": (
        lambda: scaled_dot_product_attention(Q, K, V, np.ones((7, 2, 3), bool)),
        "mask has shape [7, 2, 3], which does not broadcast",
    ),
    "integer mask": (
        lambda: scaled_dot_product_attention(Q, K, V, np.ones((2, 3), int)),
        "mask has dtype int64; expected booleans (True = may attend) or float64 numbers to add to the scores. "
        "Try mask.astype(bool) if 1 means: may attend.",
    ),
    "mask of another float": (
        lambda: masked_softmax(Q, np.zeros((2, 4), np.float32)),
        "mask is float32 and the scores are float64; expected one dtype. Try mask.astype(np.float64)",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_what_was_given_and_what_to_try(name):
    call, text = ERRORS[name]
    with pytest.raises(ValueError) as error:
        call()
    assert text.replace("int64", str(np.dtype(int))) in str(error.value)
