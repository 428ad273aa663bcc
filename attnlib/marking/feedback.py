"""A page of feedback for each student. No solution is in it, and everything is escaped."""

import re
import unicodedata
from itertools import groupby
from pathlib import Path

from attnlib.marking.pages import breakable, escaped, named, page, section
from attnlib.marking.results import number
from attnlib.marking.writing import whole

LONGEST = 200  # bytes of a file's name; most systems take 255
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(?![^. ])", re.IGNORECASE)  # on Windows these are devices

NEXT = {  # by status, before the link to the lesson; "case" is a wrong answer with a failing case
    "case": "run your answer on the numbers above, and find the first one that differs. Then change it, and run the check "
    "again until it says right. What it needs is explained in",
    "not yet": "mend what is named above, and run the check again until it says right. What it needs is explained in",
    "not started": "write your answer in the place of the three dots, and run the check below it. It is explained in",
    "missing": "hand in a notebook with the cell that defines it, and run that cell before you save. It is explained in",
    "not judged": "look for a cell that takes very long, and take it out. The exercise is in",
}
UNREADABLE = (
    "<strong>Next:</strong> open your notebook in JupyterLab, run it, save it, and hand in the file that ends in .ipynb. If it does not open, "
    "ask your instructor."
)


def feedback(entry: dict) -> str:
    """The page of one student."""
    parts = [f"<p>{number(entry['points'])} of {number(entry['of'])} points.</p>"]
    if entry.get("file"):
        note = f" ({escaped(entry['note'])})" if entry.get("note") else ""
        parts.append(f"<p>The file that was marked: {named(entry['file'])}{note}.</p>")
    if entry["error"]:
        parts.append(f"<p>It could not be marked: {escaped(entry['error'])}.</p><p>{UNREADABLE}</p>")
    parts.append(overview(entry["exercises"]))
    parts += [exercise(place, mark) for place, mark in enumerate(entry["exercises"], 1)]
    heading = f"Feedback for {named(entry['id'])}: {escaped(entry['assignment'])}"
    title = f"Feedback for {entry['id']}: {entry['assignment']}"
    return page(title, "\n".join(parts), entry["sandbox"], heading)


def overview(marks: list[dict]) -> str:
    """Which exercises are left to do, each with a link to its place on the page."""
    left = [
        f'<li><a href="#exercise-{place}">{breakable(mark["name"])}</a>: {escaped(mark["status"])}</li>'
        for place, mark in enumerate(marks, 1)
        if mark["status"] != "right"
    ]
    if not left:
        return "<p>All exercises are right. Nothing is left to do.</p>" if marks else ""
    return f"<p>Left to do: {len(left)} of {len(marks)} exercises.</p><ul>{''.join(left)}</ul>"


def exercise(place: int, mark: dict) -> str:
    """The verdict on one exercise, and what to do next."""
    points = f"{number(mark['points'])} of {number(mark['of'])} points"
    parts = [f'<h2 id="exercise-{place}">{breakable(mark["name"])}: {escaped(mark["status"])}, {points}</h2>']
    said = mark["text"].removeprefix(f"{mark['name']}: ").removeprefix(f"{mark['status']}.").strip()
    lines = (said[:1].upper() + said[1:]).split("\n")
    for numbers, group in groupby(lines, key=lambda line: line.startswith("  ")):
        if numbers:
            parts.append("<pre>" + escaped("\n".join(line[2:] for line in group)) + "</pre>")
        else:
            parts += [f"<p>{escaped(line)}</p>" for line in group if line.strip()]
    if mark["status"] != "right":
        failing = mark["status"] == "not yet" and any(line.startswith("  ") for line in lines)
        what = NEXT.get("case" if failing else mark["status"], "look again at")
        parts.append(f"<p><strong>Next:</strong> {what} {section(mark['lesson'], mark['name'])}.</p>")
    return "\n".join(parts)


def file_name(student: str) -> str:
    """A file name, without its ending, that stays in its folder and that every system takes."""
    letters = unicodedata.normalize("NFC", student)
    name = "".join(c if c in ".@ ()-" or unicodedata.category(c)[0] in "LMN" else "_" for c in letters).lstrip(". ")
    name = name.encode()[:LONGEST].decode(errors="ignore").rstrip(". ")
    return f"_{name}" if RESERVED.match(name) or not name else name


def file_names(students: list[str]) -> list[str]:
    """A file name for each student; of those that a system might take for one, all but the first get a number."""
    taken: set[str] = set()
    names = []
    for student in students:
        first = file_name(student)
        tries = [first, *(f"{first} ({number})" for number in range(2, len(students) + 1))]
        names.append(next(name for name in tries if folded(name) not in taken))
        taken.add(folded(names[-1]))
    return names


def folded(name: str) -> str:
    """What is the same for names that some system takes for one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def write_feedback(entries: list[dict], folder: Path, replace: bool = False) -> str:
    """Write a page for each student into a new folder; returns a sentence on what is there now."""
    with whole(folder, replace) as part:
        part.mkdir()
        for name, entry in zip(file_names([entry["id"] for entry in entries]), entries):
            (part / f"{name}.html").write_text(feedback(entry), encoding="utf-8")
    return f"{len(entries)} pages in {folder}"
