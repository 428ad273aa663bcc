"""Probes of training: randomness, what a call leaves behind, dropout."""

import contextlib

import torch
from torch import nn

from attnlib.doctor.calling import LayerError, Subject, put_back, state_of
from attnlib.doctor.chart import OVER_BATCH, Chart
from attnlib.doctor.looks import same
from attnlib.doctor.mechanism import watch
from attnlib.doctor.report import Finding, NotExamined, Passed, found
from attnlib.doctor.seeing import size_of


def random_probe(chart: Chart) -> list:
    """Twice the same call in eval mode."""
    subject, probe = chart.subject, "eval is deterministic"
    sequences = subject.inputs()
    one, other = (subject.run(*sequences)[0] for _ in range(2))
    gap = float((one - other).abs().nan_to_num().max()) / size_of(one)
    if gap > 0:
        return [found("random in eval", probe, f"two calls in eval mode differ by {gap:.2g} of the result's size")]
    return after_another(chart) or [Passed(probe, "two calls give the same numbers")]


def after_another(chart: Chart) -> list[Finding]:
    """What a call gives after one with other sequences, a longer or a larger batch, or another mask."""
    subject = chart.subject
    if not subject.is_module:
        return []
    sequences = subject.inputs()
    shape = (subject.batch, subject.n_query, subject.n_key)
    cases: list = [
        (name, None, add) for name, add in {"another batch": 1, "a longer one": 2, "a shorter one": -2}.items()
    ]
    cases += [(f"another {slot.name}", slot, 0) for slot in chart.slots if slot.verdict != "raises"]
    for words, slot, add in cases:
        if slot:
            n = sequences[1 if subject.cross and slot.on_context else 0].shape[1]
            trial = chart.trial(slot, n)
            masks, other = ({slot.name: slot.make(each, subject.dtype)} for each in (trial, torch.ones_like(trial)))
        else:
            masks, other = {}, {}
        plain = subject.run(*sequences, masks=masks)[0]
        kept, subject.forgets = state_of(subject.layer), False
        try:
            if not slot:
                subject.batch, subject.n_query, subject.n_key = (
                    shape[0] + (add == 1),
                    *(n + add * (add != 1) for n in shape[1:]),
                )
            with contextlib.suppress(LayerError):
                subject.run(*subject.inputs(), masks=other)
            subject.batch, subject.n_query, subject.n_key = shape
            gap = float((subject.run(*sequences, masks=masks)[0] - plain).abs().nan_to_num().max()) / size_of(plain)
            seen = f"after {words}, the same call differs by {gap:.2g} of the result's size"
        except LayerError as error:
            gap, seen = 1.0, f"after {words}, the same call raises {error}"
        finally:
            subject.batch, subject.n_query, subject.n_key = shape
            put_back(kept)
            subject.forgets = True
        if gap > subject.tolerance:
            return [found("an earlier call matters", "eval is deterministic", seen)]
    return []


def rates(layer: nn.Module) -> list[float]:
    """The dropout rates that a module holds, as nn.Dropout or as a number in an attribute whose name says so."""
    found_rates = []
    for module in layer.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            found_rates.append(module.p)
        found_rates += [v for k, v in vars(module).items() if "drop" in k.lower() and isinstance(v, float)]
    return [rate for rate in found_rates if 0 < rate < 1]


def dropout_probe(chart: Chart) -> list:
    """In training dropout is applied, to the weights after softmax, and rescaled."""
    subject, probe = chart.subject, "dropout in training"
    if not subject.is_module:
        return [NotExamined(probe, "a function has no training mode.", "Examine the module that calls it.")]
    found_rates = rates(subject.layer)
    if not found_rates:
        return [
            NotExamined(
                probe, "no dropout rate above 0 was found.", "Build the layer with dropout=0.5 and examine it again."
            )
        ]
    sequences = subject.inputs()
    calm, _ = watch(subject, sequences)
    called: set[str] = set()
    layers = {name: each for name, each in subject.layer.named_modules() if isinstance(each, nn.Dropout) and each.p > 0}
    hooks = [each.register_forward_hook(lambda *_, name=name: called.add(name)) for name, each in layers.items()]
    subject.layer.train()
    try:
        one, other = (subject.run(*sequences)[0] for _ in range(2))
        busy, _ = watch(subject, sequences)
    finally:
        subject.layer.eval()
        for hook in hooks:
            hook.remove()
    gap = float((one - other).abs().max())
    if gap == 0:
        return [
            found(
                "dropout never applied", probe, f"rate {found_rates[0]}, yet two calls in training differ by {gap:.1f}"
            )
        ]
    unused = [name for name in layers if name not in called and not rate_is_read(chart.subject, layers[name])]
    if unused and not any(call.rate for call in busy.calls):  # the fused attention drops by itself
        return [
            found(
                "dropout never applied",
                probe,
                f"{len(unused)} of {len(layers)} dropouts are never called: `{unused[0]}`",
            )
        ]
    for quiet, look in zip(calm.looks, busy.looks):
        if look.dropped is None or look.weights.shape != quiet.weights.shape:
            continue
        totals = look.weights.sum(-1)
        if float((look.dropped.sum(-1) - 1).abs().max()) > 1e-3 and float((totals - 1).abs().max()) < 1e-6:
            seen = f"what is dropped are scores; after it every row still sums to {float(totals.mean()):.3f}"
            return [found("dropout before the softmax", probe, seen)]
    drops = [call for call in busy.calls if call.name == "dropout" and not same(call.given[0], call.result)]
    if any(same(other.given[0], one.result) for one, other in zip(drops, drops[1:])):
        return [found("dropout twice", probe, f"of {len(drops)} dropouts 1 is given what another has left")]
    ratios = kept_ratios(calm, busy)
    if ratios is not None and abs(ratios - 1) < 1e-6:
        return [
            found(
                "dropout not rescaled",
                probe,
                f"weights that are kept are {ratios:.3f} times those in eval, expected 1 / (1 − p)",
            )
        ]
    return [Passed(probe, f"two calls differ by {gap:.2g}")]


def kept_ratios(calm, busy) -> float | None:
    """How much larger the kept weights of the first look are in training, if some are dropped; else None."""
    if not calm.looks or len(calm.looks) != len(busy.looks):
        return None
    quiet, loud = calm.looks[0].weights, busy.looks[0].weights
    kept = (loud != 0) & (quiet > 1e-9)
    if quiet.shape != loud.shape or not kept.any() or not ((loud == 0) & (quiet > 1e-9)).any():
        return None
    ratios = loud[kept] / quiet[kept]
    return float(ratios.mean()) if float(ratios.max() - ratios.min()) < 1e-6 else None


def rate_is_read(subject: Subject, dropout: nn.Dropout) -> bool:
    """Whether a layer drops at the rate of a dropout that it never calls: whether another rate changes what it says."""
    sequences, rate, outputs = subject.inputs(), dropout.p, []
    subject.layer.train()
    try:
        for dropout.p in (0.0, 0.9):
            torch.manual_seed(0)  # inside fork_rng: the caller's generator is not touched
            outputs.append(subject.run(*sequences)[0])
    finally:
        dropout.p = rate
        subject.layer.eval()
    return not torch.equal(*outputs)


def training_probe(chart: Chart) -> list:
    """In training, with the same random numbers, an answer does not depend on the other sequences."""
    subject, probe = chart.subject, "sequences stay apart in training"
    if not subject.is_module:
        return [NotExamined(probe, "a function has no training mode.", "Examine the module that calls it.")]
    if chart.over_batch:
        return [NotExamined(probe, *OVER_BATCH)]
    sequences = subject.inputs()
    other = [each.clone() for each in sequences]
    for each in other:
        each[1:] = subject.draw(*each.shape[1:])[1:]
    subject.layer.train()
    try:
        outputs = []
        for given in (sequences, other):
            torch.manual_seed(0)  # inside fork_rng: the caller's generator is not touched
            outputs.append(subject.run(*given)[0])
    finally:
        subject.layer.eval()
    gap = float((outputs[1] - outputs[0])[0].abs().max()) / size_of(outputs[0])
    if gap > subject.tolerance:
        return [
            found(
                "sequences mix in training",
                probe,
                f"other sequences in the batch change a result by {gap:.2g} of its size",
            )
        ]
    return [Passed(probe, f"changes at most {gap:.0e}")]
