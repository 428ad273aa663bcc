"""A right answer is never marked wrong, and a known mistake is found, as in the notebook, by the outcomes that are sent."""

import functools
import inspect
import json
import tracemalloc

import numpy as np
import pytest

from attnlib.exercises import all_exercises
from attnlib.exercises.compare import plain
from attnlib.exercises.core import judge
from attnlib.marking.assignment import Assignment
from attnlib.marking.codec import LONGEST, Formula, Odd, Unreadable, pack, unpack
from attnlib.marking.inside.student import outcome, parameters
from attnlib.marking.marker import Marker, right_cells
from attnlib.marking.prepared import Answer, Prepared

SEEDS = 8  # 200 were tried once; without the codec a test in tests/exercises tries 200 each time


def through(prepared, answer):
    """The verdict on an answer whose outcomes went through bytes, as from a student's process."""
    function = functools.partial(prepared.call, answer) if prepared.call else answer
    cases = [*prepared.packed, prepared.packed[0]]
    sent = [outcome(function, list(unpack(args, formulas=True)), "") for args in cases]
    reply = unpack(pack({"outcomes": sent, "parameters": parameters(answer)}))
    return judge(prepared, Answer(prepared, reply))


def in_float32(answer):
    """The same answer, given in single precision."""

    @functools.wraps(answer)
    def rounded(*args):
        result = answer(*args)
        wide = isinstance(result, np.ndarray) and result.dtype == np.float64
        return result.astype(np.float32) if wide else result

    return rounded


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("key", all_exercises())
def test_right_answers_are_right(key):
    exercise = all_exercises()[key]
    rights = [exercise.solution, exercise.reference, *exercise.accepts]
    rights += [] if inspect.isclass(exercise.solution) else [in_float32(answer) for answer in rights]
    for seed in range(SEEDS):
        prepared = Prepared.of(key[:2], exercise, 10**12 + seed)
        for answer in rights:
            verdict = through(prepared, answer)
            assert verdict.status == "right", (seed, verdict.text)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("key", all_exercises())
def test_mistakes_are_found_by_what_is_sent(key):
    prepared = Prepared.of(key[:2], all_exercises()[key], 5)
    for mistake in prepared.mistakes:
        for way in (mistake.wrong, *mistake.also):
            verdict = through(prepared, way)
            assert verdict.status == "not yet" and verdict.mistakes == (mistake,), verdict.text


@pytest.mark.parametrize("lesson", sorted({key[:2] for key in all_exercises()}))
def test_solutions_are_right_in_the_sandbox(sandbox, lesson):
    """And where all are missing, each says so."""
    assignment = Assignment.of_lessons([lesson])
    with Marker(assignment, sandbox) as marker:
        cells = right_cells(assignment)
        assert all(mark.points == mark.task.points for mark in marker.mark(cells)[0])
        assert {mark.status for mark in marker.mark(["x = 1"])[0]} == {"missing"}
        for number, task in enumerate(assignment.tasks):  # one slip costs one exercise
            blank = cells[-len(assignment.tasks) :][number].split("\n")[0] + "\n    pass"
            marks, _ = marker.mark([*cells, blank])
            assert [mark.task.name for mark in marks if mark.status != "right"] == [task.name]


def test_the_verdict_is_the_notebooks(marker):
    source = "def softmax(scores):\n    e = np.exp(scores)\n    return e / e.sum(axis=-1)"
    mark = marker.mark(["import numpy as np", source])[0][0]
    space = {"np": np}
    exec(source, space)
    first = judge(all_exercises()["02-softmax"], space["softmax"]).text.split("\n")[:2]
    assert mark.text.split("\n")[:2] == first and "keepdims=True is missing in the sum" in mark.text
    raised = marker.mark(["import numpy as np", "def softmax(scores):\n    x = 1\n    return scores[5, 5]"])[0][0]
    assert "IndexError" in raised.text and "in line 3 of your cell: return scores[5, 5]" in raised.text
    changed = marker.mark(["import numpy as np", CHANGES])[0][0]
    assert "it changes its input `numbers`" in changed.text


CHANGES = """np.array_equal = lambda *a, **k: True
def softmax(numbers):
    numbers -= numbers.max(axis=-1, keepdims=True)
    e = np.exp(numbers)
    return e / e.sum(axis=-1, keepdims=True)"""


SOFTMAX = "    e = np.exp(scores - scores.max(axis=-1, keepdims=True))\n    return e / e.sum(axis=-1, keepdims=True)"
STYLES = {  # each was marked wrong once, though it runs in a notebook
    "annotations of names that are defined nowhere": [
        "from __future__ import annotations",
        f"def softmax(scores: Scores) -> Weights:\n{SOFTMAX}",
    ],
    "hints of a library that is not there": [
        "from jaxtyping import Float",
        f"def softmax(scores: Float[np.ndarray, 'n m']) -> Float:\n{SOFTMAX}",
    ],
    "a class whose base stands further down": [
        "class Rows(Columns):\n    pass\ntool = Rows()",
        "def softmax(scores):\n    return tool.softmax(scores)",
        f"class Columns:\n    @staticmethod\n    def softmax(scores):\n{SOFTMAX}".replace(
            "\n    e", "\n        e"
        ).replace("\n    return", "\n        return"),
    ],
    "a table that a loop fills": [
        "powers = {}\nfor n in range(3):\n    powers[n] = 2**n\nk = 0\nwhile k < 3:\n    k += 1",
        f"def softmax(scores):\n    assert powers[2] == 4 and k == 3\n{SOFTMAX}",
    ],
    "a definition in a loop": [
        f"for attempt in range(2):\n    def softmax(scores):\n    {SOFTMAX}".replace("\n    return", "\n        return")
    ],
    "display": [f"def softmax(scores):\n    display(scores)\n{SOFTMAX}"],
    "input": [
        "name = input('Your name? ') or 'nobody'",
        f"def softmax(scores):\n    assert name == 'nobody'\n{SOFTMAX}",
    ],
}


@pytest.mark.parametrize("style", STYLES)
def test_what_works_in_a_notebook_is_right(marker, style):
    mark = marker.mark(["import numpy as np", *STYLES[style]])[0][0]
    assert mark.status == "right", mark.text


def test_a_result_without_end_is_said_to_be_one(marker):
    huge = "def softmax(scores):\n    return np.broadcast_to(scores.flat[0], (10**6, 10**6))"
    mark = marker.mark(["import numpy as np", huge])[0][0]
    assert "What it returns cannot be handed over (MemoryError)." in mark.text


@pytest.mark.parametrize("said", ["", "'write it here'"])
def test_a_stub_that_raises_is_not_started(marker, said):
    mark = marker.mark([f"def softmax(scores):\n    raise NotImplementedError({said})"])[0][0]
    assert mark.status == "not started" and mark.text == "softmax: not started."


def test_pytorchs_own_error_is_no_stub(marker):
    cells = ["def missing():\n    raise NotImplementedError('no such kernel')", "def softmax(scores):\n    missing()"]
    assert "It raises NotImplementedError: no such kernel" in marker.mark(cells)[0][0].text


VALUES = [
    *(
        None,
        True,
        3,
        -(2**70),
        1.5,
        float("inf"),
        "text 李",
        ...,
        (),
        [1, (2.0, None)],
        {"a": np.arange(3), 5: ["x"]},
        b"\x00",
    ),
    *(np.float32(1.5), np.int64(3), np.zeros((0, 3)), np.array([True]), np.array(["ab", "c"]), np.arange(6.0)[::2]),
    *(np.float16, np.ones((2, 3), order="F"), np.array(2.5)),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back_as_they_were(value):
    back = unpack(pack(value))
    assert type(back) is type(value)
    np.testing.assert_equal(back, value)


def test_what_cannot_pass_becomes_odd():
    class Sub(np.ndarray):
        def __repr__(self):
            raise SystemExit

    assert unpack(pack(np.zeros(2).view(Sub))) == Odd("Sub", "?")
    assert unpack(pack(len)) == Odd("builtin_function_or_method", "len", "routine")
    assert unpack(pack(x for x in ())).kind == "generator"
    assert isinstance(unpack(pack(Formula("lambda x: x"))), Odd)
    assert unpack(pack(Formula("lambda x: x + 1")), formulas=True)(1) == 2
    assert unpack(pack(np.array([object()]))).dtype == object
    with pytest.raises(Unreadable):
        pack([0] * 300_000)


HEADS = [
    '["a", "<f8", 1000000000000]',
    '["a", "|O", 1]',
    '["a", "<f8", -1]',
    '["a", "<U0", 5]',
    '["zz"]',
    '{"a": 1}',
    "[",
    '["d", 1]',
]
HEADS += [
    '["O", 100000, 100000]',
    '["y", "load"]',
    "[" * 10_000 + "]" * 10_000,
    '["b", -5]',
    "[[]]",
    '["d", [[["l"], 1]]]',
    '["s", "<M8[s]"]',
]


@pytest.mark.parametrize("head", HEADS)
def test_forged_bytes_are_unreadable(head):
    with pytest.raises(Unreadable):
        unpack(len(head).to_bytes(4, "little") + head.encode())


def test_strings_of_any_length_do_not_come_back():
    """Verdicts repeat what a process says of itself, and they are kept on disk."""
    for value in ("x" * LONGEST, Odd("x" * LONGEST, "")):
        assert unpack(pack(value)) == value
    for head in (f'"{"x" * (LONGEST + 1)}"', f'["o", "{"x" * (LONGEST + 1)}", "", "object"]'):
        with pytest.raises(Unreadable):
            unpack(len(head).to_bytes(4, "little") + head.encode())


def test_keys_that_are_all_alike_to_a_dict_do_not_stop_the_marker():
    """All of these numbers have the hash 0; 60,000 of them took 20 s to read."""
    head = json.dumps(["d", *([number * (2**61 - 1), 0] for number in range(1_001))])
    with pytest.raises(Unreadable, match="too many keys that are no strings"):
        unpack(len(head).to_bytes(4, "little") + head.encode())
    vocabulary = {f"word {number}": number for number in range(5_000)}
    assert unpack(pack(vocabulary)) == vocabulary


def test_lists_of_strings_do_not_fill_the_markers_memory():
    """In an array, each string takes the room of the longest: of a message of 300 kB, 40 GB."""
    for long in ("x" * LONGEST, np.array("x" * LONGEST)):
        tracemalloc.start()
        assert plain([[long, *["y"] * 200]]) is None
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
        tracemalloc.stop()


def test_any_bytes_are_a_value_or_unreadable(rng):
    whole = pack({"a": [np.arange(5.0), "x"], "b": (1, None)})
    for _ in range(500):
        data = bytearray(whole)
        for place in rng.integers(len(data), size=3):
            data[place] = rng.integers(256)
        try:
            unpack(bytes(data))
        except Unreadable:
            continue
