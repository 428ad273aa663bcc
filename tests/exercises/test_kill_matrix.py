"""The kill matrix: every mistake is rejected with its own hint and no other's, every right answer is accepted."""

import html
import inspect
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import yaml

from attnlib.exercises import all_exercises
from attnlib.exercises.compare import agree, fault, unchanged
from attnlib.exercises.core import Checker, judge
from attnlib.exercises.wording import literal

BUILD = Path(__file__).parents[2] / "build"
SOURCES = {
    entry["id"]: entry["source"]
    for file in Path(__file__).with_name("bank").glob("*.yaml")
    for entry in yaml.safe_load(file.read_text(encoding="utf-8"))
}


def ways(exercise):
    """Every mistake with every way of making it."""
    return [(mistake, way) for mistake in exercise.mistakes for way in (mistake.wrong, *mistake.also)]


VERDICTS = {}  # of each way, since the matrix for instructors needs them again


def judged(exercise, mistake, way):
    """The verdict on one way of making a mistake."""
    key = exercise.name, mistake.name, id(way)
    if key not in VERDICTS:
        VERDICTS[key] = judge(exercise, way)
    return VERDICTS[key]


def test_each_mistake_gets_its_own_hint_and_no_other(exercise):
    assert len(exercise.mistakes) >= 2
    for mistake, way in ways(exercise):
        verdict = judged(exercise, mistake, way)
        assert verdict.status == "not yet", mistake.name
        assert verdict.mistakes == (mistake,)
        assert mistake.hint in verdict.text and "This is what comes of" in verdict.text
        assert not any(other.hint in verdict.text for other in exercise.mistakes if other.hint != mistake.hint)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_mistakes_differ_pairwise_in_what_they_produce(exercise, seed):
    cases = exercise.ladder(seed)
    assert len({mistake.name for mistake in exercise.mistakes}) == len(exercise.mistakes)
    outcomes = [(mistake.name, [exercise.run(way, case) for case in cases]) for mistake, way in ways(exercise)]
    for (one, first), (other, second) in combinations(outcomes, 2):
        same = [agree(exercise.view, case, a, b) for case, a, b in zip(cases, first, second)]
        assert not all(same), f"{one!r} and {other!r} produce the same"


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_mistakes_are_rejected_on_other_seeds(exercise, seed):
    cases = exercise.ladder(seed)
    for mistake, way in ways(exercise):
        assert any(fault(exercise.view, case, exercise.run(way, case)) for case in cases), mistake.name


def test_what_was_computed_by_hand_is_what_the_reference_computes(exercise):
    by_hand = [case for case in exercise.cases(np.random.default_rng(0)) if case.expected is not None]
    assert by_hand or exercise.view, "every exercise needs a result computed by hand"
    for case in by_hand:
        assert fault(exercise.view, case, exercise.run(exercise.reference, case)) == ""


def test_the_ladder_is_reproducible_and_marking_gets_another_one(exercise):
    same = [unchanged(one.args, other.args) for one, other in zip(exercise.ladder(0), exercise.ladder(0))]
    assert all(same)


def short_or_made_of_log_3(numbers):
    """Numbers of at most four decimals; others only where weights of 1/4 and 3/4 are wanted, which log 3 makes."""
    multiples = 4 * numbers / np.log(3)
    return ((numbers == numbers.round(4)) | np.isclose(multiples, multiples.round())).all()


def test_inputs_can_be_copied(exercise):
    for case in exercise.ladder():
        for arg in case.args:
            for part in arg.values() if isinstance(arg, dict) else [arg]:
                if isinstance(part, np.ndarray):
                    assert part.dtype in (np.float64, np.int64, bool) and part.size <= 150
                    assert part.dtype.kind != "f" or short_or_made_of_log_3(part[np.isfinite(part)]), (case.name, part)
            if isinstance(arg, (str, list)) or (
                isinstance(arg, dict) and not any(isinstance(part, np.ndarray) for part in arg.values())
            ):
                assert eval(literal(arg)) == arg and len(literal(arg)) <= 600


def test_the_failing_case_can_be_played_with(exercise):
    check = Checker("00", [exercise])
    given = check.case(exercise.name)
    if inspect.isclass(exercise.solution):
        assert list(given._asdict()) == exercise.parameters  # what a verdict shows, by name
    else:
        assert exercise.solution(*given) is not None


def test_a_check_answers_in_under_200_ms_and_of_a_class_in_under_1_s(exercise):
    for answer in (exercise.solution, exercise.mistakes[-1].wrong, lambda *args: np.zeros(3)):
        start = time.process_time()  # of this process, whatever else the machine does
        judge(exercise, answer)
        assert time.process_time() - start < (1 if inspect.isclass(exercise.solution) else 0.2)


def test_solutions_are_short_and_have_the_name_and_the_signature_of_the_stub(exercise):
    source = exercise.solution_source()
    is_class = inspect.isclass(exercise.solution)
    assert source.startswith(f"{'class' if is_class else 'def'} {exercise.name}(")
    assert len(source.splitlines()) <= (30 if is_class else 12)
    namespace = {"np": np}
    if exercise.call is not None:
        import torch

        from attnlib.torch import FeedForward, MultiHeadAttention  # what earlier exercises built

        namespace |= {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
        namespace |= {"MultiHeadAttention": MultiHeadAttention, "FeedForward": FeedForward}
    exec(source, namespace)  # self-contained: nothing but NumPy, and in Part II PyTorch
    assert judge(exercise, namespace[exercise.name]).status == "right"
    given = inspect.signature(exercise.solution).parameters
    named = [name for name, parameter in given.items() if parameter.kind is parameter.KEYWORD_ONLY]
    theirs = list(inspect.signature(exercise.reference).parameters)
    assert list(given) == theirs[: len(given) - len(named)] + named and set(named) <= set(theirs)


def test_write_the_matrix_for_instructors():
    rows = []
    for key, exercise in all_exercises().items():
        lesson = key.split("-")[0]
        for mistake in exercise.mistakes:
            verdict = judged(exercise, mistake, mistake.wrong)
            cells = [lesson, exercise.name, mistake.name, verdict.case.name, mistake.hint]
            seen = ", ".join(f'<a href="{html.escape(SOURCES[id_])}">{id_}</a>' for id_ in mistake.bank)
            named = "yes" if verdict.mistakes == (mistake,) else "NO"
            rows.append("".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + f"<td>{seen}</td><td>{named}</td>")
    heads = (
        "lesson|exercise|mistake|first case that shows it|hint that the learner reads|seen in public|named alone".split(
            "|"
        )
    )
    table = "\n".join(f"<tr>{row}</tr>" for row in rows)
    style = (
        "body{font:15px/1.4 sans-serif;max-width:75em;margin:2em auto;padding:0 1em}table{border-collapse:collapse}"
        "td,th{border-bottom:1px solid #ccc;padding:.4em .7em;text-align:left;vertical-align:top}"
        "th{position:sticky;top:0;background:#fff}tr:nth-child(even){background:#f6f6f6}"
    )
    page = (
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Kill matrix</title><style>{style}</style>'
        "<h1>What the checks know</h1><p>One row for each mistake that a check recognises: where it first shows, and "
        f"what the learner reads. {len(rows)} mistakes in {len(all_exercises())} exercises.</p><table><thead><tr>"
        + "".join(f'<th scope="col">{head}</th>' for head in heads)
        + f"</tr></thead><tbody>\n{table}\n</tbody></table></html>\n"
    )
    BUILD.mkdir(exist_ok=True)
    (BUILD / "kill_matrix.html").write_text(page, encoding="utf-8")
    assert "<td>NO</td>" not in page and len(rows) > 50
