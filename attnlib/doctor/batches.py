"""Probes with tokens in another order, and with other batches."""

import torch

from attnlib.doctor.calling import LayerError, first_line
from attnlib.doctor.chart import OVER_BATCH, Chart
from attnlib.doctor.report import NotExamined, Passed, found
from attnlib.doctor.seeing import size_of


def order_probe(chart: Chart) -> list:
    """Permute the tokens: without positions the results are permuted alike."""
    subject, probe = chart.subject, "order of the tokens"
    if chart.causal or chart.pattern is None or not chart.pattern.all():
        return [
            NotExamined(probe, "the layer is causal, or tokens do not all see each other.", "Try it without its mask.")
        ]
    sequences = subject.inputs()
    moved = 1 if subject.cross else 0
    order = torch.randperm(sequences[moved].shape[1], generator=subject.generator)
    given = list(sequences)
    given[moved] = given[moved][:, order]
    plain, permuted = (subject.run(*each)[0] for each in (sequences, given))
    expected = plain[:, order] if not subject.cross and plain.ndim == 3 and plain.shape[1] == len(order) else plain
    gap = float((permuted - expected).abs().max()) / size_of(plain)
    matters = gap > max(subject.tolerance, 1e-7)
    if chart.positions is False and matters:
        return [
            found(
                "order matters",
                probe,
                f"permuting the tokens changes results by {gap:.2g} of their size, beyond the order",
            )
        ]
    if chart.positions and not matters:
        return [found("order does not matter", probe, f"permuting the tokens permutes the results, to {gap:.0e}")]
    told = "as stated" if chart.positions is not None else "pass positions=True or False to have it judged"
    return [Passed(probe, f"{'matters' if matters else 'does not matter'} ({gap:.1g} of the size; {told})")]


def batch_probe(chart: Chart) -> list:
    """The same sequence, elsewhere in the batch, by itself, and beside others."""
    subject, probe = chart.subject, "place in the batch, and its size"
    if subject.axes == 2:
        return [NotExamined(probe, "the function takes one sequence.", "Nothing to do.")]
    if chart.over_batch:
        return [NotExamined(probe, *OVER_BATCH)]
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
        parts = subject.layer.named_modules() if subject.is_module else ()
        declared = [name for name, part in parts if getattr(part, "batch_first", None) is False]
        if declared and subject.batch_first and beside > subject.tolerance:
            chart.over_batch = True
            return [found("attention over the batch", probe, f"{seen}; `{declared[0]}` says batch_first=False")]
        return [found("batch size matters", probe, seen)]
    return [Passed(probe, f"changes nothing (at most {max(gap, beside, by_itself):.0e})")]
