"""Probes of what stands around attention in a block: norms and residual connections."""

from torch import Tensor

from attnlib.doctor.chart import Chart
from attnlib.doctor.looks import same
from attnlib.doctor.mechanism import CALL, watch
from attnlib.doctor.report import NotExamined, Passed, found
from attnlib.doctor.watching import ADDS, Call, Look


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
        sizes, tokens = stream.square().mean(1).sqrt(), stream.square().mean(2).sqrt()
        rms = float((sizes - sizes[:1]).abs().max() / sizes.abs().max())  # RMS norm has no mean
        gaps = [rms] if rms < 1e-3 else gaps
        whole = stream.square().mean((1, 2)).sqrt()
        if (
            float((whole - whole[:1]).abs().max())
            < 1e-3 * float(whole.max())
            < 1e-2 * float(tokens.max() - tokens.min())
        ):
            seen = f"all {stream.shape[1]} tokens together have size {float(whole[0]):.3f} in each sequence, one by one they differ"
            return [found("norm over time", probe, seen)]
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
    if subject.kind != "self":
        return [NotExamined(probe, "a context is given.", "Examine it without one: call=lambda layer, x: ...")]
    if not any("norm" in name for name in names):
        return [NotExamined(probe, "it is no block with a norm.", "Examine the whole block, not the attention alone.")]
    sequences = subject.inputs()
    watched, output = watch(subject, sequences)
    calls, x = watched.calls, sequences[0]
    if not watched.looks or output.shape != x.shape:
        return [NotExamined(probe, "no weights, or a result of another shape.", CALL)]
    made = [call.result for call in calls if call.name in ("linear", "dropout", "multi_head_attention_forward")]
    sums = sums_of(calls, made, x)
    last_look = watched.looks[-1].leaving
    later = [call for call in calls[last_look:] if call.name == "linear"]
    if not sums:
        if len(later) > 2 and not any(call.name in ADDS and call.given[0].shape == x.shape for call in calls):
            seen = f"{len(later)} linear maps follow the attention and 0 sums carry what came before past them"
            return [found("residual missing", probe, seen)]
        return [
            NotExamined(
                probe,
                "no sum with what a linear map made was seen; it may stand outside.",
                "Examine the block around it.",
            )
        ]
    lost = lost_before(calls, sums, watched.looks, x, output)
    if lost:
        return [found("residual missing", probe, lost)]
    base, _, _ = sums[-1]
    for place, (added_to, _, total) in enumerate(sums):
        if (
            place < len(sums) - 1 and len(watched.looks) > 1
        ):  # the first layer of a model reads its normalised embedding
            continue
        norms = [call for call in calls if call.name == "layer_norm"]
        streams = [each for each, _, _ in sums[place + 1 :]] + [output]
        renormed = any(
            same(n.given[0], total) and any(same(n.result, s) for s in streams) for n in norms
        )  # as in post-norm
        read = any(same(call.given[0], added_to) for call in calls if call.name == "linear")
        if read and not renormed and any(same(added_to, n.result) for n in norms):
            seen = f"what change {place + 1} of {len(sums)} is added to differs from norm(x) by {0.0:.1f}"
            return [found("residual of the normalised input", probe, seen)]
    if len(sums) > 1 and same(base, sums[0][0]) and not same(sums[0][1], sums[-1][1]):
        seen = (
            f"of {len(sums)} sums the last adds to the block's input (they differ by {0.0:.1f}), not to the first sum"
        )
        return [found("residual skips the attention", probe, seen)]
    return [Passed(probe, f"{len(sums)} sums, the last with numbers of size {float(base.abs().max()):.2f}")]


def sums_of(calls: list[Call], made: list[Tensor], x: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Sums of a change and something as large: what is added to, the change, the sum."""
    sums = []
    for call in calls:
        if call.name in ADDS and len(call.given) == 2 and call.given[0].shape == call.given[1].shape == x.shape:
            one, other = call.given
            if any(same(other, each) for each in made):
                sums.append((one, other, call.result))
            elif any(same(one, each) for each in made):
                sums.append((other, one, call.result))
    return sums


def lost_before(calls: list[Call], sums: list, looks: list[Look], x: Tensor, output: Tensor) -> str:
    """How one of two residual connections is missing, in numbers: around the attention, or around what follows it."""
    after = calls[looks[0].leaving + 1 :]
    until = next(
        (place for place, call in enumerate(after) if call.name in ADDS or call.name == "layer_norm"), len(after)
    )
    mixed = [call.result for call in after[:until] if call.name in ("linear", "dropout")]
    mixed += [call.result for call in after if call.name == "layer_norm" and any(same(call.given[0], m) for m in mixed)]
    base = sums[0][0]
    earlier = [call.result for call in calls[: looks[0].entering]] + [x]
    carried = any(same(side, each) for pair in sums for side in pair[:2] for each in earlier)
    read = any(same(call.given[0], base) for call in calls if call.name in ("layer_norm", "linear"))
    if read and not carried and any(same(base, each) for each in mixed):
        return f"of {len(sums)} sums none adds to what came before the attention, the first adds to its result"
    place = max(i for i, call in enumerate(calls) if call.name in ADDS and same(call.result, sums[-1][2]))
    maps = [call for call in calls[place + 1 :] if call.name == "linear"]
    wide = any(call.result.shape[-1] > output.shape[-1] for call in maps)
    if len(looks) == 1 and len(maps) > 1 and wide and same(maps[-1].result, output):
        return f"{len(maps)} linear maps follow the last sum, and what they give is returned without another one"
    return ""
