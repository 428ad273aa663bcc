"""Three readers of whole texts, from ids of words to scores of classes: attention, a bag of embeddings, an LSTM (lesson 11).

All are called in the same way, ``model(ids, lengths)``, so that one loop trains each. ``lengths`` says how many words each
text has; padding behind them is never read.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlib.torch.blocks import Encoder
from attnlib.torch.checks import check_floats, check_rate, check_whole
from attnlib.torch.masks import padding_mask
from attnlib.torch.positions import LearnedPositions, SinusoidalPositions

PADDING_ID, UNKNOWN_ID = 0, 1
POOLINGS = ("mean", "max", "mean_max", "cls")
POSITIONS = {"sinusoidal": SinusoidalPositions, "learned": LearnedPositions}


def masked_mean(x: Tensor, lengths: Tensor) -> Tensor:
    """Mean of the words of each text, without the padding behind them.

    Parameters
    ----------
    x : tensor [batch, n, d]
    lengths : tensor [batch], integers
        How many words each text has, 0 to n.

    Returns
    -------
    mean : tensor [batch, d]
        Same dtype. Zeros for a text without words.

    Raises
    ------
    ValueError
        If x is no floating tensor with three axes, or lengths do not fit.
    """
    mask = _word_mask(x, lengths)
    total = x.masked_fill(~mask, 0.0).sum(dim=-2)  # [batch, d]; not x * mask: NaN · 0 is NaN
    return total / mask.sum(dim=-2).clamp(min=1).to(x.dtype)


def masked_max(x: Tensor, lengths: Tensor) -> Tensor:
    """Largest number of each feature over the words of each text: [batch, n, d] to [batch, d]; zeros for an empty text."""
    mask = _word_mask(x, lengths)
    return x.masked_fill(~mask, -torch.inf).amax(dim=-2).masked_fill(~mask.any(dim=-2), 0.0)


def _word_mask(x: Tensor, lengths: Tensor) -> Tensor:
    """True for words, False for padding: [batch, n, 1]."""
    check_floats(x=x)
    if x.ndim != 3 or len(lengths) != len(x):
        raise ValueError(
            f"x has shape {list(x.shape)}, and there are {len(lengths)} lengths; expected [batch, n, d] and a length for each text."
        )
    return padding_mask(lengths, x.shape[-2]).transpose(-1, -2)


class Reader(nn.Module):
    """What the three readers share: vectors of words at one end, scores of classes at the other."""

    def __init__(self, n_words: int, n_classes: int, d_model: int, width: int, dropout: float, word_dropout: float):
        super().__init__()
        self.dropout, self.word_dropout = check_rate("dropout", dropout), check_rate("word_dropout", word_dropout)
        self.embedding = nn.Embedding(check_whole("n_words", n_words, 2), d_model, padding_idx=PADDING_ID)
        nn.init.normal_(self.embedding.weight, std=0.1)
        with torch.no_grad():
            self.embedding.weight[PADDING_ID] = 0.0
        self.classify = nn.Linear(width, n_classes)

    def drop_words(self, ids: Tensor) -> Tensor:
        """In training some words are made unknown: Iyyer, Manjunatha, Boyd-Graber, Daumé, *Deep Unordered Composition
        Rivals Syntactic Methods for Text Classification* (2015), section 3.2.
        """
        if self.training and self.word_dropout:
            dropped = torch.rand(ids.shape, device=ids.device) < self.word_dropout
            ids = torch.where(dropped & (ids != PADDING_ID), UNKNOWN_ID, ids)
        return ids

    def scores(self, pooled: Tensor) -> Tensor:
        """[batch, width] to [batch, n_classes]: logits, before softmax."""
        return self.classify(F.dropout(pooled, self.dropout, self.training))


class BagOfEmbeddings(Reader):
    """The mean of the vectors of a text's words, then a linear map. The order of words is lost.

    Parameters
    ----------
    n_words, n_classes, d_model : int
    dropout, word_dropout : float
        Shares of the mean's features, and of words, that are dropped in training.
    """

    def __init__(
        self, n_words: int, n_classes: int = 2, *, d_model: int = 64, dropout: float = 0.1, word_dropout: float = 0.0
    ):
        super().__init__(n_words, n_classes, d_model, d_model, dropout, word_dropout)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Ids [batch, n] and lengths [batch] to logits [batch, n_classes]."""
        return self.scores(masked_mean(self.embedding(self.drop_words(ids)), lengths))


class LSTMClassifier(Reader):
    """An LSTM reads from left to right, and the mean of what it thought at each word is judged.

    Hochreiter, Schmidhuber, *Long Short-Term Memory* (1997).

    Parameters
    ----------
    n_words, n_classes, d_model : int
        d_model is the width of vectors and of the LSTM's state.
    dropout, word_dropout : float
    """

    def __init__(
        self, n_words: int, n_classes: int = 2, *, d_model: int = 64, dropout: float = 0.1, word_dropout: float = 0.0
    ):
        super().__init__(n_words, n_classes, d_model, d_model, dropout, word_dropout)
        self.lstm = nn.LSTM(d_model, d_model, batch_first=True)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Ids [batch, n] and lengths [batch] to logits [batch, n_classes].

        Padding stands behind the words, so it cannot reach the states that the mean is of.
        """
        states, _ = self.lstm(self.embedding(self.drop_words(ids)))  # [batch, n, d_model]
        return self.scores(masked_mean(states, lengths))


class ReviewClassifier(Reader):
    """Vectors of words, positions, an encoder, one vector for the text, then a linear map.

    Parameters
    ----------
    n_words, n_classes : int
        Size of the vocabulary; number of classes.
    d_model, n_heads, n_layers : int
    d_ff : int, optional
        Width of the feed-forward part; 2 d_model if not given.
    positions : "sinusoidal", "learned" or None
        None: attention that is blind to order.
    pooling : "mean", "max", "mean_max" or "cls"
        How the words' vectors become one. ``cls`` puts a learned vector before each text and reads its place, as in Devlin,
        Chang, Lee, Toutanova, *BERT* (2019).
    norm_first : bool
        Pre-norm or post-norm.
    max_len : int
        Longest text in words.
    n_pairs : int
        If above 0, each word's vector also gets that of the pair it makes with the word before, one of n_pairs vectors that
        is chosen by a hash: Joulin, Grave, Bojanowski, Mikolov, *Bag of Tricks for Efficient Text Classification* (2017).
    dropout, word_dropout : float
        Shares of the features that enter the encoder and leave it, and of words, that are dropped in training.

    Attributes
    ----------
    embedding : nn.Embedding
    positions : layer, or nn.Identity
    encoder : Encoder
    classify : nn.Linear
    """

    def __init__(
        self,
        n_words: int,
        n_classes: int = 2,
        *,
        d_model: int = 64,
        n_heads: int = 4,
        n_layers: int = 1,
        d_ff: int | None = None,
        positions: str | None = "sinusoidal",
        pooling: str = "mean",
        norm_first: bool = True,
        max_len: int = 512,
        n_pairs: int = 0,
        dropout: float = 0.1,
        word_dropout: float = 0.0,
    ):
        if pooling not in POOLINGS:
            raise ValueError(f"pooling={pooling!r}; expected one of {', '.join(POOLINGS)}. Try pooling='mean'.")
        if positions is not None and positions not in POSITIONS:
            raise ValueError(f"positions={positions!r}; expected one of {', '.join(POSITIONS)}, or None for no order.")
        width = 2 * d_model if pooling == "mean_max" else d_model
        super().__init__(n_words, n_classes, d_model, width, dropout, word_dropout)
        self.pooling = pooling
        self.pairs = nn.Embedding(n_pairs, d_model) if n_pairs else None
        if self.pairs is not None:
            nn.init.zeros_(self.pairs.weight)
        places = max_len + (pooling == "cls")
        self.positions = POSITIONS[positions](d_model, places) if positions else nn.Identity()
        self.start = nn.Parameter(0.1 * torch.randn(d_model)) if pooling == "cls" else None
        d_ff = 2 * d_model if d_ff is None else d_ff
        self.encoder = Encoder(n_layers, d_model, n_heads, d_ff, norm_first=norm_first)

    def forward(self, ids: Tensor, lengths: Tensor, *, return_weights: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        """Judge a batch of texts.

        Parameters
        ----------
        ids : tensor [batch, n], int64
        lengths : tensor [batch], integers
        return_weights : bool
            Also return the weights.

        Returns
        -------
        logits : tensor [batch, n_classes]
        weights : tensor [n_layers, batch, n_heads, n, n]
            Only if asked for. With ``pooling="cls"`` place 0 is the learned vector, and n is one more.
        """
        ids = self.drop_words(ids)
        x = self.embedding(ids)  # [batch, n, d_model]
        if self.pairs is not None:
            before = F.pad(ids, (1, 0))[:, :-1]
            x = x + self.pairs((before * 1_000_003 + ids) % self.pairs.num_embeddings)
        if self.start is not None:
            x = torch.cat([self.start.to(x.dtype).expand(len(x), 1, -1), x], dim=-2)
            lengths = lengths + 1
        x = F.dropout(self.positions(x), self.dropout, self.training)
        mask = padding_mask(lengths, x.shape[-2])
        x = self.encoder(x, mask, return_weights=return_weights)
        x, weights = x if return_weights else (x, None)
        logits = self.scores(self.pool(x, lengths))
        return (logits, weights) if return_weights else logits

    def pool(self, x: Tensor, lengths: Tensor) -> Tensor:
        """One vector for each text: [batch, n, d_model] to [batch, d_model], twice as wide for ``mean_max``."""
        if self.pooling == "cls":
            return x[:, 0]
        parts = []
        if "mean" in self.pooling:
            parts.append(masked_mean(x, lengths))
        if "max" in self.pooling:
            parts.append(masked_max(x, lengths))
        return torch.cat(parts, dim=-1)
