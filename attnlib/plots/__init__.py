"""Every figure of the course. Each function draws on ``ax``, returns nothing, and prints one sentence in words.

The sentence says in numbers what the figure shows: for those who cannot see it, for a terminal, and for the tests,
which compare printed text but no pictures. Colours survive colour-blindness and grey print (Okabe and Ito, *Color
Universal Design*, 2008; cividis: Nuñez, Anderton, Renslow, 2018), weights always run from 0 to 1, and words carry their
index, so that repeated words stay apart. Words may be of any script: see ``fonts``.
"""

from attnlib.plots.fonts import readable
from attnlib.plots.lines import backward_graph, clock_hands, curves, live_curve, weighted_mean
from attnlib.plots.maps import head_cells, jacobian_heatmap, mask_grid, sinusoids_heatmap, weights_heatmap
from attnlib.plots.sentences import bars, feature_table, sentence_arrows
from attnlib.plots.statistics import distribution, intervals
from attnlib.plots.style import numbered
from attnlib.plots.viewer import head_grid, head_viewer

__all__ = [
    "backward_graph",
    "bars",
    "clock_hands",
    "curves",
    "distribution",
    "feature_table",
    "head_cells",
    "head_grid",
    "head_viewer",
    "intervals",
    "jacobian_heatmap",
    "live_curve",
    "mask_grid",
    "numbered",
    "readable",
    "sentence_arrows",
    "sinusoids_heatmap",
    "weighted_mean",
    "weights_heatmap",
]
