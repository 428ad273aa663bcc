"""A small loop that trains a reader of texts: batches of like length, AdamW, warm-up, clipping, checkpoints (lesson 11).

Nothing here uses or changes PyTorch's global random numbers: what is random comes from a seed that is given.

Loshchilov, Hutter, *Decoupled Weight Decay Regularization* (2019), for AdamW; Goyal et al., *Accurate, Large Minibatch SGD*
(2017), for warm-up; Loshchilov, Hutter, *SGDR* (2017), for the cosine; Pascanu, Mikolov, Bengio, *On the Difficulty of
Training Recurrent Neural Networks* (2013), for clipping.
"""

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlib.data.text import collate
from attnlib.torch.checkpoints import load_checkpoint, save_checkpoint
from attnlib.torch.progress import progress


class Texts(NamedTuple):
    """Texts as lists of ids, with their labels."""

    ids: Sequence[Sequence[int]]
    labels: Sequence[int]


class Evaluation(NamedTuple):
    """What a model is worth on some texts: share of right answers, mean loss, and the probabilities [n, n_classes]."""

    accuracy: float
    loss: float
    probabilities: Tensor


@dataclass(frozen=True)
class Settings:
    """How to train. Equal settings are an equal budget."""

    epochs: int = 3
    batch_size: int = 32
    rate: float = 1e-3  # the highest learning rate, at the end of the warm-up
    warm_up: float = 0.1  # share of the steps
    weight_decay: float = 0.01
    max_norm: float = 1.0  # gradients that are longer are shortened to this
    smoothing: float = 0.0  # of labels
    bf16: bool = False  # mixed precision: products in bfloat16, weights in float32


@dataclass
class History:
    """What was recorded at each step: the mean loss of its batch, the gradient's norm before clipping, the rate."""

    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    seconds: float = 0.0  # of processor time


def batches(lengths: Sequence[int], batch_size: int, generator: torch.Generator | None = None) -> list[list[int]]:
    """Places of the texts of each batch, each text once. Texts of like length go together, so there is little padding.

    Parameters
    ----------
    lengths : n whole numbers
    batch_size : int
        The last batch may be smaller.
    generator : torch.Generator, optional
        Mixes texts of like length, and the order of the batches. Without it the shortest come first.
    """
    lengths = torch.as_tensor(lengths, dtype=torch.float64)
    noise = torch.zeros(len(lengths))
    if generator is not None:
        noise = torch.rand(len(lengths), generator=generator, dtype=torch.float64)
    order = (lengths * (1 + 0.2 * noise)).argsort(stable=True)
    chunks = [chunk.tolist() for chunk in order.split(batch_size)]
    if generator is None:
        return chunks
    return [chunks[place] for place in torch.randperm(len(chunks), generator=generator).tolist()]


def rate_at(step: int, n_steps: int, settings: Settings) -> float:
    """Learning rate of a step, counted from 0: straight up to the highest, never 0, then down along half a cosine."""
    warm_up = max(round(settings.warm_up * n_steps), 1)
    if step < warm_up:
        return settings.rate * (step + 1) / warm_up
    return settings.rate * 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(n_steps - warm_up, 1)))


def train_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    ids: Tensor,
    lengths: Tensor,
    labels: Tensor,
    max_norm: float = 1.0,
    *,
    smoothing: float = 0.0,
    bf16: bool = False,
) -> tuple[float, float]:
    """One step: forward, backward, clip, move.

    Parameters
    ----------
    model : called (ids, lengths), returns logits [batch, n_classes]
    optimizer : torch.optim.Optimizer
    ids : tensor [batch, n]
    lengths, labels : tensor [batch]
    max_norm : float
        If the gradients of all parameters together are longer, they are shortened to this length.
    smoothing : float
        Share of each label that is spread over all classes.
    bf16 : bool
        Mixed precision.

    Returns
    -------
    loss, norm : float
        Mean cross-entropy of the batch, and the norm of the gradient before clipping.
    """
    model.train()
    optimizer.zero_grad()
    with torch.autocast(ids.device.type, torch.bfloat16, enabled=bf16):
        logits = model(ids, lengths)
    loss = F.cross_entropy(logits.float(), labels, label_smoothing=smoothing)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item(), norm.item()


def evaluate(model: nn.Module, texts: Texts, *, batch_size: int = 128, bf16: bool = False) -> Evaluation:
    """Measure a model, in evaluation mode and without gradients. It is left in the mode in which it was.

    Parameters
    ----------
    model : called (ids, lengths), returns logits [batch, n_classes]
    texts : Texts
    batch_size : int
        Has no influence on the result.

    Returns
    -------
    evaluation : Evaluation
        Its probabilities are in the order of the texts.

    Raises
    ------
    ValueError
        If there are no texts, or not a label for each.
    """
    check_texts(texts)
    was_training = model.training
    model.eval()
    labels = torch.as_tensor(texts.labels)
    found: dict[int, Tensor] = {}
    device = next(model.parameters()).device
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=bf16):
        for places in batches(list(map(len, texts.ids)), batch_size):
            ids, lengths = collate([texts.ids[place] for place in places])
            found |= zip(places, model(ids.to(device), lengths.to(device)).float().cpu())
    model.train(was_training)
    logits = torch.stack([found[place] for place in range(len(labels))])
    return Evaluation(
        (logits.argmax(dim=-1) == labels).double().mean().item(),
        F.cross_entropy(logits, labels).item(),
        logits.softmax(dim=-1),
    )


def train(
    model: nn.Module,
    texts: Texts,
    settings: Settings,
    *,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    every: float = 30.0,
    report: Callable[[int, float], None] | None = None,
) -> History:
    """Train a model, in place, and return what was recorded.

    Parameters
    ----------
    model : called (ids, lengths), returns logits [batch, n_classes]
    texts : Texts
    settings : Settings
    seed : int
        Of the order of texts and of dropout. The weights the model begins with are the caller's.
    checkpoint : path, optional
        Where to keep what is needed to go on. If the file is there, training goes on where it was, and ends with the
        weights of a run that was never stopped. It is left there at the end.
    every : float
        Seconds between two checkpoints. One is made after the last step too.
    report : function of step and loss, optional

    Raises
    ------
    ValueError
        If the checkpoint is damaged, or of another model, other texts, settings or seed; if there are no texts, or not a
        label for each.
    """
    check_texts(texts)
    n_steps = settings.epochs * math.ceil(len(texts.ids) / settings.batch_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.rate, weight_decay=settings.weight_decay, fused=True)
    history, first, device = History(), 0, next(model.parameters()).device
    run = asdict(settings) | {"seed": int(seed), "n_texts": len(texts.ids), "texts": fingerprint(texts)}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if checkpoint is not None and Path(checkpoint).exists():
            first, history = load_checkpoint(checkpoint, model, optimizer, run, History)
        saved, started = time.monotonic(), time.process_time() - history.seconds
        for step, places in progress(plan(texts, settings, seed, first), first, n_steps):
            optimizer.param_groups[0]["lr"] = rate_at(step, n_steps, settings)
            ids, lengths = collate([texts.ids[place] for place in places])
            labels = torch.tensor([texts.labels[place] for place in places])
            options = {"smoothing": settings.smoothing, "bf16": settings.bf16}
            batch = (tensor.to(device) for tensor in (ids, lengths, labels))
            loss, norm = train_step(model, optimizer, *batch, settings.max_norm, **options)
            history.losses.append(loss), history.norms.append(norm)
            history.rates.append(optimizer.param_groups[0]["lr"])
            history.seconds = time.process_time() - started
            if report is not None:
                report(step, loss)
            if checkpoint is not None and (time.monotonic() - saved > every or step + 1 == n_steps):
                save_checkpoint(checkpoint, model, optimizer, run, step + 1, history)
                saved = time.monotonic()
    return history


def check_texts(texts: Texts) -> None:
    """Raise a ValueError if there are no texts, or not a label for each."""
    if len(texts.ids) == 0:
        raise ValueError("no texts; expected at least one. Try to look at what was cut or filtered away before.")
    if len(texts.ids) != len(texts.labels):
        raise ValueError(
            f"{len(texts.ids)} texts and {len(texts.labels)} labels; expected a label for each. Try to cut both alike."
        )


def fingerprint(texts: Texts) -> str:
    """Twelve digits that differ if any text or label does; lists and arrays of equal numbers have the same."""
    digest = hashlib.sha256(repr(([*map(int, texts.labels)], [*map(len, texts.ids)])).encode())
    for ids in texts.ids:
        digest.update(repr([*map(int, ids)]).encode())
    return digest.hexdigest()[:12]


def plan(texts: Texts, settings: Settings, seed: int, first: int = 0) -> Iterator[tuple[int, list[int]]]:
    """Number and texts of each step from `first` on. The order of an epoch depends on the seed and its number alone."""
    lengths, step = list(map(len, texts.ids)), 0
    for epoch in range(settings.epochs):
        generator = torch.Generator().manual_seed(1_000_003 * seed + epoch)
        for places in batches(lengths, settings.batch_size, generator):
            if step >= first:
                yield step, places
            step += 1
