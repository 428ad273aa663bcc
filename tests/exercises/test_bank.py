"""Every real mistake of the bank is diagnosed by an exercise, or the reason why not stands here."""

import math
from pathlib import Path

import numpy as np
import pytest
import yaml

from attnlib.exercises import all_exercises
from attnlib.numpy import softmax

torch = pytest.importorskip("torch")
BANK = {
    entry["id"]: entry for entry in yaml.safe_load(Path(__file__).with_name("bank.yaml").read_text(encoding="utf-8"))
}
NOT_IN_AN_EXERCISE: dict[str, str] = {}  # id: why it cannot be made in an exercise, and where it is shown instead
DIAGNOSED = {
    (id_, key, mistake.name): mistake
    for key, exercise in all_exercises().items()
    for mistake in exercise.mistakes
    for id_ in mistake.bank
}


def test_every_mistake_is_diagnosed_or_excused():
    named = {id_ for id_, *_ in DIAGNOSED}
    assert named <= set(BANK)
    assert named | set(NOT_IN_AN_EXERCISE) == set(BANK)
    assert not named & set(NOT_IN_AN_EXERCISE)


def run_wrong_code(entry):
    space = {"np": np, "math": math, "torch": torch, "F": torch.nn.functional, "softmax": softmax}
    with np.errstate(all="ignore"):
        exec(entry["input"], space)
        exec(entry["wrong_code"], space)
    return np.asarray(space["out"]), space


def produced(entry, space, exercise, wrong):
    """What one way of making our mistake makes of the bank's own input."""
    with np.errstate(all="ignore"):
        if exercise == "softmax":
            scores = np.asarray(space["S"])
            return wrong(scores[..., 0] if entry["id"] == "sm07" else scores)
        if exercise == "soft_lookup":
            scores = space["S"]
            return wrong(np.ones(1), scores[:, None], np.eye(len(scores)), 1.0)
        if entry["topic"] == "scaling":
            query = np.atleast_2d(space.get("Q", space.get("q")))
            if exercise == "attention_scores":
                return softmax(wrong(query, space["K"])).reshape(np.shape(entry["wrong_value"]))
            weights = wrong(query, space["K"], np.eye(len(space["K"])))
            return weights.reshape(np.shape(entry["wrong_value"]))
        if entry["id"] == "at02" and exercise == "attention_scores":
            return wrong(space["Q"], space["K"]) * np.sqrt(2)
    return None


@pytest.mark.parametrize("key", DIAGNOSED, ids=" ".join)
def test_our_mistake_does_what_the_public_one_did(key):
    id_, exercise, _ = key
    entry, mistake = BANK[id_], DIAGNOSED[key]
    out, space = run_wrong_code(entry)
    np.testing.assert_allclose(out, entry["wrong_value"], rtol=1e-4, atol=1e-5)
    ours = [produced(entry, space, exercise.split("-")[1], way) for way in (mistake.wrong, *mistake.also)]
    if ours[0] is None:
        assert entry["topic"] in ("softmax", "attention core"), (
            "only composed into a whole attention: no number to compare"
        )
        return
    assert any(np.allclose(way, out, rtol=1e-4, atol=1e-6, equal_nan=True) for way in ours)
    assert not np.allclose(out, entry["right_value"])
