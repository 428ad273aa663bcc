"""Toy tasks: what they promise about their tokens."""

import numpy as np
import pytest

from attnlib.data.toy import recall_names, recall_tokens


@pytest.mark.parametrize("n_symbols, n_pairs", [(16, 8), (3, 3), (5, 1)])
def test_keys_and_values_alternate_and_the_answer_stands_behind_the_key_that_is_asked(n_symbols, n_pairs):
    tokens, answer, place = recall_tokens(500, n_symbols, n_pairs, np.random.default_rng(0))
    assert tokens.shape == (500, 2 * n_pairs + 1) and answer.shape == place.shape == (500,)
    keys, values = tokens[:, :-1:2], tokens[:, 1::2]
    assert keys.min() >= 0 and keys.max() < n_symbols <= values.min() and values.max() < 2 * n_symbols
    assert all(len(set(row)) == n_pairs for row in keys.tolist())
    lists = np.arange(500)
    np.testing.assert_array_equal(tokens[lists, place], n_symbols + answer)
    np.testing.assert_array_equal(tokens[lists, place - 1], tokens[:, -1])
    assert set(place) == set(range(1, 2 * n_pairs, 2))


def test_the_same_generator_draws_the_same_lists_and_too_many_pairs_are_an_error():
    one, other = (recall_tokens(3, 4, 2, np.random.default_rng(7)) for _ in range(2))
    assert all(map(np.array_equal, one, other))
    with pytest.raises(ValueError, match="n_pairs=5 and n_symbols=4"):
        recall_tokens(3, 4, 5, np.random.default_rng(0))


def test_names():
    assert recall_names(np.array([3, 9, 3]), 4) == ["k3", "v5", "k3"]
