"""The smallest reviews in which the order of words decides: *the film was not good but the music was bad* (lesson 11).

Each judges two things, and only what stands behind *but* counts. There are 32.
"""

from itertools import product

import numpy as np

TOKENS = ("<pad>", "<unk>", "the", "film", "music", "was", "not", "good", "bad", "but")
VOCABULARY = {token: number for number, token in enumerate(TOKENS)}


def every_verdict() -> tuple[list[list[str]], list[int]]:
    """All 32 sentences as lists of words, and their labels: 1 if what stands behind *but* is praise, else 0."""
    sentences, labels = [], []
    for first_bad, first_not, last_bad, last_not, film_first in product((False, True), repeat=5):
        nouns = ("film", "music") if film_first else ("music", "film")
        before = clause(nouns[0], first_bad, first_not)
        sentences.append([*before, "but", *clause(nouns[1], last_bad, last_not)])
        labels.append(int(last_bad == last_not))
    return sentences, labels


def clause(noun: str, bad: bool, negated: bool) -> list[str]:
    """For example *the film was not bad*."""
    return ["the", noun, "was", *(["not"] if negated else []), "bad" if bad else "good"]


def verdicts(n: int, seed: int = 0) -> tuple[list[list[int]], list[int]]:
    """n of them, drawn with repetition, as ids of ``VOCABULARY``, with their labels."""
    sentences, labels = every_verdict()
    chosen = np.random.default_rng(seed).integers(len(sentences), size=n)
    return [[VOCABULARY[token] for token in sentences[i]] for i in chosen], [labels[i] for i in chosen]
