"""No solution is sent before it has been judged, what lessons give is given, and cases cannot be learned by heart."""

import ast
import inspect
import json
import re
from pathlib import Path

import pytest

from attnlib.exercises import all_exercises
from attnlib.marking import assignment
from attnlib.marking.assignment import GIVEN, NOTEBOOKS, Assignment, Task, exercises_of
from attnlib.marking.marker import Marker
from attnlib.marking.prepared import Prepared
from attnlib.marking.sandbox import Sandbox
from attnlib.marking.serving import INSIDE, OUTSIDE, source_of
from attnlib.marking.sources import NotSendable, Sources

LESSONS = sorted({key[:2] for key in all_exercises()})
SOLUTIONS = {
    id(item): item.__name__
    for exercise in all_exercises().values()
    for item in (exercise.solution, exercise.reference, *exercise.accepts)
}


@pytest.mark.parametrize("module", [*OUTSIDE, *INSIDE, "attnlib.exercises.modules"])
def test_what_is_sent_whole_imports_no_solution(module):
    allowed = {*OUTSIDE, *INSIDE, "attnlib.exercises.modules", "attnlib.marking.inside"}
    for node in ast.walk(ast.parse(source_of(module))):
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        assert all(name in allowed for name in names if name and name.startswith("attnlib"))
    for exercise in all_exercises().values():
        body = inspect.getsource(exercise.solution).split("\n", 1)[1].strip()
        assert body[-60:] not in source_of(module)


@pytest.mark.parametrize("lesson", LESSONS)
def test_what_is_sent_with_an_exercise_holds_no_solution_that_is_still_to_be_judged(lesson):
    marker = Marker(Assignment.of_lessons([lesson]), Sandbox("unshare"), seed=0)  # it raises where a `call` holds one
    for number, prepared in enumerate(marker.prepared):
        forbidden = marker.forbidden(number)
        assert {id(prepared.solution), id(prepared.reference)} <= forbidden
        if prepared.call:
            assert not forbidden & marker.sources_of(prepared.call).ids
        for path in marker.assignment.given:
            sources = marker.sources_of_path(path)
            assert sources and sources.texts()
    for prepared in marker.prepared:
        assert marker.sources_of(prepared.solution).texts()


@pytest.mark.parametrize("lesson", LESSONS)
def test_what_a_lesson_imports_for_its_reader_is_given(lesson):
    """A lesson that imports more functions needs them in `GIVEN`, if an answer may call them."""
    for path in NOTEBOOKS.glob(f"{lesson}_*.ipynb"):
        text = "\n".join("".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"])
        found = set()
        for module, names in re.findall(r"^from (attnlib\.(?:numpy|torch)) import ([\w, ]+)$", text, re.MULTILINE):
            for name in names.split(", "):
                try:
                    Sources().give(module, name)
                    found.add(f"{module}.{name}")
                except NotSendable:
                    continue
        answers = {e.solution for e in exercises_of(lesson).values()}
        used = {name for solution in answers for name in inspect.getsource(solution).replace("(", " ").split()}
        module = {path for path in GIVEN.get(lesson, ()) if path.startswith("attnlib.data.sentence.")}
        assert not module or re.search(r"^from attnlib\.data import .*sentence", text, re.MULTILINE)
        assert set(GIVEN.get(lesson, ())) - module <= found, "GIVEN names what the lesson does not import"
        assert {f"attnlib.torch.{n}" for n in used} & found <= set(GIVEN.get(lesson, ())), "a solution needs it"


def test_a_task_that_comes_too_early_is_an_error():
    tasks = exercises_of("02")
    early = Marker.__new__(Marker)
    early._sources, early.prepared = {}, [Prepared.of("02", tasks["softmax"], 0)]

    def call_softmax(function, scores):
        return tasks["softmax"].solution(scores)

    object.__setattr__(early.prepared[0], "call", exercises_of("02")["softmax"].reference)
    with pytest.raises(ValueError, match="asks for later"):
        early._check_order()


@pytest.mark.parametrize("key", all_exercises())
def test_cases_differ_from_run_to_run(key):
    one, other = (Prepared.of(key[:2], all_exercises()[key], seed).packed for seed in (1, 2))
    differ = sum(a != b for a, b in zip(one, other))
    needed = 1 if key in DECIDED_BY_FEW else 2
    assert differ >= needed, f"{key}: draw cases for it in attnlib/marking/fresh.py"


DECIDED_BY_FEW = {"05-previous_and_first"}


def test_an_assignment_comes_from_lessons_from_a_notebook_and_from_json(tmp_path):
    whole = Assignment.of_lessons(["02", "04"], {"softmax": 5})
    assert [task.name for task in whole.tasks][:2] == ["softmax", "attention_scores"]
    assert whole.tasks[0].points == 5 and len(whole.tasks) == 8
    (lesson,) = NOTEBOOKS.glob("02_*.ipynb")
    assert [task.points for task in Assignment.from_file(lesson).tasks] == [2, 1, 3, 2]
    asked = {"assignment": "ps1", "exercises": [{"lesson": "04", "name": "causal_mask", "points": 3}]}
    for name, content in (("a.json", asked), ("a.ipynb", {"cells": [], "metadata": {"attnlib": asked}})):
        path = tmp_path / name
        path.write_text(json.dumps(content), encoding="utf-8")
        assert Assignment.from_file(path) == Assignment("ps1", (Task("04", "causal_mask", 3.0),))
    assert Assignment("a", (Task("02", "softmax"),)).digest != Assignment("a", (Task("02", "softmax", 2),)).digest


def test_errors_of_an_assignment():
    with pytest.raises(ValueError, match="no exercise 'sotfmax' in lesson 02. Try one of: softmax"):
        Assignment("a", (Task("02", "sotfmax"),))
    with pytest.raises(ValueError, match="asks twice for softmax"):
        Assignment("a", (Task("02", "softmax"), Task("02", "softmax")))
    with pytest.raises(ValueError, match="asks for no exercise"):
        Assignment("a", ())
    with pytest.raises(ValueError, match="no lesson 99"):
        Assignment.of_lessons(["99"])


def test_nothing_in_a_lesson_imports_marking():
    for path in Path(assignment.__file__).parents[1].rglob("*.py"):
        if "marking" not in path.parts:
            assert "attnlib.marking" not in path.read_text(encoding="utf-8"), path
