"""How mistakes of lesson 03 are made on the inputs of the bank."""

import numpy as np


def temperature_softmax(wrong, space, entry):
    query = np.ravel(space.get("Q", space.get("q")))
    return wrong(space["K"] @ query, np.sqrt(len(query)))  # √d_k is the temperature of attention


ADAPTERS = {"temperature_softmax": temperature_softmax}
