"""A page of feedback for each student, and what all pages share. No solution is in them, and everything is escaped."""

import csv
import html
import json
import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from attnlib.marking.assignment import NOTEBOOKS
from attnlib.marking.results import harmless, number

STYLE = """:root{color-scheme:light dark}
body{font:1rem/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem;overflow-wrap:anywhere}
pre{white-space:pre-wrap;border-left:.25rem solid;padding-left:.75rem}
.wide{overflow-x:auto}table{border-collapse:collapse;overflow-wrap:normal}caption{text-align:left;font-weight:bold}
th,td{border-bottom:1px solid;padding:.4rem .6rem;text-align:left;vertical-align:top}
img{max-width:100%;height:auto;background:#fff}.unsafe{border:.25rem double;padding:.5rem;font-weight:bold}"""


def escaped(text: object) -> str:
    """Text for HTML, without control characters."""
    return html.escape(re.sub(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", "", str(text)))


def page(title: str, body: str, sandbox: str) -> str:
    """A whole page: no scripts, nothing from elsewhere, and which sandbox the marks come from."""
    label = (
        f'<p class="unsafe">{escaped(sandbox)}</p>' if sandbox.startswith("UNSAFE") else f"<p>{escaped(sandbox)}</p>"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width,initial-scale=1"><title>{escaped(title)}</title><style>{STYLE}</style></head>'
        f"<body><main><h1>{escaped(title)}</h1>\n{label}\n{body}\n</main></body></html>\n"
    )


def table(caption: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; cells are HTML already, heads and caption are text."""
    top = "".join(f'<th scope="col">{escaped(head)}</th>' for head in heads)
    lines = []
    for first, *others in rows:
        lines.append(f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in others) + "</tr>")
    body = "\n".join(lines)
    return (
        f'<div class="wide" tabindex="0"><table><caption>{escaped(caption)}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def section(lesson: str, name: str) -> str:
    """A link to the section of the lesson that treats an exercise."""
    try:
        urls = metadata("attnlib").get_all("Project-URL") or []
    except PackageNotFoundError:
        urls = []
    address = next((url.split(", ")[1] for url in urls if url.startswith("Repository")), "")
    file = next((path.name for path in NOTEBOOKS.glob(f"{lesson}_*.ipynb")), "")
    words = f"Lesson {escaped(lesson)}, section “Exercise: {escaped(name)}”"
    return f'<a href="{escaped(f"{address}/blob/main/notebooks/{file}")}">{words}</a>' if address else words


def read_entries(path: Path) -> list[dict]:
    """The lines of a journal that count: one for each student.

    Of several, the last one that says what the table of marks beside it says, else the last.
    """
    by_id: dict[str, list[dict]] = {}
    for place, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            entry = json.loads(line)
            by_id.setdefault(entry["id"], []).append(entry)
        except (ValueError, KeyError, TypeError):
            raise ValueError(
                f"line {place} of {path} is no result; expected the .jsonl that `attnlib mark` wrote. Run `attnlib mark` "
                "again: it mends a line that was cut."
            ) from None
    if not by_id:
        raise ValueError(f"{path} is empty; expected the .jsonl that `attnlib mark` wrote")
    marks = path.with_suffix(".csv")
    if not marks.exists():
        return [entries[-1] for entries in by_id.values()]
    with marks.open(encoding="utf-8", newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    chosen = []
    for student, entries in by_id.items():
        if row := rows.get(harmless(student)):
            told = str(row["points"]), str(row["of"]), row["sandbox"]
            same = [e for e in entries if (str(number(e["points"])), str(number(e["of"])), e["sandbox"]) == told]
            chosen.append((same or entries)[-1])
    return chosen


def feedback(entry: dict) -> str:
    """The page of one student."""
    parts = [f"<p>{number(entry['points'])} of {number(entry['of'])} points.</p>"]
    if entry["error"]:
        parts.append(f"<p>It could not be marked: {escaped(entry['error'])}.</p>")
    for mark in entry["exercises"]:
        points = f"{number(mark['points'])} of {number(mark['of'])} points"
        parts.append(f"<h2>{escaped(mark['name'])}: {escaped(mark['status'])}, {points}</h2>")
        parts.append(f"<pre>{escaped(mark['text'])}</pre>")
        if mark["status"] != "right":
            parts.append(f"<p>{section(mark['lesson'], mark['name'])}</p>")
    return page(f"Feedback for {entry['id']}: {entry['assignment']}", "\n".join(parts), entry["sandbox"])


def file_name(student: str) -> str:
    """A file name that stays in its folder."""
    return re.sub(r"[^\w.@ ()-]", "_", student).lstrip(".")[:150] or "_"


def write_feedback(entries: list[dict], folder: Path) -> None:
    """A file for each student, which earlier feedback of the same name makes way for."""
    names = [file_name(entry["id"]) for entry in entries]
    folded = [name.casefold() for name in names]
    if twice := [name for name, fold in zip(names, folded) if folded.count(fold) > 1]:
        raise ValueError(f"two students would share the file {twice[0]}.html; rename one of their submissions")
    folder.mkdir(parents=True, exist_ok=True)
    for name, entry in zip(names, entries):
        (folder / f"{name}.html").write_text(feedback(entry), encoding="utf-8")
