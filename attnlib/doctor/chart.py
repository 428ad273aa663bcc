"""What is known of a layer while it is examined."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from attnlib.doctor.calling import Subject
from attnlib.doctor.conventions import SHARED, Slot, trial_mask

OVER_BATCH = ("attention goes over the batch, so sequences mix.", "Mend that first, or pass batch_first=False.")


@dataclass
class Chart:
    """The subject, its masks, and what the first probes found, for those that follow.

    ``causal`` is True if the layer is, or is said to be, causal; ``pattern[i, j]`` is True where token j changes result i,
    ``blind`` if no token changes another one's, ``over_batch`` if another sequence does.
    """

    subject: Subject
    original: object
    slots: list[Slot] = field(default_factory=list)
    causal: bool = False
    stated_causal: bool | None = None
    positions: bool | None = None
    pattern: Tensor | None = None
    blind: bool = False
    over_batch: bool = False

    def allowed(self, n_query: int, n_key: int) -> Tensor:
        """What may be attended where no mask is given: [batch, n_query, n_key]."""
        everything = torch.ones(self.subject.batch, n_query, n_key, dtype=torch.bool)
        return everything.tril() if self.causal and n_query == n_key else everything

    def apart(self) -> bool:
        """Whether no token of the first sequence changes another one's result."""
        pattern = self.pattern
        return (
            pattern is not None
            and len(pattern) > 1
            and not (pattern & ~torch.eye(*pattern.shape, dtype=torch.bool)).any()
        )

    def trial(self, slot: Slot, n: int) -> Tensor:
        """A mask that hides columns, other ones in each sequence where the form allows it."""
        return trial_mask(self.subject, slot, n, slot.form in SHARED)

    def values_ignored(self) -> bool:
        """Whether other values leave the result of a function of query, key and value exactly as it was."""
        subject = self.subject
        if subject.kind != "qkv" or (subject.call is not None):
            return False
        query, key = subject.inputs()
        one, other = (subject.run(query, key, subject.draw(key.shape[1], key.shape[2]))[0] for _ in range(2))
        return torch.equal(one, other)
