"""Running a function on a case, and comparing what comes of it."""

import contextlib
import copy
import inspect
import io
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

TOLERANCE = {"float16": 1e-2, "float32": 1e-4}  # by the dtype of the answer; 1e-9 for wider ones


class Case(NamedTuple):
    """One rung of the ladder: what it isolates, the arguments, and the result where it was computed by hand."""

    name: str
    args: tuple
    expected: Any = None


class Unfit(Exception):
    """What keeps an answer from being called at all, in a sentence that the learner reads as it is."""


class Outcome(NamedTuple):
    """What came of one call: a value or an exception, which arguments were changed, and what was printed."""

    value: Any
    error: BaseException | None
    changed: list[int]
    printed: str


def run(function: Callable, case: Case) -> Outcome:
    """Call the function on copies of the arguments. Of what it does, only KeyboardInterrupt reaches the notebook."""
    args, value, error, printed = copy.deepcopy(case.args), None, None, Printed()
    with quiet(printed):
        try:
            value = function(*args)
            if type(value) in (np.ndarray, list, tuple, dict):
                value = copy.deepcopy(value)  # a function may hand out the same buffer each time
            elif inspect.iscoroutine(value):
                value.close()
        except KeyboardInterrupt:
            raise
        except BaseException as caught:
            error = caught
        changed = [i for i, pair in enumerate(zip(args, case.args)) if not unchanged(*pair)]
    return Outcome(value, error, changed, printed.text)


class Printed(io.StringIO):
    """What a function prints; closing it, as some do with sys.stdout, does no harm."""

    text = ""

    def write(self, text: str) -> int:
        """Remember the text."""
        self.text += text[:1_000] if len(self.text) < 10_000 else ""
        return len(text)


@contextlib.contextmanager
def quiet(printed: io.StringIO) -> Iterator[None]:
    """Keep prints, warnings, figures and log handlers of an answer away from the notebook."""
    handlers, torch = logging.root.handlers[:], sys.modules.get("torch")
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    with contextlib.ExitStack() as stack:
        if shell is not None:
            from IPython.utils.capture import capture_output

            stack.enter_context(capture_output(stdout=False, stderr=False, display=True))
        stack.enter_context(contextlib.redirect_stdout(printed))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(np.errstate(all="ignore"))
        warnings.simplefilter("ignore")
        if torch is not None:
            stack.enter_context(as_it_was(torch))
        try:
            yield
        finally:
            logging.root.handlers[:] = handlers


@contextlib.contextmanager
def as_it_was(torch: Any) -> Iterator[None]:
    """Give back what an answer may change for the whole notebook: PyTorch's random numbers, default dtype, grad mode."""
    dtype, grad = torch.get_default_dtype(), torch.is_grad_enabled()
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
            torch.set_grad_enabled(grad)


def unchanged(now: Any, was: Any) -> bool:
    """Whether an argument is what it was, in type, dtype, shape and value; also within tuples, lists and dicts."""
    if isinstance(was, np.ndarray):
        same_kind = type(now) is type(was) and now.dtype == was.dtype
        return same_kind and np.array_equal(now, was, equal_nan=was.dtype.kind == "f")
    if isinstance(was, (tuple, list)):
        return type(now) is type(was) and len(now) == len(was) and all(map(unchanged, now, was))
    if isinstance(was, dict):
        return type(now) is type(was) and list(now) == list(was) and all(map(unchanged, now.values(), was.values()))
    return type(now) is type(was) and now == was


def plain(value: Any) -> np.ndarray | None:
    """The value as a plain array of numbers or booleans, or None where it is not one (a subclass, objects, ragged lists)."""
    if type(value) in (list, tuple):
        if holds_text(value):  # in an array, each would take as much memory as the longest
            return None
        try:
            value = np.array(value)
        except ValueError:
            return None
    elif type(value) in (int, float) or isinstance(value, np.number):
        value = np.asarray(value)
    return value if type(value) is np.ndarray and value.dtype.kind in "fiub" else None


def holds_text(value: Any) -> bool:
    """Whether there is a string in a value, also within lists and tuples."""
    if type(value) in (list, tuple):
        return any(map(holds_text, value))
    return isinstance(value, (str, bytes)) or (isinstance(value, np.ndarray) and value.dtype.kind in "SU")


def exact(expected: Any) -> bool:
    """Whether results of this kind are compared as they are, not as numbers: strings, lists and dicts."""
    return isinstance(expected, (str, list, dict))


def bare(value: Any) -> Any:
    """A string, list or dict without what does not count: tuples and arrays as lists, subclasses, NumPy's integers.

    Anything else is its type alone, which equals no result.
    """
    if type(value) is np.ndarray:
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [bare(item) for item in value]
    if isinstance(value, dict):
        return {bare(key): bare(item) for key, item in value.items() if key.__hash__}
    for kind in (str, int, np.integer, float):
        if isinstance(value, kind) and not isinstance(value, bool):
            return kind(value) if kind is not np.integer else int(value)
    return value if value is None or isinstance(value, bool) else type(value)


def items(value: Any) -> tuple[type, ...]:
    """Types within a bare value: its own, then those of its items; for a dict those of its keys, then of its values."""
    if isinstance(value, dict):
        return dict, *items(list(value)), *items(list(value.values()))
    within = {type(item) for item in value} if isinstance(value, list) else set()
    return type(value), *sorted(within, key=lambda kind: kind.__name__)


def exact_fault(answer: Any, expected: Any) -> str:
    """Empty if the two are equal, else what is wrong first: type, value."""
    answer, expected = bare(answer), bare(expected)
    if type(answer) is not type(expected) or (answer and expected and items(answer) != items(expected)):
        return "type"
    return "" if answer == expected else "value"


def unpacked(value: Any, expected: Any) -> Any:
    """The value; an array as a tuple of numbers where a tuple of numbers is expected, since both unpack alike."""
    numbers = isinstance(expected, tuple) and all(np.ndim(want) == 0 for want in expected)
    return tuple(value) if numbers and type(value) is np.ndarray and value.ndim == 1 else value


def whole(outcome: Outcome, case: Case) -> tuple | list | None:
    """All results of a call that should have several, or None if there are not as many."""
    value = unpacked(outcome.value, case.expected)
    return value if type(value) in (tuple, list) and len(value) == len(case.expected) else None


def part_faults(case: Case, outcome: Outcome, view: Callable | None = None) -> list[str]:
    """What is wrong with each of several results."""
    parts = zip(whole(outcome, case), case.expected)
    return [fault(view, case._replace(expected=want), outcome._replace(value=got)) for got, want in parts]


def same_type(answer: np.ndarray, expected: np.ndarray) -> bool:
    """Floating, whole or boolean like the expected result; where that is float16 or float32, exactly its dtype."""
    if str(expected.dtype) in TOLERANCE:
        return answer.dtype == expected.dtype
    return answer.dtype.kind.replace("u", "i") == expected.dtype.kind.replace("u", "i")


def close(answer: np.ndarray, other: np.ndarray, dtype: np.dtype) -> bool:
    """Equal in shape, and in value within the tolerance of a dtype; NaN equals NaN."""
    tolerance = TOLERANCE.get(dtype.newbyteorder("=").name, 1e-9)
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
        return "shape" if whole(outcome, case) is None else next(filter(None, part_faults(case, outcome, view)), "")
    if exact(case.expected):
        return exact_fault(outcome.value, case.expected) or ("changed" if outcome.changed else "")
    answer, expected = plain(outcome.value), plain(case.expected)
    if answer is None or (answer.dtype.kind == "b" and expected.dtype.kind != "b"):
        return "type"
    if answer.shape != expected.shape:
        return "shape"
    if not same_type(answer, expected):
        return "type"
    if not close(seen(view, case, answer), seen(view, case, expected), answer.dtype):
        return "value"
    return "changed" if outcome.changed else ""


def agree(view: Callable | None, case: Case, answer: Outcome, mistake: Outcome) -> bool:
    """Whether a mistake does with this case what the answer does: the same result, or the same exception."""
    if answer.error is not None or mistake.error is not None:
        return type(answer.error) is type(mistake.error) and text_of(answer.error) == text_of(mistake.error)
    if exact(case.expected):
        got, known = bare(answer.value), bare(mistake.value)
        return got == known and items(got) == items(known)
    answer, mistake = (one._replace(value=unpacked(one.value, case.expected)) for one in (answer, mistake))
    got, known = plain(answer.value), plain(mistake.value)
    if got is not None and known is not None:
        wanted = got.dtype if plain(case.expected) is None else np.asarray(case.expected).dtype  # a tuple has none
        if wanted.kind != "b" and (got.dtype.kind == "b") != (known.dtype.kind == "b"):
            return False  # True is not the number 1
        if str(wanted) in TOLERANCE and got.dtype != known.dtype:
            return False  # the dtype is part of the task
        return close(seen(view, case, got), seen(view, case, known), got.dtype)
    if type(answer.value) is type(mistake.value) is tuple and len(answer.value) == len(mistake.value):
        wanted = case.expected if isinstance(case.expected, tuple) else answer.value
        parts = zip(wanted, answer.value, mistake.value)
        return all(
            agree(view, case._replace(expected=want), answer._replace(value=mine), mistake._replace(value=theirs))
            for want, mine, theirs in parts
        )
    return False


def text_of(error: BaseException) -> str:
    """The message of an exception, also of one whose message is broken."""
    try:
        return str(error)
    except Exception:
        return ""
