"""What the instructor reads: marks, the misconceptions of the class, and what to look at by hand."""

import base64
import csv
import io
from collections import defaultdict
from pathlib import Path

from attnlib.marking.assignment import Assignment, Task
from attnlib.marking.feedback import escaped, page, section, table
from attnlib.marking.results import alike, harmless, number


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
        With lesson, exercise, mistake, students (how many), hint.
    """
    seen = defaultdict(set)
    for entry in entries:
        for mark in entry["exercises"]:
            for mistake in mark["mistakes"]:
                seen[mark["lesson"], mark["name"], mistake].add(entry["id"])
    rows = []
    for (lesson, name, mistake), ids in sorted(seen.items(), key=lambda item: (-len(item[1]), item[0])):
        hints = [known.hint for known in Task(lesson, name).exercise.mistakes if known.name == mistake]
        row = {"lesson": lesson, "exercise": name, "mistake": mistake, "students": len(ids)}
        rows.append(row | {"hint": hints[0] if hints else ""})
    return rows


def distribution(entries: list[dict]) -> tuple[str, str]:
    """A histogram of points as base64 of a PNG, and its sentence."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    from attnlib.plots.style import BLUE, tidy

    points, most = sorted(entry["points"] for entry in entries), max(entry["of"] for entry in entries) or 1
    figure = Figure(figsize=(6, 2.8), layout="constrained")
    ax = figure.subplots()
    ax.hist(points, bins=10, range=(0, most), color=BLUE, edgecolor="white")
    ax.set(xlabel="points", ylabel="submissions")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(ax)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=130)
    full, none = sum(point == most for point in points), sum(point == 0 for point in points)
    middle = (points[(len(points) - 1) // 2] + points[len(points) // 2]) / 2
    sentence = (
        f"{len(points)} submissions: {full} with all {number(most)} points, {none} with none; the median is "
        f"{number(middle)}."
    )
    return base64.b64encode(picture.getvalue()).decode(), sentence


def report(entries: list[dict]) -> str:
    """The page for the instructor."""
    picture, sentence = distribution(entries)
    assignment = assignment_of(entries)
    similar = alike(entries, assignment) if assignment else {}
    parts = [f"<h2>Marks</h2><p>{escaped(sentence)}</p>"]
    parts.append(f'<img alt="Histogram of points. {escaped(sentence)}" src="data:image/png;base64,{picture}">')
    counts = []
    for task in assignment.tasks if assignment else ():
        marks = [mark for entry in entries for mark in entry["exercises"] if mark["name"] == task.name]
        right = sum(mark["status"] == "right" for mark in marks)
        unknown = sum(mark["status"] == "not yet" and not mark["mistakes"] for mark in marks)
        counts.append([escaped(task.name), str(right), str(len(marks) - right), str(unknown)])
    parts.append(table("Exercises", ["exercise", "right", "not right", "wrong, no known mistake"], counts))
    mistakes = [
        [escaped(m["mistake"]), str(m["students"]), escaped(m["hint"]), section(m["lesson"], m["exercise"])]
        for m in misconceptions(entries)
    ]
    parts.append("<h2>Misconceptions</h2>")
    heads = ["mistake", "students", "hint that they read", "where it is treated"]
    parts.append(table("Mistakes that were recognised", heads, mistakes))
    looks = []
    for entry in entries:
        calls = "; ".join(f"{m['name']}: {', '.join(m['libraries'])}" for m in entry["exercises"] if m["libraries"])
        like = "; ".join(similar.get(entry["id"], []))
        if calls or like or entry["error"] or entry.get("note"):
            cells = [entry["id"], calls, like, entry["error"], entry.get("note", "")]
            looks.append([escaped(cell) for cell in cells])
    parts.append(
        "<h2>To look at by hand</h2><p>A library call or similar code is a reason to ask, and proves nothing.</p>"
    )
    parts.append(table("Submissions to look at", ["id", "library calls", "code like", "error", "note"], looks))
    everyone = [[escaped(e["id"]), f"{number(e['points'])} of {number(e['of'])}"] for e in entries]
    parts.append("<h2>All marks</h2>" + table("Points of each submission", ["id", "points"], everyone))
    labels = sorted({entry["sandbox"] for entry in entries}, reverse=True)
    unsafe = next((label for label in labels if label.startswith("UNSAFE")), labels[0])
    return page(f"Report: {entries[0]['assignment']}", "\n".join(parts), unsafe)


def write_report(entries: list[dict], path: Path) -> Path:
    """Write the page, and the misconceptions as CSV beside it; returns the path of the latter."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report(entries), encoding="utf-8")
    beside = path.with_suffix(".csv")
    with beside.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["lesson", "exercise", "mistake", "students", "hint", "sandbox"])
        for row in misconceptions(entries):
            rows.writerow([*(harmless(value) for value in row.values()), entries[0]["sandbox"]])
    return beside
