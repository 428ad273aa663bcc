"""Record what PyTorch says about the inputs of lessons, for lessons that run without it: `python tools/record.py`.

Each function returns the arrays of one lesson; a test makes them again and compares.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

from attnlib.data import sentence
from attnlib.data.toy import recall_tokens
from attnlib.numpy import alibi_bias, orthogonal
from attnlib.torch import EncoderLayer, LayerNorm, MultiHeadAttention, SelfAttention, causal_mask
from attnlib.torch.reversal import Reverser, train_reversal

FOLDER = Path(__file__).resolve().parent.parent / "attnlib" / "data" / "recorded"
RATES = (0.001, 0.01)


def lesson_00() -> dict[str, np.ndarray]:
    """torch.mean over the words of the sentence."""
    values = sentence.features(sentence.tokens())
    return {"values": values, "mean": torch.from_numpy(values).mean(dim=0).numpy()}


def lesson_01() -> dict[str, np.ndarray]:
    """nn.RNN with the weights of the lesson: last state, and autograd's gradient of it; and trained networks."""
    rng = np.random.default_rng(0)
    w, inputs = orthogonal(32, 0.9, rng), rng.normal(size=(16, 32)) / np.sqrt(32)
    rnn = nn.RNN(32, 32, nonlinearity="tanh", bias=False, dtype=torch.float64)
    with torch.no_grad():
        rnn.weight_ih_l0.copy_(torch.eye(32))
        rnn.weight_hh_l0.copy_(torch.from_numpy(w.T))  # PyTorch multiplies by the transposed weight
    x = torch.from_numpy(inputs)
    state = rnn(x)[1][0]
    gradient = torch.func.jacrev(lambda x: rnn(x)[1][0])(x)[:, 0]  # [d, d]: state by first input
    trained = {
        f"trained_{cell.__name__}_{rate}": trained_accuracy(cell, rate) for cell in (nn.RNN, nn.LSTM) for rate in RATES
    }
    return {
        "w": w,
        "inputs": inputs,
        "state": state.detach().numpy(),
        "gradient": gradient.detach().numpy(),
    } | trained


def trained_accuracy(cell: type[nn.Module], rate: float, n: int = 16, steps: int = 2_000) -> np.ndarray:
    """Accuracy on fresh sequences of a network trained end to end to report the first of n symbols."""
    torch.manual_seed(0)
    embedding, recurrence, reader = nn.Embedding(8, 32), cell(32, 32, batch_first=True), nn.Linear(32, 8)
    parameters = [*embedding.parameters(), *recurrence.parameters(), *reader.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=rate)
    for _ in range(steps):
        symbols = torch.randint(8, (64, n))
        loss = nn.functional.cross_entropy(reader(recurrence(embedding(symbols))[0][:, -1]), symbols[:, 0])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    symbols = torch.randint(8, (4_000, n))
    with torch.no_grad():
        found = reader(recurrence(embedding(symbols))[0][:, -1]).argmax(dim=-1)
    return (found == symbols[:, 0]).double().mean().numpy()


def lesson_02() -> dict[str, np.ndarray]:
    """F.scaled_dot_product_attention on both sentences, with the weights set by hand."""
    x = np.stack([sentence.features(sentence.tokens(last_word)) for last_word in ("tired", "wide")])
    query, key = x @ sentence.query_matrix(5.0), x @ sentence.KEY_MATRIX
    output = nn.functional.scaled_dot_product_attention(*map(torch.from_numpy, (query, key, x)))
    return {"query": query, "key": key, "value": x, "output": output.numpy()}


def lesson_04() -> dict[str, np.ndarray]:
    """F.scaled_dot_product_attention under masks, its own is_causal, and torch.softmax of a row with nothing in it."""
    rng = np.random.default_rng(0)
    query, key, value = (rng.normal(size=(2, 5, width)) for width in (4, 4, 3))
    allowed = np.tril(np.ones((5, 5), dtype=bool)) & (np.arange(5) < np.array([5, 3])[:, None, None])
    nothing = np.zeros((2, 1, 5), dtype=bool)
    arrays = [torch.from_numpy(array) for array in (query, key, value)]
    attend = nn.functional.scaled_dot_product_attention
    results = {
        "combined": attend(*arrays, attn_mask=torch.from_numpy(allowed)),
        "added": attend(*arrays, attn_mask=torch.from_numpy(np.where(allowed, 0, -np.inf))),
        "is_causal": attend(*arrays, is_causal=True),
        "is_causal_two_queries": attend(arrays[0][:, :2], *arrays[1:], is_causal=True),
        "nothing": attend(*arrays, attn_mask=torch.from_numpy(nothing)),
        "softmax_of_nothing": torch.softmax(torch.full((1, 3), -torch.inf, dtype=torch.float64), dim=-1),
    }
    return {"query": query, "key": key, "value": value} | {name: result.numpy() for name, result in results.items()}


def lesson_03() -> dict[str, np.ndarray]:
    """A query that is steered: weights, their entropy and Jacobian, and autograd's gradient, scaled and unscaled."""
    rng = np.random.default_rng(3)
    query, key = rng.normal(size=64), rng.normal(size=(8, 64))
    value = target = torch.eye(8, dtype=torch.float64)
    arrays = {"query": query, "key": key}
    for name, scale in (("scaled", None), ("unscaled", 1.0)):  # None is PyTorch's own 1 / √d_k
        row = torch.from_numpy(query).clone().requires_grad_()
        inputs = row[None], torch.from_numpy(key), value
        output = nn.functional.scaled_dot_product_attention(*inputs, scale=scale)[0]  # values are unit vectors: weights
        ((output - target[0]) ** 2).sum().backward()
        weights = output.detach()
        scores = torch.log(weights)  # softmax gives these weights back
        arrays |= {
            f"weights_{name}": weights.numpy(),
            f"gradient_{name}": row.grad.numpy(),
            f"entropy_{name}": torch.distributions.Categorical(probs=weights).entropy().numpy(),
            f"jacobian_{name}": torch.func.jacrev(lambda s: torch.softmax(s, dim=-1))(scores).numpy(),
        }
    return arrays


def lesson_05() -> dict[str, np.ndarray]:
    """nn.MultiheadAttention with a mask: its weights, output and maps; its parameters; and what training makes of the task."""
    rng = np.random.default_rng(0)
    module = nn.MultiheadAttention(8, 4, bias=False, batch_first=True, dtype=torch.float64)
    for weight in module.parameters():
        weight.data.copy_(torch.from_numpy(rng.normal(size=weight.shape) / np.sqrt(8)))
    x, may_attend = rng.normal(size=(2, 5, 8)), np.tri(5, dtype=bool)
    tensor = torch.from_numpy(x)
    with torch.no_grad():  # PyTorch's True means: must not attend
        output, maps = module(
            tensor, tensor, tensor, attn_mask=torch.from_numpy(~may_attend), average_attn_weights=False
        )
    return {
        "x": x,
        "may_attend": may_attend,
        "in_proj_weight": module.in_proj_weight.detach().numpy(),
        "out_proj_weight": module.out_proj.weight.detach().numpy(),
        "output": output.numpy(),
        "maps": maps.numpy(),
        "parameters": np.array(sum(w.numel() for w in nn.MultiheadAttention(512, 8).parameters())),
    } | {f"trained_{n_heads}": trained_error(n_heads) for n_heads in (1, 2)}


def trained_error(n_heads: int, n: int = 6, steps: int = 1_000) -> np.ndarray:
    """Error on fresh sequences of heads that were trained to return the previous and the first vector."""
    torch.manual_seed(0)
    module = nn.MultiheadAttention(2 * n, n_heads, bias=False, batch_first=True)
    optimiser = torch.optim.Adam(module.parameters(), lr=0.01)

    def error(count: int) -> torch.Tensor:
        numbers = torch.randn(count, n, n)
        x = torch.cat([numbers, torch.eye(n).expand(count, n, n)], dim=-1)
        target = torch.cat([numbers.roll(1, dims=1), numbers[:, :1].expand(count, n, n)], dim=-1)
        return (module(x, x, x, need_weights=False)[0] - target)[:, 2:].square().mean()

    for _ in range(steps):
        optimiser.zero_grad()
        error(128).backward()
        optimiser.step()
    with torch.no_grad():
        return error(4_000).double().numpy()


def lesson_06() -> dict[str, np.ndarray]:
    """Rotary as one product of complex numbers, and F.scaled_dot_product_attention with distances as a float mask."""
    rng = np.random.default_rng(0)
    query, key, value = rng.normal(size=(3, 6, 5, 8)).round(2)  # [heads, places, d] each
    turns = torch.outer(torch.arange(5.0, dtype=torch.float64), 10_000.0 ** (-torch.arange(4, dtype=torch.float64) / 4))
    turns = torch.polar(torch.ones_like(turns), turns)  # [places, d / 2], complex

    def turned(x: np.ndarray) -> torch.Tensor:
        pairs = torch.view_as_complex(torch.from_numpy(x).unflatten(-1, (4, 2)).contiguous())
        return torch.view_as_real(pairs * turns).flatten(-2)

    bias = torch.from_numpy(alibi_bias(6, 5))
    attention = nn.functional.scaled_dot_product_attention
    return {
        "query": query,
        "key": key,
        "value": value,
        "turned": turned(query).numpy(),
        "with_rotary": attention(turned(query), turned(key), torch.from_numpy(value)).numpy(),
        "with_alibi": attention(*map(torch.from_numpy, (query, key, value)), attn_mask=bias).numpy(),
    }


def lesson_07() -> dict[str, np.ndarray]:
    """Autograd's gradients of F.scaled_dot_product_attention with a mask."""
    rng = np.random.default_rng(7)
    shapes = {"query": (2, 3, 4, 5), "key": (2, 3, 6, 5), "value": (2, 3, 6, 2), "grad_output": (2, 3, 4, 2)}
    arrays = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    mask = np.tri(4, 6, 2, dtype=bool)
    query, key, value = (torch.from_numpy(arrays[name]).requires_grad_() for name in ("query", "key", "value"))
    output = nn.functional.scaled_dot_product_attention(query, key, value, torch.from_numpy(mask))
    gradients = torch.autograd.grad(output, (query, key, value), torch.from_numpy(arrays["grad_output"]))
    names = ("grad_query", "grad_key", "grad_value")
    return arrays | {"mask": mask} | {name: gradient.numpy() for name, gradient in zip(names, gradients)}


def lesson_08() -> dict[str, np.ndarray]:
    """Accuracy on associative recall with separate tokens, of one and of two layers, each from five seeds."""
    return {
        f"trained_{n_layers}": np.array([recall_accuracy(n_layers, seed) for seed in range(5)]) for n_layers in (1, 2)
    }


class Recall(nn.Module):
    """The model of lesson 08: a vector for each token and each place, causal layers, and a reader at the last token."""

    def __init__(self, n_layers: int):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(32, 64), nn.Parameter(torch.randn(17, 64))
        self.layers = nn.ModuleList(SelfAttention(64) for _ in range(n_layers))
        self.reader = nn.Linear(64, 16)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Scores of the 16 values [batch, 16] for tokens [batch, 17]."""
        x = self.embedding(tokens) + self.positions
        for layer in self.layers:
            x = layer(x, causal_mask(17))
        return self.reader(x[:, -1])


def recall_accuracy(n_layers: int, seed: int, steps: int = 400) -> float:
    """Accuracy on 2,000 fresh lists of 8 pairs, after training on 64 new lists in each step, in float64 as in the lesson."""
    torch.manual_seed(seed)
    model, rng = Recall(n_layers).double(), np.random.default_rng(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.002)
    for _ in range(steps):
        tokens, answer, _ = map(torch.from_numpy, recall_tokens(64, 16, 8, rng))
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(tokens), answer).backward()
        optimiser.step()
    tokens, answer, _ = map(torch.from_numpy, recall_tokens(2_000, 16, 8, np.random.default_rng([seed, 1])))
    with torch.no_grad():
        return (model(tokens).argmax(dim=-1) == answer).double().mean().item()


ATTENTIONS = ("neither", "norm", "residual", "both", "residual, half the weights")  # what stands around the attention
BLOCKS = ("pre-norm", "post-norm")
REVERSAL_RATES = (0.001, 0.003, 0.01)


def lesson_09() -> dict[str, np.ndarray]:
    """Share of right answers after 100 steps of the reversal, [variants, rates, seeds]: twelve attentions, twelve blocks."""

    def table(train: Callable[..., list[float]], variants: tuple[str, ...]) -> np.ndarray:
        return np.array(
            [[[train(variant, rate, seed)[-1] for seed in range(5)] for rate in REVERSAL_RATES] for variant in variants]
        )

    return {
        "rates": np.array(REVERSAL_RATES),
        "trained_residual": np.array(trained_attentions("residual", 0.003, 0, n_steps=60, every=10)),
        "trained_attentions": table(trained_attentions, ATTENTIONS),
        "trained_blocks": table(trained_blocks, BLOCKS),
        "trained_longer": np.array([trained_blocks("post-norm", 0.001, seed, n_steps=400)[-1] for seed in range(5)]),
    }


class AttentionAlone(nn.Module):
    """Attention, with or without a residual connection and a norm, as the lesson has it."""

    def __init__(self, residual: bool, norm: bool):
        super().__init__()
        self.residual = residual
        self.attention = MultiHeadAttention(32, 2)
        self.norm = LayerNorm(32) if norm else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[..., n, 32] to the same shape."""
        found = self.attention(self.norm(x))
        return x + found if self.residual else found


def trained_attentions(variant: str, rate: float, seed: int, n_steps: int = 100, every: int = 100) -> list[float]:
    """Share of right answers of twelve attentions, in float64, so that machines hardly differ."""
    torch.manual_seed(seed)
    residual, norm = variant not in ("neither", "norm"), variant in ("norm", "both")
    model = Reverser([AttentionAlone(residual, norm) for _ in range(12)], 32, norm=norm).double()
    if "half" in variant:
        for layer in model.layers:
            for projection in (
                layer.attention.query,
                layer.attention.key,
                layer.attention.value,
                layer.attention.output,
            ):
                nn.init.xavier_uniform_(projection.weight, gain=0.5)
    return train_reversal(model, rate=rate, n_steps=n_steps, every=every, seed=seed).accuracies


def trained_blocks(variant: str, rate: float, seed: int, n_steps: int = 100) -> list[float]:
    """Share of right answers of twelve encoder layers."""
    torch.manual_seed(seed)
    norm_first = variant == "pre-norm"
    model = Reverser([EncoderLayer(32, 2, 64, norm_first=norm_first) for _ in range(12)], 32, norm=norm_first).double()
    return train_reversal(model, rate=rate, n_steps=n_steps, every=100, seed=seed).accuracies


LESSONS = {name: function for name, function in globals().items() if name.startswith("lesson_")}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, function in LESSONS.items():
        np.savez_compressed(FOLDER / f"{name}.npz", **function())
        print(f"wrote {name}.npz")
