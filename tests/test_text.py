"""Text to numbers: what is a token, which ids are whose, and that nothing is lost on the way back."""

import os
import random
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.data import agreement, sentence
from attnlib.data.text import build_vocabulary, collate, decode, encode, tokenize


@pytest.mark.parametrize(
    "text, tokens",
    [
        ("The animal didn't cross.", ["The", "animal", "didn't", "cross", "."]),
        ("那只动物，累了。", ["那", "只", "动", "物", "，", "累", "了", "。"]),
        ("用PyTorch写2.13版", ["用", "PyTorch", "写", "2.13", "版"]),
        ("1,000.5 or 3. 4,a", ["1,000.5", "or", "3", ".", "4", ",", "a"]),
        ("caf\u00e9 cafe\u0301", ["café", "café"]),  # two ways to type it, one token
        ("’tis the dogs’ don’t", ["’", "tis", "the", "dogs", "’", "don’t"]),
        ("a_b $5 e-mail", ["a", "_", "b", "$", "5", "e", "-", "mail"]),
        ("〇々 ア か", ["〇", "々", "ア", "か"]),
        ("\U00020000\U0002b820\u3400", ["\U00020000", "\U0002b820", "\u3400"]),  # rarer Chinese characters
        ("한국어 नमस्ते привет", ["한국어", "नमस्ते", "привет"]),
        ("👩\u200d👩\u200d👧👍🏽🇨🇳🇩🇪❤\ufe0f!", ["👩\u200d👩\u200d👧", "👍🏽", "🇨🇳", "🇩🇪", "❤\ufe0f", "!"]),
        ("\ufeffso\u00adft a\u200bb\tc\u3000d\n", ["soft", "a", "b", "c", "d"]),
        ("...", [".", ".", "."]),
        (" \n", []),
        ("", []),
    ],
)
def test_tokens(text, tokens):
    assert tokenize(text) == tokens


@given(st.text())
def test_tokens_are_never_empty_hold_no_space_and_lose_nothing_visible(text):
    tokens = tokenize(text)
    assert all(tokens) and not any(char.isspace() for token in tokens for char in token)
    assert visible("".join(tokens)) == visible(unicodedata.normalize("NFC", text))


def visible(text):
    return [char for char in text if unicodedata.category(char)[0] not in "ZC"]


@given(st.lists(st.lists(st.sampled_from("the cat dog 那 只 猫 <pad> <unk>".split()), max_size=6), max_size=5))
def test_what_is_known_comes_back(sentences):
    vocabulary = build_vocabulary(sentences)
    assert list(vocabulary)[:2] == ["<pad>", "<unk>"] and list(vocabulary.values()) == list(range(len(vocabulary)))
    for tokens in sentences:
        assert decode(encode(tokens, vocabulary), vocabulary) == tokens
    shuffled = random.Random(0).sample(sentences, len(sentences))
    assert list(build_vocabulary(shuffled)) == list(vocabulary)  # the order of the texts does not matter


def test_vocabulary_by_frequency_with_limits():
    sentences = [["b", "a", "c", "a"], ["b", "d"]]
    assert list(build_vocabulary(sentences)) == ["<pad>", "<unk>", "a", "b", "c", "d"]
    assert list(build_vocabulary(sentences, min_count=2)) == ["<pad>", "<unk>", "a", "b"]
    assert list(build_vocabulary(sentences, max_size=3)) == ["<pad>", "<unk>", "a"]
    assert build_vocabulary([], max_size=2) == {"<pad>": 0, "<unk>": 1}


def test_unknown_is_what_the_vocabulary_calls_so():
    assert encode(["x", "a"], {"a": 0, "<unk>": 7}) == [7, 0]


def test_a_batch():
    torch = pytest.importorskip("torch")
    ids, lengths = collate([[5, 6, 7], [], [8, 0]], padding_id=1)
    assert ids.tolist() == [[5, 6, 7], [1, 1, 1], [8, 0, 1]] and lengths.tolist() == [3, 0, 2]
    assert ids.dtype == lengths.dtype == torch.int64
    assert collate([[], []])[0].shape == (2, 0)
    rows = [torch.tensor(row) for row in ([5, 6, 7], [8, 0])]
    assert torch.equal(
        collate([row.tolist() for row in rows])[0], torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    )


@pytest.mark.parametrize(
    "call, told",
    [
        (lambda: tokenize(["a"]), "text is list; expected one string. For many"),
        (lambda: build_vocabulary("the cat"), "expected lists of tokens. Try"),
        (lambda: build_vocabulary(["the cat"]), "expected lists of tokens. Try"),
        (lambda: build_vocabulary([], max_size=1), "max_size=1; expected at least 2"),
        (lambda: encode("the", {"<unk>": 1}), "tokens is the string 'the'; expected a list"),
        (lambda: encode(["a"], {"a": 0}), "has no <unk>"),
        (lambda: decode([9], {"<pad>": 0}), "id 9 is not in the vocabulary of 1 ids"),
    ],
)
def test_errors(call, told):
    with pytest.raises(ValueError, match=told):
        call()


def test_no_sequences():
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="no sequences; expected at least one"):
        collate([])


def test_ids_are_the_same_in_every_process():
    code = "from attnlib.data.text import *; print(build_vocabulary([tokenize('the cat and the dog 那只猫')]))"
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    ]
    assert said[0] == said[1]


def test_the_sentence_in_two_languages():
    assert sentence.texts("wide") == (
        "The animal didn't cross the street because it was too wide.",
        "那只动物没有过马路，因为它太宽了。",
    )


def test_agreement_is_balanced_and_tells_the_truth():
    examples = agreement.examples()
    assert len(examples) == len({(e.text, e.quality) for e in examples}) == 4_096
    assert sum(e.many for e in examples) == sum(e.mixed for e in examples) == 2_048
    assert sum(e.new for e in examples) == 1_024
    for example in examples:
        tokens = tokenize(example.text)
        assert tokens.count(example.quality) == tokens.count(example.noun) == tokens.count("…") == 1
        shown = example.noun.endswith("s") if example.language == "English" else example.noun in "群些"
        assert shown == example.many
    known = {token for e in examples if not e.new for token in tokenize(e.text)}
    assert known == {token for e in examples for token in tokenize(e.text)}
