"""Probes of masks: what they hide, and what is left when they hide everything."""

import torch
from torch import nn

from attnlib.doctor.calling import LayerError, first_line
from attnlib.doctor.chart import Chart
from attnlib.doctor.conventions import LENGTHS, SHARED, WORDS, Slot
from attnlib.doctor.looks import expand
from attnlib.doctor.mechanism import watch
from attnlib.doctor.report import NotExamined, Passed, found
from attnlib.doctor.seeing import size_of


def mask_probe(chart: Chart) -> list:
    """Is what a mask hides without effect?"""
    probe = "does the mask hide"
    if not chart.slots:
        return [
            NotExamined(
                probe, "no argument that looks like a mask.", "Name it mask, or pass call=lambda layer, x, mask: ..."
            )
        ]
    if chart.blind:
        reason = "no token changes another one's result even without it."
        return [NotExamined(probe, reason, "Mend that first, or open the gate.")]
    results: list = []
    for slot in chart.slots:
        here = f"{probe}: {slot.name}"
        if slot.verdict == "raises":
            results.append(
                found(
                    "the layer raises",
                    here,
                    f"in {slot.tries} of {slot.tries} ways that were tried: {slot.error[:200]}",
                )
            )
        elif slot.verdict == "gives NaN":
            results.append(
                found("the mask gives NaN", here, f"{slot.error}, though every query may attend to some keys")
            )
        elif slot.verdict == "respected":
            results.append(Passed(here, f"hidden tokens change nothing (less than {max(slot.leak, 1e-12):.0e})"))
        elif slot.verdict == "inverted":
            seen = f"hidden tokens change the result by {slot.leak:.2g} of its size, visible ones by 0 ({WORDS[slot.convention]} was expected)"
            results.append(found("mask inverted", here, seen))
        elif slot.verdict == "hides everything":
            if chart.subject.kind == "context" and not slot.on_context and chart.apart():
                reason = "queries see the context, not each other."
                results.append(
                    NotExamined(here, reason, "Examine it without a context, by call=lambda layer, x, mask: ...")
                )
            elif chart.causal and slot.form == LENGTHS:
                results.append(
                    NotExamined(here, "a causal layer does not see the end anyway.", "Use a mask, not lengths.")
                )
            else:
                results.append(
                    found("the mask hides everything", here, "neither hidden nor visible tokens change a result: 0.0")
                )
        else:
            results.append(leaking(chart, slot, here))
    return results


def leaking(chart: Chart, slot: Slot, probe: str):
    """What kind of leak: ignored, the wrong sequence, only the pooling, or unknown."""
    subject = chart.subject
    sequences = subject.inputs()
    n = sequences[1 if subject.cross and slot.on_context else 0].shape[1]
    allowed = chart.trial(slot, n)
    free, _ = subject.run(*sequences)
    watched, output = watch(subject, sequences, {slot.name: slot.make(allowed, subject.dtype)})
    seen = f"masked tokens change the result by {slot.leak:.2g} of its size"
    if float((free - output).abs().max()) <= subject.tolerance * size_of(free):
        return found("mask ignored", probe, f"{seen}; with and without the mask it differs by 0.0")
    weights = [look.weights for look in watched.looks if look.weights.shape[-2:] == allowed.shape[-2:]]
    masks = [expand(allowed, each) for each in weights]
    if (
        output.ndim == 2
        and weights
        and all(m is not None and float(w[~m].max()) < 1e-9 for w, m in zip(weights, masks))
    ):
        return found("padding enters the mean", probe, f"{seen}, although their weights are 0.0")
    if weights and slot.form not in SHARED and masks[0] is not None and weights[0].ndim == 3:
        heads = len(weights[0]) // len(allowed)
        other = allowed.repeat(heads, 1, 1)
        if heads > 1 and float(weights[0][~other].max()) < 1e-9:
            return found(
                "mask lines up with the wrong sequence",
                probe,
                f"{seen}; map i of {len(weights[0])} has mask i mod {len(allowed)}",
            )
    if subject.is_module and any(isinstance(each, OTHER_WAYS) for each in subject.layer.modules()):
        reason = f"{seen}, which a recurrence or a convolution explains."
        return NotExamined(probe, reason, "Examine the attention behind it by itself.")
    return found("masked positions still count", probe, seen)


OTHER_WAYS = (nn.RNNBase, nn.Conv1d, nn.Conv2d)  # by which a token reaches others past the mask of an attention
TORCHS_OWN = (
    nn.MultiheadAttention,
    nn.TransformerEncoderLayer,
    nn.TransformerEncoder,
    nn.TransformerDecoderLayer,
    nn.TransformerDecoder,
    nn.Transformer,
)
OF_TORCH = (
    "PyTorch's own layer does this: softmax of a row of −inf is 0 / 0, and its paths differ (measured above on this version: "
    "a fast one in eval mode without gradients, the fused kernel, and the one that returns weights). Never pass a sequence "
    "that is padding throughout, or set its result to 0 with torch.where."
)


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
    rowed = output.ndim == 3 and output.shape[1] == subject.n_query  # not pooled
    mine = output[0, 2] if rowed else output[0]
    if not mine.isfinite().all():
        where = "one query" if slot.pairs else "one sequence"
        seen = f"{where} may attend to nothing: {nan_share(mine)} of its result is NaN{other_paths(chart, sequences, masks)}"
        return found("fully masked row gives NaN", probe, seen, OF_TORCH if of_torch(subject.layer) else "")
    given = [each.clone() for each in sequences]
    kept = given[moved][0, 2].clone()
    given[moved][0] = subject.draw(*given[moved].shape[1:])[0]
    if moved == 0 and rowed:
        given[moved][0, 2] = kept
    if moved == 0 and not rowed:
        return Passed(probe, "finite")
    again = subject.run(*given, masks=masks)[0]
    gap = float((again - output)[0, 2].abs().max()) if rowed else float((again - output)[0].abs().max())
    if slot.verdict != "respected":
        return NotExamined(probe, "the mask does not hide anyway; the result is finite.", "Mend that first.")
    if gap > subject.tolerance * size_of(output):
        return found(
            "fully masked row is not empty", probe, f"tokens that it may not see change its result by {gap:.2g}"
        )
    return Passed(probe, "finite, and the same whatever stands there")


def of_torch(layer: object) -> bool:
    """Whether a layer is one of PyTorch's own with attention in it."""
    return isinstance(layer, TORCHS_OWN)


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


def nan_share(values: torch.Tensor) -> str:
    """The share that is not finite, in percent."""
    return f"{float((~values.isfinite()).double().mean()):.0%}"
