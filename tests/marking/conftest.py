import csv
import json
import os
import sys

import pytest

from attnlib.marking.assignment import Assignment
from attnlib.marking.marker import Marker
from attnlib.marking.sandbox import NoSandbox
from attnlib.marking.serving import choose


@pytest.fixture(scope="session")
def sandbox():
    """The sandbox of this machine, with shorter limits; tests that need one are skipped, with the reason, where there is none."""
    if sys.platform != "linux":
        pytest.skip("marking needs Linux")
    try:
        return choose(seconds=2, wall=15)
    except NoSandbox as error:
        pytest.skip(f"no sandbox here: {error}")


@pytest.fixture(scope="session")
def marker(sandbox):
    """A marker for lesson 02."""
    with Marker(Assignment.of_lessons(["02"]), sandbox) as marker:
        yield marker


@pytest.fixture
def mark(marker):
    """Status of each exercise of a submission with these cells."""

    def statuses(*cells):
        marks, _ = marker.mark(list(cells))
        return {mark.task.name: mark.status for mark in marks}

    return statuses


@pytest.fixture
def line():
    """Makes a line of a journal: one exercise, right or not, of a student."""

    def make(student, text="softmax: right.", **changed):
        right = text == "softmax: right."
        mark = {"lesson": "02", "name": "softmax", "status": "right" if right else "not yet", "points": 2.0 * right}
        mark |= {"of": 2.0, "text": text, "mistakes": [], "libraries": [], "case": ""}
        mark |= {name: changed.pop(name) for name in list(changed) if name in mark}
        entry = {"id": student, "file": f"{student}.ipynb", "hash": "0", "assignment": "ps1", "digest": "0", "note": ""}
        entry |= {"version": "0.1.0", "sandbox": "sandbox: unshare", "error": "", "points": mark["points"], "of": 2.0}
        return entry | {"exercises": [mark], "code": {}, "seconds": 0.1} | changed

    return make


@pytest.fixture
def journal(tmp_path, line):
    """Writes a journal; entries are lines, or names of students whose answers are right."""

    def write(*entries, name="marks.jsonl"):
        entries = [line(entry) if isinstance(entry, str) else entry for entry in entries]
        path = tmp_path / name
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
        return path

    return write


@pytest.fixture
def rows():
    """Reads a table that one of the commands wrote."""

    def read(path):
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))

    return read


def pytest_report_header():
    return f"marking: tests run as {'root' if os.geteuid() == 0 else 'an ordinary user'}"
