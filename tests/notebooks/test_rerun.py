"""`make notebooks` writes the same lessons again: a second run leaves nothing changed, and stored figures are not stale."""

import base64
import io

import numpy as np
from PIL import Image

from notebooks import execute, normalise, read, write


def pixels(picture):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB"), dtype=float)


def test_running_again_changes_nothing(lesson, tmp_path):
    copy = tmp_path / lesson.name
    copy.write_bytes(lesson.read_bytes())
    write(execute(read(copy), copy.name, lesson.parent), copy)
    first = copy.read_bytes()
    if first == lesson.read_bytes():
        return  # the stored lesson was a first run, this was the second, and `git diff` is empty
    # Another machine may draw or report a little differently. Then two runs on this one have to be equal.
    write(execute(read(copy), copy.name, lesson.parent), copy)
    same = copy.read_bytes() == first  # not in the assert, which would print both
    assert same, "a second run wrote something else"

    stored, now = read(lesson), read(copy)
    for before, after in zip(stored.cells, now.cells, strict=True):
        if "nbval-ignore-output" in before.metadata.get("tags", []):
            before.outputs = after.outputs
        for old, new in zip(before.get("outputs", []), after.get("outputs", []), strict=True):
            if "image/png" in old.get("data", {}):
                old_pixels, new_pixels = pixels(old.data.pop("image/png")), pixels(new.data.pop("image/png"))
                assert old_pixels.shape == new_pixels.shape, f"{before.id}: the stored figure is of another size"
                assert np.abs(old_pixels - new_pixels).mean() < 1, f"{before.id}: the stored figure is stale"
    for before, after in zip(stored.cells, now.cells, strict=True):
        assert before == after
    assert stored.metadata == now.metadata


def test_normalising_twice_changes_nothing_more(lesson):
    once = normalise(read(lesson), lesson.name)
    assert once == read(lesson) == normalise(once.copy(), lesson.name)
