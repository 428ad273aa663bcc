"""Data of the course: made here, shipped with the package, or installed by pip. Nothing is downloaded."""

from importlib.resources import files

import numpy as np


def recorded(lesson: str) -> dict[str, np.ndarray]:
    """Numbers that PyTorch produced for a lesson, so that lessons without PyTorch can compare with them.

    Parameters
    ----------
    lesson : str
        For example ``"lesson_02"``. ``tools/record.py`` made the file, and a test makes it again where PyTorch is.

    Returns
    -------
    arrays : dict of arrays by name
    """
    with (files("attnlib.data") / "recorded" / f"{lesson}.npz").open("rb") as file, np.load(file) as arrays:
        return dict(arrays)
