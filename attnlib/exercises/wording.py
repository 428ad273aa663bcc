"""A verdict in words: short, true, and with the smallest case that shows it, ready to be copied."""

import ast
import inspect
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from attnlib.exercises.compare import Case, Outcome, fault, plain, seen


def describe(answer: Callable, case: Case, outcome: Outcome, kind: str) -> str:
    """One sentence on what is wrong with one outcome."""
    if kind == "nothing":
        return "It returns nothing (None): is `return` missing?"
    if kind == "error":
        return f"It raises {one_line(outcome.error)}{own_line(outcome.error, answer)}"
    if kind == "changed":
        return f"The numbers are right, but {changed_input(answer, outcome)}"
    if isinstance(case.expected, tuple):
        return describe_part(answer, case, outcome)
    expected = plain(case.expected)
    if kind == "shape":
        return f"It returns shape {list(plain(outcome.value).shape)}; expected {list(expected.shape)}."
    if kind == "type":
        dtype = getattr(outcome.value, "dtype", None)
        got = type(outcome.value).__name__ + (f" of {dtype}" if dtype is not None else "")
        wanted = f"a plain NumPy array of {expected.dtype}"
        return f"It returns {article(got)}; expected {wanted if expected.ndim else 'one ' + type(expected.item()).__name__}."
    return "The shape is right, the numbers are not."


def describe_part(answer: Callable, case: Case, outcome: Outcome) -> str:
    """The same for several results: how many there should be, or what is wrong with the first wrong one."""
    if type(outcome.value) not in (tuple, list) or len(outcome.value) != len(case.expected):
        return f"It returns {article(type(outcome.value).__name__)}; expected {len(case.expected)} results."
    for number, (got, want) in enumerate(zip(outcome.value, case.expected), start=1):
        part, result = case._replace(expected=want), outcome._replace(value=got)
        if kind := fault(None, part, result):
            return f"Result {number} of {len(case.expected)}: {describe(answer, part, result, kind)}"
    return "The numbers are not right."


def example(parameters: list[str], view: Callable | None, case: Case, outcome: Outcome) -> list[str]:
    """The input, ready to be copied, then yours and the expected result."""
    rows = [f"{name} = {literal(arg)}" for name, arg in zip(parameters, case.args)]
    got, expected = plain(outcome.value), case.expected
    if got is not None and not isinstance(expected, tuple):
        got, expected = seen(view, case, got), seen(view, case, expected)
    rows += [f"yours:    {brief(outcome.value if got is None else got)}", f"expected: {brief(expected)}"]
    return ["  " + row for row in rows]


def changed_input(answer: Callable, outcome: Outcome) -> str:
    """Name the arguments that were changed."""
    names = parameters(answer)
    changed = " and ".join(f"`{names[i]}`" if i < len(names) else f"number {i + 1}" for i in outcome.changed)
    return f"it changes its input {changed}, which the caller still needs. Work on a copy: `s = s - 1` makes one, `s -= 1` does not."


def literal(arg: Any) -> str:
    """An argument as code that makes it again."""
    if isinstance(arg, type):
        return f"np.{arg.__name__}"  # a dtype
    return f"np.array({arg.tolist()})" if isinstance(arg, np.ndarray) else repr(arg)


def brief(value: Any) -> str:
    """A result with four digits, cut after 400 characters."""
    if isinstance(value, tuple):
        return ", ".join(brief(part) for part in value)
    array = plain(value)
    if array is None:
        return cut(repr(value))
    return cut(" ".join(np.array2string(array, precision=4, suppress_small=True, separator=", ").split()))


def cut(text: str, length: int = 400) -> str:
    """The first characters of a text."""
    return text if len(text) <= length else text[:length] + " …"


def article(noun: str) -> str:
    """The noun with its article."""
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def parameters(function: Callable) -> list[str]:
    """Names of a function's parameters; none where Python cannot tell."""
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def one_line(error: BaseException) -> str:
    """Type and first line of an exception's message."""
    message = cut((str(error).splitlines() or [""])[0], 200)
    return type(error).__name__ + (f": {message}" if message else "")


def own_line(error: BaseException, answer: Callable) -> str:
    """The line of the learner's own cell that an exception came from."""
    file = getattr(getattr(answer, "__code__", None), "co_filename", None)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f"\n  in line {frames[-1].lineno} of your cell: {frames[-1].line}" if frames else "."


def syntax_error(name: str) -> str:
    """The syntax error in the newest cell that defines `name`, where IPython remembers it: an older one may still run."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    for source in reversed(shell.history_manager.input_hist_raw if shell else []):
        if re.search(rf"^(def|class)\s+{name}\b|^{name}\s*=(?!=|\s*check\()", source, re.MULTILINE):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ast.parse(shell.transform_cell(source))
                return ""
            except SyntaxError as error:
                where = f"\n  in line {error.lineno} of your cell: {(error.text or '').strip()}\n"
                return f"Python could not read your cell: SyntaxError, {error.msg}.{where}"
    return ""
