"""What is asked of a student's process about one submission, and the verdicts on what it answers."""

import contextlib
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnlib.exercises.core import OURS, Verdict, judge
from attnlib.marking.assignment import Task
from attnlib.marking.codec import Unreadable, pack, unpack
from attnlib.marking.inside.reading import LONGEST_CELL
from attnlib.marking.libraries import library_calls
from attnlib.marking.prepared import Answer
from attnlib.marking.serving import ServerDied

LONGEST_TEXT = 10_000  # characters of a verdict; what a process says of itself may be made to fill the disk
BUDGET = 120  # seconds for one submission, after which the rest of it is not judged
NO_STATEMENT = b"\xff" * 4
DEATHS = {
    "T": "It did not come to an end: stopped after {wall} s. Does a loop never end?",
    "C": "It did not come to an end: stopped after {seconds} s of computing. Does a loop never end?",
    "K": "Its process was stopped by the system. Did it take too much memory?",
    "S": "It crashed Python itself.",
    "E": "It ended its own process (exit, os._exit).",
    "B": "It wrote into the channel to the marker.",
    "X": "It ended processes that are not its own.",
}


@dataclass
class Mark:
    """The verdict on one exercise of one submission."""

    task: Task
    status: str  # right, not yet, not started, missing, not judged
    text: str
    mistakes: list[str] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    case: str = ""

    def __post_init__(self):
        self.text = self.text[:LONGEST_TEXT]

    @property
    def points(self) -> float:
        """All of the exercise's points, or none."""
        return self.task.points if self.status == "right" else 0.0

    def as_dict(self) -> dict:
        """For the journal."""
        return {
            "lesson": self.task.lesson,
            "name": self.task.name,
            "status": self.status,
            "points": self.points,
            "of": self.task.points,
            "text": self.text,
            "mistakes": self.mistakes,
            "libraries": self.libraries,
            "case": self.case,
        }


class Conversation:
    """All that is asked about one submission. If its process ends, a new one is brought to where the old one was."""

    def __init__(self, marker: Any, cells: list[str]):
        self.marker, self.server, self.tasks = marker, marker.server, marker.assignment.tasks
        cells = [cell[: LONGEST_CELL + 1] for cell in cells]  # one that is longer is not read
        self.read = {"do": "read", "cells": cells, "names": [task.name for task in self.tasks]}
        self.events: list[dict] = []  # what a new process has to go through again
        self.sent: set[str] = set()
        self.skip: list[int] = []
        self.started = time.monotonic()
        self.waiting: list[dict] = []  # what goes along with the next question
        self.alive, self.about = False, {}

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(self, *_: Any) -> None:
        if self.alive:
            with contextlib.suppress(ServerDied):
                self.server.end()

    def ask(self, steps: list[dict]) -> tuple[list | None, bytes]:
        """Replies to these steps, or None and how the process ended."""
        replay = [] if self.alive else [self.read, *self.events]
        for step in [*replay, *steps]:
            if step["do"] == "load":
                step["skip"] = self.skip
        kind, data = self.server.ask(pack([*replay, *steps]))
        self.alive = kind == b"O"
        if not self.alive:
            if data[:1] == b"X":
                self.marker.restart()
                self.server = self.marker.server
            return None, data
        try:
            replies = unpack(data)
            assert type(replies) is list and len(replies) == len(replay) + len(steps)
        except (Unreadable, AssertionError):
            self.server.end()
            self.alive = False
            return None, b"B" + NO_STATEMENT
        if replay and not self.about:
            self.about = replies[0]
        return replies[len(replay) :], b""

    def marks(self) -> list[Mark]:
        """A mark for each exercise."""
        _, ended = self.ask([])
        if ended:
            said = "The notebook could not be read. " + self.death(ended)
            return [Mark(task, "not yet", f"{task.name}: not yet. {said}") for task in self.tasks]
        marks = []
        for number in range(len(self.tasks)):
            mark = self.judged(number)
            if mark.status != "right":
                self.bind(number)
            marks.append(mark)
        return marks

    def judged(self, number: int) -> Mark:
        """The mark for one exercise."""
        task, place = self.tasks[number], self.about["places"].get(self.tasks[number].name)
        if place is None:
            blocking = self.about["blocking"].get(task.name)
            said = f"Python could not read its cell: {blocking}." if blocking else "It is not in the notebook."
            return Mark(task, "not yet" if blocking else "missing", f"{task.name}: {said}")
        prepared = self.marker.prepared[number]
        load = {"do": "load", "upto": place, "needed": self.about["needed"]}
        function = prepared.call
        run = {
            "do": "run",
            "name": task.name,
            "call": [function.__module__, function.__name__] if function else None,
            "cases": [*prepared.packed, prepared.packed[0]],
        }
        given = [*self.waiting, *self.given(number)]
        self.waiting, babbled = [], False
        while time.monotonic() - self.started < BUDGET:
            replies, ended = self.ask([*given, load, run])
            if not ended:
                self.events += [*given, load]
                if not sound(replies[-1]) or replies[-1]["busy"]:
                    self.server.end()  # the next exercise gets a fresh process
                    self.alive = False
                return self.verdict(number, replies[-1])
            if ended[:1] == b"B" and not babbled:
                babbled = True  # perhaps processes that an earlier answer started; in a fresh process they are not
                continue
            statement = int.from_bytes(ended[1:], "little")
            if statement in self.skip or statement not in self.about["needed"]:  # it ended in the answer
                self.events += [*given, load]
                return Mark(task, "not yet", f"{task.name}: not yet. {self.death(ended)}", libraries=self.calls(number))
            self.skip.append(statement)
        return Mark(task, "not judged", f"{task.name}: not judged. The notebook took more than {BUDGET} s in all.")

    def verdict(self, number: int, reply: dict) -> Mark:
        """What the course's own judge says of an answer's outcomes."""
        task, prepared = self.tasks[number], self.marker.prepared[number]
        if not sound(reply):
            return Mark(task, "not yet", f"{task.name}: not yet. {DEATHS['B']}")
        problems = "".join(f" Cell {cell + 1} of the code: {text}." for cell, text in reply["problems"][:3])
        wants_class = isinstance(prepared.solution, type)
        if not reply["exists"]:
            return Mark(task, "missing", f"{task.name}: its cell did not run.{problems}")
        if reply["class"] != wants_class or not reply["callable"]:
            kind, wanted = (
                "a class" if reply["class"] else f"of type {reply['type']}",
                "class" if wants_class else "function",
            )
            return Mark(task, "not yet", f"{task.name}: not yet. It is {kind}; expected a {wanted}.")
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = judge(prepared, Answer(prepared, reply))
        except Exception as error:
            said = f"What it returns cannot be looked at ({type(error).__name__})."
            found = Verdict("not yet", f"{task.name}: not yet. {said}")
        text = found.text.replace(f"\n{OURS}", "").replace(OURS, "").strip()
        if found.status == "not started":
            text = f"{task.name}: not started."
        elif "NameError" in text or "ImportError" in text:
            text += problems
        names, case = [mistake.name for mistake in found.mistakes], found.case.name if found.case else ""
        libraries = self.calls(number) if found.status != "not started" else []
        return Mark(task, found.status, text, names, libraries, case)

    def calls(self, number: int) -> list[str]:
        """Library calls that do what the exercise asks for."""
        name = self.tasks[number].name
        return library_calls(name, self.about["answers"].get(name, {}).get("calls", []))

    def given(self, number: int) -> list[dict]:
        """Modules that the notebook may import by now, and the exercise's way of calling answers."""
        marker, texts = self.marker, []
        for path in marker.assignment.given:
            wanted = any(path == one or path.startswith(one + ".") for one in self.about["attnlib"])
            if wanted and path not in self.sent:
                sources = marker.sources_of_path(path)
                asked = {squeezed(prepared.name) for prepared in marker.prepared[number:]}
                if sources and not marker.forbidden(number) & sources.ids and squeezed(path) not in asked:
                    texts += sources.texts()
                    self.sent.add(path)
        if call := marker.prepared[number].call:
            texts += marker.sources_of(call).texts()
        return [{"do": "modules", "texts": texts}] if texts else []

    def bind(self, number: int) -> None:
        """From now on the solution stands for the answer, as in the notebook, so that one slip costs one exercise."""
        solution, name = self.marker.prepared[number].solution, self.tasks[number].name
        sources = self.marker.sources_of(solution)
        if self.marker.forbidden(number + 1) & sources.ids:
            return  # it calls what is still to be judged
        line = f"from {solution.__module__} import {solution.__name__} as {name}"
        self.waiting += [{"do": "modules", "texts": sources.texts()}, {"do": "bind", "source": line}]

    def death(self, ended: bytes) -> str:
        """How a process ended, in a sentence."""
        sandbox = self.marker.sandbox
        return DEATHS[ended[:1].decode("latin-1")].format(wall=sandbox.wall, seconds=sandbox.seconds)


def sound(reply: Any) -> bool:
    """Whether a reply to `run` has the parts of one. What is in its outcomes is looked at with care later."""
    kinds = {"exists": bool, "class": bool, "callable": bool, "busy": bool, "type": str, "problems": list}
    kinds |= {"parameters": list, "outcomes": list}
    if type(reply) is not dict or any(type(reply.get(name)) is not kind for name, kind in kinds.items()):
        return False
    pairs = [part for part in reply["problems"] if type(part) is list and [type(item) for item in part] == [int, str]]
    return len(pairs) == len(reply["problems"])


def squeezed(path: str) -> str:
    """The last name of a path without case and underscores: LayerNorm is layer_norm."""
    return path.rpartition(".")[2].replace("_", "").lower()
