"""Figures: each prints a sentence that is true, draws what it says, and refuses what does not fit."""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib import font_manager

from attnlib import plots
from attnlib.data import sentence
from attnlib.numpy import sinusoidal_positions
from attnlib.plots import fonts

WORDS = ["the", "cat", "the"]


@pytest.fixture
def said(capsys):
    """What was printed, as one line."""
    return lambda: " ".join(capsys.readouterr().out.split())


@pytest.fixture
def ax():
    figure, axes = plt.subplots(layout="constrained")
    yield axes
    figure.canvas.draw()  # a missing glyph or a layout that does not fit is a warning, and so an error
    plt.close(figure)


def test_arrows(ax, said):
    plots.sentence_arrows(WORDS, np.array([0.1, 0.7, 0.2]), 2, ax)
    assert said() == "Arrows: 2 the looks mostly at 1 cat (0.70), then at 2 the (0.20) and 0 the (0.10)."
    assert len(ax.patches) == 2  # no arrow to itself


def test_arrows_of_a_mean(ax, said):
    plots.sentence_arrows(WORDS, np.full(3, 1 / 3), 0, ax)
    assert said() == "Arrows: 0 the gives all 3 words the same weight, 0.333."


def test_map(ax, said):
    plots.weights_heatmap(np.array([[0.9, 0.1, 0], [0, 0.2, 0.8]]), ["a", "b"], plots.numbered(WORDS), ax)
    assert said() == "Map, the largest weight of each row: a at 0 the (0.90), b at 2 the (0.80)."
    assert ax.images[0].get_clim() == (0, 1)
    assert [text.get_text() for text in ax.texts] == ["0.90", "0.10", "0.20", "0.80"]


def test_a_large_map_has_a_scale_and_no_numbers(ax):
    plots.weights_heatmap(np.eye(13), list("abcdefghijklm"), list("abcdefghijklm"), ax)
    assert not ax.texts and len(ax.figure.axes) == 2


def test_features(ax, said):
    words = sentence.tokens("wide")
    plots.feature_table(sentence.features(words), words, sentence.FEATURES, ax)
    assert "street: thing, broad" in (text := said()) and "6 other words have none." in text


def test_bars(ax, said):
    plots.bars(np.array([-1.0, 2.0, 0.5]), WORDS, 1, ax, what="score")
    assert said() == ("Bars: 1 cat has its highest score with 1 cat (2.00), then with 2 the (0.50) and 0 the (-1.00).")
    assert [bar.get_height() for bar in ax.patches] == [-1, 2, 0.5]


def test_weighted_mean(ax, said):
    plots.weighted_mean(np.array([[0.0, 0], [4, 0], [0, 4]]), np.array([0.5, 0.25, 0.25]), ["a", "b", "c"], ax)
    assert "a 0.50, b 0.25, c 0.25 the mean, the star, is at (1, 1), inside the hull of the 3 values." in said()


def test_curves(ax, said):
    plots.curves([1, 2], {"one": [0.5, 0.25], "two": [1, 2e-5]}, ax, xlabel="n", ylabel="share", chance=0.1)
    assert said() == ("Curves, share by n: one: 0.50 at 1, 0.25 at 2; two: 1 at 1, 2e-05 at 2. Chance is 0.10.")
    styles = {(line.get_marker(), line.get_linestyle()) for line in ax.lines[:2]}
    assert len(styles) == 2  # told apart without colour


def test_a_curve_is_drawn_exactly_also_where_its_sentence_is_rounded(ax, said):
    plots.curves([0, 1], {"loss": [0.713, 0.289]}, ax, xlabel="step", ylabel="loss", said_to=0.05)
    assert said() == "Curves, loss to 0.05 by step: loss: 0.70 at 0, 0.30 at 1."
    assert ax.lines[0].get_ydata().tolist() == [0.713, 0.289]


def test_a_distribution(ax, said):
    pytest.importorskip("seaborn")
    plots.distribution([1, 2, 2, 4], ax, xlabel="words", marks=[1, 2, 1_024])
    assert said() == "Distribution of words: at most 1 in 0.25, at most 2 in 0.75, at most 1,024 in 1.00 of 4."
    x, y = ax.lines[0].get_data()
    assert list(x[1:]) == [1, 2, 2, 4] and list(y[1:]) == [0.25, 0.5, 0.75, 1]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "1,024"]


def test_a_distribution_without_seaborn_says_what_to_install(ax, monkeypatch):
    monkeypatch.setitem(sys.modules, "seaborn", None)
    with pytest.raises(ModuleNotFoundError, match="this figure needs seaborn. Run: pip install seaborn"):
        plots.distribution([1], ax, xlabel="words", marks=[1])


def test_intervals(ax, said):
    plots.intervals({"one": (80.0, 82.0, 84.0), "other": (84.5, 85.0, 85.5)}, ax, xlabel="accuracy in %")
    assert said() == "Bars, accuracy in %, mean and interval: other 85.0 (84.5 to 85.5); one 82.0 (80.0 to 84.0)."
    assert [label.get_text() for label in ax.get_yticklabels()] == ["one", "other"]
    plots.intervals({str(i): (i, i + 1, i + 2) for i in range(6)}, ax, xlabel="score", best=2)
    assert said() == "Bars, score, mean and interval: 5 6.0 (5.0 to 7.0); 4 5.0 (4.0 to 6.0); …; 0 1.0 (0.0 to 2.0)."


def test_jacobian(ax, said):
    weights = np.array([0.5, 0.5, 0.0])
    plots.jacobian_heatmap(np.diag(weights) - np.outer(weights, weights), WORDS, ax)
    assert said() == (
        "Map of changes, each weight with its own score: the 0.25, cat 0.25, the 0.00; all numbers together have norm 0.50."
    )
    assert [text.get_text() for text in ax.texts] == ["+0.25", "−0.25", "−0.25", "+0.25"]  # nearly 0 stays blank


def test_cells_of_heads(ax, said):
    places = np.arange(8).reshape(2, 4)
    plots.head_cells(places, 2, 4, ax, title="x")
    assert said() == "Cells, x: a0 a1 a2 a3, b0 b1 b2 b3."
    plots.head_cells(places.reshape(2, 2, 2), 2, 4, ax, title="reshape alone")
    assert said() == "Cells, reshape alone: head 0 holds a0 a1, a2 a3; head 1 holds b0 b1, b2 b3."
    colours = [patch.get_facecolor() for patch in ax.patches[-16::2]]  # a filled cell, then its border
    assert colours[:2] == [colours[0]] * 2 != colours[2:4] and colours[:4] == colours[4:]  # by feature, not by place


def test_sinusoids(ax, said):
    plots.sinusoids_heatmap(sinusoidal_positions(32, 16), ax)
    assert said() == (
        "Map of 32 places and 16 columns. From place 1 to 31 the sign changes in "
        "column 0 9 times, column 4 0 times, column 8 0 times, column 15 0 times."
    )
    assert ax.images[0].get_clim() == (-1, 1)


def test_clock_hands(ax, said):
    quarter = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0]])  # up, right, down
    plots.clock_hands(quarter, ax)
    assert said() == "Clocks, degrees at places 0 to 2: hand 0 0, 90, 180."
    assert len(ax.patches) == len(ax.lines) == 3
    assert ax.lines[1].get_xdata()[1] > 1 and ax.lines[2].get_ydata()[1] < 0


@pytest.mark.parametrize(
    "draw, text",
    [
        (
            lambda ax: plots.sentence_arrows(WORDS, np.ones(2), 0, ax),
            "3 words and 2 weights; expected as many of each.",
        ),
        (lambda ax: plots.bars(np.ones(4), WORDS, 0, ax), "3 words and 4 numbers"),
        (lambda ax: plots.weights_heatmap(np.ones((2, 3)), ["a"], WORDS, ax), "1 queries and 2 rows of weights"),
        (lambda ax: plots.jacobian_heatmap(np.eye(2), WORDS, ax), "3 words and 2 rows of the Jacobian"),
        (
            lambda ax: plots.curves([1], {str(i): [1] for i in range(5)}, ax, xlabel="", ylabel=""),
            "5 curves; expected at most 4",
        ),
        (lambda ax: plots.head_cells(np.eye(5, dtype=int), 5, 5, ax, title=""), "5 heads; expected at most 4"),
        (lambda ax: plots.curves([1, 2], {"a": [1]}, ax, xlabel="", ylabel=""), "2 x and 1 numbers in 'a'"),
    ],
)
def test_what_does_not_fit_is_refused(draw, text, ax):
    with pytest.raises(ValueError, match="expected"):
        try:
            draw(ax)
        except ValueError as error:
            assert text in str(error)
            raise


def test_a_mask(ax, said):
    mask = np.array([[True, False, False, False], [True, False, True, False], [False] * 4, [True, True, True, False]])
    plots.mask_grid(mask, range(4), range(4), ax)
    assert said() == ("Map of what may be attended: 0 at 0, 1 at 0 and 2, 2 at none of 4, 3 at 0 to 2.")
    plots.mask_grid(mask[[0, 0]], range(2), range(4), ax)
    assert said() == "Map of what may be attended: all 2 queries at 0."


def test_backward_graph(ax, said):
    shapes = {"query": (2, 4), "key": (3, 4), "value": (3, 5), "scores": (2, 3), "weights": (2, 3), "output": (2, 5)}
    arrays = {name: np.zeros(shape) for name, shape in shapes.items()}
    plots.backward_graph(arrays, {"value": np.zeros((3, 5)), "scores": np.zeros((2, 3))}, ax)
    assert said() == "Graph: 5 arrows forward, 2 back: grad_value [3, 5], grad_scores [2, 3]."
    labels = {text.get_text(): text.get_color() for text in ax.texts if text.get_text()}
    assert "query\n[2, 4]" in labels and "grad_query" not in labels
    arrows = [text.arrow_patch for text in ax.texts if getattr(text, "arrow_patch", None)]
    colours = [mpl.colors.to_hex(arrow.get_edgecolor()).upper() for arrow in arrows]
    assert len(arrows) == 7 and colours.count(labels["grad_value"]) == 2  # back in the colour of forward


@pytest.mark.parametrize("allow_stdin", [True, False, None])
def test_a_live_curve_is_drawn_only_if_a_person_is_there(allow_stdin, monkeypatch):
    import IPython

    class Kernel:
        def get_parent(self):
            return {} if allow_stdin is None else {"content": {"allow_stdin": allow_stdin}}

    class Handle:
        def update(self, figure):
            shown.append([tuple(point) for point in figure.axes[0].lines[0].get_xydata()])

    shown = []
    monkeypatch.setattr(IPython, "get_ipython", lambda: type("Shell", (), {"kernel": Kernel()}))
    monkeypatch.setattr(IPython.display, "display", lambda figure, display_id: Handle())
    add = plots.live_curve("step", "loss")
    add(0, 1.0)
    add(10, 0.5)
    assert shown == ([[(0, 1.0)], [(0, 1.0), (10, 0.5)]] if allow_stdin else [])


def test_a_live_curve_outside_of_a_notebook_is_not_drawn():
    assert plots.live_curve("step", "loss")(0, 1.0) is None


# Words of any script --------------------------------------------------------------------------------------------------

CHINESE = ["那", "只", "动", "物", "，", "累", "了", "。"]


@pytest.fixture
def fresh_fonts(monkeypatch):
    """matplotlib as it is where no font but its own knows Chinese, before anything Chinese was drawn."""
    manager = font_manager.fontManager
    own = [font for font in manager.ttflist if font.fname.startswith(mpl.get_data_path())]
    monkeypatch.setattr(manager, "ttflist", own)
    manager._findfont_cached.cache_clear()
    for function in (fonts.paths, fonts.path_of):
        function.cache_clear()
    with mpl.rc_context({"font.family": ["sans-serif"]}):
        yield
    for function in (fonts.paths, fonts.path_of, manager._findfont_cached):
        function.cache_clear()


def draw_all(words):
    """Every function that draws words, each on a figure of its own, as the first thing that is drawn."""
    n = len(words)
    weights = np.full((n, n), 1 / n)
    yield lambda ax: plots.weights_heatmap(weights, words, plots.numbered(words), ax)
    yield lambda ax: plots.mask_grid(weights > 0, words, words, ax)
    yield lambda ax: plots.jacobian_heatmap(np.diag(weights[0]), words, ax)
    yield lambda ax: plots.sentence_arrows(words, weights[0], 0, ax)
    yield lambda ax: plots.bars(weights[0], words, 0, ax)
    yield lambda ax: plots.feature_table(np.eye(n), words, words, ax)
    yield lambda ax: plots.curves([1, 2], {words[0]: [0, 1]}, ax, xlabel="n", ylabel="share")
    yield lambda ax: plots.weighted_mean(np.eye(n)[:, :2], weights[0], words, ax)


@pytest.mark.parametrize("number", range(8))
def test_chinese_is_drawn_by_the_font_of_the_course_where_the_machine_has_none(fresh_fonts, caplog, number):
    draw = list(draw_all(CHINESE))[number]
    fig, ax = plt.subplots(layout="constrained")
    draw(ax)
    fig.canvas.draw()  # a missing glyph is a UserWarning, and so an error
    assert mpl.rcParams["font.family"] == ["sans-serif", "Attnlib Sans SC"]
    plt.close(fig)
    assert not caplog.records  # nor does matplotlib log that it found no bold one


def test_english_needs_no_other_font(fresh_fonts):
    assert plots.readable(["The", "didn't", "café", "−1", "ω"]) == ["The", "didn't", "café", "−1", "ω"]
    assert mpl.rcParams["font.family"] == ["sans-serif"] and fonts.path_of.cache_info().currsize == 0


def test_what_no_font_knows_is_written_otherwise(fresh_fonts):
    words = ["🙂", "\u200b", "a\nb", "ｶ", "㎏", "动🙂"]
    assert plots.readable(words) == ["U+1F642", "U+200B", "aU+000Ab", "U+FF76", "kg", "动U+1F642"]
    fig, ax = plt.subplots()
    plots.bars(np.ones(len(words)), words, 0, ax)
    fig.canvas.draw()
    plt.close(fig)


def test_the_font_knows_the_first_level_of_gb_2312_and_all_chinese_of_the_lessons(fresh_fonts):
    known = fonts.characters(fonts.path_of(fonts.OURS))
    codes = [bytes([row, cell]) for row in range(0xB0, 0xD7) for cell in range(0xA1, 0xFF)]
    assert all(ord(code.decode("gb2312")) in known for code in codes)
    texts = "".join(
        path.read_text(encoding="utf-8") for path in Path(plots.__file__).parents[2].glob("notebooks/*.ipynb")
    )
    assert all(ord(char) in known for char in texts if "\u4e00" <= char <= "\u9fff")


def test_wide_characters_count_twice():
    assert [fonts.width(word) for word in ("cat", "动物", "e\u0301", "")] == [3, 4, 1, 0]


MAPS = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 4, 3))  # [layers, heads, n, n]


def test_all_heads_at_a_glance(ax, said):
    sharp = MAPS.copy()
    sharp[1, 2] = np.eye(3)
    sharp[0, 3] = 1 / 3
    plots.head_grid(sharp, ax)
    assert said() == (
        "Map of 2 layers with 4 heads. The largest weight of a row is on average 1.00 in layer 1 head 2, the sharpest, "
        "and 0.33 in layer 0 head 3, the most even."
    )
    assert ax.images[0].get_array().shape == (2 * 3 + 2, 4 * 3 + 3 * 2) and ax.images[0].get_clim() == (0, 1)


def test_the_viewer_draws_one_head_once_where_nobody_asks_for_more(said, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: None)
    assert plots.head_viewer(WORDS, MAPS, layer=1, head=3) is None
    assert said().startswith("Map, the largest weight of each row: 0 the at ")
    assert not plt.get_fignums()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of ipywidgets 7.7 itself
def test_the_viewer_is_moved_by_sliders_and_says_what_it_shows(said, monkeypatch):
    pytest.importorskip("ipywidgets")
    monkeypatch.setattr(plt, "show", lambda: None)
    viewer = plots.head_viewer(WORDS, MAPS, interactive=True)
    layer, head, _ = viewer.children
    assert (layer.description, layer.max, head.description, head.max) == ("layer", 1, "head", 3)
    seen = {said()}
    for slider, value in ((layer, 1), (head, 2), (layer, 0)):
        slider.value = value
        seen.add(said())
    assert len(seen) == 4 and all("Map, the largest weight of each row" in sentence for sentence in seen)


def test_the_viewer_takes_tensors_and_refuses_what_is_not_there(monkeypatch):
    with pytest.raises(
        ValueError, match=r"layer=2, head=0 and 3 tokens, with maps \[2, 4, 3, 3\]; expected a layer from 0 to 1"
    ):
        plots.head_viewer(WORDS, MAPS, layer=2)
    with pytest.raises(ValueError, match="2 tokens"):
        plots.head_viewer(WORDS[:2], MAPS)
    with pytest.raises(ValueError, match=r"maps have shape \[4, 3, 3\]; expected"):
        plots.head_viewer(WORDS, MAPS[0])
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ModuleNotFoundError, match="pip install ipywidgets"):
        plots.head_viewer(WORDS, MAPS, interactive=True)
