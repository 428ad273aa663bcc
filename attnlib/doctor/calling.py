"""One way to call every attention: which sequences it takes, which masks, which widths, arrays or tensors.

Everything is guessed from the names of parameters and attributes, then tried. What was guessed is reported.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from attnlib.doctor.copies import convert, copy_of
from attnlib.doctor.reading import (
    CONTEXT_WIDTHS,
    HEADS,
    TARGETS,
    guess_widths,
    read_signature,
    required_masks,
    tries,
    unlike_others,
)


class LayerError(Exception):
    """What the examined layer raised, in one line: a finding, as against an error of the doctor's own."""


def first_line(error: Exception) -> str:
    """An error in one line."""
    if isinstance(error, LayerError):
        return str(error)
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200] if text else 'no message'}"


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
    n_query: int = 7
    n_key: int = 7
    batch: int = 3
    d_model: int = 8
    d_context: int = 8
    dtype: torch.dtype = torch.float64
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
        try:
            return self._run(sequences, masks or {}, weights)
        except Exception as error:
            raise LayerError(first_line(error)) from error

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
        """The call itself, by position for the sequences, by name for the rest."""
        several = [named.pop(name) for name in self.names]
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
            sequence = sequence.unflatten(-1, (2, -1)).transpose(1, 2)
        return self.numpy_or_not(sequence if self.batch_first else sequence.transpose(0, 1))

    def numpy_or_not(self, tensor: Tensor) -> object:
        """The tensor, or the array if the layer takes arrays: a copy, which it may change."""
        if self.numpy:
            return tensor.detach().numpy() if self.shared else tensor.detach().numpy().copy()
        return tensor if self.shared else tensor.clone()

    def inwards(self, result: object) -> tuple[Tensor, Tensor | None]:
        """The output and the weights among what was returned, as tensors in the doctor's layout."""
        if isinstance(result, dict):
            result = tuple(result.values())
        items = [item for item in (result if isinstance(result, (tuple, list)) else [result]) if item is not None]
        items = [torch.as_tensor(item) for item in items if isinstance(item, (Tensor, np.ndarray, np.generic))]
        if not items:
            raise TypeError(f"returned {type(result).__name__}, not a tensor or an array")
        output, others = items[0], items[1:]
        if self.axes == 4:
            output = output.transpose(1, 2).flatten(-2)
        if not self.batch_first and output.ndim == 3:
            output = output.transpose(0, 1)
        maps = [item for item in others if item.ndim >= 2 and item.shape[-1] in (self.n_key, self.n_query)]
        return output, (maps[-1] if maps else None)


def prepare(layer: Callable, options: dict) -> tuple[Subject | None, Exception | None]:
    """A subject whose call works, or None and the error of the likeliest call."""
    kind, names, masks, weights = read_signature(layer)
    call = options["call"]
    if call is not None:
        count = len(inspect.signature(call).parameters)
        kind, masks, weights = ("self" if count <= 3 else "qkv"), (["mask"] if count > 2 else []), None
    layer = copy_of(layer)
    subject = Subject(layer, kind, names, masks, weights, call=call)
    inner = layer.layers[0] if isinstance(layer, (nn.TransformerEncoder, nn.TransformerDecoder)) else layer
    subject.batch_first = getattr(inner, "batch_first", getattr(getattr(inner, "self_attn", None), "batch_first", True))
    subject.required = [] if call is not None else required_masks(layer)
    subject.generator.manual_seed(options["seed"])
    subject.batch = options["batch"] or (5 if 3 in guess_widths(layer, HEADS) else 3)
    n = options["n"] or unlike_others(layer, options["d_model"])
    subject.n_query, subject.n_key = (n - 2, n) if kind == "context" else (n, n)
    widths = [options["d_model"]] if options["d_model"] else guess_widths(layer) or [16]
    contexts = [options["d_context"]] if options["d_context"] else guess_widths(layer, CONTEXT_WIDTHS) + widths
    pairs = [(a, b) for a in widths for b in (dict.fromkeys(contexts) if kind != "self" else [a])]
    pairs.sort(key=lambda pair: pair[0] != pair[1] and not options["d_context"])  # equal widths first
    first = None
    for dtype in (torch.float64, torch.float32):
        convert(layer, dtype)
        subject.dtype = dtype
        for subject.d_model, subject.d_context in pairs[:40]:
            forms = FORMS[:1] if subject.is_module or call else FORMS
            for form, empty in tries(forms, subject.required):
                (subject.numpy, subject.axes), subject.empty_mask = form, empty
                try:
                    fits(subject)
                except Exception as error:
                    first = first or error
                    continue
                return subject, None
    subject.d_model, subject.d_context = pairs[0]
    return None, first


FORMS = [(False, 3), (True, 3), (False, 4), (True, 4), (False, 2), (True, 2)]  # arrays or not, number of axes


def fits(subject: Subject) -> None:
    """Call once; raise if the result is not one that the doctor can read."""
    with torch.no_grad():
        raw = []
        if not subject.is_module and subject.call is None:  # a function that turns tensors into arrays wants arrays
            plain, subject.layer = subject.layer, lambda *args, **named: raw.append(plain(*args, **named)) or raw[-1]
            try:
                output, _ = subject.run(*subject.inputs())
            finally:
                subject.layer = plain
            parts = raw[0] if isinstance(raw[0], (tuple, list)) else [raw[0]]
            if isinstance(parts[0], Tensor) == subject.numpy:
                raise TypeError(f"returned {type(parts[0]).__name__}")
        else:
            output, _ = subject.run(*subject.inputs())
    if output.ndim < 2 or len(output) != subject.batch:
        raise ValueError(f"returned shape {list(output.shape)} for a batch of {subject.batch}")
