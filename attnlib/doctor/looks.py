"""Judging one look: over which axis its weights sum to 1, what scaled its scores, what its mask did.

All functions here compare what was seen with what each known fault would produce. Where none fits, nothing is said.
"""

import math

import torch
from torch import Tensor

from attnlib.doctor.report import Finding, found
from attnlib.doctor.watching import Call, Look, slope_of


def expand(allowed: Tensor, weights: Tensor) -> Tensor | None:
    """A mask [batch, n_query, n_key] in the shape of weights, whether heads have an axis or are folded into the batch."""
    batch = len(allowed)
    if allowed.shape[-2:] != weights.shape[-2:]:
        return None
    if weights.ndim == 4 and len(weights) == batch:
        return allowed[:, None].expand(weights.shape)
    if weights.ndim == 3 and len(weights) % batch == 0:
        return allowed.repeat_interleave(len(weights) // batch, 0)
    return None


def ones(totals: Tensor) -> bool:
    """Whether all totals are 1."""
    return bool((totals - 1).abs().max() < 1e-5)


def judge_sums(look: Look, allowed: Tensor, calls: list[Call]) -> Finding | None:
    """Over which axis the weights sum to 1. ``allowed`` has the shape of the weights."""
    weights, probe = look.weights, "rows sum to 1"
    rows = weights.sum(-1)[allowed.any(-1)]
    if ones(rows):
        return None
    if any(heads_mixed(call.result, weights) for call in calls if call.name == "softmax"):
        return None
    low, high = float(rows.min()), float(rows.max())
    seen = f"the rows of the weights sum to {low:.3f}{f' to {high:.3f}' if high - low > 5e-4 else ''}, expected 1"
    finite = allowed & weights.isfinite()  # over the heads, what all of them hide is 0 / 0
    allowed = finite if finite.any() else allowed
    columns = weights.sum(-2)
    softmaxes = [call.result for call in calls if call.name == "softmax"]
    if any(ones(each.sum(-1)) and same(each.transpose(-1, -2), weights) for each in softmaxes):
        return found("weights transposed", probe, f"{seen}; softmax gave rows of 1, its transposed was used")
    if future_cut(weights, calls):
        return found(
            "mask after the softmax", probe, f"{seen}; they are softmax's, with the future set to 0 afterwards"
        )
    if ones(columns[allowed.any(-2)]):
        return found("softmax over the queries", probe, f"{seen}; the columns sum to 1.000")
    if weights.ndim == 4 and ones(weights.sum(1)[allowed.any(1)]):
        return found("softmax over the heads", probe, f"{seen}; the heads sum to 1.000 at each place")
    if ones(weights.sum(0)[allowed.any(0)]):
        return found("softmax over the batch", probe, f"{seen}; the sequences of the batch sum to 1.000 at each place")
    if ones(weights.sum((-1, -2))) or abs(float(weights.sum()) - 1) < 1e-5:
        return found("one sum for the whole map", probe, f"{seen}; all of a map sums to 1.000")
    if look.query is not None and high - low < 1e-5:
        d_head = look.query.shape[-1]
        if abs(low * math.sqrt(d_head) - 1) < 1e-3 or abs(low * d_head - 1) < 1e-3:
            return found("scaled after the softmax", probe, f"{seen}: 1 / {1 / low:.3g}, where d_head is {d_head}")
    return found("rows do not sum to 1", probe, seen)


def heads_mixed(before: Tensor, weights: Tensor) -> bool:
    """Whether each head's weights are one mixture of the maps of all heads, as in talking heads: these rows need not sum to 1."""
    if before.shape != weights.shape or weights.ndim != 4 or not ones(before.sum(-1)) or not weights.isfinite().all():
        return False
    maps, mixed = (each.transpose(0, 1).flatten(1).T for each in (before, weights))
    maps = torch.cat([maps, torch.ones_like(maps[:, :1])], 1)  # a mixture may have a bias
    mixture = torch.linalg.lstsq(maps, mixed).solution
    others = mixture[:-1] - torch.diag(mixture[:-1].diagonal())
    return float(others.abs().max()) > 1e-3 and torch.allclose(maps @ mixture, mixed)


def future_cut(weights: Tensor, calls: list[Call]) -> bool:
    """Whether weights are those of a softmax over all keys, with those of later keys set to 0 afterwards."""
    softmaxes = [call.result for call in calls if call.name == "softmax"]
    return any(ones(each.sum(-1)) and same(each.tril(), weights) and not same(each, weights) for each in softmaxes)


def future_zeroed(look: Look, calls: list[Call]) -> bool:
    """Whether softmax was given scores that are exactly 0 for every later key, as after tril(), and these weights came out."""
    if look.weights.shape[-1] != look.weights.shape[-2] or float(look.weights.triu(1).max()) < 1e-9:
        return False
    for call in calls:
        if call.name == "softmax" and call.given and call.result.shape == look.weights.shape:
            scores = call.given[0]
            zeroed = not scores.triu(1).any() and bool(scores.tril().count_nonzero() > scores.shape[-1])
            if zeroed and same(call.result, look.weights):
                return True
    return False


def same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are equal up to rounding; broadcasting does not count."""
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-6, atol=1e-9)


def products(look: Look) -> Tensor | None:
    """query · key for each pair, or None if they were not seen, or have other leading axes than the weights."""
    if look.query is None or look.query.shape[:-2] != look.weights.shape[:-2]:
        return None
    if look.key.shape[-2] != look.weights.shape[-1] or look.query.shape[-1] != look.key.shape[-1]:
        return None
    try:
        return look.query @ look.key.transpose(-1, -2)
    except RuntimeError:
        return None


def judge_scale(look: Look, allowed: Tensor, before: float) -> tuple[Finding | None, str]:
    """What the scores were multiplied by. ``before`` is what queries and keys were multiplied by ahead of the product."""
    compared, weights = products(look), look.weights
    slope = None if compared is None else slope_of(weights, compared, allowed)
    biased = slope is None and compared is not None and weights.ndim == 4
    if biased:  # the same for each sequence of a batch, as those by distance are, so not in the ratio of two
        slope = slope_of(weights[1:] / weights[:1], compared[1:] - compared[:1], allowed[1:] & allowed[:1])
    if slope is None:
        return None, ""
    if biased and abs(slope * before - 1) < 1e-3:
        return None, "scores are not scaled and get a bias, as T5's do (not judged)"
    total, d_head = slope * before, look.query.shape[-1]
    heads = look.weights.shape[1] if look.weights.ndim == 4 else 1
    root = math.sqrt(d_head)
    seen = f"scores are multiplied by {total:.4g}, expected {1 / root:.4g} = 1 / √{d_head}"
    if abs(total * root - 1) < 1e-2 or d_head == 1:
        return None, seen.split(",")[0]
    named = {
        "no scaling": 1.0,
        "scaled by d_head, not its root": 1 / d_head,
        "multiplied by the root": root,
        "scaled by the number of tokens": 1 / math.sqrt(look.weights.shape[-1]),
        "scaled by d_model": 1 / math.sqrt(d_head * heads),
    }
    for fault, factor in named.items():
        if abs(total / factor - 1) < 1e-3:
            return found(fault, "scale of the scores", f"{seen} ({total * root:.3g} times as much)"), seen
    return None, f"{seen.split(',')[0]} (no usual factor; not judged)"


def judge_mask(look: Look, plain: Look, allowed: Tensor) -> Finding | None:
    """What a mask did to the weights; ``plain`` is the same look without a mask, ``allowed`` has the weights' shape."""
    weights, free = look.weights, plain.weights
    if weights.shape != free.shape:
        return None
    hidden = float(weights[~allowed].max())
    rows = weights.sum(-1)[allowed.any(-1)]
    if hidden <= 1e-9 and ones(rows):
        return None
    probe = "what the mask does to the weights"
    seen = f"up to {hidden:.3f} of a query's weight lies on masked keys"
    if hidden <= 1e-9:
        if same(weights, torch.where(allowed, free, 0.0)) or float(rows.max()) < 1:
            seen = f"masked weights are 0, but rows sum to {float(rows.min()):.3f} to {float(rows.max()):.3f}"
            return found("mask after the softmax", probe, seen)
        return None
    if float(weights.max() - weights.min()) < 1e-9 < float(free.max() - free.min()):
        return found(
            "the mask hides everything",
            probe,
            f"every weight is {float(weights.max()):.3f}, on masked keys as on visible ones",
        )
    if same(weights, free):
        return found("mask ignored", probe, f"{seen}; the weights with and without the mask are the same")
    scores = free.clamp(min=1e-300).log()
    if same(weights, torch.softmax(scores + allowed, -1)):
        return found("0/1 mask added", probe, f"{seen}: what may be seen is {math.e:.3f} times likelier, no more")
    compared = products(plain)
    slope = None if compared is None else slope_of(free, compared, torch.ones_like(allowed))
    if slope is not None and same(weights, torch.softmax(compared * slope * allowed, -1)):
        return found("scores multiplied by the mask", probe, f"{seen}: its score became 0")
    opposite = torch.softmax(scores.masked_fill(allowed, -torch.inf), -1)
    rows_left = (~allowed).any(-1)
    if same(weights[rows_left], opposite[rows_left]):
        return found("mask inverted", probe, f"{seen}, and {float(weights[allowed].max()):.3f} on visible ones")
    return None


def judge_axis(look: Look, plain: Look, allowed: Tensor) -> Finding | None:
    """Whether a mask that hides the same keys from all queries changed the rows of these tokens, and no other row."""
    weights, free = look.weights, plain.weights
    if weights.shape != free.shape or weights.shape[-1] != weights.shape[-2]:
        return None
    kept = allowed[..., 0, :]
    if kept.all() or not kept.any() or not torch.equal(allowed, kept.unsqueeze(-2).expand_as(allowed)):
        return None
    if not same(weights[kept], free[kept]) or same(weights[~kept], free[~kept]):
        return None
    seen = f"the rows of hidden tokens changed, the others have up to {float(weights[kept][~allowed[kept]].max()):.3f} on hidden keys"
    return found("mask on the query axis", "what the mask does to the weights", seen)
