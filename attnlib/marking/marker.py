"""Marking one submission after another, with the inputs of one secret seed."""

import secrets
import warnings
from typing import Any

import numpy as np

from attnlib.marking.assignment import Assignment
from attnlib.marking.conversation import Conversation, Mark
from attnlib.marking.prepared import Prepared
from attnlib.marking.sandbox import NoSandbox, Sandbox
from attnlib.marking.serving import Server, ServerDied
from attnlib.marking.sources import NotSendable, Sources


class Marker:
    """Marks submissions to one assignment, one after the other, with the inputs of one secret seed.

    Use it as a context manager. On entry a right notebook, made of the solutions, is marked; if that does not get all
    points, the sandbox is broken, and NoSandbox is raised instead of failing a class.
    """

    def __init__(self, assignment: Assignment, sandbox: Sandbox, seed: int | None = None):
        self.assignment, self.sandbox = assignment, sandbox
        seed = secrets.randbits(128) if seed is None else seed
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.prepared = [Prepared.of(task.lesson, task.exercise, seed) for task in assignment.tasks]
        self.server: Server | None = None
        self._sources: dict[Any, Sources | None] = {}
        self._check_order()

    def __enter__(self) -> "Marker":
        self.restart()
        self.prove()
        return self

    def __exit__(self, *_: Any) -> None:
        if self.server:
            self.server.close()

    def restart(self) -> None:
        """Start the server, or start it again."""
        if self.server:
            self.server.close()
        self.server = Server(self.sandbox, self.assignment.needs_torch)

    def forbidden(self, number: int) -> set[int]:
        """What must not be sent before an exercise is judged: its solution, and those of the exercises after it."""
        held = [item for p in self.prepared[number:] for item in (p.solution, p.reference, *p.accepts)]
        return set(map(id, held))

    def sources_of(self, item: Any) -> Sources:
        """Source of a function of this package, with all that it needs."""
        if item not in self._sources:
            self._sources[item] = Sources()
            self._sources[item].add(item)
        return self._sources[item]

    def sources_of_path(self, path: str) -> Sources | None:
        """The same for a dotted path; None for what cannot be sent."""
        if path not in self._sources:
            self._sources[path] = sources = Sources()
            try:
                sources.give(*path.rsplit(".", 1))
            except NotSendable:
                self._sources[path] = None
        return self._sources[path]

    def _check_order(self) -> None:
        for number, prepared in enumerate(self.prepared):
            sources = self.sources_of(prepared.call) if prepared.call else Sources()
            if leaked := self.forbidden(number) & sources.ids:
                names = ", ".join(item.__name__ for item in sources.objects if id(item) in leaked)
                raise ValueError(
                    f"{prepared.name} is called with the help of {names}, which this assignment asks for later. Put "
                    f"{prepared.name} after it."
                )

    def prove(self) -> None:
        """Mark a notebook that is known to be right."""
        for mark in self.mark(right_cells(self.assignment))[0]:
            if mark.status != "right":
                self.server.close()
                raise NoSandbox(
                    f"the course's own solutions do not get full marks here, so the sandbox ({self.sandbox.mode}) is broken "
                    f"and nobody is marked. {mark.text}"
                )

    def mark(self, cells: list[str]) -> tuple[list[Mark], dict]:
        """Marks for the code cells of a notebook, in the assignment's order, and what was read of the notebook."""
        for attempt in (1, 2):
            try:
                with Conversation(self, cells) as conversation:
                    return conversation.marks(), conversation.about
            except ServerDied:
                self.restart()
                if attempt == 2:
                    raise
        raise AssertionError


def right_cells(assignment: Assignment) -> list[str]:
    """Cells of a submission that is right, as a student would have them: one with imports, one for each solution."""
    head = ["import math\nimport re\nimport numpy as np"]
    if assignment.needs_torch:
        head.append("import torch\nimport torch.nn.functional as F\nfrom torch import nn")
    names = [path.rpartition(".") for path in assignment.given]
    given = "\n".join(f"from {module} import {name}" for module, _, name in names)
    tasks = assignment.tasks
    return [*head, given, *(task.exercise.solution_source() for task in tasks)]
