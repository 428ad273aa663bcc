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


def pytest_report_header():
    return f"marking: tests run as {'root' if os.geteuid() == 0 else 'an ordinary user'}"
