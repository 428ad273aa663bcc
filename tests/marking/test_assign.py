"""An assignment runs from top to bottom, unsolved and solved, and says what it asks for."""

import json
import re

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager
from nbclient import NotebookClient

from attnlib.marking.assign import Question, chosen, exercises_in, notebook, write
from attnlib.marking.assignment import CHECK, NOTEBOOKS, Assignment
from attnlib.marking.cli import main

pytest.importorskip("torch")  # what is assigned here comes from lessons of both parts

LESSONS = sorted(path.name[:2] for path in NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
PS1 = ("02", "04"), ("softmax", "scaled_dot_product_attention", "causal_mask")


def ran(content, folder, answers=None):
    """What each check printed when the notebook ran, with these answers in the stubs."""
    book = nbformat.from_dict(content)
    nbformat.validate(book)
    for stub, cell in zip(book.cells, book.cells[1:]):
        if (name := CHECK.match(cell.source)) and answers:
            stub.source = answers[name[1]]
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(book, timeout=120, kernel_name="python3", resources=resources).execute()
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert not any(output.get("name") == "stderr" for cell in code for output in cell.outputs)
    return {CHECK.match(c.source)[1]: c.outputs[0].text for c in code if CHECK.match(c.source)}


@pytest.mark.parametrize(
    ("lessons", "exercises"), [PS1, (("09",), ("EncoderLayer",))], ids=["two lessons", "a layer that needs another"]
)
def test_it_runs_unsolved_and_solved(lessons, exercises, tmp_path):
    assignment = chosen(lessons, exercises, {}, "ps1")
    content = notebook(assignment, [Question("Why?")])
    assert all("not started" in text for text in ran(content, tmp_path).values())
    solved = {task.name: task.exercise.solution_source() for task in assignment.tasks}
    verdicts = ran(content, tmp_path, solved)
    assert list(verdicts) == list(exercises) and all("right in all" in text for text in verdicts.values()), verdicts


def printed(content, answers, capsys):
    """What the check printed when the code cells ran one after the other, in this process, with an answer in its stub."""
    book, space = nbformat.from_dict(content), {"__name__": "__main__"}
    nbformat.validate(book)
    cells = [cell.source for cell in book.cells if cell.cell_type == "code"]
    checks = [place for place, source in enumerate(cells) if CHECK.match(source)]
    for place in checks:
        name = CHECK.match(cells[place])[1]
        cells[place - 1] = answers.get(name, cells[place - 1])
    for place, source in enumerate(cells):
        capsys.readouterr()
        exec(compile(TransformerManager().transform_cell(source), f"cell {place}", "exec"), space)
    return capsys.readouterr()


@pytest.mark.parametrize(("lesson", "name"), [(lesson, name) for lesson in LESSONS for name in exercises_in(lesson)])
def test_each_exercise_alone_runs_unsolved_and_solved(lesson, name, capsys):
    assignment = chosen([lesson], [f"{lesson}-{name}"], {}, "alone")
    content = notebook(assignment, plain=True)
    unsolved = printed(content, {}, capsys)
    assert "not started" in unsolved.out and not unsolved.err
    solved = printed(content, {name: assignment.tasks[0].exercise.solution_source()}, capsys)
    assert "right in all" in solved.out and not solved.err, solved


@pytest.mark.parametrize("lesson", LESSONS)
def test_what_is_told_of_the_lesson_announces_nothing_that_is_missing(lesson):
    """A sentence that ends in a colon is followed by what it announces; a section of a heading alone is left out."""
    for name in exercises_in(lesson):
        content = notebook(chosen([lesson], [f"{lesson}-{name}"], {}, "alone"), plain=True)
        text = next(cell["source"] for cell in content["cells"] if cell["source"].startswith(f"### Exercise: `{name}`"))
        assert not re.search(r":\s*(</details>|\Z)", text), text
        assert not re.search(r":\n+(?![`$|*\-0-9]|</?details)\w", text), text
        assert "summary>\n\n**" not in text or not re.search(r"\*\*[^*\n]+\*\*\s*</details>", text), text
        if recalled := text.find("From the lesson</summary>") + 1:
            assert recalled < text.index("One worked number"), "what is above in the lesson stands above here"


@pytest.mark.parametrize("lesson", LESSONS)
def test_each_exercise_brings_its_text_stub_and_hints(lesson):
    assignment = chosen([lesson], [], {}, "ps1")
    assert [task.name for task in assignment.tasks] == exercises_in(lesson)
    for task in assignment.tasks:
        content = notebook(Assignment("one", (task,)), plain=True)
        texts = [cell["source"] for cell in content["cells"]]
        place = texts.index(f'{task.name} = check("{task.name}")')
        assert f"`{task.name}`" in texts[place - 2] and "One worked number" in texts[place - 2]
        assert re.search(rf"(def|class) {task.name}\b", texts[place - 1]) and "..." in texts[place - 1]
        assert texts[place + 1].startswith("<details><summary>Hint")
        assert "".join(texts).count("<details>") == "".join(texts).count("</details>")
        assert not any("nbgrader" in cell["metadata"] for cell in content["cells"])


def test_the_parts_that_an_exercise_is_made_of_come_with_it():
    content = notebook(chosen(["05"], ["multi_head_attention"], {}, "alone"), plain=True)
    helpers = next(cell["source"] for cell in content["cells"] if "The course's own" in cell["source"])
    assert "import split_heads\n" in helpers and helpers.endswith("import merge_heads")


def test_two_lessons_in_one_notebook():
    content = notebook(chosen(*PS1, {"softmax": 3.5}, "ps1"), [Question("Why is the maximum subtracted?", 2)])
    texts = [cell["source"] for cell in content["cells"]]
    assert 'softmax = check_02("softmax")' in texts and 'causal_mask = check_04("causal_mask")' in texts
    imports = "\n".join(texts[2:4])
    assert "from attnlib.numpy import attention_scores" in imports and "import softmax" not in imports
    grading = [cell["metadata"]["nbgrader"] for cell in content["cells"] if "nbgrader" in cell["metadata"]]
    graded = {about["grade_id"]: about["points"] for about in grading if about["grade"]}
    assert graded == {
        "check-softmax": 3.5,
        "check-scaled_dot_product_attention": 3,
        "check-causal_mask": 2,
        "question-1": 2,
    }


def test_the_command_writes_a_folder_that_names_what_is_asked(tmp_path, capsys):
    folder = tmp_path / "ps1"
    command = ["assign", "02", "04", "--exercises", "softmax,causal_mask", "--points", "softmax=3", "--to", str(folder)]
    assert main([*command, "--question", "Why?", "--question-points", "2"]) == 0
    assert "softmax (3), causal_mask (2)" in capsys.readouterr().out
    for path in (folder / "ps1.ipynb", folder / "source/ps1/ps1.ipynb"):
        assignment = Assignment.from_file(path)
        assert assignment.name == "ps1" and [(t.lesson, t.name, t.points) for t in assignment.tasks] == [
            ("02", "softmax", 3.0),
            ("04", "causal_mask", 2.0),
        ]
        content = json.loads(path.read_text(encoding="utf-8"))
        del content["metadata"]["attnlib"]  # an editor may lose it
        (tmp_path / "lost.ipynb").write_text(json.dumps(content), encoding="utf-8")
        lost = Assignment.from_file(tmp_path / "lost.ipynb")
        assert [task.lesson for task in lost.tasks] == ["02", "04"]
    before = (folder / "ps1.ipynb").read_bytes()
    assert main(command) == 2 and "name another folder by --to" in capsys.readouterr().err
    assert (folder / "ps1.ipynb").read_bytes() == before


@pytest.mark.parametrize(
    ("lessons", "exercises", "points", "said"),
    [
        (["98"], [], {}, "there is no lesson 98. There are 00, 01"),
        (
            ["02"],
            ["sotfmax"],
            {},
            r"no exercise 'sotfmax' in these lessons. There are\n  02: softmax, attention_scores",
        ),
        (["02"], ["softmax"], {"softmx": 2}, "points for softmx, which is not asked for; asked for: softmax"),
        (["02"], ["softmax"], {"softmax": -1}, "expected a number from 0 on"),
        (["02"], ["softmax"], {"softmax": float("nan")}, "expected a number from 0 on"),
        (["02", "04"], ["softmax"], {}, "no exercise of lesson 04 is chosen"),
        (["07", "11"], ["train_step"], {}, "lessons 07 and 11 both have train_step; choose one"),
    ],
)
def test_what_does_not_exist_is_named(lessons, exercises, points, said):
    with pytest.raises(ValueError, match=said):
        chosen(lessons, exercises, points, "ps1")


def test_one_of_two_of_the_same_name_and_names_of_assignments(tmp_path):
    both = chosen(["07", "11"], ["softmax_backward", "11-train_step"], {}, "ps1")
    assert [(task.lesson, task.name) for task in both.tasks] == [("07", "softmax_backward"), ("11", "train_step")]
    with pytest.raises(ValueError, match="cannot be an assignment's name"):
        chosen(["02"], [], {}, "problem set 1")
    with pytest.raises(ValueError, match="nothing is ever overwritten"):
        write(both, tmp_path)
