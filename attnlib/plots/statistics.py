"""Figures of many measurements: how they are distributed, and means with their intervals (lesson 11)."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from attnlib.plots.style import BLUE, GREY, say, tidy


def distribution(values: Sequence[float], ax: Axes, *, xlabel: str, marks: Sequence[float]) -> None:
    """Draw for every number which share of the values is at most that: the empirical distribution function.

    Parameters
    ----------
    values : n numbers
    ax : Axes
        Set a logarithmic scale before, if wanted.
    xlabel : str
        What is counted or measured, in the plural.
    marks : numbers, rising
        Where the axis is labelled, and what the sentence names.

    Raises
    ------
    ModuleNotFoundError
        If seaborn is missing.
    """
    try:
        import seaborn  # here, since no other figure needs it
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("this figure needs seaborn. Run: pip install seaborn") from error
    seaborn.ecdfplot(x=values, ax=ax, color=BLUE)
    ax.set_xticks(marks, [f"{mark:,g}" for mark in marks])
    ax.minorticks_off()
    ax.set(xlabel=xlabel, ylabel="share", ylim=(0, 1.02))
    tidy(ax)
    shares = [f"at most {mark:,g} in {np.mean(np.asarray(values) <= mark):.2f}" for mark in marks]
    say(f"Distribution of {xlabel}: {', '.join(shares)} of {len(values):,}.")


def intervals(lines: Mapping[str, tuple[float, float, float]], ax: Axes, *, xlabel: str, best: int = 3) -> None:
    """Draw a mean with its interval for each of several things, the highest on top.

    Parameters
    ----------
    lines : label → (low, mean, high)
    ax : Axes
    xlabel : str
        What is measured.
    best : int
        How many the sentence names.
    """
    order = sorted(lines, key=lambda label: lines[label][1])
    for place, label in enumerate(order):
        low, mean, high = lines[label]
        ax.plot((low, high), (place, place), color=GREY, linewidth=3, solid_capstyle="butt")
        ax.plot(mean, place, color=BLUE, marker="o")
    ax.set_yticks(range(len(order)), order, fontsize=8.5)
    ax.set(xlabel=xlabel, ylim=(-0.7, len(order) - 0.3))
    tidy(ax)
    ax.grid(visible=False)
    named = [f"{label} {lines[label][1]:.1f} ({lines[label][0]:.1f} to {lines[label][2]:.1f})" for label in order[::-1]]
    say(
        f"Bars, {xlabel}, mean and interval: {'; '.join([*named[:best], '…', named[-1]] if len(named) > best + 1 else named)}."
    )
