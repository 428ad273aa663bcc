"""The first call: a subject with widths, arrays or tensors, masks and a layout with which the layer can be called."""

import inspect
from collections.abc import Callable

import torch
from torch import Tensor, nn

from attnlib.doctor.calling import Subject, first_line
from attnlib.doctor.copies import convert, copy_of
from attnlib.doctor.reading import (
    CONTEXT_WIDTHS,
    HEADS,
    guess_widths,
    read_signature,
    required_masks,
    tries,
    unlike_others,
    without_context,
)
from attnlib.doctor.returned import arrays_in
from attnlib.doctor.seeing import reach


def prepare(layer: Callable, options: dict) -> tuple[Subject | None, Exception | None]:
    """A subject whose call works, or None and the error of the likeliest call.

    Some layers take a context in their signature and do nothing with it, unless they were made for that.
    """
    signature = read_signature(layer)
    subject, error = first_call(layer, options, signature)
    if options["call"] is None and (alone := without_context(layer)) and not (subject and hears_context(subject)):
        other, _ = first_call(layer, options, alone)
        subject, error = (subject, error) if other is None else (other, None)
    if subject is None and isinstance(layer, nn.Module) and options["n"] is None:
        for n in OTHER_LENGTHS:  # last, since each is as much work as all before
            subject, _ = first_call(layer, options | {"n": n}, signature)
            if subject is not None:
                subject.only_with = f"7 tokens raise {first_line(error)}"
                break
    return subject, error


def hears_context(subject: Subject) -> bool:
    """Whether another context gives another answer."""
    if not subject.cross:
        return True
    x, context = subject.inputs()
    with torch.no_grad():
        one, other = (subject.run(x, each)[0] for each in (context, subject.inputs()[1]))
    return not torch.equal(one, other)


def first_call(
    layer: Callable, options: dict, signature: tuple[str, list[str], list[str], str | None]
) -> tuple[Subject | None, Exception | None]:
    """The same, if the layer is called as this reading of its signature says."""
    kind, names, masks, weights = signature
    call = options["call"]
    if call is not None:
        count = len(inspect.signature(call).parameters)
        kind, masks, weights = {4: "context", 5: "qkv"}.get(count, "self"), (["mask"] if count > 2 else []), None
    layer = copy_of(layer)
    subject = Subject(layer, kind, names, masks, weights, call=call)
    layouts = layouts_of(subject, options["batch_first"])
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
                error = settle(subject, layouts)
                if error is None:
                    return subject, None
                first = first or error
    subject.d_model, subject.d_context = pairs[0]
    return None, first


def layouts_of(subject: Subject, stated: bool | None) -> list[bool]:
    """Values of ``batch_first`` to try: what was stated, or what PyTorch's own layer says of itself, or the batch first.

    A layer of one's own is tried the other way as well if anything inside it is declared as [n, batch, d].
    """
    layer = subject.layer
    if stated is not None:
        return [stated]
    inner = layer.layers[0] if isinstance(layer, (nn.TransformerEncoder, nn.TransformerDecoder)) else layer
    own = getattr(inner, "batch_first", getattr(getattr(inner, "self_attn", None), "batch_first", None))
    if own is not None and (type(layer).__module__.startswith("torch.nn") or subject.call is not None):
        return [own]
    parts = layer.modules() if subject.is_module and subject.call is None else ()
    return [True, False] if any(getattr(each, "batch_first", None) is False for each in parts) else [True]


def settle(subject: Subject, layouts: list[bool]) -> Exception | None:
    """Take the first layout with which the layer can be called and its tokens, not its sequences, reach each other."""
    first, works = None, []
    for subject.batch_first in layouts:
        try:
            fits(subject)
            if len(layouts) == 1:
                heads_or_tokens(subject)
                return None
            works.append(subject.batch_first)
            with torch.no_grad():
                tokens, sequences = reach(subject)
            if tokens and not sequences:
                return None
        except Exception as error:
            first = first or error
    subject.batch_first = works[0] if works else True
    return None if works else first


def heads_or_tokens(subject: Subject) -> None:
    """For a function of four axes: which of them is the heads'? That over which it does not attend."""
    if subject.axes == 4:
        subject.heads_second = reach(subject)[0]
        subject.heads_second = subject.heads_second or not reach(subject)[0]


OTHER_LENGTHS = (9, 8, 16, 10, 12, 25, 32, 49, 50, 64, 128, 196, 197, 256)  # of windows, images, tables
FORMS = [(False, 3), (True, 3), (False, 4), (True, 4), (False, 2), (True, 2)]  # arrays or not, number of axes


def fits(subject: Subject) -> None:
    """Call once; raise if the result is not one that the doctor can read."""
    with torch.no_grad():
        raw = []
        if not subject.is_module and subject.call is None:  # a function that turns tensors into arrays wants arrays
            plain, subject.layer = subject.layer, lambda *args, **named: raw.append(plain(*args, **named)) or raw[-1]
            try:  # NumPy takes tensors, now and then, but none that carry gradients
                with torch.set_grad_enabled(not subject.numpy):
                    output, _ = subject.run(*(each.requires_grad_(not subject.numpy) for each in subject.inputs()))
            finally:
                subject.layer = plain
            if all(isinstance(each, Tensor) for each in arrays_in(raw[0])) == subject.numpy:
                raise TypeError(f"returned {type(raw[0]).__name__}")
        else:
            output, _ = subject.run(*subject.inputs())
    if output.ndim < 2 or len(output) != subject.batch:
        raise ValueError(f"returned shape {list(output.shape)} for a batch of {subject.batch}")
