"""The isolated marker in the place of nbgrader's Execute step: gradebook, hand marks and feedback stay nbgrader's.

nbgrader_config.py, as `attnlib assign` writes it, names two preprocessors. `WholeNotebook` comes first and gives a
submission the cells that nbgrader looks for, whatever an editor or a student did to them. `IsolatedMarks` marks in the
sandbox and writes a verdict under each check cell; an error means no points. No code runs in a kernel.
"""

import json
import secrets
from pathlib import Path
from typing import Any

from traitlets import Bool, Unicode

try:
    import bleach
    from jinja2 import pass_context
    from jinja2.runtime import Context
    from nbconvert import HTMLExporter
    from nbformat import NotebookNode
    from nbgrader.preprocessors import NbGraderPreprocessor
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f'{error.name} is missing, which this needs: pip install "attnlib[marking]"', name=error.name
    ) from None

from attnlib.marking import batch
from attnlib.marking.assignment import Assignment
from attnlib.marking.conversation import Mark
from attnlib.marking.sandbox import NoSandbox, Sandbox
from attnlib.marking.serving import ServerDied, choose

TEXT_TAGS = set(
    "p br hr h1 h2 h3 h4 h5 h6 pre div span img table thead tbody tr th td details summary del sub sup".split()
)
IMAGES = ("image/png", "image/jpeg", "text/plain")  # HTML, SVG and scripts of a student's would act in your browser
LARGEST = 2_000_000  # characters of a cell's outputs that are kept
SANDBOXES: dict[tuple, Sandbox] = {}
SEEDS: dict[str, int] = {}


class OfAssignment(NbGraderPreprocessor):
    """What both preprocessors need: the instructor's notebook."""

    source = Unicode(
        "{root}/source/{assignment}/{notebook}.ipynb", help="the instructor's notebook; it says what is asked for"
    ).tag(config=True)

    def source_path(self, resources: dict) -> Path:
        """Where the instructor's notebook is."""
        about = resources["nbgrader"]
        root = self.config.get("CourseDirectory", {}).get("root", "") or "."
        return Path(self.source.format(root=root, assignment=about["assignment"], notebook=about["notebook"]))


class WholeNotebook(OfAssignment):
    """Give a submission each of the source's graded cells once, with its metadata, and drop outputs that could do harm."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """Mend the notebook, in place."""
        source = json.loads(self.source_path(resources).read_text(encoding="utf-8"))
        wanted = {}
        for cell in source["cells"]:
            if about := cell["metadata"].get("nbgrader"):
                wanted[about["grade_id"]] = cell | {"source": "".join(cell["source"])}
        found: dict[str, NotebookNode] = {}
        for cell in nb.cells:
            about = cell.metadata.pop("nbgrader", None)
            name = about.get("grade_id") if isinstance(about, dict) else None
            if isinstance(name, str) and name in wanted and wanted[name]["cell_type"] == cell.cell_type:
                found[name] = cell  # of copies, the last
            if cell.cell_type == "code":
                cell.outputs = kept(cell.outputs)
        for name, cell in wanted.items():
            if name not in found and (
                cell["metadata"]["nbgrader"]["grade"] or cell["metadata"]["nbgrader"].get("task")
            ):
                found[name] = lost(nb, cell, source["cells"], list(found.values())) or added(nb, cell)
                self.log.warning("Cell '%s' was missing or had lost its metadata: put back", name)
            if name in found:  # a stub that is gone stays away: at the end it would stand for the student's answer
                found[name].metadata["nbgrader"] = NotebookNode(cell["metadata"]["nbgrader"])
                found[name].metadata["nbgrader"]["cell_type"] = cell["cell_type"]
        return nb, resources


class IsolatedMarks(OfAssignment):
    """Mark in the sandbox, and write a verdict under each check cell: an error where the answer is not right."""

    image = Unicode(
        "", help="mark in containers of this image, with Python, NumPy and PyTorch: for where namespaces fail"
    ).tag(config=True)
    unsafe = Bool(False, help="no sandbox: a process alone. Every verdict says so").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """Mark one submission. Without a sandbox nobody is marked, and nobody is failed."""
        try:
            marks, label = self.marks([cell.source for cell in nb.cells if cell.cell_type == "code"], resources)
        except NoSandbox as error:
            raise RuntimeError(f"not marked, and not failed: {error}") from None  # nbgrader leaves it for the next run
        except ServerDied as error:
            raise RuntimeError(f"it ended the marker's server twice ({error}): please look at it by hand") from None
        cells = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell for cell in nb.cells}
        for mark in marks:
            cell = cells.get(f"check-{mark.task.name}")
            if cell is None:
                raise RuntimeError(
                    f"there is no check cell for {mark.task.name}; is WholeNotebook in the configuration?"
                )
            cell.outputs, cell.execution_count = [output(mark, label)], None
        return nb, resources

    def marks(self, sources: list[str], resources: dict) -> tuple[list[Mark], str]:
        """Marks by the one marker of this run, and the sandbox's label."""
        assignment = Assignment.from_file(self.source_path(resources))
        if (self.unsafe, self.image) not in SANDBOXES:
            SANDBOXES[self.unsafe, self.image] = choose(self.unsafe, self.image)
        sandbox = SANDBOXES[self.unsafe, self.image]
        seed = SEEDS.setdefault("seed", secrets.randbits(128))
        marker = batch.marker_of(assignment, sandbox, seed)
        try:
            return marker.mark(sources)[0], sandbox.label
        except ServerDied:
            marker.prove()  # if it still works, it was the submission
            raise


@pass_context
def clean_markdown(context: Context, source: str) -> str:
    """Markdown as HTML in which nothing acts: nbgrader's pages show students' texts to you, with scripts if there are any.

    It stands in the place of nbconvert's filter `markdown2html`: nbgrader's templates do not heed `sanitize_html`.
    """
    source = source.replace("\\href", "\\text")  # in formulas MathJax makes links of it, to scripts too
    return bleach.clean(
        HTMLExporter().markdown2html(context, source),
        tags=bleach.ALLOWED_TAGS | TEXT_TAGS,
        attributes={
            "a": ["href", "title"],
            "img": lambda _, name, value: (
                name in ("alt", "title") or (name == "src" and value.startswith("data:image/"))
            ),
            **dict.fromkeys(("div", "pre", "span"), ["class"]),
        },
        protocols=bleach.ALLOWED_PROTOCOLS | {"data"},
    )


def output(mark: Mark, label: str) -> NotebookNode:
    """A check cell's output: text where the answer is right, else an error, which nbgrader takes for no points."""
    text = mark.text + (f"\n[{label}]" if label.startswith("UNSAFE") else "")
    if mark.status == "right":
        libraries = f"\nLibrary calls that did the work: {', '.join(mark.libraries)}." if mark.libraries else ""
        return NotebookNode(output_type="stream", name="stdout", text=f"Right. {text}{libraries}\n")
    lines = text.split("\n")
    return NotebookNode(output_type="error", ename="Marked", evalue=lines[0], traceback=lines)


def lost(nb: NotebookNode, cell: dict, source: list[dict], taken: list[NotebookNode]) -> NotebookNode | None:
    """Where the cell is, if it has lost its metadata: by its text; an answer in words by the cell before it."""
    kind, ids = cell["cell_type"], set(map(id, taken))
    free = [one for one in nb.cells if id(one) not in ids and one.cell_type == kind]
    if cell["metadata"]["nbgrader"]["solution"]:
        names = [one["metadata"].get("nbgrader", {}).get("grade_id") for one in source]
        question = "".join(source[names.index(cell["metadata"]["nbgrader"]["grade_id"]) - 1]["source"]).strip()
        pairs = zip(nb.cells, nb.cells[1:])
        free = [after for one, after in pairs if one.source.strip() == question and any(after is f for f in free)]
        return free[-1] if free else None
    same = [one for one in free if one.source.strip() == cell["source"].strip()]
    return same[-1] if same else None


def added(nb: NotebookNode, cell: dict[str, Any]) -> NotebookNode:
    """Append a cell of the source's."""
    new = NotebookNode({key: value for key, value in cell.items() if key not in ("metadata", "id")})
    new.metadata = NotebookNode()
    if cell["metadata"]["nbgrader"]["solution"]:  # nbgrader takes an unchanged text for no answer, and marks it itself
        new.source = "The cell for this answer is not in the notebook. Please look whether it stands elsewhere."
    if (nb.nbformat, nb.nbformat_minor) >= (4, 5):
        ids = {one.get("id") for one in nb.cells}
        new["id"] = next(f"back-{i}" for i in range(len(ids) + 1) if f"back-{i}" not in ids)
    nb.cells.append(new)
    return new


def kept(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """A student's own outputs, for whoever marks by hand: text and pictures, up to a size."""
    safe, size = [], 0
    for one in outputs:
        if one.output_type in ("display_data", "execute_result"):
            one.data = NotebookNode({kind: value for kind, value in one.data.items() if kind in IMAGES})
            one.metadata = NotebookNode()
        size += len(json.dumps(one))
        if size > LARGEST:
            text = "[The rest of the output is not shown: it is too long.]\n"
            return [*safe, NotebookNode(output_type="stream", name="stdout", text=text)]
        safe.append(one)
    return safe
