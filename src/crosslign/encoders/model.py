"""A sentence encoder: one transformer (`main`), or one per language, with `other` for the languages that have none."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from crosslign.console import number_of
from crosslign.devices import sent
from crosslign.encoders.dense import BERT_KIN, Dense
from crosslign.encoders.dropout import use_fast_dropout
from crosslign.encoders.pooling import MASKED_TOKENS, masked_mean, pool, resolve_layer
from crosslign.encoders.sentence_transformers_folder import write_modules
from crosslign.encoders.soundness import (
    ROBERTA_POSITIONS,
    WHOLE,
    require_blocks,
    require_files,
    require_loaded,
    require_modules,
    require_said,
    require_tokenizer,
)
from crosslign.encoders.tokens import Ids, Tokens, tokenise, tokenizer_key
from crosslign.encoders.weights import open_to_readers
from crosslign.errors import InputError
from crosslign.files.safetensors_only import require_safetensors
from crosslign.languages import normalise

Backbone = Callable[..., Any]
"""Takes `input_ids`, `attention_mask`, `token_type_ids` and `output_hidden_states`, and gives what a model of transformers gives."""

MAIN = "main"
OTHER = "other"
WITHOUT_FAST_TOKENIZER = frozenset({"xlm"})
"""Model types whose tokenizer transformers has in Python alone: XLM's, with Moses' rules before its merges."""
WITH_DECODER = frozenset({"t5", "mt5", "umt5"})
"""Model types that AutoModel reads with a decoder; here only their encoder is."""


def _positions(config: Any) -> int:
    """Return the most tokens that a backbone has positions for."""
    positions = int(getattr(config, "max_position_embeddings", 1 << 30) or 1 << 30)
    return positions - config.pad_token_id - 1 if config.model_type in ROBERTA_POSITIONS else positions


def _read(folder: Path, weights: bool) -> tuple[Any, Any]:
    """Return tokenizer and backbone of a transformers folder, as they lie there, with weights or none; nothing it lacks is made up."""
    from transformers import AutoConfig, AutoModel, AutoModelForTextEncoding, AutoTokenizer
    from transformers.utils import logging as transformers_logging

    from crosslign.encoders.laser import register

    register()
    require_blocks(folder)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # what is missing is said by us
    # Where it is not told, transformers asks on the terminal whether to run the code that a model brings along.
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if tokenizer.pad_token is None:  # SentenceTransformer asks for one; what is padded is masked, so any will do
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token or tokenizer.convert_ids_to_tokens(0)
    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    require_said(folder, config)
    kind = AutoModelForTextEncoding if config.model_type in WITH_DECODER else AutoModel
    if not weights:
        with torch.device("meta"):
            return tokenizer, kind.from_config(config)  # type: ignore[no-untyped-call]
    backbone, report = kind.from_pretrained(
        folder,
        dtype=torch.float32,
        local_files_only=True,
        trust_remote_code=False,
        use_safetensors=True,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # they are named by us
    )
    require_tokenizer(folder, tokenizer, backbone.config)
    if require_loaded(folder, backbone, report):
        backbone.pooler = None  # it would hold random numbers
    return tokenizer, backbone


def _parts(folder: Path, weights: bool) -> tuple[Any, Any, Dense | None]:
    """Return backbone, tokenizer and dense layers of its own of a folder; without weights no dense layers."""
    tokenizer, backbone = _read(folder, weights)
    dense = Dense.load(folder)
    if not tokenizer.is_fast and backbone.config.model_type not in WITHOUT_FAST_TOKENIZER:
        do = "Save its tokenizer again with a version of transformers that writes tokenizer.json"
        raise InputError("the model has no fast tokenizer", where=str(folder), why="tokenizer.json is missing", do=do)
    if not weights:
        return backbone, tokenizer, None
    use_fast_dropout(backbone)
    pooler = Dense.of_pooler(backbone)
    if dense is not None and pooler is not None and dense.equals(pooler):
        dense = None  # `save` wrote the backbone's own pooler for SentenceTransformer: it stays the one that is trained
    return backbone, tokenizer, dense


def _padded(arrays: Sequence[Ids], lengths: NDArray[np.int64], fill: int) -> NDArray[np.int64]:
    matrix = np.full((len(arrays), int(lengths.max())), fill, dtype=np.int64)
    matrix[np.arange(matrix.shape[1]) < lengths[:, None]] = np.concatenate(arrays)
    return matrix


class Member(nn.Module):
    """A transformer with its tokenizer.

    Args:
        backbone: a model of transformers whose forward pass gives `last_hidden_state`.
        tokenizer: its tokenizer, a fast one but for `WITHOUT_FAST_TOKENIZER`.
        dense: pooling and dense layers of its own, as SentenceTransformer puts them behind some transformers.

    Attributes:
        dimension: length d of its states.
        blocks: number of transformer blocks.
        positions: most tokens that it can read at once.
    """

    special_ids: Tensor

    def __init__(self, backbone: nn.Module, tokenizer: Any, dense: Dense | None = None) -> None:
        super().__init__()
        self.backbone = backbone
        self.tokenizer = tokenizer
        self.dense = dense
        config: Any = backbone.config
        self.dimension = int(config.hidden_size)
        self.blocks = int(config.num_hidden_layers)
        self.positions = _positions(config)
        names = ("cls_token_id", "sep_token_id", "bos_token_id", "eos_token_id", "pad_token_id")
        found = {getattr(tokenizer, name, None) for name in names} - {None}
        self.register_buffer("special_ids", torch.tensor(sorted(found), dtype=torch.int64), persistent=False)

    @property
    def pad(self) -> int:
        """Id of the padding token."""
        return int(self.tokenizer.pad_token_id or 0)

    @cached_property
    def special_ids_on_host(self) -> NDArray[np.int64]:
        """`special_ids`, int64, outside a GPU's memory: what is asked of them for each sentence waits for no device."""
        return np.asarray(self.special_ids.cpu().numpy())

    @cached_property
    def block_weights(self) -> int:
        """Weights that a token is multiplied by in all blocks: matrices but those of embeddings and of the pooler."""
        found = {}
        for name, module in self.backbone.named_modules():
            if isinstance(module, nn.Embedding) or name.startswith("pooler"):
                continue
            found.update({id(p): p.numel() for p in module.parameters(recurse=False) if p.ndim == 2})
        return sum(found.values())

    def copied(self) -> Member:
        """Return a copy with weights of its own and the same tokenizer."""
        return Member(copy.deepcopy(self.backbone), self.tokenizer, copy.deepcopy(self.dense))

    def width(self, pooling: str) -> int:
        """Return the length of the vectors that a pooling gives."""
        return self.dense.width if self.dense is not None and pooling == "pooler" else self.dimension

    def layer_read(self, pooling: str, layer: int) -> int:
        """Return which output a readout takes here, 0 to `blocks`: of `avg_first_last` the first one, of `pooler` the last block's."""
        if pooling == "pooler":
            return self.blocks
        return resolve_layer(1 if pooling == "avg_first_last" and layer < 0 else layer, self.blocks)

    def blocks_read(self, pooling: str, layer: int) -> int:
        """Return how many blocks a readout needs here; those above an inner layer have no part in it."""
        return self.blocks if pooling == "avg_first_last" else self.layer_read(pooling, layer)

    def tokenise(self, texts: Sequence[str], pair_texts: Sequence[str] | None, max_length: int) -> Tokens:
        """Tokenise sentences or pairs; never to more tokens than there are positions.

        Raises:
            InputError: a text holds a token that the tokenizer knows and the encoder does not.
        """
        tokens = tokenise(self.tokenizer, texts, pair_texts, min(max_length, self.positions))
        rows = int(getattr(self.backbone.config, "vocab_size", 1 << 30))
        if len(self.tokenizer) > rows and (beyond := [int(ids.max()) for ids in tokens.ids if ids.max(initial=0) >= rows]):
            what = f"the encoder has no embedding of the token {self.tokenizer.convert_ids_to_tokens(beyond[0])!r}"
            why = f"its tokenizer has {number_of(len(self.tokenizer), 'token')}, its embeddings have {number_of(rows, 'row')}"
            raise InputError(what, where="tokenizer", why=why, do="Use the tokenizer of these weights, or enlarge their embeddings")
        return tokens

    def collate(self, ids: Sequence[Ids], segments: Sequence[Ids] | None, rows: Iterable[int]) -> dict[str, Tensor]:
        """Return a padded batch of some sentences, at least one, on the member's device.

        Args:
            ids: token ids of each sentence.
            segments: segment numbers of each, or None.
            rows: numbers of the n sentences of the batch.

        Returns:
            int64 tensors [n, t]: `input_ids`, `token_type_ids` for pairs, and `attention_mask` unless no row is padded.
        """
        chosen = list(rows)
        lengths = np.fromiter((len(ids[row]) for row in chosen), np.int64, len(chosen))
        features = {"input_ids": _padded([ids[row] for row in chosen], lengths, self.pad)}
        if segments is not None:
            features["token_type_ids"] = _padded([segments[row] for row in chosen], lengths, 0)
        longest = int(lengths.max())
        if int(lengths.min()) < longest:
            features["attention_mask"] = (np.arange(longest) < lengths[:, None]).astype(np.int64)
        return {name: sent(torch.from_numpy(matrix), self.special_ids.device) for name, matrix in features.items()}

    def forward(self, features: Mapping[str, Tensor], pooling: str, layer: int = -1, backbone: Backbone | None = None) -> Tensor:
        """Encode a padded batch.

        Args:
            features: `input_ids` int64 [n, t], `attention_mask` where rows are padded, `token_type_ids` for pairs; of `MASKED_TOKENS`
                `picked` int64 [m, 2], sentence and place of each token that is wanted.
            pooling: one of `POOLINGS`, or `MASKED_TOKENS`.
                `avg_first_last` averages the mean-pooled outputs of the last block and of a first layer, which is
                `layer` (0 or 1, docs/protocols.md), block 1 where that is -1;
                `pooler` is the encoder's own: its `dense` layers where it has some (LaBSE: docs/papers/mpcl.md), else the dense layer with
                tanh that BERT puts on the first token.
            layer: which output is pooled, numbered as `resolve_layer` says; `pooler` has its own.
            backbone: a faster form of the member's own backbone, to compute with.

        Returns:
            float32 [n, `width(pooling)`] ([m, d] of tokens), not normalised.

        Raises:
            InputError: the backbone has no pooler, or no such layer.
        """
        layer = self.layer_read(pooling, layer)
        inner = pooling == "avg_first_last" or layer != self.blocks
        read = {name: tensor for name, tensor in features.items() if name != "picked"}
        output = (backbone or self.backbone)(**read, output_hidden_states=inner)
        if pooling == MASKED_TOKENS:
            return output.last_hidden_state[features["picked"][:, 0], features["picked"][:, 1]].float()  # type: ignore[no-any-return]
        ids, mask = features["input_ids"], features.get("attention_mask")
        real = mask.bool() if mask is not None else torch.ones_like(ids, dtype=torch.bool)
        if pooling == "pooler" and self.dense is not None:
            pooled = pool(output.last_hidden_state.float(), real, torch.isin(ids, self.special_ids), self.dense.pooling)
            return self.dense(pooled).float()  # type: ignore[no-any-return]
        if pooling == "pooler":
            if getattr(output, "pooler_output", None) is None:
                raise InputError("this encoder has no pooler", where="readout", why="pooling: pooler", do="Use cls or mean")
            return output.pooler_output.float()  # type: ignore[no-any-return]
        if pooling == "avg_first_last":
            return masked_mean((output.hidden_states[layer].float() + output.last_hidden_state.float()) / 2, real)
        states = output.hidden_states[layer] if inner else output.last_hidden_state
        return pool(states.float(), real, torch.isin(ids, self.special_ids), pooling)

    @classmethod
    def load(cls, folder: Path, weights: bool = True) -> Member:
        """Load an ordinary transformers folder: config, safetensors weights, tokenizer; nothing else is executed or fetched.

        Args:
            folder: of the member.
            weights: whether they are wanted; without them it tokenises, and computes nothing.

        Raises:
            InputError: the folder is missing, holds no such model, or lacks what one is made of (`soundness`); names it and what is wrong.
        """
        folder = Path(folder)
        require_files(folder)
        require_modules(folder)
        require_safetensors(folder)
        try:
            return cls(*_parts(folder, weights))
        except InputError:
            raise
        except Exception as error:  # transformers has no error of its own for each way in which a folder can be damaged
            raise InputError("model cannot be loaded", where=str(folder), why=" ".join(str(error).split())[:300], do=WHOLE) from error

    def save(self, folder: Path, readout: Mapping[str, Any] | None = None) -> None:
        """Write a folder that AutoModel and SentenceTransformer load; see `write_modules` for what the latter reads."""
        folder = Path(folder)
        backbone: Any = self.backbone
        backbone.save_pretrained(folder)
        if self.tokenizer.is_fast:
            self.tokenizer.backend_tokenizer.no_truncation()  # else the last call's truncation is saved with it
            self.tokenizer.backend_tokenizer.no_padding()
        self.tokenizer.save_pretrained(folder)
        open_to_readers(folder)
        dense, can_be_cut = self.dense or Dense.of_pooler(backbone), backbone.config.model_type in BERT_KIN
        write_modules(folder, self.dimension, self.blocks, self.positions, readout or {}, dense, can_be_cut)


class Model(nn.Module):
    """Members by name: `main`, or one per language; the language of a text picks the member.

    Args:
        members: `{"main": …}`, or normalised language codes to members; `other` reads every language without its own.
    """

    def __init__(self, members: Mapping[str, Member]) -> None:
        super().__init__()
        self.members = {name: members[name] for name in sorted(members)}
        self._registered = nn.ModuleList(self.members.values())  # a ModuleDict would refuse `to`, Tongan, which is a method of its own
        self.token_budget: int | None = None
        """Tokens of a batch of encoding that fitted into memory when more did not; None until it ran out."""
        self.kernels = "off"
        """Whether encoding on a GPU uses the project's own kernels: `off`, `auto`, `on`."""

    @property
    def _first(self) -> Member:
        return next(iter(self.members.values()))

    @property
    def dimension(self) -> int:
        """Length of the vectors of the first member."""
        return self._first.dimension

    def width(self, pooling: str) -> int:
        """Return the length of the vectors that a pooling gives, of the first member."""
        return self._first.width(pooling)

    def layer_read(self, pooling: str, layer: int) -> int:
        """Return which output a readout takes, of the first member."""
        return self._first.layer_read(pooling, layer)

    @property
    def device(self) -> torch.device:
        """Device of the parameters."""
        return next(self.parameters()).device

    def member(self, name: str) -> Member:
        """Return a member by its own name."""
        return self.members[name]

    def member_of(self, lang: str) -> str:
        """Return the name of the member that reads a language.

        Raises:
            InputError: the model has one member per language and none for this one.
        """
        if MAIN in self.members:
            return MAIN
        code = normalise(lang)
        if code not in self.members and OTHER in self.members:
            return OTHER
        if code not in self.members:
            raise InputError(f"no member of the model reads the language {lang!r}", why=f"members: {', '.join(self.members)}")
        return code

    def tokenizer_keys(self) -> dict[str, str]:
        """Return a checksum of each member's tokenizer."""
        return {name: tokenizer_key(member.tokenizer) for name, member in self.members.items()}

    @classmethod
    def load(cls, folders: Mapping[str, Path], weights: bool = True) -> Model:
        """Load every member from its folder, as `Member.load` does."""
        return cls({name if name == MAIN else normalise(name): Member.load(folder, weights) for name, folder in folders.items()})

    def save(self, folder: Path, readout: Mapping[str, Any] | None = None) -> None:
        """Write `<folder>/<member>/` for every member.

        Args:
            folder: where the members' folders go; made when it is missing.
            readout: how vectors are read, for SentenceTransformer; mean pooling and unit length by default.
        """
        for name in self.members:
            self.member(name).save(Path(folder) / name, readout)
