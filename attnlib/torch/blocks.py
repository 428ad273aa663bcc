"""The blocks of a Transformer: layer norm, feed-forward, encoder (lesson 09). The decoder is in ``decoder``.

Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin, *Attention Is All You Need* (2017), section 3.1 and 3.3.
Where the norm stands is an option: *post-norm*, norm(x + f(x)), as in that paper, or *pre-norm*, x + f(norm(x)), which trains
without warm-up: Xiong et al., *On Layer Normalization in the Transformer Architecture* (2020).
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlib.torch.checks import check_eps, check_floats, check_rate, check_whole, check_width
from attnlib.torch.layers import MultiHeadAttention

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


def layer_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Give the features of each token mean 0 and variance 1, then scale and shift them.

    Ba, Kiros, Hinton, *Layer Normalization* (2016), equations 3 and 4.

    Parameters
    ----------
    x : tensor [..., d_model]
    weight, bias : tensor [d_model], optional
        Gain and shift of each feature; 1 and 0 if not given.
    eps : float
        Added to the variance, so that a token whose features are all equal becomes 0, not NaN.

    Returns
    -------
    normed : tensor [..., d_model]
        (x − mean) / √(variance + eps) · weight + bias. Mean and variance are those of the token alone, over d_model, not
        d_model − 1, numbers. Same dtype; half precision is computed in float32 inside.

    Raises
    ------
    ValueError
        If weight or bias is not [d_model], or x has no axis.
    """
    check_floats(x=x)
    check_eps(eps)
    if x.ndim == 0:
        raise ValueError("x is a single number; expected [..., d_model], at least one axis. Try x[None].")
    for name, vector in (("weight", weight), ("bias", bias)):
        if vector is not None and vector.shape != x.shape[-1:]:
            raise ValueError(
                f"{name} has shape {list(vector.shape)} and x is {list(x.shape)}; expected one number for each feature, "
                f"{list(x.shape[-1:])}. Try the width of the last axis."
            )
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    centred = wide - wide.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    normed = centred / torch.sqrt(variance + eps)
    normed = normed if weight is None else normed * weight
    normed = normed if bias is None else normed + bias
    return normed.to(x.dtype)


class LayerNorm(nn.Module):
    """Normalises each token by itself: ``layer_norm`` with a gain and a shift that are learned (Ba et al. 2016).

    Parameters
    ----------
    d_model : int
    eps : float

    Attributes
    ----------
    weight, bias : parameter [d_model]
        Gain and shift; 1 and 0 at first.

    Notes
    -----
    ``F.layer_norm`` computes ``layer_norm`` in one kernel; a test holds them equal, and this layer uses it.
    """

    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.d_model, self.eps = check_whole("d_model", d_model, 1), check_eps(eps)
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """[..., d_model] to [..., d_model]; a ValueError if x has another width, or a dtype that does not fit."""
        check_floats(x=x)
        half = x.dtype in (torch.float16, torch.bfloat16) and self.weight.dtype == torch.float32
        if x.dtype != self.weight.dtype and not half and not torch.is_autocast_enabled(x.device.type):
            check_width("x", x, self.d_model, "[..., n, d_model]", self.weight)
        if x.ndim < 1 or x.shape[-1] != self.d_model:
            raise ValueError(
                f"x has shape {list(x.shape)}; expected [..., d_model] with d_model={self.d_model}, as this layer was made for."
            )
        return F.layer_norm(x, (self.d_model,), self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """What ``print(layer)`` shows."""
        return f"{self.d_model}, eps={self.eps}"


class FeedForward(nn.Module):
    """Two linear maps with an activation between, for each token alone (Vaswani et al. 2017, equation 2).

    Parameters
    ----------
    d_model : int
    d_ff : int, optional
        Width inside; 4 d_model if not given.
    dropout : float
        Share of the inner numbers that is dropped in training.
    activation : "relu", "gelu" or a function of a tensor

    Attributes
    ----------
    expand, contract : nn.Linear
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int | None = None,
        *,
        dropout: float = 0.0,
        activation: str | Callable[[Tensor], Tensor] = "relu",
    ):
        super().__init__()
        self.d_model = check_whole("d_model", d_model, 1)
        d_ff = 4 * d_model if d_ff is None else check_whole("d_ff", d_ff, 1)
        if not callable(activation) and activation not in ACTIVATIONS:
            raise ValueError(f'activation={activation!r}; expected "relu", "gelu", or a function. Try torch.tanh.')
        self.activation = activation if callable(activation) else ACTIVATIONS[activation]
        self.dropout = check_rate("dropout", dropout)
        self.expand = nn.Linear(d_model, d_ff)
        self.contract = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """[..., d_model] to [..., d_model]; a ValueError if x has another width."""
        check_width("x", x, self.d_model, "[..., n, d_model]", self.expand.weight)
        inner = self.activation(self.expand(x))  # [..., n, d_ff]
        return self.contract(F.dropout(inner, self.dropout, self.training))


class Layer(nn.Module):
    """What encoder and decoder layers share: sublayers with a residual connection, a norm before or after, and dropout."""

    def __init__(self, d_model: int, dropout: float, norm_first: bool, eps: float):
        super().__init__()
        self.d_model, self.norm_first = check_whole("d_model", d_model, 1), norm_first
        self.dropout = check_rate("dropout", dropout)
        self.norm_attention = LayerNorm(d_model, eps)
        self.norm_feed_forward = LayerNorm(d_model, eps)

    def before(self, x: Tensor, norm: LayerNorm) -> Tensor:
        """What a sublayer is given."""
        return norm(x) if self.norm_first else x

    def after(self, x: Tensor, change: Tensor, norm: LayerNorm) -> Tensor:
        """What stands after a sublayer that found this change."""
        summed = x + F.dropout(change, self.dropout, self.training)
        return summed if self.norm_first else norm(summed)


class EncoderLayer(Layer):
    """Self-attention, then feed-forward, each in a residual connection with a norm (Vaswani et al. 2017, section 3.1).

    Parameters
    ----------
    d_model, n_heads : int
    d_ff : int, optional
        Width inside the feed-forward part; 4 d_model if not given.
    dropout : float
        In training: of the weights, of the inner numbers of the feed-forward part, and of what each part adds.
    activation : "relu", "gelu" or a function
    norm_first : bool
        True: pre-norm. False: post-norm.
    eps : float
        Of the norms.

    Attributes
    ----------
    attention : MultiHeadAttention
    feed_forward : FeedForward
    norm_attention, norm_feed_forward : LayerNorm
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
        eps: float = 1e-5,
    ):
        super().__init__(d_model, dropout, norm_first, eps)
        self.attention = MultiHeadAttention(d_model, n_heads, dropout=dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout=dropout, activation=activation)

    def forward(
        self, x: Tensor, mask: Tensor | None = None, *, return_weights: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Let tokens exchange, then let each work on what it has.

        Parameters
        ----------
        x : tensor [..., n, d_model]
        mask : tensor or None
            As in ``MultiHeadAttention``.
        return_weights : bool
            Also return the weights.

        Returns
        -------
        output : tensor [..., n, d_model]
        weights : tensor [..., n_heads, n, n]
            Only if asked for.
        """
        check_width("x", x, self.d_model, "[..., n, d_model]", self.norm_attention.weight)
        found = self.attention(self.before(x, self.norm_attention), mask=mask, return_weights=return_weights)
        found, weights = found if return_weights else (found, None)
        x = self.after(x, found, self.norm_attention)
        x = self.after(x, self.feed_forward(self.before(x, self.norm_feed_forward)), self.norm_feed_forward)
        return (x, weights) if return_weights else x


class Encoder(nn.Module):
    """A stack of encoder layers (Vaswani et al. 2017, figure 1, left, without the embedding).

    Parameters
    ----------
    n_layers, d_model, n_heads : int
    d_ff, dropout, activation, norm_first, eps
        As in ``EncoderLayer``.

    Attributes
    ----------
    layers : nn.ModuleList of EncoderLayer
        Each with weights of its own.
    norm : LayerNorm, or nn.Identity
        The last norm, which pre-norm needs, since nothing else normalises the sum that runs through the stack.
    """

    def __init__(self, n_layers: int, d_model: int, n_heads: int, d_ff: int | None = None, **options):
        super().__init__()
        n_layers = check_whole("n_layers", n_layers, 1)
        self.layers = nn.ModuleList(EncoderLayer(d_model, n_heads, d_ff, **options) for _ in range(n_layers))
        self.norm = last_norm(d_model, options)

    def forward(
        self, x: Tensor, mask: Tensor | None = None, *, return_weights: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """[..., n, d_model] to [..., n, d_model]; with weights [n_layers, ..., n_heads, n, n] if they are asked for."""
        weights = []
        for layer in self.layers:
            x = layer(x, mask, return_weights=return_weights)
            if return_weights:
                x, layer_weights = x
                weights.append(layer_weights)
        return (self.norm(x), torch.stack(weights)) if return_weights else self.norm(x)


def last_norm(d_model: int, options: dict) -> nn.Module:
    """The norm behind a stack: needed in pre-norm, since nothing else normalises the sum that runs through it."""
    return LayerNorm(d_model, options.get("eps", 1e-5)) if options.get("norm_first", True) else nn.Identity()
