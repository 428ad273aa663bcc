"""Probes of what stands around attention in a block: norms and residual connections."""

from attnlib.doctor.chart import Chart
from attnlib.doctor.looks import same
from attnlib.doctor.mechanism import CALL, watch
from attnlib.doctor.report import NotExamined, Passed, found
from attnlib.doctor.watching import ADDS


def norm_probe(chart: Chart) -> list:
    """Whether anything that enters a linear map, or leaves the layer, is normalised over the tokens."""
    subject, probe = chart.subject, "norm over features, not over time"
    if not subject.is_module:
        return [NotExamined(probe, "it has no parameters.", "Examine the module that holds the norm.")]
    watched, output = watch(subject, subject.inputs())
    streams = [call.given[0] for call in watched.calls if call.name == "linear" and call.given[0].ndim == 3] + [output]
    for stream in streams:
        if stream.ndim != 3 or len(stream) != subject.batch or stream.shape[1] < 3 or same(stream[0], stream[1]):
            continue
        means, spreads = stream.mean(1), stream.std(1)
        gaps = [float((each - each[:1]).abs().max() / spreads.abs().max()) for each in (means, spreads)]
        if max(gaps) < 1e-3:
            seen = (
                f"over the {stream.shape[1]} tokens every feature has the same mean and spread in each sequence "
                f"(they differ by {max(gaps):.1e})"
            )
            return [found("norm over time", probe, seen)]
    return [Passed(probe, f"{len(streams)} places measured")]


def residual_probe(chart: Chart) -> list:
    """What the layer adds its changes to: sums of a change, which a linear map or a dropout made, and something as large."""
    subject, probe = chart.subject, "residual connections"
    names = [type(each).__name__.lower() for each in subject.layer.modules()] if subject.is_module else []
    if not any("norm" in name for name in names) or subject.kind != "self":
        return [NotExamined(probe, "it is no block with a norm.", "Examine the whole block, not the attention alone.")]
    sequences = subject.inputs()
    watched, output = watch(subject, sequences)
    calls, x = watched.calls, sequences[0]
    if not watched.looks or output.shape != x.shape:
        return [NotExamined(probe, "no weights, or a result of another shape.", CALL)]
    made = [call.result for call in calls if call.name in ("linear", "dropout", "multi_head_attention_forward")]
    sums = []  # (what is added to, the change, the sum)
    for call in calls:
        if call.name in ADDS and len(call.given) == 2 and call.given[0].shape == call.given[1].shape == x.shape:
            one, other = call.given
            if any(same(other, each) for each in made):
                sums.append((one, other, call.result))
            elif any(same(one, each) for each in made):
                sums.append((other, one, call.result))
    last_look = watched.looks[-1].leaving
    later = [call for call in calls[last_look:] if call.name == "linear"]
    if not sums:
        if len(later) > 2 and not any(call.name in ADDS and call.given[0].shape == x.shape for call in calls):
            seen = f"{len(later)} linear maps follow the attention and 0 sums carry what came before past them"
            return [found("residual missing", probe, seen)]
        return [NotExamined(probe, "no sum was seen; the residual may stand outside.", "Examine the block around it.")]
    base, _, total = sums[-1]
    normed = [call.result for call in calls if call.name == "layer_norm"]
    renormed = any(same(call.given[0], total) for call in calls if call.name == "layer_norm")  # as post-norm does
    read = any(same(call.given[0], base) for call in calls if call.name == "linear")
    if read and not renormed and any(same(base, each) for each in normed):
        return [
            found(
                "residual of the normalised input",
                probe,
                f"what the last change is added to differs from norm(x) by {0.0:.1f}",
            )
        ]
    if len(sums) > 1 and same(base, sums[0][0]) and not same(sums[0][1], sums[-1][1]):
        seen = (
            f"of {len(sums)} sums the last adds to the block's input (they differ by {0.0:.1f}), not to the first sum"
        )
        return [found("residual skips the attention", probe, seen)]
    return [Passed(probe, f"{len(sums)} sums, the last with numbers of size {float(base.abs().max()):.2f}")]
