"""Filling the file that a learning platform exports: Canvas, Moodle, Blackboard.

Only cells of the grade column change, and only numbers are written, so nothing that a student chose can become a formula.
All else, the platform's own cells that begin with = included, stays byte for byte: an import must find what it exported.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from attnlib.marking.platforms import Platform, has_decimal_commas, number_of, platform_of
from attnlib.marking.results import is_formula
from attnlib.marking.tables import Table, only

KEPT = ("EX", "N/A")  # of Canvas: excused, and not assigned or not to be seen; a number would undo an excuse
DOWNLOADS = (  # what platforms call the files that they hand out, and where the student's id is in it
    re.compile(r".+_(?P<id>\d+)_assignsubmission_\w*"),  # Moodle: the number of the participant
    re.compile(r".+?_(?P<id>.+)_attempt_\d{4}(-\d\d){5}.*"),  # Blackboard: the username
    re.compile(r"[^_]+(_late)?_(?P<id>\d+)_\d+_.+"),  # Canvas: the number of the student, then of the file
)
PARTICIPANT = r"(participant|teilnehmer/in) *(?P<id>\d+)"  # of Moodle's grading worksheet


class Mark(NamedTuple):
    """A row of the table of marks."""

    id: str
    points: str
    of: str = ""
    error: str = ""
    sandbox: str = ""


@dataclass
class Filled:
    """What came of it: the bytes to write, what was guessed, who was found on one side only, and what to look at."""

    data: bytes = b""
    guessed: str = ""
    filled: int = 0
    without_marks: list[str] = field(default_factory=list)
    without_row: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def key(text: str) -> str:
    """An id as it is compared: without case and spaces around, or the quote that `mark` puts before = + - @."""
    text = text.strip().casefold()
    return text[1:] if text[:1] == "'" and is_formula(text[1:]) else text


def read_marks(path: Path) -> dict[str, Mark]:
    """The rows of the table that `mark` wrote, by key."""
    table = Table.read(path.read_bytes(), str(path))
    wanted = "the table of `attnlib mark`, with columns id and points"
    if not {"id", "points"} <= set(table.heads):
        beside = path.with_suffix(".csv")
        hint = f". Try {beside}" if beside != path and beside.is_file() else ""
        raise ValueError(f"{path} has no columns id and points in its first line; expected {wanted}{hint}")
    marks = {}
    for row in table.rows():
        try:
            points = row["points"].strip().replace(",", ".")  # a table calculator may have saved it so
            if not math.isfinite(float(points)):
                raise ValueError
        except (KeyError, ValueError):
            raise ValueError(f"{path} has no points that are a number for {row['id']!r}; expected {wanted}") from None
        if not (student := key(row["id"])):
            raise ValueError(f"{path} has a row without an id, with {points} points; expected {wanted}")
        if student in marks:
            raise ValueError(f"{path} has two rows for {row['id']!r}; keep one")
        others = {name: row.get(name, "") for name in ("of", "error", "sandbox")}
        marks[student] = Mark(row["id"], points, **others)
    if not marks:
        raise ValueError(f"{path} has no rows; expected {wanted}")
    return marks


def names_of(student: str) -> list[str]:
    """What an export may call a student, the longest first; an id in the marks may be the name of a download."""
    names = [student]
    for shape in DOWNLOADS:
        if found := shape.fullmatch(student):
            parts = found["id"].split("_")  # an assignment and a username may both have a _
            return names + ["_".join(parts[place:]) for place in range(len(parts))]
    return names


def owners(marks: dict[str, Mark], cells: Iterable[str]) -> dict[str, Mark]:
    """The mark of each id in a column; none where several would have the same."""
    known, found = set(cells), defaultdict(list)
    for student, mark in marks.items():
        if name := next((name for name in names_of(student) if name in known), ""):
            found[name].append(mark)
    return {name: those[0] for name, those in found.items() if len(those) == 1}


def fill(data: bytes, marks: dict[str, Mark], id_column: str = "", grade_column: str = "") -> Filled:
    """The export with the marks in it."""
    table = Table.read(data, "the export")
    heads = table.heads
    platform = platform_of(heads)
    grade_at = platform.grade_column(heads, grade_column)
    rows = {place: table.fields(place) for place in range(1, len(table))}
    rows = {place: fields for place, fields in rows.items() if platform.is_person(heads, fields)}
    if short := next((fields for fields in rows.values() if len(fields) < len(heads)), None):
        raise ValueError(
            f"a row of the export has {len(short)} fields, its head {len(heads)}: {short[:3]}; export it again"
        )
    id_at = find_ids(heads, list(rows.values()), marks, platform, id_column, grade_at)
    ids = {place: cell_id(fields[id_at]) for place, fields in rows.items()}
    owned, times = owners(marks, ids.values()), Counter(ids.values())
    if twice := next((name for name in owned if times[name] > 1), ""):
        raise ValueError(f"the export has {times[twice]} rows for {twice!r}; choose another --id-column")
    done = Filled(guessed=f"{platform.name}; id in {heads[id_at]!r}, grade in {heads[grade_at]!r}")
    comma = has_decimal_commas(table)
    for place, fields in rows.items():
        mark, before = owned.get(ids[place]), fields[grade_at].strip()
        if mark is None:
            if before not in KEPT and not platform.is_test_student(heads, fields):
                done.without_marks.append(fields[id_at] or fields[0])
        elif before in KEPT:
            done.kept.append(f"{mark.id} ({before})")
        else:
            if number_of(before) not in (None, float(mark.points)):
                done.changed.append(f"{mark.id} ({before} is now {mark.points})")
            table.put(place, grade_at, mark.points.replace(".", ",") if comma else mark.points)
            done.filled += 1
    done.without_row = [mark.id for mark in marks.values() if mark not in owned.values()]
    done.data, done.warnings = table.data, warnings_of(platform, table, grade_at, list(marks.values()))
    return done


def cell_id(cell: str) -> str:
    """The id in a cell; Moodle puts a word before the number of a participant."""
    name = key(cell)
    participant = re.fullmatch(PARTICIPANT, name)
    return participant["id"] if participant else name


def find_ids(
    heads: list[str], rows: list[list[str]], marks: dict[str, Mark], platform: Platform, wanted: str, grade_at: int
) -> int:
    """Index of the column with the ids: the one asked for, or the one that holds most ids of the marks."""
    columns = [only(heads, wanted, "--id-column")] if wanted else [c for c in range(len(heads)) if c != grade_at]
    if grade_at in columns:
        raise ValueError(f"--id-column and --grade-column are both {heads[grade_at]!r}; they must differ")
    hits = {column: len(owners(marks, [cell_id(fields[column]) for fields in rows])) for column in columns}
    best = max(columns, key=lambda column: (hits[column], -platform.rank(heads[column]), -column))
    if not hits[best]:
        where = f"column {wanted!r}" if wanted else "any column"
        raise ValueError(
            f"no id of the marks is in {where} of the export. The marks have ids such as {next(iter(marks.values())).id!r}: "
            f"they are the names of the files that were marked. The export has the columns {', '.join(map(repr, heads))}, "
            f"and its first student is {rows[0] if rows else 'missing'}. Change the column id of the marks to ids of the "
            f"export{', or try another --id-column' if wanted else ''}"
        )
    return best


def warnings_of(platform: Platform, table: Table, grade_at: int, marks: list[Mark]) -> list[str]:
    """What an instructor should know before the import."""
    warnings = []
    there, ours = platform.possible(table, grade_at), max((number_of(mark.of) or 0 for mark in marks), default=0)
    if ours and there is not None and there != ours:
        warnings.append(
            f"{platform.name} has {there:g} points possible in {table.heads[grade_at]!r}, and the marks are out of {ours:g}. "
            f"They are written as they are, so that all points are {ours:g} of {there:g} there. Change the points possible "
            "there, or mark again with other --points"
        )
    if unread := [mark.id for mark in marks if mark.error]:
        warnings.append(f"{len(unread)} have 0 because they could not be marked; look at them: {', '.join(unread)}")
    if unsafe := [mark for mark in marks if mark.sandbox.startswith("UNSAFE")]:
        warnings.append(
            f"{len(unsafe)} of {len(marks)} marks come from a run with {unsafe[0].sandbox}; they prove little"
        )
    return warnings
