"""What the marker is told of a notebook: where its answers are, what hinders them, which library calls they make.

Like `reading`, this looks at syntax trees only, in the sandbox, before any of the student's code runs.
"""

import ast
import hashlib
import re
from typing import Any

from attnlib.marking.inside.reading import DEFINITIONS, LONGEST_CELL, Notebook, definition, needed, places


def described(notebook: Notebook, names: list[str]) -> dict[str, Any]:
    """What the marker is told of the notebook, as plain values."""
    answers = {}
    for name in names:
        node = definition(notebook, name)
        if node is not None:
            others = set(names) - {name}
            parts = [s for s in map(notebook.statements.__getitem__, needed(notebook, [name])) if not s.binds & others]
            own = [s.node for s in parts if not isinstance(s.node, (ast.Import, ast.ImportFrom))]
            code = ast.Module(own, [])
            answers[name] = {
                "shape": shape_of(code),
                "size": sum(1 for _ in ast.walk(code)),
                "text": hashlib.sha256(ast.unparse(code).encode("utf-8", "replace")).hexdigest()[:16],
                "calls": sorted(set().union(*(called(s.node, notebook.aliases) for s in parts), set())),
            }
    blocking = {
        name: why
        for number, why in notebook.unread.items()
        for name in names
        if re.search(
            rf"^\s*(async\s+)?(def|class)\s+{name}\b|^\s*{name}\s*=", notebook.cells[number][:LONGEST_CELL], re.M
        )
    }
    attnlib = sorted({path for path in notebook.aliases.values() if path.split(".")[0] == "attnlib"})
    return {
        "places": places(notebook, names),
        "needed": needed(notebook, names),
        "answers": answers,
        "unread": {str(number): why for number, why in notebook.unread.items()},
        "blocking": blocking,
        "attnlib": attnlib,
    }


def called(node: ast.AST, aliases: dict[str, str]) -> set[str]:
    """Dotted paths of what is used from libraries, such as `torch.nn.functional.softmax`; methods as `.softmax`."""
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute):
            path, inner = [part.attr], part.value
            while isinstance(inner, ast.Attribute):
                path.insert(0, inner.attr)
                inner = inner.value
            known = isinstance(inner, ast.Name) and inner.id in aliases
            found.add(".".join([aliases[inner.id], *path]) if known else "." + part.attr)
        elif isinstance(part, ast.Name) and part.id in aliases:
            found.add(aliases[part.id])
        elif isinstance(part, ast.ImportFrom) and part.module:
            found |= {f"{part.module}.{alias.name}" for alias in part.names}
    return found


def shape_of(node: ast.AST) -> str:
    """A hash of the code that does not see names of its own, texts, annotations or layout."""
    names: dict[str, str] = {}

    def of(part: Any) -> Any:
        if isinstance(part, list):
            return [of(item) for item in part]
        if not isinstance(part, ast.AST):
            return repr(part)
        if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
            return ""  # a docstring
        fields = []
        for key, value in ast.iter_fields(part):
            if key in ("annotation", "returns", "type_comment", "ctx", "kind"):
                continue
            if key in ("id", "arg", "name") and type(value) is str and value in own:
                value = names.setdefault(value, f"name{len(names)}")
            fields.append(of(value))
        return [type(part).__name__, fields]

    own = {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
    own |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    own |= {part.name for part in ast.walk(node) if isinstance(part, DEFINITIONS)}
    return hashlib.sha256(repr(of(node)).encode("utf-8", "replace")).hexdigest()[:16]
