"""Writing an assignment: a notebook with chosen exercises, and an nbgrader course folder around it."""

import ast
import inspect
import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlib.marking.assignment import NOTEBOOKS, Assignment, Task, exercises_of, notebook_points
from attnlib.marking.inside.reading import uses
from attnlib.marking.lessons import Lesson

ANSWER = "*Write your answer here, in place of this line.*"
NAME = re.compile(r"[A-Za-z0-9_-]+")
CONFIG = """\
# nbgrader's settings for this course: run nbgrader in this folder.
from pathlib import Path

c = get_config()
c.CourseDirectory.course_id = "attention"
c.CourseDirectory.root = str(Path(__file__).parent)
c.ClearSolutions.enabled = False  # the notebook is the students' version already
c.OverwriteCells.add_missing_cells = True  # a check that a student deleted comes back

# Students' code runs in attnlib's sandbox, in place of nbgrader's kernel. Without these two lists nbgrader runs it with
# your rights, beside the gradebook.
c.Autograde.sanitize_preprocessors = [
    "attnlib.marking.nbgrader.WholeNotebook",  # lost metadata, deleted and copied cells; drops what HTML outputs could do
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    "attnlib.marking.nbgrader.IsolatedMarks",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# Texts of students are shown in feedback and in the formgrader: without what could act in a browser.
c.HTMLExporter.filters = {"markdown2html": "attnlib.marking.nbgrader.clean_markdown"}

c.IsolatedMarks.image = ""  # a container image with Python, NumPy and PyTorch, where Linux namespaces are not allowed
c.IsolatedMarks.unsafe = False  # True: no sandbox, a process alone; every verdict will say so
"""


@dataclass(frozen=True)
class Question:
    """A question that is marked by hand."""

    text: str
    points: float = 1.0


def chosen(lessons: Iterable[str], exercises: Iterable[str], points: dict[str, float], name: str) -> Assignment:
    """The assignment with these exercises, in the course's order; all of the lessons' if none is named.

    Raises
    ------
    ValueError
        For lessons, exercises and points that do not exist, with those that do.
    """
    lessons, exercises = list(dict.fromkeys(lessons)), list(dict.fromkeys(exercises))
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot be an assignment's name; use letters, digits, - and _, such as ps1")
    known = [(lesson, exercise) for lesson in lessons for exercise in exercises_in(lesson)]
    listed = "\n".join(f"  {lesson}: {', '.join(exercises_in(lesson))}" for lesson in lessons)
    for asked in exercises:
        if not any(asked in (exercise, f"{lesson}-{exercise}") for lesson, exercise in known):
            raise ValueError(f"no exercise {asked!r} in these lessons. There are\n{listed}")
    tasks = []
    for lesson, exercise in known:
        if not exercises or {exercise, f"{lesson}-{exercise}"} & {*exercises}:
            worth = points.get(exercise, notebook_points(lesson).get(exercise, 1))
            tasks.append(Task(lesson, exercise, checked(worth, exercise)))
    names = [task.name for task in tasks]
    if twice := {task for task in names if names.count(task) > 1}:
        one = sorted(twice)[0]
        where = " and ".join(task.lesson for task in tasks if task.name == one)
        raise ValueError(f"lessons {where} both have {one}; choose one, such as --exercises {tasks[-1].lesson}-{one}")
    if unknown := set(points) - set(names):
        raise ValueError(
            f"points for {', '.join(sorted(unknown))}, which is not asked for; asked for: {', '.join(names)}"
        )
    if idle := set(lessons) - {task.lesson for task in tasks}:
        raise ValueError(f"no exercise of lesson {', '.join(sorted(idle))} is chosen. There are\n{listed}")
    return Assignment(name, tuple(tasks))


def checked(points: float, of: str) -> float:
    """Points as nbgrader takes them."""
    if not (math.isfinite(points) and points >= 0):
        raise ValueError(f"{points} points for {of}: expected a number from 0 on")
    return float(points)


def exercises_in(lesson: str) -> list[str]:
    """Names of the exercises that stand in a lesson's notebook."""
    there = sorted(path.name[:2] for path in NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
    if not there:
        raise ValueError(
            f"no lessons in {NOTEBOOKS}: assign needs a checkout of the course (git clone; pip install -e .)"
        )
    if lesson not in there:
        raise ValueError(f"there is no lesson {lesson}. There are {', '.join(there)}.")
    names = notebook_points(lesson)
    return [name for name in exercises_of(lesson) if name in names]


def notebook(assignment: Assignment, questions: Iterable[Question] = (), plain: bool = False) -> dict:
    """The notebook of an assignment, in nbformat 4.5.

    Parameters
    ----------
    assignment : what is asked for
    questions : that are marked by hand, behind the exercises
    plain : without nbgrader's metadata
    """
    lessons = {task.lesson: Lesson.read(task.lesson) for task in assignment.tasks}
    titles = [f"* [{lesson.title}]({lesson.address})" for lesson in lessons.values()]
    questions = list(questions)
    worth = sum(task.points for task in assignment.tasks) + sum(question.points for question in questions)
    head = [f"# {assignment.name}", f"{amount(worth)}. It belongs to", "\n".join(titles), HOW]
    several = len(lessons) > 1
    checks = {number: f"check_{number}" if several else "check" for number in lessons}
    cells = [markdown("\n\n".join(head)), code(next(iter(lessons.values())).setup)]
    cells += [code(imports(assignment, lessons, checks))]
    if helpers := needed_helpers(assignment, lessons):
        lines = [f"from {path.rpartition('.')[0]} import {path.rpartition('.')[2]}" for path in helpers]
        cells += [code("\n".join(["# The course's own, which your answers may call.", *lines]))]
    for task in assignment.tasks:
        part = lessons[task.lesson].parts[task.name]
        grading = (
            {} if plain else nbgrader("check-" + task.name, grade=True, locked=True) | {"points": number(task.points)}
        )
        heading, _, text = part.text.partition("\n")
        recalled = f"\n\n<details><summary>From the lesson</summary>\n\n{part.before}\n\n</details>\n"
        cells += [markdown(f"{heading} · {amount(task.points)}" + (recalled if part.before else "\n") + text)]
        cells += [code(part.stub, {} if plain else nbgrader(task.name, solution=True))]
        cells += [code(f'{task.name} = {checks[task.lesson]}("{task.name}")', grading)]
        cells += [markdown(part.hints)] if part.hints else []
    for place, question in enumerate(questions, start=1):
        grading = nbgrader(f"question-{place}", grade=True, solution=True)
        grading["points"] = number(checked(question.points, "a question"))
        cells += [markdown(f"### Question {place} · {amount(question.points)}\n\n{question.text}")]
        cells += [markdown(ANSWER, {} if plain else grading)]
    for place, cell in enumerate(cells):
        cell["id"] = f"{assignment.name[:40]}-c{place:02}"
    asked = [{"lesson": t.lesson, "name": t.name, "points": number(t.points)} for t in assignment.tasks]
    metadata = {
        "attnlib": {"assignment": assignment.name, "exercises": asked},
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


HOW = """\
For each exercise, write your answer in the cell with the three dots, run it, then run the check below it. A check tells you \
what is wrong; you may try as often as you like. Keep the names of functions and their arguments, and put all that an answer \
needs into functions and imports: when it is marked, only definitions, imports and assignments of your notebook are run, on \
other inputs than you see here. One wrong answer does not cost you the next: where yours is not right yet, the cells below \
use the course's own."""


def write(assignment: Assignment, folder: Path, questions: Iterable[Question] = ()) -> list[Path]:
    """Write an nbgrader course folder and a plain notebook; a folder that exists is never overwritten."""
    if folder.exists() or folder.is_symlink():
        raise ValueError(
            f"{folder} exists, and nothing is ever overwritten: name another folder by --to, or move it away"
        )
    texts = {
        f"{assignment.name}.ipynb": dumped(notebook(assignment, questions, plain=True)),
        f"source/{assignment.name}/{assignment.name}.ipynb": dumped(notebook(assignment, questions)),
        "nbgrader_config.py": CONFIG,
    }
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8", newline="\n")
    return [folder / path for path in texts]


def imports(assignment: Assignment, lessons: dict[str, Lesson], checks: dict[str, str]) -> str:
    """The import cell: what stubs, solutions and the course's kind of answers use, and the checks."""
    used = {"np", "torch", "nn", "F"} if assignment.needs_torch else {"np"}
    names = {task.name for task in assignment.tasks}
    for task in assignment.tasks:
        for source in (lessons[task.lesson].parts[task.name].stub, task.exercise.solution_source()):
            used |= uses(ast.parse(source))
    given = {path for path in assignment.given if path not in assignment.helpers}
    theirs, ours = {"np": "import numpy as np"}, {}
    if "F" in used:
        theirs["F"] = "import torch.nn.functional as F"
    for lesson in lessons.values():
        for module, name, bound, line in lesson.imports:
            if module.split(".")[0] != "attnlib" and bound in used:
                theirs[bound] = line
            elif bound not in names and any(f"{module}.{name}" in (p, p.rpartition(".")[0]) for p in given):
                ours[bound] = line
    for number, check in checks.items():
        alias = "" if check == "check" else f" as {check}"
        ours[check] = f"from attnlib.exercises.lesson_{number} import check{alias}"
    by_kind = [*sorted(theirs.values(), key=lambda line: (line.startswith("from"), line)), "", *sorted(ours.values())]
    return "\n".join(by_kind)


def needed_helpers(assignment: Assignment, lessons: dict[str, Lesson]) -> list[str]:
    """Of the functions of earlier exercises, those that the chosen ones speak of or that finished answers call."""
    parts = [lessons[task.lesson].parts[task.name] for task in assignment.tasks]
    finished = [task.exercise.solution_source() for task in assignment.tasks]
    finished += [inspect.getsource(task.exercise.reference) for task in assignment.tasks]
    text = "\n".join([*(part.text + part.stub + part.hints for part in parts), *finished])
    words = set(re.findall(r"\w+", text))
    found = {path.rpartition(".")[2]: path for path in assignment.helpers}
    return [path for name, path in found.items() if name in words]


def nbgrader(grade_id: str, **changed: bool) -> dict:
    """Nbgrader's metadata of a cell, of schema 3, which wants all of these."""
    usual = {"grade": False, "locked": False, "solution": False, "task": False, "schema_version": 3}
    return {"grade_id": grade_id} | usual | changed


def markdown(source: str, grading: dict | None = None) -> dict[str, Any]:
    """A cell of text."""
    return {"cell_type": "markdown", "metadata": {"nbgrader": grading} if grading else {}, "source": source}


def code(source: str, grading: dict | None = None) -> dict[str, Any]:
    """A cell of code, not run."""
    return markdown(source, grading) | {"cell_type": "code", "execution_count": None, "outputs": []}


def number(points: float) -> float | int:
    """Whole points without a fraction."""
    return int(points) if points == int(points) else points


def amount(points: float) -> str:
    """Points in a text, such as 1 point."""
    return f"{points:g} point{'s' * (points != 1)}"


def dumped(content: dict) -> str:
    """A notebook's file."""
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"
