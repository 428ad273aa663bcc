"""How mistakes of lesson 02 are made on the inputs of the bank."""

import numpy as np

from attnlib.numpy import softmax as right_softmax


def softmax(wrong, space, entry):
    scores = np.asarray(space["S"])
    return wrong(scores[..., 0] if entry["id"] == "sm07" else scores)


def attention_scores(wrong, space, entry):
    if entry["id"] in ("at02", "mh06"):
        return wrong(space["Q"], space["K"]) * np.sqrt(2)  # the bank leaves √d_k out here
    return right_softmax(wrong(query_of(space), space["K"]))


def scaled_dot_product_attention(wrong, space, entry):
    if entry["topic"] == "scaling":
        return wrong(query_of(space), space["K"], np.eye(len(space["K"])))  # with unit vectors as values: the weights
    return None  # softmax or values alone cannot be told apart inside a whole attention


def query_of(space):
    return np.atleast_2d(space.get("Q", space.get("q")))


ADAPTERS = {
    "softmax": softmax,
    "attention_scores": attention_scores,
    "scaled_dot_product_attention": scaled_dot_product_attention,
}
NOT_IN_AN_EXERCISE = {}  # id of the bank: why it cannot be made in an exercise, and where it is shown instead
