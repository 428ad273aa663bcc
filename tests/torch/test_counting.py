"""Parameters and operations by formula are what PyTorch counts, and what the paper prints."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from attnlib.torch import Decoder, Encoder, transformer_flops, transformer_parameters  # noqa: E402

SIZES = [(1, 4, 1, 7), (3, 8, 4, 20), (2, 12, 3, 5), (6, 512, 8, 2048)]


def numel(*modules):
    return sum(weight.numel() for module in modules for weight in module.parameters())


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("sizes", SIZES)
def test_parameters_are_those_that_the_layers_have(sizes, norm_first):
    n_layers, d_model, n_heads, d_ff = sizes
    with torch.device("meta"):
        encoder = Encoder(n_layers, d_model, n_heads, d_ff, norm_first=norm_first)
        decoder = Decoder(n_layers + 1, d_model, n_heads, d_ff, norm_first=norm_first)
        embedding = nn.Embedding(11, d_model)
        theirs = nn.TransformerEncoderLayer(d_model, n_heads, d_ff)
    assert transformer_parameters(*sizes, norm_first=norm_first) == numel(encoder)
    both = transformer_parameters(*sizes, 11, n_decoder_layers=n_layers + 1, norm_first=norm_first)
    assert both == numel(encoder, decoder, embedding)
    assert transformer_parameters(1, d_model, n_heads, d_ff, norm_first=False) == numel(theirs)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("batch, n", [(1, 1), (2, 9)])
def test_operations_are_those_that_pytorch_counts(sizes, batch, n):
    with torch.device("meta"):
        encoder, x = Encoder(*sizes), torch.empty(batch, n, sizes[1])
        reader = nn.Linear(sizes[1], 13)
    with FlopCounterMode(display=False) as counter:
        output, _ = encoder(x, return_weights=True)  # of a fused kernel on a CPU it sees nothing
        reader(output)
    assert transformer_flops(*sizes, n, batch=batch, n_symbols=13) == counter.get_total_flops()


def test_widths_of_heads_count_in_both():
    assert transformer_parameters(2, 8, 2, 16, d_k=4, d_v=4) == transformer_parameters(2, 8, 2, 16)
    assert transformer_flops(2, 8, 2, 16, 5, d_k=4, d_v=4) == transformer_flops(2, 8, 2, 16, 5)
    narrower = transformer_parameters(2, 8, 2, 16, d_k=2)
    assert transformer_parameters(2, 8, 2, 16) - narrower == 2 * (2 * 8 * 4 + 2 * 4)  # query and key, and their biases
    less = transformer_flops(2, 8, 2, 16, 5) - transformer_flops(2, 8, 2, 16, 5, d_k=2)
    assert less == 2 * (2 * 5 * 2 * 8 * 4 + 2 * 5 * 5 * 4)


@pytest.mark.parametrize(
    "change, millions",
    [
        ({"n_layers": 2, "n_decoder_layers": 2}, 36),
        ({"n_layers": 4, "n_decoder_layers": 4}, 50),
        ({"n_layers": 8, "n_decoder_layers": 8}, 80),
        ({"d_k": 16}, 58),
        ({"d_k": 32}, 60),
        ({"d_ff": 1024}, 53),
        ({"d_ff": 4096}, 90),
    ],
)
def test_rows_of_table_3_differ_from_the_base_model_as_the_formula_says(change, millions):
    base = {"n_layers": 6, "d_model": 512, "n_heads": 8, "d_ff": 2048, "n_symbols": 37_000, "n_decoder_layers": 6}
    more = transformer_parameters(**base | change) - transformer_parameters(**base)
    assert abs(more / 1e6 - (millions - 65)) < 1  # both are rounded to a million


def test_errors_say_what_to_try():
    with pytest.raises(ValueError, match="n_layers=1.5; expected a whole number of at least 0"):
        transformer_parameters(1.5, 8, 2, 16)
    with pytest.raises(ValueError, match="d_ff=0; expected a whole number of at least 1"):
        transformer_flops(1, 8, 2, 0, 5)
    with pytest.raises(ValueError, match="cannot be split into 3 heads"):
        transformer_parameters(1, 8, 3, 16)
    assert isinstance(transformer_parameters(np.int64(1), 8, 2, 16), int)
