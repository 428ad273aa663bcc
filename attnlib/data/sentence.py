"""The sentence that the whole course carries along, and its table of hand-made features (lessons 00 and 02), also in Chinese (10).

The pair of sentences is from Uszkoreit, *Transformer: A Novel Neural Network Architecture for Language Understanding*
(Google Research Blog, 2017). Pairs that differ in one word, and thereby in what *it* means, are the test of Levesque,
Davis, Morgenstern, *The Winograd Schema Challenge* (2012).
"""

import numpy as np

from attnlib.numpy import attention_scores, scaled_dot_product_attention, softmax

FEATURES = ("thing", "living", "broad", "quality", "pronoun")
TABLE = {
    "animal": (1, 1, 0, 0, 0),
    "street": (1, 0, 1, 0, 0),
    "cross": (0, 0, 1, 0, 0),
    "it": (0, 0, 0, 0, 1),
    "tired": (0, 1, 0, 1, 0),
    "wide": (0, 0, 1, 1, 0),
}
CHINESE = {"tired": "累", "wide": "宽"}


def tokens(last_word: str = "tired") -> list[str]:
    """The sentence, or its twin with another last word, as eleven words.

    Parameters
    ----------
    last_word : str
        ``"tired"`` or ``"wide"``.

    Returns
    -------
    words : list of 11 str
    """
    return f"The animal didn't cross the street because it was too {last_word}".split()


def texts(last_word: str = "tired") -> tuple[str, str]:
    """The sentence as it is written, in English and in Chinese (*that animal did not cross the street, because it …*).

    Parameters
    ----------
    last_word : str
        ``"tired"`` or ``"wide"``.

    Returns
    -------
    english, chinese : str
    """
    return " ".join(tokens(last_word)) + ".", f"那只动物没有过马路，因为它太{CHINESE[last_word]}了。"


def features(words: list[str]) -> np.ndarray:
    """Features of each word; a word outside the table has none.

    Parameters
    ----------
    words : list of n str

    Returns
    -------
    x : array [n, 5], float64
        Columns as in ``FEATURES``; 1 = has it, 0 = has it not.
    """
    return np.array([TABLE.get(word, (0,) * len(FEATURES)) for word in words], dtype=np.float64)


KEY_MATRIX = np.eye(5)[:, :3]  # [5, 3]: a key is the columns thing, living, broad


def query_matrix(strength: float) -> np.ndarray:
    """Weights, set by hand, by which living words look for a living thing and broad words for a broad one.

    Parameters
    ----------
    strength : float
        0: nobody asks for anything; 5: enough to put more than .8 of the weight on one word.

    Returns
    -------
    w_query : array [5, 3]
        Rows as in ``FEATURES``, columns thing, living, broad. ``x @ w_query`` are the queries that meet the keys
        ``x @ KEY_MATRIX``.
    """
    w_query = np.zeros((5, 3))
    w_query[FEATURES.index("living")] = [strength, strength, 0]
    w_query[FEATURES.index("broad")] = [strength, 0, strength]
    return w_query


def two_looks(x: np.ndarray, strength: float = 5.0) -> np.ndarray:
    """Weights of every word after two looks: *it* first fetches the quality, then everybody looks for their noun.

    Parameters
    ----------
    x : array [n, 5]
        Features of the words.
    strength : float
        How hard the words ask, in both looks.

    Returns
    -------
    weights : array [n, n]
        Weights of the second look; row i is what word i looks at.
    """
    pronoun, quality = FEATURES.index("pronoun"), FEATURES.index("quality")
    fetched = scaled_dot_product_attention(
        strength * x[:, [pronoun]], x[:, [quality]], x * np.isin(FEATURES, ("living", "broad"))
    )
    x = x + fetched
    return softmax(attention_scores(x @ query_matrix(strength), x @ KEY_MATRIX))
