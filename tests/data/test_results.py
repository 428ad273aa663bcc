"""The recorded runs, and the table that is made of them, computed again in another way."""

import csv
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from attnlib.data import results

ROOT = Path(__file__).parents[2]
RUNS = results.recorded_runs()


def test_the_package_holds_the_file_that_make_imdb_writes():
    recorded = (ROOT / "attnlib" / "data" / "recorded" / "imdb.csv").read_text(encoding="utf-8")
    assert (ROOT / "results" / "imdb.csv").read_text(encoding="utf-8") == recorded


def test_the_table_is_what_the_file_says():
    stats = pytest.importorskip("scipy.stats")
    with (ROOT / "results" / "imdb.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for line in results.table(RUNS):
        scores = [float(row["accuracy_test"]) for row in rows if row["configuration"] == line.configuration]
        assert line.n_runs == len(scores) and line.mean == pytest.approx(np.mean(scores))
        if np.ptp(scores) > 0:
            low, high = stats.t.interval(0.95, len(scores) - 1, np.mean(scores), stats.sem(scores))
            assert (line.low, line.high) == pytest.approx((low, high), abs=1e-5)


def test_every_configuration_was_run_with_three_seeds_and_an_equal_budget():
    seeds = {}
    for run in RUNS:
        seeds.setdefault(run["configuration"], []).append(run["seed"])
        assert 0.5 < run["accuracy_test"] < 1 and run["seconds"] > 0 and run["parameters"] > 0 and run["threads"] == 1
    assert all(sorted(found) == [0, 1, 2] for found in seeds.values()), seeds
    networks = [run for run in RUNS if not run["configuration"].startswith(("TF-IDF", "best"))]
    assert all(run["epochs"] == (4 if run["configuration"].endswith("4 epochs") else 2) for run in networks)
    wanted = "bag LSTM positions head heads layers post-norm CLS 64 256 TF-IDF bfloat16 best".split()
    assert all(any(word in name for name in seeds) for word in wanted)


def test_student_is_the_table_that_scipy_knows():
    stats = pytest.importorskip("scipy.stats")
    np.testing.assert_allclose(results.STUDENT[1:], stats.t.ppf(0.975, range(1, 16)), atol=5e-4)


def test_what_readers_said_fits_their_accuracy():
    said = results.recorded_probabilities()
    assert said["labels"].shape == (2_430,) and said["labels"].sum() == 1_215
    for name in set(said) - {"labels"}:
        (run,) = [run for run in RUNS if run["configuration"] == name and run["seed"] == 0]
        assert np.mean((said[name] > 0.5) == said["labels"]) == pytest.approx(run["accuracy_test"], abs=1e-3)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: results.confidence_interval([84.0]), "A single run tells nothing"),
        (lambda: results.confidence_interval(np.ones(17)), "expected 2 to 16 numbers"),
        (lambda: results.table(RUNS, ["attention"]), "no runs of 'attention'; expected one of: bag of embeddings"),
    ],
)
def test_errors_say_what_to_try(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_table_is_printed_in_percent(capsys):
    results.show_table([results.Line("attention", 3, 0.85, 0.84, 0.86, 60.0, 1_234_567)])
    assert capsys.readouterr().out.splitlines() == [
        "configuration  runs   mean  95 % interval  seconds  million numbers",
        "attention         3  85.0  84.0 to 86.0        60             1.23",
    ]


# The script ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def imdb(tmp_path, monkeypatch):
    """The script, with a few made-up reviews, writing elsewhere."""
    pytest.importorskip("torch"), pytest.importorskip("sklearn")
    spec = importlib.util.spec_from_file_location("imdb_script", ROOT / "tools" / "imdb.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, "imdb_script", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results" / "imdb.csv")
    monkeypatch.setattr(module, "BUILD", tmp_path)
    monkeypatch.setattr(module, "RECORDED", tmp_path)
    tokens = [["good" if i % 2 else "bad", "film", *["word"] * (i % 5)] for i in range(80)]
    labels = [i % 2 for i in range(80)]
    parts = ("train", "validation", "test")
    module.DATA |= {"tokens": dict.fromkeys(parts, tokens), "labels": dict.fromkeys(parts, labels), "vocabularies": {}}
    return module


def test_a_run_becomes_a_row_and_is_not_run_again(imdb):
    for name in ("attention, 4 heads", "TF-IDF, one and two words", "bag of embeddings"):
        imdb.add(imdb.run((name, 0)))
    assert imdb.finished() == {
        ("bag of embeddings", 0),
        ("TF-IDF, one and two words", 0),
        ("attention, 4 heads", 0),
    }
    with imdb.RESULTS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["configuration"] for row in rows][0] == "bag of embeddings"  # in the order of the table
    assert all(set(row) == set(imdb.COLUMNS) and all(row.values()) for row in rows)
    assert not list(imdb.BUILD.glob("*.part")) and not list(imdb.RESULTS.parent.glob("*.part"))
    assert len(np.load(imdb.BUILD / "bag of embeddings.npy")) == 80


def test_texts_are_cut_at_their_end_or_in_their_middle(imdb):
    imdb.DATA["tokens"] = {"train": [list("abcdefgh"), list("ab")]}
    whole, first, both = (
        imdb.tokens("train", imdb.Configuration(length=n, both_ends=ends))
        for n, ends in ((0, False), (5, False), (5, True))
    )
    assert ["".join(text) for text in whole] == ["abcdefgh", "ab"]
    assert ["".join(text) for text in first] == ["abcde", "ab"]
    assert ["".join(text) for text in both] == ["abfgh", "ab"]
    assert imdb.Pairs(2)(list("abc")) == ["a", "b", "c", "a b", "b c"]
