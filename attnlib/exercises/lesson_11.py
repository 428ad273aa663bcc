"""Exercises of lesson 11: a mean without padding, a step of training, an evaluation, and an interval around a few runs."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from attnlib.data import results
from attnlib.exercises.compare import Unfit
from attnlib.exercises.core import Case, Checker, Exercise, Mistake
from attnlib.exercises.modules import array, on_tensors, tensor
from attnlib.torch import models, training

# masked_mean ----------------------------------------------------------------------------------------------------------


def masked_mean(x, lengths):
    """Return the mean over the words of each text: x [batch, n, d], lengths [batch] -> [batch, d]; 0 for an empty text."""
    mask = torch.arange(x.shape[1]) < lengths[:, None]  # [batch, n]
    total = x.masked_fill(~mask[:, :, None], 0.0).sum(dim=1)  # [batch, d]
    return total / lengths.clamp(min=1)[:, None]


def call_masked_mean(function, x, lengths):
    return on_tensors(function, x, lengths)


def mean_cases(rng):
    def random(*shape):
        return rng.normal(size=shape).round(1)

    by_hand = np.array([[[2.0], [4.0], [9.0]]]), np.array([2])
    with_zeros = np.array([[[0.0, 1.0], [2.0, 0.0], [0.0, 0.0], [5.0, 5.0]]])
    return [
        Case("one text of 2 words and a padding, by hand", by_hand, np.array([[3.0]], dtype=np.float32)),
        Case("a word that is all zeros counts too", (with_zeros, np.array([3])), np.float32([[2 / 3, 1 / 3]])),
        Case("square: 3 texts of 3 words of 3 numbers", (random(3, 3, 3), np.array([1, 3, 2]))),
        Case("all axes unequal", (random(2, 4, 3), np.array([4, 2]))),
        Case("no padding", (random(2, 3, 2), np.array([3, 3]))),
        Case("one long text, many short ones", (random(4, 5, 2), np.array([5, 1, 1, 2]))),
        Case("an empty text", (random(2, 3, 2), np.array([0, 2]))),
    ]


def _mask(x, lengths, more=0):
    return (torch.arange(x.shape[1]) < lengths[:, None] + more)[:, :, None]


mean_mistakes = [
    Mistake(
        "the padding is part of the mean",
        lambda x, lengths: x.mean(dim=1),
        "Padding is no word. The verdict on a short text would depend on the longest text beside it. Use the lengths.",
        ("tr13",),
    ),
    Mistake(
        "the padding is left out of the sum, but counted in the divisor",
        lambda x, lengths: (x * _mask(x, lengths)).mean(dim=1),
        "You add up the right words and divide by n, the padded length. How many words were added up?",
    ),
    Mistake(
        "the divisor is right, but padding is added up too",
        lambda x, lengths: x.sum(dim=1) / lengths.clamp(min=1)[:, None],
        "Padding need not be zeros: after an encoder it is not. Make it 0 before you add up.",
    ),
    Mistake(
        "one padding too many: `<=` in place of `<`",
        lambda x, lengths: (x * _mask(x, lengths, 1)).sum(dim=1) / lengths.clamp(min=1)[:, None],
        "Places are counted from 0: a text of 2 words has places 0 and 1. Which place does your comparison add?",
        also=(
            lambda x, lengths: (x * _mask(x, lengths, 1)).sum(dim=1) / _mask(x, lengths, 1).sum(dim=1),
            lambda x, lengths: (x * _mask(x, lengths, 1)).sum(dim=1) / (lengths[:, None] + 1),
        ),
    ),
    Mistake(
        "the last word is lost",
        lambda x, lengths: (x * _mask(x, lengths, -1)).sum(dim=1) / lengths.clamp(min=1)[:, None],
        "A text of 2 words has places 0 and 1, and both count. Is there a `- 1` too many?",
        also=(lambda x, lengths: (x * _mask(x, lengths, -1)).sum(dim=1) / (lengths - 1).clamp(min=1)[:, None],),
    ),
    Mistake(
        "a sum, not a mean",
        lambda x, lengths: (x * _mask(x, lengths)).sum(dim=1),
        "Long texts would get long vectors. Divide by the number of words.",
    ),
    Mistake(
        "the mask is turned around: the mean of the padding",
        lambda x, lengths: (x * ~_mask(x, lengths)).sum(dim=1) / lengths.clamp(min=1)[:, None],
        "`masked_fill(mask, 0)` fills where the mask is True. Fill the padding, not the words.",
        also=(lambda x, lengths: (x * ~_mask(x, lengths)).sum(dim=1) / (~_mask(x, lengths)).sum(dim=1).clamp(min=1),),
    ),
    Mistake(
        "an empty text is divided by 0",
        lambda x, lengths: (x * _mask(x, lengths)).sum(dim=1) / lengths[:, None],
        "0 / 0 is NaN, and one NaN in a batch is a NaN in the loss, then in all weights. `lengths.clamp(min=1)` helps.",
    ),
    Mistake(
        "the last place is read",
        lambda x, lengths: x[:, -1],
        "The last place of a padded text is padding, and it is one vector, not a mean.",
        ("tr14",),
    ),
    Mistake(
        "the last word is read",
        lambda x, lengths: x[torch.arange(len(x)), (lengths - 1).clamp(min=0)],
        "This is the vector of the last word alone. All words of the text count.",
    ),
    Mistake(
        "the first place is read",
        lambda x, lengths: x[:, 0],
        "The first place is the text's vector only if a CLS token stands there. Here it is the first word.",
    ),
    Mistake(
        "padding is guessed from zeros",
        lambda x, lengths: x.sum(dim=1) / (x != 0).any(dim=2).sum(dim=1).clamp(min=1)[:, None],
        "A word may have a vector of zeros, and padding may be anything. Only the lengths know.",
        also=(lambda x, lengths: x.sum(dim=1) / (x != 0).sum(dim=1).clamp(min=1),),
    ),
    Mistake(
        "lengths without an axis for the features",
        lambda x, lengths: (x * _mask(x, lengths)).sum(dim=1) / lengths.clamp(min=1),
        "[batch, d] / [batch] lines the lengths up with the *features*. `lengths[:, None]` is [batch, 1].",
        also=(
            lambda x, lengths: (x * _mask(x, lengths)).sum(dim=1) / lengths,
            lambda x, lengths: x.sum(dim=1) / lengths.clamp(min=1),
            lambda x, lengths: x.sum(dim=1) / lengths,
        ),
    ),
    Mistake(
        "divided by the number of paddings",
        lambda x, lengths: (x * _mask(x, lengths)).sum(dim=1) / (x.shape[1] - lengths).clamp(min=1)[:, None],
        "The words are added up, and divided by how many places are *no* words. Divide by the lengths.",
        also=(lambda x, lengths: (x * _mask(x, lengths)).sum(dim=1) / (x.shape[1] - lengths)[:, None],),
    ),
    Mistake(
        "all are divided by the length of the longest",
        lambda x, lengths: (x * _mask(x, lengths)).sum(dim=1) / lengths.max(),
        "Each text has a length of its own: `lengths[:, None]` lines them up with the batch.",
    ),
    Mistake(
        "all are divided by the number of all words",
        lambda x, lengths: (x * _mask(x, lengths)).sum(dim=1) / lengths.sum(),
        "Each text has a length of its own: divide row by row, not by their sum.",
    ),
    Mistake(
        "all texts are cut to the length of the first",
        lambda x, lengths: x[:, : lengths[0]].sum(dim=1) / lengths[0].clamp(min=1),
        "The lengths differ from text to text. Make a mask [batch, n] from all of them.",
    ),
    Mistake(
        "one vector for the whole batch",
        lambda x, lengths: (x * _mask(x, lengths)).sum(dim=(0, 1)) / lengths.sum().clamp(min=1),
        "Texts do not mix: the batch axis stays. Add up over the words alone, `dim=1`.",
        also=(lambda x, lengths: (x * _mask(x, lengths)).sum(dim=0) / len(x),),
    ),
    Mistake(
        "a mean over the features",
        lambda x, lengths: (x * _mask(x, lengths)).mean(dim=2),
        "The words stand on axis 1 of [batch, n, d]. Your sum runs over axis 2, the features.",
        also=(lambda x, lengths: x.mean(dim=2), lambda x, lengths: x.mean(dim=-1, keepdim=True)),
    ),
    Mistake(
        "the axis of words is kept",
        lambda x, lengths: (x * _mask(x, lengths)).sum(dim=1, keepdim=True) / lengths.clamp(min=1)[:, None, None],
        "You have [batch, 1, d]. Without `keepdim` it is [batch, d].",
    ),
    Mistake(
        "a maximum, not a mean",
        lambda x, lengths: x.masked_fill(~_mask(x, lengths), -torch.inf).amax(dim=1),
        "The largest number of each feature is another way to pool. The mean is asked for.",
        also=(lambda x, lengths: (x * _mask(x, lengths)).amax(dim=1), lambda x, lengths: x.amax(dim=1)),
    ),
]

# train_step -----------------------------------------------------------------------------------------------------------


def train_step(model, optimizer, ids, lengths, labels, max_norm):
    """Move the weights of model(ids, lengths) -> logits by one step, and return the loss as a number."""
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(ids, lengths), labels)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


class Bag(nn.Module):
    """The smallest reader: a mean of vectors, a linear map. In training it drops the last feature, as a dropout would."""

    def __init__(self, embedding, classify):
        super().__init__()
        self.embedding, self.classify = nn.Parameter(embedding), nn.Parameter(classify)

    def forward(self, ids, lengths):
        """Logits."""
        pooled = models.masked_mean(self.embedding[ids], lengths)  # [batch, d]
        kept = torch.ones(pooled.shape[-1])
        if self.training:
            kept[-1] = 0.0
        return (pooled * kept) @ self.classify  # [batch, n_classes]


def step_inputs(embedding, classify, ids, lengths, labels, max_norm, rate):
    """What a step is given: a model as an evaluation leaves it, plain gradient descent, and a batch."""
    model = Bag(tensor(embedding), tensor(classify)).eval()
    return model, torch.optim.SGD(model.parameters(), lr=rate), *map(tensor, (ids, lengths, labels)), max_norm


def call_train_step(function, embedding, classify, ids, lengths, labels, max_norm, rate):
    """Two steps of plain gradient descent: the two losses, the vectors of words, and the map, after them."""
    model, optimizer, *_ = step_inputs(embedding, classify, ids, lengths, labels, max_norm, rate)
    losses = []
    for _ in range(2):
        model.eval()
        loss = function(model, optimizer, *map(tensor, (ids, lengths, labels)), max_norm)
        if loss is ... or loss is None:
            return loss
        if isinstance(loss, torch.Tensor):
            if loss.requires_grad:
                raise Unfit(
                    "It returns a tensor that still holds the graph of its computation: a list of such losses fills the "
                    "memory. Return `loss.item()`, a number."
                )
            loss = loss.item() if loss.ndim == 0 else loss
        if not isinstance(loss, (int, float)):
            raise Unfit(f"It returns {type(loss).__name__}; expected the loss as a number, `loss.item()`.")
        losses.append(loss)
    return np.float32(losses), array(model.embedding), array(model.classify)


def step_cases(rng):
    def random(*shape):
        return rng.normal(size=shape).round(1)

    def texts(n_words, lengths):
        ids = rng.integers(1, n_words, size=(len(lengths), max(lengths)))
        return np.where(np.arange(max(lengths)) < np.array(lengths)[:, None], ids, 0), np.array(lengths)

    embedding, classify = np.array([[0.0, 0.0], [1.0, 0.0]]), np.zeros((2, 2))
    one = np.array([[1]]), np.array([1]), np.array([0])
    still = 9.0  # no gradient of these is longer
    after = _by_hand(embedding, classify)
    first = random(4, 3), random(3, 3), *texts(4, [3, 3, 3]), np.array([0, 1, 2])
    padded = random(5, 3), random(3, 2), *texts(5, [4, 1, 2]), np.array([1, 0, 1])
    long = 3 * padded[0], 3 * padded[1]
    filled = random(5, 2), random(2, 3), *texts(5, [2, 3, 2, 1]), np.array([2, -100, 0, -100])
    return [
        Case("one text of one word, by hand", (embedding, classify, *one, still, 1.0), after),
        Case("square: 3 texts, 3 words, 3 classes", (*first, still, 0.5)),
        Case("padded texts, two classes", (*padded, still, 0.5)),
        Case("two texts that only fill the batch", (*filled, still, 0.5)),
        Case("long gradients, clipped to 0.1", (long[0].round(1), long[1].round(1), *padded[2:], 0.1, 1.0)),
        Case(
            "certain and wrong: large logits",
            (np.full((3, 2), 6.0), np.array([[5.0, 0.0], [5.0, 0.0]]), *one[:2], np.array([1]), still, 0.1),
        ),
    ]


def _by_hand(embedding, classify):
    """Two steps on one text of one word, whose feature 1 is dropped: only classify[0] and embedding[1, 0] move."""
    embedding, classify, losses = embedding.copy(), classify.copy(), []
    for _ in range(2):
        logits = embedding[1, 0] * classify[0]
        chances = np.exp(logits) / np.exp(logits).sum()
        losses.append(-np.log(chances[0]))
        error = chances - [1, 0]
        moved = embedding[1, 0] * error, classify[0] @ error
        classify[0] -= moved[0]
        embedding[1, 0] -= moved[1]
    return np.float32(losses), np.float32(embedding), np.float32(classify)


def _step(
    loss_of=lambda logits, labels: F.cross_entropy(logits, labels),
    *,
    mode=True,
    zero="before",
    clip="after backward",
    how=lambda model, max_norm: nn.utils.clip_grad_norm_(model.parameters(), max_norm),
    step="after",
    back=lambda loss: loss.backward(),
    lengths_of=lambda ids, lengths: lengths,
    report=lambda loss: loss.item(),
):
    """A step in which one thing is done otherwise."""

    def train_step(model, optimizer, ids, lengths, labels, max_norm):
        model.train(mode) if mode is not None else None
        if zero == "before":
            optimizer.zero_grad()
        loss = loss_of(model(ids, lengths_of(ids, lengths)), labels)
        if clip == "before backward":
            how(model, max_norm)
        if step == "before":
            optimizer.step()
        back(loss)
        if zero == "after backward":
            optimizer.zero_grad()
        if clip == "after backward":
            how(model, max_norm)
        if step == "after":
            optimizer.step()
        if clip == "after step":
            how(model, max_norm)
        return report(loss)

    return train_step


def _each_alone(model, max_norm):
    for parameter in model.parameters():
        nn.utils.clip_grad_norm_([parameter], max_norm)


def _always_scaled(model, max_norm):
    norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf)
    for parameter in model.parameters():
        parameter.grad *= max_norm / norm


def _clip_by_hand(model, max_norm):
    norm = torch.sqrt(sum((parameter.grad**2).sum() for parameter in model.parameters()))
    for parameter in model.parameters():
        parameter.grad *= min(1.0, max_norm / (norm.item() + 1e-6))


def _weights_clipped(model, max_norm):
    with torch.no_grad():
        norm = torch.sqrt(sum((parameter**2).sum() for parameter in model.parameters()))
        for parameter in model.parameters():
            parameter *= min(1.0, max_norm / norm.item())


def _clear_afterwards(model, optimizer, ids, lengths, labels, max_norm):
    model.train()
    loss = F.cross_entropy(model(ids, lengths), labels)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def _reporting(report):
    """A right step that returns something else: report(loss, norm, labels, after), where after() is the loss anew."""

    def train_step(model, optimizer, ids, lengths, labels, max_norm):
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids, lengths), labels)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        return report(loss, norm, labels, lambda: F.cross_entropy(model(ids, lengths), labels)).item()

    return train_step


def _loss_by_hand(logits, labels):
    real = labels >= 0
    chances = torch.log_softmax(logits, dim=-1)[real]
    return -chances[torch.arange(len(chances)), labels[real]].mean()


def _valid(labels):
    return labels.clamp(min=0)


step_mistakes = [
    Mistake(
        "softmax before the loss",
        _step(lambda logits, labels: F.cross_entropy(torch.softmax(logits, dim=-1), labels)),
        "`cross_entropy` does the softmax itself. Twice, the loss can never come near 0, and gradients nearly vanish where "
        "the model is certain and wrong. Give it the logits.",
        ("tr03",),
    ),
    Mistake(
        "`nll_loss` of logits",
        _step(lambda logits, labels: F.nll_loss(logits, labels)),
        "`nll_loss` expects logarithms of probabilities; of logits it falls without end. Use `cross_entropy`.",
    ),
    Mistake(
        "`nll_loss` of probabilities",
        _step(lambda logits, labels: F.nll_loss(torch.softmax(logits, dim=-1), labels)),
        "`nll_loss` expects *logarithms* of probabilities. `cross_entropy` of the logits does all three.",
    ),
    Mistake(
        "zero_grad is forgotten",
        _step(zero=None),
        "The first step is right, the second is not: `backward` *adds* to the gradients that are there. Clear them first.",
        ("tr16",),
    ),
    Mistake(
        "nothing moves: the optimizer does not step, or finds no gradients",
        _step(step=None),
        "Is `optimizer.step()` there? And are the gradients cleared *before* `backward`, not between `backward` and `step`?",
    ),
    Mistake(
        "the step comes before backward",
        _step(step="before", zero=None),
        "The optimizer moves by gradients that `backward` makes only afterwards. Forward, backward, then step.",
    ),
    Mistake(
        "not clipped, or at the wrong place",
        _step(clip=None),
        "Short gradients are right, long ones are not: `max_norm` has no effect. Before `backward` there are no gradients to "
        "clip, and after `step` the weights have moved already. Clip between the two.",
    ),
    Mistake(
        "each parameter is clipped alone",
        _step(how=_each_alone),
        "The *direction* of the step changes if long gradients are shortened and short ones are not. One norm for all: give "
        "`model.parameters()` to `clip_grad_norm_` at once.",
    ),
    Mistake(
        "numbers are clipped, not the norm",
        _step(how=lambda model, max_norm: nn.utils.clip_grad_value_(model.parameters(), max_norm)),
        "`clip_grad_value_` cuts each number and bends the direction. `clip_grad_norm_` shortens all together.",
    ),
    Mistake(
        "short gradients are made longer",
        _step(how=_always_scaled),
        "Clipping only shortens. A gradient that is shorter than `max_norm` stays as it is.",
    ),
    Mistake(
        "the weights are clipped",
        _step(how=_weights_clipped),
        "It is the *gradients* that may not be long: `clip_grad_norm_(model.parameters(), max_norm)` knows where they are.",
    ),
    Mistake(
        "a loss of the sum",
        _step(lambda logits, labels: F.cross_entropy(logits, labels, reduction="sum")),
        "The learning rate would mean another thing for each batch size. The mean, the default, is asked for.",
    ),
    Mistake(
        "the loss that is returned is multiplied by the number of texts",
        _reporting(lambda loss, norm, labels, after: loss * len(labels)),
        "The step is right. Return the mean as it is: a sum over the batch is wanted by some loops, which divide later.",
        also=(_reporting(lambda loss, norm, labels, after: loss * (labels >= 0).sum()),),
    ),
    Mistake(
        "the loss that is returned is that after the step",
        _reporting(lambda loss, norm, labels, after: after()),
        "The step is right. But the loss was computed once, before it; a second forward pass costs time and tells another.",
    ),
    Mistake(
        "the gradient's norm is returned, not the loss",
        _reporting(lambda loss, norm, labels, after: norm),
        "`clip_grad_norm_` returns the norm before clipping. It is good to know; the loss is asked for.",
    ),
    Mistake(
        "texts that only fill the batch count too",
        _step(lambda logits, labels: F.cross_entropy(logits, _valid(labels))),
        "A label of −100 says: no text, nothing to learn. `cross_entropy` leaves exactly −100 out if the labels stay as "
        "they are.",
        ("tr01", "tr02"),
        also=(lambda *args: _step(lambda z, y: F.cross_entropy(z, torch.where(y < 0, len(z[0]) - 1, y)))(*args),),
    ),
    Mistake(
        "texts that only fill the batch count in the divisor",
        _step(lambda logits, labels: F.cross_entropy(logits, labels, reduction="sum") / len(labels)),
        "They are left out of the sum, and yet it is divided by the whole batch. How many real texts are there?",
    ),
    Mistake(
        "the model stays in evaluation mode",
        _step(mode=None),
        "It comes as an evaluation has left it: nothing is dropped. `model.train()` at the beginning of the step.",
    ),
    Mistake(
        "the lengths are not used: padding is read",
        _step(lengths_of=lambda ids, lengths: torch.full_like(lengths, ids.shape[1])),
        "`model(ids, lengths)` wants to know how many words each text really has.",
    ),
    Mistake(
        "uphill",
        _step(back=lambda loss: (-loss).backward()),
        "The loss grows from step to step. Optimizers go *against* the gradient by themselves: no minus is needed.",
        also=(_step(lambda logits, labels: -F.cross_entropy(logits, labels)),),
    ),
    Mistake(
        "a squared error of probabilities",
        _step(
            lambda logits, labels: F.mse_loss(
                torch.softmax(logits, dim=-1), F.one_hot(_valid(labels), logits.shape[-1]).float()
            )
        ),
        "Where the model is certain and wrong, this loss is flat. For classes: `cross_entropy`.",
        also=(lambda *args: _step(lambda z, y: F.mse_loss(z, F.one_hot(_valid(y), z.shape[-1]).float()))(*args),),
    ),
    Mistake(
        "each class for itself: binary cross-entropy",
        _step(
            lambda logits, labels: F.binary_cross_entropy_with_logits(
                logits, F.one_hot(_valid(labels), logits.shape[-1]).float()
            )
        ),
        "That is for labels of which several can hold at once. Here one of the classes is right: `cross_entropy`.",
    ),
]

# evaluate -------------------------------------------------------------------------------------------------------------


def evaluate(model, ids, lengths, labels, batches):
    """Return the share of texts that model(ids, lengths) -> logits judges rightly; batches is a list of places [batch]."""
    model.eval()
    right = 0
    with torch.no_grad():
        for places in batches:
            logits = model(ids[places], lengths[places])
            right += (logits.argmax(dim=-1) == labels[places]).sum().item()
    return right / len(labels)


class Watched(Bag):
    """Remembers whether gradients were recorded when it was called."""

    recorded = False

    def forward(self, ids, lengths):
        """Logits."""
        self.recorded = self.recorded or torch.is_grad_enabled()
        return super().forward(ids, lengths)


def evaluation_inputs(embedding, classify, ids, lengths, labels, order, sizes):
    """What an evaluation is given: a model in training mode, texts, and the order of their places, cut into batches."""
    model = Watched(tensor(embedding), tensor(classify)).train()
    return model, *map(tensor, (ids, lengths, labels)), list(tensor(order).split(sizes.tolist()))


def call_evaluate(function, embedding, classify, ids, lengths, labels, order, sizes):
    """The share, and 1 if gradients were recorded on the way, else 0."""
    model, *texts = evaluation_inputs(embedding, classify, ids, lengths, labels, order, sizes)
    share = function(model, *texts)
    if share is ... or share is None:
        return share
    if isinstance(share, torch.Tensor):
        share = share.tolist()
    if isinstance(share, bool) or not isinstance(share, (int, float)):
        kind = "several numbers" if isinstance(share, list) else f"an object of type {type(share).__name__}"
        raise Unfit(f"It returns {kind}; expected one number, the share of right answers.")
    return np.float32(share), np.float32(model.recorded)


def reference_evaluate(model, ids, lengths, labels, batches):
    texts = training.Texts([row[:n].tolist() for row, n in zip(ids, lengths)], labels.tolist())
    return training.evaluate(model, texts).accuracy


# Words: padding votes for the last class, 1 to 3 for classes 0 to 2, and 4 for class 1 by the feature that training drops.
WORDS = np.array([[0, 0, 5, 0], [2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [1, 0, 0, 4]])
CLASSES = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]])
TEXTS = np.array([[1, 1, 0], [2, 0, 0], [4, 4, 1], [3, 3, 3], [1, 2, 2], [4, 0, 0], [3, 1, 1]])
LENGTHS = np.array([2, 1, 3, 3, 3, 1, 3])


def evaluation_cases(rng):
    def texts(chosen, labels, *batches):
        """These of the texts above, with a little noise that changes no verdict."""
        embedding = WORDS + rng.integers(-2, 3, size=WORDS.shape) / 10
        order, sizes = np.array([place for batch in batches for place in batch]), np.array([*map(len, batches)])
        return embedding.round(1), CLASSES * 1.0, TEXTS[chosen], LENGTHS[chosen], np.array(labels), order, sizes

    one_word = np.array([[1], [2], [1]])
    plain = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]), np.array([[0.0, 1.0], [0.0, 0.0]])
    by_hand = *plain, one_word, np.array([1, 1, 1]), np.array([1, 0, 0]), np.arange(3), np.array([2, 1])
    full = [2, 3, 4, 6]  # no padding
    return [
        Case("three texts of one word, by hand: two are right", by_hand, (np.float32(2 / 3), np.float32(0))),
        Case("texts without padding, in another order", texts(full, [1, 2, 0, 1], [2, 1, 3], [0])),
        Case("padded texts", texts(list(range(7)), [0, 1, 1, 2, 0, 2, 1], [3, 1], [6, 0, 2], [4, 5])),
        Case("a last batch of one", texts([5, 1, 3, 0, 6], [1, 1, 0, 2, 0], [3, 0], [4, 2], [1])),
        Case("one batch", texts([0, 2, 4, 5, 6], [0, 1, 2, 1, 2], [0, 1, 2, 3, 4])),
    ]


def _evaluate(
    judge=lambda logits: logits.argmax(dim=-1),
    *,
    mode="eval",
    record=False,
    count=lambda hits, sizes, n: sum(hits) / n,
    lengths_of=lambda ids, lengths: lengths,
    first_only=False,
):
    """An evaluation in which one thing is done otherwise."""

    def evaluate(model, ids, lengths, labels, batches):
        if mode:
            model.train(mode == "train")
        hits, sizes = [], []
        with torch.set_grad_enabled(record):
            for places in batches:
                logits = model(ids[places], lengths_of(ids[places], lengths[places]))
                hits.append((judge(logits) == labels[places]).sum().item())
                sizes.append(len(places))
                if first_only:
                    break
        return count(hits, sizes, len(labels))

    return evaluate


def _in_another_order(model, ids, lengths, labels, batches):
    model.eval()
    with torch.no_grad():
        found = torch.cat([model(ids[places], lengths[places]).argmax(dim=-1) for places in batches])
    return (found == labels).float().mean().item()


def _cut_by_number(model, ids, lengths, labels, batches):
    model.eval()
    right = 0
    with torch.no_grad():
        for k, places in enumerate(batches):
            n = len(places)
            right += (model(ids[places], lengths[places]).argmax(dim=-1) == labels[k * n : (k + 1) * n]).sum().item()
    return right / len(labels)


def _above_zero(model, ids, lengths, labels, batches):
    model.eval()
    with torch.no_grad():
        right = [((model(ids[b], lengths[b]) > 0) == labels[b]).sum().item() for b in batches]
    return sum(right) / len(labels)


def _put_back(model, ids, lengths, labels, batches):
    model.eval()
    found = torch.empty_like(labels)
    with torch.inference_mode():
        for places in batches:
            found[places] = model(ids[places], lengths[places]).argmax(dim=-1)
    model.train()
    return (found == labels).double().mean().item()


def _over_the_batch(logits):
    found = logits.argmax(dim=0)
    return found[torch.arange(len(logits)) % len(found)]


evaluation_mistakes = [
    Mistake(
        "model.eval() is forgotten",
        _evaluate(mode=None),
        "The model comes as training has left it, and drops features. What is measured is not what will be used.",
        ("tr07",),
    ),
    Mistake(
        "gradients are recorded",
        _evaluate(record=True),
        "The share is right. But every batch builds the graph for a backward pass that never comes, at twice the memory. "
        "`with torch.no_grad():` around the loop.",
    ),
    Mistake(
        "model.eval() is forgotten, and gradients are recorded",
        _evaluate(mode=None, record=True),
        "Two things are missing: `model.eval()`, so that nothing is dropped, and `with torch.no_grad():`.",
    ),
    Mistake(
        "labels in the wrong order",
        _in_another_order,
        "The answers stand in the order of the batches, the labels in that of the texts. Take `labels[places]` batch by batch.",
    ),
    Mistake(
        "labels are cut out by the number of the batch",
        _cut_by_number,
        "`labels[k * n : (k + 1) * n]` counts in the order of the texts, and as if all batches had one size. The places say "
        "which texts these are: `labels[places]`.",
    ),
    Mistake(
        "each batch's share counts as much as the first batch is large",
        _evaluate(count=lambda hits, sizes, n: sum(h / s for h, s in zip(hits, sizes)) * sizes[0] / n),
        "A share times a size is a number of texts only if it is the size of *this* batch. Count right answers instead.",
    ),
    Mistake(
        "a logit above 0 is taken for the answer",
        _evaluate(lambda logits: logits[:, 1] > 0),
        "Softmax sees differences alone: of two logits above 0 one is the larger. Compare them with each other, `argmax`.",
        also=(_above_zero,),
    ),
    Mistake(
        "a mean of the batches' shares",
        _evaluate(count=lambda hits, sizes, n: sum(h / s for h, s in zip(hits, sizes)) / len(sizes)),
        "A small last batch would count as much as a full one. Count right answers, and divide once, at the end.",
    ),
    Mistake(
        "divided by batches times the size of the first",
        _evaluate(count=lambda hits, sizes, n: sum(hits) / (len(sizes) * sizes[0])),
        "Not all batches are of one size. How many texts are there?",
    ),
    Mistake(
        "only the last batch counts",
        _evaluate(count=lambda hits, sizes, n: hits[-1] / n),
        "`right = ...` in the loop forgets the batches before. `right += ...` adds up.",
        also=(_evaluate(count=lambda hits, sizes, n: hits[-1] / sizes[-1]),),
    ),
    Mistake(
        "only the first batch counts",
        _evaluate(first_only=True),
        "The `return` stands within the loop: it is over after one batch.",
        also=(_evaluate(first_only=True, count=lambda hits, sizes, n: hits[0] / sizes[0]),),
    ),
    Mistake(
        "a number of texts, not a share",
        _evaluate(count=lambda hits, sizes, n: sum(hits)),
        "You count the right ones. A share is from 0 to 1: divide by the number of texts.",
    ),
    Mistake(
        "percent",
        _evaluate(count=lambda hits, sizes, n: 100 * sum(hits) / n),
        "A share from 0 to 1 is asked for.",
    ),
    Mistake(
        "the share of wrong answers",
        _evaluate(count=lambda hits, sizes, n: 1 - sum(hits) / n),
        "This is the error. The accuracy is what is left.",
    ),
    Mistake(
        "divided by the number of batches",
        _evaluate(count=lambda hits, sizes, n: sum(hits) / len(sizes)),
        "`len(batches)` is a number of batches. Texts are counted by `len(labels)`.",
    ),
    Mistake(
        "the largest over the batch, not over the classes",
        _evaluate(_over_the_batch),
        "Logits are [batch, n_classes]. Each text's own largest is over the last axis, `dim=-1`.",
    ),
    Mistake(
        "the smallest logit wins",
        _evaluate(lambda logits: logits.argmin(dim=-1)),
        "The class with the *largest* logit is the answer.",
    ),
    Mistake(
        "the largest number, not its place",
        _evaluate(lambda logits: logits.max(dim=-1)[0]),
        "`max` returns numbers first, and their places second. A label is a place: `argmax`.",
        also=(_evaluate(lambda logits: torch.softmax(logits, dim=-1).max(dim=-1)[0]),),
    ),
    Mistake(
        "the lengths are not used: padding is read",
        _evaluate(lengths_of=lambda ids, lengths: torch.full_like(lengths, ids.shape[1])),
        "`model(ids, lengths)` wants to know how many words each text really has.",
    ),
]

# confidence_interval --------------------------------------------------------------------------------------------------


def confidence_interval(scores, student):
    """Return (low, high), the ends of the interval around the mean of n scores; student[f] is t for f degrees of freedom."""
    n = len(scores)
    half = student[n - 1] * np.std(scores, ddof=1) / np.sqrt(n)
    return np.mean(scores) - half, np.mean(scores) + half


def interval_cases(rng):
    student = np.array([99.9, 12.7, 4.3, 3.2, 2.8, 2.6])  # for none to five degrees of freedom
    by_hand = np.array([80.0, 84.0]), np.array([99.9, 12.7, 4.3])  # mean 82, s √8, divided by √2: 2
    equal = np.array([85.0, 85.0, 85.0])
    return [
        Case("two runs, by hand: 82 − 12.7 · 2 and 82 + 12.7 · 2", by_hand, (56.6, 107.4)),
        Case("three runs", (np.array([83.1, 84.2, 84.9]), student)),
        Case("four runs", (rng.normal(84, 1, size=4).round(1), student)),
        Case("six runs", (rng.normal(84, 2, size=6).round(1), student)),
        Case("runs that agree", (equal, student), (85.0, 85.0)),
    ]


def _interval(half, centre=np.mean):
    return lambda scores, student: (centre(scores) - half(scores, student), centre(scores) + half(scores, student))


def _s(scores):
    return np.std(scores, ddof=1)


interval_mistakes = [
    Mistake(
        "1.96, the quantile for endless runs",
        _interval(lambda x, t: 1.96 * _s(x) / np.sqrt(len(x))),
        "1.96 holds if the spread is *known*. From three runs it is a guess, and t is 4.3: use `student`.",
        also=(_interval(lambda x, t: 2 * _s(x) / np.sqrt(len(x))),),
    ),
    Mistake(
        "degrees of freedom: n in place of n − 1",
        _interval(lambda x, t: t[min(len(x), len(t) - 1)] * _s(x) / np.sqrt(len(x))),
        "The mean is computed from the same runs, which costs one degree of freedom: `student[n - 1]`.",
        also=(_interval(lambda x, t: t[len(x)] * _s(x) / np.sqrt(len(x))),),
    ),
    Mistake(
        "degrees of freedom: n − 2",
        _interval(lambda x, t: t[len(x) - 2] * _s(x) / np.sqrt(len(x))),
        "Only one number, the mean, was computed from the runs. `student[0]` is for no degrees of freedom.",
    ),
    Mistake(
        "always two degrees of freedom",
        _interval(lambda x, t: t[2] * _s(x) / np.sqrt(len(x))),
        "That is t for three runs. Another number of runs has another t: `student[n - 1]`.",
        also=(_interval(lambda x, t: 4.303 * _s(x) / np.sqrt(len(x))),),
    ),
    Mistake(
        "1.96, and the spread is divided by n",
        _interval(lambda x, t: 1.96 * np.std(x) / np.sqrt(len(x))),
        "Both make the interval too narrow for few runs: take t from `student`, and `ddof=1` in `np.std`.",
        also=(_interval(lambda x, t: 2 * np.std(x) / np.sqrt(len(x))),),
    ),
    Mistake(
        "n degrees of freedom, and the spread is divided by n",
        _interval(lambda x, t: t[min(len(x), len(t) - 1)] * np.std(x) / np.sqrt(len(x))),
        "n − 1 belongs in both places: `student[n - 1]`, and `np.std(scores, ddof=1)`.",
        also=(_interval(lambda x, t: t[len(x)] * np.std(x) / np.sqrt(len(x))),),
    ),
    Mistake(
        "the spread is divided by n, not n − 1",
        _interval(lambda x, t: t[len(x) - 1] * np.std(x) / np.sqrt(len(x))),
        "`np.std` divides by n unless told otherwise, and is too small for few runs: `ddof=1`.",
    ),
    Mistake(
        "not divided by √n",
        _interval(lambda x, t: t[len(x) - 1] * _s(x)),
        "This is about where *one more run* may lie. The mean of n runs is surer: divide by √n.",
    ),
    Mistake(
        "divided by n, not by √n",
        _interval(lambda x, t: t[len(x) - 1] * _s(x) / len(x)),
        "Four times the runs halve the interval, they do not quarter it: `np.sqrt(n)`.",
    ),
    Mistake(
        "divided by √(n − 1)",
        _interval(lambda x, t: t[len(x) - 1] * _s(x) / np.sqrt(len(x) - 1)),
        "The n − 1 stands in the spread (`ddof=1`) and in the degrees of freedom. The root is of n.",
    ),
    Mistake(
        "√n twice: the spread without ddof, divided by √(n) and again",
        _interval(lambda x, t: t[len(x) - 1] * np.std(x) / len(x)),
        "`np.std` without `ddof=1`, and n without its root. Look at both.",
    ),
    Mistake(
        "t is left out: the standard error",
        _interval(lambda x, t: _s(x) / np.sqrt(len(x))),
        "One standard error to each side holds far less than 95 %. Multiply by t.",
    ),
    Mistake(
        "the spread of the runs, without t and √n",
        _interval(lambda x, t: _s(x)),
        "mean ± s says how runs differ, not how well the mean is known. t and √n are missing.",
        also=(_interval(lambda x, t: np.std(x)),),
    ),
    Mistake(
        "the variance in place of the spread",
        _interval(lambda x, t: t[len(x) - 1] * np.var(x, ddof=1) / np.sqrt(len(x))),
        "The variance is the square of the spread, in squared percent. `np.std`.",
        also=(_interval(lambda x, t: t[len(x) - 1] * np.var(x, ddof=1) / len(x)),),
    ),
    Mistake(
        "the whole width to each side is half of it",
        _interval(lambda x, t: t[len(x) - 1] * _s(x) / np.sqrt(len(x)) / 2),
        "t · s / √n goes to *each* side of the mean.",
    ),
    Mistake(
        "the lowest and the highest run",
        lambda scores, student: (np.min(scores), np.max(scores)),
        "Among three runs the mean of endless ones is outside of lowest and highest in a quarter of all cases.",
    ),
    Mistake(
        "percentiles of the runs",
        lambda scores, student: tuple(np.percentile(scores, [2.5, 97.5])),
        "Three runs have no 97.5th percentile: NumPy guesses between the two highest.",
    ),
    Mistake(
        "mean and half width",
        lambda scores, student: (np.mean(scores), student[len(scores) - 1] * _s(scores) / np.sqrt(len(scores))),
        "Return the ends: mean − half and mean + half.",
    ),
    Mistake(
        "around 0, not around the mean",
        _interval(lambda x, t: t[len(x) - 1] * _s(x) / np.sqrt(len(x)), centre=lambda x: 0.0),
        "The interval lies around the mean of the scores.",
    ),
    Mistake(
        "the higher end first",
        lambda scores, student: confidence_interval(scores, student)[::-1],
        "(low, high): the lower end comes first.",
    ),
    Mistake(
        "around the median",
        _interval(lambda x, t: t[len(x) - 1] * _s(x) / np.sqrt(len(x)), centre=np.median),
        "Student's t belongs to the *mean*.",
    ),
]

check = Checker(
    "11",
    [
        Exercise(
            "masked_mean",
            reference=models.masked_mean,
            solution=masked_mean,
            cases=mean_cases,
            mistakes=mean_mistakes,
            accepts=[
                lambda x, lengths: (x * _mask(x, lengths)).sum(dim=1) / lengths.clamp(min=1)[:, None],
                lambda x, lengths: torch.stack([t[:n].mean(dim=0) if n else 0 * t[0] for t, n in zip(x, lengths)]),
                lambda x, lengths: torch.einsum(
                    "bnd,bn->bd", x, _mask(x, lengths)[..., 0] / lengths.clamp(min=1)[:, None]
                ),
            ],
            call=call_masked_mean,
        ),
        Exercise(
            "train_step",
            reference=lambda model, optimizer, ids, lengths, labels, max_norm: training.train_step(
                model, optimizer, ids, lengths, labels, max_norm
            )[0],
            solution=train_step,
            cases=step_cases,
            mistakes=step_mistakes,
            accepts=[_clear_afterwards, _step(_loss_by_hand), _step(how=_clip_by_hand)],
            call=call_train_step,
            given=step_inputs,
            results=("the losses of two steps", "the vectors of words after them", "the map `classify` after them"),
        ),
        Exercise(
            "evaluate",
            reference=reference_evaluate,
            solution=evaluate,
            cases=evaluation_cases,
            mistakes=evaluation_mistakes,
            accepts=[_put_back],
            call=call_evaluate,
            given=evaluation_inputs,
            results=("the share of right answers", "1 if gradients were recorded, 0 if not"),
        ),
        Exercise(
            "confidence_interval",
            reference=results.confidence_interval,
            solution=confidence_interval,
            cases=interval_cases,
            mistakes=interval_mistakes,
            accepts=[
                lambda x, t: np.mean(x) + np.array([-1, 1]) * t[len(x) - 1] * np.std(x, ddof=1) / np.sqrt(len(x)),
                lambda x, t: [
                    np.mean(x) + sign * t[len(x) - 1] * np.std(x, ddof=1) / len(x) ** 0.5 for sign in (-1, 1)
                ],
            ],
        ),
    ],
)
