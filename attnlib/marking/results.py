"""The journal of a run, and what is made of it: the table of marks, and submissions whose code is alike."""

import ast
import contextlib
import csv
import json
import os
import unicodedata
from collections import defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

from attnlib.marking.assignment import Assignment
from attnlib.marking.inside.describing import shape_of

ALIKE_SIZE = 100  # nodes of syntax trees in common, below which two short answers may be the same by chance
LONGEST_CELL = 2_000  # characters; of more than 32,767 Excel makes another row, and Python's reader refuses them
COMMON = 8  # an answer that more submissions than this have is the usual way to write it


class Journal:
    """Results as they come, one JSON line each, in a file that only grows. One run at a time may hold it."""

    def __init__(self, path: Path):
        self.path, self.lines = path, {}

    @staticmethod
    def key(entry: dict) -> tuple:
        """What must be the same for a line to count again."""
        return tuple(entry[name] for name in ("id", "hash", "digest", "version", "sandbox"))

    def __enter__(self) -> "Journal":
        import fcntl  # not on Windows, where there is no sandbox either

        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.file = self.path.open("a+b")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.file.close()
            raise ValueError(f"another run is writing {self.path}; wait for it, or use another --to") from None
        self.file.seek(0)
        whole = 0
        for line in self.file:
            if not line.endswith(b"\n"):
                break  # the run was stopped in the middle of this one
            with contextlib.suppress(ValueError, KeyError, TypeError):
                entry = json.loads(line)
                self.lines[self.key(entry)] = entry
            whole += len(line)
        self.file.truncate(whole)
        self.file.seek(0, os.SEEK_END)
        return self

    def append(self, entry: dict) -> None:
        """Write a line, for good."""
        self.file.write(json.dumps(entry, ensure_ascii=True, sort_keys=True).encode() + b"\n")
        self.file.flush()
        os.fdatasync(self.file.fileno())
        self.lines[self.key(entry)] = entry

    def __exit__(self, *_: Any) -> None:
        self.file.close()


def write_marks(entries: list[dict], assignment: Assignment, path: Path) -> None:
    """The table of marks, a row for each submission."""
    names = [task.name for task in assignment.tasks]
    similar = alike(entries, assignment)
    heads = ["id", "points", "of", *names, *(f"{name}: verdict" for name in names)]
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*heads, "library calls", "code like", "error", "note", "sandbox"])
        for entry in entries:
            marks = {mark["name"]: mark for mark in entry["exercises"]}
            table.writerow(
                [
                    harmless(entry["id"]),
                    number(entry["points"]),
                    number(entry["of"]),
                    *(number(marks[name]["points"]) if name in marks else 0 for name in names),
                    *(harmless(short(marks.get(name))) for name in names),
                    harmless(
                        "; ".join(f"{n}: {', '.join(m['libraries'])}" for n, m in marks.items() if m["libraries"])
                    ),
                    harmless("; ".join(similar.get(entry["id"], []))),
                    harmless(entry["error"]),
                    harmless(entry["note"]),
                    entry["sandbox"],
                ]
            )
    part.replace(path)


def short(mark: dict | None) -> str:
    """A mark in a few words: its status, and the mistakes that explain it."""
    if mark is None:
        return ""
    return mark["status"] + (": " + "; ".join(mark["mistakes"]) if mark["mistakes"] else "")


def number(value: float) -> float | int:
    """Whole points without a fraction."""
    return int(value) if value == int(value) else value


def harmless(text: str) -> str:
    """Text that no table calculator takes for a formula, on one line of a length that programs read, as UTF-8.

    Control characters go, since a terminal obeys them when it shows the table.
    """
    text = " ".join(str(text).encode("utf-8", "replace").decode().split())
    text = "".join(letter for letter in text if unicodedata.category(letter) != "Cc")
    text = text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…"
    return "'" + text if is_formula(text) else text


def is_formula(text: str) -> bool:
    """Whether a table calculator may take a text for a formula; some read wide characters like others."""
    return unicodedata.normalize("NFKC", text[:1]) in tuple("=+-@")


def alike(entries: list[dict], assignment: Assignment) -> dict[str, list[str]]:
    """Candidates for copying: by id, which others share so much code that chance is unlikely.

    Compared is the shape of the code: names, comments, docstrings and layout do not count. Answers that are shaped like the
    course's own, and answers that many have, do not count either.
    """
    usual = {(task.name, shape_of(ast.parse(task.exercise.solution_source()))) for task in assignment.tasks}
    holders = defaultdict(list)
    for entry in entries:
        started = {mark["name"] for mark in entry["exercises"] if mark["status"] in ("right", "not yet")}
        for name, code in entry["code"].items():
            if name in started and (name, code["shape"]) not in usual:
                holders[name, code["shape"]].append((entry["id"], code))
    shared = defaultdict(list)
    for (name, _), group in holders.items():
        if len(group) <= COMMON:
            for (one, code), (other, its) in combinations(group, 2):
                shared[one, other].append((name, code["size"], code["text"] == its["text"]))
    found = defaultdict(list)
    for (one, other), parts in shared.items():
        if sum(size for _, size, _ in parts) >= ALIKE_SIZE:
            how = " word for word" if all(same for *_, same in parts) else ""
            said = f"{', '.join(name for name, *_ in parts)}{how}"
            found[one].append(f"{other} ({said})")
            found[other].append(f"{one} ({said})")
    return dict(found)
