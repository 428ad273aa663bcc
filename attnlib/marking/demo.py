"""`make nbgrader-demo`: a small class from the assignment to feedback, with nbgrader and the sandbox."""

import csv
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from attnlib.marking.assign import Question, chosen, write
from attnlib.marking.sample import STUDENTS

CLASS = {
    "s01-right": "everything is right",
    "s04-blank": "nothing was written",
    "s06": "softmax makes one sum for the whole array",
    "s15-syntax-error": "Python cannot read its softmax",
    "s17-endless": "its softmax never ends",
    "s28-patches": "all wrong, and it patches np.allclose and check",
}
QUESTION = Question("Why may the largest score of a row be subtracted before exp?", 2)


def call(folder: Path, *command: str) -> None:
    """Run nbgrader in a course folder; RuntimeError with what it said, if it fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # nbgrader calls alembic from there
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *command],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"nbgrader {' '.join(command)} failed:\n{done.stderr[-3_000:]}")


def prepare(folder: Path) -> None:
    """Write the assignment, and the version that students get."""
    if find_spec("nbgrader") is None:
        raise ModuleNotFoundError('nbgrader is missing, which this needs: pip install "attnlib[marking]"')
    write(chosen(["02"], [], {}, "ps1"), folder, [QUESTION])
    call(folder, "generate_assignment", "ps1")


def submit(folder: Path, student: str, notebook: dict) -> None:
    """Put a notebook where nbgrader looks for submissions."""
    path = folder / "submitted" / student / "ps1" / "ps1.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")


def mark(folder: Path) -> dict[str, float]:
    """Mark, write feedback, export; scores by student."""
    for command in (("autograde", "ps1"), ("generate_feedback", "ps1"), ("export", "--to", "grades.csv")):
        print("nbgrader", *command, flush=True)
        call(folder, *command)
    with (folder / "grades.csv").open(encoding="utf-8", newline="") as file:
        return {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}


def main(folder: Path) -> None:
    """Run the demo in a folder of its own, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    prepare(folder)
    for student in STUDENTS:
        if student.id in CLASS:
            submit(folder, student.id, student.notebook())
    scores = mark(folder)
    print("\nScores of 10. The 2 for the question in words wait for you.")
    for student, score in scores.items():
        print(f"  {student:<17} {score:g}  {CLASS[student]}")
    print(f"\nAssignment for students   {folder}/release/ps1/ps1.ipynb")
    print(f"Feedback, with verdicts   {folder}/feedback/STUDENT/ps1/ps1.html")
    print(f"Table                     {folder}/grades.csv")
    print(f"To mark the question      start `jupyter lab` in {folder}; menu Nbgrader, Formgrader")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
