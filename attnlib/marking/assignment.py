"""What is asked for: exercises with their points, and what a submission to them may import from this package."""

import hashlib
import importlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from attnlib import __version__
from attnlib.exercises.core import Checker, Exercise

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"  # in a checkout of the course
CHECK = re.compile(r'^\s*(\w+)\s*=\s*check(?:_(\d\d)|\w*)\("\1"\)', re.MULTILINE)
LESSON = re.compile(r"^\s*from attnlib\.exercises\.lesson_(\w+) import", re.MULTILINE)

# What the lessons' notebooks import for their readers, and a right answer may therefore call. Never what is asked for:
# that is held back until it has been judged.
GIVEN = {
    "00": ("attnlib.numpy.mean_of_values",),
    "01": (
        "attnlib.numpy.last_state",
        "attnlib.numpy.nearest_lookup",
        "attnlib.numpy.orthogonal",
        "attnlib.numpy.readout_accuracy",
    ),
    "02": (
        "attnlib.numpy.mean_of_values",
        "attnlib.data.sentence.FEATURES",
        "attnlib.data.sentence.features",
        "attnlib.data.sentence.tokens",
    ),
    "03": ("attnlib.numpy.softmax", "attnlib.numpy.steer_query"),
    "04": ("attnlib.numpy.attention_scores", "attnlib.numpy.scaled_dot_product_attention", "attnlib.numpy.softmax"),
    "05": ("attnlib.numpy.attention_scores", "attnlib.numpy.scaled_dot_product_attention", "attnlib.numpy.softmax"),
    "06": ("attnlib.numpy.attention_scores", "attnlib.numpy.scaled_dot_product_attention", "attnlib.numpy.softmax"),
    "07": ("attnlib.numpy.scaled_dot_product_attention", "attnlib.numpy.softmax"),
    "09": ("attnlib.torch.LayerNorm", "attnlib.torch.MultiHeadAttention"),
    "11": ("attnlib.torch.padding_mask",),
    "12": ("attnlib.torch.split_heads",),
}


@dataclass(frozen=True)
class Task:
    """One exercise of an assignment."""

    lesson: str
    name: str
    points: float = 1.0

    @property
    def exercise(self) -> Exercise:
        """The exercise itself."""
        return exercises_of(self.lesson)[self.name]


@dataclass(frozen=True)
class Assignment:
    """Exercises in the order in which they are judged."""

    name: str
    tasks: tuple[Task, ...]

    def __post_init__(self):
        names = [task.name for task in self.tasks]
        if not names:
            raise ValueError(f"assignment {self.name!r} asks for no exercise")
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"assignment {self.name!r} asks twice for {', '.join(sorted(twice))}; names must differ")
        for task in self.tasks:
            if task.name not in exercises_of(task.lesson):
                known = ", ".join(exercises_of(task.lesson))
                raise ValueError(f"no exercise {task.name!r} in lesson {task.lesson}. Try one of: {known}.")

    @property
    def needs_torch(self) -> bool:
        """Whether answers are called with tensors, or are layers."""
        return any(task.exercise.call is not None for task in self.tasks)

    @property
    def given(self) -> tuple[str, ...]:
        """Dotted paths of what answers may import from this package."""
        lessons = dict.fromkeys(task.lesson for task in self.tasks)
        given = [path for lesson in lessons for path in GIVEN.get(lesson, ())]
        return tuple(dict.fromkeys([*given, *self.helpers]))

    @property
    def helpers(self) -> tuple[str, ...]:
        """Dotted paths of this package's functions for exercises that are not asked for, but come before one that is."""
        names = {task.name for task in self.tasks}
        found = []
        for lesson in dict.fromkeys(task.lesson for task in self.tasks):
            exercises = exercises_of(lesson)
            last = max(list(exercises).index(task.name) for task in self.tasks if task.lesson == lesson)
            found += [path_of(e) for e in list(exercises.values())[:last] if e.name not in names]
        return tuple(path for path in dict.fromkeys(found) if path)

    @property
    def digest(self) -> str:
        """A hash of all that a mark depends on but the submission: the tasks, their files, and this package's version."""
        seen = hashlib.sha256(repr((self.tasks, __version__)).encode())
        for file in sorted(Path(__file__).parents[1].glob("exercises/*.py")):
            if not file.stem.startswith("lesson_") or file.stem[7:] in {task.lesson for task in self.tasks}:
                seen.update(file.read_bytes())
        return seen.hexdigest()[:16]

    @classmethod
    def of_lessons(cls, lessons: Iterable[str], points: dict[str, float] | None = None) -> "Assignment":
        """All exercises of lessons. Points: as given, else as in the lesson's notebook where that is found, else 1."""
        tasks, points = [], points or {}
        lessons = list(lessons)
        for lesson in lessons:
            told = notebook_points(lesson)
            tasks += [Task(lesson, name, float(points.get(name, told.get(name, 1.0)))) for name in exercises_of(lesson)]
        return cls("lesson " + ", ".join(lessons), tuple(tasks))

    @classmethod
    def from_file(cls, path: Path, points: dict[str, float] | None = None) -> "Assignment":
        """The assignment that a notebook is, by its metadata `attnlib`, else by its check cells; or a JSON file of such.

        The metadata is `{"assignment": "ps1", "exercises": [{"lesson": "02", "name": "softmax", "points": 3}, …]}`.
        """
        path = Path(path)
        content = json.loads(path.read_text(encoding="utf-8"))
        asked = content if "exercises" in content else content.get("metadata", {}).get("attnlib", {})
        points = points or {}
        if "exercises" in asked:
            tasks = [(str(task["lesson"]), task["name"], task.get("points", 1)) for task in asked["exercises"]]
        else:
            tasks = tasks_of_cells(content)
        name = asked.get("assignment", path.stem)
        return cls(name, tuple(Task(lesson, task, float(points.get(task, worth))) for lesson, task, worth in tasks))


def exercises_of(lesson: str) -> dict[str, Exercise]:
    """The exercises of a lesson by name, in their order."""
    if not re.fullmatch(r"\d\d", lesson):
        raise ValueError(f"lesson {lesson!r} is not a lesson: expected two digits, such as 02")
    try:
        module = importlib.import_module(f"attnlib.exercises.lesson_{lesson}")
    except ModuleNotFoundError as error:
        if error.name == "torch":
            raise ValueError(f"lesson {lesson} needs PyTorch to be marked: pip install 'attnlib[torch]'") from None
        raise ValueError(f"there is no lesson {lesson} with exercises") from None
    checkers = [value for value in vars(module).values() if isinstance(value, Checker)]
    return {name: exercise for checker in checkers for name, exercise in checker.exercises.items()}


def path_of(exercise: Exercise) -> str:
    """Where a notebook imports the course's own function from; empty if it is nowhere under the exercise's name."""
    module = getattr(exercise.reference, "__module__", "")
    for home in ("attnlib.numpy", "attnlib.torch", module):
        inside = home == module or module.startswith(home + ".")
        if inside and getattr(importlib.import_module(home), exercise.name, None) is exercise.reference:
            return f"{home}.{exercise.name}" if not home.startswith("attnlib.exercises.") else ""
    return ""


def notebook_points(lesson: str) -> dict[str, float]:
    """Points by exercise from the lesson's notebook, if this is a checkout of the course."""
    for path in NOTEBOOKS.glob(f"{lesson}_*.ipynb"):
        return {name: worth for _, name, worth in tasks_of_cells(json.loads(path.read_text(encoding="utf-8")))}
    return {}


def tasks_of_cells(notebook: dict) -> list[tuple[str, str, float]]:
    """Lesson, exercise and points of each check cell."""
    tasks, lesson = {}, ""
    for cell in notebook.get("cells", []):
        if cell.get("cell_type") != "code":
            continue
        source = "".join(cell.get("source", ""))
        for found in LESSON.finditer(source):
            lesson = found[1]
        worth = cell.get("metadata", {}).get("nbgrader", {}).get("points", 1)
        for found in CHECK.finditer(source):
            tasks[found[1]] = (found[2] or lesson, found[1], worth)
    return list(tasks.values())
