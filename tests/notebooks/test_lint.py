"""What every lesson is: its anatomy, its prose, its outputs. What nbval cannot see is looked at here."""

import base64
import importlib
import io
import re
import statistics
import tokenize
from collections import Counter
from pathlib import Path

import nbformat
import pytest

from attnlib import __version__
from notebooks import CHECK, ROOT, address, read, setup_cell, with_address

# Cells whose output nbval does not compare: (lesson, source) -> the reason, which the cell's metadata holds too.
NOT_COMPARED = {("00_start_here", "environment.report()"): "Versions differ from machine to machine."}
INTRODUCTION = "00_start_here"  # shorter, and without a task that fails
SENTENCES = (
    "Arrows|Bars|Map|Features|Plane|Curves|Cells|Clocks|Graph|Distribution"  # how the sentence of a figure begins
)
LATEX = set(
    "text frac sum exp log tanh max arg sqrt cdot lVert rVert lvert rvert leftarrow qquad quad lceil rceil alpha partial "
    "epsilon delta sin cos omega sigma top infty le ge in ll gg times approx odot Delta theta begin end aligned mathbb pm ne , ; ! { } \\".split()
)


def markdown(lesson):
    return [cell for cell in read(lesson).cells if cell.cell_type == "markdown"]


def code(lesson):
    return [cell for cell in read(lesson).cells if cell.cell_type == "code"]


def text_of(lesson):
    return "\n\n".join(cell.source for cell in markdown(lesson))


def prose(source):
    """Markdown without code, formulas, links' addresses and tables."""
    source = re.sub(r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$", " ", source, flags=re.DOTALL)
    source = re.sub(r"\]\([^)]*\)|<[^>]*>", " ", source)
    return "\n".join(line for line in source.splitlines() if not line.startswith("|"))


def words_of(source):
    """The words that one reads: no formulas, no tables, no addresses; a piece of code counts as one word."""
    return prose(re.sub(r"`[^`\n]+`", "code", source)).split()


def printed(cell):
    return "".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == "stdout")


def pictures(cell):
    return [output.data["image/png"] for output in cell.outputs if "image/png" in output.get("data", {})]


# The file ------------------------------------------------------------------------------------------------------------


def test_the_file_is_valid_and_in_the_form_that_make_notebooks_writes(lesson):
    notebook = read(lesson)
    nbformat.validate(notebook)
    assert "widgets" not in notebook.metadata
    assert notebook.metadata.kernelspec.name == "python3"
    assert [cell.id for cell in notebook.cells] == [f"l{lesson.stem[:2]}-c{i:02}" for i in range(len(notebook.cells))]
    assert lesson.read_text(encoding="utf-8") == nbformat.writes(notebook) + "\n"
    assert lesson.stat().st_size < 1_000_000


def test_every_cell_was_run_in_order_and_compares(lesson):
    for count, cell in enumerate(code(lesson), start=1):
        assert cell.execution_count == count, f"{cell.id}: nbval compares nothing in a cell that was not run"
        hidden = [tag for tag in cell.metadata.get("tags", []) if tag.startswith("nbval")]
        if hidden:
            assert NOT_COMPARED[lesson.stem, cell.source] == cell.metadata["reason"]
        assert not re.search(r"#\s*(NBVAL|PYTEST_VALIDATE)", cell.source)


def test_no_more_cells_hide_from_comparison_than_are_listed():
    hiding = [
        (path.stem, cell.source)
        for path in ROOT.glob("notebooks/*.ipynb")
        for cell in code(path)
        if any(tag.startswith("nbval") for tag in cell.metadata.get("tags", []))
    ]
    assert Counter(hiding) == Counter(NOT_COMPARED.keys())


def test_outputs_hold_nothing_that_changes_from_run_to_run(lesson):
    for cell in code(lesson):
        for output in cell.outputs:
            assert output.output_type != "error" and output.get("name") != "stderr", cell.id
            assert "image/svg+xml" not in output.get("data", {}), cell.id
            text = output.get("text", "") + str(output.get("data", {}).get("text/plain", ""))
            assert not re.search(r"\b0x[0-9a-f]{6,}\b|it/s|/tmp/|/home/|/root/|ipykernel_|\d\d:\d\d:\d\d", text), (
                cell.id
            )


def test_no_cell_ends_in_a_semicolon(lesson):
    skip = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER, tokenize.DEDENT}
    for cell in code(lesson):
        source = re.sub(r"^(\s*)%.*$", r"\1pass", cell.source, flags=re.MULTILINE)  # magics
        tokens = [t for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type not in skip]
        assert tokens[-1].string != ";", f"{cell.id}: nbval shows what the semicolon hides"


# Anatomy -------------------------------------------------------------------------------------------------------------


def test_it_begins_with_a_title_what_one_can_do_and_the_set_up_cell(lesson):
    notebook = read(lesson)
    first = notebook.cells[0].source
    assert re.match(rf"# {lesson.stem[:2]} · \S", first)
    assert "After this lesson you can" in first and 3 <= first.count("\n* ") <= 4
    assert "You need" in first and re.search(r"takes \d+ minutes", first)
    assert "Open in Colab" in first and "Open in Binder" in first and lesson.name in first
    assert notebook.cells[1].source == setup_cell()
    assert f"@v{__version__}" in setup_cell()
    imports = notebook.cells[2].source
    assert f"from attnlib.exercises.lesson_{lesson.stem[:2]} import check" in imports
    assert all(re.match(r"import |from ", line) for line in imports.splitlines() if line)


def test_it_has_all_parts(lesson):
    headings = re.findall(r"^## (.+)$", text_of(lesson), flags=re.MULTILINE)
    parts = ["What goes wrong in the wild", "In a real library", "Summary"]
    if lesson.stem != INTRODUCTION:
        parts = ["The task that fails", "The task again", *parts]
        assert headings[0] == "The task that fails"
    places = [headings.index(part) for part in parts]
    assert places == sorted(places)
    assert code(lesson)[-1].source == "check.progress()"
    assert "To read" in text_of(lesson)


def test_questions_are_asked_before_their_answer_and_the_answer_is_folded(lesson):
    cells = read(lesson).cells
    predicted = [i for i, cell in enumerate(cells) if "predict" in cell.metadata.get("tags", [])]
    assert len(predicted) >= 2
    for i in predicted:
        assert cells[i].metadata.jupyter.outputs_hidden is True
        assert "**Predict, then run.**" in cells[i - 1].source and "?" in cells[i - 1].source
        assert "<details><summary>What happened" in cells[i + 1].source
        assert printed(cells[i]).startswith("Compare with your prediction:\n"), (
            "JupyterLab shows the first line of a fold"
        )
    assert text_of(lesson).count("**Predict, then run.**") == len(predicted)


def test_exercises_are_registered_checked_explained_and_hinted(lesson):
    check = importlib.import_module(f"attnlib.exercises.lesson_{lesson.stem[:2]}").check
    cells, found = read(lesson).cells, []
    for i, cell in enumerate(cells):
        if cell.cell_type == "code" and (name := CHECK.match(cell.source)):
            name, stub = name[1], cells[i - 1]
            found.append(name)
            assert stub.source.startswith((f"def {name}(", f"class {name}(")) and stub.source.endswith(
                "return ...  # your code here"
            )
            assert stub.source.splitlines()[0] == check.exercises[name].solution_source().splitlines()[0]
            assert (ask := cells[i - 2].source).count(f"### Exercise: `{name}` (") == 1
            assert "One worked number" in ask and re.search(r"\d+ minutes\)", ask)
            assert 1 <= cells[i + 1].source.split("### Exercise")[0].count("<details><summary>Hint") <= 3
            assert stub.metadata.nbgrader.grade_id == name and stub.metadata.nbgrader.solution
            graded = cell.metadata.nbgrader
            assert graded.grade and graded.locked and graded.points >= 1 and graded.grade_id == f"check-{name}"
    assert sorted(found) == sorted(check.exercises)
    ids = [cell.metadata.nbgrader.grade_id for cell in cells if "nbgrader" in cell.metadata]
    assert len(ids) == len(set(ids)) == 2 * len(found)


def test_what_goes_wrong_is_asked_first_and_sourced(lesson):
    text = text_of(lesson).split("## What goes wrong in the wild")[1].split("\n## ")[0]
    answers = text.count("<details><summary>Answer")
    assert answers >= (1 if lesson.stem == INTRODUCTION else 2)
    assert text.count("?") >= answers
    if lesson.stem != INTRODUCTION:
        assert text.count("](https://github.com/") >= 2


# Prose ---------------------------------------------------------------------------------------------------------------


def test_no_walls_of_text(lesson):
    run = 0
    for cell in read(lesson).cells:
        run = run + 1 if cell.cell_type == "markdown" else 0
        if cell.cell_type == "markdown":
            words = len(words_of(cell.source))
            assert words <= 120, f"{cell.id}: {words} words"
        assert run <= 2, f"{cell.id}: three texts in a row"


def test_the_length_is_that_of_a_lesson(lesson):
    words, lengths = len(words_of(text_of(lesson))), sorted(len(cell.source.splitlines()) for cell in code(lesson))
    assert (700 if lesson.stem == INTRODUCTION else 1_200) <= words <= 2_500
    assert 15 <= len(lengths) <= 40
    assert statistics.median(lengths) <= 8 and lengths[int(0.9 * len(lengths))] <= 25


def test_headings_have_one_title_and_skip_no_level(lesson):
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text_of(lesson), flags=re.MULTILINE)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:]))


def test_markup_is_what_github_colab_and_jupyterlab_all_show(lesson):
    for cell in markdown(lesson):
        tags = set(re.findall(r"</?([a-zA-Z]+)[^>]*>", re.sub(r"`[^`]*`", "", cell.source)))
        assert tags <= {"details", "summary"}, f"{cell.id}: {tags}"
        assert cell.source.count("<details>") == cell.source.count("</details>")
        for picture in re.findall(r"!\[([^]]*)\]", cell.source):
            assert picture, f"{cell.id}: a picture without a text"
        displayed = re.findall(r"^\$\$\n.*?\n\$\$$", cell.source, flags=re.DOTALL | re.MULTILINE)
        assert cell.source.count("$$") == 2 * len(displayed), f"{cell.id}: $$ stands on lines of its own"
        for formula in [*displayed, *re.findall(r"(?<!\$)\$([^$\n]+)\$(?!\$)", cell.source)]:
            assert not re.search(r"[<>]\w|\w[<>]", formula), f"{cell.id}: {formula}"
            assert set(re.findall(r"\\([a-zA-Z]+|.)", formula)) <= LATEX, f"{cell.id}: {formula}"
            assert "|" not in formula, f"{cell.id}: use lVert, since a table would split here"


def test_links_resolve(lesson):
    for target in re.findall(r"\]\(([^)]+)\)", text_of(lesson)):
        if not target.startswith("https://"):
            assert (lesson.parent / target.split("#")[0]).exists(), target
    assert text_of(lesson) == with_address(text_of(lesson))


def test_a_lesson_of_more_than_an_hour_says_where_one_may_stop(lesson):
    text = text_of(lesson)
    minutes = int(re.search(r"It takes (?:about )?(\d+) minutes(, in two sittings)?", text)[1])
    assert (minutes > 60) == ("in two sittings" in text) == ("ou may stop here; the rest is a second sitting" in text)


def test_words_that_say_nothing_are_left_out(lesson):
    found = re.findall(
        r"\b(simply|just|obviously|clearly|trivial|of course|basically|easily|amazing|powerful|exciting)\b",
        prose(text_of(lesson)),
        flags=re.IGNORECASE,
    )
    assert not found


# Figures -------------------------------------------------------------------------------------------------------------


def test_every_figure_is_small_opaque_and_says_in_words_what_it_shows(lesson):
    from PIL import Image

    assert sum(len(pictures(cell)) for cell in code(lesson)) >= 3
    for cell in code(lesson):
        for picture in pictures(cell):
            data = base64.b64decode(picture)
            image = Image.open(io.BytesIO(data)).convert("RGBA")
            assert len(data) < 40_000, f"{cell.id}: {len(data)} bytes"
            assert image.getextrema()[3] == (255, 255) and image.getpixel((0, 0))[:3] == (255, 255, 255)
            assert image.width <= 760, f"{cell.id}: too wide for a phone"
            assert re.search(rf"^({SENTENCES}).*?\d.*?\.$", printed(cell), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", sorted({*ROOT.glob("*.md"), *ROOT.glob("*.cff")}), ids=lambda path: path.name)
def test_links_of_the_texts_resolve(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if not target.startswith(("https://", "#")):
            assert (path.parent / target.split("#")[0]).exists(), target
    assert text == with_address(text) and address() in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_lists_every_lesson_and_its_module():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in ROOT.glob("notebooks/*.ipynb"):
        assert readme.count(f"(notebooks/{path.name})") == 1
        title = read(path).cells[0].source.splitlines()[0].removeprefix("# ").replace(" ·", "")
        assert f"[{title}]" in readme
    for package in ("numpy", "torch"):
        for module in Path(ROOT / "attnlib" / package).glob("[a-z]*.py"):
            assert f"(attnlib/{package}/{module.name})" in readme
