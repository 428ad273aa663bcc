"""Reading a journal again: the lines that count, one for each student, with all that pages are made of."""

import json
import math
from pathlib import Path
from typing import Any

from attnlib import __version__
from attnlib.marking.results import harmless, number
from attnlib.marking.tables import Table

LINE = {"id": str, "assignment": str, "sandbox": str, "error": str, "points": float, "of": float}
LINE |= {"exercises": list, "code": dict}
MARK = {"lesson": str, "name": str, "status": str, "text": str, "points": float, "of": float}
MARK |= {"mistakes": list, "libraries": list}
CODE = {"shape": str, "text": str, "size": float}
COLUMNS = ("id", "points", "of", "sandbox")


def read_entries(path: Path) -> list[dict]:
    """The lines of a journal that count: one for each student.

    Of several, the last one that says what the table of marks beside it says, else the last.
    """
    by_id: dict[str, list[dict]] = {}
    for place, line in enumerate(text_of(path).split("\n"), 1):
        if line.strip():
            entry = entry_of(line, f"line {place} of {path}")
            by_id.setdefault(entry["id"], []).append(entry)
    if not by_id:
        raise ValueError(f"{path} is empty; expected {expected(path)}")
    marks = path.with_suffix(".csv")
    if not marks.exists():
        return [entries[-1] for entries in by_id.values()]
    rows = read_rows(marks)
    chosen = [counting(by_id[student], rows[harmless(student)]) for student in by_id if harmless(student) in rows]
    if not chosen:
        raise ValueError(
            f"no student of {path} is in {marks} beside it; expected the table of the same run. Mark again, or move "
            f"{marks.name} elsewhere: the last line of each student counts then"
        )
    return chosen


def expected(path: Path) -> str:
    """What a journal is, and where it may be found."""
    beside = path.with_suffix(".jsonl")
    hint = f". Try {beside}" if beside != path and beside.is_file() else ""
    return f"the .jsonl that `attnlib mark` writes beside its table{hint}"


def text_of(path: Path) -> str:
    """The text of what should be a journal."""
    if not path.is_file():
        raise ValueError(f"{path} is {'a folder' if path.is_dir() else 'not there'}; expected {expected(path)}")
    if path.suffix != ".jsonl":
        raise ValueError(f"{path} is no journal; expected {expected(path)}")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not text in UTF-8; expected {expected(path)}") from None


def entry_of(line: str, where: str) -> dict:
    """One line of a journal, checked."""
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    if not isinstance(entry, dict):
        raise ValueError(
            f"{where} is no result; expected the .jsonl that `attnlib mark` wrote. Run `attnlib mark` again: it mends a "
            "line that was cut"
        )
    lacks = lacking(entry, LINE)
    for part in entry.get("exercises", ()) if not lacks else ():
        lacks += lacking(part, MARK)
    for part in entry.get("code", {}).values() if not lacks else ():
        lacks += lacking(part, CODE)
    if lacks:
        version = entry.get("version", "an unknown version")
        raise ValueError(
            f"{where} has no {', '.join(dict.fromkeys(lacks))} that can be read; it was written by attnlib {version}, "
            f"expected is what {__version__} writes. Run the same `attnlib mark` again with --again"
        )
    return entry


def lacking(part: Any, wanted: dict[str, type]) -> list[str]:
    """Keys that a part does not have, or has with another kind of value."""
    if not isinstance(part, dict):
        return list(wanted)
    return [key for key, kind in wanted.items() if not fits(part.get(key), kind)]


def fits(value: Any, kind: type) -> bool:
    """Whether a value is of a kind; a float is finite, and may be a whole number."""
    if kind is float:
        return type(value) in (int, float) and math.isfinite(value)
    return type(value) is kind


def read_rows(marks: Path) -> dict[str, dict]:
    """The rows of a table of marks by id."""
    rows = Table.read(marks.read_bytes(), str(marks)).rows()
    if lacks := [name for name in COLUMNS if any(name not in row for row in rows)]:
        raise ValueError(
            f"{marks}, beside the journal, has no {', '.join(lacks)} in each row; expected the table that `attnlib mark` "
            f"wrote, which says which lines count. Move {marks.name} elsewhere: the last line of each student counts then"
        )
    return {row["id"]: row for row in rows}


def counting(entries: list[dict], row: dict) -> dict:
    """Of a student's lines the one that a row of the table was made of, else the last."""
    told = row["points"], row["of"], row["sandbox"]
    same = [e for e in entries if (str(number(e["points"])), str(number(e["of"])), e["sandbox"]) == told]
    return (same or entries)[-1]
