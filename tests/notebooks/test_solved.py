"""Every lesson runs from top to bottom solved, half solved, unsolved and with a mistake in every stub, and says so truly."""

import importlib

import pytest
from nbclient import NotebookClient

from notebooks import CHECK, read


def checker(lesson):
    return importlib.import_module(f"attnlib.exercises.lesson_{lesson.stem[:2]}").check


def solve(lesson, answers):
    """Run the lesson with these sources in the stubs; return what each check printed, and what progress said."""
    notebook = read(lesson)
    for stub, cell in zip(notebook.cells, notebook.cells[1:]):
        if (name := CHECK.match(cell.source)) and name[1] in answers:
            stub.source = answers[name[1]]
    resources = {"metadata": {"path": str(lesson.parent)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", coalesce_streams=True, resources=resources).execute()
    verdicts = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert not any(output.get("name") == "stderr" for output in cell.outputs), cell.source
            if name := CHECK.match(cell.source):
                verdicts[name[1]] = " ".join(cell.outputs[0].text.split())
    return verdicts, notebook.cells[-1].outputs[0].text


def mistaken(lesson, name, number):
    """Source of a function of the learner's own that makes a known mistake."""
    return (
        f"def {name}(*args):\n"
        f"    from attnlib.exercises.lesson_{lesson.stem[:2]} import check as course\n"
        f"    return course.exercises[{name!r}].mistakes[{number}].wrong(*args)"
    )


def test_solved(lesson):
    check = checker(lesson)
    answers = {name: exercise.solution_source() for name, exercise in check.exercises.items()}
    verdicts, progress = solve(lesson, answers)
    assert all(text.startswith(f"{name}: right in all ") for name, text in verdicts.items())
    assert f"{len(answers)} of {len(answers)} right." in progress and progress.count("\n  right ") == len(answers)


def test_half_solved(lesson):
    check = checker(lesson)
    names = list(check.exercises)
    answers = {name: check.exercises[name].solution_source() for name in names[::2]}
    answers |= {name: f"def {name}(:" for name in names[1:2]}  # a syntax error must not stop the rest
    if any("(:" in source for source in answers.values()):
        with pytest.raises(Exception, match="SyntaxError"):
            solve(lesson, answers)
        answers.pop(names[1])
    verdicts, progress = solve(lesson, answers)
    for name, text in verdicts.items():
        assert text.startswith(f"{name}: right" if name in answers else f"{name}: not started")
        assert f"  {'right' if name in answers else 'not started':<12} {name}\n" in progress + "\n"
    assert f"{len(answers)} of {len(names)} right." in progress


@pytest.mark.parametrize("number", [0, -1])
def test_with_a_mistake_in_every_stub(lesson, number):
    check = checker(lesson)
    verdicts, progress = solve(lesson, {name: mistaken(lesson, name, number) for name in check.exercises})
    for name, text in verdicts.items():
        mistake = check.exercises[name].mistakes[number]
        assert text.startswith(f"{name}: not yet.")
        assert f"This is what comes of: {mistake.name}. {mistake.hint}" in text
    assert f"0 of {len(verdicts)} right." in progress and progress.count("not yet ") == len(verdicts)
