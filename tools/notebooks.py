"""Run the lessons and write them back, the same way every time: `make notebooks`.

Everything in a notebook that can be derived is derived here, so that a lesson can be edited in JupyterLab like any other
notebook: cell ids, nbgrader's metadata of exercises, folded answers (cells tagged `predict`), the set-up cell, and the
address of the repository, which is set in pyproject.toml alone. Outputs keep no times, no widget state and no addresses.
"""

import argparse
import re
import tomllib
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
LESSONS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
CHECK = re.compile(r'^(\w+) = check\("\1"\)$')
PREDICT = "predict"

SETUP = """\
# Set-up. On your own computer this cell does nothing; on Colab or Kaggle it fetches the course's helpers.
import importlib.util

if importlib.util.find_spec("attnlib") is None:
    %pip install -q --no-deps "attnlib @ git+{address}@v{version}"

import attnlib

print("attnlib", attnlib.__version__)"""


def address() -> str:
    """Address of the repository, from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["urls"]["Repository"]


def version() -> str:
    """Version of attnlib, from its source."""
    source = (ROOT / "attnlib" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)[1]


def setup_cell() -> str:
    """The set-up cell, the same in all lessons."""
    return SETUP.format(address=address(), version=version())


def with_address(text: str) -> str:
    """The text with the repository's owner and name as pyproject.toml has them, in any kind of link."""
    owner_and_name = address().removeprefix("https://github.com/")
    return re.sub(r"(?<=/)[\w.-]+/attention-step-by-step(?![\w-])", owner_and_name, text)


def normalise(notebook: nbformat.NotebookNode, name: str) -> nbformat.NotebookNode:
    """Derive what can be derived, in place, and return the notebook. Doing it twice changes nothing more."""
    lesson = name[:2]
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    stub = None
    for number, cell in enumerate(notebook.cells):
        cell.id = f"l{lesson}-c{number:02}"
        kept = {key: cell.metadata[key] for key in ("tags", "reason") if cell.metadata.get(key)}
        points = cell.metadata.get("nbgrader", {}).get("points", 1)
        cell.metadata = nbformat.from_dict(kept)
        if PREDICT in kept.get("tags", []):
            cell.metadata["jupyter"] = {"outputs_hidden": True}
        if cell.cell_type == "markdown":
            cell.source = with_address(cell.source)
            continue
        if cell.source.startswith("# Set-up."):
            cell.source = setup_cell()
        if exercise := CHECK.match(cell.source):
            cell.metadata["nbgrader"] = nbgrader("check-" + exercise[1], grade=True, locked=True) | {"points": points}
            stub.metadata["nbgrader"] = nbgrader(exercise[1], solution=True)
        stub = cell
        for output in cell.outputs:
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
            if "metadata" in output:
                output.metadata = {}
    return notebook


def nbgrader(grade_id: str, **changed: bool) -> dict:
    """Metadata of schema 3, which wants all of these."""
    return {
        "grade": False,
        "grade_id": grade_id,
        "locked": False,
        "schema_version": 3,
        "solution": False,
        "task": False,
    } | changed


def execute(notebook: nbformat.NotebookNode, name: str, folder: Path = ROOT / "notebooks") -> nbformat.NotebookNode:
    """Normalise a notebook, run it in its folder, and return it."""
    normalise(notebook, name)
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources=resources,
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,  # a print may arrive in one piece or in two
    )
    return normalise(client.execute(), name)


def read(path: Path) -> nbformat.NotebookNode:
    """Read a notebook of format 4."""
    return nbformat.read(path, as_version=4)


def write(notebook: nbformat.NotebookNode, path: Path) -> None:
    """Write a notebook with line feeds on every system."""
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8", newline="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lessons", nargs="*", type=Path, default=LESSONS, help="notebooks to run; all if none is named")
    lessons = parser.parse_args().lessons
    for path in [*ROOT.glob("*.md"), ROOT / "CITATION.cff"]:
        text = path.read_text(encoding="utf-8")
        path.write_text(with_address(text), encoding="utf-8", newline="\n")
    for path in (progress := tqdm(lessons)):
        progress.set_description(path.name)
        write(execute(read(path), path.name), path)


if __name__ == "__main__":
    main()
