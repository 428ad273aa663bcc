"""A notebook's cells taken apart: which statements are worth running, what they bind, and what an answer looks like.

This runs in the sandbox before any of the student's code does, and reads syntax trees only. It is sent there as it is, so
it imports nothing of attnlib.
"""

import ast
import builtins
import re
import warnings
from dataclasses import dataclass, field

LONGEST_CELL = 200_000  # characters
REFLECTION = {"globals", "locals", "vars", "eval", "exec", "__import__"}  # after which names prove nothing
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
SIMPLE = (*DEFINITIONS, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Pass)
BLOCKS = (ast.If, ast.Try, ast.With, ast.For, ast.While)
DROPPED_MAGICS = ("time", "timeit", "capture", "prun", "matplotlib")  # of cells whose rest is Python


@dataclass
class Statement:
    """One statement at the top level of a cell."""

    cell: int
    node: ast.stmt
    binds: set[str]
    uses: set[str]


@dataclass
class Notebook:
    """All that was read: statements worth running, in order, with what stands in the way of others."""

    cells: list[str]
    statements: list[Statement] = field(default_factory=list)
    unread: dict[int, str] = field(default_factory=dict)  # cell: why
    checks: dict[str, int] = field(default_factory=dict)  # name: number of statements before its last check
    aliases: dict[str, str] = field(default_factory=dict)  # name: the dotted path that it was imported from


def read(cells: list[str]) -> Notebook:
    """Parse the code cells, in order."""
    notebook = Notebook(cells)
    for number, source in enumerate(cells):
        if len(source) > LONGEST_CELL:
            notebook.unread[number] = f"it is longer than {LONGEST_CELL:,} characters"
            continue
        try:
            tree, notebook.cells[number] = parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = f", line {error.lineno}" if getattr(error, "lineno", None) else ""
            notebook.unread[number] = f"{type(error).__name__}: {getattr(error, 'msg', None) or error}{line}"
            continue
        for node in tree.body:
            try:
                found = Statement(number, node, binds(node), uses(node))
            except RecursionError:
                continue  # nested so deeply that nobody wrote it by hand
            if name := checked(node):
                notebook.checks[name] = len(notebook.statements)
            elif wanted(node):
                notebook.statements.append(found)
                notebook.aliases.update(imported(node))
    return notebook


def parse(source: str) -> tuple[ast.Module, str]:
    """The tree of a cell and its source without magics; lines keep their numbers."""
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = re.match(r"\s*%%(\w+)", source)
        if first and first[1] not in DROPPED_MAGICS:
            return ast.Module([], []), ""
        try:
            return compile(source, "cell", "exec", flags, dont_inherit=True), source
        except SyntaxError:
            plain = re.sub(r"(?m)^(\s*)([%!?].*|[\w.]+\?\??|[\w, ]+=\s*[!%].*)$", r"\1pass", source)
            return compile(plain, "cell", "exec", flags, dont_inherit=True), plain


def wanted(node: ast.stmt) -> bool:
    """Whether a statement is an import, a definition or an assignment, or a block of such."""
    if isinstance(node, BLOCKS):
        parts = [*node.body, *getattr(node, "orelse", []), *getattr(node, "finalbody", [])]
        parts += [part for handler in getattr(node, "handlers", []) for part in handler.body]
        return all(map(wanted, parts))
    return isinstance(node, SIMPLE)


def checked(node: ast.stmt) -> str:
    """The name in `name = check("name")`, else nothing."""
    value = getattr(node, "value", None)
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Expr)) and isinstance(value, ast.Call):
        called, first = value.func, value.args[0] if value.args else None
        if isinstance(called, ast.Name) and called.id.startswith("check") and isinstance(first, ast.Constant):
            return first.value if type(first.value) is str else ""
    return ""


def binds(node: ast.stmt) -> set[str]:
    """Names that a statement gives a meaning, or whose object it changes (`Layer.forward = ...`)."""
    names = set()
    for part in at_top(node):
        if isinstance(part, DEFINITIONS):
            names.add(part.name)
        elif isinstance(part, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in part.names}
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            names.add(part.id)
        elif isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Store):
            while isinstance(part, (ast.Attribute, ast.Subscript)):
                part = part.value
            names |= {part.id} if isinstance(part, ast.Name) else set()
    return names


def at_top(node: ast.AST) -> list[ast.AST]:
    """The parts of a statement that run in the notebook's own namespace."""
    if isinstance(node, (*DEFINITIONS, ast.Lambda)):
        return [node]
    return [node, *(part for child in ast.iter_child_nodes(node) for part in at_top(child))]


def uses(node: ast.AST) -> set[str]:
    """Names that a statement looks up in the notebook's namespace, now or when what it defines is called."""
    if isinstance(node, ast.Name):
        return {node.id}
    found = set().union(*map(uses, ast.iter_child_nodes(node)), set())
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        body = node.body if isinstance(node.body, list) else [node.body]
        parts = [part for statement in body for part in at_top(statement)]
        shared = {name for part in parts if isinstance(part, ast.Global) for name in part.names}
        own = {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)}
        own |= {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        outside = [*node.args.defaults, *filter(None, node.args.kw_defaults), *getattr(node, "decorator_list", [])]
        found = (found - (own - shared)) | set().union(*map(uses, outside), set())
    return found


def imported(node: ast.stmt) -> dict[str, str]:
    """Names that a statement imports, each with its dotted path."""
    found = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Import):
            for alias in part.names:
                found[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(part, ast.ImportFrom) and part.module:
            found |= {alias.asname or alias.name: f"{part.module}.{alias.name}" for alias in part.names}
    return found


def needed(notebook: Notebook, names: list[str]) -> list[int]:
    """Numbers of the statements that these names rest on; all of them if the code looks its own names up."""
    statements, names_reached = notebook.statements, reached(notebook, names)
    if names_reached & REFLECTION:
        return list(range(len(statements)))
    return [i for i, s in enumerate(statements) if s.binds & (names_reached | {"*"})]


def reached(notebook: Notebook, names: list[str]) -> set[str]:
    """These names and all that they rest on."""
    found, frontier = set(names), set(names)
    while frontier:
        more = set().union(*(s.uses | s.binds for s in notebook.statements if s.binds & frontier), set())
        frontier = more - found
        found |= more
    return found


def places(notebook: Notebook, names: list[str]) -> dict[str, int]:
    """After how many statements each name is judged: after its newest definition, its last check, and late helpers.

    A helper that is defined only further down was there when its author, who runs cells in any order, ran the check.
    """
    found, first = {}, {}
    for i, statement in reversed(list(enumerate(notebook.statements))):
        first |= dict.fromkeys(statement.binds, i + 1)
    for name in names:
        newest = max((i + 1 for i, s in enumerate(notebook.statements) if name in s.binds), default=None)
        if newest is not None:
            helpers = reached(notebook, [name]) - set(names) - set(dir(builtins))
            found[name] = max(newest, notebook.checks.get(name, 0), *(first.get(helper, 0) for helper in helpers))
    return found


def definition(notebook: Notebook, name: str) -> ast.stmt | None:
    """The newest statement that gives the name a meaning."""
    return next((s.node for s in reversed(notebook.statements) if name in s.binds), None)
