"""Runs that were recorded, and what they say together: mean and interval of each configuration (lesson 11).

``results/imdb.csv`` is made by ``make imdb``, a row for each run. The package holds the same file, so that a lesson finds it
wherever it is opened.
"""

import csv
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

import numpy as np

# Student's t: a share of .975 lies below these, by degrees of freedom; the first entry is of none (Student 1908)
STUDENT = np.array(
    [np.inf, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131]
)
NUMBERS = {"seed": int, "epochs": int, "length": int, "parameters": int, "threads": int}


class Line(NamedTuple):
    """One configuration of a table: how often it was run, mean, ends of the 95 % interval, seconds and parameters."""

    configuration: str
    n_runs: int
    mean: float
    low: float
    high: float
    seconds: float
    parameters: int


def confidence_interval(scores: Sequence[float], student: Sequence[float] = STUDENT) -> tuple[float, float]:
    """Where the mean of endless runs lies, as far as a few runs can tell: mean ± t · s / √n.

    Student, *The Probable Error of a Mean* (1908).

    Parameters
    ----------
    scores : n numbers
        At least two, one from each run.
    student : array
        Entry f is Student's t for f degrees of freedom. The default is for 95 %, up to 16 runs.

    Returns
    -------
    low, high : float
        Of all intervals that are made in this way, 95 % hold the mean of endless runs, if the runs are independent and
        their scores normal.

    Raises
    ------
    ValueError
        If there are fewer than two scores, or more than the table knows.
    """
    scores = np.asarray(scores, dtype=float)
    if scores.ndim != 1 or not 2 <= len(scores) <= len(student):
        raise ValueError(
            f"scores have shape {list(scores.shape)}; expected 2 to {len(student)} numbers, one for each run. A single run "
            f"tells nothing about how much runs differ: try another seed."
        )
    half = student[len(scores) - 1] * scores.std(ddof=1) / np.sqrt(len(scores))
    return float(scores.mean() - half), float(scores.mean() + half)


def recorded_runs(name: str = "imdb") -> list[dict]:
    """The rows of ``results/<name>.csv`` as the package holds them, numbers as numbers."""
    with (files("attnlib.data") / "recorded" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [{key: _number(key, value) for key, value in row.items()} for row in csv.DictReader(file)]


def recorded_probabilities(name: str = "imdb") -> dict[str, np.ndarray]:
    """What some readers said of each test review of ``reviews.split(reviews.imdb())``, from their first seed.

    Returns
    -------
    said : dict of arrays
        For each reader the probability of praise [2430], float16; and ``"labels"`` [2430].
    """
    with (files("attnlib.data") / "recorded" / f"{name}_test.npz").open("rb") as file, np.load(file) as arrays:
        return dict(arrays)


def table(runs: Sequence[dict], configurations: Sequence[str] | None = None, score: str = "test") -> list[Line]:
    """A line for each configuration, in the order given, or of the runs.

    Parameters
    ----------
    runs : sequence of dict
        As ``recorded_runs`` returns them.
    configurations : names, optional
    score : "test" or "validation"
    """
    by_name: dict[str, list[dict]] = {}
    for run in runs:
        by_name.setdefault(run["configuration"], []).append(run)
    lines = []
    for name in by_name if configurations is None else configurations:
        if name not in by_name:
            raise ValueError(f"no runs of {name!r}; expected one of: {', '.join(by_name)}.")
        rows = by_name[name]
        scores = [row[f"accuracy_{score}"] for row in rows]
        low, high = confidence_interval(scores)
        seconds = float(np.mean([row["seconds"] for row in rows]))
        lines.append(Line(name, len(rows), float(np.mean(scores)), low, high, seconds, rows[0]["parameters"]))
    return lines


def show_table(lines: Sequence[Line]) -> None:
    """Print a table of accuracies in percent, with seconds of processor time and millions of parameters."""
    width = max(len("configuration"), *(len(line.configuration) for line in lines))
    print(f"{'configuration':<{width}}  runs   mean  95 % interval  seconds  million numbers")
    for line in lines:
        interval = f"{100 * line.low:.1f} to {100 * line.high:.1f}"
        print(
            f"{line.configuration:<{width}}  {line.n_runs:>4}  {100 * line.mean:.1f}  {interval:<13}  {line.seconds:>7.0f}  "
            f"{line.parameters / 1e6:>15.2f}"
        )


def _number(key: str, value: str) -> int | float | str:
    if key in NUMBERS:
        return NUMBERS[key](value)
    try:
        return float(value) if not key.startswith(("configuration", "python", "version")) else value
    except ValueError:
        return value
