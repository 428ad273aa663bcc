"""All heads of a model at a glance, and one of them at a time: drawn once, or with sliders where a person wants them."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from attnlib.plots.maps import weights_heatmap
from attnlib.plots.style import numbered, say


def head_grid(maps: np.ndarray, ax: Axes, *, gap: int = 2) -> None:
    """Draw the map of every head as a small picture: a row for each layer, a column for each head, 0 dark, 1 light.

    Parameters
    ----------
    maps : array [n_layers, n_heads, n, n]
    ax : Axes
    gap : int
        Cells of white between two maps.
    """
    maps = _array(maps)
    n_layers, n_heads, n, _ = maps.shape
    step = n + gap
    grid = np.full((n_layers * step - gap, n_heads * step - gap), np.nan)
    for layer, head in np.ndindex(n_layers, n_heads):
        grid[layer * step : layer * step + n, head * step : head * step + n] = maps[layer, head]
    shades = np.round(12 * grid) / 12  # what the eye tells apart in a small picture; the file is half as large
    ax.imshow(shades, vmin=0, vmax=1, cmap="cividis", interpolation="nearest")
    ax.set_xticks([head * step + n / 2 for head in range(n_heads)], range(n_heads))
    ax.set_yticks([layer * step + n / 2 for layer in range(n_layers)], range(n_layers))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel="head", ylabel="layer")
    largest = maps.max(axis=-1).mean(axis=-1)  # [n_layers, n_heads]
    ends = [np.unravel_index(place, largest.shape) for place in (largest.argmax(), largest.argmin())]
    (sharp, even), numbers = [f"layer {layer} head {head}" for layer, head in ends], (largest.max(), largest.min())
    say(
        f"Map of {n_layers} layers with {n_heads} heads. The largest weight of a row is on average {numbers[0]:.2f} in {sharp}, "
        f"the sharpest, and {numbers[1]:.2f} in {even}, the most even."
    )


def head_viewer(
    tokens: Sequence[str], maps: np.ndarray, *, layer: int = 0, head: int = 0, interactive: bool = False
) -> Any:
    """Show the map of one head with its sentence; with ``interactive=True`` choose layer and head with two sliders.

    Both sliders can be reached with Tab and moved with the arrow keys. Without a person at the kernel leave ``interactive``
    False: the map is drawn once, and a run of the notebook stores it.

    Parameters
    ----------
    tokens : n strings
    maps : array [n_layers, n_heads, n, n]
    layer, head : int
        What is shown first.
    interactive : bool
        Needs ipywidgets, 7.7 or newer.

    Returns
    -------
    viewer : ipywidgets.VBox, or None
        The sliders and the map, if ``interactive``.

    Raises
    ------
    ValueError
        If there is no such layer or head, or tokens and maps do not fit.
    """
    maps = _array(maps)
    n_layers, n_heads, n, _ = maps.shape
    if not (0 <= layer < n_layers and 0 <= head < n_heads) or len(tokens) != n:
        raise ValueError(
            f"layer={layer}, head={head} and {len(tokens)} tokens, with maps {list(maps.shape)}; expected a layer from 0 to "
            f"{n_layers - 1}, a head from 0 to {n_heads - 1}, and {n} tokens."
        )

    def draw(layer: int, head: int) -> None:
        figure, ax = plt.subplots(figsize=(4.6, 3.6), layout="constrained")
        weights_heatmap(maps[layer, head], numbered(tokens), numbered(tokens), ax)
        ax.set_xticks(range(n), numbered(tokens), rotation=90, ha="center", rotation_mode="default")
        ax.set_title(f"layer {layer}, head {head}", fontsize=10)
        plt.show()
        plt.close(figure)

    if not interactive:
        draw(layer, head)
        return None
    try:
        import ipywidgets
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("the sliders need ipywidgets. Run: pip install ipywidgets") from error
    sliders = {
        name: ipywidgets.IntSlider(value, 0, end - 1, description=name, continuous_update=False)
        for name, value, end in (("layer", layer, n_layers), ("head", head, n_heads))
    }
    return ipywidgets.VBox([*sliders.values(), ipywidgets.interactive_output(draw, sliders)])


def _array(maps: Any) -> np.ndarray:
    """Maps as an array of four axes; a tensor may be given."""
    maps = np.asarray(maps)
    if maps.ndim != 4 or maps.shape[-1] != maps.shape[-2]:
        raise ValueError(
            f"maps have shape {list(maps.shape)}; expected [n_layers, n_heads, n, n]. Try weights[:, 0] for one text of a batch."
        )
    return maps
