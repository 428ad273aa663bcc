"""Every figure of the course. Each function draws on ``ax``, returns nothing, and prints one sentence in words.

The sentence says in numbers what the figure shows: for those who cannot see it, for a terminal, and for the tests,
which compare printed text but no pictures. Colours survive colour-blindness and grey print (Okabe and Ito, *Color
Universal Design*, 2008; cividis: Nuñez, Anderton, Renslow, 2018), weights always run from 0 to 1, and words carry their
index, so that repeated words stay apart.
"""

import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle
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
    _say(f"Arrows: {_ranking(words, weights, asker)}")


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
    _say(f"Map, the largest weight of each row: {', '.join(rows)}.")


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
    _say(f"Features: {'; '.join(having)}. {rest} other words have none.")


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
        if abs(number) >= 0.005:
            ax.annotate(f"{number:.2f}", (index, number), (0, 2), textcoords="offset points", ha="center", fontsize=10)
    ax.set_xticks(range(len(words)), numbered(words), rotation=40, ha="right", rotation_mode="anchor")
    ax.set(ylabel=what, title=f"query: {asker} {words[asker]}")
    ax.set_ylim((0, 1.08) if what == "weight" else (min(0, numbers.min()), 1.15 * max(numbers.max(), 0.1)))
    _tidy(ax)
    _say(f"Bars: {_ranking(words, numbers, asker, what)}")


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
        away = np.sign(value - values.mean(axis=0))  # labels stand outside the hull
        side = {"ha": "left" if away[0] >= 0 else "right", "va": "bottom" if away[1] >= 0 else "top"}
        ax.annotate(f"{label} {weight:.2f}", value, 6 * away, textcoords="offset points", fontsize=10, zorder=4, **side)
    ax.scatter(*mean, s=150, marker="*", color=ORANGE, edgecolor="white", zorder=3)
    ax.margins(0.45, 0.25)
    _tidy(ax)
    parts = ", ".join(f"{label} {weight:.2f}" for label, weight in zip(labels, weights))
    _say(
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
    _say(
        f"Curves, {ylabel} by {xlabel}: {'; '.join(ends)}."
        + (f" Chance is {_number(chance)}." if chance is not None else "")
    )


def mask_grid(mask: np.ndarray, queries: Sequence[str], keys: Sequence[str], ax: Axes) -> None:
    """Draw a boolean mask: light where a query may look, dark where it may not.

    Parameters
    ----------
    mask : array [n_query, n_key], bool
        True = may attend.
    queries, keys : n_query and n_key labels
        Short ones, such as places.
    ax : Axes
    """
    _check(queries, mask, "queries", "rows of the mask")
    _check(keys, mask.T, "keys", "columns of the mask")
    ax.imshow(mask, vmin=0, vmax=1, cmap="cividis", aspect="auto")
    ax.set_xticks(range(len(keys)), keys)
    ax.set_yticks(range(len(queries)), queries)
    ax.set_xticks(np.arange(len(keys) - 1) + 0.5, minor=True)
    ax.set_yticks(np.arange(len(queries) - 1) + 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1)
    ax.tick_params(which="minor", length=0)
    ax.set(xlabel="key: looked at", ylabel="query: looks")
    rows = [_places(row) for row in mask]
    if all(row == rows[0] for row in rows):
        _say(f"Map of what may be attended: all {len(rows)} queries at {rows[0]}.")
    else:
        _say(f"Map of what may be attended: {', '.join(f'{q} at {row}' for q, row in zip(queries, rows))}.")


def _places(row: np.ndarray) -> str:
    """Which keys a row allows, as numbers: ``0 to 3``, or ``0 and 2``, or ``none of 4``."""
    allowed = np.flatnonzero(row)
    if len(allowed) == 0:
        return f"none of {len(row)}"
    if len(allowed) > 2 and allowed[-1] - allowed[0] == len(allowed) - 1:
        return f"{allowed[0]} to {allowed[-1]}"
    return " and ".join(str(place) for place in allowed)


def jacobian_heatmap(jacobian: np.ndarray, words: Sequence[str], ax: Axes) -> None:
    """Draw how each weight (row) moves for each unit of each score (column): up is orange, down is purple.

    Parameters
    ----------
    jacobian : array [n, n]
        Jacobian of softmax; its numbers lie between −0.25 and 0.25 and are written into the cells
        with their sign, if they are not nearly 0.
    words : n strings
    ax : Axes
    """
    _check(words, jacobian, "words", "rows of the Jacobian")
    ax.imshow(jacobian, vmin=-0.25, vmax=0.25, cmap="PuOr_r")
    ax.set_xticks(range(len(words)), words, rotation=90)
    ax.set_yticks(range(len(words)), words)
    ax.set(xlabel="score raised", ylabel="weight moves")
    for (row, column), number in np.ndenumerate(jacobian):
        if abs(number) >= 0.005:
            text, colour = f"{number:+.2f}".replace("-", "−"), "white" if abs(number) > 0.17 else "black"
            ax.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)
    own = ", ".join(f"{word} {number:.2f}" for word, number in zip(words, np.diag(jacobian)))
    _say(
        f"Map of changes, each weight with its own score: {own}; all numbers together have norm {_number(np.linalg.norm(jacobian))}."
    )


def head_cells(places: np.ndarray, n_heads: int, d_model: int, ax: Axes, *, title: str) -> None:
    """Draw tokens as rows of cells, before or after they were split into heads, coloured by the head they belong to.

    Parameters
    ----------
    places : array [n, d_model] or [n_heads, n, d_head], of whole numbers
        Where each number stood: token * d_model + feature. ``np.arange(n * d_model).reshape(n, d_model)``, or what
        splitting made of it. A cell is written as letter of the token and number of the feature, ``b0``.
    n_heads : int
        At most four, so that the colours can be told apart.
    d_model : int
    ax : Axes
    title : str
    """
    blocks = places[None] if places.ndim == 2 else places
    if n_heads > len(LINES):
        raise ValueError(f"{n_heads} heads; expected at most {len(LINES)}, one for each colour. Try fewer heads.")
    names = [[[f"{chr(97 + cell // d_model)}{cell % d_model}" for cell in row] for row in block] for block in blocks]
    _, n, width = blocks.shape
    for (block, row, column), cell in np.ndenumerate(blocks):
        left = block * (width + 0.7) + column
        head = cell % d_model * n_heads // d_model
        shade = 0.5 if head % 2 == 0 else 0.2  # told apart in grey print too
        ax.add_patch(Rectangle((left, row), 1, 1, facecolor=LINES[head][0], alpha=shade, linewidth=0))
        ax.add_patch(Rectangle((left, row), 1, 1, fill=False, edgecolor="white", linewidth=2))
        ax.text(left + 0.5, row + 0.5, names[block][row][column], ha="center", va="center", fontsize=10, color=BLACK)
    if places.ndim == 3:
        for block in range(len(blocks)):
            ax.text(block * (width + 0.7) + width / 2, n + 0.4, f"head {block}", ha="center", va="center", fontsize=10)
    ax.set(xlim=(0, len(blocks) * (width + 0.7) - 0.7), ylim=(n + 0.8, 0), aspect="equal")
    ax.set_title(title, fontsize=10)
    ax.axis("off")
    rows = [", ".join(" ".join(row) for row in block) for block in names]
    held = rows if places.ndim == 2 else [f"head {block} holds {held}" for block, held in enumerate(rows)]
    _say(f"Cells, {title}: {'; '.join(held)}.")


def sinusoids_heatmap(positions: np.ndarray, ax: Axes) -> None:
    """Draw sinusoids as a map: a row for each place, a column for each number, from −1 (dark) to 1 (light).

    Parameters
    ----------
    positions : array [n, d_model]
        The rows of places 0 to n − 1.
    ax : Axes
    """
    image = ax.imshow(positions, vmin=-1, vmax=1, cmap="cividis", aspect="auto", interpolation="nearest")
    ax.set(xlabel="column", ylabel="place")
    ax.figure.colorbar(image, ax=ax, ticks=[-1, 0, 1])
    n, d = positions.shape
    changes = (np.diff(positions[1:] > 0, axis=0)).sum(axis=0)  # place 0 is left out: its sines are exactly 0
    shown = sorted({0, 2 * (d // 8), 2 * (d // 4), d - 1})
    told = ", ".join(f"column {column} {changes[column]} times" for column in shown)
    _say(f"Map of {n} places and {d} columns. From place 1 to {n - 1} the sign changes in {told}.")


def clock_hands(positions: np.ndarray, ax: Axes) -> None:
    """Draw each pair of numbers as the hand of a clock: the sine goes right, the cosine goes up.

    Parameters
    ----------
    positions : array [n, d_model]
        The rows of places 0 to n − 1; d_model even. Up to about 10 places and 4 hands stay legible.
    ax : Axes
        A clock for each place, from left to right, and each hand, from top to bottom.
    """
    n, d = positions.shape
    hands = positions.reshape(n, d // 2, 2)
    for (place, hand), _ in np.ndenumerate(hands[..., 0]):
        centre, tip = np.array([place, -hand]), 0.38 * hands[place, hand]
        ax.add_patch(Circle(centre, 0.42, facecolor="#e6e6e6"))
        ax.plot(*zip(centre, centre + tip), color=LINES[hand % len(LINES)][0], linewidth=2.5, solid_capstyle="round")
    ax.set(xlim=(-0.6, n - 0.4), ylim=(0.4 - d // 2, 0.6), aspect="equal", xlabel="place")
    ax.set_xticks(range(n))
    ax.set_yticks(-np.arange(d // 2), [f"hand {hand}" for hand in range(d // 2)])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    degrees = np.degrees(np.arctan2(hands[..., 0], hands[..., 1])) % 360
    told = [f"hand {hand} {', '.join(f'{angle:.0f}' for angle in degrees[:4, hand])}" for hand in range(d // 2)]
    _say(f"Clocks, degrees at places 0 to {min(n, 4) - 1}: {'; '.join(told)}.")


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
    _say(f"Graph: {len(GRAPH_ARROWS)} arrows forward, {len(gradients)} back: {back}.")


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
    leading = [index for index in order[:3] if index == order[0] or abs(numbers[index]) >= 0.005]
    first, *rest = (f"{index} {words[index]} ({numbers[index]:.2f})" for index in leading)
    does, preposition = ("has its highest score", "with") if what == "score" else ("looks mostly", "at")
    then = f", then {preposition} {' and '.join(rest)}" if rest else ""
    return f"{asker} {words[asker]} {does} {preposition} {first}{then}."


def _number(number: float) -> str:
    if number == int(number) and abs(number) < 100_000:
        return f"{number:.0f}"
    return f"{number:.3g}" if abs(number) < 0.01 or abs(number) >= 1000 else f"{number:.2f}".removesuffix(".00")


def _tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#dddddd", linewidth=0.7)
    ax.set_axisbelow(True)


def _say(sentence: str) -> None:
    print(textwrap.fill(sentence, 96, break_long_words=False, break_on_hyphens=False))


def _check(labels: Sequence, numbers: Sequence, what: str, of: str) -> None:
    if len(labels) != len(numbers):
        raise ValueError(f"{len(labels)} {what} and {len(numbers)} {of}; expected as many of each.")
