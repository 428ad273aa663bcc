"""One way to call every attention: which sequences it takes, which masks, which widths, arrays or tensors.

Everything is guessed from the names of parameters and attributes, then tried. What was guessed is reported.
"""

import inspect
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from attnlib.doctor.reading import TARGETS, parameters_of
from attnlib.doctor.returned import parts_of


class LayerError(Exception):
    """What the examined layer raised, in one line: a finding, as against an error of the doctor's own."""


def first_line(error: BaseException) -> str:
    """An error in one line."""
    if isinstance(error, LayerError):
        return str(error)
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200] if text else 'no message'}"


def state_of(layer: Callable) -> list[tuple[dict, dict]]:
    """The attributes and buffers of all parts of a module, as they stand now."""
    parts = layer.modules() if isinstance(layer, nn.Module) else ()
    return [(held, dict(held)) for part in parts for held in (vars(part), part._buffers)]


def put_back(kept: list[tuple[dict, dict]]) -> None:
    """Undo what a call has set or replaced, so that every call is a first one."""
    for held, before in kept:
        if held.keys() != before.keys() or any(held[name] is not before[name] for name in before):
            held.clear()
            held.update(before)


@dataclass
class Subject:
    """A private copy of what is examined, and how it is called.

    ``kind`` is "self" (one sequence), "qkv" (query, key, value) or "context" (a sequence and a context).
    """

    layer: Callable
    kind: str
    names: list[str]  # of the sequences
    mask_names: list[str] = field(default_factory=list)
    weights_name: str | None = None
    required: list[str] = field(default_factory=list)  # masks that have no default
    empty_mask: int = 0  # what they get where nothing is to be hidden, see `nothing_hidden`
    call: Callable | None = None
    numpy: bool = False
    batch_first: bool = True
    axes: int = 3  # how many axes a function takes
    heads_second: bool = True  # of four axes: [batch, heads, n, d_head], else [batch, n, heads, d_head]
    n_query: int = 7
    n_key: int = 7
    batch: int = 3
    d_model: int = 8
    d_context: int = 8
    dtype: torch.dtype = torch.float64
    forgets: bool = True  # whether the layer is put back, after each call, to what it was before
    only_with: str = ""  # what it raises for other numbers of tokens than the one with which it works
    shared: bool = False  # whether the layer gets the doctor's own tensors, to see if it writes into them
    generator: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(0))

    @property
    def is_module(self) -> bool:
        """Whether it has parameters, modes and children."""
        return isinstance(self.layer, nn.Module)

    @property
    def tolerance(self) -> float:
        """How much two results may differ, relative to their size, before they count as different."""
        return 1e-9 if self.dtype == torch.float64 else 1e-4

    @property
    def cross(self) -> bool:
        """Whether keys come from another sequence than the queries."""
        return self.kind != "self"

    def draw(self, n: int | None = None, width: int | None = None, batch: int | None = None) -> Tensor:
        """Random numbers [batch, n, width], by default a sequence that asks."""
        sizes = (batch or self.batch, n or self.n_query, width or self.d_model)
        return torch.randn(sizes, generator=self.generator, dtype=torch.float64).to(self.dtype)

    def inputs(self) -> list[Tensor]:
        """Random sequences: [batch, n_query, d_model], and [batch, n_key, d_context] where there is a context."""
        return [self.draw()] + ([self.draw(self.n_key, self.d_context)] if self.cross else [])

    def run(self, *sequences: Tensor, masks: dict[str, Tensor] | None = None, weights: bool = False) -> tuple:
        """Call the layer on [batch, n, width] tensors: the output as a tensor, and its weights if they were found."""
        kept = state_of(self.layer) if self.forgets else []
        try:
            return self._run(sequences, masks or {}, weights)
        except (Exception, SystemExit) as error:  # a forward that ends the program is a finding, too
            raise LayerError(first_line(error)) from error
        finally:
            put_back(kept)

    def _run(self, sequences: tuple[Tensor, ...], masks: dict[str, Tensor], weights: bool) -> tuple:
        if self.call is not None:
            count = len(inspect.signature(self.call).parameters)
            several = sequences if not self.cross or count < 5 else (*sequences[:2], sequences[-1])
            pass_mask = [masks.get("mask")] if count > 1 + len(several) else []
            result = self.call(self.layer, *map(self.outwards, several), *pass_mask)
            return self.inwards(result)
        given = list(sequences)
        if self.kind == "qkv" and len(given) == 2:
            given.append(given[1])
        if self.kind == "context" and self.names[1] in TARGETS:
            given.reverse()
        if self.axes == 2:
            return self.one_by_one(given, masks)
        named = dict(zip(self.names, map(self.outwards, given)))
        named |= {name: self.nothing_hidden() for name in self.required}
        named |= {name: self.numpy_or_not(mask) for name, mask in masks.items()}
        if weights and self.weights_name:
            named[self.weights_name] = True
            if isinstance(self.layer, nn.MultiheadAttention):
                named["average_attn_weights"] = False
        return self.inwards(self.apply(named))

    def nothing_hidden(self) -> object:
        """No mask, for an argument that has no default: None, or a mask of which everything is True."""
        n_query, n_key = self.n_query, self.n_key
        shapes = [(), (n_query, n_key), (1, n_query, n_key), (n_key,), (1, 1, n_key)]
        if self.empty_mask == 0:
            return None
        return self.numpy_or_not(torch.ones(self.batch, *shapes[self.empty_mask], dtype=torch.bool))

    def apply(self, named: dict) -> object:
        """The call itself, by position for the sequences that stand in front, by name for the rest."""
        places = [each.name for each in parameters_of(self.layer)] or self.names
        in_front = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(self.names, places))
        several = [named.pop(name) for name, _ in in_front]
        return self.layer(*several, **named)

    def one_by_one(self, given: list[Tensor], masks: dict[str, Tensor]) -> tuple:
        """For a function on [n, width]: each sequence of the batch by itself."""
        results = []
        for place in range(len(given[0])):
            parts = {name: self.numpy_or_not(mask[place]) for name, mask in masks.items()}
            results.append(self.inwards(self.layer(*(self.numpy_or_not(each[place]) for each in given), **parts)))
        outputs, weights = zip(*results)
        return torch.stack(outputs), None if weights[0] is None else torch.stack(weights)

    def outwards(self, sequence: Tensor) -> object:
        """[batch, n, width] in the layout of the layer."""
        if self.axes == 4:
            sequence = sequence.unflatten(-1, (2, -1))
            sequence = sequence.transpose(1, 2) if self.heads_second else sequence
        return self.numpy_or_not(sequence if self.batch_first else sequence.transpose(0, 1))

    def numpy_or_not(self, tensor: Tensor) -> object:
        """The tensor, or the array if the layer takes arrays: a copy, which it may change."""
        if self.numpy:
            return tensor.detach().numpy() if self.shared else tensor.detach().numpy().copy()
        return tensor if self.shared else tensor.clone()

    def inwards(self, result: object) -> tuple[Tensor, Tensor | None]:
        """The output and the weights among what was returned, as tensors in the doctor's layout."""
        output, *others = parts_of(result, {self.n_query, self.n_key})
        if self.axes == 4:
            output = (output.transpose(1, 2) if self.heads_second else output).flatten(-2)
        if not self.batch_first and output.ndim == 3:
            output = output.transpose(0, 1)
        maps = [item for item in others if item.ndim >= 2 and item.shape[-1] in (self.n_key, self.n_query)]
        return output, (maps[-1] if maps else None)
