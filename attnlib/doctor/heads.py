"""Where the numbers of the heads come from: which projection, which token, and which heads share."""

import torch
from torch import Tensor

from attnlib.doctor.looks import same


def shares(part: Tensor, whole: Tensor) -> bool:
    """Whether each number of part [.., a] stands somewhere in whole [.., b]."""
    ordered = whole.contiguous().sort(-1).values
    after = torch.searchsorted(ordered, part.contiguous()).clamp(max=ordered.shape[-1] - 1)
    gaps = [(ordered.gather(-1, place) - part).abs() for place in (after, (after - 1).clamp(min=0))]
    return bool(torch.minimum(*gaps).max() <= 1e-6 * max(float(whole.abs().max()), 1e-9))


def by_token(heads: Tensor, batch: int) -> list[Tensor]:
    """Heads [batch, h, n, d], folded [batch * h, n, d] or [h * batch, n, d], as [batch, n, h * d]."""
    if heads.ndim == 4 and len(heads) == batch:
        return [heads.transpose(1, 2).flatten(-2)]
    if heads.ndim == 3 and len(heads) % batch == 0:
        count = len(heads) // batch
        one, other = heads.unflatten(0, (batch, count)), heads.unflatten(0, (count, batch)).transpose(0, 1)
        return [each.transpose(1, 2).flatten(-2) for each in ([one] if count == 1 else [one, other])]
    return []


def without_repeats(heads: Tensor) -> Tensor:
    """Heads [batch, h, n, d] with those that several share but once, as they were projected."""
    return heads[:, sorted(set(groups(heads)))] if heads.ndim == 4 else heads


def groups(heads: Tensor) -> list[int]:
    """For each head of [batch, h, n, d] the first that is equal to it."""
    every = range(heads.shape[1])
    return [next(i for i in every if torch.equal(heads[:, i], heads[:, j])) for j in every]


def judge_split(heads: Tensor, made: list[Tensor], batch: int) -> tuple[str, float]:
    """Where the heads of a query (or key) come from: "tokens" and the factor applied, "mixed", or "unknown".

    ``made`` are the projections [batch, n, width] seen before. In "tokens" each head holds a part of its own token; in
    "mixed" all numbers of a sequence are there, under another token.
    """
    heads = without_repeats(heads)
    candidates = by_token(heads, batch)
    if not candidates:
        return "unknown", 1.0
    width, d_head = candidates[0].shape[-1], heads.shape[-1]
    for projection in reversed(made):
        if projection.shape[:2] != candidates[0].shape[:2] or projection.shape[-1] < width:
            continue
        for factor in (1.0, d_head**-0.5, d_head**-0.25, width**-0.5, 1 / d_head):
            if any(shares(each[:1, :2] / factor, projection[:1, :2]) for each in candidates) and any(
                shares(each / factor, projection) for each in candidates
            ):
                return "tokens", factor
            if projection.shape[-1] == width:
                if any(
                    same((each / factor).flatten(1).sort().values, projection.flatten(1).sort().values)
                    for each in candidates
                ):
                    return "mixed", factor
                norms = [each.norm(dim=-1) / projection.norm(dim=-1) for each in candidates]
                if any(bool((each / factor - 1).abs().max() < 1e-6) for each in norms):
                    return "rotated", factor
    return "unknown", 1.0
