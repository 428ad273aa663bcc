"""Every real mistake of the bank is diagnosed by an exercise, or the reason why not is given.

The folder bank holds the mistakes of a topic as YAML, and for each lesson, how its exercises meet the bank's inputs.
"""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest
import yaml

from attnlib.exercises import all_exercises

torch = pytest.importorskip("torch")
FOLDER = Path(__file__).with_name("bank")
BANK = {
    entry["id"]: entry
    for file in sorted(FOLDER.glob("*.yaml"))
    for entry in yaml.safe_load(file.read_text(encoding="utf-8"))
}
LESSONS = [runpy.run_path(str(file)) for file in sorted(FOLDER.glob("lesson_*.py"))]
ADAPTERS = {name: adapter for lesson in LESSONS for name, adapter in lesson["ADAPTERS"].items()}
EXCUSED = {id_: reason for lesson in LESSONS for id_, reason in lesson.get("NOT_IN_AN_EXERCISE", {}).items()}
DIAGNOSED = {
    (id_, key, mistake.name): mistake
    for key, exercise in all_exercises().items()
    for mistake in exercise.mistakes
    for id_ in mistake.bank
}


def test_every_mistake_is_diagnosed_or_excused():
    named = {id_ for id_, *_ in DIAGNOSED}
    assert named <= set(BANK)
    assert set(BANK) - named == set(EXCUSED)
    assert all(len(reason) > 20 for reason in EXCUSED.values())


def softmax(scores, axis=-1):
    """As public code has it: a row of −∞ becomes NaN."""
    exponentials = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def same(ours, theirs):
    """Equal numbers; a leading or trailing axis of length 1 does not count."""
    ours, theirs = np.squeeze(np.asarray(ours, dtype=float)), np.squeeze(np.asarray(theirs, dtype=float))
    return ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=1e-4, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("key", DIAGNOSED, ids=" ".join)
def test_our_mistake_does_what_the_public_one_did(key):
    id_, exercise, _ = key
    entry, mistake = BANK[id_], DIAGNOSED[key]
    space = {"np": np, "math": math, "torch": torch, "nn": torch.nn, "F": torch.nn.functional, "softmax": softmax}
    with np.errstate(all="ignore"):
        exec(entry["input"], space)
        try:
            exec(entry["wrong_code"], space)
        except Exception as error:  # some mistakes are errors: ours then is one too
            space["out"] = error
        ours = [attempt(ADAPTERS[exercise.split("-")[1]], way, space, entry) for way in (mistake.wrong, *mistake.also)]
    if ours[0] is None:
        assert entry["topic"] in ("softmax", "attention core"), "only composed into a whole: no number to compare"
    elif isinstance(space["out"], Exception):
        assert isinstance(ours[0], Exception)
    else:
        assert same(space["out"], entry["wrong_value"]) and not same(space["out"], entry["right_value"])
        assert any(same(way, space["out"]) for way in ours if not isinstance(way, Exception))


def attempt(adapter, way, space, entry):
    try:
        return adapter(way, space, entry)
    except Exception as error:
        return error
