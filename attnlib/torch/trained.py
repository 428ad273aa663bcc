"""A reader of reviews that was trained by ``make imdb``, small enough to come with the package (lessons 11 and 12)."""

from importlib.resources import files

import numpy as np
import torch

from attnlib.torch.models import ReviewClassifier

N_KEPT = 10_000  # of 20,000 words; the others are unknown to it


def trained_classifier() -> tuple[ReviewClassifier, dict[str, int]]:
    """The reader of the line *attention, 4 heads*, seed 0, in evaluation mode, and its vocabulary.

    Returns
    -------
    model : ReviewClassifier
        One layer, four heads, d_model 64, sinusoidal positions, mean pooling; made for reviews of up to 128 words, as
        ``attnlib.data.reviews.words`` cuts them. Class 1 is praise. Its weights were rounded to float16.
    vocabulary : dict, token → id
        For ``attnlib.data.text.encode``.
    """
    with (files("attnlib.data") / "recorded" / "review_classifier.npz").open("rb") as file, np.load(file) as arrays:
        state = {name: torch.from_numpy(arrays[name].astype(np.float32)) for name in arrays.files if name != "tokens"}
        tokens = bytes(arrays["tokens"]).decode("utf-8").split("\n")
    model = ReviewClassifier(len(tokens))
    model.load_state_dict(state)
    return model.eval(), {token: number for number, token in enumerate(tokens)}


def packed(state: dict[str, torch.Tensor], tokens: list[str]) -> dict[str, np.ndarray]:
    """What ``review_classifier.npz`` holds, from the state of a trained reader and the tokens of its vocabulary in order."""
    state = state | {"embedding.weight": state["embedding.weight"][:N_KEPT]}
    arrays = {name: value.numpy().astype(np.float16) for name, value in state.items()}
    return arrays | {"tokens": np.frombuffer("\n".join(tokens[:N_KEPT]).encode(), dtype=np.uint8)}
