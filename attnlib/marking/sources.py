"""Sources of a function and of all that it refers to, so that it can run where attnlib is not.

What is sent is chosen object by object: the rest of a module stays behind, and `objects` tells what went, so that the
marker can make sure that no solution is among it.
"""

import ast
import functools
import importlib
import inspect
import sys
import textwrap
import types
from typing import Any

from attnlib.marking.inside.reading import uses

AS_THEY_ARE = ("attnlib.exercises.compare", "attnlib.exercises.modules")  # sent whole: they hold no solution
PLAIN = (int, float, str, bool, type(None), complex, bytes)


class NotSendable(ValueError):
    """Something that a function refers to cannot be sent as source."""


class Sources:
    """Modules made of parts: `add` an object of attnlib, and what it refers to comes along."""

    def __init__(self) -> None:
        self.order: list[str] = []  # parts, each below the name of its module, in an order that can be run
        self.objects: list[Any] = []
        self.seen: set[tuple] = set()

    @property
    def ids(self) -> set[int]:
        """What went along, by identity."""
        return set(map(id, self.objects))

    def texts(self) -> list[list[str]]:
        """Pairs of a module's name and a source, in the order in which they are to be run."""
        return [part.split("\n", 1) for part in self.order]

    def add(self, item: Any) -> None:
        """Add a function or class of attnlib."""
        module, name = item.__module__, item.__name__
        if (module, name) in self.seen:
            return
        self.seen.add((module, name))
        self.objects.append(item)
        try:
            source = textwrap.dedent(inspect.getsource(item))
        except (OSError, TypeError) as error:
            raise NotSendable(f"{module}.{name} has no source that could be sent: {error}") from None
        self._add_names(module, source)
        self._write(module, source)

    def _write(self, module: str, source: str) -> None:
        self.order.append(f"{module}\n{source}")

    def _add_names(self, module: str, source: str) -> None:
        tree, space = ast.parse(source), vars(sys.modules[module])
        attributes: dict[str, set[str]] = {}
        for part in ast.walk(tree):
            if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                attributes.setdefault(part.value.id, set()).add(part.attr)
        for name in sorted(uses(tree) & set(space)):
            if (module, "=" + name) not in self.seen:
                self.seen.add((module, "=" + name))
                self._add_name(module, name, space[name], attributes.get(name, set()))

    def _add_name(self, module: str, name: str, value: Any, attributes: set[str]) -> None:
        if isinstance(value, types.ModuleType):
            if not is_ours(value.__name__):
                self._write(
                    module, f"import {value.__name__} as {name}" if name != value.__name__ else f"import {name}"
                )
                return
            for attribute in sorted(attributes):
                self.give(value.__name__, attribute)
            self._write(module, f"import {value.__name__} as {name}")
        elif is_ours(getattr(value, "__module__", None) or "") and hasattr(value, "__name__"):
            origin = value.__module__
            if origin not in AS_THEY_ARE:
                self.add(value)
            if origin != module or value.__name__ != name:
                self._write(module, f"from {origin} import {value.__name__} as {name}")
        elif origin := home(name, value):
            self._write(module, f"from {origin[0]} import {origin[1]} as {name}")
        elif is_plain(value):
            self._write(module, f"{name} = {value!r}")
        elif source := assignment(module, name):
            self._add_names(module, source)
            self._write(module, source)
        else:
            raise NotSendable(f"{module}.{name} is of type {type(value).__name__}, which cannot be sent as source")

    def give(self, module: str, name: str) -> None:
        """Make `from module import name` work, where the name may have been imported there from elsewhere."""
        value = getattr(importlib.import_module(module), name, None)
        if value is None or isinstance(value, types.ModuleType):  # None: a module that nobody has imported yet
            raise NotSendable(f"{module}.{name} is a module; only functions and classes are sent")
        if not is_ours(getattr(value, "__module__", None) or ""):
            self._add_name(module, name, value, set())
            return
        self.add(value)
        if (value.__module__, value.__name__) != (module, name):
            self._write(module, f"from {value.__module__} import {value.__name__} as {name}")


def is_ours(module: str) -> bool:
    """Whether a module is of this package."""
    return module.split(".")[0] == "attnlib"


def home(name: str, value: Any) -> tuple[str, str] | None:
    """Where something of another library can be imported from."""
    module = getattr(value, "__module__", None)
    for known in (getattr(value, "__name__", None), name):
        if module and known and getattr(sys.modules.get(module), known, None) is value:
            return module, known
    return None


@functools.cache
def assignments(module: str) -> dict[str, str]:
    """Sources of the assignments at a module's top level, by name."""
    source = inspect.getsource(sys.modules[module])
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                found |= {
                    part.id: ast.get_source_segment(source, node)
                    for part in ast.walk(target)
                    if isinstance(part, ast.Name)
                }
    return found


def assignment(module: str, name: str) -> str:
    """Source of the assignment that gives a constant its value; empty if there is none."""
    return assignments(module).get(name, "")


def is_plain(value: Any) -> bool:
    """Whether the value's text makes it again."""
    if type(value) in (tuple, list, set, frozenset):
        return all(map(is_plain, value))
    if type(value) is dict:
        return all(is_plain(part) for pair in value.items() for part in pair)
    return type(value) in PLAIN
