"""What the instructor reads: marks, the misconceptions of the class, and what to look at by hand."""

import base64
import csv
import io
import statistics
from collections import defaultdict
from pathlib import Path

import numpy as np

from attnlib.marking.assignment import Assignment, Task, exercises_of
from attnlib.marking.pages import escaped, named, page, section, stamp, table
from attnlib.marking.results import alike, harmless, number
from attnlib.marking.writing import whole


def assignment_of(entries: list[dict]) -> Assignment | None:
    """The assignment that the lines are marks for."""
    marks = next((entry["exercises"] for entry in entries if entry["exercises"]), [])
    tasks = tuple(Task(mark["lesson"], mark["name"], mark["of"]) for mark in marks)
    return Assignment(entries[0]["assignment"], tasks) if tasks else None


def misconceptions(entries: list[dict]) -> list[dict]:
    """The mistakes that were matched, the most frequent first.

    Returns
    -------
    list of dict
        With lesson, exercise, mistake, students (how many), hint, sandbox (of these students' marks).
    """
    seen = defaultdict(dict)
    for entry in entries:
        for mark in entry["exercises"]:
            for mistake in mark["mistakes"]:
                seen[mark["lesson"], mark["name"], mistake][entry["id"]] = entry
    rows = []
    for (lesson, name, mistake), those in sorted(seen.items(), key=lambda item: (-len(item[1]), item[0])):
        known = exercises_of(lesson)[name].mistakes if name in exercises_of(lesson) else ()
        hint = next((each.hint for each in known if each.name == mistake), "")
        row = {"lesson": lesson, "exercise": name, "mistake": mistake, "students": len(those), "hint": hint}
        rows.append(row | {"sandbox": stamp(list(those.values()))})
    return rows


def distribution(entries: list[dict]) -> str:
    """The points of the class: a sentence, a histogram, and the histogram in numbers; as HTML."""
    points, most = sorted(entry["points"] for entry in entries), max(entry["of"] for entry in entries) or 1
    full, none = sum(point == most for point in points), sum(point == 0 for point in points)
    unread = sum(bool(entry["error"]) for entry in entries)
    sentence = (
        f"{len(points)} submissions: {full} with all {number(most)} points, {none} with none; the median is "
        f"{number(statistics.median(points))}. {unread} could not be marked."
    )
    counts, edges = np.histogram(points, bins=10, range=(0, most))
    ends = [f"{low:.3g} to {high:.3g}" for low, high in zip(edges, edges[1:])]
    numbers = table("Submissions by points", ["points", "submissions"], zip(ends, map(str, counts)))
    return (
        f'<p>{escaped(sentence)}</p>\n<img alt="Histogram of points. {escaped(sentence)}" src="data:image/png;base64,'
        f'{histogram(points, most)}">\n<details><summary>The figure in numbers</summary>{numbers}</details>'
    )


def histogram(points: list[float], most: float) -> str:
    """A histogram as base64 of a PNG."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    from attnlib.plots.style import BLUE, tidy

    figure = Figure(figsize=(4.6, 2.4), layout="constrained")
    ax = figure.subplots()
    ax.hist(points, bins=10, range=(0, most), color=BLUE, edgecolor="white")
    ax.set(xlabel="points", ylabel="submissions")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(ax)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=170)
    return base64.b64encode(picture.getvalue()).decode()


def report(entries: list[dict]) -> str:
    """The page for the instructor."""
    assignment = assignment_of(entries)
    similar = alike(entries, assignment) if assignment else {}
    parts = ["<h2>Marks</h2>", distribution(entries)]
    heads = ["exercise", "right", "not right", "wrong, no known mistake"]
    parts.append(table("Exercises", heads, by_exercise(entries, assignment)))
    mistakes = [
        [escaped(m["mistake"]), str(m["students"]), escaped(m["hint"]), section(m["lesson"], m["exercise"])]
        for m in misconceptions(entries)
    ]
    heads = ["mistake", "students", "hint that they read", "where it is treated"]
    parts.append("<h2>Misconceptions</h2>" + table("Mistakes that were recognised", heads, mistakes))
    parts.append(
        "<h2>To look at by hand</h2><p>A library call or similar code is a reason to ask, and proves nothing.</p>"
    )
    heads = ["id", "library calls", "code like", "error", "note"]
    parts.append(table("Submissions to look at", heads, to_look_at(entries, similar)))
    several = len({entry["sandbox"] for entry in entries}) > 1
    everyone = [
        [named(e["id"]), f"{number(e['points'])} of {number(e['of'])}", *[escaped(e["sandbox"])] * several]
        for e in entries
    ]
    heads = ["id", "points", *["sandbox"] * several]
    parts.append("<h2>All marks</h2>" + table("Points of each submission", heads, everyone))
    return page(f"Report: {entries[0]['assignment']}", "\n".join(parts), stamp(entries))


def by_exercise(entries: list[dict], assignment: Assignment | None) -> list[list[str]]:
    """For each exercise how many have it right, not right, and wrong in a way that no known mistake explains."""
    rows = []
    for task in assignment.tasks if assignment else ():
        marks = [mark for entry in entries for mark in entry["exercises"] if mark["name"] == task.name]
        right = sum(mark["status"] == "right" for mark in marks)
        unknown = sum(mark["status"] == "not yet" and not mark["mistakes"] for mark in marks)
        rows.append([escaped(task.name), str(right), str(len(marks) - right), str(unknown)])
    return rows


def to_look_at(entries: list[dict], similar: dict[str, list[str]]) -> list[list[str]]:
    """Submissions that a person should look at, with the reasons."""
    rows = []
    for entry in entries:
        calls = "; ".join(f"{m['name']}: {', '.join(m['libraries'])}" for m in entry["exercises"] if m["libraries"])
        reasons = [calls, "; ".join(similar.get(entry["id"], [])), entry["error"], entry.get("note", "")]
        if any(reasons):
            rows.append([named(entry["id"]), *map(escaped, reasons)])
    return rows


def write_report(entries: list[dict], path: Path, replace: bool = False) -> str:
    """Write the page, and the misconceptions as CSV beside it; returns a sentence on what is there now."""
    beside = path.with_suffix(".csv")
    if path.suffix != ".html":
        raise ValueError(f"--to {path} is no name of a page; try --to {path.with_suffix('.html')}")
    with whole(path, replace) as page_part, whole(beside, replace) as table_part:
        page_part.write_text(report(entries), encoding="utf-8")
        with table_part.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            heads = ["lesson", "exercise", "mistake", "students", "hint", "sandbox", "sandbox of all submissions"]
            rows.writerow(heads)
            nothing = dict.fromkeys(heads[:-1], "") | {"mistake": "none was recognised", "students": 0}
            for row in misconceptions(entries) or [nothing]:
                rows.writerow([*map(harmless, row.values()), harmless(stamp(entries))])
    return f"{path} and {beside}"
