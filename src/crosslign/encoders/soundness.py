"""What transformers makes up without a word where a file of an encoder is missing or odd: here it is refused, or said.

It makes an empty tokenizer where there is none, leaves blocks of the weights out that the config does not count, takes a default for what
the config does not say, and rebuilds a tokenizer by its class although tokenizer.json says otherwise. Each gives plausible numbers.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import nn

from crosslign.console import number_of
from crosslign.encoders.dense import BERT_KIN, modules_of
from crosslign.encoders.sentence_transformers_folder import unread
from crosslign.errors import InputError
from crosslign.files import read_json, read_mapping

log = logging.getLogger(__name__)

ROBERTA_POSITIONS = frozenset(
    {"roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "camembert", "xmod", "mpnet", "data2vec-text", "longformer"}
)
"""Model types whose positions begin behind the padding id."""
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model", "*.spm", "*.bpe", "*.vocab")
"""Files that a tokenizer can be made of; tokenizer_config.json alone holds no vocabulary."""
WHOLE = "Use the complete folder of its publisher, or one that save_pretrained of model and tokenizer wrote"
UNSEEN = (
    "hidden_act", "hidden_activation", "activation", "activation_function", "feed_forward_proj", "layer_norm_eps", "layer_norm_epsilon",
    "norm_eps", "rms_norm_eps", "relative_attention_max_distance", "local_attention", "global_attn_every_n_layers",
)  # fmt: skip
"""What the weights' shapes do not show: a default in its place computes other vectors."""
POINTER, POINTER_BYTES = b"version https://git-lfs.github.com/spec/", 1024
"""How a pointer of Git LFS begins, and what it is shorter than."""
UNUSED = re.compile(r"(position_ids|inv_freq|masked_bias|attn\.bias)$")
"""Tensors of older files that are computed now."""
MAY_BE_ZERO = re.compile(r"(^|\.)pooler\.|position|token_type")
"""Weights that are left at zero where nothing needs them."""
NOT_ALONE = re.compile(r"##|<0x[0-9A-F]{2}>$")
"""Pieces that no text begins with: of WordPiece, and bytes."""
PIECES = 500
"""Pieces of a vocabulary that are tried."""
EMPTY = 0.05
"""Share of the words' embeddings that may be zeros: rows that are there for a round number."""
PROBES = (
    "The Quick Café, Ünïcode’s 中文",
    "  two  spaces ",
    "Größe — ß, ΑΒΓ",
    "हिन्दी 日本語 한국어 العربية ①",
    "İstanbul e\u0301\u200b fi",
)
"""Texts whose tokens tell what a tokenizer does about case, accents, spaces, width and scripts."""


def require_files(folder: Path) -> None:
    """Refuse a folder that lacks what an encoder is made of, before transformers fills the gap.

    Raises:
        InputError: no config or tokenizer file, an adapter or packed weights, or a config that names no attention heads.
    """
    if not (folder / "config.json").is_file():
        do = "Name the folder with config.json, weights and tokenizer; for older SentenceTransformers, the subfolder 0_Transformer"
        raise InputError("not a transformers model", where=str(folder), why="config.json is missing", do=do)
    for path in sorted([*folder.glob("*"), *folder.glob("[0-9]*_*/*")]):
        if path.is_file() and path.stat().st_size < POINTER_BYTES and path.read_bytes().startswith(POINTER):
            why = "git clone without Git LFS leaves such pointers"
            do = "Run `git lfs pull` in the folder from which it comes"
            raise InputError("the file is only a Git LFS pointer", where=str(path), why=why, do=do)
    content = read_mapping(folder / "config.json")
    if not any(path.is_file() for pattern in VOCABULARIES for path in folder.glob(pattern)):
        why = f"found none of {', '.join(VOCABULARIES)}; every word would be unknown"
        raise InputError("the encoder has no tokenizer", where=str(folder), why=why, do=WHOLE)
    if (folder / "adapter_config.json").is_file():
        why = "found adapter_config.json, whose weights would be left out"
        raise InputError("an adapter, not a whole encoder", where=str(folder), why=why, do="Merge it into its encoder and save the result")
    if content.get("quantization_config"):
        why = "quantization_config in config.json"
        raise InputError("the weights are packed", where=str(folder), why=why, do="Use weights in float32, float16 or bfloat16")


def require_said(folder: Path, config: Any) -> None:
    """Refuse a config that counts no blocks, or leaves the number of attention heads to a default: no shape of a weight shows it."""
    blocks = getattr(config, "num_hidden_layers", None)
    if isinstance(blocks, int) and blocks < 1:
        why = f"num_hidden_layers is {blocks}: all blocks of the file would be left out"
        raise InputError("the config has no blocks", where=str(folder / "config.json"), why=why, do=WHOLE)
    name = getattr(config, "attribute_map", {}).get("num_attention_heads", "num_attention_heads")
    content = read_json(folder / "config.json")
    said = {key for part in (content, *content.values()) if isinstance(part, dict) for key in part}
    if hasattr(config, name) and not {name, "num_attention_heads"} & said:
        why = f"transformers would use {getattr(config, name)}"
        raise InputError(f"the config has no {name}", where=str(folder / "config.json"), why=why, do=WHOLE)


def require_tokenizer(folder: Path, tokenizer: Any, config: Any) -> None:
    """Refuse a tokenizer that is empty, or of other weights than these.

    Raises:
        InputError: little more than special tokens, less than half of the embeddings' rows, or no special tokens around a text where
            the encoder was trained with them.
    """
    size, rows, kind = len(tokenizer), int(getattr(config, "vocab_size", 0) or 0), config.model_type
    special = len(set(tokenizer.all_special_ids))
    if size <= 2 * special:
        why = f"{number_of(size, 'token')}, {special} of them special: nearly every word would be unknown"
        raise InputError("the encoder's tokenizer is empty", where=str(folder), why=why, do=WHOLE)
    if 2 * size < rows:
        why = f"it has {number_of(size, 'token')}, the embeddings have {number_of(rows, 'row')}"
        raise InputError("the tokenizer belongs to other weights", where=str(folder), why=why, do=WHOLE)
    if kind in BERT_KIN | ROBERTA_POSITIONS and not tokenizer.num_special_tokens_to_add():
        why = f"encoders of kind {kind} are trained with a first and a last special token"
        raise InputError("the tokenizer adds no special tokens to a text", where=str(folder), why=why, do=WHOLE)


def _pattern(name: str) -> str:
    return re.sub(r"(?<=\.)\d+(?=\.)", "#", name)


def require_loaded(folder: Path, backbone: nn.Module, report: Mapping[str, Iterable[Any]]) -> bool:
    """Refuse weights that were not all taken; tell whether the pooler alone is absent.

    Args:
        folder: of the model, for messages.
        backbone: the model.
        report: what transformers says of its loading: `missing_keys`, `unexpected_keys`, `mismatched_keys`.

    Raises:
        InputError: a weight is missing or of another shape, or the file has blocks that the config does not count. Heads of other tasks
            may be left out.
    """
    for name, *shapes in sorted(report["mismatched_keys"], key=str):
        why = f"{name}: {' in the file, '.join(str(tuple(shape)) for shape in shapes)} in the config"
        raise InputError("weights have the wrong shape", where=str(folder), why=why, do="Use config and weights of the same model")
    named = backbone.state_dict().keys()
    missing = sorted(report["missing_keys"])
    poolers = {name for name in named if name.startswith("pooler.")}
    if missing and set(missing) != poolers:
        why = f"not in the file: {', '.join(missing[:5])}"
        raise InputError("weights are missing", where=str(folder), why=why, do=WHOLE)
    prefix = f"{getattr(backbone, 'base_model_prefix', '')}."
    patterns = {_pattern(name) for name in named}
    left = sorted(name for name in report["unexpected_keys"] if _pattern(name.removeprefix(prefix)) in patterns)
    if left:
        why = f"the config has fewer blocks than the file: {left[0]} and {len(left) - 1} more would be left out"
        raise InputError("weights would be left out", where=str(folder), why=why, do="Use config and weights of the same model")
    return bool(missing)


def require_numbers(folder: Path, modules: Iterable[nn.Module]) -> None:
    """Refuse weights that no vector could depend on, when an encoder is prepared: NaN, infinity, zeros, or integers without their scales.

    Raises:
        InputError: names the weight.
    """
    do = "Get the weights again from where they were published or trained; a run that diverged leaves such weights"
    for module in modules:
        for name, value in module.state_dict().items():
            if value.is_floating_point() and not bool(torch.isfinite(value).all()):
                bad = int((~torch.isfinite(value)).sum())
                why = f"{name}: {bad:,} of {number_of(value.numel(), 'number')}"
                raise InputError("the encoder's weights contain NaN or infinity", where=str(folder), why=why, do=do)
            if name.endswith("weight") and value.numel() and not bool(value.any()) and not MAY_BE_ZERO.search(name):
                raise InputError("the encoder's weights are all zero", where=str(folder), why=f"{name}: all of them", do=do)
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118 (no mapping)
                kind = file.get_slice(name).get_dtype()
                if kind.startswith(("I", "U", "F4", "F6", "F8")) and name.endswith(".weight"):
                    why = f"{name} has the type {kind}: packed numbers, and transformers would not apply their scales"
                    raise InputError(
                        "the encoder's weights are packed", where=str(path), why=why, do="Use weights in float32, float16 or bfloat16"
                    )


def examined(name: str, folder: Path, member: Any, prefix: str = "") -> list[str]:
    """Refuse weights and vocabularies that no vector could depend on; warn of what is not surely wrong, and changes vectors where it is.

    Args:
        name: of the encoder, for the log.
        folder: from which it was loaded.
        member: the encoder, a `Member`.
        prefix: what its embedding settings put before each text, where they are known.

    Returns:
        What was warned of, one sentence each, for the lineage.

    Raises:
        InputError: as `require_numbers`, or most pieces of the tokenizer's vocabulary are never used.
    """
    tokenizer, backbone, config = member.tokenizer, member.backbone, member.backbone.config
    require_numbers(folder, [part for part in (backbone, member.dense) if part is not None])
    if tokenizer.is_fast:
        _require_case(folder, tokenizer)
        _require_pieces(folder, tokenizer)
    found = [
        *_config_doubts(folder, config, type(backbone).__name__),
        *_weight_doubts(folder, backbone),
        *_tokenizer_doubts(folder, tokenizer, config),
        *unread(folder, prefix),
    ]
    for doubt in found:
        log.warning("encoder %s: %s", name, doubt)
    return found


def _require_case(folder: Path, tokenizer: Any) -> None:
    normalizer = tokenizer.backend_tokenizer.normalizer
    if normalizer is None or normalizer.normalize_str("A") != "a":
        return
    pieces = [piece for piece in tokenizer.get_vocab() if piece not in tokenizer.all_special_tokens]
    capital = sum(piece != piece.lower() for piece in pieces)
    if 10 * capital > len(pieces):
        why = f"{capital:,} of {number_of(len(pieces), 'piece')} have capitals, but every text is lower-cased"
        do = "Set `do_lower_case: false` in tokenizer_config.json; without that file, transformers assumes true"
        raise InputError("most of the tokenizer's vocabulary cannot be used", where=str(folder), why=why, do=do)


def _require_pieces(folder: Path, tokenizer: Any) -> None:
    """Refuse a vocabulary of which most pieces come out of no text, as without its merges, or with ends of lines inside."""
    model, special = tokenizer.backend_tokenizer.model, set(tokenizer.all_special_tokens)
    pieces = sorted(piece for piece in tokenizer.get_vocab() if piece not in special and len(piece) > 1 and not NOT_ALONE.match(piece))
    tried = pieces[:: len(pieces) // PIECES + 1]
    made = sum([token.value for token in model.tokenize(piece)] == [piece] for piece in tried)
    if 2 * made < len(tried):
        why = f"of {number_of(len(tried), 'piece')} tried, only {made} can result from a text"
        raise InputError("most of the tokenizer's vocabulary cannot be used", where=str(folder), why=why, do=WHOLE)


def _config_doubts(folder: Path, config: Any, kind: str) -> Iterator[str]:
    content = read_json(folder / "config.json")
    for name in UNSEEN:
        if name not in content and getattr(config, name, None) is not None and config.attribute_map.get(name) not in content:
            yield f"config.json does not say {name}: {getattr(config, name)} is taken"
    family = re.sub(r"(Text)?(Encoder)?Model$", "", kind)
    if any(not str(name).startswith(family) for name in content.get("architectures") or []):
        yield f"config.json names the architecture {content['architectures'][0]}, and {kind} is taken for model_type {config.model_type}"
    if config.model_type in BERT_KIN and config.is_decoder:
        yield "config.json says is_decoder: no token sees those behind it"


def _weight_doubts(folder: Path, backbone: Any) -> Iterator[str]:
    """Yield what the model's class has no place for, heads of other tasks left out, and words whose embeddings are zeros."""
    named, prefix = backbone.state_dict().keys(), f"{getattr(backbone, 'base_model_prefix', '')}."
    patterns, parts = {_pattern(name) for name in named}, {name.partition(".")[0] for name in named}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            inner = [name.removeprefix(prefix) for name in file.keys()]  # noqa: SIM118 (no mapping)
        left = [name for name in inner if name.partition(".")[0] in parts and _pattern(name) not in patterns and not UNUSED.search(name)]
        if left:
            yield f"{type(backbone).__name__} has no place for {number_of(len(left), 'weight')} of {path.name}, such as {left[0]}"
    words = backbone.get_input_embeddings().weight
    if (empty := int((~words.any(1)).sum())) > len(words) * EMPTY:
        yield f"the embeddings of {number_of(empty, 'token')} of {len(words):,} are zeros"


def _tokenizer_doubts(folder: Path, tokenizer: Any, config: Any) -> Iterator[str]:
    from tokenizers import Tokenizer

    size, rows = len(tokenizer), int(getattr(config, "vocab_size", 0) or 0)
    if size > rows > 0 or 10 * size < 9 * rows:
        yield f"the tokenizer knows {number_of(size, 'token')} and the embeddings have {number_of(rows, 'row')}: are they of one model?"
    if config.model_type in ROBERTA_POSITIONS and tokenizer.pad_token_id != config.pad_token_id:
        yield f"the padding id is {tokenizer.pad_token_id} to the tokenizer and {config.pad_token_id} to the config: positions depend on it"
    if not tokenizer.num_special_tokens_to_add():
        yield "the tokenizer puts no special tokens around a text"
    if not (folder / "tokenizer.json").is_file() and not (folder / "tokenizer_config.json").is_file():
        yield f"no file says how texts are cut: tokenizer_config.json is missing, and {type(tokenizer).__name__} is taken as it is"
    if not tokenizer.is_fast or not (folder / "tokenizer.json").is_file():
        return
    backend = tokenizer.backend_tokenizer
    published = Tokenizer.from_file(str(folder / "tokenizer.json"))
    for one in (backend, published):
        one.no_truncation()
        one.no_padding()
    for text in PROBES:
        taken, said = (one.encode(text).tokens for one in (backend, published))
        if taken != said:
            yield (
                f"transformers reads the tokenizer as {type(tokenizer).__name__}, which cuts {text!r} into {taken}, and tokenizer.json "
                f"says {said}: check do_lower_case in tokenizer_config.json, or set its tokenizer_class to PreTrainedTokenizerFast"
            )
            return


def require_modules(folder: Path) -> None:
    """Refuse SentenceTransformer's modules that are there in part: dense layers that nothing names, or a folder that is missing.

    Raises:
        InputError: as `modules_of`; names the folder.
    """
    modules = modules_of(folder)
    dense = {part.name for part in folder.glob("[0-9]*_Dense*") if part.is_dir()}
    if found := sorted(dense - {path for _, path in modules}):
        what = "modules.json omits dense layers" if (folder / "modules.json").is_file() else "modules.json is missing"
        raise InputError(what, where=str(folder), why=f"{', '.join(found)} would be left out", do=WHOLE)
    if all(kind != "Dense" for kind, _ in modules):
        return  # the readout says how states are pooled
    for kind, path in modules:
        if kind in ("Dense", "Pooling") and not (folder / path / "config.json").is_file():
            why = f"modules.json names {path!r}, which has no config.json"
            raise InputError("a module of the encoder is missing", where=str(folder), why=why, do=WHOLE)
