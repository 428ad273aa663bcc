"""Exercises of lesson 00: how a check works, and the mean of all words."""

import numpy as np

from attnlib.exercises.core import Case, Checker, Exercise, Mistake
from attnlib.numpy import lookup


def values_cases(rng: np.random.Generator) -> list[Case]:
    """Values [n, d]: by hand, square, more words than numbers, more numbers than words, one word, large numbers."""
    return [
        Case("two words, by hand", (np.array([[1.0, 2.0], [3.0, 6.0]]),)),
        Case("as many words as numbers", (rng.normal(size=(3, 3)).round(1),)),
        Case("four words of two numbers", (rng.normal(size=(4, 2)).round(1),)),
        Case("two words of five numbers", (rng.normal(size=(2, 5)).round(1),)),
        Case("a single word", (np.array([[-1.5, 0.5, 2.0]]),)),
        Case("large numbers", (rng.normal(scale=1000, size=(3, 2)).round(1),)),
    ]


def total(values):
    """Add up all rows of values [n, d] into one vector [d]."""
    return values.sum(axis=0)


def mean_of_values(values):
    """Return the mean of all rows of values [n, d] as one vector [d]."""
    return values.sum(axis=0) / len(values)


def loop_mean(values):
    mean = np.zeros(values.shape[1])
    for value in values:
        mean += value / len(values)
    return mean


def by_hand(result, cases):
    """The cases with the result of the first one, which was computed by hand."""
    return lambda rng: [
        case._replace(expected=np.array(result)) if i == 0 else case for i, case in enumerate(cases(rng))
    ]


demonstration = Checker(
    "00",
    [
        Exercise(
            "total",
            reference=lambda values: values.sum(axis=0),
            solution=total,
            cases=by_hand([4.0, 8.0], values_cases),
            mistakes=[
                Mistake(
                    "everything is added up into one number",
                    lambda values: values.sum(),
                    "Which axis counts the words? Give it to `sum` as `axis=`.",
                ),
                Mistake(
                    "the mean, not the sum",
                    lambda values: values.mean(axis=0),
                    "The mean divides by the number of words; here they are only added up.",
                ),
                Mistake(
                    "every sum on the way, not only the last",
                    lambda values: np.cumsum(values, axis=0),
                    "`cumsum` keeps each step. Only the whole sum is asked for.",
                ),
                Mistake(
                    "each word is added up, instead of all words together",
                    lambda values: values.sum(axis=1),
                    "Axis 0 counts the words, axis 1 the numbers of one word: which one should disappear?",
                ),
            ],
        )
    ],
    graded=False,
)

check = Checker(
    "00",
    [
        Exercise(
            "mean_of_values",
            reference=lookup.mean_of_values,
            solution=mean_of_values,
            cases=by_hand([2.0, 4.0], values_cases),
            mistakes=[
                Mistake(
                    "the mean of each word, instead of the mean of all words",
                    lambda values: values.mean(axis=1),
                    "The result has one number for each word. Which axis counts the words, and should disappear?",
                ),
                Mistake(
                    "the mean of all numbers",
                    lambda values: values.mean(),
                    "The result is one number, but a word is a vector. Say along which axis the mean goes.",
                    also=(lambda values: values.sum() / len(values),),
                ),
                Mistake(
                    "an axis of length 1 is left",
                    lambda values: values.mean(axis=0, keepdims=True),
                    "The result should be one vector [d], not a table [1, d]. Leave `keepdims` away.",
                ),
                Mistake(
                    "the first word counts twice",
                    lambda values: (values[0] + values.sum(axis=0)) / len(values),
                    "Did you begin with `values[0]` and then add all rows? Begin with zeros.",
                ),
                Mistake(
                    "only the first word",
                    lambda values: values[0] / len(values),
                    "The loop ends after one word. Is your `return` inside it?",
                    also=(lambda values: values[0],),
                ),
                Mistake(
                    "the last word is left out",
                    lambda values: values[:-1].sum(axis=0) / len(values),
                    "`range(len(values))` already stops before n. Nothing needs to be taken off.",
                ),
                Mistake(
                    "the sum, not yet divided",
                    lambda values: values.sum(axis=0),
                    "Take two equal words: their mean should be the word itself. By what must the sum be divided?",
                ),
                Mistake(
                    "divided by how many numbers a word has",
                    lambda values: values.sum(axis=0) / values.shape[1],
                    "Right for as many words as numbers, wrong otherwise. `values.shape` is (words, numbers): which one?",
                ),
                Mistake(
                    "divided by the n of a cell above",
                    lambda values: values.sum(axis=0) / 11,
                    "The notebook still has an `n`, of another table. Inside the function use `len(values)`.",
                ),
                Mistake(
                    "divided by how many numbers there are in all",
                    lambda values: values.sum(axis=0) / values.size,
                    "`values.size` counts every number. How many words are added up?",
                ),
                Mistake(
                    "divided by one word less",
                    lambda values: values.sum(axis=0) / (len(values) - 1),
                    "With a single word you divide by 0. A mean over n words divides by n.",
                ),
                Mistake(
                    "whole-number division",
                    lambda values: values.sum(axis=0) // len(values),
                    "`//` cuts off what comes after the point; use `/`.",
                ),
                Mistake(
                    "the median",
                    lambda values: np.median(values, axis=0),
                    "The middle one of the sorted numbers is the median. The mean adds them up first.",
                ),
            ],
            accepts=[
                loop_mean,
                lambda values: np.mean(values, axis=0),
                lambda values: np.ones(len(values)) @ values / len(values),
                lambda values: [sum(column) / len(column) for column in values.T],
            ],
        )
    ],
)
