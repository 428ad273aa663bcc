"""How mistakes of lesson 01 are made on the inputs of the bank."""

import numpy as np


def soft_lookup(wrong, space, entry):
    scores = space["S"]
    return wrong(np.ones(1), scores[:, None], np.eye(len(scores)), 1.0)


ADAPTERS = {"soft_lookup": soft_lookup}
