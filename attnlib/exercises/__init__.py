"""Exercises whose engine is the mistakes that people really make.

``core`` is what an exercise is made of and what a learner meets; ``compare`` runs functions and compares results;
``wording`` puts a verdict into words; ``modules`` hands tensors to functions and weights to layers, from lesson 08 on;
``lesson_NN`` holds the exercises of one lesson.
"""

import importlib
import importlib.util
from pathlib import Path


def all_exercises() -> dict:
    """Every exercise of every lesson, as ``{"02-softmax": Exercise, …}``: without PyTorch, those of Part I.

    Imports all lessons' modules.
    """
    from attnlib.exercises.core import Checker

    found, has_torch = {}, importlib.util.find_spec("torch") is not None
    for file in sorted(Path(__file__).parent.glob("lesson_*.py")):
        if file.stem > "lesson_07" and not has_torch:
            continue
        module = importlib.import_module(f"{__name__}.{file.stem}")
        for checker in vars(module).values():
            if isinstance(checker, Checker):
                found |= {f"{checker.lesson}-{name}": exercise for name, exercise in checker.exercises.items()}
    return found
