"""Verdicts on answers that are right but unusual, wrong in ways that no list of mistakes holds, or no functions at all."""

import collections
import dataclasses
import functools
import logging
import re
import sys
import warnings

import numpy as np
import pytest
import scipy.special

from attnlib.exercises import all_exercises, lesson_02
from attnlib.exercises.compare import run
from attnlib.exercises.core import Case, Checker, Exercise, Mistake, judge

SOFTMAX = lesson_02.check.exercises["softmax"]


def over(exponentials):
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def right(scores):
    return over(np.exp(scores - scores.max(axis=-1, keepdims=True)))


# Right, but unusual ---------------------------------------------------------------------------------------------------


def by_list_comprehension(scores):
    if scores.ndim > 1:
        return [by_list_comprehension(row) for row in scores]
    exponentials = [float(np.exp(score - max(scores))) for score in scores]
    return [exponential / sum(exponentials) for exponential in exponentials]


def by_einsum(scores):
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("...i,...->...i", exponentials, 1 / np.einsum("...i->...", exponentials))


def in_place_on_a_copy(scores):
    weights = scores.copy()
    weights -= weights.max(axis=-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def in_float32(scores):
    return right(scores.astype(np.float32))


def with_a_print(scores):
    print("here", scores.shape)
    return right(scores)


def with_a_warning(scores):
    np.log(np.zeros(1))  # division by zero
    np.exp(np.array([1e5]))  # overflow
    return right(scores)


def with_noise_on_stderr(scores):
    print("debug", file=sys.stderr)
    return right(scores)


BUFFERS = {}


def in_one_buffer(scores):
    buffer = BUFFERS.setdefault(scores.shape, np.empty(scores.shape))
    buffer[...] = right(scores)
    return buffer


@pytest.mark.parametrize(
    "answer",
    [
        right,
        by_list_comprehension,
        by_einsum,
        in_place_on_a_copy,
        in_float32,
        with_a_print,
        with_a_warning,
        with_noise_on_stderr,
        in_one_buffer,
        functools.partial(scipy.special.softmax, axis=-1),
        lambda scores: scipy.special.softmax(scores, axis=-1),
        lambda s: right(s),
    ],
)
def test_right_but_unusual_answers_pass(answer, capsys):
    verdict = judge(SOFTMAX, answer)
    assert verdict.status == "right", verdict.text
    assert capsys.readouterr() == ("", "")


def test_prints_are_shown_once_and_cut():
    text = judge(SOFTMAX, with_a_print).text
    assert text.count("here") == 1 and "It printed: here (1, 2)" in text
    assert len(judge(SOFTMAX, lambda s: print("x" * 10_000) or right(s)).text) < 1_000


def test_a_list_is_right_and_the_lesson_gets_an_array():
    verdict = judge(SOFTMAX, by_list_comprehension)
    assert "It returns a list; the cells below get it as an array." in verdict.text
    space = notebook(softmax=by_list_comprehension)
    assert isinstance(space["softmax"](np.zeros(2)), np.ndarray)
    again = notebook(softmax=space["softmax"])  # the check once more, on what the check handed out
    assert again["verdict"].status == "right"


# Wrong in other ways --------------------------------------------------------------------------------------------------


def changes_its_input(scores):
    scores -= scores.max(axis=-1, keepdims=True)
    return over(np.exp(scores))


def changes_its_input_and_is_wrong(scores):
    scores -= scores.max(axis=-1, keepdims=True)
    return np.exp(scores)


class EqualToAll(np.ndarray):
    def __eq__(self, other):
        return True

    def __array_function__(self, func, types, args, kwargs):
        return True


class Chameleon:
    shape, dtype = (1, 2), np.dtype(float)

    def __eq__(self, other):
        return True

    def __array__(self, dtype=None, copy=None):
        return np.array([[0.25, 0.75]])


@pytest.mark.parametrize(
    "answer, texts",
    [
        (changes_its_input, ["The numbers are right, but it changes its input `scores`", "`scores = scores.copy()`."]),
        (changes_its_input_and_is_wrong, ["not normalised", "Besides, it changes its input `scores`"]),
        (lambda s: [0.25, 0.75, 0.0], ["It returns shape [3]; expected shape [1, 2]."]),
        (lambda s: [[0.25], [0.75, 0.0]], ["It returns a list; expected a plain NumPy array of float64."]),
        (
            lambda s: right(s).round().astype(int),
            ["It returns a ndarray of int64; expected a plain NumPy array of float64."],
        ),
        (lambda s: right(s) > 0.5, ["It returns a ndarray of bool; expected"]),
        (lambda s: np.ma.masked_array(right(s)), ["It returns a MaskedArray of float64; expected a plain NumPy array"]),
        (lambda s: np.asmatrix(right(np.atleast_2d(s))), ["It returns a matrix of float64"]),
        (lambda s: right(s).astype(object), ["It returns a ndarray of object"]),
        (lambda s: right(s).view(EqualToAll), ["It returns an EqualToAll of float64"]),
        (lambda s: Chameleon(), ["It returns a Chameleon; expected a plain NumPy array"]),
        (
            lambda s: (w for w in right(s)),
            ["It returns a generator (put it in `list(...)`); expected a plain NumPy array"],
        ),
        (lambda s: map(float, s.ravel()), ["It returns a map (put it in `list(...)`)"]),
        (lambda s: s.mean, ["It returns the function `mean` itself (are its parentheses missing?)"]),
        (lambda s: "0.25 0.75", ["It returns a str; expected"]),
        (lambda s: None, ["It returns nothing (None): is `return` missing, or not indented?"]),
        (lambda s: sys.exit("bye"), ["It raises SystemExit: bye"]),
        (lambda s: 1 / 0, ["It raises ZeroDivisionError: division by zero", "in line"]),
        (lambda: 0, ["It raises TypeError:", "takes 0 positional arguments but 1 was given"]),
        (
            lambda s: right(s) if s.shape[-1] == 2 else right(s)[..., ::-1],
            ["Right in 6 of 11 cases", "simplest that is not: 2 queries and 3 keys"],
        ),
        (lambda s: over(np.exp(np.abs(s) - np.abs(s).max(-1, keepdims=True))), ["expected: ["]),
        (lambda s: right(s) + np.nan, ["yours:    [[nan, nan]]", "expected: [[0.25, 0.75]]"]),
        (lambda s: right(s) + 1e-6, ["yours:    [[0.250001, 0.750001]]", "expected: [[0.25, 0.75]]"]),
        (lambda s: float(right(s).sum()), ["It returns one number; expected shape [1, 2]."]),
        (lambda s: (right(s), s), ["It returns shape [2, 1, 2]; expected shape [1, 2]."]),
        (lambda s: right(s)[..., None], ["It returns shape [1, 2, 1]; expected shape [1, 2]."]),
    ],
)
def test_wrong_answers_are_told_what_is_wrong(answer, texts):
    verdict = judge(SOFTMAX, answer)
    assert verdict.status == "not yet"
    for text in texts:
        assert text.replace("int64", str(np.dtype(int))) in verdict.text, verdict.text


@pytest.mark.parametrize(
    "answer",
    [
        lambda s: over(np.exp(s - s.mean(-1, keepdims=True))),
        lambda s: over(np.exp(s - s[..., :1])),
        lambda s: over(np.exp(s - s.max())),
        lambda s: over(np.exp(np.clip(s, -700, 700))),
    ],
)
def test_a_softmax_that_can_overflow_is_never_right(answer):
    assert judge(SOFTMAX, answer).status == "not yet"


@pytest.mark.parametrize(
    "name, answer",
    [
        ("02-softmax", lambda s: right(s) > 0.5),
        ("02-softmax", lambda s: right(s).astype(complex)),
        ("01-gradient_norms", lambda w, n: np.array(x for x in range(n))),
        ("02-attention_scores", lambda q, k: exec("raise ValueError('no')")),
        ("02-scaled_dot_product_attention", lambda q, k, v: exec("raise ValueError('no')")),
        ("02-softmax", lambda s: np.array([[0.0, 1.0]]) if s.shape == (1, 2) else s * 0 + 0.1234),
    ],
)
def test_no_wrong_name_is_given(name, answer):
    verdict = judge(all_exercises()[name], answer)
    assert verdict.status == "not yet" and not verdict.mistakes, verdict.text


def test_an_answer_with_a_memory_is_told_so():
    kept = []

    def remembers(scores):
        kept.append(0)
        return right(scores) * (1 if len(kept) <= 11 else 2)

    assert "gives another answer the second time" in judge(SOFTMAX, remembers).text


def test_what_is_left_behind_is_nothing(tmp_path):
    before = np.geterr(), warnings.filters[:], sys.stdout, logging.root.handlers[:]

    def messy(scores):
        np.seterr(divide="raise")
        warnings.simplefilter("error")
        sys.stdout = None
        logging.warning("here")
        return right(scores)

    assert judge(SOFTMAX, messy).status == "right"
    assert before == (np.geterr(), warnings.filters[:], sys.stdout, logging.root.handlers[:])


def test_an_answer_that_is_right_for_positive_numbers_only_is_told_so():
    def only_positive(scores):
        return right(scores * (scores > 0))

    verdict = judge(SOFTMAX, only_positive)
    assert verdict.status == "not yet"
    assert verdict.case.args[0].min() < 0 and f"the simplest that is not: {verdict.case.name}" in verdict.text


def test_the_input_shown_can_be_copied_and_fails_again():
    verdict = judge(SOFTMAX, lambda s: right(s) if s.shape[-1] == 2 else np.zeros(s.shape))
    line = next(line for line in verdict.text.splitlines() if line.strip().startswith("scores = "))
    space = {"np": np}
    exec(line.strip(), space)
    np.testing.assert_array_equal(space["scores"], verdict.case.args[0])


def test_keyboard_interrupt_gets_through():
    def interrupted(scores):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge(SOFTMAX, interrupted)


def test_two_slips_at_once_are_never_given_a_name_in_full():
    def two(scores):
        return np.exp(scores) / scores.sum(axis=0)  # exp missing below, the wrong axis, no maximum

    verdict = judge(SOFTMAX, two)
    assert verdict.status == "not yet" and "This is what comes of" not in verdict.text


# Results of several parts ---------------------------------------------------------------------------------------------

PAIR = Exercise(
    "pair",
    reference=lambda x: (x.sum(), x.mean(axis=0)),
    solution=lambda x: (x.sum(), x.mean(axis=0)),
    cases=lambda rng: [
        Case("two rows", (np.array([[1.0, 2.0], [3.0, 5.0]]),)),
        Case("any", (rng.normal(size=(3, 2)),)),
    ],
    mistakes=[Mistake("exchanged", lambda x: (x.mean(axis=0), x.sum()), "The sum comes first.")],
)


def test_several_results_are_compared_one_by_one():
    assert judge(PAIR, lambda x: (np.sum(x), np.mean(x, axis=0))).status == "right"
    assert judge(PAIR, lambda x: (x.mean(axis=0), x.sum())).mistakes == tuple(PAIR.mistakes)
    assert "expected 2 results" in judge(PAIR, lambda x: x.sum()).text
    assert judge(PAIR, lambda x: (x.sum(), x.mean(axis=1))).status == "not yet"
    assert judge(PAIR, lambda x: (x.sum(), np.ma.array(x.mean(axis=0)))).status == "not yet"


def test_of_two_slips_in_two_results_the_first_is_named():
    number = Mistake("the mean, not the sum", lambda x: (x.mean(), x.mean(axis=0)), "Add them up.")
    axis = Mistake("over the other axis", lambda x: (x.sum(), x.mean(axis=1)[:2]), "One mean for each column.")
    pair = dataclasses.replace(PAIR, mistakes=[axis, number])
    verdict = judge(pair, lambda x: (x.mean(), x.mean(axis=1)[:2]))
    assert verdict.mistakes == (number,) and "It looks like: the mean, not the sum. Add them up." in verdict.text
    assert "Result 1 of 2: The number is not right." in verdict.text
    assert judge(pair, lambda x: (x.sum(), x.mean(axis=1)[:2])).mistakes == (axis,)
    assert not judge(pair, lambda x: (x.max(), x.mean(axis=0))).mistakes
    assert not judge(pair, lambda x: (x.mean(), x.mean(axis=0), 0)).mistakes  # three results are no slip in one of two


def test_results_that_the_check_makes_are_named_and_only_wrong_ones_are_shown():
    named = dataclasses.replace(PAIR, call=lambda f, x: f(x), results=("the sum", "the mean of each column"))
    text = judge(named, lambda x: (x.sum(), x.mean(axis=0) + 1)).text
    assert "pair: not yet. The mean of each column: The shape is right, the numbers are not." in text
    assert (
        "  the mean of each column:\n  yours:    [3.0, 4.5]\n  expected: [2.0, 3.5]" in text and "the sum" not in text
    )


def test_several_possible_names_are_said_to_be_possible():
    exercise = Exercise(
        "largest",
        reference=np.max,
        solution=np.max,
        cases=lambda rng: [
            Case(name, (np.array(row),)) for name, row in (("a", [1.0, 2, 2]), ("b", [4.0, 4, 4]), ("c", [1.0, 3, 8]))
        ],
        mistakes=[
            Mistake("the first", lambda x: x[0], "It need not stand in front."),
            Mistake("the least", np.min, "The other end."),
        ],
    )
    text = judge(exercise, lambda x: x[0] if x[0] < 4 else 5.0 if len(set(x)) == 1 else 0.0).text
    assert text.count("It may be: ") == 2 and "It looks like" not in text


# What is not a function of the learner's ------------------------------------------------------------------------------


def notebook(**space):
    """Run the check cell in a notebook that holds these names."""
    check = Checker("02", [SOFTMAX])
    exec('softmax = check("softmax")', space := {"check": check, **space})
    return space | {"verdict": check.verdicts["softmax"]}


class softmax:
    pass


class Odd(BaseException):
    def __str__(self):
        raise RuntimeError


class Hostile:
    def __getattr__(self, name):
        raise RuntimeError(name)

    def __repr__(self):
        raise RuntimeError

    def __call__(self, scores):
        return self


async def asynchronous(scores):
    return right(scores)


def raises_odd(scores):
    raise Odd


def closes_stdout(scores):
    sys.stdout.close()
    return right(scores)


def ruins_its_input(scores):
    scores.dtype = "S8"
    return np.ones(2)


HOSTILE = {
    "an exception of its own kind": raises_odd,
    "an object that raises": Hostile(),
    "an async function": asynchronous,
    "changes the dtype of its input": ruins_its_input,
    "returns an object that raises": lambda s: Hostile(),
    "returns more than fits into memory": lambda s: np.broadcast_to(0.0, (10**6, 10**6)),
    "returns huge numbers": lambda s: np.full((5, 3), 1e308),
    "returns a function": lambda s: raises_odd,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_nothing_escapes_from_a_check(kind, capsys):
    with np.errstate(all="raise"):
        space = notebook(softmax=HOSTILE[kind])
    assert space["verdict"].status == "not yet" and space["softmax"] is SOFTMAX.solution
    assert "at 0x" not in space["verdict"].text
    assert capsys.readouterr().err == ""
    assert notebook(softmax=closes_stdout)["verdict"].status == "right"


@pytest.mark.parametrize(
    "names, status, text",
    [
        ({}, "not yet", "There is no such name: run the cell above. If it shows an error, mend that first."),
        ({"softmax": softmax}, "not yet", "`softmax` is a class; expected a function, `def softmax(...)`."),
        ({"softmax": np.ones(3)}, "not yet", "`softmax` is a ndarray; expected a function"),
        ({"softmax": None}, "not yet", "`softmax` is a NoneType; expected a function"),
        ({"softmax": SOFTMAX.reference}, "not yours", "This is the course's own function, not yours."),
        ({"softmax": SOFTMAX.solution}, "not yours", "Run the cell with your `def` again, then this one."),
        ({"softmax": functools.partial(SOFTMAX.reference, axis=-1)}, "not yours", "not yours"),
        (
            {"softmax": lambda scores: ...},
            "not started",
            "It still returns `...`. Write it in the cell above, run that cell, then this one.",
        ),
        ({"softmax": lambda scores: right(scores)}, "right", "It is a lambda, which works as well as a def."),
    ],
)
def test_each_gets_its_own_true_sentence(names, status, text, capsys):
    space = notebook(**names)
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.startswith("softmax: ") and text in printed
    assert space["verdict"].status == status
    assert space["softmax"] is (names["softmax"] if status == "right" else SOFTMAX.solution)


def test_not_implemented_means_not_started():
    def stub(scores):
        raise NotImplementedError

    assert judge(SOFTMAX, stub).status == "not started"


# nbgrader -------------------------------------------------------------------------------------------------------------


def test_under_nbgrader_a_wrong_answer_raises_after_the_solution_is_bound(monkeypatch, capsys):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    for names in ({}, {"softmax": lambda s: s}, {"softmax": SOFTMAX.reference}, {"softmax": lambda s: ...}):
        space = {"check": Checker("02", [SOFTMAX]), **names}
        with pytest.raises(AssertionError, match=r"^softmax: "):
            exec('softmax = check("softmax")', space)
        assert space["softmax"] is SOFTMAX.solution
    assert notebook(softmax=right)["softmax"] is right
    assert capsys.readouterr().err == ""


# The rest of what a learner meets -------------------------------------------------------------------------------------


def test_solution_case_and_progress(capsys):
    check = Checker("02", list(lesson_02.check.exercises.values()))
    space = {"check": check, "softmax": lambda s: np.zeros(s.shape), "attention_scores": lambda query, key: ...}
    exec('softmax = check("softmax")\nattention_scores = check("attention_scores")', space)
    capsys.readouterr()
    check.solution("softmax")
    assert capsys.readouterr().out.startswith("def softmax(scores):\n")
    (scores,) = check.case("softmax")
    np.testing.assert_array_equal(scores, check.verdicts["softmax"].case.args[0])
    scores += 1  # a copy: the course's own stays as it is
    assert not np.array_equal(scores, check.case("softmax")[0])
    assert len(check.case("query_matrix")) == 1  # never checked: the first case
    check.progress()
    assert capsys.readouterr().out == (
        "Lesson 02: 0 of 4 right.\n  not yet      softmax\n  not started  attention_scores\n"
        "  not checked  scaled_dot_product_attention\n  not checked  query_matrix\n"
    )
    with pytest.raises(ValueError, match="no exercise 'sofmax' in lesson 02. Try one of: softmax, attention_scores"):
        check("sofmax")


# Booleans, and results of one dtype -----------------------------------------------------------------------------------

MASK = Exercise(
    "mask",
    lambda lengths: lengths > 0,
    lambda lengths: lengths > 0,
    lambda rng: [Case("by hand", (np.array([0, 2]),), np.array([False, True]))],
    [Mistake("inverted", lambda lengths: lengths == 0, "The other way round.")],
)
CAST = Exercise(
    "cast",
    lambda mask, dtype: mask.astype(dtype),
    lambda mask, dtype: mask.astype(dtype),
    lambda rng: [Case("by hand", (np.array([True]), dtype)) for dtype in (np.float64, np.float32, np.float16)],
    [Mistake("always float32", lambda mask, dtype: mask.astype(np.float32), "Use dtype.")],
)


def test_where_booleans_are_expected_numbers_are_of_the_wrong_type():
    assert judge(MASK, lambda lengths: [length > 0 for length in lengths.tolist()]).status == "right"
    for number in (int, float):
        verdict = judge(MASK, lambda lengths, number=number: (lengths > 0).astype(number))
        assert f"of {np.dtype(number)}; expected a plain NumPy array of bool." in verdict.text
    verdict = judge(MASK, lambda lengths: (lengths == 0).astype(int))
    assert verdict.mistakes == tuple(MASK.mistakes)
    assert "yours:    [1, 0]" in verdict.text and "expected: [False, True]" in verdict.text


def test_where_a_narrow_dtype_is_expected_another_is_of_the_wrong_type():
    verdict = judge(CAST, lambda mask, dtype: mask.astype(float))
    assert not verdict.mistakes and "of float64; expected a plain NumPy array of float32." in verdict.text
    assert "dtype = np.float32" in verdict.text and "mask = np.array([True])" in verdict.text
    assert judge(CAST, CAST.mistakes[0].wrong).mistakes == tuple(CAST.mistakes)


def test_arguments_that_are_no_arrays_are_seen_to_be_changed_or_not():
    def change(flag, words, values):
        words.append("more")
        return np.asarray(values[1])

    case = Case("mixed", (None, ["a"], (1.0, np.array([np.nan]))))
    assert run(lambda flag, words, values: 0.0, case).changed == []
    assert run(change, case).changed == [1]


# Strings, lists and dicts ---------------------------------------------------------------------------------------------


def words_of(text):
    return text.split()


def ids_of(words):
    return {word: number for number, word in enumerate(words)}


WORDS = Exercise(
    "words_of",
    words_of,
    words_of,
    lambda rng: [Case("two", ("a b",), ["a", "b"]), Case("three", ("那 b c",)), Case("none", ("",), [])],
    [
        Mistake("one string", lambda text: text, "Cut it."),
        Mistake("sorted", lambda text: sorted(text.split()), "Keep."),
    ],
)
IDS = Exercise(
    "ids_of",
    ids_of,
    ids_of,
    lambda rng: [Case("two", (["a", "b"],), {"a": 0, "b": 1}), Case("three", (["c", "a", "b"],))],
    [Mistake("from 1", lambda words: {word: number for number, word in enumerate(words, 1)}, "Begin with 0.")],
)


@pytest.mark.parametrize(
    "answer",
    [lambda t: tuple(t.split()), lambda t: np.array(t.split(), dtype=object), lambda t: [*map(np.str_, t.split())]],
)
def test_a_list_of_strings_is_right_in_other_wrappings(answer):
    verdict = judge(WORDS, answer)
    assert verdict.status == "right", verdict.text
    assert "as an array" not in verdict.text and not verdict.as_list


def test_a_dict_is_right_in_any_order_and_of_any_kind():
    def backwards(words):
        return collections.OrderedDict(reversed([*ids_of(words).items()]))

    for answer in (backwards, lambda words: {word: np.int64(i) for i, word in enumerate(words)}):
        verdict = judge(IDS, answer)
        assert verdict.status == "right", verdict.text


@pytest.mark.parametrize(
    "judged, answer, told",
    [
        (WORDS, lambda t: set(t.split()), "It returns a set; expected a list of str."),
        (WORDS, lambda t: iter(t.split()), "expected a list of str."),
        (WORDS, lambda t: [1, 2], "It returns a list of int; expected a list of str."),
        (WORDS, lambda t: ["a", None], "It returns a list of NoneType and str; expected a list of str."),
        (WORDS, lambda t: t.split()[:1], "The list has 1 of what should be 2 items."),
        (WORDS, lambda t: [*t.split()[:-1], "x"], "Item 1, counted from 0, is 'x'; expected 'b'."),
        (WORDS, lambda t: t, "It returns a str; expected a list of str.\nThis is what comes of: one string. Cut it."),
        (WORDS, lambda t: "那".encode(), "It returns a bytes; expected a list of str."),
        (WORDS, lambda t: None, "It returns nothing (None)"),
        (WORDS, words_of.__class__, "raises TypeError"),
        (IDS, lambda w: list(w), "It returns a list of str; expected a dict from str to int."),
        (
            IDS,
            lambda w: {k: float(v) for k, v in ids_of(w).items()},
            "a dict from str to float; expected a dict from str to int.",
        ),
        (
            IDS,
            lambda w: {k: v > 0 for k, v in ids_of(w).items()},
            "a dict from str to bool; expected a dict from str to int.",
        ),
        (
            IDS,
            lambda w: {v: k for k, v in ids_of(w).items()},
            "a dict from int to str; expected a dict from str to int.",
        ),
        (IDS, lambda w: {"a": 0}, "'b' is missing."),
        (IDS, lambda w: ids_of(w) | {"<pad>": 9}, "'<pad>' should not be there."),
        (
            IDS,
            lambda w: {k: v + 1 for k, v in ids_of(w).items()},
            "'a' has 1; expected 0.\nThis is what comes of: from 1.",
        ),
        (
            IDS,
            lambda w: w.sort(reverse=True) or {"a": 0, "b": 1},
            "The result is right, but it changes its input `w`",
        ),
        (
            IDS,
            lambda w: {np.float64(0.5): []},
            "It returns a dict from float to list; expected a dict from str to int.",
        ),
    ],
)
def test_what_is_wrong_with_strings_lists_and_dicts_is_told(judged, answer, told):
    verdict = judge(judged, answer)
    assert verdict.status == "not yet" and told in verdict.text, verdict.text
    assert not re.search(r"0x[0-9a-f]{6}", verdict.text)


def test_strings_are_shown_so_that_they_can_be_copied():
    text = judge(WORDS, lambda text: sorted(text.split(), reverse=True)).text
    assert "  text = 'a b'\n  yours:    ['b', 'a']\n  expected: ['a', 'b']" in text


def test_true_is_not_the_number_1_in_a_list_or_a_dict():
    ones = Exercise("ones", lambda n: [1] * n, lambda n: [1] * n, lambda rng: [Case("two", (2,), [1, 1])], [])
    assert judge(ones, lambda n: [1] * n).status == "right"
    assert "a list of bool; expected a list of int" in judge(ones, lambda n: [True] * n).text


def test_an_exercise_may_return_arrays_of_unequal_length():
    """A mistake and an answer that are one array each are compared, though the expected tuple makes no array."""
    both = Exercise(
        "both",
        lambda x: (x, x[:1]),
        lambda x: (x, x[:1]),
        lambda rng: [Case("two", (np.array([1.0, 2.0]),)), Case("three", (np.array([1.0, 2.0, 3.0]),))],
        [Mistake("the first alone", lambda x: x, "Return two.")],
    )
    assert "This is what comes of: the first alone." in judge(both, lambda x: x.copy()).text
