"""LASER's encoder in transformers' terms: a BiLSTM over SentencePiece pieces of plain, lower-case text (docs/base-encoders.md).

After Artetxe and Schwenk 2019 and Heffernan, Çelebi and Schwenk 2022 (LASER2). A sentence's vector is the maximum over time of the top
layer's outputs, the end token's included: readout `max`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import regex
from sentencepiece import SentencePieceProcessor
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.modeling_outputs import BaseModelOutput

from crosslign.errors import InputError

PIECES = "sentencepiece.model"
"""File of the SentencePiece model in an encoder's folder."""

CONTROL = regex.compile(r"\p{C}")
LOW_QUOTES = {"‘": '"', "‚": '"'}
"""Single quotes that LASER2 was trained to see as double ones, as release 4.0 of Moses wrote them."""


@cache
def _moses() -> Any:
    from sacremoses import MosesPunctNormalizer

    normaliser = MosesPunctNormalizer("en", perl_parity=True)
    normaliser.substitutions = [(found, LOW_QUOTES.get(found, put)) for found, put in normaliser.substitutions]
    return normaliser


def clean(text: str) -> str:
    """Return a text as LASER2 reads it: control characters made spaces, Moses' English punctuation, lower case."""
    return str(_moses().normalize(CONTROL.sub(" ", text))).lower()


class LaserConfig(PreTrainedConfig):  # type: ignore[no-untyped-call]
    """Shape of an encoder; LASER2's where nothing else is said.

    Attributes:
        vocab_size: word embeddings.
        embedding_size: their length.
        cell_size: length of one direction's outputs.
        hidden_size: length of the vectors: of one direction's outputs, or of both side by side.
        num_hidden_layers: LSTMs one above another.
        bidirectional: whether each reads backwards too.
    """

    model_type = "laser"

    vocab_size: int = 50004
    embedding_size: int = 320
    cell_size: int = 512
    hidden_size: int = 1024
    num_hidden_layers: int = 5
    bidirectional: bool = True
    pad_token_id: int | None = 1


class LaserModel(PreTrainedModel):
    """The LSTMs over word embeddings; weights have the names that LASER's own file gives them."""

    config_class = LaserConfig
    _supports_sdpa = True  # it has no attention, so any will do

    def __init__(self, config: LaserConfig) -> None:
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding_size, padding_idx=config.pad_token_id)
        self.lstm = nn.LSTM(
            config.embedding_size,
            config.cell_size,
            config.num_hidden_layers,
            batch_first=True,
            bidirectional=config.bidirectional,
        )
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, output_hidden_states: bool = False, **_: Any
    ) -> BaseModelOutput:
        """Return the outputs of the last layer.

        Args:
            input_ids: int64 [n, t], padded on the right.
            attention_mask: [n, t], 0 at padding, which no direction reads.
            output_hidden_states: refused.

        Returns:
            `last_hidden_state` float [n, t, d], 0 at padding.

        Raises:
            InputError: inner layers are asked for.
        """
        if output_hidden_states:
            raise InputError(
                "LASER's inner layers cannot be read", where="readout", why="its LSTM returns only the last layer", do="Use layer: -1"
            )
        embedded = self.embed_tokens(input_ids)
        if attention_mask is None:
            return BaseModelOutput(last_hidden_state=self.lstm(embedded)[0])
        lengths = attention_mask.sum(1).cpu()
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        states, _lengths = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=input_ids.shape[1])
        return BaseModelOutput(last_hidden_state=states)


class LaserTokenizer(PreTrainedTokenizerFast):
    """Cleans a text, lets SentencePiece cut it, and looks the pieces up in LASER's own dictionary, as LASER does.

    SentencePiece itself cuts, so its pieces are exact whatever its model is (unigram, BPE); the fast tokenizer behind it knows
    words between spaces, the end token and truncation. Words that look like a special token are words.

    Args:
        pieces_file: the SentencePiece model.
    """

    vocab_files_names = {"tokenizer_file": "tokenizer.json", "pieces_file": PIECES}  # noqa: RUF012 (transformers' way)
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012

    def __init__(self, *args: Any, pieces_file: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "split_special_tokens": True})  # type: ignore[no-untyped-call]
        self.cutter = load_pieces(Path(pieces_file or PIECES))

    @classmethod
    def convert_to_native_format(cls, trust_remote_code: bool = False, **kwargs: Any) -> dict[str, Any]:
        """Take tokenizer.json as it is, though this class has a constructor of its own."""
        return kwargs

    def cut(self, texts: Sequence[str]) -> list[str]:
        """Return the pieces of each text, a space between them."""
        return [" ".join(pieces) for pieces in self.cutter.encode([clean(text) for text in texts], out_type=str, num_threads=1)]

    def _encode_plus(self, text: Any, text_pair: Any = None, **options: Any) -> Any:  # type: ignore[override]
        def cut(given: Any) -> Any:
            return self.cut([given])[0] if isinstance(given, str) else given and self.cut(given)

        return super()._encode_plus(cut(text), cut(text_pair), **options)

    def _save_pretrained(self, save_directory: Any, file_names: tuple[str, ...], *args: Any, **kwargs: Any) -> tuple[str, ...]:
        path = Path(save_directory) / PIECES
        path.write_bytes(self.cutter.serialized_model_proto())
        return (*super()._save_pretrained(save_directory, file_names, *args, **kwargs), str(path))


def load_pieces(path: Path) -> Any:
    """Read a SentencePiece model.

    Raises:
        InputError: it is missing, or none.
    """
    cutter = SentencePieceProcessor()
    try:
        cutter.load_from_serialized_proto(path.read_bytes())
        names = [cutter.id_to_piece(number) for number in range(len(cutter))]  # each must be text
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError("not a SentencePiece model", where=str(path), why=" ".join(str(error).split())[:200]) from error
    if not names:
        raise InputError("not a SentencePiece model", where=str(path), why="it has no pieces")
    return cutter


@cache
def register() -> None:
    """Let transformers' AutoConfig, AutoModel and AutoTokenizer know LASER."""
    AutoConfig.register("laser", LaserConfig)
    AutoModel.register(LaserConfig, LaserModel)
    AutoTokenizer.register(LaserConfig, LaserTokenizer)  # type: ignore[no-untyped-call]
