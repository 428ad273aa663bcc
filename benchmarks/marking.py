"""Marking a class beside nbgrader's own autograde, on the same files: `python benchmarks/marking.py`.

Processor seconds are compared, since other work on the machine changes the time on the clock. A class is made of right,
wrong and blank answers; nobody's code is used. With `--nbgrader 0` nbgrader is left out. With PyTorch:
`--lessons 08,09,10,11,12`.
"""

import argparse
import json
import os
import resource
import secrets
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

from attnlib.marking.assignment import Assignment, Task
from attnlib.marking.batch import close_markers, mark_all
from attnlib.marking.serving import choose
from attnlib.marking.submissions import find

HEAD = "import math\nimport re\nimport numpy as np"
TORCH = "import torch\nimport torch.nn.functional as F\nfrom torch import nn"


def cells(assignment: Assignment, student: int) -> list[tuple[str, dict]]:
    """Code cells of one student, each with nbgrader's metadata."""
    sources, lesson = [(f"# student {student}\n{HEAD}" + (f"\n{TORCH}" if assignment.needs_torch else ""), {})], ""
    for path in given(assignment):
        module, _, name = path.rpartition(".")
        sources.append((f"from {module} import {name}", {}))
    for number, task in enumerate(assignment.tasks):
        if task.lesson != lesson:
            lesson = task.lesson
            sources.append((f"from attnlib.exercises.lesson_{lesson} import check", {}))
        sources.append((answer(task, student * 7 + number * 3), metadata(task.name, solution=True)))
        check = metadata("check-" + task.name, grade=True, locked=True)
        check["nbgrader"]["points"] = 1
        sources.append((f'{task.name} = check("{task.name}")', check))
    return sources


@cache
def given(assignment: Assignment) -> tuple[str, ...]:
    return assignment.given


@cache
def solution(task: Task) -> str:
    return task.exercise.solution_source()


def answer(task: Task, kind: int) -> str:
    """Of ten answers one is blank, one is wrong, and eight are right."""
    source = solution(task)
    if kind % 10 == 0:
        head = source.split("\n")[0]
        return f"{head}\n    pass" if head.startswith("class") else f"{head}\n    return ..."
    if kind % 10 == 1 and source.startswith("def "):
        hidden = source.replace(f"def {task.name}(", f"def almost_{task.name}(", 1)
        return f"{hidden}\n\ndef {task.name}(*args):\n    return 2 * almost_{task.name}(*args)"
    return source


def metadata(grade_id: str, **changed: bool) -> dict:
    """Of nbgrader, schema 3."""
    base = {"grade": False, "solution": False, "locked": False, "task": False, "schema_version": 3}
    return {"nbgrader": base | {"grade_id": grade_id} | changed}


def write(path: Path, sources: list[tuple[str, dict]]) -> None:
    """A notebook."""
    path.parent.mkdir(parents=True, exist_ok=True)
    base = {"cell_type": "code", "execution_count": None, "outputs": []}
    found = [base | {"id": f"c{n}", "source": source, "metadata": told} for n, (source, told) in enumerate(sources)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = {"cells": found, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook), encoding="utf-8")


def processor_seconds() -> float:
    """Of this process and its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def ours(assignment: Assignment, folder: Path, students: int, jobs: int) -> float:
    """Mark a class; processor seconds a submission."""
    for student in range(students):
        write(folder / "flat" / f"s{student:05}.ipynb", cells(assignment, student))
    sandbox = choose()
    before, start = processor_seconds(), time.perf_counter()
    submissions = find(folder / "flat", [task.name for task in assignment.tasks])
    entries = mark_all(submissions, assignment, sandbox, folder / "m.jsonl", secrets.randbits(128), jobs=jobs)
    close_markers()
    wall = time.perf_counter() - start
    if jobs > 1:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True)
    used = (processor_seconds() - before) / students
    share = sum(entry["points"] for entry in entries) / sum(entry["of"] for entry in entries)
    print(
        f"isolated: {students} submissions of {len(assignment.tasks)} exercises with {jobs} jobs in {wall:.0f} s on the"
    )
    print(f"          clock, {used:.3f} processor s each, {share:.0%} of the points", flush=True)
    return used


def theirs(assignment: Assignment, folder: Path, students: int) -> float:
    """The same by nbgrader; processor seconds a submission."""
    write(folder / "source" / "ps" / "ps.ipynb", cells(assignment, 0))
    for student in range(students):
        write(folder / "submitted" / f"s{student:05}" / "ps" / "ps.ipynb", cells(assignment, student))
    config = 'c = get_config()\nc.CourseDirectory.course_id = "x"\nc.ClearSolutions.enabled = False\n'
    folder.joinpath("nbgrader_config.py").write_text(config, encoding="utf-8")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    root = str(Path(__file__).parents[1])
    environment = os.environ | {"PATH": path, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"}
    for step in ("generate_assignment", "autograde"):
        before = processor_seconds()
        command = [sys.executable, "-m", "nbgrader", step, "ps", "--log-level=ERROR"]
        subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    used = (processor_seconds() - before) / students
    done = len(list(folder.glob("autograded/*/ps/ps.ipynb")))
    print(f"nbgrader: {done} of {students} submissions marked, {used:.3f} processor s each", flush=True)
    return used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lessons", default="02,03,04,05,06", help="whose first 20 exercises are asked for")
    parser.add_argument("--students", type=int, default=1_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--nbgrader", type=int, default=20, help="submissions that nbgrader marks too")
    options = parser.parse_args()
    whole = Assignment.of_lessons(options.lessons.split(","))
    assignment = Assignment("benchmark", whole.tasks[:20])
    with tempfile.TemporaryDirectory() as folder:
        mine = ours(assignment, Path(folder, "ours"), options.students, options.jobs)
        if options.nbgrader:
            small = ours(assignment, Path(folder, "few"), options.nbgrader, 1)
            its = theirs(assignment, Path(folder, "theirs"), options.nbgrader)
            print(
                f"nbgrader takes {its / small:.1f} times the processor time on {options.nbgrader} submissions, start included,"
            )
            print(f"          and {its / mine:.1f} times that of the whole class")


if __name__ == "__main__":
    main()
