"""How mistakes of lesson 06 are made on the inputs of the bank."""

import numpy as np


def places(pairs):
    """The places that rows of one pair (sine, cosine) stand for, below 6, so that the hand has not gone round."""
    angles = np.arctan2(pairs[..., 0], pairs[..., 1]) % (2 * np.pi)
    return np.round(angles).astype(int) % 6


def sinusoidal_positions(wrong, space, entry):
    id_, d = entry["id"], space.get("d", 4)
    if id_ == "pe17":
        return places(wrong(space["T"], 2, 10_000.0))
    if id_ == "pe08":
        return np.asarray(space["x"]) + np.asarray(space["pe"])[:, places(wrong(space["x"].shape[1], 2, 10_000.0))]
    if id_ == "pe09":
        return wrong(2, 4, 10_000.0)[:, ::2]  # both columns of a pair have the same angle here, the bank has one
    positions = wrong(2, d, 10_000.0)
    if id_ == "pe05":
        return np.arcsin(positions[1, [0, 4]])  # the frequencies of pairs 0 and 2
    if id_ == "pe06":
        return np.arcsin(wrong(2, 8, 10_000.0)[1, [2, 4]])  # those for 2i / d = .25 and .5
    if id_ == "pe15":
        row = positions[1]
        return 1 / np.stack([np.arcsin(row[0::2]), np.arccos(row[1::2])], axis=-1).ravel()  # what places are divided by
    return positions if id_ == "pe01" else positions[1]


def rotary(wrong, space, entry):
    if entry["id"] == "pe21":
        x = np.asarray(space["x"]).swapaxes(1, 2)  # the bank has [batch, places, heads, d]
        return wrong(x, space["ang"], 10_000.0, True)[0, 0]
    if entry["id"] == "pe12":
        return wrong(np.ones((1, 3, 2)), np.arange(3.0) + 1, 10_000.0, True)  # one row fewer than is needed
    if entry["id"] == "pe14":
        turned = wrong(np.array([[1.0, 0.0], [1.0, 0.0]]), space["pos"], 10_000.0, True)
        return np.diff(np.arctan2(turned[:, 1], turned[:, 0]))
    ones = np.tile([1.0, 0.0], (*space["x"].shape[:2], 1))
    turned = wrong(ones, np.arange(float(ones.shape[1])), 10_000.0, True)
    return np.asarray(space["x"]) + np.asarray(space["pe"])[places(turned[..., ::-1])]  # turned to (cos, sin)


def alibi_bias(wrong, space, entry):
    return -wrong(space["n"], 2, 2)[:2, 1, 0]


ADAPTERS = {"sinusoidal_positions": sinusoidal_positions, "rotary": rotary, "alibi_bias": alibi_bias}
NOT_IN_AN_EXERCISE = {
    "pe10": "Where to add positions is no function of its own: lesson 06 shows it in what goes wrong in the wild.",
    "pe11": "Shown in lesson 08, parameter or buffer: a plain attribute is not saved, and stays behind when a model moves.",
    "pe13": "Needs embeddings and positions together: lesson 06 shows it in what goes wrong in the wild.",
    "pe18": "No positions at all: the task that fails, with which lesson 06 begins (permutation test).",
    "pe20": "Needs two calls that disagree: lesson 06 shows it in what goes wrong in the wild.",
    "pe23": "A missing import: the check reports any NameError in one line, with the learner's own line number.",
    "pe24": "Shown in lesson 08, parameter or buffer: a plain tensor is not among the parameters, so it is not trained.",
    "pe25": "Where to add positions is no function of its own: lesson 06 shows it in what goes wrong in the wild.",
}
