"""Feedback and report: whatever a journal holds, pages are whole, show no code of others, and say what they are worth."""

from html.parser import HTMLParser
from pathlib import Path

import pytest

from attnlib.marking import feedback, report
from attnlib.marking.assignment import Assignment
from attnlib.marking.cli import main
from attnlib.marking.feedback import file_name, file_names
from attnlib.marking.results import write_marks

UNSAFE = "UNSAFE: no sandbox"
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</pre></main><iframe src=//x></iframe>",
    "' onmouseover='alert(1)",
    "<!-- --><svg/onload=alert(1)>",
    "]]><style>*{display:none}</style>",
    "javascript:alert(1)",
    "&lt;script&gt;&#x3c;b>",
    "../../x",
    "/etc/x",
    "..\\..\\x",
    "line\nend\r\nand\x00null\x1b[31m",
    "\u202egnp.exe\u200f\u061c\u2067",
    '=HYPERLINK("http://x","y")',
    "＝1+1",
    "\ud800",
    "x" * 5_000,
    "李" * 200,
    "李 雷",
    "CON",
    "nul.txt",
    ".",
    "..",
    "...",
    " ",
    "-rf",
]
PAGE = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "main",
    "h1",
    "h2",
    "p",
    "pre",
    "a",
    "ul",
    "li",
    "strong",
    "bdi",
}
PAGE |= {"wbr", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "img", "details", "summary"}
EMPTY = {"meta", "img", "wbr"}


class Reader(HTMLParser):
    """The elements of a page, and its text; the elements have to be closed in the order in which they were opened."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.text, self.attributes = [], [], "", []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append(tag)
        self.attributes += attributes
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data if self.open[-1:] != ["style"] else ""

    def handle_comment(self, data):
        raise AssertionError(data)


@pytest.fixture
def hostile(line):
    """A class in which everything that a student chooses is hostile."""
    return [
        line(
            text,
            f"softmax: not yet. It raises {text}: {text}\n  yours:    {text}\n  expected: [1.0]",
            sandbox=UNSAFE,
            error=text,
            note=text,
            file=text,
            libraries=[text],
            mistakes=[text],
        )
        for text in HOSTILE
    ]


def written(folder):
    """The pages in a folder, by name."""
    return {path.name: path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", ["feedback", "report"])
def test_hostile_text_makes_no_element_and_leaves_no_folder(command, hostile, journal, tmp_path):
    to = tmp_path / "out" / ("feedback" if command == "feedback" else "r.html")
    path = journal(*hostile)
    assert main([command, str(path), "--to", str(to)]) == 0
    assert set(tmp_path.iterdir()) == {path, tmp_path / "out"}
    pages = {name: text for name, text in written(tmp_path / "out").items() if name.endswith(".html")}
    assert len(pages) == (len(HOSTILE) if command == "feedback" else 1)
    shown = ""
    for name, text in pages.items():
        page = Reader(text)
        assert set(page.elements) <= PAGE
        assert {name for name, _ in page.attributes if name.startswith("on")} == set()
        for name, value in page.attributes:
            if name in ("href", "src"):
                assert value.startswith(("https://", "#exercise-", "data:image/png;base64,")), value
        assert UNSAFE in page.text and page.elements.count("h1") == 1
        assert not any(mark in text for mark in "\x00\x1b\x7f\u202e\u200f\u061c\u2067\ud800")
        shown += page.text
    assert "<script>alert(1)</script>" in shown and "李 雷" in shown


def test_no_page_takes_the_place_of_another(journal, tmp_path):
    students = [
        "Ann",
        "ann",
        "ANN",
        "a/b",
        "a\\b",
        "a_b",
        "e\u0301",
        "\u00e9",
        "ﬁ",
        "fi",
        "ann (2)",
        "李" * 90,
        "李" * 91,
    ]
    main(["feedback", str(journal(*students)), "--to", str(tmp_path / "f")])
    pages = written(tmp_path / "f")
    assert len({name.casefold() for name in pages}) == len(students)
    titles = [Reader(text).text for text in pages.values()]
    assert all(any(f"Feedback for {student}: ps1" in text for text in titles) for student in students)


@pytest.mark.parametrize("student", HOSTILE)
def test_a_file_name_is_one_on_every_system(student):
    name = file_name(student) + ".html"
    assert Path(name).name == name and not set(name) & set('<>:"/\\|?*\n\r\0')
    assert len(name.encode()) < 256 and name[0] not in ". " and name.split(".")[0].upper() not in ("CON", "NUL")


def test_names_keep_their_letters():
    assert file_names(["李 雷", "हिन्दी", "Ana Díaz", "s01", "s01"]) == ["李 雷", "हिन्दी", "Ana Díaz", "s01", "s01 (2)"]


def test_a_cell_of_the_report_is_no_formula(hostile, journal, tmp_path, rows):
    main(["report", str(journal(*hostile)), "--to", str(tmp_path / "r.html")])
    table = rows(tmp_path / "r.csv")
    assert len(table) == len(HOSTILE)
    for row in table:
        assert not any(cell.lstrip().startswith(tuple("=+-@＝")) for cell in row.values())
        assert row["sandbox"] == UNSAFE


def test_a_table_of_marks_takes_names_of_any_file_system(line, tmp_path, rows):
    write_marks([line("caf\udce9")], Assignment.of_lessons(["02"]), tmp_path / "m.csv")
    assert rows(tmp_path / "m.csv")[0]["id"] == "caf?"


def test_each_row_says_which_sandbox_it_comes_from(line, journal, tmp_path, rows):
    wrong = {"text": "softmax: not yet.", "mistakes": ["one sum"]}
    other = {"text": "softmax: not yet.", "mistakes": ["not normalised"]}
    entries = [line("a", **wrong), line("b", **wrong), line("c", **other), line("d", **wrong, sandbox=UNSAFE)]
    main(["report", str(journal(*entries)), "--to", str(tmp_path / "r.html")])
    told = {row["mistake"]: row["sandbox"] for row in rows(tmp_path / "r.csv")}
    assert told["one sum"] == f"{UNSAFE} (1 of 3 submissions); sandbox: unshare (2 of 3 submissions)"
    assert told["not normalised"] == "sandbox: unshare"
    everyone = f"{UNSAFE} (1 of 4 submissions); sandbox: unshare (3 of 4 submissions)"
    assert {row["sandbox of all submissions"] for row in rows(tmp_path / "r.csv")} == {everyone}
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert f'<p class="unsafe">{everyone}</p>' in page
    assert f'<td role="cell" data-head="sandbox">{UNSAFE}</td>' in page


def test_a_table_without_mistakes_is_stamped_too(line, journal, tmp_path, rows):
    main(["report", str(journal("a", line("b", sandbox=UNSAFE))), "--to", str(tmp_path / "r.html")])
    (row,) = rows(tmp_path / "r.csv")
    assert row["students"] == "0" and row["sandbox of all submissions"].startswith(UNSAFE)


@pytest.mark.parametrize("command, to", [("feedback", "f"), ("report", "r.html")])
def test_nothing_is_replaced_unasked(command, to, journal, tmp_path, capsys):
    call = [command, str(journal("a", "b")), "--to", str(tmp_path / to)]
    assert main(call) == 0
    mine = tmp_path / "f" / "a.html" if command == "feedback" else tmp_path / "r.html"
    mine.write_text("edited by hand", encoding="utf-8")
    capsys.readouterr()
    assert main(call) == 2
    said = capsys.readouterr().err
    assert f"{tmp_path / to} is there already" in said and "--replace" in said and ".old" in said
    assert mine.read_text(encoding="utf-8") == "edited by hand"
    assert main([*call, "--replace"]) == main([*call, "--replace"]) == 0
    assert "Feedback" in mine.read_text(encoding="utf-8") or "Report" in mine.read_text(encoding="utf-8")
    old = tmp_path / "f.old" / "a.html" if command == "feedback" else tmp_path / "r.old.html"
    assert old.read_text(encoding="utf-8") == "edited by hand"
    assert len(list(tmp_path.glob("*.old2*"))) == (1 if command == "feedback" else 2)


def test_a_report_next_to_another_table_does_not_take_its_place(journal, tmp_path, capsys):
    (tmp_path / "r.csv").write_text("mine", encoding="utf-8")
    assert main(["report", str(journal("a")), "--to", str(tmp_path / "r.html")]) == 2
    assert "r.csv is there already" in capsys.readouterr().err
    assert (tmp_path / "r.csv").read_text(encoding="utf-8") == "mine" and not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("to", ["marks.html", "marks.csv", "marks"])
def test_a_report_never_takes_the_name_of_the_marks(to, journal, tmp_path, monkeypatch, capsys):
    path = journal("a")
    (tmp_path / "marks.csv").write_text("id,points,of,sandbox\na,2,2,sandbox: unshare\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(path), "--to", to, "--replace"]) == 2
    assert "would take the place of the marks; try --to report.html" in capsys.readouterr().err
    assert (tmp_path / "marks.csv").read_text(encoding="utf-8").startswith("id,points")


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, OSError("no space left")])
@pytest.mark.parametrize("command", ["feedback", "report"])
def test_an_interrupt_leaves_what_was_there_and_nothing_else(command, interrupt, journal, tmp_path, monkeypatch):
    path = journal("a", "b", "c")
    to = tmp_path / ("f" if command == "feedback" else "r.html")
    call = [command, str(path), "--to", str(to)]
    assert main(call) == 0
    before = written(tmp_path)
    made = []

    def stop(*arguments):
        made.append(arguments)
        if len(made) == (2 if command == "feedback" else 1):
            raise interrupt
        return "half"

    if command == "feedback":
        monkeypatch.setattr(feedback, "feedback", stop)
    else:
        monkeypatch.setattr(report, "misconceptions", stop)
    assert main([*call, "--replace"]) in (2, 130)
    assert written(tmp_path) == before


def test_a_table_that_a_table_calculator_saved_still_says_which_lines_count(line, journal, tmp_path):
    path = journal(line("a", points=1.0), line("a"), "b")
    table = "id;points;of;sandbox\r\na;1;2;sandbox: unshare\r\n"
    path.with_suffix(".csv").write_text(table, encoding="utf-16", newline="")
    assert main(["feedback", str(path), "--to", str(tmp_path / "f")]) == 0
    assert list(written(tmp_path / "f")) == ["a.html"] and "1 of 2 points" in written(tmp_path / "f")["a.html"]


def test_an_empty_folder_may_be_used(journal, tmp_path):
    (tmp_path / "f").mkdir()
    assert main(["feedback", str(journal("a")), "--to", str(tmp_path / "f")]) == 0
    assert set(written(tmp_path / "f")) == {"a.html"}


NOTHING = {
    "not started": ("softmax: not started.", "three dots"),
    "missing": ("softmax: its cell did not run.", "hand in a notebook with the cell that defines it"),
    "not judged": ("softmax: not judged. The notebook took more than 120 s in all.", "takes very long"),
    "not yet": (
        "softmax: Python could not read its cell: SyntaxError: '(' was never closed, line 2.",
        "mend what is named",
    ),
}


@pytest.mark.parametrize("status", NOTHING)
def test_each_exercise_says_what_to_do_next_and_where(status, line):
    text, said = NOTHING[status]
    page = Reader(feedback.feedback(line("a", text, status=status)))
    assert said in page.text and "Lesson 02, section “Exercise: softmax”" in page.text
    assert "Left to do: 1 of 1 exercises." in page.text


def test_the_failing_case_can_be_copied_and_is_apart_from_the_words(line):
    case = "  scores = np.array([[0.0, 1.0986122886681098]])\n  yours:    [[0.0, 1.0986]]\n  expected: [[0.25, 0.75]]"
    text = f"softmax: not yet. The shape is right, the numbers are not.\nRight in 0 of 11 cases.\n{case}"
    page = feedback.feedback(line("a", text))
    assert "<pre>scores = np.array([[0.0, 1.0986122886681098]])\nyours:" in page
    assert "<p>The shape is right, the numbers are not.</p>\n<p>Right in 0 of 11 cases.</p>" in page
    assert "run your answer on the numbers above" in page


def test_a_page_with_everything_right_says_so(line):
    page = Reader(feedback.feedback(line("a", "softmax: right in all 11 cases.", status="right", points=2.0)))
    assert "<p>Right in all 11 cases.</p>" in feedback.feedback(line("a", "softmax: right in all 11 cases."))
    assert "Nothing is left to do." in page.text and "Next:" not in page.text and "a.ipynb" in page.text


def test_a_file_that_could_not_be_read_says_what_to_do(line):
    page = Reader(
        feedback.feedback(line("a", exercises=[], error="the file is empty, so it is no notebook", points=0.0))
    )
    assert "hand in the file that ends in .ipynb" in page.text and "Nothing is left" not in page.text


def test_the_figure_is_there_in_numbers(line, journal, tmp_path):
    entries = ["a", "b", line("c", "softmax: not yet."), line("d", error="no notebook", exercises=[], points=0.0)]
    main(["report", str(journal(*entries)), "--to", str(tmp_path / "r.html")])
    page = Reader((tmp_path / "r.html").read_text(encoding="utf-8"))
    alt = dict(page.attributes)["alt"]
    assert "4 submissions: 2 with all 2 points, 2 with none; the median is 1. 1 could not be marked." in alt
    assert "0 to 0.22" in page.text and "1.8 to 22" in page.text


WRONG = {
    "the table": ("marks.csv", "id,points\na,2\n", "marks.csv is no journal; expected the .jsonl"),
    "a notebook": ("ps1.ipynb", "{}", "ps1.ipynb is no journal"),
    "not JSON": ("m.jsonl", "id,points\n", "line 1 of"),
    "a cut line": ("m.jsonl", '{"id": "a', "Run `attnlib mark` again"),
    "a list": ("m.jsonl", "[1]\n", "is no result"),
    "empty": ("m.jsonl", "\n", "is empty; expected the .jsonl"),
    "an older version": (
        "m.jsonl",
        '{"id": "a", "points": 1, "version": "0.0.1"}\n',
        "has no assignment, sandbox, error, of",
    ),
    "UTF-16": ("m.jsonl", "\ufeff{}".encode("utf-16-le"), "is not text in UTF-8"),
}


@pytest.mark.parametrize("command", ["feedback", "report"])
@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_named_with_what_to_try(case, command, tmp_path, capsys):
    name, text, said = WRONG[case]
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main([command, str(tmp_path / name), "--to", str(tmp_path / "out.html")]) == 2
    told = capsys.readouterr().err
    assert said in told and "Traceback" not in told and list(tmp_path.iterdir()) == [tmp_path / name]


BROKEN = [(key, None) for key in ("id", "assignment", "sandbox", "error", "points", "of", "exercises", "code")]
BROKEN += [("points", "2"), ("of", float("nan")), ("exercises", [1]), ("exercises", {}), ("code", {"softmax": {}})]


@pytest.mark.parametrize("key, value", BROKEN)
def test_a_line_that_lacks_something_is_an_error(key, value, line, journal, tmp_path, capsys):
    entry = line("a") | {key: value}
    assert main(["report", str(journal("b", entry)), "--to", str(tmp_path / "r.html")]) == 2
    told = capsys.readouterr().err
    assert "line 2 of" in told and "--again" in told


def test_an_older_exercise_is_an_error_too(line, journal, tmp_path, capsys):
    old = line("a")
    del old["exercises"][0]["libraries"]
    assert main(["report", str(journal(old)), "--to", str(tmp_path / "r.html")]) == 2
    assert "has no libraries that can be read; it was written by attnlib 0.1.0" in capsys.readouterr().err


def test_a_file_that_is_not_there_or_a_folder(tmp_path, capsys):
    (tmp_path / "marks.jsonl").write_text("", encoding="utf-8")
    for name in ("marks.csv", "nothing.jsonl", "."):
        assert main(["feedback", str(tmp_path / name), "--to", str(tmp_path / "f")]) == 2
    said = capsys.readouterr().err
    assert f"Try {tmp_path / 'marks.jsonl'}" in said and "is not there" in said and "is a folder" in said


@pytest.mark.parametrize(
    "table, said",
    [("id;points\na;2\n", "has no of, sandbox in each row"), ("id,points,of,sandbox\nz,2,2,s\n", "no student of")],
)
def test_a_table_beside_the_journal_that_is_not_its_own(table, said, journal, tmp_path, capsys):
    path = journal("a")
    path.with_suffix(".csv").write_text(table, encoding="utf-8")
    assert main(["feedback", str(path), "--to", str(tmp_path / "f")]) == 2
    assert said in capsys.readouterr().err
