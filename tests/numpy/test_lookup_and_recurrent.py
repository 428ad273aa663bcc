"""Functions of lessons 00 and 01."""

import numpy as np
import pytest

from attnlib.numpy import (
    gradient_norms,
    last_state,
    mean_of_values,
    nearest_lookup,
    nudge,
    orthogonal,
    readout_accuracy,
    sequential_steps,
    soft_lookup,
    softmax,
)


def test_orthogonal_makes_every_vector_radius_times_as_long():
    w = orthogonal(5, 1.5, np.random.default_rng(0))
    np.testing.assert_allclose(w @ w.T, 1.5**2 * np.eye(5), atol=1e-12)


def test_last_state_of_a_batch_is_that_of_each_sequence():
    rng = np.random.default_rng(0)
    w, inputs = rng.normal(size=(3, 3)), rng.normal(size=(4, 6, 3))
    state = np.zeros(3)
    for x in inputs[2]:
        state = np.tanh(state @ w + x)
    np.testing.assert_allclose(last_state(w, inputs)[2], state, atol=1e-12)


@pytest.mark.parametrize("radius", [0.9, 1.0, 1.1])
def test_gradient_norms_are_powers_of_the_radius(radius):
    w = orthogonal(8, radius, np.random.default_rng(0))
    np.testing.assert_allclose(gradient_norms(w, 100), radius ** np.arange(1, 101), rtol=1e-10)


def test_a_small_nudge_is_the_derivative():
    rng = np.random.default_rng(0)
    w, inputs = orthogonal(4, 0.9, rng), rng.normal(size=(5, 4))
    jacobian, state = np.eye(4), np.tanh(inputs[0])
    jacobian = np.diag(1 - state**2)
    for x in inputs[1:]:
        state = np.tanh(state @ w + x)
        jacobian = jacobian @ w @ np.diag(1 - state**2)
    move = 1e-6 * rng.normal(size=4)
    assert nudge(w, inputs, move) == pytest.approx(np.linalg.norm(move @ jacobian) / np.linalg.norm(move), rel=1e-5)


def test_readout_finds_what_is_there_and_guesses_otherwise():
    rng = np.random.default_rng(0)
    symbols = rng.integers(4, size=2_000)
    assert readout_accuracy(np.eye(4)[symbols], symbols, 4) == 1
    assert readout_accuracy(rng.normal(size=(2_000, 4)), symbols, 4) < 0.35


def test_lookups():
    keys, values = np.eye(2), np.array([[4.0, 0.0], [0.0, 8.0]])
    np.testing.assert_array_equal(nearest_lookup(np.array([0.2, 0.9]), keys, values), [0, 8])
    np.testing.assert_allclose(soft_lookup(np.array([1.0, 0.0]), keys, values, np.log(3)), [3, 2])
    np.testing.assert_allclose(soft_lookup(np.array([1.0, 0.0]), keys, values, 0), mean_of_values(values))
    np.testing.assert_allclose(soft_lookup(np.array([1.0, 0.0]), keys, values, 5_000), [4, 0])
    rng = np.random.default_rng(0)
    query, keys, values = rng.normal(size=3), rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    np.testing.assert_allclose(soft_lookup(query, keys, values, 2.0), softmax(2 * keys @ query) @ values, atol=1e-12)


@pytest.mark.parametrize("n, reach, steps", [(1, 1, 0), (3, 1, 2), (5, 2, 2), (6, 2, 3), (64, 63, 1), (64, 100, 1)])
def test_sequential_steps(n, reach, steps):
    assert sequential_steps(n, reach) == steps


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: mean_of_values(np.ones(3)), "values has shape [3]; expected [n, d]"),
        (lambda: mean_of_values(np.ones((0, 3))), "values has shape [0, 3]"),
        (lambda: soft_lookup(np.ones(3), np.ones((4, 2)), np.ones((4, 1)), 1.0), "query is [3] and keys are [4, 2]"),
        (lambda: nearest_lookup(np.ones(2), np.ones((0, 2)), np.ones((0, 1))), "keys are [0, 2] and values are [0, 1]"),
        (lambda: nudge(np.eye(2), np.ones((2, 2), int), np.ones(2)), "inputs has dtype int64; expected float16"),
        (lambda: nudge(np.eye(2), np.ones((2, 2)), np.zeros(2)), "expected [n, d] and [d], not all zeros"),
        (lambda: last_state(np.eye(3), np.ones((2, 2))), "w is [3, 3] and inputs are [2, 2]"),
        (lambda: sequential_steps(5.5, 2), "n=5.5 and reach=2; expected whole numbers from 1 on"),
        (
            lambda: soft_lookup(np.ones(2), np.ones((4, 2)), np.ones((3, 1)), 1.0),
            "keys are [4, 2] and values are [3, 1]",
        ),
        (lambda: sequential_steps(0, 1), "n=0 and reach=1; expected whole numbers from 1 on"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError) as error:
        call()
    assert text.replace("int64", str(np.dtype(int))) in str(error.value)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtypes_are_kept(dtype):
    rng = np.random.default_rng(0)
    query, keys, values = (rng.normal(size=size).astype(dtype) for size in (3, (4, 3), (4, 2)))
    assert soft_lookup(query, keys, values, np.float64(2)).dtype == dtype
    assert nearest_lookup(query, keys, values).dtype == mean_of_values(values).dtype == dtype
    assert last_state(np.eye(3, dtype=dtype), keys).dtype == dtype
    found = nearest_lookup(query, keys, values)
    found += 1  # a copy
    assert not np.shares_memory(found, values)
