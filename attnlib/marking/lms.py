"""Filling the file that a learning platform exports: Canvas, Moodle, Blackboard.

Only cells of the grade column change, and only numbers are written, so nothing that a student chose can become a formula.
All else, the platform's own cells that begin with = included, stays byte for byte: an import must find what it exported.
"""

import codecs
import csv
import math
import re
from dataclasses import dataclass
from pathlib import Path

PLATFORMS = {  # heads that tell them apart, and columns that may hold the id, the best first
    "Canvas": ("SIS Login ID", ["SIS Login ID", "SIS User ID", "ID"]),
    "Blackboard": ("Username", ["Username", "Student ID"]),
    "Moodle": ("Email address", ["Email address", "ID number", "Username", "Identifier"]),
}
NOT_GRADES = re.compile(r"total|current|final|last downloaded|last access|availability", re.IGNORECASE)


@dataclass
class Filled:
    """What came of it: the bytes to write, what was guessed, and who was found on one side only."""

    data: bytes
    guessed: str
    without_marks: list[str]
    without_row: list[str]
    filled: int


def decode(data: bytes) -> tuple[str, str, bytes]:
    """Text, encoding and byte order mark of a file."""
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            return data[len(mark) :].decode(name), name, mark
    try:
        return data.decode("utf-8"), "utf-8", b""
    except UnicodeDecodeError:
        raise ValueError("the export is neither UTF-8 nor UTF-16; export it again, or save it as CSV UTF-8") from None


def rows_of(text: str, separator: str) -> list[list[str]]:
    """Records as lists of raw pieces: field, separator, field, ..., line end. Joined they are the text again."""
    rows, row, place = [], [], 0
    field = re.compile(rf'"(?:[^"]|"")*"|[^{separator}\r\n]*')
    after = re.compile(rf"{separator}|\r\n|\r|\n|$")
    while place < len(text):
        found = field.match(text, place)
        end = after.match(text, found.end())
        if not end:
            raise ValueError(f"record {len(rows) + 1} of the export has text after a closing quote; export it again")
        row += [found[0], end[0]]
        place = end.end()
        if end[0] != separator:
            rows.append(row)
            row = []
    return rows + ([[*row, "", ""]] if row else [])


def plain(raw: str) -> str:
    """A field without its quotes."""
    return raw[1:-1].replace('""', '"') if raw.startswith('"') else raw


def key(text: str) -> str:
    """An id as it is compared: without case and spaces around, or the quote that `mark` puts before = + - @."""
    text = text.strip().casefold()
    return text[1:] if text[:1] == "'" and text[1:2] in tuple("=+-@") else text


def pick(heads: list[str], wanted: str, candidates: list[str], option: str) -> int:
    """Index of the column asked for, or guessed."""
    names = [wanted] if wanted else candidates
    for name in names:
        if heads.count(name) == 1:
            return heads.index(name)
    what = f"{wanted!r} is not one column" if wanted else f"{len(candidates)} columns could be it"
    raise ValueError(f"{what} of the export; say {option} with one of: {', '.join(map(repr, heads))}")


def read_marks(path: Path) -> dict[str, tuple[str, str]]:
    """Id and points by key, from the table that `mark` wrote."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    marks = {}
    for row in rows:
        try:
            if not math.isfinite(float(row["points"])):
                raise ValueError
            student = key(row["id"])
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{path} has a row without id or points; expected the table of `attnlib mark`") from None
        if student in marks:
            raise ValueError(f"{path} has two rows for {row['id']!r}; keep one")
        marks[student] = row["id"], row["points"].strip()
    return marks


def fill(data: bytes, marks: dict[str, tuple[str, str]], id_column: str = "", grade_column: str = "") -> Filled:
    """The export with the marks in it."""
    text, encoding, mark = decode(data)
    first = text.splitlines()[0] if text else ""
    separator = max("\t,;", key=first.count)
    rows = rows_of(text, separator)
    heads = [plain(raw) for raw in rows[0][::2]] if rows else []
    platform = next((name for name, (head, _) in PLATFORMS.items() if head in heads), "unknown platform")
    ids = [name for name in PLATFORMS.get(platform, ("", []))[1] if name in heads]
    id_at = pick(heads, id_column, ids, "--id-column")
    shapes = {"Canvas": r".+ \(\d+\)", "Blackboard": r".+\|\d+", "Moodle": r".+\(Real\)|Grade"}
    like = [
        h
        for h in heads
        if re.fullmatch(shapes.get(platform, "$^"), h.strip()) and not NOT_GRADES.search(h.split("[")[0])
    ]
    if not grade_column and len(like) != 1:
        like = [f"{len(like)} found"] * len(like)  # none, or several: the instructor has to say which
    grade_at = pick(heads, grade_column, like, "--grade-column")
    if id_at == grade_at:
        raise ValueError(f"--id-column and --grade-column are both {heads[id_at]!r}; they must differ")
    left, without, seen = dict(marks), [], set()
    for row in rows[1:]:
        fields = [plain(raw) for raw in row[::2]]
        if not any(fields) or (platform == "Canvas" and fields[0].strip() == "Points Possible"):
            continue
        if len(fields) <= max(id_at, grade_at):
            raise ValueError(f"a row of the export has {len(fields)} fields, its head {len(heads)}: {fields[:3]}")
        student = key(fields[id_at])
        if student in seen and student:
            raise ValueError(f"the export has two rows for {fields[id_at]!r}; choose another --id-column")
        seen.add(student)
        if student in left:
            quote = '"' if row[2 * grade_at].startswith('"') else ""
            row[2 * grade_at] = quote + left.pop(student)[1] + quote
        else:
            without.append(fields[id_at] or fields[0])
    guessed = f"{platform}; id in {heads[id_at]!r}, grade in {heads[grade_at]!r}"
    whole = "".join(piece for row in rows for piece in row)
    missing = [student for student, _ in left.values()]
    return Filled(mark + whole.encode(encoding), guessed, without, missing, len(marks) - len(left))
