"""Which known mistakes explain a wrong answer: those that come to the same on the same cases."""

import functools
from collections.abc import Callable
from typing import Any

from attnlib.exercises.compare import Case, Outcome, agree, fault, part_faults, whole


def explain(exercise: Any, cases: list[Case], outcomes: list[Outcome], faults: list[str]) -> tuple[tuple, bool]:
    """The known mistakes that explain a wrong answer, and whether they do so in every case.

    A mistake explains an answer if both are right before the first failing case and agree on it and on one more, if more
    fail. Of several, the one that agrees on most later cases counts; equals are named together. Where an answer has several
    results and no mistake explains them all, the first wrong one is looked at alone, since people make two slips at once.
    """
    failing = next(i for i, kind in enumerate(faults) if kind)
    if faults[failing] in ("nothing", "changed"):
        return (), False
    run = functools.cache(lambda way, number: exercise.run(way, cases[number]))
    known, everywhere = agreeing(exercise, cases, outcomes, failing, run)
    if known or faults[failing] == "error" or not isinstance(cases[failing].expected, tuple):
        return known, everywhere
    if whole(outcomes[failing], cases[failing]) is None:
        return (), False  # of another number of results
    place = next(i for i, kind in enumerate(part_faults(cases[failing], outcomes[failing])) if kind)

    def result(outcome: Outcome, case: Case) -> Outcome:
        values = whole(outcome, case)
        return outcome if values is None else outcome._replace(value=values[place])

    known, _ = agreeing(
        exercise,
        [case._replace(expected=case.expected[place]) for case in cases],
        [result(outcome, case) for outcome, case in zip(outcomes, cases)],
        failing,
        lambda way, number: result(run(way, number), cases[number]),
    )
    return known, False


def agreeing(
    exercise: Any, cases: list[Case], outcomes: list[Outcome], failing: int, run: Callable[[Callable, int], Outcome]
) -> tuple[tuple, bool]:
    """The mistakes that agree with an answer on most cases, from its first failing one, and whether on all of them."""
    view, agreed = exercise.view, {}
    for number, mistake in enumerate(exercise.mistakes):
        for way in (mistake.wrong, *mistake.also):
            if any(fault(view, cases[i], run(way, i)) not in ("", "changed") for i in range(failing)):
                continue  # wrong where the answer is still right
            theirs = run(way, failing)
            wrong = fault(view, cases[failing], theirs) not in ("", "changed")
            if wrong and agree(view, cases[failing], outcomes[failing], theirs):  # its later cases are of interest
                later = range(failing + 1, len(cases))
                same = 1 + sum(agree(view, cases[i], outcomes[i], run(way, i)) for i in later)
                agreed[number] = max(agreed.get(number, 0), same)
    most = max(agreed.values(), default=0)
    if most < 2 and most < len(cases) - failing:
        return (), False  # one coincidence is not an explanation
    known = tuple(exercise.mistakes[number] for number, count in agreed.items() if count == most)
    return known[:3], most == len(cases) - failing
