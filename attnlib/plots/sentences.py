"""Figures of a sentence: arrows from a word, bars for each word, features of each word."""

from collections.abc import Sequence

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch

from attnlib.plots.fonts import drawn, readable, width
from attnlib.plots.style import BLACK, BLUE, GREY, ORANGE, cell_lines, check_lengths, numbered, say, tidy


def sentence_arrows(words: Sequence[str], weights: np.ndarray, asker: int, ax: Axes) -> None:
    """Draw the sentence with an arrow from one word to each that it looks at; the thicker, the more.

    Parameters
    ----------
    words : n strings
    weights : array [n]
        What the asker gives to each word; 0 to 1.
    asker : int
        Index of the word that looks.
    ax : Axes
        About four times as wide as high.
    """
    check_lengths(words, weights, "words", "weights")
    shown = readable(words)
    lengths = np.array([width(word) for word in shown])
    centres = np.cumsum(lengths + 1.6) - lengths / 2
    for index in range(len(words)):
        bold = index == asker or weights[index] >= 0.1
        ax.text(
            centres[index],
            0,
            shown[index],
            ha="center",
            va="center",
            fontsize=11,
            fontweight="bold" if bold else "normal",
            color=ORANGE if index == asker else BLACK,
        )
        if index != asker and weights[index] >= 0.01:
            ends = (centres[asker], 0.5), (centres[index], 0.5)
            bend = 0.35 if index > asker else -0.35
            ax.add_patch(
                FancyArrowPatch(
                    *ends,
                    connectionstyle=f"arc3,rad={-bend}",
                    arrowstyle="-|>",
                    mutation_scale=8 + 10 * weights[index],
                    linewidth=0.8 + 5 * weights[index],
                    color=BLUE if weights[index] >= 0.1 else GREY,
                )
            )
        if weights[index] >= 0.03:
            ax.text(centres[index], -1.1, f"{weights[index]:.2f}", ha="center", va="center", fontsize=10, color=BLUE)
    ax.set(xlim=(0, centres[-1] + lengths[-1] / 2 + 1.6), ylim=(-1.8, 5))
    ax.axis("off")
    say(f"Arrows: {ranking(words, weights, asker)}")


def bars(numbers: np.ndarray, words: Sequence[str], asker: int, ax: Axes, *, what: str = "weight") -> None:
    """Draw what one word gives to each word, as bars.

    Parameters
    ----------
    numbers : array [n]
        Scores or weights of one query.
    words : n strings
    asker : int
        Index of the word that looks.
    ax : Axes
    what : str
        What the bars are, ``"weight"`` or ``"score"``; weights are drawn from 0 to 1.
    """
    check_lengths(words, numbers, "words", "numbers")
    colours = [BLUE if number == numbers.max() else GREY for number in numbers]
    ax.bar(range(len(words)), numbers, color=colours)
    for index, number in enumerate(numbers):
        if abs(number) >= 0.005:
            ax.annotate(f"{number:.2f}", (index, number), (0, 2), textcoords="offset points", ha="center", fontsize=10)
    ax.set_xticks(range(len(words)), **drawn(numbered(words)), rotation=40, ha="right", rotation_mode="anchor")
    ax.set_title(f"query: {asker} {readable([words[asker]])[0]}", fontfamily=rcParams["font.family"])
    ax.set(ylabel=what)
    ax.set_ylim((0, 1.08) if what == "weight" else (min(0, numbers.min()), 1.15 * max(numbers.max(), 0.1)))
    tidy(ax)
    say(f"Bars: {ranking(words, numbers, asker, what)}")


def feature_table(features: np.ndarray, words: Sequence[str], names: Sequence[str], ax: Axes) -> None:
    """Draw a table of features as a coloured grid: dark where a word has a feature.

    Parameters
    ----------
    features : array [n_words, n_features]
        0 or 1.
    words, names : n_words and n_features strings
    ax : Axes
    """
    check_lengths(words, features, "words", "rows of features")
    check_lengths(names, features.T, "names", "columns of features")
    ax.imshow(features, vmin=0, vmax=1.6, cmap="Blues", aspect="auto")
    ax.set_xticks(range(len(names)), **drawn(names))
    ax.set_yticks(range(len(words)), **drawn(words))
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    for (row, column), number in np.ndenumerate(features):
        ax.text(column, row, f"{number:g}", ha="center", va="center", color=BLACK if number else GREY)
    cell_lines(ax, len(words), len(names), width=2)
    having = [
        f"{word}: {', '.join(name for name, has in zip(names, row) if has)}"
        for word, row in zip(words, features)
        if any(row)
    ]
    rest = sum(not any(row) for row in features)
    say(f"Features: {'; '.join(having)}. {rest} other words have none.")


def ranking(words: Sequence[str], numbers: np.ndarray, asker: int, what: str = "weight") -> str:
    """Say in words what an asker looks at: the three largest numbers, without those that are nearly 0."""
    order = np.argsort(-numbers, kind="stable")
    if np.allclose(numbers, numbers[0]):
        return f"{asker} {words[asker]} gives all {len(words)} words the same {what}, {numbers[0]:.3f}."
    leading = [index for index in order[:3] if index == order[0] or abs(numbers[index]) >= 0.005]
    first, *rest = (f"{index} {words[index]} ({numbers[index]:.2f})" for index in leading)
    does, preposition = ("has its highest score", "with") if what == "score" else ("looks mostly", "at")
    then = f", then {preposition} {' and '.join(rest)}" if rest else ""
    return f"{asker} {words[asker]} {does} {preposition} {first}{then}."
