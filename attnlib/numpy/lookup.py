"""From a mean over a dictionary to a soft lookup (lessons 00 and 01)."""

import numpy as np

from attnlib.numpy.attention import softmax
from attnlib.numpy.checks import check_floats


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
    (values,) = check_floats(values=values)
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
        A copy of one row of values. Of several nearest keys, the first counts.

    Raises
    ------
    ValueError
        If dtypes or shapes do not fit, or there are no keys.
    """
    query, keys, values = check_lookup(query, keys, values)
    return values[np.argmax(keys @ query)].copy()


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
        If dtypes or shapes do not fit, or there are no keys.

    Notes
    -----
    Nadaraya, *On Estimating Regression* (1964), and Watson, *Smooth Regression Analysis* (1964), weighted values by
    nearness of their keys; with exp of the dot product this is Graves, Wayne, Danihelka, *Neural Turing Machines* (2014),
    equation 5, without their division by lengths.
    """
    query, keys, values = check_lookup(query, keys, values)
    weights = softmax(float(sharpness) * (keys @ query))  # [n]
    return weights @ values


def check_lookup(query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> list[np.ndarray]:
    """Return query [d], keys [n, d] and values [n, d_v] as arrays that fit, or raise a ValueError that says why not."""
    query, keys, values = check_floats(query=query, keys=keys, values=values)
    if query.ndim != 1 or keys.ndim != 2 or keys.shape[1] != len(query):
        raise ValueError(
            f"query is {list(query.shape)} and keys are {list(keys.shape)}; expected [d] and [n, d] with the same d. "
            f"Try keys.T if the keys are columns."
        )
    if values.ndim != 2 or len(keys) != len(values) or not len(keys):
        raise ValueError(
            f"keys are {list(keys.shape)} and values are {list(values.shape)}; expected [n, d] and [n, d_v], one value "
            f"for each key and at least one. Try values[:, None] for values of one number."
        )
    return [query, keys, values]


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
        If n or reach is not a whole number, or below 1.
    """
    if n != int(n) or reach != int(reach) or n < 1 or reach < 1:
        raise ValueError(f"n={n} and reach={reach}; expected whole numbers from 1 on. Try reach=1, a recurrence.")
    return -(-(int(n) - 1) // int(reach))
