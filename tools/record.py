"""Record what PyTorch says about the inputs of lessons, for lessons that run without it: `python tools/record.py`.

Each function returns the arrays of one lesson; a test makes them again and compares.
"""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from attnlib.data import sentence
from attnlib.numpy import orthogonal

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


LESSONS = {function.__name__: function for function in (lesson_00, lesson_01, lesson_02, lesson_07)}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, function in LESSONS.items():
        np.savez_compressed(FOLDER / f"{name}.npz", **function())
        print(f"wrote {name}.npz")
