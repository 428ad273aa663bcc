"""A lesson is an nbgrader assignment: right answers get all marks, blank and wrong ones none, one right one its own."""

import csv
import importlib
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from notebooks import CHECK, LESSONS, read

nbgrader = pytest.importorskip("nbgrader")
LESSON = next(path for path in LESSONS if path.stem.startswith("02"))
CONFIG = """\
c = get_config()
c.CourseDirectory.course_id = "attention"
c.ClearSolutions.enabled = False  # the lesson is already the learner's version
c.OverwriteCells.add_missing_cells = True
c.ExecutePreprocessor.timeout = 60
"""


def call(folder, *command):
    """Run nbgrader. It calls alembic from the PATH, where the environment's own programs therefore come first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "JUPYTER_CONFIG_DIR": str(folder / "jupyter"), "MPLBACKEND": ""}
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3_000:]


def submission(release, answers):
    notebook = read(release)
    for stub, cell in zip(notebook.cells, notebook.cells[1:]):
        if (name := CHECK.match(cell.source)) and name[1] in answers:
            stub.source = answers[name[1]]
    return nbformat.writes(notebook)


def test_from_release_to_marks(tmp_path):
    check = importlib.import_module(f"attnlib.exercises.lesson_{LESSON.stem[:2]}").check
    source = tmp_path / "source" / "lesson" / LESSON.name
    source.parent.mkdir(parents=True)
    source.write_bytes(LESSON.read_bytes())
    (tmp_path / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    call(tmp_path, "generate_assignment", "lesson")
    release = tmp_path / "release" / "lesson" / LESSON.name
    assert "return ...  # your code here" in release.read_text(encoding="utf-8")

    right = {name: exercise.solution_source() for name, exercise in check.exercises.items()}
    wrong = {name: f"def {name}(*args):\n    return np.zeros(3)" for name in right}
    one = next(iter(check.exercises))
    points = {
        cell.metadata.nbgrader.grade_id.removeprefix("check-"): cell.metadata.nbgrader.points
        for cell in read(release).cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }
    assert set(points) == set(right)
    expected = {
        "right": (right, sum(points.values())),
        "blank": ({}, 0),
        "wrong": (wrong, 0),
        "one": ({one: right[one]}, points[one]),
        "slip": (right | {one: f"def {one}(:"}, sum(points.values()) - points[one]),  # a syntax error costs only itself
        "warns": (
            right | {one: right[one].replace("    return", '    print("hm")\n    np.log(np.zeros(1))\n    return')},
            8,
        ),
    }
    for student, (answers, _) in expected.items():
        file = tmp_path / "submitted" / student / "lesson" / LESSON.name
        file.parent.mkdir(parents=True)
        file.write_text(submission(release, answers), encoding="utf-8")
    call(tmp_path, "autograde", "lesson")
    call(tmp_path, "export", "--to", "grades.csv")
    with (tmp_path / "grades.csv").open(encoding="utf-8", newline="") as file:
        marks = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert marks == {student: total for student, (_, total) in expected.items()}
