"""What an exercise is made of, how an answer is judged, and the `check` that a learner meets.

A learner's answer that is wrong is compared with what each known mistake produces on the same cases. If one explains it,
the learner reads the hint of that mistake. The bank of wrong answers is not a test beside the check: it is what it knows.
"""

import copy
import functools
import inspect
import os
import sys
import textwrap
import warnings
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from attnlib.exercises import wording
from attnlib.exercises.compare import Case, Outcome, exact, fault, run
from attnlib.exercises.explaining import explain

OURS = "Until it is right, the cells below use the course's own."


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that people really give, with the hint that leads out of it.

    `also` holds other ways of making it, which come to other numbers; `bank` holds its ids in the bank of mistakes, from
    which its public sources can be found.
    """

    name: str
    wrong: Callable
    hint: str
    bank: tuple[str, ...] = ()
    also: tuple[Callable, ...] = ()


@dataclass(frozen=True)
class Exercise:
    """One exercise: everything that its check knows."""

    name: str
    reference: Callable  # attnlib's function
    solution: Callable  # short, self-contained, the stub's signature: what a learner is shown
    cases: Callable[[np.random.Generator], list[Case]]  # the ladder, simplest first
    mistakes: list[Mistake]
    accepts: list[Callable] = field(default_factory=list)  # other right answers
    view: Callable | None = None  # view(result, *args): what is compared, where many results are right
    call: Callable | None = None  # call(answer, *args): how an answer is called, where it is no function of arrays
    given: Callable | None = None  # given(*args): what an answer is called with, where `call` makes it from a case
    results: tuple[str, ...] = ()  # what each of several results is, where it is `call` that makes them several

    def ladder(self, seed: int = 0) -> list[Case]:
        """The cases, each with its expected result."""
        cases = self.cases(np.random.default_rng(seed))
        return [c if c.expected is not None else c._replace(expected=self.run(self.reference, c).value) for c in cases]

    def run(self, answer: Callable, case: Case) -> Outcome:
        """What comes of an answer on a case."""
        return run(answer if self.call is None else functools.partial(self.call, answer), case)

    @property
    def parameters(self) -> list[str]:
        """Names of the arguments of a case."""
        return wording.parameters(self.solution) if self.call is None else wording.parameters(self.call)[1:]

    def solution_source(self) -> str:
        """Source of the solution, under the name that the learner's function or class has."""
        source = textwrap.dedent(inspect.getsource(self.solution))
        return source.replace(f"def {self.solution.__name__}(", f"def {self.name}(", 1).rstrip()


@dataclass(frozen=True)
class Verdict:
    """What a learner reads. `status` is one of: not started, not yet, right, not yours."""

    status: str
    text: str
    mistakes: tuple[Mistake, ...] = ()
    case: Case | None = None
    as_list: bool = False  # right, but a list where the lesson goes on with an array


def judge(exercise: Exercise, answer: Callable, seed: int = 0) -> Verdict:
    """Run an answer over the ladder and say what is true of it, the most helpful thing first."""
    name, view, cases = exercise.name, exercise.view, exercise.ladder(seed)
    first = exercise.run(answer, cases[0])
    if first.value is ... or wording.todo(answer, first.error):
        still = "returns `...`" if first.value is ... else "raises NotImplementedError"
        todo = f"It still {still}. Write it in the cell above, run that cell, then this one."
        return Verdict("not started", f"{name}: not started. {todo} {OURS}")
    outcomes = [first, *(exercise.run(answer, case) for case in cases[1:])]
    faults = [fault(view, case, outcome) for case, outcome in zip(cases, outcomes)]
    failing = next((i for i, kind in enumerate(faults) if kind), 0)  # the simplest, since the ladder begins with it
    printed = outcomes[failing].printed.strip()
    printed = f"\nIt printed: {wording.cut(printed, 300)}" if printed else ""
    if not any(faults) and fault(view, cases[0], exercise.run(answer, cases[0])):
        text = "The same input gives another answer the second time. Does it keep something from call to call?"
        return Verdict("not yet", f"{name}: not yet. {text} {OURS}{printed}", case=cases[0])
    if not any(faults):
        as_list = any(
            type(o.value) in (list, tuple) and not (isinstance(c.expected, tuple) or exact(c.expected))
            for c, o in zip(cases, outcomes)
        )
        notes = " It returns a list; the cells below get it as an array." if as_list else ""
        is_lambda = inspect.isfunction(answer) and answer.__name__ == "<lambda>"
        notes += " It is a lambda, which works as well as a def." if is_lambda else ""
        return Verdict("right", f"{name}: right in all {len(cases)} cases.{notes}{printed}", as_list=as_list)

    kind, case, outcome = faults[failing], cases[failing], outcomes[failing]
    known, everywhere = explain(exercise, cases, outcomes, faults)
    lines = [f"{name}: not yet. {wording.describe(exercise, answer, case, outcome, kind)}"]
    looks = "This is what comes of" if everywhere else "It looks like" if len(known) == 1 else "It may be"
    lines += [f"{looks}: {mistake.name}. {mistake.hint}" for mistake in known]
    if kind != "changed":
        lines += [f"Right in {faults.count('')} of {len(cases)} cases; the simplest that is not: {case.name}."]
    if kind in ("shape", "type", "value"):
        lines += wording.example(exercise, case, outcome)
    if kind != "changed" and (place := next((i for i, o in enumerate(outcomes) if o.changed), None)) is not None:
        lines += ["Besides, " + wording.changed_input(exercise, answer, cases[place], outcomes[place])]
    return Verdict("not yet", "\n".join([*lines, OURS]) + printed, known, case)


class Checker:
    """The `check` of one lesson: `softmax = check("softmax")` judges the notebook's own softmax.

    It never raises over a learner's answer, except under nbgrader, which takes marks from the AssertionError.
    """

    def __init__(self, lesson: str, exercises: list[Exercise], graded: bool = True):
        self.lesson, self.graded = lesson, graded
        self.exercises = {exercise.name: exercise for exercise in exercises}
        self.verdicts: dict[str, Verdict] = {}

    def __call__(self, name: str) -> Callable:
        """Judge the notebook's function of this name, print the verdict, return it if right, else the course's own."""
        exercise, notebook = self._find(name), sys._getframe(1).f_globals
        answer = notebook.get(name)
        answer = vars(answer).get("_learners", answer) if inspect.isfunction(answer) else answer
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                verdict = unfit(exercise, name in notebook, answer) or judge(exercise, answer)
        except Exception as error:
            what = (
                f"The check could not look at it: what it returns, or is, raises {type(error).__name__} when looked at."
            )
            verdict = Verdict("not yet", f"{name}: not yet. {what} {OURS}")
        if verdict.status != "not yours" or name not in self.verdicts:
            self.verdicts[name] = verdict
        print(wording.wrapped(verdict.text))
        if verdict.status == "right":
            return as_array(answer) if verdict.as_list else answer
        notebook[name] = exercise.solution  # before anything is raised, so that one slip costs one exercise
        if self.graded and os.environ.get("NBGRADER_EXECUTION"):
            raise AssertionError(verdict.text)
        return exercise.solution

    def solution(self, name: str) -> None:
        """Print the course's solution."""
        print(self._find(name).solution_source())

    def case(self, name: str) -> tuple:
        """Arguments of the case that the last verdict showed, else of the first: `softmax(*check.case("softmax"))`.

        For a class: a tuple of what the verdict showed, by name, such as `.x` and `.weights`.
        """
        verdict = self.verdicts.get(name)
        exercise = self._find(name)
        case = verdict.case if verdict and verdict.case else exercise.ladder()[0]
        args = copy.deepcopy(case.args)
        if exercise.given is not None:
            return exercise.given(*args)
        if exercise.call is None:
            return args
        from attnlib.exercises.modules import tensor  # only these exercises need PyTorch

        return namedtuple(exercise.name, exercise.parameters)(*map(tensor, args))

    def progress(self) -> None:
        """Print what is right so far, by the last verdict on each exercise."""
        states = {
            name: self.verdicts[name].status if name in self.verdicts else "not checked" for name in self.exercises
        }
        print(f"Lesson {self.lesson}: {list(states.values()).count('right')} of {len(states)} right.")
        for name, state in states.items():
            print(f"  {'not started' if state == 'not yours' else state:<12} {name}")

    def _find(self, name: str) -> Exercise:
        if name not in self.exercises:
            raise ValueError(f"no exercise {name!r} in lesson {self.lesson}. Try one of: {', '.join(self.exercises)}.")
        return self.exercises[name]


def unfit(exercise: Exercise, exists: bool, answer: object) -> Verdict | None:
    """A verdict on what cannot be judged: a broken or missing cell, no function or class, the course's own."""
    name, wants_class = exercise.name, inspect.isclass(exercise.solution)
    if hindrance := wording.unfinished_cell(name, answer):
        return Verdict("not yet", f"{name}: not yet. {hindrance}{OURS}")
    if not exists:
        todo = "There is no such name: run the cell above. If it shows an error, mend that first."
        return Verdict("not yet", f"{name}: not yet. {todo} {OURS}")
    if inspect.isclass(answer) != wants_class or not callable(answer):
        what = "a class" if inspect.isclass(answer) else wording.article(type(answer).__name__)
        wanted = f"a class, `class {name}(nn.Module)`" if wants_class else f"a function, `def {name}(...)`"
        return Verdict("not yet", f"{name}: not yet. `{name}` is {what}; expected {wanted}. {OURS}")
    if wording.ours(answer):
        kind, word = ("class", "class") if wants_class else ("function", "def")
        todo = f"This is the course's own {kind}, not yours. Run the cell with your `{word}` again, then this one."
        return Verdict("not yours", f"{name}: {todo}")
    return None


def as_array(answer: Callable) -> Callable:
    """The learner's function, with its list turned into an array."""

    @functools.wraps(answer)
    def wrapped(*args, **options):
        return np.asarray(answer(*args, **options))

    wrapped._learners = answer
    return wrapped
