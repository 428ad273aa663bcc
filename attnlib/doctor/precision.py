"""Half precision: the same result within rounding."""

import torch

from attnlib.doctor.calling import first_line
from attnlib.doctor.chart import Chart
from attnlib.doctor.conventions import Slot
from attnlib.doctor.copies import copy_of
from attnlib.doctor.derivatives import NO_TORCH
from attnlib.doctor.report import Finding, NotExamined, Passed, found
from attnlib.doctor.seeing import size_of

HALF = {torch.float16: 2e-2, torch.bfloat16: 1e-1}  # relative to the size of the result


def half_probe(chart: Chart) -> list:
    """float16 and bfloat16, without a mask and with each: finite, and near the result in float64."""
    subject, probe = chart.subject, "half precision"
    if subject.numpy:
        return large_scores(chart) or [
            NotExamined(probe, "NumPy has no bfloat16, and few functions take float16.", NO_TORCH)
        ]
    sequences = subject.inputs()
    results = [] if chart.blind else large_scores(chart)
    cases: list = [(None, None)]
    for slot in chart.slots:
        if slot.verdict == "respected":
            cases.append((slot, chart.trial(slot, sequences[1 if subject.cross and slot.on_context else 0].shape[1])))
    exact = [subject.run(*sequences, masks=made(case, subject.dtype))[0].double() for case in cases]
    widest, kept = 0.0, (subject.layer, subject.dtype)
    for dtype, tolerance in HALF.items():
        name = str(dtype).removeprefix("torch.")
        try:
            if subject.is_module:  # a plain conversion: what it does not reach shows here
                subject.layer = copy_of(chart.original).to("cpu", dtype).eval()
            subject.dtype = dtype
            given = [each.to(dtype) for each in sequences]
            outputs = [subject.run(*given, masks=made(case, dtype))[0] for case in cases]
        except Exception as error:
            if not subject.is_module and "overflow" not in str(error):
                return [
                    NotExamined(
                        probe, f"{name} raises {first_line(error)}.", "If it calls a layer, examine that layer."
                    )
                ]
            results.append(half_error(error, name, probe))
            continue
        finally:
            subject.layer, subject.dtype = kept
        for (slot, _), output, wanted in zip(cases, outputs, exact):
            if output.dtype != dtype:
                wider = str(output.dtype).removeprefix("torch.")
                results.append(
                    found("result in another dtype", probe, f"{name} goes in, {wider} comes out: 16 bits to 32")
                )
            gap = float((output.double() - wanted).abs().nan_to_num(nan=torch.inf).max()) / size_of(wanted)
            if gap == torch.inf:
                where = f" with {slot.name}" if slot else ""
                results.append(
                    found("half precision fails", probe, f"{name}{where} gives NaN or infinity, float64 does not")
                )
            elif gap > tolerance:
                seen = f"{name} differs by {gap:.1%} of the result's size, rounding explains {tolerance:.0%}"
                results.append(found("half precision is inaccurate", probe, seen))
            widest = max(widest, gap)
    return results or [Passed(probe, f"float16 and bfloat16 differ by at most {widest:.1%} of the result's size")]


def large_scores(chart: Chart) -> list[Finding]:
    """Scores in the thousands, as they come about in training: finite, if softmax subtracts the largest."""
    subject = chart.subject
    share = 1.0
    if all(subject.run(*subject.inputs())[0].isfinite().all() for _ in range(2)):
        output = subject.run(*(each * 1000 for each in subject.inputs()))[0]
        share = float((~output.isfinite()).double().mean())
        if share:
            seen = f"for inputs 1000 times as large {share:.0%} of the result is NaN or infinite, in {subject.dtype}"
            return [found("large scores overflow", "large scores", seen.replace("torch.", ""))]
    return []


def made(case: tuple[Slot | None, torch.Tensor | None], dtype: torch.dtype) -> dict:
    """The masks of one case as the layer takes them."""
    slot, allowed = case
    return {} if slot is None else {slot.name: slot.make(allowed, dtype)}


def half_error(error: Exception, name: str, probe: str) -> Finding:
    """An error in half precision: a fill that does not exist there, or something else."""
    text = first_line(error)
    if "overflow" in text:
        return found("fill too large for float16", probe, f"{name}, largest 65504: {text}")
    return found("half precision fails", probe, f"{name} raises {text}")
