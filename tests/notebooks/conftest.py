import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))

import notebooks  # noqa: E402


def pytest_generate_tests(metafunc):
    """A test that takes `lesson` runs for each lesson; `lesson_of_part_one` is 00 to 07, `later_lesson` needs PyTorch."""
    part_one = [path for path in notebooks.LESSONS if path.stem[:2] <= "07"]
    later = [path for path in notebooks.LESSONS if path not in part_one and find_spec("torch") is not None]
    for name, lessons in (("lesson", part_one + later), ("lesson_of_part_one", part_one), ("later_lesson", later)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, lessons, ids=lambda path: path.stem)


class Cell(NamedTuple):
    """A code cell, with what it printed when it was stored and what it prints now."""

    source: str
    stored: str
    now: str


@pytest.fixture
def run_without():
    """Execute a lesson as if a package were not installed: its code cells in order."""

    def printed(cell):
        return "".join(output.get("text", "") for output in cell.outputs if output.output_type == "stream")

    def run(number, package):
        pytest.importorskip("torch")
        lesson = next(path for path in notebooks.LESSONS if path.stem.startswith(f"{number}_"))
        notebook = notebooks.read(lesson)
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        stored = [(cell.source, printed(cell)) for cell in cells]
        cells[1].source = f"import sys\n\nsys.modules[{package!r}] = None\n\n{cells[1].source}"
        resources = {"metadata": {"path": str(lesson.parent)}}
        NotebookClient(
            notebook, timeout=300, kernel_name="python3", coalesce_streams=True, resources=resources
        ).execute()
        return [Cell(*was, printed(cell)) for was, cell in zip(stored, cells, strict=True)]

    return run
