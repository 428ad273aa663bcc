"""A right answer is never called wrong: reference, solution and other right answers, on 200 seeds."""

from attnlib.exercises.core import judge


def test_right_answers_are_accepted_on_200_seeds(exercise):
    assert exercise.accepts or exercise.name == "total"
    for answer in (exercise.solution, exercise.reference, *exercise.accepts):
        for seed in range(200):
            verdict = judge(exercise, answer, seed)
            assert verdict.status == "right", verdict.text
