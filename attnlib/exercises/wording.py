"""A verdict in words: short, true, and with the smallest case that shows it, ready to be copied."""

import ast
import contextlib
import functools
import inspect
import linecache
import re
import sys
import textwrap
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from attnlib.exercises.compare import Case, Outcome, Unfit, bare, exact, items, part_faults, plain, seen, text_of, whole


def describe(exercise: Any, answer: Callable, case: Case, outcome: Outcome, kind: str) -> str:
    """One sentence on what is wrong with one outcome."""
    if kind == "nothing":
        return "It returns nothing (None): is `return` missing, or not indented?"
    if kind == "error" and isinstance(outcome.error, Unfit):
        return str(outcome.error)
    if kind == "error":
        return f"It raises {one_line(outcome.error)}{own_line(outcome.error, answer)}"
    if kind == "changed":
        right = "The result is" if exact(case.expected) else "The numbers are"
        return f"{right} right, but {changed_input(exercise, answer, case, outcome)}"
    if isinstance(case.expected, tuple):
        return describe_part(exercise, answer, case, outcome)
    if exact(case.expected):
        return describe_exact(outcome.value, case.expected, kind)
    expected = plain(case.expected)
    if type(outcome.value) is tuple and exercise.call is not None:  # of a call, a tuple is several results
        parts = article(number_of(len(outcome.value)))
        return f"It returns {parts}; expected one tensor. Is there a comma too many, or were weights handed on as well?"
    if kind == "shape":
        return f"It returns {shape_of(plain(outcome.value))}; expected {shape_of(expected)}."
    if kind == "type":
        if exercise.call is not None:
            dtype = getattr(outcome.value, "dtype", type(outcome.value).__name__)
            return f"It returns a tensor of {dtype}; expected {expected.dtype}."
        wanted = f"a plain NumPy array of {expected.dtype}"
        wanted = wanted if expected.ndim else article(type(expected.item()).__name__)
        return f"It returns {kind_of(outcome.value)}; expected {wanted}."
    return "The shape is right, the numbers are not." if expected.ndim else "The number is not right."


def number_of(n: int) -> str:
    """How many results a tuple holds."""
    return "tuple of one result" if n == 1 else f"tuple of {n} results"


def shape_of(array: np.ndarray) -> str:
    """The shape in words."""
    return f"shape {list(array.shape)}" if array.ndim else "one number"


def kind_of(value: Any) -> str:
    """What a value is, with what to do about the usual ones."""
    name = type(value).__name__
    if inspect.iscoroutine(value):
        return "a coroutine (take `async` away)"
    if inspect.isroutine(value):
        return f"the function `{value.__name__}` itself (are its parentheses missing?)"
    if inspect.isgenerator(value) or name in ("map", "zip", "filter"):
        return f"{article(name)} (put it in `list(...)`)"
    dtype = value.dtype if isinstance(value, (np.ndarray, np.generic)) else None
    return article(name) + (f" of {dtype}" if dtype is not None and str(dtype) != name else "")


def describe_exact(value: Any, expected: Any, kind: str) -> str:
    """The same for strings, lists and dicts: what it is instead, or the first difference."""
    got, wanted = bare(value), bare(expected)
    if kind == "type":
        known = isinstance(value, (str, list, tuple, dict, np.ndarray))
        return f"It returns {with_items(value, got) if known else kind_of(value)}; expected {with_items(expected, wanted)}."
    if isinstance(wanted, dict):
        if missing := [key for key in wanted if key not in got]:
            return f"{cut(repr(missing[0]), 60)} is missing."
        if more := [key for key in got if key not in wanted]:
            return f"{cut(repr(more[0]), 60)} should not be there."
        key = next(key for key in wanted if got[key] != wanted[key])
        return f"{cut(repr(key), 60)} has {cut(repr(got[key]), 60)}; expected {cut(repr(wanted[key]), 60)}."
    if isinstance(wanted, str):
        return "It is another string."
    if len(got) != len(wanted):
        return f"The list has {len(got)} of what should be {len(wanted)} items."
    place = next(i for i, pair in enumerate(zip(got, wanted)) if pair[0] != pair[1])
    return f"Item {place}, counted from 0, is {cut(repr(got[place]), 60)}; expected {cut(repr(wanted[place]), 60)}."


def with_items(value: Any, plainly: Any) -> str:
    """A type with the types of its items: ``a list of str``, ``a dict from str to int``."""
    parts = [list(plainly), list(plainly.values())] if isinstance(plainly, dict) else [plainly]
    within = [" and ".join(kind.__name__ for kind in items(part)[1:]) for part in parts]
    how = " from {} to {}" if isinstance(plainly, dict) else " of {}"
    return article(type(value).__name__) + (how.format(*within) if all(within) else "")


def describe_part(exercise: Any, answer: Callable, case: Case, outcome: Outcome) -> str:
    """The same for several results: how many there should be, or what is wrong with the first wrong one."""
    parts = whole(outcome, case)
    if parts is None:
        return f"It returns {article(type(outcome.value).__name__)}; expected {len(case.expected)} results."
    place, kind = next((i, kind) for i, kind in enumerate(part_faults(case, outcome)) if kind)
    which = (
        f"Result {place + 1} of {len(parts)}"
        if not exercise.results
        else exercise.results[place][:1].upper() + exercise.results[place][1:]
    )
    part, result = case._replace(expected=case.expected[place]), outcome._replace(value=parts[place])
    return f"{which}: {describe(exercise, answer, part, result, kind)}"


def example(exercise: Any, case: Case, outcome: Outcome) -> list[str]:
    """The input, ready to be copied, then yours and the expected result; of several named results those that are wrong."""
    view, make = exercise.view, "np.array" if exercise.call is None else "torch.tensor"
    rows = [f"{name} = {literal(arg, make)}" for name, arg in zip(exercise.parameters, case.args)]
    got, expected = None if exact(case.expected) else plain(outcome.value), case.expected
    parts = whole(outcome, case) if isinstance(expected, tuple) else None
    if parts is not None and exercise.results:
        wrong = [i for i, kind in enumerate(part_faults(case, outcome)) if kind]
        shown = [row for i in wrong for row in (f"{exercise.results[i]}:", *both(parts[i], expected[i]))]
        return ["  " + row for row in rows + shown]
    if parts is not None:
        got = tuple(parts)
    elif got is not None and not isinstance(expected, tuple):
        got, expected = seen(view, case, got), seen(view, case, expected)
    if view is not None:
        rows.append(f"compared: {view.__doc__.splitlines()[0]}")
    return ["  " + row for row in rows + both(outcome.value if got is None else got, expected)]


def both(got: Any, expected: Any) -> list[str]:
    """Yours and the expected result, with as many digits as it takes to see a difference."""
    digits = 4 if brief(got) != brief(expected) else 12
    return [f"yours:    {brief(got, digits)}", f"expected: {brief(expected, digits)}"]


def changed_input(exercise: Any, answer: Callable, case: Case, outcome: Outcome) -> str:
    """Name the arguments that were changed."""
    names = parameters(answer) if exercise.call is None else exercise.parameters
    changed = [names[i] if i < len(names) else f"number {i + 1}" for i in outcome.changed]
    listed = " and ".join(f"`{name}`" for name in changed)
    copied = f"{changed[0]}.copy()" if exercise.call is None else f"{changed[0]}.clone()"
    if isinstance(case.args[outcome.changed[0]], list):
        copied = f"copy.deepcopy({changed[0]})"
    return f"it changes its input {listed}, which the caller still needs. Work on a copy: `{changed[0]} = {copied}`."


def literal(arg: Any, make: str = "np.array") -> str:
    """An argument as code that makes it again."""
    if isinstance(arg, dict):
        rows = [f"{name!r}: {literal(part, make)}" for name, part in arg.items()]
        lines = any(isinstance(part, np.ndarray) for part in arg.values())
        return "{\n    " + ",\n    ".join(rows) + "\n  }" if lines else "{" + ", ".join(rows) + "}"
    if isinstance(arg, type):
        return f"np.{arg.__name__}"  # a dtype
    return f"{make}({arg.tolist()})" if isinstance(arg, np.ndarray) else repr(arg)


def brief(value: Any, digits: int = 4) -> str:
    """A result with a few digits, cut after 400 characters, without addresses in memory."""
    if isinstance(value, tuple):
        return ", ".join(brief(part, digits) for part in value)
    array = plain(value)
    if array is None:
        return cut(re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value)))
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
        small = np.where(np.abs(array) < 1e9, array, 0)
        array = np.where(np.abs(array) < 1e9, np.round(small, digits), array) + 0.0  # no −0.0
    return cut(str(array.tolist()))


def cut(text: str, length: int = 400) -> str:
    """The first characters of a text."""
    return text if len(text) <= length else text[:length] + " …"


def wrapped(text: str, width: int = 96) -> str:
    """The text with its sentences wrapped, since JupyterLab breaks long lines within words; examples stay as they are."""
    fill = functools.partial(textwrap.fill, width=width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(line if line.startswith("  ") else fill(line) for line in text.splitlines())


def article(noun: str) -> str:
    """The noun with its article."""
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def parameters(function: Callable) -> list[str]:
    """Names of a function's parameters; none where Python cannot tell."""
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def todo(answer: Callable, error: BaseException | None) -> bool:
    """Whether an exception is a stub's `raise NotImplementedError`, and not what PyTorch raises for what it cannot do."""
    if type(error) is not NotImplementedError:
        return False
    if known := getattr(error, "own_line", ""):  # it was raised in another process, and has no frames here
        return known.partition(" of your cell: ")[2].startswith("raise") or not text_of(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    raised_here = (frame.line or "raise").startswith("raise") and frame.filename == file_of(answer)
    return raised_here or not text_of(error)


def one_line(error: BaseException) -> str:
    """Type and first line of an exception's message."""
    message = next((line for line in text_of(error).splitlines() if line.strip()), "")
    return type(error).__name__ + (f": {cut(message.rstrip('.'), 200)}" if message else "")


def own_line(error: BaseException, answer: Callable) -> str:
    """The line of the learner's own cell that an exception came from."""
    if known := getattr(error, "own_line", ""):
        return known  # it was raised in another process, where lines are known
    file = file_of(answer)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f"\n  in line {frames[-1].lineno} of your cell: {frames[-1].line}" if frames and frames[-1].line else "."


def file_of(answer: Any) -> str:
    """The file, or cell, that a function or a class's methods come from."""
    methods = vars(answer).values() if inspect.isclass(answer) else [answer]
    return next((method.__code__.co_filename for method in methods if hasattr(method, "__code__")), "")


def unfinished_cell(name: str, answer: Any) -> str:
    """What hindered the newest cell that defines `name`, where IPython remembers it; an older one may still be in force."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    source = (
        next(filter(functools.partial(binds, name), reversed(shell.history_manager.input_hist_raw)), "")
        if shell
        else ""
    )
    if not re.search(DEFINES.format(name=name), source, re.MULTILINE) or re.search(r"^\s*(@|%%)", source, re.MULTILINE):
        return ""  # bound in another way, or by something that this cannot follow
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = shell.transform_cell(source)
            compile(code, "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        where = f"\n  in line {error.lineno} of your cell: {(error.text or '').strip()}\n"
        return f"Python could not read your cell: {type(error).__name__}, {error.msg}.{where}"
    file = file_of(answer)
    if (lines := linecache.getlines(file)) and "".join(lines).strip() != code.strip() and not ours(answer):
        return (
            "Your newest cell did not run to its end, so an older one is still in force. Mend the error that it shows. "
        )
    return ""


DEFINES = r"^\s*(async\s+)?(def|class)\s+{name}\b|^\s*\w*\s*{name}\s*\([^()]*\)\s*(->.*)?:\s*(#.*)?$"


def binds(name: str, source: str) -> bool:
    """Whether a cell looks as if it gave the name a meaning, other than by the check."""
    other = rf"^\s*{name}\s*[,=](?!=|\s*check\()|^\s*(from|import)\b.*\b{name}\b"
    return bool(re.search(DEFINES.format(name=name) + "|" + other, source, re.MULTILINE))


def ours(answer: Any) -> bool:
    """Whether a function is the course's own, also in a partial or a wrapper."""
    with contextlib.suppress(Exception):
        inner = inspect.unwrap(answer.func if isinstance(answer, functools.partial) else answer)
        return str(getattr(inner, "__module__", "")).split(".")[0] == "attnlib"
    return False
