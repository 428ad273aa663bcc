"""``weights``: reads attention maps, head by head."""

from typing import Any

import numpy as np
import torch

from attnlib.doctor.report import Finding, NotExamined, Passed, Report

DEAD = 1e-3  # a head whose rows differ by less hands every query the same
TWIN = 1e-3  # two heads that differ by less do the same


def weights(weights: Any, mask: Any = None) -> Report:
    """Read attention maps: are they maps, is any head uniform, one-hot, dead, a twin of another, or stuck on one token?

    Parameters
    ----------
    weights : tensor or array [..., n_query, n_key]
        What softmax returned. The axis before the last two is the heads; axes before it are taken together. With two axes
        there is one head.
    mask : boolean tensor or array, broadcasts to [..., n_query, n_key], optional
        True = may attend. Rows with nothing to attend to are left out, and uniform means: over what may be attended.

    Returns
    -------
    report : Report
        Its ``passed`` has a line for each head: entropy (in bits, and as a share of a uniform map's), the largest weight,
        the share of saturated rows (one weight above 0.99), and the token with the most mass.

    Raises
    ------
    ValueError
        If these are no maps of two axes or more, or the mask does not fit.

    Notes
    -----
    A uniform or a peaked head is a warning, not a fault: untrained heads are near uniform, and heads that look at the previous
    word are rightly one-hot. What a map means is the question of lesson 12. Entropy: Shannon (1948), −Σ w log₂ w.
    """
    maps = np.asarray(weights.detach().float().cpu() if isinstance(weights, torch.Tensor) else weights)
    if maps.ndim < 2 or maps.dtype.kind != "f" or 0 in maps.shape:
        raise ValueError(
            f"weights has shape {list(maps.shape)} and dtype {maps.dtype}; expected floating [..., n_query, n_key], not empty. "
            f"Try layer(..., return_weights=True)[1]."
        )
    maps = maps.astype(np.float64)
    allowed = np.ones(maps.shape, bool) if mask is None else fitting(mask, maps.shape)
    n_query, n_key = maps.shape[-2:]
    heads = maps.shape[-3] if maps.ndim > 2 else 1
    maps, allowed = (np.moveaxis(each.reshape(-1, heads, n_query, n_key), 1, 0) for each in (maps, allowed))
    report = Report(f"attention maps of {heads} head{'s' * (heads > 1)} [{n_query} queries, {n_key} keys]")
    if not are_maps(report, maps, allowed):
        return report
    for head, (each, seen) in enumerate(zip(maps, allowed)):
        read_head(report, head, each[seen.any(-1)], seen[seen.any(-1)])
    read_twins(report, maps, allowed)
    report.assumed.append("Axes: [..., heads, n_query, n_key]; all axes before the heads are taken together.")
    return report


def fitting(mask: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The mask in the shape of the maps, or a ValueError."""
    mask = np.asarray(mask.detach().cpu() if isinstance(mask, torch.Tensor) else mask)
    try:
        if mask.dtype != bool:
            raise ValueError
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(
            f"mask has shape {list(mask.shape)} and dtype {mask.dtype}; expected booleans (True = may attend) that broadcast to "
            f"{list(shape)}. Try mask[:, None] where the heads are missing."
        ) from None


def are_maps(report: Report, maps: np.ndarray, allowed: np.ndarray) -> bool:
    """Whether the numbers are weights at all: finite, not negative, rows of 1 (or of 0), nothing where it is forbidden."""
    probe = "are these weights"
    if not np.isfinite(maps).all():
        share = 1 - np.isfinite(maps).mean()
        add(
            report,
            "not finite",
            probe,
            "fault",
            f"{share:.1%} of the weights are NaN or infinite",
            "A wholly masked row?",
            4,
        )
        return False
    rows = maps.sum(-1)[allowed.any(-1)]
    off = np.abs(rows - 1).max() if rows.size else 0.0
    if maps.min() < 0 or off > 1e-2:
        columns = maps.sum(-2)
        over = "; the columns sum to 1, so softmax went over the queries" if np.abs(columns - 1).max() < 1e-3 else ""
        seen = f"rows sum to {rows.min():.3f} to {rows.max():.3f}, the smallest weight is {maps.min():.3f}{over}"
        meaning = "These are scores, dropped weights, or weights normalised over another axis."
        add(report, "rows do not sum to 1", probe, "fault", seen, meaning, 2)
        return False
    hidden = maps[~allowed].max(initial=0.0)
    if hidden > 1e-6:
        seen = f"up to {hidden:.3f} of a row lies where the mask forbids it"
        add(report, "weight on masked keys", probe, "fault", seen, "The mask is not applied, or means the opposite.", 4)
        return False
    report.passed.append(Passed(probe, f"{rows.size} rows sum to 1 (to {off:.0e})"))
    return True


def read_head(report: Report, head: int, rows: np.ndarray, allowed: np.ndarray) -> None:
    """Entropy, saturation, and mass on one token; ``rows [rows, n_key]``."""
    choices = allowed.sum(-1)
    several = choices > 1  # a row with one choice says nothing
    rows, choices = rows[several], choices[several]
    name = f"head {head}"
    if len(rows) < 2:
        report.not_examined.append(NotExamined(name, "fewer than 2 rows have a choice.", "Give longer sequences."))
        return
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.where(rows > 0, rows * np.log2(rows), 0.0).sum(-1)
    share = float((entropy / np.log2(choices)).mean())
    saturated = float((rows.max(-1) > 0.99).mean())
    mass = rows.mean(0)
    token, most = int(mass.argmax()), float(mass.max())
    spread = float(np.abs(rows - rows.mean(0)).max())
    numbers = f"entropy {entropy.mean():.2f} bits, {share:.0%} of uniform; {saturated:.0%} of rows saturated"
    numbers += f"; most mass on token {token} ({most:.2f})"
    equal = len(set(choices.tolist())) == 1
    if share > 0.99:
        meaning = "It takes the mean: untrained, or its scores are too small (scaled twice, temperature too high)."
        add(report, f"{name} is uniform", name, "warning", numbers, meaning, 3)
    elif most > 0.9:
        meaning = "Nearly all goes to one token: often the first or a separator, where a head rests when it has nothing to do."
        add(report, f"{name} looks at one token", name, "warning", numbers, meaning, 20)
    elif equal and spread < DEAD:
        meaning = "Every query gets the same weights: the query has no say."
        add(report, f"{name} is dead", name, "warning", f"rows differ by at most {spread:.1e}; {numbers}", meaning, 12)
    elif saturated > 0.9:
        meaning = (
            "Saturated softmax has hardly a gradient: scaling missing? Or a head that copies, which is rightly one-hot."
        )
        add(report, f"{name} is one-hot", name, "warning", numbers, meaning, 3)
    else:
        report.passed.append(Passed(name, numbers))


def read_twins(report: Report, maps: np.ndarray, allowed: np.ndarray) -> None:
    """Heads that do the same; ``maps [heads, sequences, n_query, n_key]``. Where there is no choice all are alike."""
    several = allowed.sum(-1, keepdims=True).max(0) > 1
    if not several.any():
        return
    pairs = [
        (one, other, float(np.abs((maps[one] - maps[other]) * several).max()))
        for one in range(len(maps))
        for other in range(one)
    ]
    for one, other, gap in pairs:
        if gap < TWIN:
            seen = f"their weights differ by at most {gap:.1e}"
            meaning = "One of them is spare: started alike (a copied layer), or both are uniform."
            add(report, f"heads {other} and {one} are the same", "heads differ", "warning", seen, meaning, 12)
    if pairs and min(gap for *_, gap in pairs) >= TWIN:
        report.passed.append(
            Passed("heads differ", f"by {min(gap for *_, gap in pairs):.2f} at least, each pair somewhere")
        )


def add(report: Report, fault: str, probe: str, severity: str, seen: str, meaning: str, lesson: int) -> None:
    """Put a finding into a report."""
    report.findings.append(Finding(fault, probe, severity, seen, meaning, lesson))
