"""Every figure of the course. Each function draws on ``ax``, returns nothing, and prints one sentence in words.

The sentence says in numbers what the figure shows: for those who cannot see it, for a terminal, and for the tests,
which compare printed text but no pictures. Colours survive colour-blindness and grey print (Okabe and Ito, *Color
Universal Design*, 2008; cividis: Nuñez, Anderton, Renslow, 2018), weights always run from 0 to 1, and words carry their
index, so that repeated words stay apart.
"""

import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch
from matplotlib.tri import Triangulation

BLUE, ORANGE, GREEN, BLACK, GREY = "#0072B2", "#D55E00", "#009E73", "#222222", "#8a8a8a"
PURPLE = "#B0578D"
LINES = [(BLUE, "o", "-"), (ORANGE, "s", "--"), (GREEN, "^", "-."), (BLACK, "D", ":")]
GRAPH_PLACES = [(0, 1), (0, -1), (1.5, 0), (3, 0), (4.5, -1.4), (4.5, 0)]
GRAPH_ARROWS = {
    ("query", "scores"): BLUE,
    ("key", "scores"): ORANGE,
    ("scores", "weights"): BLACK,
    ("weights", "output"): GREEN,
    ("value", "output"): PURPLE,
}


def numbered(words: Sequence[str]) -> list[str]:
    """Each word with its index in front: ``["The", "cat"]`` becomes ``["0 The", "1 cat"]``."""
    return [f"{index} {word}" for index, word in enumerate(words)]


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
    _check(words, weights, "words", "weights")
    lengths = np.array([len(word) for word in words])
    centres = np.cumsum(lengths + 1.6) - lengths / 2
    for index, word in enumerate(words):
        bold = index == asker or weights[index] >= 0.1
        ax.text(
            centres[index],
            0,
            word,
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
    print(f"Arrows: {_ranking(words, weights, asker)}")


def weights_heatmap(weights: np.ndarray, queries: Sequence[str], keys: Sequence[str], ax: Axes) -> None:
    """Draw weights as a map: a row for each query, a column for each key, from 0 (dark) to 1 (light).

    Parameters
    ----------
    weights : array [n_query, n_key]
    queries, keys : n_query and n_key strings
        Labels, drawn as they are; ``numbered`` keeps repeated words apart.
    ax : Axes
    """
    _check(queries, weights, "queries", "rows of weights")
    _check(keys, weights.T, "keys", "columns of weights")
    image = ax.imshow(weights, vmin=0, vmax=1, cmap="cividis", aspect="auto")
    ax.set_xticks(range(len(keys)), keys, rotation=40, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(queries)), queries)
    ax.set(xlabel="key: looked at", ylabel="query: looks")
    if weights.shape[1] <= 12:
        _write_numbers(weights, weights >= 0.01, ax)
    else:
        ax.figure.colorbar(image, ax=ax, label="weight")
    rows = [f"{query} at {keys[row.argmax()]} ({row.max():.2f})" for query, row in zip(queries, weights)]
    print(f"Map, the largest weight of each row: {', '.join(rows)}.")


def feature_table(features: np.ndarray, words: Sequence[str], names: Sequence[str], ax: Axes) -> None:
    """Draw a table of features as a coloured grid: dark where a word has a feature.

    Parameters
    ----------
    features : array [n_words, n_features]
        0 or 1.
    words, names : n_words and n_features strings
    ax : Axes
    """
    _check(words, features, "words", "rows of features")
    _check(names, features.T, "names", "columns of features")
    ax.imshow(features, vmin=0, vmax=1.6, cmap="Blues", aspect="auto")
    ax.set_xticks(range(len(names)), names)
    ax.set_yticks(range(len(words)), words)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    for (row, column), number in np.ndenumerate(features):
        ax.text(column, row, f"{number:g}", ha="center", va="center", color=BLACK if number else GREY)
    ax.set_xticks(np.arange(len(names) - 1) + 0.5, minor=True)
    ax.set_yticks(np.arange(len(words) - 1) + 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=2)
    ax.tick_params(which="minor", length=0)
    having = [
        f"{word}: {', '.join(name for name, has in zip(names, row) if has)}"
        for word, row in zip(words, features)
        if any(row)
    ]
    rest = sum(not any(row) for row in features)
    print(f"Features: {'; '.join(having)}. {rest} other words have none.")


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
    _check(words, numbers, "words", "numbers")
    colours = [BLUE if number == numbers.max() else GREY for number in numbers]
    ax.bar(range(len(words)), numbers, color=colours)
    for index, number in enumerate(numbers):
        ax.annotate(f"{number:.2f}", (index, number), (0, 2), textcoords="offset points", ha="center", fontsize=9)
    ax.set_xticks(range(len(words)), numbered(words), rotation=40, ha="right", rotation_mode="anchor")
    ax.set(ylabel=what, title=f"query: {asker} {words[asker]}")
    ax.set_ylim((0, 1.08) if what == "weight" else (min(0, numbers.min()), 1.15 * max(numbers.max(), 0.1)))
    _tidy(ax)
    print(f"Bars: {_ranking(words, numbers, asker, what)}")


def weighted_mean(values: np.ndarray, weights: np.ndarray, labels: Sequence[str], ax: Axes) -> None:
    """Draw values as points of the plane, the shape that they span (their convex hull), and their weighted mean in it.

    Parameters
    ----------
    values : array [n, 2]
        Not all on one line.
    weights : array [n]
        Not negative, sum 1. Points are drawn larger the more weight they have.
    labels : n strings
    ax : Axes
    """
    _check(labels, values, "labels", "values")
    _check(labels, weights, "labels", "weights")
    mean = weights @ values
    triangles = Triangulation(*values.T)
    ax.tripcolor(triangles, np.zeros(len(values)), cmap="Blues", vmin=-1, vmax=4, antialiased=False, zorder=0)
    for value, weight, label in zip(values, weights, labels):
        ax.plot(*zip(value, mean), color=GREY, linewidth=0.5 + 4 * weight, zorder=1)
        ax.scatter(*value, s=30 + 200 * weight, color=BLUE, zorder=2)
        ax.annotate(f"{label} {weight:.2f}", value, (7, 5), textcoords="offset points", fontsize=10, zorder=4)
    ax.scatter(*mean, s=150, marker="*", color=ORANGE, edgecolor="white", zorder=3)
    ax.margins(0.2)
    _tidy(ax)
    parts = ", ".join(f"{label} {weight:.2f}" for label, weight in zip(labels, weights))
    print(
        f"Plane: with weights {parts} the mean, the star, is at ({_number(mean[0])}, {_number(mean[1])}), inside the hull of the {len(values)} values."
    )


def curves(
    x: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    ax: Axes,
    *,
    xlabel: str,
    ylabel: str,
    chance: float | None = None,
) -> None:
    """Draw up to four curves, told apart by colour, marker, dashes and a label at their end.

    Parameters
    ----------
    x : n numbers
    lines : up to four, label → n numbers
    ax : Axes
        Set a logarithmic scale before, if wanted.
    xlabel, ylabel : str
    chance : float, optional
        Level of a guess, drawn as a thin line.
    """
    if len(lines) > len(LINES):
        raise ValueError(
            f"{len(lines)} curves; expected at most {len(LINES)}, so that they can be told apart. Try two figures."
        )
    for (label, y), (colour, marker, dash) in zip(lines.items(), LINES):
        _check(x, y, "x", f"numbers in {label!r}")
        ax.plot(x, y, color=colour, marker=marker, linestyle=dash, label=label)
    if chance is not None:
        ax.axhline(chance, color=GREY, linewidth=1)
        ax.annotate("chance", (x[0], chance), (0, 3), textcoords="offset points", color="#555555", fontsize=9)
    if len(x) <= 8:
        ax.set_xticks(x, [_number(number) for number in x])
        ax.minorticks_off()
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.legend(frameon=False, handlelength=3)
    _tidy(ax)
    ends = [
        f"{label}: {_number(y[0])} at {_number(x[0])}, {_number(y[-1])} at {_number(x[-1])}"
        for label, y in lines.items()
    ]
    print(
        f"Curves, {ylabel} by {xlabel}: {'; '.join(ends)}."
        + (f" Chance is {_number(chance)}." if chance is not None else "")
    )


def backward_graph(arrays: Mapping[str, np.ndarray], gradients: Mapping[str, np.ndarray], ax: Axes) -> None:
    """Draw attention as a graph: a solid arrow for each step forward and, in the same colour, a dashed one back.

    Parameters
    ----------
    arrays : name → array
        query, key, scores, weights, value and output; their shapes are written.
    gradients : some of these names → array
        An arrow goes back to each of them.
    ax : Axes
        About twice as wide as high.
    """
    places = dict(zip(("query", "key", "scores", "weights", "value", "output"), np.array(GRAPH_PLACES)))
    for name, place in places.items():
        shape = f"{name}\n{list(arrays[name].shape)}"
        ax.text(*place, shape, ha="center", va="center", fontsize=10, bbox={"boxstyle": "round", "fc": "white"})
    for (start, end), colour in GRAPH_ARROWS.items():
        way = places[end] - places[start]
        aside = 0.1 * np.array([-way[1], way[0]]) / np.linalg.norm(way)  # to the left, seen along the arrow
        ends = [places[start] + 0.28 * way, places[end] - 0.28 * way]
        ax.annotate("", ends[1] - aside, ends[0] - aside, arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2})
        if start in gradients:
            back = {"arrowstyle": "-|>", "color": colour, "lw": 2, "linestyle": (0, (3, 2))}
            ax.annotate("", ends[0] + aside, ends[1] + aside, arrowprops=back)
            side = "center" if way[1] == 0 else "left" if way[1] < 0 else "right"
            place = sum(ends) / 2 + 2 * aside
            ax.text(*place, f"grad_{start}", ha=side, va="bottom" if way[0] else "center", color=colour, fontsize=10)
    ax.set(xlim=(-0.5, 5), ylim=(-1.75, 1.3))
    ax.axis("off")
    back = ", ".join(f"grad_{name} {list(gradient.shape)}" for name, gradient in gradients.items())
    print(f"Graph: {len(GRAPH_ARROWS)} arrows forward, {len(gradients)} back: {back}.")


def live_curve(xlabel: str, ylabel: str) -> Callable[[float, float], None]:
    """Begin a curve that grows while a program runs, and return a function that adds a point to it.

    It is drawn only if a person is at the kernel. A program that runs a notebook gets nothing, and the same outputs every
    time; so draw the whole curve afterwards as well.

    Parameters
    ----------
    xlabel, ylabel : str

    Returns
    -------
    add : function of x and y
    """
    points: list[tuple[float, float]] = []
    if not _a_person_is_there():
        return lambda x, y: points.append((x, y))
    from IPython.display import display
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 2.8), layout="constrained")
    ax = figure.subplots()
    handle = display(figure, display_id=True)

    def add(x: float, y: float) -> None:
        points.append((x, y))
        ax.clear()
        ax.plot(*zip(*points), color=BLUE)
        ax.set(xlabel=xlabel, ylabel=ylabel)
        _tidy(ax)
        handle.update(figure)

    return add


def _a_person_is_there() -> bool:
    """Whether whoever asked for the running cell could also be asked to type something: programs say that they cannot."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    kernel = getattr(shell, "kernel", None)
    return bool(kernel is not None and kernel.get_parent().get("content", {}).get("allow_stdin"))


def _write_numbers(weights: np.ndarray, where: np.ndarray, ax: Axes) -> None:
    for row, column in np.argwhere(where):
        weight = weights[row, column]
        ax.text(
            column,
            row,
            f"{weight:.2f}",
            ha="center",
            va="center",
            fontsize=9,
            color="black" if weight > 0.5 else "white",
        )


def _ranking(words: Sequence[str], numbers: np.ndarray, asker: int, what: str = "weight") -> str:
    order = np.argsort(-numbers, kind="stable")
    if np.allclose(numbers, numbers[0]):
        return f"{asker} {words[asker]} gives all {len(words)} words the same {what}, {numbers[0]:.3f}."
    first, *rest = (f"{index} {words[index]} ({numbers[index]:.2f})" for index in order[:3])
    if what == "score":
        return f"{asker} {words[asker]} has its highest score with {first}, then with {' and '.join(rest)}."
    return f"{asker} {words[asker]} looks mostly at {first}, then at {' and '.join(rest)}."


def _number(number: float) -> str:
    return f"{number:.3g}" if abs(number) < 0.01 or abs(number) >= 1000 else f"{number:.2f}".removesuffix(".00")


def _tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#dddddd", linewidth=0.7)
    ax.set_axisbelow(True)


def _check(labels: Sequence, numbers: Sequence, what: str, of: str) -> None:
    if len(labels) != len(numbers):
        raise ValueError(f"{len(labels)} {what} and {len(numbers)} {of}; expected as many of each.")
