"""Whether rotary positions turn queries and keys alike."""

from torch import Tensor

from attnlib.doctor.chart import Chart
from attnlib.doctor.looks import by_token
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
        if not any(turned):
            continue
        spread = float((scores.amax(-1) - scores.amin(-1)).max()) / float((look.query.norm(dim=-1).max()) ** 2 + 1e-30)
        if spread > 1e-3:
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


def is_turned(side: Tensor, watched: Watched, sequences: list[Tensor], look: Look) -> bool:
    """Whether queries or keys of equal tokens differ from place to place, though their projection does not, nor their length."""
    sizes = side.norm(dim=-1)
    if float((sizes - sizes[..., :1]).abs().max()) > 1e-5 * float(sizes.max()):  # of each head, as turning leaves it
        return False
    made = []
    for each in projections(watched, sequences, look):
        made += [each, *each.chunk(3, -1)] if each.shape[-1] % 3 == 0 else [each]
    for tokens in by_token(side, len(sequences[0])):
        if float((tokens - tokens[:, :1]).abs().max()) < 1e-3 * float(tokens.abs().max()):
            continue
        lengths = tokens.norm(dim=-1)
        for projection in made:
            if projection.shape[:2] != tokens.shape[:2] or not projection.any():
                continue
            equal = float((projection - projection[:, :1]).abs().max()) < 1e-9 * float(projection.abs().max())
            ratios = lengths / projection.norm(dim=-1)
            if equal and float(ratios.max() - ratios.min()) < 1e-5 * float(ratios.max()):
                return True
    return False
