"""Probes that need nothing but calls: change one thing that goes in, and see what changes in what comes out."""

import torch
from torch import Tensor

from attnlib.doctor.calling import LayerError, first_line
from attnlib.doctor.chart import Chart
from attnlib.doctor.conventions import Slot
from attnlib.doctor.looks import future_cut, future_zeroed
from attnlib.doctor.mechanism import watch
from attnlib.doctor.report import Finding, NotExamined, Passed, found
from attnlib.doctor.seeing import influence
from attnlib.doctor.unseen import unseen

EMPTY = "If it should be, pass causal=True."


def shape_probe(chart: Chart) -> list:
    """A row for each query, and nothing written into what was given."""
    subject, probe = chart.subject, "shape of the result"
    sequences = subject.inputs()
    copies = [each.clone() for each in sequences]
    subject.shared = True
    output = subject.run(*sequences)[0]
    subject.shared = False
    results = []
    if not all(map(torch.equal, sequences, copies)):
        gap = max(float((one - other).abs().max()) for one, other in zip(sequences, copies))
        results.append(found("input changed", probe, f"what was given differs by up to {gap:.2f} after the call"))
    if not output.isfinite().all():
        share = float((~output.isfinite()).double().mean())
        results.append(found("result is not finite", probe, f"{share:.0%} of the result is NaN or infinite"))
    rows = output.shape[1] if output.ndim == 3 else None
    if rows == subject.n_key != subject.n_query:
        seen = f"{rows} rows came back for {subject.n_query} queries and {subject.n_key} keys"
        results.append(found("queries come from the context", probe, seen))
    elif rows not in (None, subject.n_query) and not latent_rows(chart, rows):
        results.append(found("wrong shape", probe, f"shape {list(output.shape)} for {subject.n_query} queries"))
    if subject.kind == "qkv" and subject.call is None and not chart.causal:
        try:
            longer = subject.run(subject.draw(subject.n_query - 2), subject.draw(subject.n_key, subject.d_context))[0]
            if longer.shape[1] != subject.n_query - 2:
                seen = f"{longer.shape[1]} rows came back for {subject.n_query - 2} queries and {subject.n_key} keys"
                results.append(found("wrong shape", "unequal lengths", seen))
        except LayerError as error:
            reason = f"{subject.n_query - 2} queries and {subject.n_key} keys raise {first_line(error)}."
            results.append(NotExamined("unequal lengths", reason, "Fine for self-attention alone."))
    return results or [Passed(probe, f"{list(output.shape)} for inputs {[list(each.shape) for each in sequences]}")]


def latent_rows(chart: Chart, rows: int) -> bool:
    """Whether a layer gives as many rows for a longer sequence: its queries are learned, or it pools by several."""
    subject = chart.subject
    if subject.kind != "self":
        return False
    try:
        return subject.run(subject.draw(subject.n_query + 2))[0].shape[1] == rows
    except LayerError:
        return False


def future_probe(chart: Chart) -> list:
    """Does the future leak? One token is changed at a time."""
    subject, probe = chart.subject, "does the future leak"
    results: list = []
    if subject.kind == "context":
        results += context_pattern(chart)
    pattern = influence(chart, 1 if subject.kind == "qkv" else 0)
    chart.pattern = pattern
    if pattern.shape[0] != pattern.shape[1]:
        return [NotExamined(probe, "the result has no row for each token.", "Examine the layer before the pooling.")]
    n = len(pattern)
    square = torch.ones(n, n, dtype=torch.bool)
    own = ~torch.eye(n, dtype=torch.bool)
    expect = chart.stated_causal
    future = pattern & square.triu(1)
    leaks = f"{int(future.sum())} of {n * (n - 1) // 2} pairs where a later token changes an earlier result"
    attended = pattern & own
    if not attended.any():
        return results + unseen(chart)
    if torch.equal(attended, square.triu(1)) or torch.equal(pattern, square.triu(1)):
        chart.causal = False
        past = int((pattern & square.tril(-1)).sum())
        return [
            *results,
            found("only the future is visible", probe, f"{leaks}, {past} where an earlier changes a later one"),
        ]
    if torch.equal(pattern, square.tril(1)):
        return [
            *results,
            found("diagonal off by one", probe, f"{leaks}: in each of the {n - 1} rows the very next token"),
        ]
    if future[0].any() and not future[1:].any():  # the first row alone: it has nothing to attend to, and takes the mean
        hidden = own_hidden(chart, pattern)
        if hidden:
            chart.causal = True
            return [
                *results,
                found("diagonal hidden", probe, f"{hidden}; the first query takes what it finds ({leaks})"),
            ]
    if not future.any() and (expect is not False):
        chart.causal = True
        hidden = own_hidden(chart, pattern)
        if hidden:
            return [*results, found("diagonal hidden", probe, hidden)]
        return [*results, Passed(probe, f"0 of {n * (n - 1) // 2} pairs; the layer is causal")]
    if expect:
        saved = [slot for slot in chart.slots if slot.verdict != "raises" and not leaks_with(chart, slot)]
        if saved:
            seen = f"{leaks} without a mask, 0 with {saved[0].name}"
            return [*results, found("causal only with a mask", probe, seen)]
        return [*results, leak(chart, probe, leaks)]
    return results + with_causal_mask(chart, probe, leaks)


def with_causal_mask(chart: Chart, probe: str, leaks: str) -> list:
    """For a layer that is not causal by itself: does the future leak when it is given a causal mask?"""
    for slot in chart.slots:
        if slot.verdict == "respected" and slot.pairs and (chart.subject.kind != "context" or not slot.on_context):
            n = chart.subject.n_query
            allowed = torch.ones(chart.subject.batch, n, n, dtype=torch.bool).tril()
            masks = {slot.name: slot.make(allowed, chart.subject.dtype)}
            pattern = influence(chart, 1 if chart.subject.kind == "qkv" else 0, masks)
            count = int(pattern.triu(1).sum())
            if count:
                return [
                    found(
                        "future leaks", probe, f"{count} of {n * (n - 1) // 2} pairs although a causal mask was given"
                    )
                ]
            return [
                Passed(
                    probe,
                    f"0 of {n * (n - 1) // 2} pairs with a causal mask in {slot.name} (without one it is not causal)",
                )
            ]
    return [NotExamined(probe, f"it is not causal by itself ({leaks}).", EMPTY)]


def context_pattern(chart: Chart) -> list:
    """Which tokens of the context each query sees: all, unless a causal mask was put there by mistake."""
    pattern = influence(chart, 1)
    if pattern.shape[0] != chart.subject.n_query or pattern.all():
        return []
    if torch.equal(pattern, torch.ones_like(pattern).tril()) and not pattern[0, 1:].any():
        seen = f"query 0 sees 1 of {pattern.shape[1]} tokens of the context, query 1 sees 2, and so on"
        return [found("causal mask on the context", "what is seen of the context", seen)]
    return []


def own_hidden(chart: Chart, pattern: Tensor) -> str:
    """Whether no query sees its own token, though it sees those before: from the pattern, or from the weights."""
    watched, _ = watch(chart.subject, chart.subject.inputs())
    for look in watched.looks:
        weights = look.weights
        if weights.shape[-1] == weights.shape[-2]:
            own, before = weights.diagonal(dim1=-2, dim2=-1)[..., 1:], weights.tril(-1)
            if float(own.abs().max()) < 1e-9 < float(before.abs().max()):
                return f"the weight of every token on itself is {float(own.abs().max()):.1f}, on earlier ones up to {float(before.max()):.2f}"
    own = pattern.diagonal()
    return "0 results change with their own token" if not own.any() else ""


def added_ones(chart: Chart) -> str:
    """Whether the layer adds 1 to the scores of the past: the ratio of two weights without it is e smaller."""
    watched, _ = watch(chart.subject, chart.subject.inputs())
    for look in watched.looks:
        if look.query is None or look.query.shape[:-2] != look.weights.shape[:-2]:
            continue
        scores = look.query @ look.key.transpose(-1, -2)
        n = scores.shape[-1]
        past = torch.ones(scores.shape[-2], n, dtype=scores.dtype).tril()
        for scale in (look.query.shape[-1] ** -0.5, 1.0):
            if torch.allclose(torch.softmax(scores * scale + past, -1), look.weights, atol=1e-7):
                return f"; the past is {torch.e:.3f} times likelier, no more"
    return ""


def leak(chart: Chart, probe: str, leaks: str) -> Finding:
    """The future leaks: by a mask that was added, multiplied or put after the softmax, or it is not known why."""
    cause = added_ones(chart)
    if cause:
        return found("0/1 mask added", probe, leaks + cause)
    watched, _ = watch(chart.subject, chart.subject.inputs())
    if any(future_zeroed(look, watched.calls) for look in watched.looks):
        return found("scores multiplied by the mask", probe, f"{leaks}; their scores are exactly 0")
    if any(future_cut(look.weights, watched.calls) for look in watched.looks):
        return found("mask after the softmax", probe, f"{leaks}, by the sums of softmax, in which they still are")
    return found("future leaks", probe, leaks)


def leaks_with(chart: Chart, slot: Slot) -> bool:
    """Whether the future still leaks when a mask is given that allows everything."""
    n = chart.subject.n_query
    allowed = torch.ones(chart.subject.batch, n, n, dtype=torch.bool)
    pattern = influence(
        chart, 0 if chart.subject.kind == "self" else 1, {slot.name: slot.make(allowed, chart.subject.dtype)}
    )
    return bool((pattern & torch.ones_like(pattern).triu(1)).any())
