"""What the doctor knows: every fault by name, what it usually means, and the lesson that explains it.

The order is the order of a report: what is known by its mechanism comes before what is only a symptom, so that the first
finding is the one to mend first. A *fault* is wrong in any attention; a *warning* is usually wrong, and its meaning says
who does it on purpose.
"""

from attnlib.doctor.lessons import LESSONS, Fault
from attnlib.doctor.symptoms import SYMPTOMS

__all__ = ["FAULTS", "LESSONS", "Fault"]


FAULTS = {
    # what can be read off the module
    "the layer raises": Fault("The layer stops with its own error, so nothing that needs this call was examined.", 8),
    "heads in a plain list": Fault(
        "PyTorch does not look into lists: these layers get no optimiser step, no .to(device) and no place in the "
        "state_dict. Keep layers in nn.ModuleList, tensors in nn.ParameterList.",
        8,
    ),
    "learned tensor is no parameter": Fault(
        "A plain tensor is neither trained, nor saved, nor moved by .to(). If it is to be learned, wrap it in nn.Parameter.",
        8,
    ),
    "table is no buffer": Fault(
        "A plain tensor is neither saved nor moved nor converted by .to(). Use self.register_buffer(name, table).", 8
    ),
    "one layer used several times": Fault(
        "[layer] * n puts one object into the list n times, so its weights are shared. Make a new layer (or a deepcopy) "
        "for each place. (ALBERT shares its layers on purpose.)",
        9,
        "warning",
    ),
    # what goes over which axis
    "attention over the batch": Fault(
        "Tokens do not see each other, but the sequences of a batch do. The layer reads the first axis as tokens: give it "
        "[n, batch, d_model], or build it with batch_first=True. If it is meant so, examine it with batch_first=False.",
        5,
    ),
    "attention over the heads": Fault(
        "The heads of one token attend to each other; tokens do not see each other. .transpose(1, 2) is missing: products "
        "and F.scaled_dot_product_attention take the last two axes, [batch, heads, n, d_head].",
        5,
    ),
    "softmax over the queries": Fault(
        "The weights that the queries give to one key add up to 1, not those that one query gives. Use dim=-1.", 2
    ),
    "softmax over the heads": Fault("The heads compete with each other, not the keys. Use dim=-1.", 2),
    "softmax over the batch": Fault("The sequences of a batch compete with each other, not the keys. Use dim=-1.", 2),
    "one sum for the whole map": Fault(
        "All weights of a map share one total. Sum over the last axis, keepdims=True.", 2
    ),
    "weights transposed": Fault(
        "Rows sum to 1 after softmax, but the transposed map mixes the values: take .T away.", 2
    ),
    "scaled after the softmax": Fault("Weights were divided after softmax; divide the scores before it.", 3),
    "norm over time": Fault(
        "Every feature is normalised over the tokens, so each token carries news of all others, the future and the "
        "padding among them. Layer norm takes each token by itself: over the last axis.",
        9,
    ),
    "sequences mix in training": Fault(
        "In training an answer depends on the other sequences of its batch: batch norm, or a mean over axis 0. Use layer "
        "norm, which takes each token by itself.",
        9,
    ),
    # heads and projections
    "heads split without transpose": Fault(
        "view(batch, heads, n, d_head) alone hands each head some whole tokens instead of a part of every token. Use "
        "view(batch, n, heads, d_head).transpose(1, 2).",
        5,
    ),
    "heads merged without transpose": Fault(
        "The parts of different tokens are put side by side. Use .transpose(1, 2).reshape(batch, n, d_model).", 5
    ),
    "values copied from the keys": Fault("What is fetched is the key: the value projection is never used.", 5),
    "keys and values of other heads": Fault(
        "A head takes its keys from one group and its values from another: repeat both in one way, repeat_interleave.",
        20,
    ),
    "groups of heads in turn": Fault(
        "Head i reads group i mod groups. The weights of Llama and its kin, and enable_gqa, expect neighbours to share: "
        "repeat_interleave, not repeat. (Fine for weights that were trained so.)",
        20,
        "warning",
    ),
    "queries and keys are the same": Fault(
        "Both come from one projection, so every token compares itself with the rest symmetrically. (Reformer shares them "
        "on purpose.)",
        5,
        "warning",
    ),
    "only the query is normalised": Fault(
        "Keys and values are made from the raw input: norm(x) belongs in all three.", 9
    ),
    "queries come from the context": Fault(
        "The result has a row for each key, not for each query: the sequence that asks gives the queries.", 14
    ),
    "positions from the batch axis": Fault(
        "The position is taken from the place in the batch: x.size(0) where x.size(1), the number of tokens, is meant.",
        6,
    ),
    # masks
    "mask inverted": Fault(
        "It shows what should be hidden and hides what should be seen: conventions differ (True = may attend here and in "
        "F.scaled_dot_product_attention, True = ignore in nn.MultiheadAttention). Try ~mask.",
        8,
    ),
    "mask on the query axis": Fault(
        "A mask of keys hides the rows of the padding, and leaves its columns visible: [batch, 1, 1, n_key] is meant, "
        "mask[:, None, None, :], not mask[:, None, :, None].",
        4,
    ),
    "only the future is visible": Fault("The causal mask is transposed or inverted: a tril where a triu is meant.", 4),
    "diagonal off by one": Fault(
        "Each token also sees the next one, which it is to predict: tril(diagonal=1) or triu(diagonal=2).", 4
    ),
    "diagonal hidden": Fault(
        "No token sees itself, and the first sees nothing: triu() blocks the diagonal; use triu(diagonal=1).", 4
    ),
    "causal only with a mask": Fault(
        "The future is hidden only when another mask is given as well: the causal mask stands inside that branch.", 4
    ),
    "causal mask on the context": Fault(
        "Queries see only the first tokens of the context, which is there as a whole: the causal mask belongs to "
        "self-attention only. Behind a memory or a cache, the diagonal moves: tril(diagonal=n_key - n_query).",
        14,
    ),
    "future leaks": Fault(
        "A token changes when a later one is changed. Training looks brilliant, generating fails. Causal mask missing or "
        "not applied.",
        4,
    ),
    "0/1 mask added": Fault(
        "A mask of ones and zeros is added to the scores: what may be seen is e times likelier, nothing is hidden. Use "
        "masked_fill(~mask, -inf).",
        4,
    ),
    "scores multiplied by the mask": Fault("A score of 0 is a score like any other: exp(0) = 1. Use −inf.", 4),
    "mask after the softmax": Fault(
        "Weights were set to 0 after softmax, so rows sum to less than 1. Mask the scores.", 4
    ),
    "mask lines up with the wrong sequence": Fault(
        "Sequences are masked as others of the batch should be: with heads folded into the batch, repeat the mask with "
        "repeat_interleave(heads, 0), not repeat.",
        5,
    ),
    "the mask hides everything": Fault(
        "No token reaches any other once a mask is given: ~ on integers gives −1 and −2.", 4
    ),
    "the mask gives NaN": Fault(
        "The mask is turned into numbers wrongly: 0 · ∞ is NaN, and +∞ makes softmax ∞ / ∞. Use masked_fill(~mask, -inf).",
        4,
    ),
    "mask ignored": Fault(
        "The result with and without the mask is the same: is the result of masked_fill kept, is the mask passed on?", 4
    ),
    "masked positions still count": Fault("What is masked still changes the result.", 4),
    "padding enters the mean": Fault(
        "Attention respects the mask, the pooling after it does not: divide the sum of real tokens by their number.", 11
    ),
    # blocks
    "residual of the normalised input": Fault(
        "x + f(norm(x)) is meant; here norm(x) is added, so x itself is lost.", 9
    ),
    "residual missing": Fault("What came before is not carried past this part: x + f(...) is missing.", 9),
    "residual skips the attention": Fault(
        "The last residual adds the block's input, not what attention made of it: x = x + attention, then x + feed_forward.",
        9,
    ),
    # positions
    "rotary differs between queries and keys": Fault(
        "Rotary turns queries and keys at one place by the same angles, so that a score depends on their distance alone. "
        "Apply it to both, with pairs laid out alike (interleaved or in halves).",
        6,
    ),
    "rotary does not turn": Fault(
        "Queries or keys change their length with their place, as nothing that is turned does. Angles from "
        "repeat_interleave(2) go with pairs (0, 1), (2, 3); angles from cat((a, a)) with halves, as in rotate_half.",
        6,
    ),
    "rotary on the values": Fault(
        "Values are turned as well: what is fetched then depends on its place, and not on the distance. Turn queries and "
        "keys alone.",
        6,
        "warning",
    ),
    # scale
    "no scaling": Fault(
        "Scores grow with √d_head and softmax saturates: multiply by 1 / √d_head. (T5 leaves it out on purpose.)",
        3,
        "warning",
    ),
    "scaled by d_head, not its root": Fault(
        "Scores are too small, the map too flat: divide once, by √d_head.", 3, "warning"
    ),
    "multiplied by the root": Fault("Scores are multiplied by √d_head instead of divided: softmax saturates.", 3),
    "scaled by the number of tokens": Fault("The root is taken of the length, an axis that changes: use √d_head.", 3),
    "scaled by d_model": Fault("With several heads the width of a query is d_head = d_model / n_heads.", 5, "warning"),
} | SYMPTOMS
