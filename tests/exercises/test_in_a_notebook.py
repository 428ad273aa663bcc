"""Checks inside IPython: cells run again in any order, syntax errors, and the learner's own line numbers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

CELLS = {
    "import": "import numpy as np\nfrom attnlib.exercises.lesson_02 import check",
    "stub": "def softmax(scores):\n    return ...  # your code here",
    "right": "def softmax(scores):\n    e = np.exp(scores - scores.max(axis=-1, keepdims=True))\n"
    "    return e / e.sum(axis=-1, keepdims=True)",
    "wrong": "def softmax(scores):\n    return np.exp(scores) / np.exp(scores).sum()",
    "broken": "def softmax(scores):\n    return np.exp(scores",
    "broken def": "def softmax(scores)\n    return scores",
    "raises": "def softmax(scores):\n    total = scores.sum()\n    return scores / undefined",
    "course": "from attnlib.numpy import softmax",
    "lambda": "softmax = lambda s: right_one(s)",
    "broken differently": "deff softmax(scores):\n    return scores",
    "fails before": "import scipyy\ndef softmax(scores):\n    return scores",
    "twice": "def softmax(scores, scores):\n    return scores",
    "imported": "from scipy.special import softmax",
    "assigned": "other = lambda s: right_one(s)\nsoftmax = other",
    "right one": "def right_one(s):\n    e = np.exp(s - s.max(axis=-1, keepdims=True))\n    return e / e.sum(axis=-1, keepdims=True)",
    "prints": "def softmax(scores):\n    from IPython.display import display\n    display(scores)\n    print('shape', scores.shape)\n"
    "    return scores * (scores.ndim == 1) + 0.5",
    "called": "softmax(np.zeros(2))",
    "check": 'softmax = check("softmax")',
}


@pytest.fixture(scope="module")
def shell():
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    shell = InteractiveShell.instance(config=config)
    yield shell
    InteractiveShell.clear_instance()
    shell.history_manager.end_session()


@pytest.fixture
def run(shell, capsys):
    """Run cells in a new notebook, each as in Jupyter, and return what the last one printed."""

    def run(*names):
        shell.reset(new_session=True)
        shell.run_cell(CELLS["import"], store_history=True)
        for name in names:
            capsys.readouterr()
            shell.run_cell(CELLS[name], store_history=True)
        return " ".join(capsys.readouterr().out.split())

    return run


def test_a_syntax_error_is_named_even_where_an_older_cell_still_works(run):
    text = run("right", "check", "broken", "check")
    assert "not yet" in text and "SyntaxError, '(' was never closed" in text
    assert "in line 2 of your cell: return np.exp(scores" in text
    assert "SyntaxError" in run("broken def", "check")
    assert "right in all 11 cases" in run("broken", "right", "check")
    assert "SyntaxError" in run("right", "broken differently", "check")
    assert "SyntaxError" in run("right", "twice", "check")


def test_a_cell_that_failed_on_its_way_is_not_passed_over(run):
    assert "Your newest cell did not run to its end" in run("right", "fails before", "check")
    assert "right in all 11 cases" in run("fails before", "right", "called", "check")


def test_a_broken_cell_is_forgotten_once_the_name_is_bound_otherwise(run):
    assert "SyntaxError" not in run("broken", "imported", "check")
    assert "right in all 11 cases" in run("right one", "broken", "assigned", "check")


def test_figures_and_prints_of_an_answer_do_not_flood_the_check(run):
    text = run("prints", "check")
    assert (
        text.count("shape (") == 1
        and "It printed: shape (1, 2)" in text
        and "array([[" not in text.split("scores = ")[0]
    )


def test_an_exception_is_shown_with_the_line_of_the_cell(run):
    text = run("raises", "check")
    assert "It raises NameError: name 'undefined' is not defined" in text
    assert "in line 3 of your cell: return scores / undefined" in text


def test_verdicts_follow_the_cells(run):
    assert "not started" in run("stub", "check")
    assert "This is what comes of: one sum for the whole array" in run("wrong", "check")
    assert "right in all 11 cases" in run("right", "check")
    assert "This is the course's own" in run("stub", "check", "check")
    assert "This is the course's own" in run("course", "check")
    assert "There is no such name" in run("check")
    assert "right in all 11 cases" in run("right", "check", "check")


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from(["stub", "right", "wrong", "broken", "raises", "course", "check"]), max_size=6))
def test_cells_in_any_order_never_show_a_false_right(shell, names):
    """Right is said if, and only if, the newest cell that defines softmax is right and the name is still the learner's."""
    import contextlib
    import io

    shell.reset(new_session=True)
    shell.run_cell(CELLS["import"], store_history=True)
    mine, newest = None, None
    for name in [*names, "check"]:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            shell.run_cell(CELLS[name], store_history=True)
        if name == "check":
            said_right = "softmax: right" in printed.getvalue()
            assert said_right == (mine == "right" and newest != "broken"), names
            mine = mine if said_right else "course"
        elif name == "course":
            mine = "course"
        else:
            newest = name
            mine = mine if name == "broken" else name
