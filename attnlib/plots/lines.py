"""Figures with lines: curves, also live ones, values in the plane, clocks, and a graph of computations."""

import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle
from matplotlib.tri import Triangulation

from attnlib.plots.fonts import readable
from attnlib.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    LINES,
    ORANGE,
    PURPLE,
    check_lengths,
    number_text,
    say,
    tidy,
)

GRAPH_PLACES = [(0, 1), (0, -1), (1.5, 0), (3, 0), (4.5, -1.4), (4.5, 0)]
GRAPH_ARROWS = {
    ("query", "scores"): BLUE,
    ("key", "scores"): ORANGE,
    ("scores", "weights"): BLACK,
    ("weights", "output"): GREEN,
    ("value", "output"): PURPLE,
}


def curves(
    x: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    ax: Axes,
    *,
    xlabel: str,
    ylabel: str,
    chance: float | None = None,
    chance_label: str = "chance",
    said_to: float | None = None,
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
    chance_label : str
        What kind of guess; any other than ``"chance"`` stands at the right end of the line.
    said_to : float, optional
        What the sentence rounds the curves to, such as 0.05, where later digits differ from machine to machine; the drawing
        is exact.
    """
    if len(lines) > len(LINES):
        raise ValueError(
            f"{len(lines)} curves; expected at most {len(LINES)}, so that they can be told apart. Try two figures."
        )
    for (label, y), (colour, marker, dash) in zip(lines.items(), LINES):
        check_lengths(x, y, "x", f"numbers in {label!r}")
        ax.plot(x, y, color=colour, marker=marker, linestyle=dash, label=readable([label])[0])
    if chance is not None:
        ax.axhline(chance, color=GREY, linewidth=1)
        where, side = (x[0], "left") if chance_label == "chance" else (x[-1], "right")
        ax.annotate(
            chance_label, (where, chance), (0, 3), textcoords="offset points", ha=side, color="#555555", fontsize=9
        )
    if len(x) <= 8:
        ax.set_xticks(x, [number_text(number) for number in x])
        ax.minorticks_off()
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.legend(frameon=False, handlelength=3)
    tidy(ax)

    def said(number: float) -> str:
        return number_text(number if said_to is None else round(number / said_to) * said_to)

    ends = [
        f"{label}: {said(y[0])} at {number_text(x[0])}, {said(y[-1])} at {number_text(x[-1])}"
        for label, y in lines.items()
    ]
    rounded = "" if said_to is None else f" to {said_to:g}"
    say(
        f"Curves, {ylabel}{rounded} by {xlabel}: {'; '.join(ends)}."
        + (f" {chance_label.capitalize()} is {number_text(chance)}." if chance is not None else "")
    )


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
    if not a_person_is_there():
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
        tidy(ax)
        handle.update(figure)

    return add


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
    check_lengths(labels, values, "labels", "values")
    check_lengths(labels, weights, "labels", "weights")
    mean = weights @ values
    triangles = Triangulation(*values.T)
    ax.tripcolor(triangles, np.zeros(len(values)), cmap="Blues", vmin=-1, vmax=4, antialiased=False, zorder=0)
    for value, weight, label in zip(values, weights, readable(labels)):
        ax.plot(*zip(value, mean), color=GREY, linewidth=0.5 + 4 * weight, zorder=1)
        ax.scatter(*value, s=30 + 200 * weight, color=BLUE, zorder=2)
        away = np.sign(value - values.mean(axis=0))  # labels stand outside the hull
        side = {"ha": "left" if away[0] >= 0 else "right", "va": "bottom" if away[1] >= 0 else "top"}
        ax.annotate(f"{label} {weight:.2f}", value, 6 * away, textcoords="offset points", fontsize=10, zorder=4, **side)
    ax.scatter(*mean, s=150, marker="*", color=ORANGE, edgecolor="white", zorder=3)
    ax.margins(0.45, 0.25)
    tidy(ax)
    parts = ", ".join(f"{label} {weight:.2f}" for label, weight in zip(labels, weights))
    say(
        f"Plane: with weights {parts} the mean, the star, is at ({number_text(mean[0])}, {number_text(mean[1])}), inside the hull of the {len(values)} values."
    )


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
    say(f"Clocks, degrees at places 0 to {min(n, 4) - 1}: {'; '.join(told)}.")


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
    say(f"Graph: {len(GRAPH_ARROWS)} arrows forward, {len(gradients)} back: {back}.")


def a_person_is_there() -> bool:
    """Whether whoever asked for the running cell could also be asked to type something: programs say that they cannot."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    kernel = getattr(shell, "kernel", None)
    return bool(kernel is not None and kernel.get_parent().get("content", {}).get("allow_stdin"))
