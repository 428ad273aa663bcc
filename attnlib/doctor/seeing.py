"""Which token changes which result: nothing is needed but calls."""

import torch
from torch import Tensor

from attnlib.doctor.calling import Subject
from attnlib.doctor.chart import Chart


def size_of(output: Tensor) -> float:
    """The size of a result, to measure changes by."""
    return float(output.abs().nan_to_num().max()) + 1e-30


def influence(chart: Chart, moved: int, masks: dict | None = None) -> Tensor:
    """Which token changes which result: [n_query, n_token], True where it does; [1, n_token] for a pooled result."""
    subject = chart.subject
    sequences = subject.inputs()
    plain = subject.run(*sequences, masks=masks)[0]
    other = subject.draw(*sequences[moved].shape[1:])
    columns = []
    for token in range(sequences[moved].shape[1]):
        given = list(sequences)
        given[moved] = given[moved].clone()
        given[moved][:, token] = other[:, token]
        gap = (subject.run(*given, masks=masks)[0] - plain).abs().nan_to_num(nan=1.0)
        gap = gap.amax(0).flatten(1).amax(1) if gap.ndim > 2 else gap.max()[None]
        columns.append(gap > subject.tolerance * size_of(plain))
    return torch.stack(columns, 1)


def reach(subject: Subject) -> tuple[bool, bool]:
    """Whether the first token of the first sequence changes other results of its sequence, and results of other sequences."""
    sequences = subject.inputs()
    moved = 1 if subject.cross else 0
    given = [each.clone() for each in sequences]
    given[moved][0, 0] = subject.draw(1, given[moved].shape[-1])[0, 0]
    plain, changed = (subject.run(*each)[0] for each in (sequences, given))
    gap = (changed - plain).abs().nan_to_num(nan=1.0) > subject.tolerance * size_of(plain)
    own = gap[0, 1:] if gap.ndim > 2 else gap[0]
    return bool(own.any()), bool(gap[1:].any())
