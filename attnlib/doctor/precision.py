"""Half precision: the same result within rounding."""

import torch

from attnlib.doctor.behaviour import size_of
from attnlib.doctor.calling import copy_of, first_line
from attnlib.doctor.chart import Chart
from attnlib.doctor.numerics import NO_TORCH
from attnlib.doctor.report import Finding, NotExamined, Passed, found

HALF = {torch.float16: 2e-2, torch.bfloat16: 1e-1}  # relative to the size of the result


def half_probe(chart: Chart) -> list:
    """float16 and bfloat16: the same result within rounding, also with a mask."""
    subject, probe = chart.subject, "half precision"
    if subject.numpy:
        return [NotExamined(probe, "NumPy has no bfloat16, and few functions take float16.", NO_TORCH)]
    sequences, results, kept, widest = subject.inputs(), [], (subject.layer, subject.dtype), 0.0
    masks: list = [None] + [slot for slot in chart.slots if slot.verdict == "respected"]
    for slot in masks:
        allowed = (
            None
            if slot is None
            else chart.trial(slot, sequences[1 if subject.cross and slot.on_context else 0].shape[1])
        )
        exact = subject.run(*sequences, masks={slot.name: slot.make(allowed, subject.dtype)} if slot else None)[0]
        for dtype, tolerance in HALF.items():
            name = str(dtype).removeprefix("torch.")
            try:
                if subject.is_module:
                    subject.layer = copy_of(chart.original).to("cpu", dtype).eval()
                subject.dtype = dtype
                given = [each.to(dtype) for each in sequences]
                output = subject.run(*given, masks={slot.name: slot.make(allowed, dtype)} if slot else None)[0]
            except Exception as error:
                if not subject.is_module and "overflow" not in str(error):
                    reason = f"{name} raises {first_line(error)}."
                    return [NotExamined(probe, reason, "If it calls a layer, examine that layer.")]
                results.append(half_error(error, name, probe))
                continue
            finally:
                subject.layer, subject.dtype = kept
            rows = allowed[:, 0].any(-1) if slot else slice(None)
            gap = float((output.double() - exact.double())[rows].abs().nan_to_num(nan=torch.inf).max()) / size_of(exact)
            if gap == torch.inf:
                results.append(
                    found(
                        "half precision fails",
                        probe,
                        f"{name}{' with a mask' if slot else ''} gives NaN or infinity, float64 does not",
                    )
                )
            elif gap > tolerance:
                results.append(
                    found(
                        "half precision is inaccurate",
                        probe,
                        f"{name} differs by {gap:.1%}, rounding explains {tolerance:.0%}",
                    )
                )
            widest = max(widest, gap)
    return results or [Passed(probe, f"float16 and bfloat16 differ by at most {widest:.1%}")]


def half_error(error: Exception, name: str, probe: str) -> Finding:
    """An error in half precision: a fill that does not exist there, or something else."""
    text = first_line(error)
    if "overflow" in text:
        return found("fill too large for float16", probe, f"{name}, largest 65504: {text}")
    return found("half precision fails", probe, f"{name} raises {text}")
