"""For a layer whose tokens do not reach each other: what does attention go over?"""

import torch
from torch import nn

from attnlib.doctor.calling import LayerError
from attnlib.doctor.chart import Chart
from attnlib.doctor.copies import copy_of
from attnlib.doctor.mechanism import watch
from attnlib.doctor.report import Finding, NotExamined, found
from attnlib.doctor.seeing import influence, size_of

PROBE = "do tokens see each other"
LEAK = "does the future leak"


def unseen(chart: Chart) -> list:
    """Attention over the batch, over the heads, a gate that is closed, or something unknown."""
    subject = chart.subject
    if subject.kind == "context" and sees(chart):
        return [NotExamined(LEAK, "queries see the context, not each other.", "Nothing to do.")]
    chart.blind = True
    over = over_batch(chart)
    chart.over_batch = over is not None
    over = over or over_heads(chart)
    if over:
        return [over]
    if opens(chart):
        return [NotExamined(LEAK, "no token changes the result of another: a gate is closed.", "Train a step first.")]
    if subject.axes == 4:
        reason = "no token changes another one's result if the axes are [batch, heads, n, d_head]."
        return [NotExamined(LEAK, reason, "If they are others, pass call=lambda layer, x: ...")]
    watched, _ = watch(subject, subject.inputs())
    if watched.looks:  # there is attention over the tokens, and something that keeps its result back
        return [NotExamined(LEAK, "no token changes the result of another.", "Is its result used, or a gate closed?")]
    seen = f"0 of {len(chart.pattern) * (len(chart.pattern) - 1)} pairs in which one token changes another one's result"
    return [found("tokens do not see each other", PROBE, seen)]


def over_batch(chart: Chart) -> Finding | None:
    """Whether the sequences of the batch reach each other."""
    subject = chart.subject
    moved = 1 if subject.cross else 0
    sequences = subject.inputs()
    plain = subject.run(*sequences)[0]
    given = [each.clone() for each in sequences]
    given[moved][0] = subject.draw(*given[moved].shape[1:])[0]
    gap = float((subject.run(*given)[0] - plain)[1:].abs().max())
    if gap <= subject.tolerance * size_of(plain):
        return None
    seen = f"another sequence of the batch changes a result by {gap:.2f}, another token of its own by 0.00"
    return found("attention over the batch", PROBE, seen)


def over_heads(chart: Chart) -> Finding | None:
    """Whether weights were made that compare the heads of one token: [batch, n, heads, heads], or these folded."""
    subject = chart.subject
    if subject.axes == 4:  # a function of heads may have its axes in another order
        return None
    watched, _ = watch(subject, subject.inputs())
    for call in watched.calls:
        if call.name not in ("softmax", "scaled_dot_product_attention"):
            continue
        weights = call.given[-1] if call.name != "softmax" else call.result
        *leading, rows, columns = (1, 1, *weights.shape)
        lengths = {subject.n_query, subject.n_key}
        if rows != columns or rows < 2 or rows in lengths:
            continue
        places = weights[..., 0, 0].numel()
        if places in {subject.batch * n for n in lengths} or any(leading[-2:] == [subject.batch, n] for n in lengths):
            seen = f"weights {list(weights.shape)}: each of the {rows} heads of a token attends to its {rows} heads"
            return found("attention over the heads", PROBE, f"{seen}, 0 tokens to another")
    return None


def opens(chart: Chart) -> bool:
    """Whether tokens see each other once parameters that are 0 throughout, gates and last maps, have other values."""
    subject = chart.subject
    if not subject.is_module:
        return False
    kept, subject.layer = subject.layer, copy_of(subject.layer)
    closed = [each for each in subject.layer.parameters() if not each.any()]
    for each in closed:
        nn.init.uniform_(each.data, 0.5, 1.0, generator=subject.generator)
    try:
        return bool(closed) and sees(chart)
    except LayerError:
        return False
    finally:
        subject.layer = kept


def sees(chart: Chart) -> bool:
    """Whether any token changes another's result; of a context, whether any token of it changes any result."""
    pattern = influence(chart, 1 if chart.subject.cross else 0)
    if chart.subject.kind != "context":
        pattern = pattern & ~torch.eye(*pattern.shape, dtype=torch.bool)
    return bool(pattern.any())
