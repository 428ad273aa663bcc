"""Finding submissions in a folder, and reading the code cells of a notebook whatever has happened to it."""

import contextlib
import json
import os
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

LARGEST = 100_000_000  # bytes of a file
MOST_PARTS = 5_000_000  # of JSON, each of which takes up to 80 bytes when it is read
STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)  # nothing is tried twice, so that it takes no memory
DEEPEST = 20  # folders within a student's folder; nobody packs more, and paths cannot be of any length
NAMED = 10  # of the files in a student's folder that were not read
LIKE_A_NOTEBOOK = re.compile(r"\.ipynb|\.json$", re.IGNORECASE)


class NotANotebook(ValueError):
    """A file that holds no notebook, with a sentence on what it is."""


@dataclass(frozen=True)
class Submission:
    """One student's file; `path` is None where there is none, and `note` says what the instructor should know."""

    id: str
    path: Path | None
    note: str = ""

    def read(self) -> bytes:
        """The file's bytes, or NotANotebook."""
        if self.path is None:
            raise NotANotebook("there is no notebook in its folder")
        if not self.path.is_file():
            raise NotANotebook("it is no file, but something from which reading might never end, such as a pipe")
        if self.path.stat().st_size > LARGEST:
            raise NotANotebook(f"the file has more than {LARGEST // 1_000_000} MB")
        return self.path.read_bytes()


def find(folder: Path, names: list[str], like: str = "") -> list[Submission]:
    """The submissions in a folder: a notebook each, or a folder each.

    Parameters
    ----------
    folder : where they are
    names :
        The exercises' names: of several notebooks in one student's folder, the one that defines most of them is taken.
    like :
        The assignment's file name, which is preferred.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; expected one with a notebook, or a folder, for each student")
    found = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.is_symlink():
            continue
        if path.is_dir():
            found[path.name] = in_folder(path, names, like)
        elif LIKE_A_NOTEBOOK.search(path.name):
            found[path.name] = Submission(LIKE_A_NOTEBOOK.split(path.name)[0] or path.name, path)
    while twice := {one for one, times in Counter(s.id for s in found.values()).items() if times > 1}:
        found = {name: replace(s, id=name) if s.id in twice else s for name, s in found.items()}
    return list(found.values())


def in_folder(folder: Path, names: list[str], like: str) -> Submission:
    """The submission of a student who has a folder."""
    paths = notebooks_in(folder)
    if len(paths) < 2:
        return Submission(folder.name, paths[0] if paths else None)
    best = max(paths, key=lambda path: (path.name == like, defines(path, names)))
    rest = [str(path.relative_to(folder)) for path in paths if path != best]
    others = ", ".join(rest[:NAMED]) + (f" and {len(rest) - NAMED} more" if len(rest) > NAMED else "")
    return Submission(folder.name, best, f"read {best.relative_to(folder)}, not {others}")


def notebooks_in(folder: Path) -> list[Path]:
    """Files like notebooks, without links, what is hidden, and what is nested deeper than anybody would pack it."""
    found = []
    for place, folders, files in os.walk(folder):
        depth = len(Path(place).relative_to(folder).parts)
        folders[:] = [name for name in folders if not name.startswith(".") and depth < DEEPEST]
        shown = [Path(place, name) for name in files if LIKE_A_NOTEBOOK.search(name) and not name.startswith(".")]
        with contextlib.suppress(PermissionError):  # names in a folder may be known, and nothing else
            found += [path for path in shown if path.is_file() and not path.is_symlink()]
    return sorted(found)


def defines(path: Path, names: list[str]) -> int:
    """How many of these names a file seems to define."""
    text = ""
    with contextlib.suppress(NotANotebook, OSError):  # what cannot be read is said when it is its turn
        text = Submission("", path).read().decode(errors="replace")
    return sum(bool(re.search(rf"\b(def|class)\s+{name}\b", text)) for name in names)


def parts_in(data: bytes) -> int:
    """How many parts JSON has, with those that its strings seem to have."""
    return sum(map(data.count, (b"[", b"{", b",")))


def has_many_parts(data: bytes) -> bool:
    """Whether JSON has too many parts; not those that a long table which a cell printed seems to have."""
    outside = parts_in(data)
    if outside <= MOST_PARTS:
        return False
    for number, string in enumerate(STRING.finditer(data)):
        if number > MOST_PARTS:
            return True
        outside -= parts_in(string[0])
    return outside > MOST_PARTS


def code_cells(data: bytes) -> list[str]:
    """Sources of a notebook's code cells, in order, without a look at metadata; or NotANotebook."""
    if has_many_parts(data):
        raise NotANotebook(f"the file has more than {MOST_PARTS:,} parts, which takes too much memory to be read")
    try:
        content = json.loads(data.decode("utf-8-sig", errors="replace"))
    except (ValueError, RecursionError) as error:
        what = "is empty" if not data.strip() else f"is not JSON ({type(error).__name__})"
        raise NotANotebook(f"the file {what}, so it is no notebook") from None
    cells = content.get("cells") if isinstance(content, dict) else None
    if cells is None and isinstance(content, dict) and isinstance(content.get("worksheets"), list):  # notebooks of 2013
        cells = [
            cell for sheet in content["worksheets"] if isinstance(sheet, dict) for cell in sheet.get("cells") or []
        ]
    if not isinstance(cells, list):
        raise NotANotebook("the file is JSON, but has no list of cells")
    sources = []
    for cell in cells:
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source = cell.get("source", cell.get("input", ""))
            parts = source if isinstance(source, list) else [source]
            sources.append("".join(part for part in parts if isinstance(part, str)))
    if not sources:
        raise NotANotebook("the notebook has no code cells")
    return sources
