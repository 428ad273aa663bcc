"""The decoder of a Transformer: it looks at what was written so far, and at a context (lessons 09 and 14).

Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin, *Attention Is All You Need* (2017), section 3.1.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attnlib.torch.blocks import FeedForward, Layer, LayerNorm, last_norm
from attnlib.torch.checks import check_whole, check_width
from attnlib.torch.heads import with_head_axis
from attnlib.torch.layers import MultiHeadAttention
from attnlib.torch.masks import causal_mask


class DecoderLayer(Layer):
    """Self-attention to the past, attention to a context, then feed-forward (Vaswani et al. 2017, section 3.1).

    Parameters
    ----------
    d_model, n_heads, d_ff, dropout, activation, norm_first, eps
        As in ``EncoderLayer``.
    causal : bool
        Whether self-attention sees only what came before, and the token itself.

    Attributes
    ----------
    attention, context_attention : MultiHeadAttention
    feed_forward : FeedForward
    norm_attention, norm_context, norm_feed_forward : LayerNorm
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int | None = None,
        *,
        dropout: float = 0.0,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        norm_first: bool = True,
        causal: bool = True,
        eps: float = 1e-5,
    ):
        super().__init__(d_model, dropout, norm_first, eps)
        self.causal = causal
        self.attention = MultiHeadAttention(d_model, n_heads, dropout=dropout)
        self.context_attention = MultiHeadAttention(d_model, n_heads, dropout=dropout)
        self.norm_context = LayerNorm(d_model, eps)
        self.feed_forward = FeedForward(d_model, d_ff, dropout=dropout, activation=activation)

    def forward(
        self,
        x: Tensor,
        context: Tensor,
        mask: Tensor | None = None,
        context_mask: Tensor | None = None,
        *,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor, Tensor]:
        """Look at what was written so far, then at the context, then work on both.

        Parameters
        ----------
        x : tensor [..., n, d_model]
            What was written so far.
        context : tensor [..., n_context, d_model]
            What the encoder made of the source.
        mask : tensor or None
            Of x, beside the causal one: its padding. Broadcasts to [..., n, n].
        context_mask : tensor or None
            Of the context: *its* padding. Broadcasts to [..., n, n_context].
        return_weights : bool
            Also return both weights.

        Returns
        -------
        output : tensor [..., n, d_model]
        weights, context_weights : tensors [..., n_heads, n, n] and [..., n_heads, n, n_context]
            Only if asked for.
        """
        if context is None:
            raise ValueError(
                "context is None; expected what an encoder made, [..., n_context, d_model]. Try EncoderLayer with "
                "mask=causal_mask(n) for a model that has no encoder."
            )
        check_width("x", x, self.d_model, "[..., n, d_model]", self.norm_attention.weight)
        check_width("context", context, self.d_model, "[..., n_context, d_model]", self.norm_attention.weight)
        mask = self._with_causal(mask, x)
        found = self.attention(self.before(x, self.norm_attention), mask=mask, return_weights=return_weights)
        found, weights = found if return_weights else (found, None)
        x = self.after(x, found, self.norm_attention)
        asked = self.before(x, self.norm_context)
        found = self.context_attention(asked, context, mask=context_mask, return_weights=return_weights)
        found, context_weights = found if return_weights else (found, None)
        x = self.after(x, found, self.norm_context)
        x = self.after(x, self.feed_forward(self.before(x, self.norm_feed_forward)), self.norm_feed_forward)
        return (x, weights, context_weights) if return_weights else x

    def _with_causal(self, mask: Tensor | None, x: Tensor) -> Tensor | None:
        if not self.causal:
            return mask
        past = causal_mask(x.shape[-2], device=x.device)
        if mask is None:
            return past
        mask = with_head_axis(mask, x, x, self.attention.n_heads)  # checks it as well
        if mask.dtype == torch.bool:
            return mask & past
        return torch.where(past, mask, -torch.inf)


class Decoder(nn.Module):
    """A stack of decoder layers (Vaswani et al. 2017, figure 1, right, without the embedding).

    Parameters
    ----------
    n_layers, d_model, n_heads : int
    d_ff, dropout, activation, norm_first, causal, eps
        As in ``DecoderLayer``.

    Attributes
    ----------
    layers : nn.ModuleList of DecoderLayer
    norm : LayerNorm, or nn.Identity
        The last norm, in pre-norm.
    """

    def __init__(self, n_layers: int, d_model: int, n_heads: int, d_ff: int | None = None, **options):
        super().__init__()
        n_layers = check_whole("n_layers", n_layers, 1)
        self.layers = nn.ModuleList(DecoderLayer(d_model, n_heads, d_ff, **options) for _ in range(n_layers))
        self.norm = last_norm(d_model, options)

    def forward(
        self,
        x: Tensor,
        context: Tensor,
        mask: Tensor | None = None,
        context_mask: Tensor | None = None,
        *,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor, Tensor]:
        """As ``DecoderLayer``; weights get the axis n_layers in front."""
        maps = []
        for layer in self.layers:
            x = layer(x, context, mask, context_mask, return_weights=return_weights)
            if return_weights:
                x, *layer_maps = x
                maps.append(layer_maps)
        return (self.norm(x), *map(torch.stack, zip(*maps))) if return_weights else self.norm(x)
