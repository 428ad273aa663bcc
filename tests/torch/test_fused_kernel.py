"""What PyTorch's fused kernel does to a row that a finite number masks wholly: why our layers keep away from it there.

Measured with PyTorch 2.13 on the CPU. If a later version fails here, it was mended: then lesson 08 has to say so, and
``attnlib.torch.scaled_dot_product_attention`` can give the kernel such masks too.
"""

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

from attnlib.torch import scaled_dot_product_attention  # noqa: E402

LOWEST = torch.finfo(torch.float32).min


def gradient_of_values(attend, fill, n_key, dtype=torch.float32, **options):
    """Gradient of one output of a wholly masked row: one entry for each key."""
    rng = torch.Generator().manual_seed(0)
    query, key = (torch.randn(1, 1, n, 8, dtype=dtype, generator=rng) for n in (3, n_key))
    value = torch.randn(1, 1, n_key, 8, dtype=dtype, generator=rng).requires_grad_()
    mask = torch.zeros(3, n_key, dtype=dtype)
    mask[1] = fill
    output = attend(query, key, value, mask, **options)
    return output.detach()[0, 0, 1], torch.autograd.grad(output[0, 0, 1, 0], value)[0][0, 0, :, 0]


@pytest.mark.parametrize("n_key", [4, 16, 64])
@pytest.mark.parametrize("fill, dtype", [(LOWEST, torch.float32), (-1e9, torch.float32), (-1e300, torch.float64)])
def test_the_kernels_gradient_of_the_values_is_n_key_times_too_large(fill, dtype, n_key):
    with sdpa_kernel(SDPBackend.MATH):
        output, right = gradient_of_values(F.scaled_dot_product_attention, fill, n_key, dtype)
    fused_output, fused = gradient_of_values(F.scaled_dot_product_attention, fill, n_key, dtype)
    ours_output, ours = gradient_of_values(scaled_dot_product_attention, fill, n_key, dtype)
    torch.testing.assert_close(right, torch.full((n_key,), 1 / n_key, dtype=dtype))  # all keys alike
    torch.testing.assert_close(fused, n_key * right)
    torch.testing.assert_close(ours, right)
    torch.testing.assert_close(fused_output, output)  # nothing is to be seen in the forward pass
    torch.testing.assert_close(ours_output, output)


def test_with_minus_infinity_and_with_a_fill_that_leaves_the_scores_the_kernel_is_right():
    for fill, dtype in ((-torch.inf, torch.float32), (-1e4, torch.float64)):  # float64 keeps the scores beside −1e4
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            _, fused = gradient_of_values(F.scaled_dot_product_attention, fill, 8, dtype)
        _, ours = gradient_of_values(scaled_dot_product_attention, fill, 8, dtype)
        torch.testing.assert_close(fused, ours)
