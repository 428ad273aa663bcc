"""Exports of platforms are filled, and nothing else in them changes. The exports are made up, in the forms of real ones."""

import pytest

from attnlib.marking.cli import main
from attnlib.marking.lms import Mark, fill, read_marks

MARKS = {"ana": Mark("ana", "7.5"), "李": Mark("李", "-1")}
CANVAS = (
    'Student,ID,SIS Login ID,Section,ps1 (12)\r\n"    Points Possible",,,,8\r\n'
    '"=Díaz, ""A""",1,ana,=x,\r\n"李",2,李,,""\r\n'
)
MOODLE = "First name,Email address,Assignment: ps1 (Real)\n=A,ana,-\nB,李,-\n"
BOARD = '"Last Name"\t"Username"\t"ps1 [Total Pts: 8 Score] |4711"\n"A"\t"ana"\t""\n"B"\t"李"\t""\n'
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"]


@pytest.mark.parametrize("encoding", ENCODINGS)
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
    to.write_text("edited by hand", encoding="utf-8")
    assert main([*command, "--replace"]) == 1
    assert (tmp_path / "f.old.csv").read_text(encoding="utf-8") == "edited by hand"


@pytest.mark.parametrize("to", ["marks.csv", "marks.jsonl"])
def test_the_marks_are_never_replaced(to, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.csv").write_text(MOODLE, encoding="utf-8")
    (tmp_path / "marks.csv").write_text("id,points\nana,3\n", encoding="utf-8")
    assert main(["lms", "e.csv", str(tmp_path / "marks.csv"), "--to", to, "--replace"]) == 2
    assert "would take the place of the marks; try --to filled.csv" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"e.csv", "marks.csv"}


# Canvas puts rows above the students, and the student that an instructor tries the course with below them.
CANVAS_CLASS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Final project (101),Assignments Current Score,Assignments Final Score,"
    "Current Score (2026),Final Grade\n"
    ",,,,,Manual Posting,,,,\n"
    "    Points Possible,,,,,8,(read only),(read only),(read only),(read only)\n"
    '"O\'Neil, Ana ""Annie""",11,U1,ana,"A, B and C",,90,90,90,A\n'
    '"=""=李, 雷""",12,U2,lei,A,5,,,,\n'
    "Bo,13,U3,bo,A,EX,,,,\n"
    "Cy,14,U4,cy,A,N/A,,,,\n"
    '"Student, Test",15,,8c01d2d5e6,A,,,,,\n'
)


def marks_of(*students, **changed):
    """Marks of students who all have 7.5 of 8."""
    return {student: Mark(student, "7.5", **({"of": "8"} | changed)) for student in students}


def test_canvas_has_rows_that_are_no_students():
    done = fill(CANVAS_CLASS.encode(), marks_of("ana", "lei"))
    filled = CANVAS_CLASS.replace('C",,', 'C",7.5,').replace("lei,A,5", "lei,A,7.5")
    assert done.data.decode() == filled and done.filled == 2
    assert not done.without_marks and not done.without_row and not done.warnings
    assert done.changed == ["lei (5 is now 7.5)"]
    assert done.guessed == "Canvas; id in 'SIS Login ID', grade in 'Final project (101)'"


def test_canvas_with_names_in_two_columns():
    text = CANVAS_CLASS.replace("Student,ID", "LastName,FirstName,ID").replace('"Student, Test"', "Student,Test")
    text = text.replace(",,,,,Manual", ",,,,,,Manual").replace("Possible,", "Possible,,").replace("Bo,", "Bo,B,")
    text = text.replace('Annie"""', 'Annie""",A').replace('雷"""', '雷""",L').replace("Cy,", ",C,")
    done = fill(text.encode(), marks_of("ana", "lei"))
    assert done.filled == 2 and not done.without_marks and not done.without_row


def test_an_excuse_is_not_undone_silently(tmp_path, capsys):
    (tmp_path / "e.csv").write_text(CANVAS_CLASS, encoding="utf-8")
    (tmp_path / "m.csv").write_text("id,points,of\nana,7.5,8\nlei,7.5,8\nbo,1,8\ncy,1,8\n", encoding="utf-8")
    assert main(["lms", str(tmp_path / "e.csv"), str(tmp_path / "m.csv"), "--to", str(tmp_path / "f.csv")]) == 1
    assert "2 left as the export has them: bo (EX), cy (N/A)" in capsys.readouterr().out
    assert "bo,A,EX" in (tmp_path / "f.csv").read_text(encoding="utf-8")


def test_a_student_of_canvas_without_an_id_is_named():
    text = CANVAS_CLASS + '"Ghost, A",,,,A,,,,,\n'
    assert fill(text.encode(), marks_of("ana", "lei")).without_marks == ["Ghost, A"]


SWEDISH = (
    "Student;ID;SIS User ID;SIS Login ID;Section;Labb 1 (23769);Final Score\r\n"
    "    Points Possible;;;;;8,0;(läs endast)\r\n"
    '"Öberg, Åsa";1;u;ana;A;;\r\n'
)
COMMAS = SWEDISH.replace("8,0;", '"8,0";').replace(";", ",")


@pytest.mark.parametrize("text, cell", [(SWEDISH, "A;7,5;"), (COMMAS, 'A,"7,5",')])
def test_a_decimal_comma_stays_one(text, cell):
    done = fill(text.encode(), marks_of("ana"))
    assert cell in done.data.decode() and not done.warnings


MOODLE_WORKSHEET = (
    '\ufeffIdentifier,"Full name","Email address",Status,Grade,"Maximum Grade","Grade can be changed",'
    '"Last modified (submission)","Last modified (grade)","Feedback comments"\n'
    '"Participant 657737","Lee, Ann",ann@x.edu,"Submitted for grading - ",,8.00,Yes,"Monday, 2 March 2026, 9:05 PM",-,\n'
    '"Participant 657768","李 雷",lei@x.edu,"No submission - ",,8.00,Yes,-,-,"<p>a ""quote"",\n and a line</p>"\n'
)
MOODLE_GERMAN = (
    'ID,"Vollständiger Name",E-Mail-Adresse,Status,Bewertung,Bestwertung,"Bewertung kann geändert werden",'
    '"Zuletzt geändert (Abgabe)","Zuletzt geändert (Bewertung)","Feedback als Kommentar"\n'
    'Teilnehmer/in657737,"Lee, Ann",ann@x.edu,"Zur Bewertung abgegeben",,"8,00",Ja,"Montag, 2. März 2026, 21:05",-,\n'
    'Teilnehmer/in657768,"李 雷",lei@x.edu,"Keine Abgabe",,"8,00",Ja,-,-,\n'
)
MOODLE_GRADEBOOK = (
    '"First name","Last name","ID number",Institution,Department,"Email address","Quiz: Total recall (Percentage)",'
    '"Assignment: ps1 (Real)","Assignment: ps1 (Letter)","Unit 1 total (Real)","Course total (Real)",'
    '"Last downloaded from this course"\n'
    "Ann,Lee,s1,,,ann@x.edu,,-,-,-,-,1772480000\n雷,李,s2,,,lei@x.edu,,6.00,-,-,-,1772480000\n"
)
GERMAN_GRADEBOOK = (
    "Vorname;Nachname;ID-Nummer;Institution;Abteilung;E-Mail-Adresse;Aufgabe: ps1 (Punkte);Kurs gesamt (Punkte);"
    "Zuletzt aus diesem Kurs geladen\nAnn;Lee;s1;;;ann@x.edu;-;-;1772480000\n雷;李;s2;;;lei@x.edu;6,00;-;1772480000\n"
)


@pytest.mark.parametrize(
    "text, students, changes",
    [
        (
            MOODLE_WORKSHEET,
            ["ann@x.edu", "lei@x.edu"],
            [('grading - ",,', 'grading - ",7.5,'), ('n - ",,', 'n - ",7.5,')],
        ),
        (MOODLE_GERMAN, ["ann@x.edu", "lei@x.edu"], [('en",,', 'en",{},'), ('Keine Abgabe",,', 'Keine Abgabe",{},')]),
        (MOODLE_GRADEBOOK, ["s1", "s2"], [("edu,,-", "edu,,7.5"), ("edu,,6.00", "edu,,7.5")]),
        (GERMAN_GRADEBOOK, ["s1", "s2"], [("ann@x.edu;-", "ann@x.edu;7,5"), ("6,00", "7,5")]),
    ],
)
def test_moodle_in_its_forms(text, students, changes):
    done = fill(text.encode(), marks_of(*students))
    for before, after in changes:
        assert before in text
        text = text.replace(before, after.format('"7,5"'))
    assert done.data.decode() == text and done.guessed.startswith("Moodle") and not done.warnings
    assert done.filled == 2 and not done.without_marks and not done.without_row


BLACKBOARD = (
    '"Last Name"\t"First Name"\t"Username"\t"Student ID"\t"Last Access"\t"Availability"\t'
    '"Weighted Total [Total Pts: up to 55 Score] |4709"\t"Total [Total Pts: 8 Score] |4710"\t'
    '"Final exam [Total Pts: 8 Score] |4711"\t"Group [Total Pts: 0 Text] |4712"\t"Overall [Total Pts: up to 8 Letter] |4713"\n'
    '"O""Hara"\t"Ann, B."\t"ann"\t"0442474"\t"2026-09-01 20:20:47"\t"Yes"\t""\t""\t""\t"7"\t""\n'
    '"李"\t"雷"\t"lei_2"\t"0433673"\t""\t"Yes"\t""\t""\t"3.5"\t""\t""\n'
    '"Smith"\t"Jo"\t"jsmith_previewuser"\t""\t""\t"Yes"\t""\t""\t""\t""\t""\n'
)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_blackboard_as_it_is_downloaded(encoding):
    done = fill(BLACKBOARD.encode(encoding), marks_of("ann", "lei_2"))
    filled = BLACKBOARD.replace('""\t"7"', '"7.5"\t"7"').replace('"3.5"', '"7.5"')
    assert done.data == filled.encode(encoding)
    assert done.filled == 2 and not done.without_marks and not done.without_row and not done.warnings


def test_blackboard_in_a_language_that_is_not_known():
    text = '"Achternaam";"Voornaam";"Gebruikersnaam";"Taak 1 [Totaal: 8 Score] |4711"\r\n"Jansen";"A";"ann";""\r\n'
    done = fill(text.encode(), marks_of("ann"))
    assert done.data.decode() == text.replace('"ann";""', '"ann";"7,5"') and not done.warnings
    assert done.guessed == "Blackboard; id in 'Gebruikersnaam', grade in 'Taak 1 [Totaal: 8 Score] |4711'"


def test_canvas_without_a_student_information_system():
    text = 'Student,ID,Section,ps1 (12)\n    Points Possible,,,8\n"Lee, Ann",11,A,\n"Student, Test",12,A,\n'
    done = fill(text.encode(), marks_of("11"))
    assert done.data.decode() == text.replace("11,A,", "11,A,7.5") and not done.without_marks
    assert done.guessed == "Canvas; id in 'ID', grade in 'ps1 (12)'"


def test_commas_within_a_head_separate_nothing():
    text = 'Student;ID;"Aufgabe a, b, c, d (12)"\n    Points Possible;;8\n"Lee, Ann";11;\n'
    assert fill(text.encode(), marks_of("11")).data.decode() == text.replace("11;", "11;7,5")


def test_an_id_in_the_form_of_a_download_is_an_id_first():
    text = "Student,ID,Section,ps1 (12)\nA,lee_2025_1_ann,A,\nB,2025,A,\n"
    assert fill(text.encode(), marks_of("lee_2025_1_ann")).data.decode() == text.replace("ann,A,", "ann,A,7.5")


def test_ids_may_stand_in_any_column():
    assert "id in 'Student ID'" in fill(BLACKBOARD.encode(), marks_of("0442474", "0433673")).guessed
    assert "id in 'ID'" in fill(CANVAS_CLASS.encode(), marks_of("11", "12")).guessed


DOWNLOADED = [
    (CANVAS_CLASS, ["oneilana_11_4567_ps1", "李雷_late_12_4568_ps1-1"]),
    (MOODLE_WORKSHEET, ["lee, ann_657737_assignsubmission_file_", "李 雷_657768_assignsubmission_file"]),
    (MOODLE_GERMAN, ["lee, ann_657737_assignsubmission_file_", "李 雷_657768_assignsubmission_file"]),
    (BLACKBOARD, ["ps_1_ann_attempt_2026-09-01-20-20-47_ps1", "ps_1_lei_2_attempt_2026-09-01-20-20-47_ps1"]),
]


@pytest.mark.parametrize("text, names", DOWNLOADED)
def test_names_that_platforms_give_to_downloads_are_ids(text, names):
    done = fill(text.encode(), marks_of(*names))
    assert done.filled == 2 and not done.without_marks and not done.without_row


def test_two_downloads_of_one_student_are_nobodys():
    done = fill(CANVAS_CLASS.encode(), marks_of("oneilana_11_4567_ps1", "oneilana_11_4569_ps1", "lei_12_4570_ps1"))
    assert done.filled == 1 and done.without_marks == ["11"]
    assert done.without_row == ["oneilana_11_4567_ps1", "oneilana_11_4569_ps1"]


def test_a_username_within_another_gets_no_mark_of_it():
    text = BLACKBOARD.replace('"ann"', '"2"')
    done = fill(text.encode(), marks_of("ps1_lei_2_attempt_2026-09-01-20-20-47_ps1"))
    assert (
        done.filled == 1
        and done.without_marks == ["2"]
        and '"lei_2"\t"0433673"\t""\t"Yes"\t""\t""\t"7.5"' in (done.data.decode())
    )


@pytest.mark.parametrize(
    "text, there",
    [
        (CANVAS_CLASS.replace("Possible,,,,,8", "Possible,,,,,100"), "Canvas has 100 points possible"),
        (CANVAS_CLASS.replace("Possible,,,,,8", "Possible,,,,,4.5"), "Canvas has 4.5 points possible"),
        (MOODLE_WORKSHEET.replace("8.00", "100.00"), "Moodle has 100 points possible"),
        (BLACKBOARD.replace("exam [Total Pts: 8", "exam [Total Pts: 10"), "Blackboard has 10 points possible"),
    ],
)
def test_other_points_possible_are_told(text, there):
    (warning,) = fill(text.encode(), marks_of("ana", "ann", "ann@x.edu")).warnings
    assert warning.startswith(there) and "the marks are out of 8" in warning


def test_unread_and_unsafe_marks_are_told(tmp_path, capsys):
    (tmp_path / "e.csv").write_text(MOODLE, encoding="utf-8")
    table = "id,points,of,error,sandbox\nana,0,8,the file is empty,UNSAFE: no sandbox\n李,8,8,,sandbox: unshare\n"
    (tmp_path / "m.csv").write_text(table, encoding="utf-8")
    assert main(["lms", str(tmp_path / "e.csv"), str(tmp_path / "m.csv"), "--to", str(tmp_path / "f.csv")]) == 0
    said = capsys.readouterr().out
    assert "1 have 0 because they could not be marked; look at them: ana" in said
    assert "1 of 2 marks come from a run with UNSAFE: no sandbox" in said


ERRORS = [
    (
        CANVAS.replace("ps1 (12)", "ps1"),
        [],
        ["looked for one such as 'ps1 (12345)'", "--grade-column", "'Section', 'ps1'"],
    ),
    (CANVAS.replace("Section", "ps2 (13)"), [], ["2 columns of grades", "'ps2 (13)', 'ps1 (12)'", "--grade-column"]),
    ("a,b\n1,2\n", [], ["none of Canvas, Blackboard, Moodle", "'a', 'b'", "--grade-column"]),
    (
        CANVAS.replace("ana", "zoe").replace("李,,", "x,,").replace('"李"', "y"),
        [],
        ["such as 'ana'", "'zoe'", "'SIS Login ID'"],
    ),
    (CANVAS, ["--id-column", "Section"], ["column 'Section'", "--id-column"]),
    (CANVAS, ["--id-column", "Sektion"], ["'Sektion' is no column", "--id-column with one of: 'Student'"]),
    (CANVAS, ["--grade-column", "ID", "--id-column", "ID"], ["must differ"]),
    (CANVAS.replace("2,李", "2,ana"), [], ["2 rows for 'ana'", "--id-column"]),
    (CANVAS + "short\r\n", [], ["has 1 fields, its head 5"]),
    (CANVAS.replace(",1,ana", "x,1,ana"), [], ["text after a closing quote"]),
    ("", [], ["the export is empty"]),
]


@pytest.mark.parametrize("text, options, said", ERRORS)
def test_an_export_that_cannot_be_filled_says_why_and_leaves_nothing(text, options, said, tmp_path, capsys):
    (tmp_path / "e.csv").write_text(text, encoding="utf-8", newline="")
    (tmp_path / "m.csv").write_text("id,points\nana,3\n", encoding="utf-8")
    command = ["lms", str(tmp_path / "e.csv"), str(tmp_path / "m.csv"), "--to", str(tmp_path / "f.csv"), *options]
    assert main(command) == 2
    told = capsys.readouterr().err
    assert all(part in told for part in said), told
    assert {path.name for path in tmp_path.iterdir()} == {"e.csv", "m.csv"}


@pytest.mark.parametrize(
    "data, said",
    [
        (b"PK\x03\x04\x00", "is an Excel workbook"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "is an Excel workbook"),
        ("Straße".encode("latin-1"), "neither UTF-8 nor UTF-16"),
        (b"\xff\xfea", "neither UTF-8 nor UTF-16"),
    ],
)
@pytest.mark.parametrize("place", ["export", "marks"])
def test_files_that_are_no_text(data, said, place, tmp_path, capsys):
    (tmp_path / "export").write_text(MOODLE, encoding="utf-8")
    (tmp_path / "marks").write_text("id,points\nana,3\n", encoding="utf-8")
    (tmp_path / place).write_bytes(data)
    command = ["lms", str(tmp_path / "export"), str(tmp_path / "marks"), "--to", str(tmp_path / "f.csv")]
    assert main(command) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "text, said",
    [
        ('{"id": "a", "points": 1}\n', "no columns id and points in its first line"),
        ("", "is empty"),
        ("id,points\n", "has no rows"),
        ("id,points\nana,much\n", "no points that are a number for 'ana'"),
        ("id,points\nana,nan\n", "no points that are a number for 'ana'"),
        ("id,points\nana\n", "no points that are a number for 'ana'"),
        ("id,points\n,3\n", "a row without an id"),
        ("id,points\nana,3\nANA,3\n", "two rows for 'ANA'"),
    ],
)
def test_a_wrong_table_of_marks_is_an_error(text, said, tmp_path):
    (tmp_path / "marks.csv").write_text("id,points\nana,3\n", encoding="utf-8")
    path = tmp_path / "marks.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=said) as error:
        read_marks(path)
    assert f"Try {tmp_path / 'marks.csv'}" in str(error.value) or "first line" not in said


def test_marks_that_a_table_calculator_saved(tmp_path):
    path = tmp_path / "marks.csv"
    path.write_bytes("id;points;of\r\n'=ana;7,5;8\r\n李;3;8\r\n;;\r\n".encode("utf-16"))
    assert read_marks(path) == {"=ana": Mark("'=ana", "7.5", "8"), "李": Mark("李", "3", "8")}


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, OSError("no space left")])
def test_an_interrupt_leaves_no_file(interrupt, tmp_path, monkeypatch):
    (tmp_path / "e.csv").write_text(MOODLE, encoding="utf-8")
    (tmp_path / "m.csv").write_text("id,points\nana,3\n", encoding="utf-8")

    def half(path, data):
        with path.open("wb") as file:
            file.write(data[:10])
        raise interrupt

    monkeypatch.setattr("pathlib.Path.write_bytes", half)
    assert main(["lms", str(tmp_path / "e.csv"), str(tmp_path / "m.csv"), "--to", str(tmp_path / "f.csv")]) in (2, 130)
    assert {path.name for path in tmp_path.iterdir()} == {"e.csv", "m.csv"}
