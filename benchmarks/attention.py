"""NumPy attention beside the same three expressions in PyTorch, on the same cores: `python benchmarks/attention.py`.

Both run in turn, so that what else the machine does meets both; medians are compared. Not a test: times depend on the
machine. Threads are what each library takes by itself.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from tqdm import trange

from attnlib.numpy import scaled_dot_product_attention


def in_torch(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Scores, softmax and the weighted mean, written out in eager PyTorch."""
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return weights @ value


def seconds(function: Callable, *args: object) -> float:
    """Time of one call."""
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--shape", type=int, nargs=4, default=(8, 8, 512, 64), help="batch, heads, tokens, d_head")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=options.shape).astype(np.float32) for _ in range(3)]
    tensors = [torch.from_numpy(array) for array in arrays]
    difference = np.abs(scaled_dot_product_attention(*arrays) - in_torch(*tensors).numpy()).max()
    times = {"NumPy": [], "PyTorch": []}
    for _ in trange(options.repeat):
        times["NumPy"].append(seconds(scaled_dot_product_attention, *arrays))
        times["PyTorch"].append(seconds(in_torch, *tensors))
    medians = {name: statistics.median(measured) for name, measured in times.items()}
    print(f"shape {tuple(options.shape)}, float32, largest difference {difference:.1e}")
    for name, median in medians.items():
        print(f"{name:<8} {1_000 * median:7.1f} ms")
    print(f"NumPy takes {medians['NumPy'] / medians['PyTorch']:.2f} times as long")


if __name__ == "__main__":
    main()
