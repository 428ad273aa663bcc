"""Probes with masks of nothing at all, other orders and other batches."""

import torch
from torch import nn

from attnlib.doctor.behaviour import size_of
from attnlib.doctor.calling import LayerError, first_line
from attnlib.doctor.chart import Chart
from attnlib.doctor.conventions import LENGTHS, Slot
from attnlib.doctor.report import NotExamined, Passed, found


def empty_row_probe(chart: Chart) -> list:
    """What a query gets that may attend to nothing: zeros, or whatever the layer adds to zeros; not NaN, not a mean."""
    probe = "a fully masked row"
    slots = [slot for slot in chart.slots if slot.verdict in ("respected", "leaks") and slot.form != LENGTHS]
    if not slots:
        reason = "no mask that works." if chart.slots else "no argument that looks like a mask."
        return [NotExamined(probe, reason, "See: does the mask hide.")]
    return [empty_row(chart, slot, f"{probe}: {slot.name}") for slot in slots]


def empty_row(chart: Chart, slot: Slot, probe: str):
    """The same for one mask argument."""
    subject = chart.subject
    sequences = subject.inputs()
    moved = 1 if subject.cross and slot.on_context else 0
    n = sequences[moved].shape[1]
    allowed = torch.ones(subject.batch, subject.n_query, n, dtype=torch.bool)
    row = 2 if slot.pairs and moved == 0 else slice(None)  # in a stack, rows reach the context through each other
    allowed[: subject.batch if slot.form.startswith("[n_query") else 1, row] = False
    masks = {slot.name: slot.make(allowed, subject.dtype)}
    try:
        output = subject.run(*sequences, masks=masks)[0]
    except LayerError as error:
        return found("the layer raises", probe, f"for a row with nothing to attend to: {first_line(error)}")
    mine = output[0, 2] if output.ndim == 3 else output[0]
    if not mine.isfinite().all():
        where = "one query" if slot.pairs else "one sequence"
        seen = f"{where} may attend to nothing: {nan_share(mine)} of its result is NaN{other_paths(chart, sequences, masks)}"
        return found("fully masked row gives NaN", probe, seen, OF_TORCH if of_torch(subject.layer) else "")
    given = [each.clone() for each in sequences]
    kept = given[moved][0, 2].clone()
    given[moved][0] = subject.draw(*given[moved].shape[1:])[0]
    if moved == 0 and output.ndim == 3:
        given[moved][0, 2] = kept
    if moved == 0 and output.ndim == 2:
        return Passed(probe, "finite")
    again = subject.run(*given, masks=masks)[0]
    gap = float((again - output)[0, 2].abs().max()) if output.ndim == 3 else float((again - output)[0].abs().max())
    if gap > subject.tolerance * size_of(output) and slot.verdict == "respected":
        return found("fully masked row is not empty", probe, f"tokens that it may not see change its result by {gap:.2g}")
    return Passed(probe, "finite, and the same whatever stands there")


def of_torch(layer: object) -> bool:
    """Whether a layer is one of PyTorch's own."""
    return type(layer).__module__.startswith("torch.nn")


def other_paths(chart: Chart, sequences: list[torch.Tensor], masks: dict) -> str:
    """For PyTorch's own layers, which compute on several paths: what the same mask gives on the others, in words."""
    subject, paths = chart.subject, []
    if not of_torch(subject.layer):
        return ""
    with torch.enable_grad():
        output = subject.run(*sequences, masks=masks)[0]
    paths.append(f"with gradients on, {nan_share(output[0, 2])}")
    if isinstance(subject.layer, nn.MultiheadAttention):
        tokens, batch = sequences[0], 0 if subject.batch_first else 1
        tokens = tokens.transpose(0, batch)
        for mode, words in ((torch.no_grad, "without"), (torch.enable_grad, "with")):
            with mode():
                result = subject.layer(tokens, tokens, tokens, **masks, need_weights=False)[0].transpose(0, batch)
            paths.append(f"as self-attention with need_weights=False {words} gradients, {nan_share(result[0, 2])}")
    return f"; {'; '.join(paths)}"


OF_TORCH = (
    "PyTorch's own layer does this: softmax of a row of −inf is 0 / 0, and its paths differ (measured above on this version: "
    "a fast one in eval mode without gradients, the fused kernel, and the one that returns weights). Never pass a sequence "
    "that is padding throughout, or set its result to 0 with torch.where."
)


def nan_share(values: torch.Tensor) -> str:
    """The share that is not finite, in percent."""
    return f"{float((~values.isfinite()).double().mean()):.0%}"


def order_probe(chart: Chart) -> list:
    """Permute the tokens: without positions the results are permuted alike."""
    subject, probe = chart.subject, "order of the tokens"
    if chart.causal or chart.pattern is None or not chart.pattern.all():
        return [NotExamined(probe, "the layer is causal, or tokens do not all see each other.", "Try it without its mask.")]
    sequences = subject.inputs()
    moved = 1 if subject.cross else 0
    order = torch.randperm(sequences[moved].shape[1], generator=subject.generator)
    given = list(sequences)
    given[moved] = given[moved][:, order]
    plain, permuted = (subject.run(*each)[0] for each in (sequences, given))
    expected = plain[:, order] if not subject.cross and plain.ndim == 3 else plain
    gap = float((permuted - expected).abs().max()) / size_of(plain)
    matters = gap > max(subject.tolerance, 1e-7)
    if chart.positions is False and matters:
        return [found("order matters", probe, f"permuting the tokens changes results by {gap:.2g} of their size, beyond the order")]
    if chart.positions and not matters:
        return [found("order does not matter", probe, f"permuting the tokens permutes the results, to {gap:.0e}")]
    told = "as stated" if chart.positions is not None else "pass positions=True or False to have it judged"
    return [Passed(probe, f"{'matters' if matters else 'does not matter'} ({gap:.1g} of the size; {told})")]


def batch_probe(chart: Chart) -> list:
    """The same sequence, elsewhere in the batch, by itself, and beside others."""
    subject, probe = chart.subject, "place in the batch, and its size"
    if subject.axes == 2:
        return [NotExamined(probe, "the function takes one sequence.", "Nothing to do.")]
    sequences = subject.inputs()
    plain = subject.run(*sequences)[0]
    turned = subject.run(*(each.flip(0) for each in sequences))[0].flip(0)
    size = size_of(plain)
    gap = float((turned - plain).abs().max()) / size
    if gap > subject.tolerance:
        same = [each[:1].expand_as(each) for each in sequences]
        spread = subject.run(*same)[0]
        spread = float((spread - spread[:1]).abs().max()) / size
        seen = f"in another order of the batch results change by {gap:.2g} of their size"
        if spread > subject.tolerance and chart.pattern is not None:
            seen = f"{subject.batch} equal sequences get results that differ by {spread:.2g} of their size"
            return [found("positions from the batch axis", probe, seen)]
        return [found("place in the batch matters", probe, seen)]
    other = [each.clone() for each in sequences]
    for each in other:
        each[1:] = subject.draw(*each.shape[1:])[1:]
    beside = float((subject.run(*other)[0] - plain)[0].abs().max()) / size
    try:
        alone = subject.run(*(each[:1] for each in sequences))[0]
    except LayerError as error:
        return [found("batch size matters", probe, f"a batch of 1 raises {first_line(error)}")]
    by_itself = float((alone - plain[:1]).abs().max()) / size
    if max(beside, by_itself) > subject.tolerance:
        seen = f"a sequence changes by {beside:.2g} of its size with others beside it, by {by_itself:.2g} alone"
        return [found("batch size matters", probe, seen)]
    return [Passed(probe, f"changes nothing (at most {max(gap, beside, by_itself):.0e})")]
