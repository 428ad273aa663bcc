"""The checks that all modules share."""

import math
from pathlib import Path

import numpy as np
import pytest

import attnlib.numpy
from attnlib.numpy import attention, checks


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), np.array(3)])
def test_a_whole_number_comes_back_as_an_int(value):
    assert type(checks.check_whole("n", value, 0)) is int and checks.check_whole("n", value, 3) == 3


@pytest.mark.parametrize("value", [True, np.True_, 2.0, 2.5, "2", None, np.ones(2), np.nan, 1j])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(ValueError, match=r"^n=.*; expected a whole number of at least 1\. Try n=1\."):
        checks.check_whole("n", value, 1)


def test_a_number_that_is_too_small_is_refused_and_without_a_bound_none_is():
    assert checks.check_whole("k", -5) == -5
    with pytest.raises(ValueError, match=r"n=-1; expected a whole number of at least 0\. Try n=1\."):
        checks.check_whole("n", -1, 0)


def test_the_scale_is_one_over_the_root_of_the_width_or_what_is_given():
    assert checks.check_scale(None, 4) == 0.5 and checks.check_scale(None, 0) == 1
    assert checks.check_scale(np.float32(0.25), 4) == 0.25 and type(checks.check_scale(2, 4)) is float
    assert math.isclose(checks.check_scale(np.array(0.1), 4), 0.1)
    for wrong in ("2", 1j, np.ones(1), True):
        with pytest.raises(ValueError, match="expected one real number, or None for 1 / √d_k"):
            checks.check_scale(wrong, 4)


def test_a_masked_array_is_refused_and_others_are_arrays_after():
    assert checks.check_plain("x", [1, 2]).tolist() == [1, 2]
    with pytest.raises(ValueError, match="x is a NumPy masked array, whose mask would be lost here"):
        checks.check_plain("x", np.ma.array([1, 2]))


def test_the_checks_are_found_where_they_were_and_no_module_is_long():
    for name in ("check_floats", "check_shapes", "check_mask"):
        assert getattr(attention, name) is getattr(checks, name)
    for path in Path(attnlib.numpy.__file__).parent.glob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) < 250, path.name
