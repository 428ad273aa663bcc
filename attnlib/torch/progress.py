"""How far a long run is, shown to a person in a terminal or a notebook, and to nobody else."""

import sys
from collections.abc import Iterable


def progress(steps: Iterable, first: int, total: int, what: str = "steps") -> Iterable:
    """The steps, with a bar while they are run if somebody looks; stored outputs hold none."""
    if "ipykernel" in sys.modules:
        from attnlib.plots.lines import a_person_is_there

        somebody_looks = a_person_is_there()
    else:
        somebody_looks = sys.stderr.isatty()
    if not somebody_looks:
        return steps
    from tqdm.auto import tqdm

    return tqdm(steps, initial=first, total=total, desc=what, leave=False)
