"""Mistakes of the bank on figures: lesson 10 shows them, since no exercise draws."""

ADAPTERS = {}
NOT_IN_AN_EXERCISE = {  # id of the bank: why it cannot be made in an exercise, and where it is shown instead
    "vz02": "Shown in lesson 10, what goes wrong in the wild: eleven words, ten bars.",
    "vz04": "Told in lesson 10, what goes wrong in the wild; tests/test_plots.py draws Chinese without any font for it.",
}
