"""The reader that comes with the package: it reads, and it is the one of the table."""

import pytest

torch = pytest.importorskip("torch")

from attnlib.data import reviews  # noqa: E402
from attnlib.data.text import collate, encode  # noqa: E402
from attnlib.torch.trained import trained_classifier  # noqa: E402


def test_it_tells_praise_from_blame():
    model, vocabulary = trained_classifier()
    assert not model.training and len(vocabulary) == 10_000 and vocabulary["<pad>"] == 0
    texts = ["A wonderful film, I loved every minute of it.", "A terrible film, boring and badly acted."]
    ids, lengths = collate([encode(reviews.words(text), vocabulary) for text in texts])
    logits, weights = model(ids, lengths, return_weights=True)
    assert logits.argmax(dim=-1).tolist() == [1, 0] and weights.shape[:3] == (1, 2, 4)


def test_it_is_nearly_as_good_as_in_the_table():
    try:
        test = reviews.split(reviews.imdb())["test"]
    except ModuleNotFoundError as missing:
        pytest.skip(str(missing))
    from attnlib.torch.training import Texts, evaluate

    model, vocabulary = trained_classifier()
    ids = [encode(reviews.words(text)[:128], vocabulary) for text in test.texts[:600]]
    assert evaluate(model, Texts(ids, test.labels[:600])).accuracy > 0.82
