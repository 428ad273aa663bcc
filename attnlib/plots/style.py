"""What all figures share: colours, numbers, and the sentence that each prints."""

import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes

BLUE, ORANGE, GREEN, BLACK, GREY = "#0072B2", "#D55E00", "#009E73", "#222222", "#8a8a8a"
PURPLE = "#B0578D"
LINES = [(BLUE, "o", "-"), (ORANGE, "s", "--"), (GREEN, "^", "-."), (BLACK, "D", ":")]


def numbered(words: Sequence[str]) -> list[str]:
    """Each word with its index in front: ``["The", "cat"]`` becomes ``["0 The", "1 cat"]``."""
    return [f"{index} {word}" for index, word in enumerate(words)]


def number_text(number: float) -> str:
    """A number as it stands in a sentence: whole, with two decimals, or in powers of ten."""
    if number == int(number) and abs(number) < 100_000:
        return f"{number:.0f}"
    return f"{number:.3g}" if abs(number) < 0.01 or abs(number) >= 1000 else f"{number:.2f}".removesuffix(".00")


def say(sentence: str) -> None:
    """Print a sentence, wrapped between words."""
    print(textwrap.fill(sentence, 96, break_long_words=False, break_on_hyphens=False))


def tidy(ax: Axes) -> None:
    """Leave only the lines that help to read a number."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#dddddd", linewidth=0.7)
    ax.set_axisbelow(True)


def cell_lines(ax: Axes, n_rows: int, n_columns: int, width: float) -> None:
    """Draw white lines between the cells of a grid."""
    ax.set_xticks([column + 0.5 for column in range(n_columns - 1)], minor=True)
    ax.set_yticks([row + 0.5 for row in range(n_rows - 1)], minor=True)
    ax.grid(which="minor", color="white", linewidth=width)
    ax.tick_params(which="minor", length=0)


def check_lengths(labels: Sequence, numbers: Sequence, what: str, of: str) -> None:
    """Raise a ValueError where labels and numbers are not equally many."""
    if len(labels) != len(numbers):
        raise ValueError(f"{len(labels)} {what} and {len(numbers)} {of}; expected as many of each.")
