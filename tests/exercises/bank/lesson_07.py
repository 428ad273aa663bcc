"""How mistakes of lesson 07 are made on the inputs of the bank."""

import numpy as np

from attnlib.numpy import softmax as right_softmax


def softmax_backward(wrong, space, entry):
    if entry["id"] == "bw05":  # a weighted mean without exp: weights k / Σk, and the gradient of k, not of log k
        k, v = space["k"].detach().numpy(), space["v"].numpy()
        return wrong(k / k.sum(), v) / k
    if entry["id"] == "bw06":
        return wrong(right_softmax(space["x"]), space["g"])
    return wrong(space["P"], space["dP"])


def attention_backward(wrong, space, entry):
    """The bank gives weights or their gradients; here they are reached from inputs that produce them."""
    if entry["id"] == "bw02":
        query, key, d_scores = space["Q"], space["K"], space["dS"]
        weights = right_softmax(query @ key.T / 2)[0]
        difference = d_scores[0, 0] / (weights[0] * weights[1])  # of the values, so that grad_scores is dS
        return wrong(query, key, np.array([[difference], [0.0]]), np.array([[1.0]]))[1]
    if entry["id"] == "bw03":
        with np.errstate(divide="ignore"):
            query = np.maximum(np.log(space["P"]), -1e3) * np.sqrt(2)  # with unit vectors as keys the weights are P
        return wrong(query, np.eye(2), np.zeros((2, 1)), space["dO"])[2]
    return wrong(np.zeros((1, 2)), np.zeros((2, 2)), np.zeros((2, 1)), space["dO"], space["keep"])[2]


ADAPTERS = {"softmax_backward": softmax_backward, "attention_backward": attention_backward}
NOT_IN_AN_EXERCISE = {}
