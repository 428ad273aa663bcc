"""Every lesson runs from top to bottom solved, half solved, unsolved and with a mistake in every stub, and says so truly."""

import importlib
import inspect

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
            if answers[name[1]].endswith("(:"):
                stub.metadata["tags"] = ["raises-exception"]  # the learner sees the error, and runs the cells below
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
    """Source of a function or class of the learner's own that makes a known mistake."""
    if inspect.isclass(checker(lesson).exercises[name].solution):
        return (
            f"from attnlib.exercises.lesson_{lesson.stem[:2]} import check as course\n\n"
            f"class {name}(course.exercises[{name!r}].mistakes[{number}].wrong):\n    pass"
        )
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
    states = {name: "right" if name in answers else "not started" for name in names}
    for name in names[1:2]:
        answers[name], states[name] = f"def {name}(:", "not yet"  # a syntax error costs itself alone
    verdicts, progress = solve(lesson, answers)
    for name, state in states.items():
        assert verdicts[name].startswith(f"{name}: {state}")
        assert ("Python could not read your cell" in verdicts[name]) == (state == "not yet")
        assert f"  {state:<12} {name}\n" in progress + "\n"
    assert f"{len(names[::2])} of {len(names)} right." in progress


def test_with_a_mistake_in_every_stub(lesson):
    check, number = checker(lesson), 0
    verdicts, progress = solve(lesson, {name: mistaken(lesson, name, number) for name in check.exercises})
    for name, text in verdicts.items():
        mistake = check.exercises[name].mistakes[number]
        assert text.startswith(f"{name}: not yet.")
        assert f"This is what comes of: {mistake.name}. {mistake.hint}" in text
    assert f"0 of {len(verdicts)} right." in progress and progress.count("not yet ") == len(verdicts)
