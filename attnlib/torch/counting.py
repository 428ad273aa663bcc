"""What a Transformer costs, by formula: parameters and operations, equal to what PyTorch counts (lesson 09)."""

from attnlib.numpy import count_parameters
from attnlib.numpy.checks import check_whole


def transformer_parameters(
    n_layers: int,
    d_model: int,
    n_heads: int,
    d_ff: int,
    n_symbols: int = 0,
    *,
    d_k: int | None = None,
    d_v: int | None = None,
    n_decoder_layers: int = 0,
    norm_first: bool = True,
) -> int:
    """Count the numbers that a Transformer learns: encoder, decoder, and an embedding that also reads.

    Parameters
    ----------
    n_layers : int
        Encoder layers.
    d_model, n_heads, d_ff : int
        As in ``EncoderLayer``. How many heads there are changes nothing, unless d_k or d_v is given.
    n_symbols : int
        Rows of the embedding. The reader at the end uses the same matrix, so it is counted once.
    d_k, d_v : int, optional
        Widths per head; d_model / n_heads if not given.
    n_decoder_layers : int
        Decoder layers, each with a second attention and a third norm.
    norm_first : bool
        Pre-norm has one more norm behind each stack.

    Returns
    -------
    count : int
        An encoder layer has ``4 d_model² + 4 d_model`` in its attention (lesson 05), ``2 d_model d_ff + d_ff + d_model`` in
        its feed-forward part, and ``2 d_model``, gain and shift, in each of two norms.

    Raises
    ------
    ValueError
        If a size is not a whole number, or d_model cannot be split into n_heads.

    Notes
    -----
    Vaswani et al., *Attention Is All You Need* (2017), table 3, prints the sum in millions. Its rows that change the number of
    layers, d_k or d_ff differ from its base model by what this formula says, up to its rounding. Nothing is counted for
    positions, which are sinusoids there.
    """
    n_layers, n_decoder_layers, n_symbols = _wholes(
        0, n_layers=n_layers, n_decoder_layers=n_decoder_layers, n_symbols=n_symbols
    )
    d_model, d_ff = _wholes(1, d_model=d_model, d_ff=d_ff)
    attention = count_parameters(d_model, n_heads, d_k, d_v)
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    encoder = n_layers * (attention + feed_forward + 2 * norm)
    decoder = n_decoder_layers * (2 * attention + feed_forward + 3 * norm)
    last = norm * ((n_layers > 0) + (n_decoder_layers > 0)) if norm_first else 0
    return encoder + decoder + last + n_symbols * d_model


def transformer_flops(
    n_layers: int,
    d_model: int,
    n_heads: int,
    d_ff: int,
    n: int,
    *,
    batch: int = 1,
    n_symbols: int = 0,
    d_k: int | None = None,
    d_v: int | None = None,
) -> int:
    """Count the operations of an encoder in one forward pass: two, a product and a sum, for each entry of a matrix product.

    Parameters
    ----------
    n_layers, d_model, n_heads, d_ff : int
        As in ``EncoderLayer``.
    n : int
        Tokens in a sequence.
    batch : int
        Sequences.
    n_symbols : int
        If not 0, a reader from d_model to so many scores is counted too. The embedding is a look-up and costs none.
    d_k, d_v : int, optional
        Widths per head; d_model / n_heads if not given.

    Returns
    -------
    count : int
        For each sequence and layer: ``2 n · 4 d_model²`` in the projections, ``2 · 2 n² d_model`` in scores and weighted means
        of all heads together, ``2 n · 2 d_model d_ff`` in the feed-forward part.

    Raises
    ------
    ValueError
        If a size is not a whole number, or d_model cannot be split into n_heads.

    Notes
    -----
    Norms, softmax, biases and activations are left out, as ``torch.utils.flop_counter`` leaves them out (which also sees nothing
    of PyTorch's fused attention on a CPU; ask for the weights to have it counted): they grow with
    n d_model, n d_ff and n_heads n² alone. A step of training takes about three times as much, since each product forward is two
    backward. Per token it is counted like this in Kaplan et al., *Scaling Laws for Neural Language Models* (2020), section 2.1.
    """
    n_layers, n, batch, n_symbols = _wholes(0, n_layers=n_layers, n=n, batch=batch, n_symbols=n_symbols)
    d_model, d_ff = _wholes(1, d_model=d_model, d_ff=d_ff)
    weights = count_parameters(d_model, n_heads, d_k, d_v, bias=False) + 2 * d_model * d_ff
    d_k = d_model // n_heads if d_k is None else d_k
    d_v = d_model // n_heads if d_v is None else d_v
    layer = 2 * n * weights + 2 * n * n * n_heads * (d_k + d_v)
    return batch * (n_layers * layer + 2 * n * d_model * n_symbols)


def _wholes(least: int, **sizes: int) -> list[int]:
    """Sizes as whole numbers of at least ``least``."""
    return [check_whole(name, size, least) for name, size in sizes.items()]
