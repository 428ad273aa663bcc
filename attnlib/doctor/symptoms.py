"""The second half of what the doctor knows: dropout, numbers, gradients, and what is only a symptom. See `faults`."""

from attnlib.doctor.lessons import Fault

SYMPTOMS = {
    # dropout
    "an earlier call matters": Fault(
        "The layer keeps something of a call, a mask, a length or a cache, and uses it in the next. Make it anew in each "
        "call, or look whether it still fits. (A cache for generating is meant so.)",
        13,
        "warning",
    ),
    "a cache changes the result": Fault(
        "Behind a cache of m tokens query 0 is token m: the causal mask is tril(diagonal=m), where is_causal=True starts at "
        "0, and positions start at m.",
        13,
    ),
    "random in eval": Fault(
        "Something random stays on in eval mode: functional dropout needs training=self.training (dropout_p=0 in eval).",
        8,
    ),
    "dropout before the softmax": Fault(
        "Dropped scores become 0, which softmax gives weight: dropout belongs on the weights.", 8
    ),
    "dropout not rescaled": Fault("Kept weights must be divided by 1 − p, or training and eval differ in size.", 8),
    "dropout never applied": Fault(
        "A dropout was asked for, but training differs in nothing from eval: never called.", 8
    ),
    "dropout twice": Fault(
        "What one dropout leaves goes into another: at rates of 0.1 each, 19% are dropped.", 8, "warning"
    ),
    # rows with nothing to attend to, and numbers
    "fully masked row gives NaN": Fault(
        "softmax of a row of −inf is 0 / 0. One padded sequence then makes the loss NaN. Set such rows to 0, or do not ask "
        "for them.",
        4,
    ),
    "fill too large for float16": Fault("−1e9 does not exist in float16 (largest: 65504). Use −inf or torch.finfo.", 4),
    "fully masked row is not empty": Fault(
        "With a finite fill such as −1e9 a row that may see nothing sees everything alike. Fill with −inf and set such "
        "rows to 0. (Hugging Face's layers do it on purpose: nobody reads these rows.)",
        4,
        "warning",
    ),
    "gradient is not finite": Fault("A NaN that the forward pass hides comes back in the gradient (0 · NaN).", 7),
    "gradient is cut": Fault(
        "The result changes with these numbers, but autograd does not see all of it: .detach(), .data, torch.no_grad() or "
        "a way through NumPy stands in between. (A straight-through estimator does it on purpose.)",
        7,
        "warning",
    ),
    "large scores overflow": Fault(
        "exp(1000) is infinite, and ∞ / ∞ is NaN: subtract the largest score of each row before exp, as softmax does.",
        2,
    ),
    "half precision fails": Fault(
        "Works in float32, not here: a constant or a table of a fixed dtype is often the cause.", 15
    ),
    "result in another dtype": Fault(
        "What goes in as half precision comes out wider: a table, a constant or .float() is never turned back with .to(x.dtype).",
        15,
        "warning",
    ),
    "half precision is inaccurate": Fault(
        "More is lost than rounding explains: compute softmax and sums in float32.", 15
    ),
    # symptoms
    "tokens do not see each other": Fault(
        "No token changes the result of another: attention goes over another axis, or its result is not used. (Meant so in "
        "a layer that only opens with training.)",
        5,
        "warning",
    ),
    "rows do not sum to 1": Fault(
        "Each query should hand out a total of 1: divide by the sum over the keys. (Sigmoid attention and attention sinks leave "
        "less on purpose.)",
        2,
        "warning",
    ),
    "no gradient": Fault("Nothing that these parameters do reaches the result: a layer made, but not used.", 7),
    "one number of tokens only": Fault(
        "A table is not cut to the length, or a length is written into a view. (Windows and images do it on purpose: pass "
        "n=, the number that works, and nothing is said.)",
        6,
        "warning",
    ),
    "wrong shape": Fault("Expected a row for each query.", 2),
    "input changed": Fault("The layer writes into the tensor that it was given (an in-place operation such as +=).", 8),
    "place in the batch matters": Fault("The same sequence gets another answer elsewhere in the batch.", 4),
    "batch size matters": Fault("A sequence by itself gets another answer than in a batch.", 4),
    "order matters": Fault("Without positions, attention permutes its results as its tokens are permuted.", 6),
    "order does not matter": Fault("Positions were expected, yet permuted tokens give the same results, permuted.", 6),
    "result is not finite": Fault("Ordinary numbers went in.", 8),
}
