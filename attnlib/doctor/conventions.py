"""Which form and which convention a mask argument has: found by trying, with a mask whose effect is known.

The doctor's own mask is always boolean [batch, n_query, n_key], True = may attend. A convention turns it into what the
layer takes. It is *respected* if what is hidden has no effect, and what is visible has one.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnlib.doctor.calling import LayerError, Subject
from attnlib.doctor.reading import TARGETS

CONVENTIONS: dict[str, Callable[[Tensor, torch.dtype], Tensor]] = {
    "may attend": lambda allowed, dtype: allowed,
    "ignore": lambda allowed, dtype: ~allowed,
    "keep 1": lambda allowed, dtype: allowed.long(),
    "additive": lambda allowed, dtype: torch.zeros(allowed.shape, dtype=dtype).masked_fill(~allowed, -torch.inf),
}
WORDS = {
    "may attend": "True = may attend",
    "ignore": "True = ignore",
    "keep 1": "1 = keep, 0 = hide",
    "additive": "added to the scores, −inf = hide",
}
PAIRS: dict[str, Callable[[Tensor], Tensor]] = {
    "[batch, n_query, n_key]": lambda allowed: allowed,
    "[batch, 1, n_query, n_key]": lambda allowed: allowed[:, None],
}
COLUMNS: dict[str, Callable[[Tensor], Tensor]] = {
    "[batch, n_key]": lambda allowed: allowed[:, 0],
    "[batch, 1, n_key]": lambda allowed: allowed[:, :1],
    "[batch, 1, 1, n_key]": lambda allowed: allowed[:, None, :1],
}
SHARED: dict[str, Callable[[Tensor], Tensor]] = {"[n_query, n_key]": lambda allowed: allowed[0]}
FORMS = PAIRS | COLUMNS | SHARED
LENGTHS = "lengths [batch]"


@dataclass
class Slot:
    """One mask argument: its name, the form and convention that were found, and what trying it showed.

    ``verdict`` is "respected", "inverted", "leaks", "hides everything", "gives NaN" or "raises". ``stated`` tells whether the
    convention was given by the caller or by the argument's name, and not only found by trying.
    """

    name: str
    form: str
    convention: str
    verdict: str
    stated: bool = False
    on_context: bool = True
    error: str = ""
    leak: float = 0.0
    tries: int = 1

    @property
    def pairs(self) -> bool:
        """Whether each query can have its own row."""
        return self.form in PAIRS or self.form in SHARED

    def make(self, allowed: Tensor, dtype: torch.dtype) -> Tensor:
        """The doctor's mask, boolean [batch, n_query, n_key], as this argument takes it."""
        if self.form == LENGTHS:
            return allowed[:, 0].sum(-1)
        return CONVENTIONS[self.convention](FORMS[self.form](allowed), dtype)

    def words(self) -> str:
        """How it is read, for a report."""
        if self.form == LENGTHS:
            return f"{self.name}: {self.form}"
        return (
            f"{self.name}: {self.form}, {WORDS[self.convention]} ({'as stated' if self.stated else 'found by trying'})"
        )


def by_name(name: str, subject: Subject) -> tuple[list[str], bool]:
    """Conventions in the order in which they are tried, and whether the name states the first."""
    lower = name.lower()
    if isinstance(subject.layer, (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)):
        return ["ignore"], True
    if isinstance(subject.layer, (nn.TransformerDecoderLayer, nn.TransformerDecoder, nn.Transformer)):
        return ["ignore"], True
    if any(word in lower for word in ("keep", "valid", "allowed", "visible")):
        return ["may attend", "keep 1"], True
    if "bias" in lower:
        return ["additive"], False
    if "pad" in lower:
        return ["ignore", "may attend", "keep 1", "additive"], False
    return ["may attend", "ignore", "keep 1", "additive"], False


def trial_mask(subject: Subject, slot: Slot, n: int, shared: bool) -> Tensor:
    """A mask with hidden columns: others in each sequence, the first never, the last only in lengths."""
    allowed = torch.ones(subject.batch, subject.n_query, n, dtype=torch.bool)
    for place in range(subject.batch):
        if slot.form == LENGTHS:
            allowed[place, :, n - 1 - place % 2 :] = False
        else:
            hidden = (1, 2) if shared else [(1, 2), (1, 3), (2, 3)][place % 3]
            allowed[place, :, list(hidden)] = False
    return allowed


def effect(subject: Subject, slot: Slot) -> tuple[bool, bool, float]:
    """Whether hidden tokens change the result of the others, whether visible ones do, and by how much hidden ones do."""
    sequences = subject.inputs()
    moved = 1 if subject.cross and slot.on_context else 0
    n = sequences[moved].shape[1]
    allowed = trial_mask(subject, slot, n, slot.form in SHARED)
    masks = {slot.name: slot.make(allowed, subject.dtype)}
    kept = allowed[:, 0]  # [batch, n]
    other = subject.draw(*sequences[moved].shape[1:])
    results = []
    for changed in (None, ~kept, first_only(kept)):
        given = list(sequences)
        if changed is not None:
            given[moved] = torch.where(changed[..., None], other, given[moved])
        results.append(subject.run(*given, masks=masks)[0])
    plain, hidden, visible = results
    if not plain.isfinite().all():
        raise FloatingPointError(f"{float((~plain.isfinite()).double().mean()):.0%} of the result is NaN or infinite")
    size = float(plain.abs().nan_to_num().max()) + 1e-30
    if plain.ndim == 3 and plain.shape[1] == n and not (subject.cross and moved == 1):
        # own tokens: those that did not move themselves
        rows, later = kept, kept & ~first_only(kept)
        gaps = [(hidden - plain)[rows], (visible - plain)[later]]
    else:
        gaps = [hidden - plain, visible - plain]
    leak, reach = (float(gap.abs().nan_to_num(nan=1.0).max()) / size for gap in gaps)
    return leak > subject.tolerance, reach > subject.tolerance, leak


def first_only(kept: Tensor) -> Tensor:
    """True at the first token of each sequence, [batch, n]."""
    first = torch.zeros_like(kept)
    first[:, 0] = True
    return first


def forms_for(name: str) -> dict:
    """The forms that an argument of this name may have, the likeliest first."""
    if "length" in name.lower():
        return {LENGTHS: None}
    padding = "pad" in name.lower() or name.lower() == "attention_mask"
    return COLUMNS | PAIRS | SHARED if padding else PAIRS | COLUMNS | SHARED


def find_slot(subject: Subject, name: str, stated: str | None) -> Slot:
    """The form and convention of one mask argument."""
    orders, named = by_name(name, subject)
    conventions = [stated] if stated else orders
    context_names = ("context", "memory", "enc", "src", "source", "cross")
    single = len(subject.mask_names) == 1 and not name.startswith(TARGETS[:3])  # a target's mask is its own
    on_context = subject.kind == "qkv" or single or any(part in name.lower() for part in context_names)
    tried: list[Slot] = []
    for form in forms_for(name):
        for convention in conventions:
            slot = Slot(name, form, convention, "raises", bool(stated or named), on_context)
            try:
                hidden, visible, slot.leak = effect(subject, slot)
            except LayerError as error:
                slot.error = str(error)
                tried.append(slot)
                continue
            except FloatingPointError as error:
                slot.error, slot.verdict = str(error), "gives NaN"
                tried.append(slot)
                continue
            verdicts = {(False, True): "respected", (True, False): "inverted", (True, True): "leaks"}
            slot.verdict = verdicts.get((hidden, visible), "hides everything")
            if slot.verdict == "respected":
                return slot
            tried.append(slot)
    for slot in tried:
        slot.tries = len(tried)
    order = ["inverted", "leaks", "hides everything", "gives NaN", "raises"][0 if stated or named else 1 :]
    if (
        not stated
        and not named
        and tried
        and all(slot.verdict == "inverted" for slot in tried if slot.verdict != "raises")
    ):
        for (
            slot
        ) in tried:  # whatever the mask says, the visible tokens have no effect: it is not the mask that hides them
            slot.verdict = "leaks" if slot.verdict == "inverted" else slot.verdict
    return min(tried, key=lambda slot: order.index(slot.verdict) if slot.verdict in order else len(order))
