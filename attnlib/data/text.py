"""From text to numbers, in English, Chinese, and texts that mix them: tokens, vocabulary, ids, batches (lesson 10).

Where words end is a question with many answers. The rules here are a small part of Unicode Standard Annex #29, *Unicode Text
Segmentation*, which leaves Chinese words to dictionaries. Those of ``jieba``, ``pkuseg`` or ``HanLP`` would make words such as
动物 of Chinese characters; here each character is a token of its own, as in BERT (Devlin, Chang, Lee, Toutanova, 2019). Models
of today mostly learn pieces of words from data (Sennrich, Haddow, Birch, *Neural Machine Translation of Rare Words with
Subword Units*, 2016).
"""

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

PADDING, UNKNOWN = "<pad>", "<unk>"
APOSTROPHES, JOINER, ZERO_WIDTH_SPACE = "'’", "\u200d", "\u200b"


def tokenize(text: str) -> list[str]:
    """Cut a text into words, punctuation, and single Chinese characters.

    Parameters
    ----------
    text : str
        Brought into the form NFC first, so that é is one character however it was typed. Nothing else is changed: upper
        case stays, and so does full-width punctuation.

    Returns
    -------
    tokens : list of str
        None is empty or holds a space. By Unicode category:

        * Chinese characters and Japanese kana, each by itself;
        * letters (L), digits (N) and marks (M) in a row, with an apostrophe between letters (*didn't*) and a point or
          comma between digits (*3.14*): a word;
        * any other visible character, punctuation (P) or symbol (S), each by itself; an emoji made of several characters
          stays whole, a flag too.

        Spaces (Z) and control characters (C) end a token and are left out; so are invisible format characters (Cf),
        which end none but for the zero-width space.
    """
    if not isinstance(text, str):
        raise ValueError(
            f"text is {type(text).__name__}; expected one string. For many: [tokenize(text) for text in texts]."
        )
    text = "".join(
        char
        for char in unicodedata.normalize("NFC", text)
        if kind(char) != "format" or char in JOINER + ZERO_WIDTH_SPACE
    )
    tokens: list[str] = []
    before = "space"  # kind of the character before
    for place, char in enumerate(text):
        now, around = kind(char), (before, kind(text[place + 1]) if place + 1 < len(text) else "space")
        last = tokens[-1] if tokens and before != "space" else ""
        if char in APOSTROPHES and around == ("letter", "letter"):
            now = "letter"
        elif char in ".," and around == ("digit", "digit"):
            now = "digit"
        if now in ("mark", "format") and last:
            tokens[-1] += char  # belongs to what it stands on, whose kind stays
            now = before
        elif within_word(before, now) or last.endswith(JOINER) or (now == "flag" == before and len(last) == 1):
            tokens[-1] += char
        elif now not in ("space", "format"):
            tokens.append(char)
            now = "other" if now == "mark" else now
        before = now
    return [token.strip(JOINER) or token for token in tokens]


def within_word(before: str, now: str) -> bool:
    """Whether two characters of these kinds stand in one word."""
    return before in ("letter", "digit") and now in ("letter", "digit")


def kind(char: str) -> str:
    """What a character is to ``tokenize``: alone, letter, digit, mark, flag, space, format or other."""
    category, code = unicodedata.category(char), ord(char)
    if category == "Cf":
        return "space" if char == ZERO_WIDTH_SPACE else "format"
    if category[0] in "ZC":
        return "space"
    if category[0] == "M" or 0x1F3FB <= code <= 0x1F3FF:  # colours of skin modify the emoji before
        return "mark"
    if 0x1F1E6 <= code <= 0x1F1FF:
        return "flag"
    if category[0] == "N" and code != 0x3007:  # 〇 is a Chinese character by use
        return "digit"
    if category[0] == "L" or code == 0x3007:
        return (
            "alone"
            if unicodedata.name(char, "").startswith(("CJK", "HIRAGANA", "KATAKANA", "IDEOGRAPHIC"))
            else "letter"
        )
    return "other"


def build_vocabulary(
    sentences: Sequence[Sequence[str]], min_count: int = 1, max_size: int | None = None
) -> dict[str, int]:
    """Give each token a number: 0 for padding, 1 for unknown tokens, then the tokens, the most frequent first.

    Parameters
    ----------
    sentences : sequence of lists of tokens
        As ``tokenize`` makes them; those of the training data alone.
    min_count : int
        Tokens that occur less often get no number of their own.
    max_size : int, optional
        At most so many numbers, those of padding and unknown included.

    Returns
    -------
    vocabulary : dict, token → id
        Ids 0 to len(vocabulary) − 1 without a gap. Equally frequent tokens stand in the order of their characters'
        numbers, so the order of the sentences does not matter. Tokens of the text that read ``<pad>`` or ``<unk>`` get no
        further number.
    """
    if isinstance(sentences, str) or any(isinstance(sentence, str) for sentence in sentences):
        raise ValueError("sentences holds a string; expected lists of tokens. Try [tokenize(text) for text in texts].")
    if max_size is not None and max_size < 2:
        raise ValueError(f"max_size={max_size}; expected at least 2, for {PADDING} and {UNKNOWN}. Try a larger one.")
    counts = Counter(token for sentence in sentences for token in sentence)
    kept = [token for token in counts if counts[token] >= min_count and token not in (PADDING, UNKNOWN)]
    kept.sort(key=lambda token: (-counts[token], token))
    return {token: number for number, token in enumerate([PADDING, UNKNOWN, *kept][:max_size])}


def encode(tokens: Sequence[str], vocabulary: Mapping[str, int]) -> list[int]:
    """Replace each token by its id, and tokens outside the vocabulary by that of ``<unk>``.

    Parameters
    ----------
    tokens : list of n str
    vocabulary : dict, token → id

    Returns
    -------
    ids : list of n int
    """
    if isinstance(tokens, str):
        raise ValueError(
            f"tokens is the string {tokens[:20]!r}; expected a list. Try encode(tokenize(text), vocabulary)."
        )
    if UNKNOWN not in vocabulary:
        raise ValueError(f"the vocabulary has no {UNKNOWN}; expected an id for unknown tokens. Try build_vocabulary.")
    return [vocabulary.get(token, vocabulary[UNKNOWN]) for token in tokens]


def decode(ids: Sequence[int], vocabulary: Mapping[str, int]) -> list[str]:
    """Replace each id by its token; padding and unknown become ``<pad>`` and ``<unk>``.

    Parameters
    ----------
    ids : n whole numbers
        A list, an array or a tensor [n].
    vocabulary : dict, token → id

    Returns
    -------
    tokens : list of n str
        What was unknown is lost: only for known tokens is this the way back.
    """
    token_of = {number: token for token, number in vocabulary.items()}
    numbers = [int(number) for number in ids]
    if strangers := [number for number in numbers if number not in token_of]:
        raise ValueError(
            f"id {strangers[0]} is not in the vocabulary of {len(token_of)} ids. Try the one it was made with."
        )
    return [token_of[number] for number in numbers]


def collate(sequences: Sequence[Sequence[int]], padding_id: int = 0) -> "tuple[torch.Tensor, torch.Tensor]":
    """Put sequences of ids of any length into one tensor, filled up with padding at their ends.

    Parameters
    ----------
    sequences : list of lists of int
    padding_id : int

    Returns
    -------
    ids : tensor [batch, n], int64
        n is the length of the longest.
    lengths : tensor [batch], int64
        How long each was: the only thing from which a padding mask may be made.

    See Also
    --------
    torch.nn.utils.rnn.pad_sequence : the same for tensors; with ``batch_first=True``, since its default is [n, batch].
    """
    import torch  # here, so that the rest of the module needs no PyTorch

    if len(sequences) == 0:
        raise ValueError("no sequences; expected at least one. Try to leave empty batches out.")
    lengths = [len(sequence) for sequence in sequences]
    rows = [[*sequence, *[padding_id] * (max(lengths) - len(sequence))] for sequence in sequences]
    ids = torch.tensor(rows, dtype=torch.int64).reshape(len(rows), max(lengths))  # [batch, n], also for n = 0
    return ids, torch.tensor(lengths, dtype=torch.int64)
