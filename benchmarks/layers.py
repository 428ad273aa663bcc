"""A training step of our layer beside one of `nn.MultiheadAttention`, with the same weights: `python benchmarks/layers.py`.

Both run in turn, so that what else the machine does meets both. Medians are compared, and the median of the ratios of
neighbours, which a slow minute does not move. Not a test: times depend on the machine. For clean numbers, run it alone.
"""

import argparse
import statistics
import time

import torch
from torch import nn
from tqdm import tqdm

from attnlib.torch import MultiHeadAttention, causal_mask, load_torch_weights, to_attn_mask

SIZES = {
    "small": (8, 64, 64, 4),
    "medium": (8, 256, 256, 8),
    "large": (4, 512, 512, 8),
}  # batch, tokens, d_model, heads


def step(layer: nn.Module, x: torch.Tensor, *, mask: torch.Tensor | None) -> float:
    """Seconds that one training step takes: forward, backward, and a step of SGD."""
    optimizer = torch.optim.SGD(layer.parameters(), lr=1e-6)
    start = time.perf_counter()
    if isinstance(layer, nn.MultiheadAttention):
        output = layer(x, x, x, attn_mask=mask, need_weights=False)[0]
    else:
        output = layer(x, mask=mask)
    output.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=60)
    parser.add_argument("--threads", type=int, help="PyTorch's own choice if not given")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads, float32")
    for name, (batch, n, d_model, n_heads) in SIZES.items():
        theirs = nn.MultiheadAttention(d_model, n_heads, batch_first=True)
        ours = load_torch_weights(MultiHeadAttention(d_model, n_heads), theirs)
        x = torch.randn(batch, n, d_model)
        for kind, mask in (("no mask", None), ("causal", causal_mask(n))):
            their_mask = None if mask is None else to_attn_mask(mask)
            times = {"ours": [], "PyTorch's": []}
            for _ in tqdm(range(options.repeat), desc=f"{name}, {kind}", leave=False):
                times["ours"].append(step(ours, x, mask=mask))
                times["PyTorch's"].append(step(theirs, x, mask=their_mask))
            medians = {which: 1_000 * statistics.median(measured[3:]) for which, measured in times.items()}
            ratio = statistics.median(a / b for a, b in zip(times["ours"][3:], times["PyTorch's"][3:]))
            told = ", ".join(f"{which} {median:.2f} ms" for which, median in medians.items())
            print(
                f"{name:<6} batch {batch}, {n} tokens, d_model {d_model}, {n_heads} heads, {kind:<7}: {told}; ratio {ratio:.2f}"
            )


if __name__ == "__main__":
    main()
