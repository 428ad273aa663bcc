"""Figures of matrices: weights, masks, derivatives, positions, and numbers cut into heads."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from attnlib.plots.fonts import drawn
from attnlib.plots.style import BLACK, LINES, cell_lines, check_lengths, number_text, say


def weights_heatmap(weights: np.ndarray, queries: Sequence[str], keys: Sequence[str], ax: Axes) -> None:
    """Draw weights as a map: a row for each query, a column for each key, from 0 (dark) to 1 (light).

    Parameters
    ----------
    weights : array [n_query, n_key]
    queries, keys : n_query and n_key strings
        Labels, in any script; ``numbered`` keeps repeated words apart.
    ax : Axes
    """
    check_lengths(queries, weights, "queries", "rows of weights")
    check_lengths(keys, weights.T, "keys", "columns of weights")
    image = ax.imshow(weights, vmin=0, vmax=1, cmap="cividis", aspect="auto")
    tilt = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if max(map(len, keys)) > 2 else {}
    ax.set_xticks(range(len(keys)), **drawn(keys), **tilt)
    ax.set_yticks(range(len(queries)), **drawn(queries))
    ax.set(xlabel="key: looked at", ylabel="query: looks")
    if weights.shape[1] <= 12 or len(weights) <= 2:
        write_numbers(weights, weights >= 0.01, ax, fontsize=9 if weights.shape[1] <= 12 else 7)
    else:
        ax.figure.colorbar(image, ax=ax, label="weight")
    rows = []
    for query, row in zip(queries, weights):
        largest = np.flatnonzero(np.isclose(row, row.max()))
        where = keys[largest[0]] if len(largest) == 1 else f"{len(largest)} keys alike"
        rows.append(f"{query} at {where} ({row.max():.2f})")
    say(f"Map, the largest weight of each row: {', '.join(rows)}.")


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
    check_lengths(queries, mask, "queries", "rows of the mask")
    check_lengths(keys, mask.T, "keys", "columns of the mask")
    ax.imshow(mask, vmin=0, vmax=1, cmap="cividis", aspect="auto")
    ax.set_xticks(range(len(keys)), **drawn(keys))
    ax.set_yticks(range(len(queries)), **drawn(queries))
    cell_lines(ax, len(queries), len(keys), width=1)
    ax.set(xlabel="key: looked at", ylabel="query: looks")
    rows = [places_of(row) for row in mask]
    if all(row == rows[0] for row in rows):
        say(f"Map of what may be attended: all {len(rows)} queries at {rows[0]}.")
    else:
        say(f"Map of what may be attended: {', '.join(f'{q} at {row}' for q, row in zip(queries, rows))}.")


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
    check_lengths(words, jacobian, "words", "rows of the Jacobian")
    ax.imshow(jacobian, vmin=-0.25, vmax=0.25, cmap="PuOr_r")
    ax.set_xticks(range(len(words)), **drawn(words), rotation=90)
    ax.set_yticks(range(len(words)), **drawn(words))
    ax.set(xlabel="score raised", ylabel="weight moves")
    for (row, column), number in np.ndenumerate(jacobian):
        if abs(number) >= 0.005:
            text, colour = f"{number:+.2f}".replace("-", "−"), "white" if abs(number) > 0.17 else "black"
            ax.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)
    own = ", ".join(f"{word} {number:.2f}" for word, number in zip(words, np.diag(jacobian)))
    say(
        f"Map of changes, each weight with its own score: {own}; all numbers together have norm {number_text(np.linalg.norm(jacobian))}."
    )


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
    say(f"Map of {n} places and {d} columns. From place 1 to {n - 1} the sign changes in {told}.")


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
    say(f"Cells, {title}: {'; '.join(held)}.")


def write_numbers(weights: np.ndarray, where: np.ndarray, ax: Axes, fontsize: int = 9) -> None:
    """Write the weights into the cells where they are wanted, readable on dark and on light."""
    for row, column in np.argwhere(where):
        weight = weights[row, column]
        ax.text(
            column,
            row,
            f"{weight:.2f}",
            ha="center",
            va="center",
            fontsize=fontsize,
            color="black" if weight >= 0.45 else "white",
        )


def places_of(row: np.ndarray) -> str:
    """Which keys a row allows, as numbers: ``0 to 3``, or ``0 and 2``, or ``none of 4``."""
    allowed = np.flatnonzero(row)
    if len(allowed) == 0:
        return f"none of {len(row)}"
    if len(allowed) > 2 and allowed[-1] - allowed[0] == len(allowed) - 1:
        return f"{allowed[0]} to {allowed[-1]}"
    return " and ".join(str(place) for place in allowed)
