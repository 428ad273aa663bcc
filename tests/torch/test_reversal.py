"""The task of lesson 09, and what its recorded runs must show."""

import sys
from pathlib import Path

import numpy as np
import pytest

from attnlib.data import recorded

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import record  # noqa: E402

from attnlib.torch import EncoderLayer, MultiHeadAttention  # noqa: E402
from attnlib.torch.reversal import Reverser, train_reversal  # noqa: E402


def test_states_stand_before_the_first_layer_and_behind_each():
    torch.manual_seed(0)
    model = Reverser([EncoderLayer(8, 2) for _ in range(3)], 8, n_symbols=5, n=6, norm=True)
    symbols = torch.randint(5, (4, 6))
    states = model.states(symbols)
    assert [state.shape for state in states] == [(4, 6, 8)] * 4
    assert model(symbols).shape == (4, 6, 5)
    torch.testing.assert_close(model(symbols), model.reader(model.norm(states[-1])))


def test_one_attention_learns_it_and_the_same_seed_gives_the_same():
    def train():
        torch.manual_seed(0)
        return train_reversal(Reverser([MultiHeadAttention(32, 2)], 32).double(), report=told.append_pair)

    class Told(list):
        def append_pair(self, step, loss):
            self.append((step, loss))

    told = Told()
    first, again = train(), train()
    assert first == again
    assert first.steps == [20, 40, 60, 80, 100] and told[:5] == list(zip(first.steps, first.losses))
    assert first.accuracies[-1] == 1 and first.losses[-1] < first.losses[0]


def test_recorded_runs_show_what_the_lesson_says():
    runs = recorded("lesson_09")
    neither, norm, residual, both, half = runs["trained_attentions"]  # [rates, seeds] each
    assert both.min() > 0.9
    assert max(neither.max(), norm.max()) < 0.4 and residual.max() < 0.2
    assert half[:2].min() > 0.9 and half[2].min() < 0.5
    pre_norm, post_norm = runs["trained_blocks"]
    assert pre_norm.min() > 0.99 and post_norm.max() < 0.4 and runs["trained_longer"].min() > 0.9
    assert runs["rates"].tolist() == list(record.REVERSAL_RATES)


@pytest.mark.parametrize("variant, rate", [("norm", 0.003), ("both", 0.01)])
def test_recorded_runs_are_made_by_the_script(variant, rate):
    stored = recorded("lesson_09")["trained_attentions"]
    place = record.ATTENTIONS.index(variant), record.REVERSAL_RATES.index(rate), 1
    assert np.isclose(record.trained_attentions(variant, rate, seed=1)[-1], stored[place], atol=0.05)
