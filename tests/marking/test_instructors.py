"""INSTRUCTORS.md, command by command, on a small class; pages that hold what a student wrote and no solution."""

import csv
import html
import re
import shlex
from pathlib import Path

import nbformat
import pytest

from attnlib.marking import sample
from attnlib.marking.assignment import exercises_of
from attnlib.marking.cli import main
from attnlib.marking.serving import choose

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "INSTRUCTORS.md").read_text(encoding="utf-8")
HOSTILE = "<script>alert(1)</script>"
SOLUTIONS = {
    line.strip()
    for lesson, name in (("02", "softmax"), ("04", "causal_mask"))
    for line in exercises_of(lesson)[name].solution_source().splitlines()
    if line.strip() and not line.startswith("def ")
}


def commands():
    """The commands of the page, in order, without those that stand in a sentence."""
    blocks = re.findall(r"```\n(.*?)```", PAGE, flags=re.DOTALL)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Everything that the page's commands write for four students."""
    from attnlib.marking.sandbox import NoSandbox

    try:
        choose()
    except NoSandbox as error:
        pytest.skip(f"no sandbox on this machine: {error}")
    folder = tmp_path_factory.mktemp("class")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assign, *rest = commands()
        assert main(assign) == 0
        blank = nbformat.read("ps1/ps1.ipynb", as_version=4)
        Path("submissions").mkdir()
        wrong = "def softmax(scores):\n    return scores"
        printing = f"def softmax(scores):\n    print({HOSTILE!r})\n    return np.exp(scores) / np.exp(scores).sum()"
        for student, source in (("ann", None), ("bo", wrong), ("李 雷", printing)):
            notebook = blank.copy()
            if source:
                notebook.cells = [*blank.cells, nbformat.v4.new_code_cell(source)]
            nbformat.write(notebook, f"submissions/{student}.ipynb")
        Path("submissions/dora.ipynb").write_text("no notebook", encoding="utf-8")
        rows = [["Student", "ID", "SIS Login ID", "Section", "ps1 (7)"], ["    Points Possible", "", "", "", "4"]]
        rows += [["Lee, Ann", "1", "ann", "A", ""], ["Bo", "2", "bo", "A", ""], ["雷", "3", "李 雷", "A", ""]]
        rows += [["Dora", "4", "dora", "A", ""]]
        with Path("export.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
        codes = [main([*command, *(["--quiet"] if command[0] == "mark" else [])]) for command in rest]
        assert [command[0] for command in rest] == ["mark", "feedback", "report", "lms"]
        assert codes[:3] == [0, 0, 0] and codes[3] in (0, 1)
    return folder


def test_marks_are_what_is_due(folder):
    with (folder / "marks.csv").open(encoding="utf-8-sig", newline="") as file:
        points = {row["id"]: row["points"] for row in csv.DictReader(file)}
    assert points == {"ann": "0", "bo": "0", "李 雷": "0", "dora": "0"}


def test_each_student_has_a_page_with_the_hint_and_without_a_solution(folder):
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (folder / "feedback").glob("*.html")}
    assert len(pages) == 4
    hostile = next(text for name, text in pages.items() if "雷" in name or "雷" in text)
    assert "one sum for the whole array" in hostile
    for text in pages.values():
        assert "<script" not in text and "http-equiv" not in text and "sandbox: unshare" in text
        assert '<meta name="viewport"' in text
        assert not any(line in html.unescape(text) for line in SOLUTIONS)


def test_the_report_counts_misconceptions_and_has_its_figure_in_words(folder):
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "one sum for the whole array" in text and "<caption>" in text and "<script" not in text
    assert re.search(r'<img [^>]*alt="[^"]{10,}"', text)
    assert not re.search(r'(src|href)="http(?!s://github.com/)', text)
    with (folder / "report.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert any(row["exercise"] == "softmax" and row["students"] == "1" for row in rows)


def test_the_gradebook_is_filled_and_everything_else_in_it_stays(folder):
    with (folder / "filled.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    with (folder / "export.csv").open(encoding="utf-8", newline="") as file:
        before = list(csv.reader(file))
    assert [row[:4] for row in rows] == [row[:4] for row in before] and rows[1] == before[1]
    assert rows[2][4] in ("0", "0.0")


def test_nothing_is_overwritten(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    for command in (commands()[0], *commands()[2:]):
        assert main(command) == 2
        assert "is there already" in (told := capsys.readouterr().err) or "exists" in told


def test_after_marking_again_what_was_there_is_kept(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "feedback" / "bo.html").write_text("edited", encoding="utf-8")
    assert "`--replace`: what was there is kept as `feedback.old`" in PAGE
    for command in commands()[2:4]:
        assert main([*command, "--replace"]) == 0
    assert (folder / "feedback.old" / "bo.html").read_text(encoding="utf-8") == "edited"
    assert "Next:" in (folder / "feedback" / "bo.html").read_text(encoding="utf-8")


def test_every_journal_is_kept_when_all_is_marked_again(folder, monkeypatch):
    monkeypatch.chdir(folder)
    first = (folder / "marks.jsonl").read_bytes()
    for _ in (1, 2):
        assert main([*commands()[1], "--again", "--quiet"]) == 0
    assert (folder / "marks.old.jsonl").read_bytes() == first and (folder / "marks.old2.jsonl").exists()


def test_the_page_is_a_page():
    assert len(PAGE.split()) < 750
    assert len(sample.STUDENTS) == 30
