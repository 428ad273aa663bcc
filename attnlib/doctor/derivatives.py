"""Probes of gradients: they reach every parameter, are finite, and are those of what the layer computes."""

import torch
from torch import Tensor, nn

from attnlib.doctor.calling import Subject
from attnlib.doctor.chart import Chart
from attnlib.doctor.conventions import LENGTHS
from attnlib.doctor.reading import EMBEDDED, may_have_context
from attnlib.doctor.report import Finding, NotExamined, Passed, found

NO_TORCH = "Write it with torch operations to have it examined."
STEPS = (1e-6, 1e-5, 1e-4, 1e-3)  # small ones miss the corners of ReLU, large ones rounding in float32
ALLOWED = 0.05  # relative to the change


def cut(chart: Chart, parameters: list[Tensor]) -> list[Finding]:
    """Move the input, then all parameters, a little in one direction: the result changes as its gradients say."""
    x, *rest = chart.subject.inputs()
    for words, tensors in (("the input", [x]), ("the parameters", parameters)):
        gap = mismatch(chart, x, rest, tensors)
        if gap > ALLOWED:
            seen = f"moving {words} a little changes the result by other numbers than the gradients say: {gap:.0%} off"
            return [found("gradient is cut", "gradients", seen)]
    return []


def mismatch(chart: Chart, x: Tensor, rest: list[Tensor], tensors: list[Tensor]) -> float:
    """How far gradients are off in a random direction, relative to the change, for the step at which they are least."""
    subject = chart.subject
    if not tensors:
        return 0.0
    directions = [subject.draw(1, each.numel(), 1).view(each.shape) * size_to_move(each) for each in tensors]
    slopes = [slope(chart, [x, *rest], tensors, directions, step) for step in STEPS]
    output = subject.run(x.requires_grad_(), *rest)[0]
    gaps = torch.zeros(len(STEPS), 2)
    for _ in range(4):
        weights = torch.randn(output.shape, generator=subject.generator, dtype=torch.float64).to(output.dtype)
        gradients = torch.autograd.grad(output, tensors, weights, retain_graph=True, allow_unused=True)
        given = sum(float((g * d).sum()) for g, d in zip(gradients, directions) if g is not None)
        for place, each in enumerate(slopes):
            wanted = float((each * weights).sum())
            gaps[place] += torch.tensor([abs(given - wanted), abs(wanted)])
    least = float((gaps[:, 0] / (gaps[:, 1] + 1e-30)).min())
    return least if least < float("inf") else 0.0  # NaN, too: told elsewhere


@torch.no_grad()
def slope(chart: Chart, given: list[Tensor], tensors: list[Tensor], directions: list[Tensor], step: float) -> Tensor:
    """How the result changes as tensors are moved, by the difference of a step forwards and one backwards."""
    before, ends = [each.clone() for each in tensors], []
    for sign in (1, -1):
        for each, start, direction in zip(tensors, before, directions):
            each.copy_(start + sign * step * direction)
        ends.append(chart.subject.run(*given)[0])
    for each, start in zip(tensors, before):
        each.copy_(start)
    return (ends[0] - ends[1]) / (2 * step)


def size_to_move(tensor: Tensor) -> float:
    """The usual size of its numbers, or 0.1 where all are 0."""
    return float(tensor.detach().square().mean().sqrt()) or 0.1


@torch.no_grad()
def moves(subject: Subject, parameter: Tensor, sequences: list[Tensor], output: Tensor) -> bool:
    """Whether the result is another one when a parameter is."""
    before = parameter.clone()
    parameter.mul_(1.5).add_(0.1)
    other = subject.run(*sequences)[0]
    parameter.copy_(before)
    return not torch.equal(other, output)


def passed_by(subject: Subject) -> list[nn.Parameter]:
    """Parameters of the embedding of tokens, where a whole model is given vectors in place of ids."""
    embedding = getattr(subject.layer, "get_input_embeddings", lambda: None)()
    return list(embedding.parameters()) if subject.names[0] in EMBEDDED and isinstance(embedding, nn.Module) else []


def gradient_probe(chart: Chart) -> list:
    """Gradients reach every parameter, and stay finite with a row that may attend to nothing."""
    subject, probe = chart.subject, "gradients"
    if subject.numpy:
        return [NotExamined(probe, "NumPy has no gradients.", NO_TORCH)]
    results: list = []
    sequences = [each.requires_grad_() for each in subject.inputs()]
    parameters = dict(subject.layer.named_parameters()) if subject.is_module else {}
    stood_in_for = {id(each) for each in passed_by(subject)}
    parameters = {n: each for n, each in parameters.items() if each.requires_grad and id(each) not in stood_in_for}
    called: set[str] = set()
    parts = subject.layer.named_modules() if subject.is_module else ()
    hooks = [part.register_forward_hook(lambda *_, name=name: called.add(name)) for name, part in parts]
    output = subject.run(*sequences)[0]
    for hook in hooks:
        hook.remove()
    if not output.requires_grad:
        seen = f"the result is cut off from {len(parameters)} parameters and the input"
        return [
            found(
                "no gradient", probe, seen, "torch.no_grad() around all of it, or .detach(), .data, NumPy at its end."
            )
        ]
    targets = [*parameters.values(), *sequences]
    gradients = torch.autograd.grad((output * torch.randn_like(output)).sum(), targets, allow_unused=True)
    missing = [name for name, gradient in zip(parameters, gradients) if gradient is None]
    if subject.kind == "self" and may_have_context(subject.layer):  # what reads the context has nothing to do
        idle = [name for name in missing if name.rpartition(".")[0] not in called]
        missing = [name for name in missing if name not in idle]
        if idle:  # T5's decoder
            reason = (
                f"{len(idle)} parameters belong to parts that were not called, as no context is given: `{idle[0]}`."
            )
            results.append(NotExamined(probe, reason, "Pass call=lambda layer, query, context, mask: ..."))
    unseen = [name for name in missing if moves(subject, parameters[name], sequences, output)]
    if unseen:
        seen = f"{len(unseen)} of {len(parameters)} parameters change the result and get no gradient: `{unseen[0]}`"
        results.append(found("gradient is cut", probe, seen))
    missing = [name for name in missing if name not in unseen]
    if missing:
        seen = (
            f"{len(missing)} of {len(parameters)} parameters get none: {', '.join(f'`{name}`' for name in missing[:3])}"
        )
        results.append(found("no gradient", probe, seen))
    bad = [
        name
        for name, each in zip([*parameters, *subject.names], gradients)
        if each is not None and not each.isfinite().all()
    ]
    if bad:
        results.append(found("gradient is not finite", probe, f"`{bad[0]}` and {len(bad) - 1} more, without any mask"))
    results += [] if missing or unseen else cut(chart, list(parameters.values()))
    results += masked_gradient(chart, targets, [*parameters, "the input"])
    return results or [Passed(probe, f"reach all {len(parameters)} parameters and the input, and are finite")]


def masked_gradient(chart: Chart, targets: list, names: list[str]) -> list[Finding]:
    """Gradients that are not finite although the result is, when one row may attend to nothing."""
    subject = chart.subject
    for slot in chart.slots:
        if slot.verdict != "respected" or slot.form == LENGTHS:
            continue
        sequences = [each.requires_grad_() for each in subject.inputs()]
        n = sequences[1 if subject.cross and slot.on_context else 0].shape[1]
        allowed = torch.ones(subject.batch, subject.n_query, n, dtype=torch.bool)
        allowed[:1] = False
        output = subject.run(*sequences, masks={slot.name: slot.make(allowed, subject.dtype)})[0]
        if not output.requires_grad or not output.isfinite().all():
            continue
        wanted = targets[: len(names) - 1] + sequences
        gradients = torch.autograd.grad((output * torch.randn_like(output)).sum(), wanted, allow_unused=True)
        bad = [
            name
            for name, each in zip([*names, "the context"], gradients)
            if each is not None and not each.isfinite().all()
        ]
        if bad:
            seen = f"{len(bad)} gradients (`{bad[0]}` first) are NaN though the result is finite: one sequence is masked wholly"
            return [found("gradient is not finite", "gradients", seen)]
    return []
