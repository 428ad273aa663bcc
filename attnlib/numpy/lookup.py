"""From a mean over a dictionary to a soft lookup (lessons 00 and 01)."""

import numpy as np


def mean_of_values(values: np.ndarray) -> np.ndarray:
    """Mean of all rows: the answer of someone who looks at every word alike.

    Parameters
    ----------
    values : array [n, d]
        One vector of d numbers for each of n words.

    Returns
    -------
    mean : array [d]

    Raises
    ------
    ValueError
        If values do not have two axes, or n is 0.
    """
    values = np.asarray(values)
    if values.ndim != 2 or not len(values):
        raise ValueError(
            f"values has shape {list(values.shape)}; expected [n, d] with n at least 1. Try values[None, :]."
        )
    return values.sum(axis=0) / len(values)


def nearest_lookup(query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Value of the key that has the largest dot product with the query: a dictionary that forgives a typing error.

    Parameters
    ----------
    query : array [d]
    keys : array [n, d]
    values : array [n, d_v]

    Returns
    -------
    value : array [d_v]
        One row of values, unchanged. Of several nearest keys, the first counts.
    """
    return values[np.argmax(keys @ query)]


def soft_lookup(query: np.ndarray, keys: np.ndarray, values: np.ndarray, sharpness: float) -> np.ndarray:
    """Mean of the values, each weighted by exp(sharpness · key · query).

    Parameters
    ----------
    query : array [d]
    keys : array [n, d]
    values : array [n, d_v]
    sharpness : float
        0 gives the mean of all values; the larger, the nearer to a dictionary.

    Returns
    -------
    value : array [d_v]

    Raises
    ------
    ValueError
        If the widths of query and keys differ, or the numbers of keys and values.

    Notes
    -----
    Nadaraya, *On Estimating Regression* (1964), and Watson, *Smooth Regression Analysis* (1964), weighted values by
    nearness of their keys; with exp of the dot product this is Graves, Wayne, Danihelka, *Neural Turing Machines* (2014),
    equation 5, without their division by lengths.
    """
    query, keys, values = np.asarray(query), np.asarray(keys), np.asarray(values)
    if query.ndim != 1 or keys.ndim != 2 or keys.shape[1] != len(query):
        raise ValueError(
            f"query is {list(query.shape)} and keys are {list(keys.shape)}; expected [d] and [n, d] with the same d. "
            f"Try keys.T if the keys are columns."
        )
    if len(keys) != len(values):
        raise ValueError(f"{len(keys)} keys and {len(values)} values; expected one value for each key.")
    similarity = sharpness * (keys @ query)  # [n]
    weights = np.exp(similarity - similarity.max())
    return weights @ values / weights.sum()


def sequential_steps(n: int, reach: int) -> int:
    """Steps that must come one after another until the last of n words has heard of the first.

    In one step every word hears from the ``reach`` words before it. A recurrence has reach 1, a convolution of width w
    has reach w − 1, attention has reach n − 1.

    Parameters
    ----------
    n : int
        Number of words, at least 1.
    reach : int
        How many words back one step goes, at least 1.

    Returns
    -------
    steps : int
        ⌈(n − 1) / reach⌉. Vaswani et al., *Attention Is All You Need* (2017), table 1, gives its order of growth.

    Raises
    ------
    ValueError
        If n or reach is below 1.
    """
    if n < 1 or reach < 1:
        raise ValueError(f"n={n} and reach={reach}; expected both to be at least 1. Try reach=1, a recurrence.")
    return -(-(n - 1) // reach)
