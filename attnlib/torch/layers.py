"""Layers that hold the weights of attention: one head, several heads, and attention to another sequence (lesson 08).

Functions do the work, layers hold weights. No state is left on a layer: weights are returned when they are asked for.

Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin, *Attention Is All You Need* (2017), section 3.2.
"""

import torch
from torch import Tensor, nn

from attnlib.torch.attention import attend, in_dtype
from attnlib.torch.checks import check_heads, check_rate, check_whole, check_width
from attnlib.torch.heads import merge_heads, split_heads, with_head_axis


class SelfAttention(nn.Module):
    """A sequence that looks at itself with one head, inside a residual connection: x + output(attend(norm(x))).

    Parameters
    ----------
    d_model : int
        Width of what comes in and goes out.
    d_k, d_v : int, optional
        Width of queries and keys, and of values; d_model if not given. ``output`` brings any d_v back to d_model.
    dropout : float
        Share of the weights that is dropped in training.
    bias : bool
        Whether the four projections add a bias.
    norm : bool
        Whether x is normalised before it is projected (Ba, Kiros, Hinton, *Layer Normalization*, 2016).

    Attributes
    ----------
    norm : nn.LayerNorm, or nn.Identity
    query, key, value, output : nn.Linear
        Their ``weight`` is [out, in], so they compute ``x @ weight.T + bias``.

    Notes
    -----
    The residual connection is that of He, Zhang, Ren, Sun, *Deep Residual Learning for Image Recognition* (2016).
    """

    def __init__(
        self,
        d_model: int,
        d_k: int | None = None,
        d_v: int | None = None,
        *,
        dropout: float = 0.0,
        bias: bool = True,
        norm: bool = True,
    ):
        super().__init__()
        self.d_model = d_model = check_whole("d_model", d_model, 1)
        d_k = d_model if d_k is None else check_whole("d_k", d_k, 1)
        d_v = d_model if d_v is None else check_whole("d_v", d_v, 1)
        self.dropout = check_rate("dropout", dropout)
        self.norm = nn.LayerNorm(d_model) if norm else nn.Identity()
        self.query = nn.Linear(d_model, d_k, bias)
        self.key = nn.Linear(d_model, d_k, bias)
        self.value = nn.Linear(d_model, d_v, bias)
        self.output = nn.Linear(d_v, d_model, bias)

    def forward(
        self, x: Tensor, mask: Tensor | None = None, *, return_weights: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Let every token of x look at the others, and add to it what it found.

        Parameters
        ----------
        x : tensor [..., n, d_model]
        mask : tensor, broadcasts to [..., n, n], or None
            Boolean: True = may attend. Floating: added to the scores.
        return_weights : bool
            Also return the weights, as they are before dropout.

        Returns
        -------
        output : tensor [..., n, d_model]
        weights : tensor [..., n, n]
            Only if asked for.

        Raises
        ------
        ValueError
            If x has not the width that the layer was made for, or the mask does not fit.
        """
        check_width("x", x, self.d_model, "[..., n, d_model]", self.query.weight)
        tokens = self.norm(x)
        query, key, value = self.query(tokens), self.key(tokens), self.value(tokens)
        rate = self.dropout if self.training else 0.0
        mask = in_dtype(mask, query)
        found, weights = attend(query, key, value, mask, rate, return_weights)
        output = x + self.output(found)
        return (output, weights) if return_weights else output


class _Heads(nn.Module):
    """What both layers below share: four projections of any widths, and attention between them."""

    def __init__(self, d_query: int, d_context: int, n_heads: int, d_k: int, d_v: int, dropout: float, bias: bool):
        super().__init__()
        self.d_query, self.d_context, self.n_heads = d_query, d_context, n_heads
        self.dropout = check_rate("dropout", dropout)
        self.query = nn.Linear(d_query, n_heads * d_k, bias)
        self.key = nn.Linear(d_context, n_heads * d_k, bias)
        self.value = nn.Linear(d_context, n_heads * d_v, bias)
        self.output = nn.Linear(n_heads * d_v, d_query, bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights: uniform after Glorot and Bengio (2010), so that scores start with a variance near 1; biases 0."""
        for projection in (self.query, self.key, self.value, self.output):
            nn.init.xavier_uniform_(projection.weight)
            if projection.bias is not None:
                nn.init.zeros_(projection.bias)

    def extra_repr(self) -> str:
        """What ``print(layer)`` shows beside the projections."""
        return f"n_heads={self.n_heads}, dropout={self.dropout}"

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, return_weights: bool
    ) -> Tensor | tuple[Tensor, Tensor]:
        rate = self.dropout if self.training else 0.0
        mask = with_head_axis(mask, query, key, self.n_heads)
        query, key, value = self._project(query, key, value)
        query, key, value = (split_heads(x, self.n_heads) for x in (query, key, value))  # [..., n_heads, n, d_k or d_v]
        found, weights = attend(query, key, value, in_dtype(mask, query), rate, return_weights)
        output = self.output(merge_heads(found))
        return (output, weights) if return_weights else output

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.query(query), self.key(key), self.value(value)


class MultiHeadAttention(_Heads):
    """Attention with several heads between sequences of one width.

    Parameters
    ----------
    d_model : int
        Width of what comes in and goes out.
    n_heads : int
    d_k, d_v : int, optional
        Width of queries and keys, and of values, *in each head*; d_model / n_heads if not given.
    dropout : float
        Share of the weights that is dropped in training.
    bias : bool
        Whether the four projections add a bias.

    Attributes
    ----------
    query, key, value, output : nn.Linear
        Rows ``h * d_k`` to ``(h + 1) * d_k`` of ``query.weight`` belong to head h.

    Raises
    ------
    ValueError
        If a size is no whole number, or n_heads does not divide d_model where d_k or d_v is not given.

    Notes
    -----
    Vaswani et al. (2017), section 3.2.2. No state is left on the layer: weights are returned when they are asked for.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
        bias: bool = True,
    ):
        d_model, n_heads = check_whole("d_model", d_model, 1), check_whole("n_heads", n_heads, 1)
        d_k = check_heads(d_model, n_heads) if d_k is None else check_whole("d_k", d_k, 1)
        d_v = check_heads(d_model, n_heads) if d_v is None else check_whole("d_v", d_v, 1)
        super().__init__(d_model, d_model, n_heads, d_k, d_v, dropout, bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Let every query look at the keys with every head, and mix what they found.

        Parameters
        ----------
        query : tensor [..., n_query, d_model]
        key : tensor [..., n_key, d_model], optional
            The query if not given: self-attention.
        value : tensor [..., n_key, d_model], optional
            The key if not given.
        mask : tensor or None
            Boolean: True = may attend. Floating: added to the scores. With at most as many axes as query,
            ``[..., n_query, n_key]``, it holds for all heads; with one more, ``[..., n_heads, n_query, n_key]``, each has its own.
        return_weights : bool
            Also return the weights, as they are before dropout.

        Returns
        -------
        output : tensor [..., n_query, d_model]
        weights : tensor [..., n_heads, n_query, n_key]
            Only if asked for: one map for each head, never averaged.

        Raises
        ------
        ValueError
            If widths, lengths or the mask do not fit; the message says which and what to try.
        """
        if isinstance(key, Tensor) and key.dtype == torch.bool:
            raise ValueError(
                "key holds booleans; expected a floating tensor [..., n_key, d_model]. Is it a mask? Try mask=..., since "
                "the second argument is the key."
            )
        key = query if key is None else key
        value = key if value is None else value
        for name, x in (("query", query), ("key", key), ("value", value)):
            check_width(name, x, self.d_query, "[..., n, d_model]", self.query.weight)
        return self._attend(query, key, value, mask, return_weights)

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        many = not torch.compiler.is_compiling() and query.numel() > 4 * self.query.weight.numel()
        if query is key is value and many:  # one product is then faster than three
            layers = (self.query, self.key, self.value)
            weight = torch.cat([layer.weight for layer in layers])
            bias = None if self.query.bias is None else torch.cat([layer.bias for layer in layers])
            return nn.functional.linear(query, weight, bias).split([len(layer.weight) for layer in layers], dim=-1)
        return super()._project(query, key, value)


class CrossAttention(_Heads):
    """Attention of one sequence to another, whose width may differ: queries from the first, keys and values from the second.

    Parameters
    ----------
    d_query, d_context : int
        Widths of the sequence that looks and of the one that is looked at.
    n_heads : int
    d_model : int, optional
        Width of all heads together, inside; d_query if not given. n_heads must divide it.
    dropout : float
        Share of the weights that is dropped in training.

    Attributes
    ----------
    query, key, value, output : nn.Linear

    Raises
    ------
    ValueError
        If a size is no whole number, or n_heads does not divide d_model.

    Notes
    -----
    Vaswani et al. (2017), section 3.2.3, "encoder-decoder attention"; before them, with one head and additive scores,
    Bahdanau, Cho, Bengio, *Neural Machine Translation by Jointly Learning to Align and Translate* (2015).
    """

    def __init__(self, d_query: int, d_context: int, n_heads: int, *, d_model: int | None = None, dropout: float = 0.0):
        d_query, d_context = check_whole("d_query", d_query, 1), check_whole("d_context", d_context, 1)
        n_heads = check_whole("n_heads", n_heads, 1)
        d_head = check_heads(check_whole("d_model", d_query if d_model is None else d_model, 1), n_heads)
        super().__init__(d_query, d_context, n_heads, d_head, d_head, dropout, True)

    def forward(
        self, query: Tensor, context: Tensor, mask: Tensor | None = None, *, return_weights: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Let every query look at the context.

        Parameters
        ----------
        query : tensor [..., n_query, d_query]
        context : tensor [..., n_context, d_context]
        mask : tensor or None
            ``[..., n_query, n_context]``, or one more axis for heads; boolean: True = may attend; floating: added. It is
            the *context's* padding that must be forbidden here.
        return_weights : bool
            Also return the weights, as they are before dropout.

        Returns
        -------
        output : tensor [..., n_query, d_query]
        weights : tensor [..., n_heads, n_query, n_context]
            Only if asked for.

        Raises
        ------
        ValueError
            If widths, lengths or the mask do not fit; the message says which and what to try.
        """
        check_width("query", query, self.d_query, "[..., n_query, d_query]", self.query.weight)
        check_width("context", context, self.d_context, "[..., n_context, d_context]", self.key.weight)
        return self._attend(query, context, context, mask, return_weights)
