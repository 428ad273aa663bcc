"""``examine``: checks its arguments, calls the probes one after another, and gathers what they say."""

import contextlib
import functools
from collections.abc import Callable
from dataclasses import replace

import torch

from attnlib.doctor import (
    batches,
    behaviour,
    blocks,
    caching,
    derivatives,
    masking,
    mechanism,
    numerics,
    precision,
    rotary,
    structure,
)
from attnlib.doctor.arguments import check_arguments
from attnlib.doctor.calling import LayerError, first_line
from attnlib.doctor.calm import calm
from attnlib.doctor.chart import Chart
from attnlib.doctor.conventions import find_slot
from attnlib.doctor.preparing import prepare
from attnlib.doctor.reading import TARGETS, left_out, of_context, read_signature
from attnlib.doctor.report import Finding, NotExamined, Passed, Report, found
from attnlib.doctor.returned import UnreadableError

MASK = "does the mask hide"
PROBES = [
    ("shape of the result", behaviour.shape_probe),
    ("eval is deterministic", numerics.random_probe),
    ("does the future leak", behaviour.future_probe),
    (MASK, masking.mask_probe),
    ("a fully masked row", masking.empty_row_probe),
    ("rows sum to 1", mechanism.weights_probe),
    ("heads and projections", mechanism.heads_probe),
    ("norm over features, not over time", blocks.norm_probe),
    ("residual connections", blocks.residual_probe),
    ("order of the tokens", batches.order_probe),
    ("place in the batch, and its size", batches.batch_probe),
    ("sequences stay apart in training", numerics.training_probe),
    ("dropout in training", numerics.dropout_probe),
    ("gradients", derivatives.gradient_probe),
    ("half precision", precision.half_probe),
    ("rotary", rotary.rotary_probe),
    ("tokens behind a cache", caching.cache_probe),
]
WITH_GRADIENTS = {"gradients"}
AS = {True: "as its own batch_first=False says; pass batch_first=True if it should not", False: "as stated"}


def examine(
    layer: Callable,
    *,
    d_model: int | None = None,
    d_context: int | None = None,
    mask: str | None = None,
    causal: bool | None = None,
    positions: bool | None = None,
    batch_first: bool | None = None,
    call: Callable | None = None,
    n: int | None = None,
    batch: int | None = None,
    seed: int = 0,
) -> Report:
    """Examine a layer or a function of attention.

    Parameters
    ----------
    layer : nn.Module or function
        Called with [batch, n, d_model], or with [n, batch, d_model] as ``batch_first`` says: one sequence, or query, key
        and value, or a sequence and its context. A function takes tensors or NumPy arrays, [batch, n, d],
        [batch, heads, n, d] or [n, d]. The output may stand in a tuple, a dict, a dataclass or another object.
    d_model, d_context : int, optional
        Widths of the sequence and of its context; guessed from the layer's attributes and weights if not given.
    mask : "may attend", "ignore", "keep 1" or "additive", optional
        What the layer's masks mean: True = may attend; True = ignore; 1 = keep, 0 = hide; added to the scores. If not given,
        the doctor tries them and says which works; then it cannot know whether a mask is inverted.
    causal : bool, optional
        Whether tokens must not see later ones. If not given, a layer that never does is taken to be causal.
    positions : bool, optional
        Whether the layer is meant to know the order of its tokens. If not given, it is reported, not judged.
    batch_first : bool, optional
        Whether the batch is the first axis. If not given, PyTorch's own layers are asked; a layer that holds one declared as
        [n, batch, d_model] is given that order if only then its tokens, and not its sequences, see each other.
    call : function, optional
        How to call the layer, for one that takes something else: ``call(layer, x)``, ``call(layer, x, mask)``,
        ``call(layer, query, context, mask)`` or ``call(layer, query, key, value, mask)``, where the mask is boolean
        [batch, n_query, n_key], True = may attend, or None. Returns the output, or the output and the weights.
    n : int, optional
        How many tokens to try; 7, or what no other axis has, so that none is taken for another.
    batch : int, optional
        How many sequences; 3 if not given, or 5 for a layer of 3 heads.
    seed : int
        Of the random numbers that go in.

    Returns
    -------
    report : Report
        ``print(report)``, or the last line of a cell; ``report.findings``, ``report.to_dict()``.

    Raises
    ------
    ValueError
        If the layer cannot be called at all, or an argument makes no sense. What the layer itself raises is a finding.

    Notes
    -----
    Everything is tried in float64 on the CPU, on a copy, in eval mode where not said otherwise; two results differ if they do
    by more than 1e-9 of their size (1e-4 if the layer works in float32 only). What could not be tried is listed with the
    reason. Nothing found does not prove a layer right.
    """
    layer = getattr(layer, "_orig_mod", layer)  # of torch.compile
    check_arguments(layer, d_model, d_context, mask, causal, positions, batch_first, call, n, batch)
    options = {"d_model": d_model, "d_context": d_context, "call": call, "n": n, "batch": batch, "seed": seed}
    options["batch_first"] = batch_first
    named = layer.func if isinstance(layer, functools.partial) else layer
    report = Report(getattr(named, "__name__", type(named).__name__))
    with calm():
        chart = Chart(None, layer, stated_causal=causal, positions=positions)
        gather(report, "what PyTorch can see of the module", structure.structure_probe, chart)
        try:
            chart.subject, error = prepare(layer, options)
        except Exception as failed:  # the copy itself, or a signature that cannot be read
            chart.subject, error = None, failed
        if chart.subject is None:
            not_called(report, error, options, layer)
            return report.sort()
        with torch.no_grad():
            names = chart.subject.mask_names
            if (
                chart.subject.names[-1] in TARGETS
            ):  # encoder and decoder in one: masks of the source cannot be told apart
                names = [name for name in names if name.startswith(TARGETS[:3])]
                remedy = "Examine the encoder and the decoder by themselves."
                report.not_examined.append(NotExamined("masks of the source", "an encoder stands before it.", remedy))
            absent = [name for name in names if chart.subject.kind == "self" and len(names) > 1 and of_context(name)]
            remedy = "Pass call=lambda layer, query, context, mask: ..."
            report.not_examined += [NotExamined(f"{MASK}: {name}", "no context is given.", remedy) for name in absent]
            names = [name for name in names if name not in absent]
            if chart.subject.only_with:
                seen = f"{chart.subject.only_with}; with {chart.subject.n_key} it works"
                report.findings.append(found("one number of tokens only", "a first call", seen))
            chart.slots = [find_slot(chart.subject, name, "may attend" if call else mask) for name in names]
        for name, probe in PROBES:
            if any(finding.fault == "random in eval" for finding in report.findings):
                report.not_examined.append(
                    NotExamined(name, "results are random even in eval mode.", "Mend that first.")
                )
            else:
                gather(report, name, probe, chart)
        report.assumed = assumptions(chart, batch_first)
    return report.sort()


def not_called(report: Report, error: Exception, options: dict, layer: Callable) -> None:
    """Put into a report that the first call failed, and what might help."""
    remedy = "Pass d_model=, or call=lambda layer, x, mask: ..., that calls it as it wants."
    reason = "the layer could not be called."
    if isinstance(error.__cause__, UnreadableError):
        reason = f"it {error.__cause__}."
        remedy = "Pass call=lambda layer, x: ..., that takes the output out of it."
    else:
        seen = f"{first_line(error)} ({tried(options)})"
        finding = found("the layer raises", "a first call", seen, what_it_got(layer, options, error))
        report.findings.append(finding if options["call"] else replace(finding, severity="warning"))
    if "indices" in str(error):
        remedy = "It wants token ids: examine the layers behind its embedding, or pass call=, which starts there."
    report.not_examined += [NotExamined(name, reason, remedy) for name, _ in PROBES]


def gather(report: Report, name: str, probe: Callable, chart: Chart) -> None:
    """Make one probe, and put what it says where it belongs; what the layer raises is a finding."""
    try:
        with contextlib.nullcontext() if name in WITH_GRADIENTS else torch.no_grad():
            results = probe(chart)
    except LayerError as error:
        results = [found("the layer raises", name, str(error))]
    except Exception as error:  # not the layer's fault, and no reason to lose the other probes
        results = [NotExamined(name, f"the doctor itself failed ({first_line(error)}).", "Please report it.")]
    for result in results:
        kinds = {Finding: report.findings, Passed: report.passed, NotExamined: report.not_examined}
        kinds[type(result)].append(result)


def what_it_got(layer: Callable, options: dict, error: Exception) -> str:
    """What a layer that raised was given, and what it may have missed: the call may be wrong, not the layer."""
    if options["call"] is not None:
        return "The layer, or the function call= that calls it, stops with this error. Try call(layer, x) by itself."
    names, missing = read_signature(layer)[1], left_out(layer)
    if "CUDA" in str(error):
        return "A device is written into the layer: give what it makes device=x.device, and register what it keeps."
    lines = [f"It was given `{'`, `'.join(names)}` alone, and stops. If it needs more, this is no fault of the layer."]
    if missing:
        likely = [name for hint in ("emb", "rot", "freq", "cos", "pos") for name in missing if hint in name]
        extra = (likely or missing)[0]
        lines.append(f"It did not get `{'`, `'.join(missing)}`: pass call=lambda layer, x: layer(x, {extra}=...).")
    lines.append("A fixed number of tokens: pass n=. Images [batch, channels, h, w]: pass n=9, d_model= the channels,")
    lines.append("call=lambda layer, x: layer(x.mT.unflatten(-1, (3, 3))).flatten(2).mT.")
    return " ".join(lines)


def tried(options: dict) -> str:
    """What the first call gave the layer, in words."""
    width = f"d_model={options['d_model']}" if options["d_model"] else "guessed widths"
    return f"tried float64 and float32 [batch, n, d_model] with {width}"


def assumptions(chart: Chart, batch_first: bool | None) -> list[str]:
    """What was taken for granted, in words."""
    subject = chart.subject
    takes = {"self": "one sequence", "qkv": "query, key and value", "context": "a sequence and a context"}[subject.kind]
    takes += f" (`{'`, `'.join(subject.names)}`)" if subject.call is None else " (by call)"
    sizes = f"[{subject.batch}, {subject.n_query}, {subject.d_model}]"
    layout = "" if subject.batch_first else f", given as [n, batch, d_model], {AS[batch_first is None]}"
    kind = "NumPy arrays" if subject.numpy else "tensors"
    if subject.axes == 4:
        layout = f", as [batch, {'heads, n' if subject.heads_second else 'n, heads'}, d_head] with 2 heads"
    lines = [f"It takes {takes} ({kind} {sizes}{layout}), in {str(subject.dtype).removeprefix('torch.')}."]
    if subject.required:
        nothing = "None" if subject.empty_mask == 0 else "a mask that is True everywhere"
        lines.append(f"Where nothing is to be hidden, `{'`, `'.join(subject.required)}` gets {nothing}.")
    lines += [f"Mask {slot.words()}." for slot in chart.slots if slot.verdict != "raises"]
    if chart.stated_causal is None:
        lines.append(
            f"It is {'causal' if chart.causal else 'not causal'} (found by trying; pass causal=True or False to state it)."
        )
    return lines
