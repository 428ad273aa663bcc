"""What a student's own process does: read the cells, run what is worth running, call the answers, hand over the results.

It runs in the sandbox, as a fork of `server`, one a submission. Whatever the student's code does here, all that leaves is
one message a request, which the marker reads as data.
"""

import __future__

import ast
import builtins
import contextlib
import functools
import inspect
import linecache
import os
import signal
import struct
import sys
import threading
import traceback
import types
from collections.abc import Callable
from typing import Any

from attnlib.exercises.compare import Printed, Unfit, quiet, text_of
from attnlib.marking.codec import Unreadable, pack, unpack
from attnlib.marking.inside.describing import described
from attnlib.marking.inside.reading import Notebook, binds, read
from attnlib.marking.inside.wire import make_module, read_frame, write_frame

SIGN = 8  # bytes, by which a reply is known to belong to its request
HINTS_AS_TEXT = __future__.annotations.compiler_flag  # hints may be of a library that is not here
STATEMENT_SECONDS = 3.0  # after which a statement of the notebook is given up


class Late(BaseException):
    """A statement took too long."""


class Student:
    """One student's notebook in this process."""

    def __init__(self, tell: Callable[[bytes], None]):
        self.tell, self.done = tell, 0
        self.notebook = Notebook([])
        self.main = types.ModuleType("__main__")
        self.space = vars(self.main)
        sys.modules["__main__"] = self.main
        vars(builtins).update(display=lambda *_, **__: None, input=lambda *_: "")  # as with nobody at the notebook
        self.problems: list[list] = []
        self.later: list[tuple[ast.ImportFrom, int]] = []  # imports of what is not given yet
        self.nameless: list[tuple[ast.stmt, int]] = []  # statements that use a name from further down

    def answer(self, request: list[dict]) -> list:
        """Carry out one request: a list of steps, each a dict whose `do` names a method."""
        return [getattr(self, "do_" + step.pop("do"))(**step) for step in request]

    def do_read(self, cells: list[str], names: list[str]) -> dict:
        """Parse the cells and describe them. Nothing of them runs."""
        self.notebook = read(cells)
        for number, source in enumerate(self.notebook.cells):
            lines = source.splitlines(keepends=True)
            linecache.cache[file_of_cell(number)] = (len(source), None, lines, file_of_cell(number))
        return described(self.notebook, names)

    def do_modules(self, texts: list[list[str]]) -> None:
        """Make modules of sources that the marker sends: helpers of the lesson, never its solutions."""
        for name, source in texts:
            make_module(name, source)

    def do_load(self, upto: int, needed: list[int], skip: list[int]) -> None:
        """Run the statements that are needed, up to a place, each alone."""
        skipped, later = set(skip), self.later
        self.later = []
        for node, cell in later:
            if node.names[0].asname or node.names[0].name not in self.space:
                self._execute(node, cell)
        for number in needed:
            if self.done <= number < upto and number not in skipped:
                self.tell(struct.pack("<I", number))  # if this one ends the process, the marker knows which it was
                self._run(number)
        nameless, self.nameless = self.nameless, []
        for node, cell in nameless:  # whoever wrote them had run the cell further down first
            if not binds(node) & set(self.space):
                self._execute(node, cell)
        self.done = max(self.done, upto)
        self.tell(struct.pack("<I", 2**32 - 1))

    def _run(self, number: int) -> None:
        statement = self.notebook.statements[number]
        nodes, node = [statement.node], statement.node
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "attnlib":
            nodes = [ast.copy_location(ast.ImportFrom(node.module, [a], node.level), node) for a in node.names]
        for part in nodes:
            self._execute(part, statement.cell)

    def _execute(self, node: ast.stmt, cell: int) -> None:
        try:
            code = compile(ast.Module([node], []), file_of_cell(cell), "exec", HINTS_AS_TEXT, dont_inherit=True)
            with quiet(Printed()), at_most(STATEMENT_SECONDS):
                exec(code, self.space)
        except BaseException as error:
            if isinstance(error, ImportError) and isinstance(node, ast.ImportFrom):
                self.later.append((node, cell))
            if isinstance(error, NameError):
                self.nameless.append((node, cell))
            said = f"it took more than {STATEMENT_SECONDS:g} s" if isinstance(error, Late) else text_of(error)
            self.problems.append([cell, f"{type(error).__name__}: {said[:300]}"])

    def do_bind(self, source: str) -> None:
        """Run a solution's source, as the check binds it: after its exercise has been judged."""
        exec(compile(source, "<solution>", "exec", dont_inherit=True), self.space)

    def do_run(self, name: str, call: list[str] | None, cases: list[bytes]) -> dict:
        """Call the answer on each case's arguments and pack what comes of it."""
        answer = self.space.get(name)
        about = {"exists": name in self.space, "class": inspect.isclass(answer), "callable": callable(answer)}
        about |= {"type": type(answer).__name__, "problems": self.problems[:20], "parameters": parameters(answer)}
        if not about["callable"]:
            return about | {"outcomes": [], "busy": False}
        file = source_file(answer)
        if call:
            answer = functools.partial(getattr(sys.modules[call[0]], call[1]), answer)
        outcomes = [outcome(answer, list(unpack(args, formulas=True)), file) for args in cases]
        return about | {"outcomes": outcomes, "busy": busy()}


def outcome(function: Callable, args: list, file: str) -> list:
    """One call: the value, or what was raised; the arguments as they are now; what was printed."""
    printed, value, error = Printed(), None, None
    with quiet(printed):
        try:
            value = function(*args)
            if inspect.iscoroutine(value):
                value.close()
        except BaseException as caught:
            error = caught
    try:
        parts = [pack(value), pack(args)]
    except Unreadable as caught:
        parts, error = [pack(None), pack(())], error or Unfit(f"What it returns is {caught}.")
    except BaseException as caught:
        said = f"What it returns cannot be handed over ({type(caught).__name__})."
        parts, error = [pack(None), pack(())], error or Unfit(said)
    return [*parts, *told(error, file), str(printed.text)[:10_000]]


def busy() -> bool:
    """Whether the answer has left threads or processes behind, which would meddle with the next one."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
        return True
    return threading.active_count() > 1


def told(error: BaseException | None, file: str) -> list:
    """An exception as plain values: its type and its message, and the line of the cell that it came from."""
    if error is None:
        return [None, None]
    kind = "Unfit" if type(error) is Unfit else type(error).__name__
    simple = [arg if type(arg) in (int, float, str) else None for arg in getattr(error, "args", ())]
    simple = [arg[:2_000] if type(arg) is str else arg for arg in simple]
    text = str(text_of(error))[:2_000]
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    where = f"\n  in line {frames[-1].lineno} of your cell: {frames[-1].line}" if frames and frames[-1].line else "."
    return [[kind, str(type(error).__module__), simple, text], where[:500]]


def parameters(answer: Any) -> list[str]:
    """Names of an answer's parameters."""
    with contextlib.suppress(BaseException):
        return list(inspect.signature(answer).parameters)[:50]
    return []


def source_file(answer: Any) -> str:
    """The cell that a function or a class's methods come from."""
    with contextlib.suppress(BaseException):
        inner = inspect.unwrap(answer)
        methods = list(vars(inner).values()) if inspect.isclass(inner) else [inner]
        return next(method.__code__.co_filename for method in methods if hasattr(method, "__code__"))
    return ""


@contextlib.contextmanager
def at_most(seconds: float) -> Any:
    """Raise Late in what runs longer."""

    def ring(*_: Any) -> None:
        raise Late

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def file_of_cell(number: int) -> str:
    """What stands for a file's name in tracebacks."""
    return f"<cell {number}>"


def serve(requests: int, replies: int) -> None:
    """Answer requests until there are no more."""

    def tell(progress: bytes) -> None:
        write_frame(replies, b"P", progress)

    student, own = Student(tell), os.getpid()
    while True:
        request = read_frame(requests)
        if request is None:
            return
        sign, data = request[1][:SIGN], request[1][SIGN:]
        reply = pack(student.answer(unpack(data, formulas=True)))
        if os.getpid() != own:
            os._exit(0)  # a fork that an answer made, and that came back from it
        write_frame(replies, b"O", sign + reply)
