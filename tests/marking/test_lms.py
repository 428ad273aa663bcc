"""Exports of platforms are filled, and nothing else in them changes."""

import pytest

from attnlib.marking.cli import main
from attnlib.marking.lms import fill

MARKS = {"ana": ("ana", "7.5"), "李": ("李", "-1")}
CANVAS = (
    'Student,ID,SIS Login ID,Section,ps1 (12)\r\n"    Points Possible",,,,8\r\n'
    '"=Díaz, ""A""",1,ana,=x,\r\n"李",2,李,,""\r\n'
)
MOODLE = "First name,Email address,Assignment: ps1 (Real)\n=A,ana,-\nB,李,-\n"
BOARD = '"Last Name"\t"Username"\t"ps1 [Total Pts: 8 Score] |4711"\n"A"\t"ana"\t""\n"B"\t"李"\t""\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize(
    "name, text, expected",
    [
        ("Canvas", CANVAS, CANVAS.replace("=x,\r", "=x,7.5\r").replace('""\r', '"-1"\r')),
        ("Moodle", MOODLE, MOODLE.replace("ana,-", "ana,7.5").replace("李,-", "李,-1")),
        ("Blackboard", BOARD, BOARD.replace('"ana"\t""', '"ana"\t"7.5"').replace('"李"\t""', '"李"\t"-1"')),
    ],
)
def test_only_grades_change(name, text, expected, encoding):
    done = fill(text.encode(encoding), MARKS)
    assert done.data == expected.encode(encoding)
    assert done.guessed.startswith(name) and done.filled == 2 and not done.without_marks + done.without_row


def test_unknown_students_are_named_and_nothing_is_overwritten(tmp_path, capsys):
    export, marks, to = tmp_path / "e.csv", tmp_path / "m.csv", tmp_path / "f.csv"
    export.write_text(MOODLE, encoding="utf-8")
    marks.write_text("id,points\nana,3\nzoe,2\n", encoding="utf-8")
    command = ["lms", str(export), str(marks), "--to", str(to)]
    assert main(command) == 1
    said = capsys.readouterr().out
    assert "without marks: 李" in said and "without a row: zoe" in said
    assert main(command) == 2 and "try another --to" in capsys.readouterr().err
