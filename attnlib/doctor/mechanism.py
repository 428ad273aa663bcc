"""Probes that watch a layer at work: softmax, scale, heads, projections, norms and residuals.

They need no attribute of a certain name, and see nothing in NumPy functions but the weights, which are the output for
values that are the unit vectors.
"""

import torch
from torch import Tensor

from attnlib.doctor.calling import Subject
from attnlib.doctor.chart import Chart
from attnlib.doctor.heads import by_token, groups, judge_split
from attnlib.doctor.looks import expand, future_zeroed, judge_axis, judge_mask, judge_scale, judge_sums, same
from attnlib.doctor.report import Finding, NotExamined, Passed, found
from attnlib.doctor.watching import Call, Look, Watch, Watched, find_looks

CALL = "Seen are weights [.., n_query, n_key] times values [.., n_key, d], by torch's matmul or einsum; or return the weights."


ONE_CALL = ("PyTorch's own attention runs in one call.", "Nothing to do: this part is PyTorch's, and tested there.")


def in_one_call(watched: Watched) -> bool:
    """Whether PyTorch's own attention was called, which cannot be watched inside."""
    return any(call.name == "multi_head_attention_forward" for call in watched.calls)


def watch(subject: Subject, sequences: list[Tensor], masks: dict | None = None) -> tuple[Watched, Tensor]:
    """One run, watched: calls, looks, and the output."""
    watcher = Watch()
    with watcher:
        output, returned = subject.run(*sequences, masks=masks, weights=True)
    looks = []
    lengths = {
        subject.n_query,
        subject.n_key,
        subject.n_query + subject.n_key,
    }  # the last: a memory in front of the tokens
    for n_query, n_key in {(subject.n_query, n) for n in lengths if subject.cross or n == subject.n_query}:
        looks += find_looks(watcher.calls, n_query, n_key)
    looks.sort(key=lambda look: look.leaving)
    if not subject.batch_first:
        turn(watcher.calls, {(n, subject.batch) for n in (subject.n_query, subject.n_key)})
    if not looks and returned is not None and returned.shape[-2:] == (subject.n_query, sequences[-1].shape[1]):
        plain = subject.kind == "qkv" and not subject.is_module and subject.axes < 4
        looks = [Look(returned.detach(), *sequences[:2])] if plain else [Look(returned.detach())]
    if not looks and subject.kind == "qkv" and not subject.is_module and subject.axes < 4:
        looks = unit_values(subject, sequences, masks)
    return Watched(watcher.calls, looks), output


def turn(calls: list[Call], ends: set[tuple[int, int]]) -> None:
    """Give the sequences [n, batch, width] among the calls of a sequence-first layer the doctor's order of axes."""
    for call in calls:
        every = [each.transpose(0, 1) if each.ndim == 3 and each.shape[:2] in ends else each for each in call.given]
        call.given = every
        if call.result.ndim == 3 and call.result.shape[:2] in ends:
            call.result = call.result.transpose(0, 1)


def unit_values(subject: Subject, sequences: list[Tensor], masks: dict | None) -> list[Look]:
    """The weights of a function, as its output for values that are the unit vectors; none if it does more than mix values."""
    query, key = sequences[:2]
    if key.shape[-1] < key.shape[1]:
        return []
    value = subject.draw(key.shape[1], key.shape[-1])
    order = torch.arange(value.shape[-1]).flip(0)
    output = subject.run(query, key, value, masks=masks)[0]
    shuffled = subject.run(query, key, value[..., order], masks=masks)[0]
    if output.shape[-1] != len(order) or not torch.allclose(output[..., order], shuffled, equal_nan=True):
        return []
    units = torch.eye(key.shape[1], key.shape[-1], dtype=subject.dtype).expand(len(key), -1, -1)
    weights = subject.run(query, key, units, masks=masks)[0][..., : key.shape[1]]
    return [Look(weights, query, key, value)] if weights.shape[1:] == (query.shape[1], key.shape[1]) else []


def weights_probe(chart: Chart) -> list:
    """Rows sum to 1, the scale of the scores, and what a mask does to the weights."""
    subject = chart.subject
    probe = "rows sum to 1"
    if chart.values_ignored():
        seen = f"other values change the result by {0.0:.1f}: what is mixed is the key"
        return [found("values copied from the keys", "values reach the result", seen)]
    sequences = subject.inputs()
    watched, _ = watch(subject, sequences)
    if not watched.looks:
        return [NotExamined(name, "no weights were seen.", CALL) for name in (probe, "scale of the scores")]
    results: list = []
    scales, sums = [], 0
    for look in watched.looks:
        allowed = expand(chart.allowed(*look.weights.shape[-2:]), look.weights)
        if allowed is None:  # an axis is not where it should be; over what do the weights sum?
            allowed = torch.ones_like(look.weights, dtype=torch.bool)
        finding = judge_sums(look, allowed, watched.calls)
        if finding:
            results.append(finding)
            continue
        sums += look.weights[..., 0].numel()
        if future_zeroed(look, watched.calls):
            most = float(look.weights.triu(1).max())
            seen = f"the scores of all later keys are exactly 0, their weights up to {most:.2f}: hide them with −inf"
            results.append(found("scores multiplied by the mask", "what the mask does to the weights", seen))
        made = projections(watched, sequences, look)
        factors = [judge_split(side, made, subject.batch) for side in (look.query, look.key) if side is not None]
        if len(factors) == 2 and all(kind in ("tokens", "rotated", "mixed") for kind, _ in factors):
            wrong, seen = judge_scale(look, allowed, factors[0][1] * factors[1][1])
            results += [wrong] if wrong else []
            scales += [seen] if seen and not wrong else []
    if sums and not any(isinstance(each, Finding) and each.probe == probe for each in results):
        results.append(Passed(probe, f"{sums} rows of {len(watched.looks)} maps sum to 1"))
    if scales:
        results.append(Passed("scale of the scores", scales[0]))
    elif not any(isinstance(each, Finding) for each in results) and in_one_call(watched):
        results.append(NotExamined("scale of the scores", *ONE_CALL))
    elif not any(isinstance(each, Finding) for each in results):
        reason = "queries and keys, as they were projected, were not seen."
        results.append(
            NotExamined("scale of the scores", reason, "Project with nn.Linear or @, and keep scores free of biases.")
        )
    return results + mask_weights(chart, sequences, watched)


def mask_weights(chart: Chart, sequences: list[Tensor], plain: Watched) -> list[Finding]:
    """What a mask that should hide some keys does to the weights."""
    results = []
    for slot in chart.slots:
        if slot.verdict == "raises":
            continue
        n = sequences[1 if chart.subject.cross and slot.on_context else 0].shape[1]
        allowed = chart.trial(slot, n)
        watched, _ = watch(chart.subject, sequences, {slot.name: slot.make(allowed, chart.subject.dtype)})
        for look, free in zip(watched.looks, plain.looks):
            mask, alone = (
                expand(each, look.weights) for each in (allowed & chart.allowed(*allowed.shape[-2:]), allowed)
            )
            if mask is not None and len(watched.looks) == len(plain.looks):
                axis = judge_axis(look, free, alone)
                results.append(axis if axis or slot.verdict == "gives NaN" else judge_mask(look, free, mask))
    return [each for each in results if each]


def projections(watched: Watched, sequences: list[Tensor], look: Look) -> list[Tensor]:
    """What may have been split into heads before a look: inputs and linear maps of three axes, the latest last."""
    made = [call.result for call in watched.calls[: look.entering] if call.result.ndim == 3]
    thirds = [part for each in made if each.shape[-1] % 3 == 0 for part in each.chunk(3, -1)]  # of one map for all
    return sequences + thirds + made


def heads_probe(chart: Chart) -> list:
    """Whether heads get a part of every token, whether tokens are put together again, and what is projected."""
    subject, probe = chart.subject, "heads and projections"
    if subject.numpy:
        return [NotExamined(probe, "NumPy functions cannot be watched.", "Write it with torch operations.")]
    sequences = subject.inputs()
    watched, _ = watch(subject, sequences)
    results, judged = [], 0
    for look in (look for look in watched.looks if look.query is not None):
        made = projections(watched, sequences, look)
        for side in (look.query, look.key, look.value):
            kind, _ = judge_split(side, made, subject.batch)
            judged += kind in ("tokens", "rotated")
            if kind == "mixed":
                seen = f"the {look.weights.shape[-3]} heads hold the numbers of other tokens: {list(side.shape)} was filled row by row"
                results.append(found("heads split without transpose", probe, seen))
        if subject.kind == "qkv" or any(same(each, sequences[-1]) for each in by_token(look.key, subject.batch)):
            pass  # values and keys were given alike, or nothing is projected at all
        elif same(look.value, look.key) and not same(look.query, look.key):
            results.append(found("values copied from the keys", probe, "values and keys differ by 0.0"))
        elif subject.kind == "self" and same(look.query, look.key):
            results.append(found("queries and keys are the same", probe, "queries and keys differ by 0.0"))
        results += grouped(look)
        results += merged(look, watched, subject.batch)
        results += one_side_normalised(look, watched, subject)
    if results:
        return results
    if not judged and in_one_call(watched):
        return [NotExamined(probe, *ONE_CALL)]
    if not judged:
        return [NotExamined(probe, "queries, keys and their projections were not seen.", CALL)]
    return [Passed(probe, "each head holds a part of its own token")]


def grouped(look: Look) -> list[Finding]:
    """Whether keys and values are shared among the same heads, and among neighbours."""
    if any(side.ndim != 4 for side in (look.query, look.key, look.value)):
        return []
    keys, values = groups(look.key), groups(look.value)
    count, heads = len(set(keys)), len(keys)
    if not 1 < count < heads or len(set(values)) != count:
        return []
    if keys != values:
        seen = f"equal to head {keys} are the keys of heads 0 to {heads - 1}, equal to head {values} the values"
        return [found("keys and values of other heads", "heads and projections", seen)]
    if keys == [i % count for i in range(heads)]:
        return [found("groups of heads in turn", "heads and projections", f"heads 0 to {heads - 1} read groups {keys}")]
    return []


def merged(look: Look, watched: Watched, batch: int) -> list[Finding]:
    """Whether the next linear map gets each token's own heads side by side."""
    after = next((call for call in watched.calls[look.leaving + 1 :] if call.name in ("linear", "matmul")), None)
    if after is None or look.output is None or look.weights.ndim < 3:
        return []
    got = next((each for each in after.given if each.ndim == 3), None)
    if got is None or got.numel() != look.output.numel():
        return []
    numbers = look.output.flatten().sort().values
    if not same(got.flatten().sort().values, numbers):
        return []
    tokens = [each.sort().values for each in by_token(look.output, batch) or [look.output]]
    if any(same(each, got.sort().values) for each in tokens):
        return []
    moved = (
        float((tokens[0] - got.sort().values).abs().amax(-1).gt(1e-9).double().mean())
        if tokens[0].shape == got.shape
        else 1.0
    )
    seen = f"{moved:.0%} of the tokens get numbers of other tokens; shape {list(look.output.shape)} was refilled"
    return [found("heads merged without transpose", "heads and projections", seen)]


def one_side_normalised(look: Look, watched: Watched, subject: Subject) -> list[Finding]:
    """Whether queries are made from normalised tokens, keys from raw ones, in one sequence."""
    if subject.kind != "self":
        return []
    before = watched.calls[: look.entering]
    normed = [call.result for call in before if call.name == "layer_norm"]
    raw = [call.given[0] for call in before if call.name == "layer_norm"]
    linear = [call for call in before if call.name == "linear"][-3:]
    which = [
        "norm" if any(same(c.given[0], n) for n in normed) else "raw" if any(same(c.given[0], r) for r in raw) else ""
        for c in linear
    ]
    if sorted(which) != ["norm", "raw", "raw"]:
        return []
    gap = float((linear[0].given[0] - linear[-1].given[0]).abs().max())
    seen = f"of 3 projections 1 reads norm(x), 2 read x; they differ by up to {gap:.2f}"
    return [found("only the query is normalised", "heads and projections", seen)]
