"""Running a function on a case, and comparing what comes of it."""

import contextlib
import copy
import io
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

TOLERANCE = {"float16": 1e-2, "float32": 1e-4}  # by the dtype of the answer; 1e-9 for wider ones


class Case(NamedTuple):
    """One rung of the ladder: what it isolates, the arguments, and the result where it was computed by hand."""

    name: str
    args: tuple
    expected: Any = None


class Outcome(NamedTuple):
    """What came of one call: a value or an exception, which arguments were changed, and what was printed."""

    value: Any
    error: BaseException | None
    changed: list[int]
    printed: str


def run(function: Callable, case: Case) -> Outcome:
    """Call the function on copies of the arguments. Of what it does, only KeyboardInterrupt reaches the notebook."""
    args, value, error, printed = copy.deepcopy(case.args), None, None, io.StringIO()
    with contextlib.ExitStack() as quiet:
        quiet.enter_context(contextlib.redirect_stdout(printed))
        quiet.enter_context(contextlib.redirect_stderr(io.StringIO()))
        quiet.enter_context(warnings.catch_warnings())
        quiet.enter_context(np.errstate(all="ignore"))
        warnings.simplefilter("ignore")
        try:
            value = function(*args)
        except (Exception, SystemExit) as caught:
            error = caught
    if type(value) is np.ndarray:
        value = value.copy()  # a function may hand out the same buffer each time
    changed = [i for i, (now, was) in enumerate(zip(args, case.args)) if not unchanged(now, was)]
    return Outcome(value, error, changed, printed.getvalue())


def unchanged(now: Any, was: Any) -> bool:
    """Whether an argument is as it was: arrays entry by entry, anything else (None, a function) as Python compares."""
    if isinstance(was, list | tuple):
        return len(now) == len(was) and all(map(unchanged, now, was))
    return np.array_equal(now, was, equal_nan=True) if isinstance(was, np.ndarray) else now == was


def plain(value: Any) -> np.ndarray | None:
    """The value as a plain array of numbers, or None where it is not one (a subclass, booleans, objects, ragged lists)."""
    if type(value) in (list, tuple):
        try:
            value = np.array(value)
        except ValueError:
            return None
    elif type(value) in (int, float) or isinstance(value, np.number):
        value = np.asarray(value)
    return value if type(value) is np.ndarray and value.dtype.kind in "fiu" else None


def close(answer: np.ndarray, other: np.ndarray, dtype: np.dtype) -> bool:
    """Equal in shape, and in value within the tolerance of a dtype; NaN equals NaN."""
    tolerance = TOLERANCE.get(str(dtype), 1e-9)
    return answer.shape == other.shape and np.allclose(answer, other, rtol=tolerance, atol=tolerance, equal_nan=True)


def seen(view: Callable | None, case: Case, value: np.ndarray) -> np.ndarray:
    """What of a result is compared: all of it, or the exercise's view of it."""
    return value if view is None or value.shape != np.shape(case.expected) else view(value, *case.args)


def fault(view: Callable | None, case: Case, outcome: Outcome) -> str:
    """Empty if the outcome is right, else what is wrong first: error, nothing, shape, type, value, changed."""
    if outcome.error is not None:
        return "error"
    if outcome.value is None:
        return "nothing"
    if isinstance(case.expected, tuple):
        if type(outcome.value) not in (tuple, list) or len(outcome.value) != len(case.expected):
            return "shape"
        parts = zip(outcome.value, case.expected)
        faults = [fault(view, case._replace(expected=want), outcome._replace(value=got)) for got, want in parts]
        return next(filter(None, faults), "")
    answer, expected = plain(outcome.value), plain(case.expected)
    if answer is None:
        return "type"
    if answer.shape != expected.shape:
        return "shape"
    if (answer.dtype.kind == "f") != (expected.dtype.kind == "f"):
        return "type"
    if not close(seen(view, case, answer), seen(view, case, expected), answer.dtype):
        return "value"
    return "changed" if outcome.changed else ""


def agree(view: Callable | None, case: Case, answer: Outcome, mistake: Outcome) -> bool:
    """Whether a mistake does with this case what the answer does: the same numbers, or an exception of the same type."""
    if answer.error is not None or mistake.error is not None:
        return type(answer.error) is type(mistake.error)
    if isinstance(case.expected, tuple) and type(answer.value) is type(mistake.value) is tuple:
        parts = [
            agree(view, case._replace(expected=want), answer._replace(value=got), mistake._replace(value=known))
            for want, got, known in zip(case.expected, answer.value, mistake.value)
        ]
        return len(answer.value) == len(mistake.value) and all(parts)
    got, known = plain(answer.value), plain(mistake.value)
    if got is None or known is None:
        return type(answer.value) is type(mistake.value)
    return close(seen(view, case, got), seen(view, case, known), got.dtype)
