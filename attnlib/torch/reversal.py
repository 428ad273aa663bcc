"""The task of lesson 09: turn a short sequence around, with any layers between embedding and reader."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlib.torch.blocks import LayerNorm


class Reverser(nn.Module):
    """Symbols and places become vectors, layers work on them, and a linear reader names a symbol at each place.

    Parameters
    ----------
    layers : modules, each from [..., n, d_model] to the same shape
    d_model : int
    n_symbols, n : int
        How many symbols there are, and how many places.
    norm : bool
        Whether a layer norm stands behind the last layer, as pre-norm needs it.
    scale : float
        What embedding and places are multiplied by at first.
    """

    def __init__(
        self,
        layers: Iterable[nn.Module],
        d_model: int,
        *,
        n_symbols: int = 8,
        n: int = 8,
        norm: bool = False,
        scale: float = 1.0,
    ):
        super().__init__()
        self.embedding = nn.Embedding(n_symbols, d_model)
        self.places = nn.Embedding(n, d_model)
        self.layers = nn.ModuleList(layers)
        self.norm = LayerNorm(d_model) if norm else nn.Identity()
        self.reader = nn.Linear(d_model, n_symbols)
        with torch.no_grad():
            self.embedding.weight *= scale
            self.places.weight *= scale

    def states(self, symbols: Tensor) -> list[Tensor]:
        """symbols [batch, n], whole numbers, to what stands before the first layer and behind each: [batch, n, d_model]."""
        states = [self.embedding(symbols) + self.places.weight]
        for layer in self.layers:
            states.append(layer(states[-1]))
        return states

    def forward(self, symbols: Tensor) -> Tensor:
        """symbols [batch, n] to a score for each symbol at each place, [batch, n, n_symbols]."""
        return self.reader(self.norm(self.states(symbols)[-1]))


class Trained(NamedTuple):
    """What training left: after how many steps it was measured, the loss of that step, and the share of right answers."""

    steps: list[int]
    losses: list[float]
    accuracies: list[float]


def train_reversal(
    model: Reverser,
    *,
    rate: float = 0.003,
    n_steps: int = 100,
    every: int = 20,
    batch: int = 64,
    seed: int = 0,
    report: Callable[[float, float], None] | None = None,
) -> Trained:
    """Train a model with Adam to report the sequence backwards, on fresh sequences in every step.

    Parameters
    ----------
    model : Reverser
        Changed in place.
    rate : float
        Learning rate.
    n_steps, every, batch : int
        Steps, how often the accuracy is measured (on 500 fresh sequences), and sequences in a step.
    seed : int
        Of the sequences. That of the weights is the caller's.
    report : function of step and loss, optional

    Returns
    -------
    trained : Trained
    """
    generator = torch.Generator().manual_seed(seed)
    n, n_symbols = model.places.num_embeddings, model.embedding.num_embeddings
    optimiser, result = torch.optim.Adam(model.parameters(), lr=rate), Trained([], [], [])
    for step in range(1, n_steps + 1):
        symbols = torch.randint(n_symbols, (batch, n), generator=generator)
        loss = F.cross_entropy(model(symbols).flatten(0, 1), symbols.flip(1).flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % every == 0:
            symbols = torch.randint(n_symbols, (500, n), generator=generator)
            with torch.no_grad():
                right = model(symbols).argmax(dim=-1) == symbols.flip(1)
            found = step, loss.item(), right.double().mean().item()
            for column, number in zip(result, found):
                column.append(number)
            if report is not None:
                report(step, found[1])
    return result
