import os

import numpy as np
import pytest

os.environ.pop("NBGRADER_EXECUTION", None)  # checks behave as for a learner, but where a test sets it


@pytest.fixture
def rng():
    return np.random.default_rng(0)
