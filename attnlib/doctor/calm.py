"""A room in which a layer may draw random numbers, print and warn, and nothing of it is left behind."""

import contextlib
import io
import random
import warnings
from collections.abc import Iterator

import numpy as np
import torch


@contextlib.contextmanager
def calm() -> Iterator[None]:
    """Leave every global state as it was, whatever mode the caller is in; what the layer prints and warns of stays inside."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    said = io.StringIO()
    try:
        with (
            torch.random.fork_rng(devices=[]),
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            torch.inference_mode(False),
            torch.enable_grad(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
