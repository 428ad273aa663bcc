"""Sentences in English and Chinese with a gap, where one word decides which of two nouns the gap means (lesson 10).

*The animal didn't cross the streets because … too tired*: was it, or were they? The quality says which noun is meant, and the
noun says its number: in English by its own form, in Chinese by the measure word before it (那只动物, one; 那群动物, many).
The sentences are made after the pair that the course carries along (``attnlib.data.sentence``).
"""

from itertools import product
from typing import NamedTuple

LIVING = {"animal": "动物", "dog": "狗", "cat": "猫", "bird": "鸟"}
BROAD = {"street": "马路", "river": "河", "road": "路", "lane": "小巷"}
OF_LIVING = {"tired": "累", "hungry": "饿", "slow": "慢", "weak": "弱"}
OF_BROAD = {"wide": "宽", "long": "长", "noisy": "吵", "dark": "暗"}
ENGLISH, CHINESE = "English", "Chinese"


class Example(NamedTuple):
    """One sentence with a gap, ``…``, and what is true of it."""

    text: str
    language: str
    quality: str  # the word that asks: which noun am I said of, and is it one or many?
    many: bool  # the answer
    noun: str  # the token from which one can tell: the noun in English, the measure word in Chinese
    mixed: bool  # whether the two nouns differ in number, so that one must know which is meant
    new: bool  # held out: no sentence with these two nouns and this quality is trained on


def english(living: str, broad: str, quality: str, many: tuple[bool, bool], turned: bool, day: bool) -> tuple[str, str]:
    """One sentence in English, and the noun that the quality is said of."""
    animal, street = living + "s" * many[0], broad + "s" * many[1]
    said = f"the {street} didn't attract the {animal}" if turned else f"the {animal} didn't cross the {street}"
    said = "yesterday " + said if day else said
    return f"{said[0].upper()}{said[1:]} because … too {quality}.", animal if quality in OF_LIVING else street


def chinese(living: str, broad: str, quality: str, many: tuple[bool, bool], turned: bool, day: bool) -> tuple[str, str]:
    """The same in Chinese, and the measure word of the noun that the quality is said of."""
    measures = "群" if many[0] else "只", "些" if many[1] else "条"
    animal, street = f"那{measures[0]}{LIVING[living]}", f"那{measures[1]}{BROAD[broad]}"
    said = f"{street}没有吸引{animal}" if turned else f"{animal}没有过{street}"
    said = "昨天" + said if day else said
    said_of = (OF_LIVING | OF_BROAD)[quality]
    return f"{said}，因为…太{said_of}了。", measures[0] if quality in OF_LIVING else measures[1]


def examples() -> list[Example]:
    """All 4,096 sentences: two languages, 4 × 4 nouns, 8 qualities, numbers, two verbs, with and without *yesterday*.

    Returns
    -------
    examples : list of Example
        English and Chinese in turn. A quarter is held out (``new``): every pair of words was seen in training, but not the
        two nouns together with the quality.
    """
    found, qualities = [], OF_LIVING | OF_BROAD
    for (i, living), (j, broad), (k, quality), *rest in product(
        enumerate(LIVING), enumerate(BROAD), enumerate(qualities), *[(False, True)] * 4
    ):
        many, turned, day = (rest[0], rest[1]), rest[2], rest[3]
        answer, new = many[0] if quality in OF_LIVING else many[1], (i + j + k) % 4 == 0
        for language, write, word in ((ENGLISH, english, quality), (CHINESE, chinese, qualities[quality])):
            text, noun = write(living, broad, quality, many, turned, day)
            found.append(Example(text, language, word, answer, noun, many[0] != many[1], new))
    return found
