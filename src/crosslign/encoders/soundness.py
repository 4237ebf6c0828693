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
    "hidden_act", "hidden_activation", "activation", "activation_function", "ff_activation", "feed_forward_proj", "gelu_activation",
    "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon", "rms_norm_eps", "relative_attention_max_distance",
    "relative_attention", "pos_att_type", "position_buckets", "max_relative_positions", "norm_rel_ebd", "rotary_value", "rotary_dim",
    "rope_parameters", "local_attention", "global_attn_every_n_layers", "attention_window", "sliding_window", "layer_types",
    "use_bidirectional_attention", "causal", "bi_data", "query_pre_attn_scalar", "attn_logit_softcapping", "use_parallel_residual",
    "num_experts_per_tok", "norm_topk_prob", "no_rope_layers", "attention_multiplier", "embedding_multiplier", "residual_multiplier",
    "attention_type", "token_dropout",
)  # fmt: skip
"""What the weights' shapes do not show: a default in its place computes other vectors."""
NONE_DECIDES = {"deberta": ("pos_att_type",), "deberta-v2": ("pos_att_type", "norm_rel_ebd", "position_buckets")}
"""Those of them, by model type, whose default is none, which decides as well."""
OTHER_NAMES = {
    "rope_parameters": ("rope_theta", "global_rope_theta", "rotary_emb_base", "rotary_base"),
    "layer_types": ("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers", "max_window_layers"),
    "sliding_window": ("local_attention",),
    "no_rope_layers": ("no_rope_layer_interval",),
}
"""Keys that say the same in files of before transformers 5."""
POINTER, POINTER_BYTES = b"version https://git-lfs.github.com/spec/", 1024
"""How a pointer of Git LFS begins, and what it is shorter than."""
UNUSED = re.compile(r"(position_ids|inv_freq|masked_bias|attn\.bias)$")
"""Tensors of older files that are computed now."""
MAY_BE_ZERO = re.compile(r"(^|\.)pooler\.|position|token_type")
"""Weights that are left at zero where nothing needs them."""
NOT_ALONE = re.compile(r"##|<0x[0-9A-F]{2}>$")
"""Pieces that no text begins with: of WordPiece, and bytes."""
BLOCKS = (
    "num_hidden_layers", "num_layers", "n_layers", "n_layer", "num_hidden_groups", "inner_group_num", "encoder_layers", "decoder_layers",
)  # fmt: skip
"""Names of the number of blocks in configs, of groups of them in ALBERT's, and of those of translators."""
MOST_BLOCKS = 1000
"""Blocks beyond which a config is damaged, where the weights' names do not count them."""
FLOATS = frozenset({"F64", "F32", "F16", "BF16"})
"""Types in safetensors files that are numbers as they are."""
PIECES = 500
"""Pieces of a vocabulary that are tried."""
EMPTY = 0.05
"""Share of the words' embeddings that may be zeros: rows that are there for a round number."""
PADDED = {250037: 250002, 128100: 128001}
"""Rows of embeddings, and tokens, of published encoders that are no round number: multilingual MiniLM (E5 small), DeBERTa v3."""
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
    """Refuse a config that leaves to a default what no shape of a weight shows, or counts no blocks.

    Raises:
        InputError: no number of blocks or of attention heads, no blocks, no padding id where positions depend on it, or `architectures`
            that are no names.
    """
    place = str(folder / "config.json")
    content = read_mapping(folder / "config.json")
    said = {key for part in (content, *content.values()) if isinstance(part, dict) for key in part}
    for key in ("num_hidden_layers", "num_attention_heads"):
        name = getattr(config, "attribute_map", {}).get(key, key)
        if name in config.to_dict() and not {name, key} & said:
            raise InputError(f"the config has no {name}", where=place, why=f"transformers would use {getattr(config, name)}", do=WHOLE)
    blocks = getattr(config, "num_hidden_layers", None)
    if isinstance(blocks, int) and blocks < 1:
        why = f"num_hidden_layers is {blocks}: all blocks of the file would be left out"
        raise InputError("the config has no blocks", where=place, why=why, do=WHOLE)
    if config.model_type in ROBERTA_POSITIONS and type(config.pad_token_id) is not int:
        why = f"pad_token_id is {config.pad_token_id}, and positions begin behind it"
        raise InputError("the config has no padding id", where=place, why=why, do=WHOLE)
    named = content.get("architectures") or []
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise InputError("not a list of names", where=place, why=f"architectures is {str(named)[:40]}", do=WHOLE)


def require_blocks(folder: Path) -> None:
    """Refuse more blocks than the weights' names count, before transformers reads the config: lists and models of them would have no end.

    Raises:
        InputError: names the first weight that is absent.
    """
    content = read_mapping(folder / "config.json")
    counts = [part[key] for part in (content, *content.values()) if isinstance(part, dict) for key in BLOCKS if key in part]
    blocks = max((count for count in counts if isinstance(count, int)), default=0)
    numbered = [(int(found[1]), name) for name in _names(folder) for found in re.finditer(r"\.(\d{1,9})(?=\.)", name)]
    shared = not numbered or content.get("model_type") == "albert"  # it goes through the same weights again and again
    last, name = max(numbered, default=(0, ""))
    if blocks > (MOST_BLOCKS if shared else last + 1):
        absent = "" if shared else f", and the file has no {name.replace(f'.{last}.', f'.{last + 1}.', 1)}"
        raise InputError("weights are missing", where=str(folder), why=f"config.json counts {blocks:,} blocks{absent}"[:300], do=WHOLE)


def _names(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            yield from file.keys()


def require_tokenizer(folder: Path, tokenizer: Any, config: Any) -> None:
    """Refuse a tokenizer that is empty, or of other weights than these.

    Raises:
        InputError: little more than special tokens, less than half of the embeddings' rows, a piece that has none of them, or no special
            tokens around a text where the encoder was trained with them.
    """
    size, rows, kind = len(tokenizer), int(getattr(config, "vocab_size", 0) or 0), config.model_type
    special = len(set(tokenizer.all_special_ids))
    if size <= 2 * special:
        why = f"{number_of(size, 'token')}, {special} of them special: nearly every word would be unknown"
        raise InputError("the encoder's tokenizer is empty", where=str(folder), why=why, do=WHOLE)
    if 2 * size < rows:
        why = f"it has {number_of(size, 'token')}, the embeddings have {number_of(rows, 'row')}"
        raise InputError("the tokenizer belongs to other weights", where=str(folder), why=why, do=WHOLE)
    added = tokenizer.get_added_vocab()  # which a text seldom holds: doubts tell of them
    if beyond := [(number, piece) for piece, number in tokenizer.get_vocab().items() if number >= rows > 0 and piece not in added]:
        number, piece = max(beyond)
        why = f"its piece {piece!r} has the number {number}, the embeddings have {number_of(rows, 'row')}"
        raise InputError("the tokenizer belongs to other weights", where=str(folder), why=why, do=WHOLE)
    if kind in BERT_KIN | ROBERTA_POSITIONS and not tokenizer.num_special_tokens_to_add():
        why = f"encoders of kind {kind} are trained with a first and a last special token"
        raise InputError("the tokenizer adds no special tokens to a text", where=str(folder), why=why, do=WHOLE)


def _today(name: str) -> str:
    """Return a weight's name with what transformers calls the norms of the first BERT files."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


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
                if kind not in FLOATS and name.endswith(".weight"):
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
        said = {name, config.attribute_map.get(name), *OTHER_NAMES.get(name, ())} & content.keys()
        if not said and (getattr(config, name, None) is not None or name in NONE_DECIDES.get(config.model_type, ())):
            yield f"config.json does not say {name}: {str(getattr(config, name, None))[:80]} is taken"
    for file in ("config", "tokenizer_config"):
        if read_mapping(folder / f"{file}.json", or_empty=True).get("auto_map"):
            yield f"{file}.json names code of its publisher (auto_map), which is left out: transformers' own class is taken"
    family = re.sub(r"(Text)?(Encoder)?Model$", "", kind)
    if any(not str(name).startswith(family) for name in content.get("architectures") or []):
        yield f"config.json names the architecture {content['architectures'][0]}, and {kind} is taken for model_type {config.model_type}"
    if content.get("is_decoder"):
        yield "config.json says is_decoder: no token sees those behind it"


def _weight_doubts(folder: Path, backbone: Any) -> Iterator[str]:
    """Yield what the model's class has no place for, heads of other tasks left out, and words whose embeddings are zeros."""
    named, prefix = backbone.state_dict().keys(), f"{getattr(backbone, 'base_model_prefix', '')}."
    patterns, parts = {_pattern(name) for name in named}, {name.partition(".")[0] for name in named}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            inner = [_today(name.removeprefix(prefix)) for name in file.keys()]  # noqa: SIM118 (no mapping)
        left = [name for name in inner if name.partition(".")[0] in parts and _pattern(name) not in patterns and not UNUSED.search(name)]
        if left:
            yield f"{type(backbone).__name__} has no place for {number_of(len(left), 'weight')} of {path.name}, such as {left[0]}"
    words = backbone.get_input_embeddings().weight
    if (empty := int((~words.any(1)).sum())) > len(words) * EMPTY:
        yield f"the embeddings of {number_of(empty, 'token')} of {len(words):,} are zeros"


def fits(tokens: int, rows: int) -> bool:
    """Tell whether a vocabulary may be that of embeddings: rows beyond it are there for a round number, or as `PADDED` knows them."""
    spare = rows - tokens
    padded = rows % 64 == 0 or (rows % 8 == 0 and spare < 8) or PADDED.get(rows) == tokens
    return spare == 0 or (padded and 0 < spare <= rows / 10)


def _tokenizer_doubts(folder: Path, tokenizer: Any, config: Any) -> Iterator[str]:
    from tokenizers import Tokenizer

    size, rows = len(tokenizer), int(getattr(config, "vocab_size", 0) or 0)
    if rows and config.model_type != "laser" and not fits(size, rows):  # whose dictionary gives each piece its number
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
    stated = read_mapping(folder / "tokenizer.json").get("added_tokens") or []
    if moved := [token["content"] for token in stated if published.token_to_id(token["content"]) != token["id"]]:
        yield f"tokenizer.json gives {moved[0]!r} another number than its pieces leave for it: pieces are missing, or too many"
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
