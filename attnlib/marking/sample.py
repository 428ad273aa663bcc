"""A class of 30 invented submissions to lesson 02, for the demo and the tests. Ids only: nobody is meant.

`python -m attnlib.marking.sample FOLDER` writes them. Each says what it should get, so that a test can hold the marker to it.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from attnlib.exercises.lesson_02 import check

RIGHT = {name: exercise.solution_source() for name, exercise in check.exercises.items()}
STUBS = {
    "softmax": "def softmax(scores):\n    return ...  # your code here",
    "attention_scores": "def attention_scores(query, key):\n    return ...  # your code here",
    "scaled_dot_product_attention": "def scaled_dot_product_attention(query, key, value):\n    return ...",
    "query_matrix": "def query_matrix(strength):\n    return ...  # your code here",
}
IMPORTS = "import numpy as np\nfrom attnlib import plots\nfrom attnlib.exercises.lesson_02 import check"


@dataclass(frozen=True)
class Student:
    """One invented submission: the answers that differ from right ones, and what it should get."""

    id: str
    answers: dict[str, str] = field(default_factory=dict)  # by exercise; others are right
    right: tuple[str, ...] = tuple(RIGHT)  # exercises that should get their points
    mistake: str = ""  # that should be named
    imports: str = IMPORTS
    change: Callable[[dict], dict] = lambda notebook: notebook  # of the notebook
    raw: bytes | None = None  # the whole file, where it is no notebook
    file: str = ""  # if it is not the id's own, in a folder

    def notebook(self) -> dict:
        """The notebook as Jupyter would write it."""
        sources = [self.imports]
        for name in RIGHT:
            sources += [self.answers.get(name, RIGHT[name]), f'{name} = check("{name}")', f"print({name})"]
        return self.change(notebook_of(sources))

    def write(self, folder: Path) -> None:
        """Write the file into a folder."""
        path = folder / self.id / self.file if self.file else folder / f"{self.id}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(json.dumps(self.notebook()).encode() if self.raw is None else self.raw)


def notebook_of(sources: list[str]) -> dict:
    """A notebook with these code cells, and nbgrader's metadata on checks."""
    cells = []
    for number, source in enumerate(sources):
        metadata = {"nbgrader": {"grade": True, "grade_id": f"c{number}", "points": 1}} if "check(" in source else {}
        cell = {"cell_type": "code", "execution_count": None, "id": f"c{number}", "metadata": metadata, "outputs": []}
        cells.append(cell | {"source": source})
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def without(*names: str) -> tuple[str, ...]:
    """All exercises but these."""
    return tuple(name for name in RIGHT if name not in names)


def one_line(name: str, expression: str) -> dict[str, str]:
    """An answer that returns an expression of the stub's arguments."""
    head = STUBS[name].split("\n")[0]
    return {name: f"{head}\n    return {expression}"}


def wrong(id: str, name: str, expression: str, mistake: str) -> Student:
    """A submission with one mistake."""
    return Student(id, one_line(name, expression), without(name), mistake)


def without_metadata(notebook: dict) -> dict:
    """As some editors save it."""
    for cell in notebook["cells"]:
        cell["metadata"] = {}
        cell.pop("id")
        cell["source"] = cell["source"].splitlines(keepends=True)
    return notebook


def doubled(notebook: dict) -> dict:
    """Every cell twice, with the same ids."""
    return notebook | {"cells": [cell for cell in notebook["cells"] for _ in (1, 2)]}


SOFTMAX, SCORES, ATTENTION = "softmax", "attention_scores", "scaled_dot_product_attention"
LOOPS = """def row_softmax(row):
    largest = max(row)
    shares = [np.exp(number - largest) for number in row]
    return np.array([share / sum(shares) for share in shares])

def softmax(scores):
    flat = scores.reshape(-1, scores.shape[-1])
    return np.stack([row_softmax(row) for row in flat]).reshape(scores.shape)"""
EINSUM = {
    SCORES: "def attention_scores(query, key):\n"
    "    products = np.einsum('...qd,...kd->...qk', query, key)\n"
    "    return products * (1.0 / query.shape[-1] ** 0.5)",
    ATTENTION: "def scaled_dot_product_attention(query, key, value):\n"
    "    weights = softmax(attention_scores(query, key))\n"
    "    return np.einsum('...qk,...kv->...qv', weights, value)",
}
ALL_WRONG = dict(one_line(SOFTMAX, "scores") | one_line(SCORES, "query @ key.swapaxes(-1, -2)"))
ALL_WRONG |= one_line(ATTENTION, "value") | one_line("query_matrix", "np.ones((5, 3))")
FRAMES = """def softmax(scores):
    import sys
    frame = sys._getframe()
    while frame:
        for name in ("case", "want", "expected", "exercise"):
            if name in frame.f_locals:
                return frame.f_locals[name].expected
        frame = frame.f_back
    return scores"""
EQUAL = """class Equal(np.ndarray):
    def __eq__(self, other):
        return True
    def __array_function__(self, function, types, args, kwargs):
        return True

def softmax(scores):
    return np.zeros(3).view(Equal)"""

STUDENTS = [
    Student("s01-right"),
    Student("s02-loops", {SOFTMAX: LOOPS}),
    Student("s03-einsum", EINSUM),
    Student("s04-blank", STUBS, ()),
    Student("s05-partial", {SCORES: STUBS[SCORES], "query_matrix": STUBS["query_matrix"]}, (SOFTMAX, ATTENTION)),
    wrong("s06", SOFTMAX, "np.exp(scores) / np.exp(scores).sum()", "one sum for the whole array"),
    wrong(
        "s07",
        SOFTMAX,
        "np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)",
        "the maximum is not subtracted, so exp overflows",
    ),
    wrong(
        "s08",
        SOFTMAX,
        "np.exp(scores) / np.exp(scores).sum(axis=-2, keepdims=True)",
        "normalised over the queries (axis −2)",
    ),
    wrong("s09", SOFTMAX, "np.exp(scores) / np.exp(scores).sum(axis=-1)", "keepdims=True is missing in the sum"),
    wrong("s10", SOFTMAX, "1 / (1 + np.exp(-scores))", "a sigmoid: each score for itself"),
    wrong("s11", SOFTMAX, "np.exp(scores)", "not normalised"),
    wrong("s12", SCORES, "query @ key.swapaxes(-1, -2)", check.exercises[SCORES].mistakes[0].name),
    Student("s13", one_line(ATTENTION, "value"), without(ATTENTION)),
    Student("s14-all-wrong", ALL_WRONG, ()),
    Student("s15-syntax-error", {SOFTMAX: "def softmax(scores):\n    return (scores"}, without(SOFTMAX)),
    Student("s16-exits", one_line(SOFTMAX, "__import__('os')._exit(0)"), without(SOFTMAX)),
    Student("s17-endless", {SOFTMAX: "def softmax(scores):\n    while True:\n        pass"}, without(SOFTMAX)),
    Student("s18-memory", one_line(SCORES, "np.ones(10**11) @ query"), without(SCORES)),
    Student("s19-crashes", one_line(SCORES, "__import__('ctypes').string_at(0)"), without(SCORES)),
    Student("s20-not-json", raw=b'{"cells": [', right=()),
    Student("s21-empty", raw=b"", right=()),
    Student("s22-renamed", file="ps1-Copy1 (2).ipynb"),
    Student("s23-no-metadata", change=without_metadata),
    Student("s24-cells-twice", change=doubled),
    Student("s25-asks-attnlib", ALL_WRONG, (), imports=IMPORTS + "\nfrom attnlib.numpy import softmax"),
    Student("s26-reads-frames", ALL_WRONG | {SOFTMAX: FRAMES}, ()),
    Student("s27-equals-all", ALL_WRONG | {SOFTMAX: EQUAL}, ()),
    Student(
        "s28-patches", ALL_WRONG, (), imports=IMPORTS + "\nnp.allclose = lambda *a, **k: True\ncheck = lambda name: 1"
    ),
    Student(
        "s29-library",
        one_line(SOFTMAX, "special.softmax(scores, axis=-1)"),
        imports=IMPORTS + "\nfrom scipy import special",
    ),
    Student("s30-copied", {SOFTMAX: LOOPS.replace("largest", "m").replace("shares", "parts")}),
]


def write(folder: Path) -> list[Student]:
    """Write the class into a folder."""
    for student in STUDENTS:
        student.write(folder)
    return STUDENTS


if __name__ == "__main__":
    write(Path(sys.argv[1]))
