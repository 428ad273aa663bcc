"""Lesson 08's recorded runs: one layer guesses, two solve recall with separate tokens, from five seeds; two are repeated."""

import sys
from pathlib import Path

import pytest

from attnlib.data import recorded

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import record


def test_one_layer_guesses_and_two_solve_it_from_every_seed():
    stored = recorded("lesson_08")
    assert set(stored) == {"trained_1", "trained_2"} and all(runs.shape == (5,) for runs in stored.values())
    assert (stored["trained_1"] > 0.2).all() and (stored["trained_1"] < 0.3).all()  # a guess among eight values: 0.26
    assert (stored["trained_2"] > 0.99).all()


@pytest.mark.parametrize("n_layers, least, most", [(1, 0.2, 0.3), (2, 0.98, 1.0)])
def test_a_run_made_again_says_the_same(n_layers, least, most):
    assert least <= record.recall_accuracy(n_layers, seed=1) <= most
