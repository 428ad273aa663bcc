"""Exercises of lesson 10: text cut into tokens, a vocabulary, ids, and sentences of any length in one tensor."""

import re
from collections import Counter

import numpy as np
import torch

from attnlib.data import text as course
from attnlib.exercises.core import Case, Checker, Exercise, Mistake
from attnlib.exercises.modules import on_tensors

# tokenize -------------------------------------------------------------------------------------------------------------


def tokenize(text):
    """Cut a text into words, punctuation, and single Chinese characters, without the spaces."""
    import re

    letter = r"[^\W\d_\u4e00-\u9fff]"  # letters that are not Chinese
    word = rf"(?:{letter}|\d|(?<={letter})['’](?={letter}))+"
    return re.findall(rf"[\u4e00-\u9fff]|{word}|[^\w\s]|_", text)


NOUNS = "animal dog cat bird horse teacher".split()
CHINESE = "动物 小狗 花猫 鸟 老师 孩子".split()


def tokenize_cases(rng):
    nouns, chinese = rng.permutation(NOUNS), rng.permutation(CHINESE)
    return [
        Case("two words, by hand", ("the cat",), ["the", "cat"]),
        Case("two Chinese characters, by hand", ("动物",), ["动", "物"]),
        Case("a full stop", (f"The {nouns[0]} sleeps.",)),
        Case("an apostrophe", (f"The {nouns[1]} didn't sleep.",)),
        Case("Chinese with its own punctuation", (f"那只{chinese[0]}累了，睡了。",)),
        Case("words that come twice", (f"the {nouns[2]} and the {nouns[3]}",)),
        Case("several spaces and a line break", (f"  the  {nouns[0]}\n sleeps ",)),
        Case("a number", (f"{rng.integers(12, 99)} {nouns[1]}s",)),
        Case("letters with accents", (f"a naïve {nouns[2]} in a café",)),
        Case("both scripts without a space between", (f"用PyTorch画{chinese[1]}",)),
        Case("marks in a row", (f"what?! a {nouns[4]}...",)),
        Case("digits and letters in a row", (f"an MP3 of the {nouns[5]} in 3D",)),
        Case("letters of another script", (f"кот is a {nouns[0]}",)),
        Case("an apostrophe of print", (f"the {nouns[1]} didn’t sleep",)),
        Case("apostrophes that stand beside a word", (f"'the {nouns[2]}s' house'",)),
        Case("an apostrophe behind a digit", (f"a {nouns[3]} of the 90's",)),
        Case("an underscore", (f"the {nouns[4]}_name",)),
        Case("nothing but spaces", ("  ",), []),
    ]


LETTER, ALNUM = r"[^\W\d_\u4e00-\u9fff]", r"[^\W_\u4e00-\u9fff]"  # neither is Chinese
JOINED = f"(?<={LETTER})['’](?={LETTER})"


def _pieces(text, joined=JOINED, han=r"[\u4e00-\u9fff]", alnum=ALNUM, marks=r"[^\w\s]|_"):
    word = f"(?:{alnum}{joined and '|' + joined})+"
    return re.findall("|".join(part for part in (han, word, marks) if part), text)


def _by_spaces_then_characters(text):
    cut = [list(part) if re.search(r"[\u4e00-\u9fff]", part) else _pieces(part) for part in text.split()]
    return [token for tokens in cut for token in tokens]


def _with_spaces(text):
    return _pieces(text, marks=r"\s|[^\w\s]|_")


def _glued(text):
    """Spaces put around Chinese characters, then cut at spaces: punctuation stays with its word."""
    return re.sub(r"([\u4e00-\u9fff])", r" \1 ", text).split()


tokenize_mistakes = [
    Mistake(
        "cut at spaces",
        lambda text: text.split(),
        "Chinese has no spaces, so a whole sentence stays one token. And a full stop stays with its word. What else ends a token?",
    ),
    Mistake(
        "cut at each single space",
        lambda text: text.split(" "),
        'Two spaces in a row give an empty token, and Chinese has no spaces at all. Cut "a  b" by hand: how many tokens?',
        also=(lambda text: re.split(r"\s", text),),
    ),
    Mistake(
        "every character is a token, spaces too",
        lambda text: list(text),
        "Right for Chinese. English letters in a row belong together, and a space is no token.",
    ),
    Mistake(
        "every character but the spaces is a token",
        lambda text: [char for char in text if not char.isspace()],
        "Right for Chinese. English letters in a row belong together.",
    ),
    Mistake(
        "a row of Chinese characters is one token",
        lambda text: _pieces(text, han="", alnum=r"[^\W_]"),
        "To Python a Chinese character is a letter: `isalpha()` is True, and `\\w` finds it. Take these characters out first.",
    ),
    Mistake(
        "Chinese stays in one piece, and apostrophes cut",
        lambda text: re.findall(r"\w+|[^\w\s]", text),
        "To Python a Chinese character is a letter, an apostrophe is none: `\\w+` takes 动物 whole and cuts *didn't* in three.",
    ),
    Mistake(
        "the apostrophe cuts a word in three",
        lambda text: _pieces(text, joined=""),
        "Right but for *didn't*: an apostrophe between two letters belongs to the word.",
    ),
    Mistake(
        "the part after the apostrophe begins a token of its own",
        lambda text: re.findall(rf"[\u4e00-\u9fff]|['’]?{ALNUM}+|[^\w\s]|_", text),
        "Some tokenizers do cut *didn* and *'t*. Here an apostrophe between two letters belongs to the word.",
        also=(lambda text: re.findall(rf"[\u4e00-\u9fff]|(?:(?<={LETTER})['’])?{ALNUM}+|[^\w\s]|_", text),),
    ),
    Mistake(
        "punctuation is left out",
        lambda text: _pieces(text, marks=""),
        "A full stop is a token too. What is neither letter nor digit nor space?",
    ),
    Mistake(
        "words only: punctuation left out, Chinese in one piece",
        lambda text: re.findall(r"\w+", text),
        "`\\w+` takes a row of Chinese characters for a word, and leaves out what is no letter: full stop, comma, apostrophe.",
        also=(lambda text: re.findall(r"[\w'’]+", text),),
    ),
    Mistake(
        "punctuation stays with the word before",
        _glued,
        "*sleeps.* and *sleeps* would be two entries of the vocabulary. Cut before the full stop.",
    ),
    Mistake(
        "only the punctuation of ASCII is known",
        lambda text: _pieces(text, marks="[!-/:-@\\[-`{-~]"),
        "，and 。are other characters than , and . : do not list marks, but say what they are not, `[^\\w\\s]`.",
    ),
    Mistake(
        "several marks in a row are one token",
        lambda text: _pieces(text, marks=r"[^\w\s]+|_"),
        "Each mark stands for itself. One `+` too many?",
    ),
    Mistake(
        "lower case",
        lambda text: [token.lower() for token in tokenize(text)],
        "Some tokenizers do that. Here upper case stays: what is lost cannot be brought back by the caller.",
    ),
    Mistake(
        "spaces are tokens",
        _with_spaces,
        "A space ends a token and is none itself. Two sentences that differ in their spaces should have equal tokens.",
    ),
    Mistake(
        "only the letters a to z are known",
        lambda text: re.findall(r"[\u4e00-\u9fff]|[A-Za-z0-9]+(?:['’][A-Za-z0-9]+)*|[^\w\s]", text),
        "*café* loses its é. A letter is what `str.isalpha()` calls one, and in a regular expression `[^\\W\\d_]`.",
        also=(
            lambda text: re.findall(r"[\u4e00-\u9fff]|[A-Za-z0-9]+(?:['’][A-Za-z0-9]+)*|[^A-Za-z0-9\s]", text),
            lambda text: re.findall(r"[\u4e00-\u9fff]|[A-Za-z0-9]+(?:'[A-Za-z0-9]+)*|[^\w\s]", text),
        ),
    ),
    Mistake(
        "only Latin letters are known, with accents or without",
        lambda text: _pieces(text, alnum="[0-9A-Za-zÀ-ÖØ-öø-ÿ]"),
        "Most scripts are others: *кот* is a word too. Do not list letters, but ask for them: `str.isalpha()`, or `[^\\W\\d_]`.",
        also=(
            lambda text: re.findall(r"[\u4e00-\u9fff]|[0-9A-Za-zÀ-ÿ]+(?:['’][A-Za-zÀ-ÿ]+)*|[^\w\s]", text),
            lambda text: re.findall(r"[\u4e00-\u9fff]|[0-9A-Za-zÀ-ÿ]+(?:'[A-Za-zÀ-ÿ]+)*|[^\w\s]", text),
            lambda text: re.findall(r"[\u4e00-\u9fff]|[0-9A-Za-zÀ-ÿ]+(?:['’][A-Za-zÀ-ÿ]+)*|\S", text),
        ),
    ),
    Mistake(
        "letters and digits are cut from each other",
        lambda text: re.findall(rf"[\u4e00-\u9fff]|\d+|(?:{LETTER}|{JOINED})+|[^\w\s]|_", text),
        "*MP3* is one word: letters and digits in a row belong together.",
        also=(lambda text: re.findall(rf"[\u4e00-\u9fff]|{LETTER}+(?:'\w+)*|\d+|[^\w\s]", text),),
    ),
    Mistake(
        "only one of the two apostrophes is known",
        lambda text: _pieces(text, joined=JOINED.replace("’", "")),
        "Print has another apostrophe, ’, than most keyboards, '. Both may stand in a word.",
        also=(
            lambda text: re.findall(rf"[\u4e00-\u9fff]|{ALNUM}+(?:'{ALNUM}+)*|[^\w\s]", text),
            lambda text: re.findall(rf"[\u4e00-\u9fff]|{ALNUM}+(?:'{ALNUM}+)?|[^\w\s]|_", text),
        ),
    ),
    Mistake(
        "every apostrophe is a letter",
        lambda text: _pieces(text, joined="['’]"),
        "In *'the'* the apostrophes are quotation marks, tokens by themselves. One belongs to a word only between two letters.",
        also=(
            lambda text: _pieces(text, joined=f"(?<={LETTER})['’]"),
            lambda text: _pieces(text, joined=f"['’](?={LETTER})"),
            lambda text: re.findall(r"[\u4e00-\u9fff]|(?:(?![\u4e00-\u9fff])[\w'’])+|[^\w\s]", text),
        ),
    ),
    Mistake(
        "an apostrophe joins digits too",
        lambda text: _pieces(text, joined=f"(?<={ALNUM})['’](?={ALNUM})"),
        "It stands between two *letters*: *90's* has none on its left, and is 90, ' and s. `\\w` and `isalnum()` take digits too; "
        "`[^\\W\\d_]` and `isalpha()` do not.",
        also=(
            lambda text: re.findall(rf"[\u4e00-\u9fff]|{ALNUM}+(?:['’]{ALNUM}+)*|[^\w\s]", text),
            lambda text: re.findall(r"[\u4e00-\u9fff]|(?:(?![\u4e00-\u9fff])\w)+(?:['’]\w+)*|[^\w\s]", text),
        ),
    ),
    Mistake(
        "an underscore is lost",
        lambda text: _pieces(text, marks=r"[^\w\s]"),
        "To a regular expression _ is part of `\\w`, so `[^\\w\\s]` does not find it. It is a mark: name it too, `|_`.",
    ),
    Mistake(
        "an underscore stays within the word",
        lambda text: _pieces(text, alnum=r"[^\W\u4e00-\u9fff]"),
        "`\\w` takes _ for a letter. Here it is a mark, and a token by itself: take it out of the letters, `[^\\W_]`.",
    ),
    Mistake(
        "digits are left out",
        lambda text: _pieces(text, alnum=LETTER),
        "Digits in a row are a token as letters are. `str.isalnum()` knows both.",
    ),
    Mistake(
        "each digit is a token",
        lambda text: re.findall(rf"[\u4e00-\u9fff]|\d|(?:{LETTER}|{JOINED})+|[^\w\s]|_", text),
        "Some tokenizers do that, for arithmetic. Here digits in a row belong together.",
    ),
    Mistake(
        "each token once",
        lambda text: list(dict.fromkeys(tokenize(text))),
        "A sentence may hold a word twice, and each has its place. Keep them all, in order.",
    ),
    Mistake(
        "the tokens are sorted",
        lambda text: sorted(tokenize(text)),
        "The order is what makes a sentence. Keep it. (A set has no order at all.)",
        also=(lambda text: sorted(set(tokenize(text))),),
    ),
    Mistake(
        "from behind",
        lambda text: tokenize(text)[::-1],
        "The last token stands first. Append each to the end of the list.",
    ),
    Mistake(
        "one string with spaces in it",
        lambda text: " ".join(tokenize(text)),
        "Right tokens, but joined again. Return the list.",
    ),
    Mistake(
        "what stands between two spaces is cut into characters if there is Chinese in it",
        _by_spaces_then_characters,
        "Right unless both scripts stand together: 用PyTorch画 has one word of seven letters in it. Look at each character, "
        "not at what spaces leave.",
    ),
]


def tokenize_by_characters(text):
    def latin(char):
        return char.isalpha() and not "\u4e00" <= char <= "\u9fff"

    tokens, word = [], ""
    for place, char in enumerate(text + " "):
        chinese = "\u4e00" <= char <= "\u9fff"
        inside = char in "'’" and word[-1:].isalpha() and latin(text[place + 1 : place + 2])
        if inside or (char.isalnum() and not chinese):
            word += char
        else:
            tokens += [word] if word else []
            tokens += [] if char.isspace() else [char]
            word = ""
    return tokens


# build_vocabulary -----------------------------------------------------------------------------------------------------


def build_vocabulary(sentences, min_count):
    """Number the tokens of all sentences: padding 0, unknown 1, then the most frequent first, equals by alphabet."""
    counts = {}
    for sentence in sentences:
        for token in sentence:
            counts[token] = counts.get(token, 0) + 1
    kept = [token for token in counts if counts[token] >= min_count]
    kept.sort(key=lambda token: (-counts[token], token))
    return {token: number for number, token in enumerate(["<pad>", "<unk>", *kept])}


def _sentences(rng, words, n, length):
    return [[words[i] for i in rng.integers(len(words), size=length + k % 2)] for k in range(n)]


def vocabulary_cases(rng):
    by_hand = {"<pad>": 0, "<unk>": 1, "a": 2, "b": 3}
    mixed = ["那", "只", "猫", "the", "cat"]
    return [
        Case("one sentence, by hand", ([["b", "a", "a"]], 1), by_hand),
        Case("equals by alphabet, by hand", ([["b", "a"]], 1), by_hand),
        Case("the most frequent is no first letter", ([["the", "cat", "sees", "the", "dog"]], 1)),
        Case(
            "a token once in each of three sentences, another often in one",
            ([["x", "x", "x", "x", "u"], ["u"], ["u", "w"]], 1),
        ),
        Case("tokens that occur once are left out", ([["a", "b", "a"], ["c", "c", "c"]], 2)),
        Case("upper and lower case", ([["The", "cat", "the", "cat", "the"]], 1)),
        Case("two scripts", (_sentences(rng, mixed, 3, 4), 1)),
        Case("at least twice", (_sentences(rng, mixed, 4, 3), 2)),
        Case("no sentence", ([], 1), {"<pad>": 0, "<unk>": 1}),
    ]


def _counts(sentences):
    return Counter(token for sentence in sentences for token in sentence)


def _ordered(sentences, min_count, key=None, counts=None):
    counts = _counts(sentences) if counts is None else counts
    kept = [token for token in counts if counts[token] >= min_count]
    return sorted(kept, key=key or (lambda token: (-counts[token], token)))


def _numbered(first, tokens, start=None):
    return {
        **first,
        **{token: number for number, token in enumerate(tokens, start=len(first) if start is None else start)},
    }


BOTH = {"<pad>": 0, "<unk>": 1}


def _by_count_alone(sentences, min_count):
    counts = _counts(sentences)
    return _numbered(BOTH, [token for token, count in counts.most_common() if count >= min_count])


def _gaps(sentences, min_count, key=None):
    counts = _counts(sentences)
    ids = _numbered(BOTH, _ordered(sentences, 1, key=key or (lambda token: token)))
    return {token: number for token, number in ids.items() if token in BOTH or counts[token] >= min_count}


def _new_number_each_time(sentences, min_count):
    ids, number = dict(BOTH), 2
    for sentence in sentences:
        for token in sentence:
            ids[token] = number
            number += 1
    return ids


vocabulary_mistakes = [
    Mistake(
        "padding and unknown have no ids: the words begin at 0",
        lambda sentences, min_count: _numbered({}, _ordered(sentences, min_count)),
        "Where a batch is filled up with 0, it would be filled up with your first word. Keep 0 and 1 free.",
    ),
    Mistake(
        "unknown has no id",
        lambda sentences, min_count: _numbered({"<pad>": 0}, _ordered(sentences, min_count)),
        "Tomorrow comes a word that is in none of these sentences. It needs an id too: `<unk>`, 1.",
    ),
    Mistake(
        "padding has no id",
        lambda sentences, min_count: _numbered({"<unk>": 0}, _ordered(sentences, min_count)),
        "What will fill up the shorter sentences? Padding needs an id of its own: `<pad>`, 0.",
    ),
    Mistake(
        "padding and unknown share id 0",
        lambda sentences, min_count: {"<pad>": 0, "<unk>": 0, **_numbered({}, _ordered(sentences, min_count), start=1)},
        "An unknown word is a word and may be looked at, padding is none and may not. Give them two ids.",
        also=(
            lambda sentences, min_count: {
                "<pad>": 0,
                "<unk>": 0,
                **_numbered({}, _ordered(sentences, min_count), start=2),
            },
        ),
    ),
    Mistake(
        "unknown is 0 and padding 1",
        lambda sentences, min_count: _numbered({"<unk>": 0, "<pad>": 1}, _ordered(sentences, min_count)),
        "Some libraries do it so. Here padding is 0, since that is what most functions fill up with if nothing is said.",
    ),
    Mistake(
        "padding and unknown stand at the end",
        lambda sentences, min_count: _numbered(
            _numbered({}, _ordered(sentences, min_count)), ["<pad>", "<unk>"], start=len(_ordered(sentences, min_count))
        ),
        "Then their ids change with each new text, and 0 is a word. Begin with them.",
    ),
    Mistake(
        "the first word has the id of unknown",
        lambda sentences, min_count: _numbered(BOTH, _ordered(sentences, min_count), start=1),
        "0 and 1 are taken. With which number must the words begin?",
    ),
    Mistake(
        "an id is skipped: the words begin at 3",
        lambda sentences, min_count: _numbered(BOTH, _ordered(sentences, min_count), start=3),
        "0 and 1 are taken, so the first word is 2. With a gap the largest id is outside an embedding of len(vocabulary) rows.",
    ),
    Mistake(
        "by alphabet, not by frequency",
        lambda sentences, min_count: _numbered(BOTH, _ordered(sentences, min_count, key=lambda token: token)),
        "The most frequent token comes first. The alphabet decides only between equals.",
    ),
    Mistake(
        "in the order in which they first occur",
        lambda sentences, min_count: _numbered(BOTH, _ordered(sentences, min_count, key=lambda token: 0)),
        "The most frequent token comes first, the alphabet decides between equals.",
    ),
    Mistake(
        "the rarest first",
        lambda sentences, min_count: _numbered(
            BOTH, _ordered(sentences, min_count, key=lambda token: (_counts(sentences)[token], token))
        ),
        "The most frequent first: sort by minus the count.",
    ),
    Mistake(
        "equals in the order in which they first occur",
        _by_count_alone,
        "Right but for equals. If their order hangs on the order of the texts, shuffling the texts changes ids. Sort by "
        "`(-count, token)`.",
    ),
    Mistake(
        "equals by alphabet from behind",
        lambda sentences, min_count: _numbered(
            BOTH,
            sorted(_ordered(sentences, min_count), key=lambda token: (_counts(sentences)[token], token), reverse=True),
        ),
        "`reverse=True` turns the alphabet around too. Sort by `(-count, token)` instead.",
    ),
    Mistake(
        "more often than min_count, not at least so often",
        lambda sentences, min_count: _numbered(BOTH, _ordered(sentences, min_count + 1)),
        "With min_count 1, which tokens should be left out? None: `>=`.",
    ),
    Mistake(
        "min_count is not used",
        lambda sentences, min_count: _numbered(BOTH, _ordered(sentences, 1)),
        "A token that occurs less often than min_count gets no id; it will be `<unk>`.",
    ),
    Mistake(
        "only tokens that occur exactly min_count times",
        lambda sentences, min_count: _numbered(
            BOTH, [token for token in _ordered(sentences, 1) if _counts(sentences)[token] == min_count]
        ),
        "At least so often: `>=`.",
    ),
    Mistake(
        "ids are given first, rare tokens left out after, so that there are gaps",
        _gaps,
        "Leave out rare tokens first, sort, then number: the ids must be 0 to len(vocabulary) − 1.",
        also=(lambda sentences, min_count: _gaps(sentences, min_count, lambda token: 0),),
    ),
    Mistake(
        "counts in place of ids",
        lambda sentences, min_count: {
            **BOTH,
            **{token: count for token, count in _counts(sentences).items() if count >= min_count},
        },
        "Two tokens with equal counts would have one id. Number the sorted tokens.",
        also=(lambda sentences, min_count: dict(_counts(sentences)),),
    ),
    Mistake(
        "from id to token",
        lambda sentences, min_count: dict(enumerate([*BOTH, *_ordered(sentences, min_count)])),
        "That is the dict for the way back. Here tokens are the keys and ids the values.",
    ),
    Mistake(
        "a list of tokens",
        lambda sentences, min_count: [*BOTH, *_ordered(sentences, min_count)],
        "Right order. To look an id up quickly, make a dict: token → its place in this list.",
    ),
    Mistake(
        "a token gets a new id each time that it occurs",
        _new_number_each_time,
        "The last one wins, and ids go far beyond the number of tokens. Number each token once.",
    ),
    Mistake(
        "counted in how many sentences, not how often",
        lambda sentences, min_count: _numbered(
            BOTH,
            _ordered(
                sentences,
                min_count,
                counts=(c := Counter(t for s in sentences for t in set(s))),
                key=lambda token: (-c[token], token),
            ),
        ),
        "A token that comes three times in one sentence counts three times.",
    ),
    Mistake(
        "characters are counted, not tokens",
        lambda sentences, min_count: _numbered(
            BOTH, _ordered([list("".join(sentence)) for sentence in sentences], min_count)
        ),
        "A loop over a string runs over its characters. Two loops are enough: over sentences, over tokens.",
    ),
    Mistake(
        "upper and lower case are one",
        lambda sentences, min_count: _numbered(
            BOTH, _ordered([[token.lower() for token in sentence] for sentence in sentences], min_count)
        ),
        "Then `encode` would not find *The*. Leave the tokens as they are.",
    ),
    Mistake(
        "the first sentence only",
        lambda sentences, min_count: _numbered(BOTH, _ordered(sentences[:1], min_count)),
        "`return` inside the loop? All sentences count together.",
    ),
]

# encode ---------------------------------------------------------------------------------------------------------------


def encode(tokens, vocabulary):
    """Replace each token by its id, and tokens outside the vocabulary by the id of <unk>."""
    return [vocabulary.get(token, vocabulary["<unk>"]) for token in tokens]


def encode_cases(rng):
    small = {"<pad>": 0, "<unk>": 1, "the": 2, "cat": 3}
    words = ["cat", "the", "那", "只", "猫"]
    large = {"<pad>": 0, "<unk>": 1, **{words[i]: number for number, i in enumerate(rng.permutation(5), start=2)}}
    drawn = [words[i] for i in rng.integers(5, size=5)]
    theirs = {"the": 0, "cat": 4, "<unk>": 7, "<pad>": 2}
    return [
        Case("two tokens, by hand", (["cat", "the"], small), [3, 2]),
        Case("an unknown token, by hand", (["the", "dog"], small), [2, 1]),
        Case("an unknown token in the middle", (["the", "big", "cat"], small)),
        Case("two scripts", (drawn, large)),
        Case("two unknown tokens, different ones", (["狗", "dog", drawn[0]], large)),
        Case("upper case is another token", (["The", "cat"], small)),
        Case("the vocabulary of another library, with other ids", (["the", "dog", "cat"], theirs)),
        Case("no tokens", ([], small), []),
    ]


def _growing(tokens, vocabulary):
    return [vocabulary.setdefault(token, len(vocabulary)) for token in tokens]


encode_mistakes = [
    Mistake(
        "an unknown token is an error",
        lambda tokens, vocabulary: [vocabulary[token] for token in tokens],
        "A word that was not in the training texts will come. `vocabulary.get(token, ...)` has a second argument.",
    ),
    Mistake(
        "unknown tokens are left out",
        lambda tokens, vocabulary: [vocabulary[token] for token in tokens if token in vocabulary],
        "Then *not good* may become *good*, and all places after it shift. An unknown token keeps its place, as `<unk>`.",
    ),
    Mistake(
        "unknown tokens become 0, padding",
        lambda tokens, vocabulary: [vocabulary.get(token, 0) for token in tokens],
        "0 is padding. An unknown word is a word: give it the id of `<unk>`.",
        also=(lambda tokens, vocabulary: [vocabulary.get(token, vocabulary["<pad>"]) for token in tokens],),
    ),
    Mistake(
        "unknown tokens become None",
        lambda tokens, vocabulary: [vocabulary.get(token) for token in tokens],
        "`get` has a second argument: what to return where the key is missing.",
    ),
    Mistake(
        "unknown tokens become -1",
        lambda tokens, vocabulary: [vocabulary.get(token, -1) for token in tokens],
        "An embedding has no row −1. The vocabulary has an id for this: that of `<unk>`.",
    ),
    Mistake(
        "unknown tokens become the word <unk>, not its id",
        lambda tokens, vocabulary: [vocabulary.get(token, "<unk>") for token in tokens],
        "You have the token `<unk>` where its id is wanted: look it up as well.",
    ),
    Mistake(
        "unknown tokens get new ids, and the vocabulary grows",
        _growing,
        "The embedding has as many rows as the vocabulary had when it was made. New words must share `<unk>`.",
    ),
    Mistake(
        "unknown tokens get the first id after the last",
        lambda tokens, vocabulary: [vocabulary.get(token, len(vocabulary)) for token in tokens],
        "An embedding with a row for each id has no such row. Unknown tokens share the id of `<unk>`.",
    ),
    Mistake(
        "unknown is always 1",
        lambda tokens, vocabulary: [vocabulary.get(token, 1) for token in tokens],
        "Right for the vocabularies of this lesson. Others have other ids: ask for that of `<unk>`.",
    ),
    Mistake(
        "a known token with id 0 is taken for unknown: `or`",
        lambda tokens, vocabulary: [vocabulary.get(token) or vocabulary["<unk>"] for token in tokens],
        "To `or`, 0 is as good as nothing. `vocabulary.get(token, ...)` gives its second argument only where the key is missing.",
    ),
    Mistake(
        "the place in the vocabulary in place of the id",
        lambda tokens, vocabulary: [list(vocabulary).index(t if t in vocabulary else "<unk>") for t in tokens],
        "Right while the ids stand in order. Read the id, `vocabulary[token]`, not the place.",
    ),
    Mistake(
        "lower case before looking up",
        lambda tokens, vocabulary: [vocabulary.get(token.lower(), vocabulary["<unk>"]) for token in tokens],
        "Right only if the vocabulary was made of lower case too. Look the token up as it is.",
    ),
    Mistake(
        "it stops at the first unknown token",
        lambda tokens, vocabulary: [
            vocabulary[t] for t in tokens[: next((i for i, t in enumerate(tokens) if t not in vocabulary), None)]
        ],
        "What comes after an unknown word counts too. `break` in the loop?",
    ),
    Mistake(
        "characters are looked up, not tokens",
        lambda tokens, vocabulary: [vocabulary.get(char, vocabulary["<unk>"]) for token in tokens for char in token],
        "A loop over a string runs over its characters. One loop is enough: over the tokens.",
        also=(lambda tokens, vocabulary: [vocabulary.get(char, vocabulary["<unk>"]) for char in " ".join(tokens)],),
    ),
    Mistake(
        "the ids are sorted",
        lambda tokens, vocabulary: sorted(encode(tokens, vocabulary)),
        "The order is what makes a sentence. Keep it.",
    ),
    Mistake(
        "each id once",
        lambda tokens, vocabulary: list(dict.fromkeys(encode(tokens, vocabulary))),
        "A sentence may hold a token twice, and unknown tokens are alike. Keep them all.",
        also=(lambda tokens, vocabulary: sorted(set(encode(tokens, vocabulary))),),
    ),
    Mistake(
        "0s and 1s for the whole vocabulary",
        lambda tokens, vocabulary: [int(word in tokens) for word in vocabulary],
        "That is a bag of words: it has lost the order. Return one id for each token.",
    ),
    Mistake(
        "the tokens that are unknown, replaced; no ids yet",
        lambda tokens, vocabulary: [token if token in vocabulary else "<unk>" for token in tokens],
        "Half of the way. Look each of them up.",
    ),
]


def encode_by_membership(tokens, vocabulary):
    return [vocabulary[token if token in vocabulary else "<unk>"] for token in tokens]


# collate --------------------------------------------------------------------------------------------------------------


def collate(sequences, padding_id):
    """Put lists of ids into one tensor [batch, n], filled up at the end, and say how long each was, [batch]."""
    lengths = [len(sequence) for sequence in sequences]
    ids = torch.full((len(sequences), max(lengths)), padding_id)
    for row, sequence in zip(ids, sequences):
        row[: len(sequence)] = torch.tensor(sequence, dtype=torch.int64)
    return ids, torch.tensor(lengths)


def _ids(rng, *lengths):
    return [rng.integers(2, 30, size=length).tolist() for length in lengths]


def collate_cases(rng):
    by_hand = np.array([[5, 6, 7], [8, 0, 0]]), np.array([3, 1])
    return [
        Case("lengths 3 and 1, by hand", ([[5, 6, 7], [8]], 0), by_hand),
        Case("equal lengths", (_ids(rng, 3, 3), 0)),
        Case("the longest stands last", (_ids(rng, 2, 1, 4), 0)),
        Case("one sentence", (_ids(rng, 4), 0)),
        Case("padding has another id, 1", (_ids(rng, 2, 5, 3), 1)),
        Case("ids that are padding's, within a sentence", ([[4, 0, 6], [0, 7], [3, 3, 0, 0]], 0)),
        Case("a sentence without tokens", ([[9, 2], []], 0)),
    ]


def _padded(sequences, padding_id, n=None):
    n = max(map(len, sequences)) if n is None else n
    rows = [[*sequence, *[padding_id] * (n - len(sequence))][:n] for sequence in sequences]
    return torch.tensor(rows, dtype=torch.int64).reshape(len(rows), n)


def _lengths(sequences):
    return torch.tensor([len(sequence) for sequence in sequences])


def _sorted(sequences, padding_id):
    longest_first = sorted(sequences, key=len, reverse=True)
    return _padded(longest_first, padding_id), _lengths(longest_first)


def _in_front(sequences, padding_id):
    n = max(map(len, sequences))
    rows = [[*[padding_id] * (n - len(sequence)), *sequence] for sequence in sequences]
    return torch.tensor(rows), _lengths(sequences)


def _repeated(sequences, padding_id):
    n = max(map(len, sequences))
    rows = [(sequence * n)[:n] if sequence else [padding_id] * n for sequence in sequences]
    return torch.tensor(rows), _lengths(sequences)


collate_mistakes = [
    Mistake(
        "no padding",
        lambda sequences, padding_id: (torch.tensor(sequences), _lengths(sequences)),
        "The rows of a tensor are equally long. Fill up the shorter ones first.",
    ),
    Mistake(
        "padding in front",
        _in_front,
        "Some models of generation want that. Here padding stands at the end, so that `padding_mask(lengths, n)` fits.",
    ),
    Mistake(
        "all are cut to the shortest",
        lambda sequences, padding_id: (_padded(sequences, padding_id, min(map(len, sequences))), _lengths(sequences)),
        "Tokens are lost. Make the short ones longer, not the long ones shorter.",
        also=(
            lambda sequences, padding_id: (
                ids := _padded(sequences, padding_id, min(map(len, sequences))),
                torch.full((len(ids),), ids.shape[1]),
            ),
        ),
    ),
    Mistake(
        "as long as the first sentence",
        lambda sequences, padding_id: (_padded(sequences, padding_id, len(sequences[0])), _lengths(sequences)),
        "The first is not always the longest. Take the maximum of the lengths.",
    ),
    Mistake(
        "[n, batch]: a column for each sentence",
        lambda sequences, padding_id: (_padded(sequences, padding_id).T, _lengths(sequences)),
        "`pad_sequence` does that unless told otherwise. Here the batch comes first: `batch_first=True`.",
    ),
    Mistake(
        "0 fills up, whatever padding_id says",
        lambda sequences, padding_id: (_padded(sequences, 0), _lengths(sequences)),
        "`padding_id` is an argument: another vocabulary has padding elsewhere, and there 0 is a word.",
    ),
    Mistake(
        "the lengths after padding",
        lambda sequences, padding_id: (
            ids := _padded(sequences, padding_id),
            torch.full((len(sequences),), ids.shape[1]),
        ),
        "These are all equal, and a mask made from them hides nothing. Count before you fill up.",
    ),
    Mistake(
        "lengths counted from ids that are not padding",
        lambda sequences, padding_id: (ids := _padded(sequences, padding_id), (ids != padding_id).sum(dim=1)),
        "Right while no token has that id. Lengths are known before anything is filled up: count the lists.",
    ),
    Mistake(
        "lengths counted from ids that are not 0",
        lambda sequences, padding_id: (ids := _padded(sequences, padding_id), (ids != 0).sum(dim=1)),
        "0 need not be padding, and padding need not be 0. Count the lists themselves, before you fill up.",
    ),
    Mistake(
        "the longest first",
        _sorted,
        "Some recurrent layers want that. Here the labels would no longer stand beside their sentences. Keep the order.",
    ),
    Mistake(
        "floating ids",
        lambda sequences, padding_id: (_padded(sequences, padding_id).float(), _lengths(sequences)),
        "`torch.zeros` makes floats unless told otherwise, and an embedding takes only whole numbers: `dtype=torch.int64`.",
    ),
    Mistake(
        "no lengths",
        lambda sequences, padding_id: _padded(sequences, padding_id),
        "Nobody can tell afterwards what was padding. Return two things: `return ids, lengths`.",
    ),
    Mistake(
        "lengths first, then ids",
        lambda sequences, padding_id: (_lengths(sequences), _padded(sequences, padding_id)),
        "The other way round: `return ids, lengths`.",
    ),
    Mistake(
        "a mask in place of lengths",
        lambda sequences, padding_id: (
            ids := _padded(sequences, padding_id),
            torch.arange(ids.shape[1]) < _lengths(sequences)[:, None],
        ),
        "A right mask, but the lengths were asked for: from them `padding_mask` makes any mask.",
    ),
    Mistake(
        "how much was filled up, in place of the lengths",
        lambda sequences, padding_id: (
            ids := _padded(sequences, padding_id),
            ids.shape[1] - _lengths(sequences),
        ),
        "You count the padding. Count the tokens.",
    ),
    Mistake(
        "the place of the last token, in place of the length",
        lambda sequences, padding_id: (_padded(sequences, padding_id), _lengths(sequences) - 1),
        "Three tokens have the length 3; the last stands in place 2.",
    ),
    Mistake(
        "one column too many",
        lambda sequences, padding_id: (
            _padded(sequences, padding_id, 1 + max(map(len, sequences))),
            _lengths(sequences),
        ),
        "The longest sentence needs no padding.",
    ),
    Mistake(
        "a sentence is repeated until its row is full",
        _repeated,
        "What fills up must be known as padding. Words that come again look like text.",
    ),
    Mistake(
        "all in one row",
        lambda sequences, padding_id: (torch.tensor([i for s in sequences for i in s]), _lengths(sequences)),
        "That is packing; it is used, with other masks. Here each sentence has its own row.",
    ),
    Mistake(
        "sentences without tokens are left out",
        lambda sequences, padding_id: (
            _padded([s for s in sequences if s], padding_id),
            _lengths([s for s in sequences if s]),
        ),
        "Then sentences and labels no longer stand side by side. An empty sentence is a row of padding, with length 0.",
    ),
]


def collate_by_pad_sequence(sequences, padding_id):
    rows = [torch.tensor(sequence, dtype=torch.int64) for sequence in sequences]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=padding_id)
    return ids, torch.tensor([len(row) for row in rows])


def call_collate(answer, sequences, padding_id):
    """Lists go in as they are, tensors come out as arrays."""
    return on_tensors(answer, sequences, padding_id)


check = Checker(
    "10",
    [
        Exercise("tokenize", course.tokenize, tokenize, tokenize_cases, tokenize_mistakes, [tokenize_by_characters]),
        Exercise(
            "build_vocabulary",
            course.build_vocabulary,
            build_vocabulary,
            vocabulary_cases,
            vocabulary_mistakes,
            [lambda sentences, min_count: _numbered(BOTH, _ordered(sentences, min_count))],
        ),
        Exercise("encode", course.encode, encode, encode_cases, encode_mistakes, [encode_by_membership]),
        Exercise(
            "collate",
            course.collate,
            collate,
            collate_cases,
            collate_mistakes,
            [collate_by_pad_sequence],
            call=call_collate,
        ),
    ],
)
