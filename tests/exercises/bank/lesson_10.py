"""Mistakes of the bank on figures: lesson 10 shows them, since no exercise draws."""

ADAPTERS = {}
NOT_IN_AN_EXERCISE = {  # id of the bank: why it cannot be made in an exercise, and where it is shown instead
    "vz01": "It is a default of PyTorch's MultiheadAttention; weights are never averaged over heads in attnlib (lesson 05).",
    "vz02": "Shown in lesson 10, what goes wrong in the wild: eleven words, ten bars.",
    "vz03": "A transposed map: weights_heatmap names the axes, and its sentence names the largest weight of each row.",
    "vz04": "Told in lesson 10, what goes wrong in the wild; tests/test_plots.py draws Chinese without any font for it.",
}
