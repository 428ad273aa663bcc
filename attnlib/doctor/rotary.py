"""Whether rotary positions turn queries and keys alike."""

import torch.nn.functional as F
from torch import Tensor

from attnlib.doctor.chart import Chart
from attnlib.doctor.heads import by_token, judge_split
from attnlib.doctor.looks import same
from attnlib.doctor.mechanism import projections, watch
from attnlib.doctor.report import Passed, found
from attnlib.doctor.watching import Look, Watched


def rotary_probe(chart: Chart) -> list:
    """With equal tokens: a query and a key at one place are turned by the same angle, so their score is the same everywhere.

    Turned means: the projections of equal tokens are equal, the queries (or keys) made from them differ from place to place,
    but not in length. Positions that are added, and biases, do not do that. The score of a place with itself is compared,
    not scores of equal distance, since on images the places have two axes. Where nothing is turned, nothing is said.
    """
    subject, probe = chart.subject, "rotary"
    if subject.kind != "self" or subject.numpy:
        return []
    sequences = [each[:, :1].expand_as(each).clone() for each in subject.inputs()]
    watched, _ = watch(subject, sequences)
    results: list = []
    for look in watched.looks:
        scores = own_scores(look)
        if scores is None:
            continue
        turned = [is_turned(side, watched, sequences, look) for side in (look.query, look.key)]
        cosines = own_scores(Look(look.weights, *(F.normalize(each, dim=-1) for each in (look.query, look.key))))
        size = float(look.query.norm(dim=-1).max()) ** 2 + 1e-30
        spread, of_angle = (float((each.amax(-1) - each.amin(-1)).max()) for each in (scores / size, cosines))
        differs = spread > 1e-3 and of_angle > 1e-3  # a temperature by place changes lengths alone
        if not any(turned):
            if differs and stretched(look, watched, sequences):
                low, high = (float(each) for each in lengths_of(look.query))
                seen = (
                    f"queries of equal tokens are {low:.3f} to {high:.3f} long, and score otherwise with their own key"
                )
                return [found("rotary does not turn", probe, seen)]
            continue
        if (
            look.value is not None
            and not same(look.value, look.key)
            and is_turned(look.value, watched, sequences, look)
        ):
            return [
                found(
                    "rotary on the values",
                    probe,
                    f"values of {look.value.shape[-2]} equal tokens differ by their place",
                )
            ]
        if differs:
            low, high = (float(each) for each in (scores.flatten(0, -2)[0].min(), scores.flatten(0, -2)[0].max()))
            seen = f"equal tokens, each compared with itself, get scores from {low:.3f} to {high:.3f}, expected one"
            if not all(turned):
                seen += f"; only the {'queries' if turned[0] else 'keys'} are turned"
            return [found("rotary differs between queries and keys", probe, seen)]
        results = [Passed(probe, f"queries and keys are turned alike (to {spread:.0e})")]
    return results


def own_scores(look: Look) -> Tensor | None:
    """query · key of each place with itself, [..., n], or None; with fewer heads of keys each serves several queries."""
    query, key = look.query, look.key
    if query is None or key is None or query.shape[-2:] != key.shape[-2:] or query.ndim != key.ndim:
        return None
    if query.ndim == 4 and query.shape[1] != key.shape[1] and query.shape[1] % key.shape[1] == 0:
        key = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
    return (query * key).sum(-1) if query.shape == key.shape else None


def lengths_of(side: Tensor) -> tuple[Tensor, Tensor]:
    """The least and the greatest length of the first head's queries."""
    return side.norm(dim=-1).flatten(0, -2)[0].aminmax()


def stretched(look: Look, watched: Watched, sequences: list[Tensor]) -> bool:
    """Whether positions multiply queries or keys, behind their projection.

    From place to place, another sequence then changes by other numbers, as it does not if something is added.
    """
    made = projections(watched, sequences, look)[len(sequences) :]
    if not made or not all(same_everywhere(each) for each in made if each.shape[:2] == sequences[0].shape[:2]):
        return False
    for side in (look.query, look.key):
        if judge_split(side, made, len(sequences[0]))[0] in ("tokens", "mixed"):  # numbers as they were projected
            continue
        for tokens in by_token(side, len(sequences[0])):
            steps = tokens[:, 1:] - tokens[:, :-1]
            every = float(steps.abs().amax(-1).min()) > 1e-4 * float(tokens.abs().max())  # not as behind a convolution
            if every and float((steps - steps[:1]).abs().max()) > 1e-3 * float(steps.abs().max()):
                return True
    return False


def same_everywhere(projection: Tensor) -> bool:
    """Whether all places hold the same."""
    return float((projection - projection[:, :1]).abs().max()) <= 1e-9 * float(projection.abs().max())


def is_turned(side: Tensor, watched: Watched, sequences: list[Tensor], look: Look) -> bool:
    """Whether queries or keys of equal tokens differ from place to place, though their projection does not, nor their length."""
    sizes = side.norm(dim=-1)
    if float((sizes - sizes[..., :1]).abs().max()) > 1e-5 * float(sizes.max()):  # of each head, as turning leaves it
        return False
    made = projections(watched, sequences, look)
    for tokens in by_token(side, len(sequences[0])):
        if float((tokens - tokens[:, :1]).abs().max()) < 1e-3 * float(tokens.abs().max()):
            continue
        lengths = tokens.norm(dim=-1)
        for projection in made:
            if projection.shape[:2] != tokens.shape[:2] or not projection.any():
                continue
            equal = same_everywhere(projection)
            ratios = lengths / projection.norm(dim=-1)
            if equal and float(ratios.max() - ratios.min()) < 1e-5 * float(ratios.max()):
                return True
    return False
