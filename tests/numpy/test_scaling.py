"""Lesson 03's functions: values by hand, laws, dtypes, properties, parity with PyTorch, errors by their text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.numpy import entropy, score_variance, softmax, softmax_jacobian, steer_query, temperature_softmax

DTYPES = [np.float16, np.float32, np.float64]
TOLERANCE = {np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-12}
LOG3 = np.log(3.0)

settings.register_profile("course", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("course")


@st.composite
def scores_of_any_shape(draw):
    """Scores with up to three leading axes, from tame to saturating."""
    shape = (*draw(st.lists(st.integers(1, 3), max_size=3)), draw(st.integers(1, 6)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return draw(st.sampled_from([0.1, 1, 30])) * rng.normal(size=shape)


# By hand --------------------------------------------------------------------------------------------------------------


def test_score_variance_by_hand():
    assert score_variance(np.array([[2.0, 0.0]]), np.array([[1.0, 0.0], [3.0, 5.0]])) == 4
    assert score_variance(np.array([[1.0], [-1.0]]), np.array([[1.0], [3.0]])) == 5
    assert score_variance(np.ones((1, 3)), np.ones((1, 3))) == 0


def test_temperature_by_hand():
    np.testing.assert_allclose(temperature_softmax(np.array([0, 2 * LOG3]), 2), [0.25, 0.75], atol=1e-15)
    np.testing.assert_allclose(temperature_softmax(np.array([0, LOG3]), 0.5), [0.1, 0.9], atol=1e-15)


def test_entropy_by_hand():
    weights = np.array([[0.25, 0.75], [0.5, 0.5], [0, 1], [0, 0]])
    expected = [2 * np.log(2) - 0.75 * LOG3, np.log(2), 0, 0]
    np.testing.assert_allclose(entropy(weights), expected, atol=1e-15)
    assert entropy(np.array([0.5, 0.5])).shape == ()
    assert not np.signbit(entropy(np.array([1.0, 0.0])))  # 0, not −0


def test_jacobian_by_hand():
    np.testing.assert_allclose(softmax_jacobian(np.array([0.25, 0.75])), [[0.1875, -0.1875], [-0.1875, 0.1875]])
    assert not softmax_jacobian(np.array([0.0, 1.0, 0.0])).any()


# Laws -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d_k", [1, 4, 64, 1024])
def test_the_variance_of_random_scores_is_d_k(d_k):
    query, key = np.random.default_rng(0).normal(size=(2, 1_000, d_k))
    assert score_variance(query, key) == pytest.approx(d_k, rel=0.1)


@pytest.mark.parametrize("temperature", [1e-300, 1e-3, 1.0, 1e3, 1e300])
def test_no_temperature_is_too_cold_or_too_hot(temperature):
    with np.errstate(all="raise", under="ignore", over="ignore"):
        weights = temperature_softmax(np.array([[1000.0, -1000.0, 999.0], [-np.inf, 0, 0], [-np.inf] * 3]), temperature)
    np.testing.assert_allclose(weights.sum(axis=-1), [1, 1, 0], atol=1e-12)
    np.testing.assert_allclose(weights[1], [0, 0.5, 0.5], atol=1e-12)


def test_a_weight_that_rounding_lifts_a_little_above_1_is_one():
    assert entropy(np.array([1 + 5e-4, 0.0])) == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("temperature", [1e-46, 5e-324, 1e46])
def test_a_temperature_that_the_dtype_cannot_hold_gives_no_nan(dtype, temperature):
    with np.errstate(all="raise"):
        weights = temperature_softmax(np.array([[3, 1, 3, -np.inf]], dtype=dtype), temperature)
    cold = [[0.5, 0, 0.5, 0]]
    np.testing.assert_allclose(weights, cold if temperature < 1 else [[1 / 3, 1 / 3, 1 / 3, 0]], atol=1e-3)
    assert weights.dtype == dtype


@given(scores_of_any_shape(), st.floats(0.05, 20))
def test_temperature_is_softmax_of_divided_scores(scores, temperature):
    np.testing.assert_allclose(temperature_softmax(scores, temperature), softmax(scores / temperature), atol=1e-12)


@given(scores_of_any_shape())
def test_entropy_lies_between_0_and_log_n_and_grows_with_the_temperature(scores):
    n = scores.shape[-1]
    spread = [entropy(temperature_softmax(scores, temperature)) for temperature in (0.01, 0.3, 1, 3, 100)]
    assert (spread[0] >= 0).all() and (spread[-1] <= np.log(n) + 1e-12).all()
    assert all((cooler <= hotter + 1e-9).all() for cooler, hotter in zip(spread, spread[1:]))
    np.testing.assert_allclose(entropy(np.full(scores.shape, 1 / n)), np.log(n), atol=1e-12)


@given(scores_of_any_shape())
def test_the_jacobian_is_symmetric_sums_to_zero_and_is_what_a_nudge_measures(scores):
    n, step = scores.shape[-1], 1e-5
    jacobian = softmax_jacobian(softmax(scores))
    assert jacobian.shape == (*scores.shape, n)
    np.testing.assert_array_equal(jacobian, jacobian.swapaxes(-1, -2))
    np.testing.assert_allclose(jacobian.sum(axis=-1), 0, atol=1e-12)
    nudges = step * np.eye(n)  # row j moves score j
    measured = (softmax(scores[..., None, :] + nudges) - softmax(scores[..., None, :] - nudges)) / (2 * step)
    np.testing.assert_allclose(jacobian, measured.swapaxes(-1, -2), atol=1e-8)


# Steering -------------------------------------------------------------------------------------------------------------


def trials(d_k, n=20):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d_k)), rng.normal(size=(n, 8, d_k))


def weights_of(query, key, scale):
    return softmax(scale * (key @ query[..., None])[..., 0])


def test_steering_reaches_the_target_when_scaled_and_not_otherwise():
    query, key = trials(1024)
    scaled = steer_query(query, key, np.eye(8), np.eye(8)[0])
    assert (weights_of(scaled, key, 1 / 32)[:, 0] > 0.9).all()
    unscaled = steer_query(query, key, np.eye(8), np.eye(8)[0], scale=1.0)
    assert (weights_of(unscaled, key, 1.0)[:, 0] > 0.5).mean() < 0.5


def test_scaling_equals_a_smaller_start_and_smaller_steps():
    query, key = trials(64)
    scaled = steer_query(query, key, np.eye(8), np.eye(8)[0], scale=1 / 8, n_steps=50)
    other = steer_query(query / 8, key, np.eye(8), np.eye(8)[0], scale=1.0, rate=1 / 64, n_steps=50)
    np.testing.assert_allclose(scaled / 8, other, atol=1e-10)


def test_one_step_follows_the_gradient_that_differences_measure(rng):
    query, key, value, target = (rng.normal(size=shape) for shape in ((5,), (4, 5), (4, 3), (3,)))

    def error(query):
        return (((softmax(0.7 * (key @ query)) @ value) - target) ** 2).sum()

    gradient = query - steer_query(query, key, value, target, scale=0.7, n_steps=1)
    step = 1e-6 * np.eye(5)
    measured = [(error(query + row) - error(query - row)) / 2e-6 for row in step]
    np.testing.assert_allclose(gradient, measured, atol=1e-8)


def test_no_steps_return_a_copy(rng):
    query, key = rng.normal(size=(2, 3)), rng.normal(size=(2, 4, 3))
    same = steer_query(query, key, np.eye(4), np.eye(4)[0], n_steps=0)
    np.testing.assert_array_equal(same, query)
    assert not np.shares_memory(same, query)


@pytest.mark.parametrize("n_steps", [0, 1])
def test_the_leading_axes_of_the_result_do_not_depend_on_the_steps(n_steps, rng):
    query, key, value = rng.normal(size=3), rng.normal(size=(5, 1, 4, 3)), rng.normal(size=(4, 2))
    assert steer_query(query, key, value, np.ones(2), n_steps=n_steps).shape == (5, 1, 3)
    assert steer_query(query, key[0, 0], value, np.ones((6, 2)), n_steps=n_steps).shape == (6, 3)


def test_steering_in_half_precision_is_computed_in_single(rng):
    half = [rng.normal(size=shape).astype(np.float16) for shape in ((2, 3), (2, 4, 3), (2, 4, 5), (2, 5))]
    found = steer_query(*half, n_steps=20)
    expected = steer_query(*(array.astype(np.float32) for array in half), n_steps=20)
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, expected.astype(np.float16))


# Dtypes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_are_kept_and_inputs_are_not_changed(dtype, rng):
    scores = (3 * rng.normal(size=(2, 3, 4))).astype(dtype)
    query, key = rng.normal(size=(2, 5)).astype(dtype), rng.normal(size=(2, 4, 5)).astype(dtype)
    value, target = np.eye(4, dtype=dtype), np.eye(4, dtype=dtype)[0]
    before = scores.copy(), query.copy(), key.copy()
    weights = temperature_softmax(scores, np.float64(1.7))
    steered = steer_query(query, key, value, target, scale=np.float64(0.5), rate=np.float64(1), n_steps=3)
    spread, jacobian = entropy(weights), softmax_jacobian(weights)
    for result in (weights, spread, jacobian, steered):
        assert result.dtype == dtype
    assert type(score_variance(query, key[0])) is float
    for now, then in zip((scores, query, key), before):
        np.testing.assert_array_equal(now, then)
    wide = temperature_softmax(scores.astype(np.float64), 1.7)
    np.testing.assert_allclose(weights, wide, atol=TOLERANCE[dtype])
    np.testing.assert_allclose(spread, entropy(weights.astype(np.float64)), atol=2 * TOLERANCE[dtype])
    np.testing.assert_allclose(jacobian, softmax_jacobian(weights.astype(np.float64)), atol=TOLERANCE[dtype])


def test_nan_stays_in_its_row():
    rows = np.array([[np.nan, 0.5], [0.5, 0.5]])
    assert np.isnan(temperature_softmax(rows, 2.0)).all(axis=-1).tolist() == [True, False]
    assert np.isnan(entropy(rows)).tolist() == [True, False]


# PyTorch --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_to_pytorch(dtype):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    scores = (2 * rng.normal(size=(3, 5))).astype(dtype)
    theirs = torch.softmax(torch.from_numpy(scores) / 1.5, dim=-1)
    tolerance = {"atol": 2 * TOLERANCE[dtype], "rtol": 0}
    np.testing.assert_allclose(temperature_softmax(scores, 1.5), theirs.numpy(), **tolerance)
    np.testing.assert_allclose(
        entropy(theirs.numpy()), torch.distributions.Categorical(probs=theirs).entropy().numpy(), **tolerance
    )
    for row in scores:
        jacobian = torch.func.jacrev(lambda s: torch.softmax(s, dim=-1))(torch.from_numpy(row)).numpy()
        np.testing.assert_allclose(softmax_jacobian(softmax(row)), jacobian, **tolerance)

    query, key, value = (rng.normal(size=shape).astype(dtype) for shape in ((6,), (5, 6), (5, 4)))
    target = rng.normal(size=4).astype(dtype)
    row = torch.from_numpy(query).clone().requires_grad_()
    output = torch.nn.functional.scaled_dot_product_attention(
        row[None], torch.from_numpy(key), torch.from_numpy(value), scale=0.3
    )
    ((output[0] - torch.from_numpy(target)) ** 2).sum().backward()
    ours = query - steer_query(query, key, value, target, scale=0.3, n_steps=1)
    np.testing.assert_allclose(ours, row.grad.numpy(), atol=10 * TOLERANCE[dtype], rtol=0)


# Errors ---------------------------------------------------------------------------------------------------------------

Q, K, ROW = np.ones((2, 4)), np.ones((3, 4)), np.array([0.5, 0.5])
ERRORS = {
    "widths": (lambda: score_variance(Q, np.ones((3, 5))), "query has d_k=4 in its last axis and key has d_k=5"),
    "one axis": (lambda: score_variance(np.ones(4), K), "Try query[None, :] for a single query."),
    "no keys": (lambda: score_variance(Q, np.ones((0, 4))), "key is [0, 4]; expected at least one of each"),
    "integers": (lambda: score_variance(Q, K.astype(int)), "Try np.asarray(key).astype(np.float32)."),
    "temperature 0": (
        lambda: temperature_softmax(ROW, 0),
        "temperature=0; expected one finite number above 0. Try 1e-3 for all weight on the largest score",
    ),
    "below 0": (lambda: temperature_softmax(ROW, -1.0), "temperature=-1.0; expected one finite number above 0."),
    "not a number": (lambda: temperature_softmax(ROW, np.nan), "temperature=nan; expected"),
    "infinite": (lambda: temperature_softmax(ROW, np.inf), "temperature=inf; expected"),
    "many": (lambda: temperature_softmax(ROW, ROW), "temperature=[0.5 0.5]; expected one finite number"),
    "a number": (lambda: temperature_softmax(np.float64(1), 1), "scores is a single number; expected [..., n]"),
    "scores": (
        lambda: entropy(np.array([-1.0, 2.0])),
        "weights hold -1; expected numbers from 0 to 1. Try softmax(scores), if these are scores.",
    ),
    "above 1": (lambda: entropy(np.array([0.5, 1.5])), "weights hold 1.5; expected numbers from 0 to 1."),
    "scale": (
        lambda: steer_query(Q, np.ones((2, 3, 4)), np.eye(3), np.ones(3), scale="2"),
        "scale is '2'; expected one real number, or None for 1 / √d_k.",
    ),
    "half a step": (
        lambda: steer_query(Q, np.ones((2, 3, 4)), np.eye(3), np.ones(3), n_steps=0.5),
        "n_steps=0.5; expected a whole number of at least 0.",
    ),
    "targets": (
        lambda: steer_query(Q, np.ones((2, 3, 4)), np.eye(3), np.ones((3, 3))),
        "target is [3, 3] and query is [2, 4]; expected leading axes that broadcast",
    ),
    "integer weights": (lambda: entropy(np.array([0, 1])), "weights has dtype int64; expected float16"),
    "no axis": (lambda: softmax_jacobian(np.float64(1)), "weights is a single number; expected [..., n]"),
    "target": (
        lambda: steer_query(Q, np.ones((2, 3, 4)), np.eye(3), np.ones(2)),
        "target is [2] and value is [3, 3]; expected the same width d_v in the last axis.",
    ),
    "two dtypes": (
        lambda: steer_query(Q.astype(np.float32), np.ones((2, 3, 4)), np.eye(3), np.eye(3)[0]),
        "key is float64 and query is float32; expected one dtype",
    ),
    "target dtype": (
        lambda: steer_query(Q, np.ones((2, 3, 4)), np.eye(3), np.eye(3, dtype=np.float32)[0]),
        "target is float32 and query is float64; expected one dtype",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_what_was_given_and_what_to_try(name):
    call, text = ERRORS[name]
    with pytest.raises(ValueError) as error:
        call()
    assert text.replace("int64", str(np.dtype(int))) in str(error.value)
