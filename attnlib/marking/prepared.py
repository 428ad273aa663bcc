"""Exercises made ready for a run: cases from the run's seed, mistakes called once, answers that live elsewhere."""

import builtins
import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from attnlib.exercises.compare import Case, Outcome, Unfit, unchanged
from attnlib.exercises.core import Exercise
from attnlib.marking.codec import Formula, Odd, Unreadable, pack, unpack
from attnlib.marking.fresh import DRAWN


class Prepared(Exercise):
    """An exercise with the cases of one run.

    What the reference and the mistakes make of a case is remembered, so that it is computed once for all submissions.
    An `Answer` is not called: its outcomes came from the student's process.
    """

    @classmethod
    def of(cls, lesson: str, exercise: Exercise, seed: int) -> "Prepared":
        """Draw the cases of a run: the exercise's own, then fresh ones where its own are the same for every seed."""
        prepared = cls(**{field.name: getattr(exercise, field.name) for field in fields(Exercise)})
        cases = exercise.ladder(seed)
        draw = DRAWN.get(f"{lesson}-{exercise.name}", lambda rng: [])
        for number, args in enumerate(draw(np.random.default_rng([seed, 1])), start=1):
            case = Case(f"drawn for this run, number {number}", args)
            cases.append(case._replace(expected=exercise.run(exercise.reference, case).value))
        for name, value in {
            "known": cases,
            "memory": {},
            "packed": [pack_args(exercise, case) for case in cases],
        }.items():
            object.__setattr__(prepared, name, value)
        return prepared

    def ladder(self, seed: int = 0) -> list[Case]:
        """The cases of this run, whatever the seed."""
        return self.known

    def run(self, answer: Callable, case: Case) -> Outcome:
        """What comes of an answer: from the student's process, from memory, or by calling it."""
        place = next((i for i, known in enumerate(self.known) if known is case), None)
        if isinstance(answer, Answer):
            return answer.outcome(place)
        key = id(answer), place
        if place is None or key not in self.memory:
            outcome = super().run(answer, case)
            if place is None:
                return outcome
            self.memory[key] = outcome
        return self.memory[key]


def pack_args(exercise: Exercise, case: Case) -> bytes:
    """The arguments as bytes, or an error that names the case."""
    data = pack(tuple(case.args))
    if not all(map(alike, case.args, unpack(data, formulas=True))):
        raise ValueError(
            f"exercise {exercise.name}: the arguments of the case {case.name!r} cannot be handed to another process. Use "
            "arrays, numbers, strings, tuples, lists and dicts."
        )
    return data


def alike(one: Any, other: Any) -> bool:
    """Whether an argument came through, except that a formula may have changed its class."""
    return one.source == other.source if isinstance(other, Formula) else unchanged(other, one)


class Answer:
    """A student's function or class, as the marker sees it: what came of it, in the order of the cases."""

    def __init__(self, exercise: Prepared, reply: dict):
        cases = exercise.known
        if len(reply["outcomes"]) != len(cases) + 1:  # the first case is called twice
            raise Unreadable("a reply with another number of outcomes")
        self.outcomes = [outcome_of(case, parts) for case, parts in zip([*cases, cases[0]], reply["outcomes"])]
        self.again = False
        names = [name for name in reply["parameters"] if type(name) is str and name.isidentifier()]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in dict.fromkeys(names)])

    def __call__(self, *args: Any) -> Any:
        """Not possible from here; callables have signatures, which verdicts look at."""
        raise TypeError("this answer lives in another process")

    def outcome(self, place: int) -> Outcome:
        """What came of a case; of the first, asked for again, what came of it the second time."""
        second, self.again = place == 0 and self.again, self.again or place == 0
        return self.outcomes[-1 if second else place]


def outcome_of(case: Case, parts: list) -> Outcome:
    """One outcome, from what the student's process sent; whatever that is, nothing of it is run."""
    value, args, error, where, printed = parts
    value, args = unpack(value), unpack(args)
    raised = None if error is None else exception(*error)
    if raised is not None:
        raised.own_line = str(where)
    changed = [
        i
        for i, was in enumerate(case.args)
        if i >= len(args) or not (isinstance(args[i], Odd) or callable(was) or unchanged(args[i], was))
    ]
    return Outcome(stand_in(value), raised, changed, str(printed))


def exception(name: str, module: str, args: list, text: str) -> BaseException:
    """An exception of this type, where it is a well-known one, else one of the same name; with the same message."""
    kind = {"Unfit": Unfit, "LinAlgError": np.linalg.LinAlgError}.get(name) or getattr(np.exceptions, name, None)
    kind = kind or getattr(builtins, name, None)
    if inspect.isclass(kind) and issubclass(kind, BaseException):
        for given in (args, [text]):
            try:
                made = kind(*given)
            except Exception:
                continue
            if type(made) is kind and str(made) == text:
                return made
    return type(str(name), (Exception,), {"__str__": lambda self: text})()


def stand_in(value: Any) -> Any:
    """For what could not be sent, an object whose type has the same name; also within tuples and lists."""
    if type(value) in (tuple, list):
        return type(value)(map(stand_in, value))
    if not isinstance(value, Odd):
        return value
    if value.kind == "routine":
        routine = lambda: None
        routine.__name__ = value.text or "function"
        return routine
    if value.kind == "generator":
        return (item for item in ())
    return type(value.type_name or "object", (), {"__repr__": lambda self: value.text})()
