"""Positions: the contract, properties that hold for any width and length, parity with PyTorch, and errors by text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.data import recorded
from attnlib.numpy import (
    alibi_bias,
    alibi_slopes,
    reversal_matrix,
    rotary,
    scaled_dot_product_attention,
    shift_rotation,
    sinusoidal_positions,
)

TOLERANCE = {"float64": 1e-12, "float32": 1e-6, "float16": 2e-3}
settings.register_profile("course", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("course")

widths, even_widths, bases = st.integers(1, 12), st.integers(1, 8).map(lambda i: 2 * i), st.floats(2, 20_000)


@given(st.integers(0, 30), widths, bases)
def test_sinusoids_are_their_loop(n, d_model, base):
    positions = sinusoidal_positions(n, d_model, base)
    assert positions.shape == (n, d_model) and positions.dtype == np.float64
    for (place, column), number in np.ndenumerate(positions):
        angle = place / base ** (2 * (column // 2) / d_model)
        assert number == pytest.approx(np.cos(angle) if column % 2 else np.sin(angle), abs=1e-12)


@given(st.integers(-50, 50), even_widths, bases)
def test_one_matrix_shifts_every_place(k, d_model, base):
    rotation = shift_rotation(k, d_model, base)
    first, n = max(0, -k), 8
    rows = sinusoidal_positions(first + n + abs(k), d_model, base)
    np.testing.assert_allclose(rows[first : first + n] @ rotation, rows[first + k : first + k + n], atol=1e-11)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(d_model), atol=1e-12)
    np.testing.assert_allclose(rotation @ shift_rotation(-k, d_model, base), np.eye(d_model), atol=1e-12)


@given(st.integers(1, 50), even_widths, bases)
def test_reversal_is_a_reflection(n, d_model, base):
    reflection, rows = reversal_matrix(n, d_model, base), sinusoidal_positions(n, d_model, base)
    np.testing.assert_allclose(rows @ reflection, rows[::-1], atol=1e-11)
    np.testing.assert_allclose(reflection @ reflection, np.eye(d_model), atol=1e-12)
    np.testing.assert_array_equal(reflection, reflection.T)
    assert np.linalg.det(reflection) == pytest.approx((-1) ** (d_model // 2))


def test_reversal_at_another_length_still_counts_from_its_own_end():
    places, six = sinusoidal_positions(8, 32, 100.0), slice(6)
    scores = places[six] @ reversal_matrix(8, 32, 100.0) @ places[six].T
    np.testing.assert_array_equal(scores.argmax(axis=-1), [5, 5, 5, 4, 3, 2])


@pytest.mark.parametrize("interleaved", [True, False])
@given(st.integers(0, 1_000), st.integers(-100, 100), even_widths, st.integers(0, 2**32))
def test_scores_of_rotary_depend_on_the_difference_only(interleaved, place, difference, d, seed):
    query, key = np.random.default_rng(seed).normal(size=(2, 1, d))

    def score(query_place, key_place):
        turned = [
            rotary(x, np.array([at]), interleaved=interleaved) for x, at in ((query, query_place), (key, key_place))
        ]
        return (turned[0] @ turned[1].T).item()

    assert score(place + difference, place) == pytest.approx(score(difference, 0), abs=1e-11)
    turned = rotary(query, np.array([place]), interleaved=interleaved)
    assert np.linalg.norm(turned) == pytest.approx(np.linalg.norm(query), abs=1e-12)


def test_rotary_with_constant_content_is_toeplitz():
    query, key = (np.tile(row, (8, 1)) for row in np.random.default_rng(0).normal(size=(2, 32)))
    scores = rotary(query, base=100.0) @ rotary(key, base=100.0).T
    for offset in range(-7, 8):
        assert np.ptp(np.diagonal(scores, offset)) < 1e-12


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_rotary_keeps_dtype_and_input_and_takes_places_of_a_batch(dtype, interleaved):
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 6))
    positions = np.array([[0, 1, 2, 3], [5, 6, 7, 2049]])[:, None]  # [batch, 1, n]
    given_x, kept = x.astype(dtype), x.astype(dtype)
    turned = rotary(given_x, positions, interleaved=interleaved)
    assert str(turned.dtype) == dtype
    np.testing.assert_array_equal(given_x, kept)
    alone = [rotary(x[i], positions[i, 0], interleaved=interleaved) for i in range(2)]
    np.testing.assert_allclose(turned, alone, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def test_the_two_pairings_differ_by_the_order_of_the_columns():
    x = np.random.default_rng(0).normal(size=(5, 8))
    order = [*range(0, 8, 2), *range(1, 8, 2)]
    np.testing.assert_allclose(rotary(x)[:, order], rotary(x[:, order], interleaved=False), atol=1e-12)


def test_slopes_are_those_of_the_paper_and_of_its_code():
    np.testing.assert_array_equal(alibi_slopes(8), 0.5 ** np.arange(1, 9))
    np.testing.assert_array_equal(alibi_slopes(6), [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8])
    np.testing.assert_allclose(alibi_slopes(12), [*alibi_slopes(8), *alibi_slopes(16)[0::2][:4]], rtol=1e-15)
    assert [len(alibi_slopes(n)) for n in range(1, 70)] == [*range(1, 70)]


def test_bias_counts_from_the_last_key_and_does_not_end():
    full = alibi_bias(4, 6)
    np.testing.assert_array_equal(alibi_bias(4, 2, 6), full[:, -2:])
    np.testing.assert_array_equal(full, full.swapaxes(-1, -2))
    assert full.max() == 0 and full.shape == (4, 6, 6) and alibi_bias(3, 0, 2).shape == (3, 0, 2)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: sinusoidal_positions(-1, 4), "n=-1; expected a whole number of at least 0"),
        (lambda: sinusoidal_positions(3, 0), "d_model=0; expected a whole number of at least 1. Try d_model=1."),
        (lambda: sinusoidal_positions(3.0, 4), "n=3.0; expected a whole number"),
        (lambda: sinusoidal_positions(3, 4, 0.0), "base=0.0; expected a number above 0"),
        (lambda: shift_rotation(1, 5), "d_model is 5; expected an even number, at least 2"),
        (lambda: reversal_matrix(0, 4), "n=0; expected a whole number of at least 1"),
        (lambda: reversal_matrix(3, 3), "Try 4"),
        (lambda: rotary(np.ones((2, 3))), "the width d of x is 3; expected an even number"),
        (lambda: rotary(np.ones(4)), "x has shape [4]; expected [..., n, d]"),
        (lambda: rotary(np.ones((2, 4), dtype=int)), "x has dtype int64"),
        (lambda: rotary(np.ones((2, 4)), np.arange(2, dtype=np.float16)), "float16 cannot tell 2048 from 2049"),
        (lambda: rotary(np.ones((2, 4)), np.arange(3)), "positions have shape [3] and x is [2, 4]"),
        (lambda: alibi_bias(0, 2), "n_heads=0; expected a whole number of at least 1"),
        (lambda: alibi_bias(2, 2, -1), "n_key=-1; expected a whole number of at least 0"),
        (lambda: shift_rotation(True, 4), "k=True; expected a whole number. Try k=1."),
        (lambda: alibi_bias(2.0, 2), "n_heads=2.0; expected a whole number"),
        (lambda: rotary(np.ones((2, 4)), np.ma.array([0, 1])), "positions is a NumPy masked array"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError) as error:
        call()
    assert text in str(error.value)


def test_equal_to_the_recorded_numbers_of_pytorch():
    stored = recorded("lesson_06")
    query, key, value = stored["query"], stored["key"], stored["value"]
    np.testing.assert_allclose(rotary(query), stored["turned"], atol=1e-12)
    with_rotary = scaled_dot_product_attention(rotary(query), rotary(key), value)
    np.testing.assert_allclose(with_rotary, stored["with_rotary"], atol=1e-12)
    with_alibi = scaled_dot_product_attention(query, key, value, alibi_bias(6, 5))
    np.testing.assert_allclose(with_alibi, stored["with_alibi"], atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("interleaved", [True, False])
def test_rotary_is_pytorchs_product_of_complex_numbers(dtype, interleaved):
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).normal(size=(2, 3, 7, 8)).astype(dtype)
    angles = torch.outer(torch.arange(7).double(), 10_000.0 ** (-torch.arange(4).double() / 4))
    pairs = torch.from_numpy(x).unflatten(-1, (4, 2) if interleaved else (2, 4))
    if not interleaved:
        pairs = pairs.transpose(-1, -2)
    turned = torch.view_as_real(
        torch.view_as_complex(pairs.double().contiguous()) * torch.polar(angles * 0 + 1, angles)
    )
    turned = turned.flatten(-2) if interleaved else turned.transpose(-1, -2).flatten(-2)
    np.testing.assert_allclose(rotary(x, interleaved=interleaved), turned.numpy(), atol=TOLERANCE[dtype])
