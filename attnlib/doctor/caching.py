"""Whether a cache changes nothing: tokens in two parts, the second beside what the first left, as in one part."""

import torch

from attnlib.doctor.calling import first_line
from attnlib.doctor.chart import Chart
from attnlib.doctor.reading import parameters_of
from attnlib.doctor.report import NotExamined, Passed, found
from attnlib.doctor.returned import parts_of
from attnlib.doctor.seeing import size_of

CACHES = ("past", "cache")
FIRST = 4  # tokens of the first part


def cache_probe(chart: Chart) -> list:
    """For a causal layer that takes and returns a cache; where there is no such argument, nothing is said."""
    subject, probe = chart.subject, "tokens behind a cache"
    names = [each.name for each in parameters_of(subject.layer) if any(part in each.name for part in CACHES)]
    names = [name for name in names if not name.startswith(("use_", "is_", "return_", "cache_position"))]
    if not names or not chart.causal or subject.kind != "self" or subject.call or not subject.is_module:
        return []
    x = subject.draw()
    whole = subject.run(x)[0]
    try:
        first = subject.apply({subject.names[0]: subject.outwards(x[:, :FIRST])})
        if not isinstance(first, (tuple, list)) or len(first) < 2 or first[1] is None:
            return [
                NotExamined(
                    probe,
                    f"no cache is returned for `{names[0]}`.",
                    "Return (output, cache), or pass both parts by call=.",
                )
            ]
        second = subject.apply({subject.names[0]: subject.outwards(x[:, FIRST:]), names[0]: first[1]})
    except Exception as error:
        return [
            NotExamined(
                probe,
                f"`{names[0]}` raises {first_line(error)}.",
                "Take as a cache what is returned beside the output.",
            )
        ]
    later = parts_of(second, {subject.n_query})[0]
    later = later if subject.batch_first else later.transpose(0, 1)
    gap = float((later - whole[:, FIRST:]).abs().nan_to_num(nan=torch.inf).max()) / size_of(whole)
    seen = f"{x.shape[1] - FIRST} tokens behind a cache of {FIRST} differ by {gap:.2g} of the size from the same tokens without it"
    if gap > subject.tolerance:
        return [found("a cache changes the result", probe, seen)]
    return [Passed(probe, seen)]
