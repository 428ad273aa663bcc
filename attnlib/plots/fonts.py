"""Words of any script in figures, on any machine: never boxes, never a warning.

matplotlib's own font, DejaVu Sans, knows no Chinese. A part of Noto Sans SC (Adobe and Google, SIL Open Font License 1.1, in
the folder ``font_files``, made by ``tools/subset_font.py``) is shipped with the course: 3,755 characters, those of the first
level of GB 2312, and their punctuation. What neither knows is looked for in the fonts of the machine, and what none of
these knows is written as its number in Unicode.
"""

import dataclasses
import functools
import unicodedata
from collections.abc import Sequence
from importlib.resources import as_file, files

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

OURS = "Attnlib Sans SC"
SYSTEM = (  # static fonts for Chinese, Japanese and Korean that machines often have; a variable one would come out thin
    "Noto Sans CJK SC",
    "Source Han Sans SC",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "SimHei",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
)


def readable(words: Sequence[str]) -> list[str]:
    """Words as a figure can draw them; fonts for other scripts are added to matplotlib's where they are needed.

    Parameters
    ----------
    words : n strings, or what ``str`` makes into one

    Returns
    -------
    drawn : list of n strings
        The same words. A character that no font knows becomes its letter without marks, or another form of the same
        (``NFKD``) that a font knows, else ``U+`` and its number: ``"U+1F642"``.

    Notes
    -----
    The first font stays the first, so that figures without such words do not change: matplotlib (from 3.6) asks the
    fonts of ``rcParams["font.family"]`` in turn for each character. It must be this list: ``font.sans-serif`` names
    alternatives of which one is taken.
    """
    return [word if word.isascii() and word.isprintable() else "".join(map(drawable, word)) for word in map(str, words)]


def drawn(words: Sequence[str]) -> dict[str, object]:
    """The same as labels of ticks, which were made with the axes and keep their old fonts unless told otherwise.

    Parameters
    ----------
    words : n strings

    Returns
    -------
    options : dict
        For ``ax.set_xticks(range(n), **drawn(words))``.
    """
    labels = readable(words)
    return {"labels": labels, "fontfamily": mpl.rcParams["font.family"]}


def drawable(char: str) -> str:
    """The character if a font knows it, else the nearest thing that can be drawn."""
    if knows(char):
        return char
    other_form = "".join(part for part in unicodedata.normalize("NFKD", char) if not unicodedata.combining(part))
    if other_form != char and other_form.isprintable() and all(map(knows, other_form)):
        return other_form
    return f"U+{ord(char):04X}"


def knows(char: str) -> bool:
    """Whether a font of the figures knows a character; fonts are added until one does."""
    if not char.isprintable() or unicodedata.category(char) == "Cf":
        return False
    if any(char_in_font(char, path) for path in paths(tuple(mpl.rcParams["font.family"]))):
        return True
    for family in (OURS, *SYSTEM):
        if char_in_font(char, path_of(family)):
            mpl.rcParams["font.family"] = [*mpl.rcParams["font.family"], family]
            return True
    return False


@functools.cache
def paths(families: tuple[str, ...]) -> list[str]:
    """Files of the families that matplotlib asks now, one each, as it chooses them."""
    return [font_manager.findfont(font_manager.FontProperties(family=[family])) for family in families]


@functools.cache
def path_of(family: str) -> str | None:
    """File of one more family, or None where the machine has none; the course's own is made known to matplotlib."""
    if family == OURS:
        with as_file(files("attnlib.plots") / "font_files" / "AttnlibSansSC-Regular.ttf") as path:
            font_manager.fontManager.addfont(str(path))
    fonts = [font for font in font_manager.fontManager.ttflist if font.name == family]
    if not fonts:
        return None
    regular = min(fonts, key=lambda font: abs(font_manager.weight_dict.get(font.weight, font.weight) - 400))
    if all(font_manager.weight_dict.get(font.weight, font.weight) < 600 for font in fonts):
        font_manager.fontManager.ttflist.append(
            dataclasses.replace(regular, weight=700)
        )  # else bold words log a warning
    return regular.fname


@functools.cache
def characters(path: str) -> frozenset[int]:
    """Numbers of all characters that a font file knows."""
    return frozenset(FT2Font(path).get_charmap())


def char_in_font(char: str, path: str | None) -> bool:
    """Whether a font file knows a character."""
    return path is not None and ord(char) in characters(path)


def width(word: str) -> int:
    """How wide a word is drawn, in letters: Chinese characters and other wide ones count twice, marks not at all."""
    return sum(
        2 if unicodedata.east_asian_width(char) in "WF" else 0 if unicodedata.combining(char) else 1 for char in word
    )
