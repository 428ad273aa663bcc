"""nbgrader with the isolated marker in Execute's place: marks, verdicts, hand-marked answers, and broken notebooks."""

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from attnlib.marking.sample import ALL_WRONG, IMPORTS, RIGHT, STUBS, Student, doubled
from attnlib.marking.sandbox import NoSandbox

pytest.importorskip("nbgrader")
from bs4 import BeautifulSoup

from attnlib.marking.cli import ASSIGN_EXAMPLE
from attnlib.marking.demo import mark, prepare, submit

GRADEBOOK = """import sqlite3
database = sqlite3.connect("../../../gradebook.db")
database.execute("update grade set manual_score = 8")
database.commit()
np.allclose = lambda *a, **k: True"""
IMAGE = {
    "output_type": "display_data",
    "metadata": {},
    "data": {"image/png": "iVBORw0KGgo=", "text/html": "<script>x</script>"},
}


HOSTILE = """Look <script>alert(1)</script> <img src=x onerror="alert(2)"> [there](javascript:alert(3))
<iframe src="https://evil.example"></iframe> <form action="/api/kernels">

Yet **bold** and $a < b$ stay, without $\\href{javascript:alert(4)}{b}$.

<details><summary>Hint</summary>

| a | b |
| --- | --- |
| 1 | 2 |

</details>"""


def filled(source, answers, reply=""):
    """The released notebook with answers in the stubs, and a reply to the question."""
    book = json.loads(source.read_text(encoding="utf-8"))
    for cell in book["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if name in answers:
            cell["source"] = answers[name]
            cell["outputs"] = [IMAGE]
        if name == "question-1" and reply:
            cell["source"] = reply
    return book


def without_metadata(book):
    for cell in book["cells"]:
        cell["metadata"] = {}
    return book


@pytest.fixture(scope="module")
def course(tmp_path_factory, request):
    request.getfixturevalue("sandbox")
    folder = tmp_path_factory.mktemp("course") / "ps1"
    prepare(folder)
    release = folder / "release/ps1/ps1.ipynb"
    submit(folder, "right", filled(release, RIGHT, "It cancels."))
    submit(folder, "blank", filled(release, {}))
    submit(folder, "wrong", filled(release, ALL_WRONG, HOSTILE))
    submit(folder, "cheat", Student("cheat", ALL_WRONG, imports=f"{IMPORTS}\n{GRADEBOOK}").notebook())
    submit(folder, "bare", without_metadata(filled(release, RIGHT, "It cancels.")))
    submit(folder, "twice", doubled(filled(release, RIGHT | {"softmax": STUBS["softmax"]})))
    return folder, mark(folder)


def test_marks(course):
    _, scores = course
    assert scores == {"right": 8, "blank": 0, "wrong": 0, "cheat": 0, "bare": 8, "twice": 6}


def test_answers_in_words_wait_for_a_hand_and_others_do_not(course):
    with sqlite3.connect(course[0] / "gradebook.db") as book:
        rows = book.execute(
            "select s.student_id, b.name from grade g join submitted_notebook n on g.notebook_id = n.id "
            "join submitted_assignment s on n.assignment_id = s.id join base_cell b on g.cell_id = b.id "
            "where g.needs_manual_grade = 1"
        ).fetchall()
    book.close()
    assert {("right", "question-1"), ("bare", "question-1")} <= set(rows)
    assert {name for _, name in rows} == {"question-1"} and ("blank", "question-1") not in rows


def test_verdicts_stand_under_the_checks_and_in_the_feedback(course):
    text = (course[0] / "feedback/wrong/ps1/ps1.html").read_text(encoding="utf-8")
    assert "softmax: not yet" in text and RIGHT["softmax"].split("\n")[-1] not in text
    right = (course[0] / "autograded/right/ps1/ps1.ipynb").read_text(encoding="utf-8")
    assert right.count("Right. ") == 4


def test_pictures_stay_and_scripts_do_not(course):
    right = (course[0] / "autograded/right/ps1/ps1.ipynb").read_text(encoding="utf-8")
    assert right.count("iVBORw0KGgo") == 4 and "<script>" not in right


def test_texts_of_students_do_nothing_in_a_browser(course):
    """Nor in the formgrader, which takes the same filter from the same settings, and shows them beside the gradebook."""
    page = BeautifulSoup((course[0] / "feedback/wrong/ps1/ps1.html").read_text(encoding="utf-8"), "html.parser")
    (text,) = [part for part in page.select(".rendered_html") if "Look" in part.text]
    assert not text.select("script, iframe, form, [onerror], [src]") and "\\href" not in text.text
    assert all(not link.get("href") for link in text.select("a"))
    assert text.select_one("strong").text == "bold" and "$a < b$" in text.text
    assert text.select_one("details summary").text == "Hint" and len(text.select("td")) == 2


def test_the_commands_that_are_told_exist():
    listed = subprocess.run([sys.executable, "-m", "nbgrader", "--help"], capture_output=True, text=True).stdout
    told = re.findall(r"^  nbgrader ([a-z_]+) ", ASSIGN_EXAMPLE, re.MULTILINE)
    assert len(told) == 4 and all(re.search(rf"^{name}$", listed, re.MULTILINE) for name in told), told


def test_without_nbgrader_it_says_what_to_install():
    hidden = "import sys; sys.modules['nbgrader'] = None; import attnlib.marking.nbgrader"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, cwd=root)
    assert done.returncode and 'pip install "attnlib[marking]"' in done.stderr


def test_without_a_sandbox_nobody_is_marked(course, monkeypatch):
    from attnlib.marking import nbgrader

    def nothing(*_):
        raise NoSandbox("no sandbox works here")

    monkeypatch.setattr(nbgrader, "choose", nothing)
    monkeypatch.setattr(nbgrader, "SANDBOXES", {})
    marker = nbgrader.IsolatedMarks(source=str(course[0] / "source/ps1/ps1.ipynb"))
    book = nbformat.read(course[0] / "release/ps1/ps1.ipynb", as_version=4)
    with pytest.raises(RuntimeError, match="not marked, and not failed: no sandbox works here"):
        marker.preprocess(book, {"nbgrader": {"assignment": "ps1", "notebook": "ps1"}})
