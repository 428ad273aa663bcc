"""Equal to PyTorch's own function, for all masks and dtypes; and the recorded numbers of the lessons are PyTorch's."""

import sys
from pathlib import Path

import numpy as np
import pytest

from attnlib.data import recorded
from attnlib.numpy import scaled_dot_product_attention, softmax

torch = pytest.importorskip("torch")
sys.path.append(str(Path(__file__).parents[2] / "tools"))
import record  # noqa: E402

TOLERANCE = {"float64": 1e-12, "float32": 1e-6, "float16": 2e-3}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(3, 4, 6, 5), (1, 1, 1, 1), (2, 7, 3, 8)], ids=str)
@pytest.mark.parametrize("kind", ["none", "boolean", "float", "minus infinity", "broadcast", "scale"])
def test_scaled_dot_product_attention(dtype, shape, kind):
    n_query, n_key, d_k, d_v = shape
    rng = np.random.default_rng(0)
    query, key, value = (
        rng.normal(size=(2, 3, *s)).astype(dtype) for s in ((n_query, d_k), (n_key, d_k), (n_key, d_v))
    )
    allowed = rng.random((2, 3, n_query, n_key)) < 0.6
    allowed[..., 0] = True  # PyTorch's rows with nothing to attend to have a test of their own
    mask = {
        "boolean": allowed,
        "float": rng.normal(size=(n_query, n_key)).astype(dtype),
        "minus infinity": np.where(allowed, 0, -np.inf).astype(dtype),
        "broadcast": allowed[:, :1, :1],
    }.get(kind)
    scale = 0.3 if kind == "scale" else None
    theirs = torch.nn.functional.scaled_dot_product_attention(
        *(torch.from_numpy(a).double() for a in (query, key, value)),
        attn_mask=None
        if mask is None
        else torch.from_numpy(mask)
        if mask.dtype == bool
        else torch.from_numpy(mask).double(),
        scale=scale,
    )
    ours = scaled_dot_product_attention(query, key, value, mask, scale=scale)
    assert str(ours.dtype) == dtype
    np.testing.assert_allclose(ours, theirs.numpy(), atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    same_dtype = torch.nn.functional.scaled_dot_product_attention(
        *(torch.from_numpy(a) for a in (query, key, value)),
        attn_mask=None if mask is None else torch.from_numpy(mask),
        scale=scale,
    )
    np.testing.assert_allclose(ours, same_dtype.numpy(), atol=2 * TOLERANCE[dtype], rtol=2 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_row_with_nothing_to_attend_to_is_zero_in_pytorch_too(dtype):
    q = np.ones((1, 1, 2, 4), dtype=dtype)
    mask = np.array([[True, True], [False, False]])
    theirs = torch.nn.functional.scaled_dot_product_attention(*3 * (torch.from_numpy(q),), torch.from_numpy(mask))
    ours = scaled_dot_product_attention(q, q, q, mask)
    assert not ours[..., 1, :].any()
    np.testing.assert_array_equal(ours, theirs.numpy())


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_softmax(dtype):
    scores = np.random.default_rng(0).normal(scale=20, size=(4, 5, 6)).astype(dtype)
    for axis in (0, 1, -1):
        theirs = torch.softmax(torch.from_numpy(scores), dim=axis).numpy()
        np.testing.assert_allclose(softmax(scores, axis), theirs, atol=TOLERANCE[dtype])


LONG = {
    "lesson_08",
    "lesson_09",
}  # minutes of training: tests/torch/test_recall.py and test_reversal.py repeat some runs


@pytest.mark.parametrize("lesson", [lesson for lesson in record.LESSONS if lesson not in LONG])
def test_recorded_numbers_are_made_by_the_script(lesson):
    stored, again = recorded(lesson), record.LESSONS[lesson]()
    assert stored.keys() == again.keys()
    for name, array in again.items():
        # training takes 2,000 steps, over which differences between machines grow: these results are only near
        atol = 0.4 if name.startswith("trained") else 1e-12
        np.testing.assert_allclose(stored[name], array, atol=atol, rtol=0, err_msg=name)
