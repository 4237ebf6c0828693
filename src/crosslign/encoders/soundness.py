"""What transformers makes up without a word where a file of an encoder is missing or odd: here it is refused, or said.

It makes an empty tokenizer where there is none, leaves blocks of the weights out that the config does not count, takes a default for what
the config does not say, and rebuilds a tokenizer by its class although tokenizer.json says otherwise. Each gives plausible numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import nn

from crosslign.console import number_of
from crosslign.encoders.dense import BERT_KIN
from crosslign.errors import InputError
from crosslign.files import read_json, read_mapping

ROBERTA_POSITIONS = frozenset(
    {"roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "camembert", "xmod", "mpnet", "data2vec-text", "longformer"}
)
"""Model types whose positions begin behind the padding id."""
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model", "*.spm", "*.bpe", "*.vocab")
"""Files that a tokenizer can be made of; tokenizer_config.json alone holds no vocabulary."""
WHOLE = "Take the whole folder as its publisher, or save_pretrained of model and tokenizer, wrote it"
WORDS = ("word_embeddings.weight", "embed_tokens.weight")
"""How the names of the words' embeddings end."""
UNSEEN = ("hidden_act", "layer_norm_eps")
"""What the weights' shapes do not show: a default in its place computes other vectors."""
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
        do = "Name the folder that holds config.json, weights and tokenizer; of older SentenceTransformers that is 0_Transformer inside"
        raise InputError("no transformers model here", where=str(folder), why="config.json is missing", do=do)
    content = read_mapping(folder / "config.json")
    if not any(path.is_file() for pattern in VOCABULARIES for path in folder.glob(pattern)):
        why = f"none of {', '.join(VOCABULARIES)}; every word would be unknown"
        raise InputError("the encoder has no tokenizer", where=str(folder), why=why, do=WHOLE)
    if (folder / "adapter_config.json").is_file():
        why = "adapter_config.json: its weights would be left out"
        raise InputError("an adapter, not a whole encoder", where=str(folder), why=why, do="Merge it into its encoder and save that")
    if content.get("quantization_config"):
        why = "quantization_config in config.json"
        raise InputError("the weights are packed", where=str(folder), why=why, do="Take the weights in float32, float16 or bfloat16")


def require_said(folder: Path, config: Any) -> None:
    """Refuse a config that counts no blocks, or leaves the number of attention heads to a default: no shape of a weight shows it."""
    blocks = getattr(config, "num_hidden_layers", None)
    if isinstance(blocks, int) and blocks < 1:
        why = f"num_hidden_layers is {blocks}: all blocks of the file would be left out"
        raise InputError("the config counts no blocks", where=str(folder / "config.json"), why=why, do=WHOLE)
    name = getattr(config, "attribute_map", {}).get("num_attention_heads", "num_attention_heads")
    content = read_json(folder / "config.json")
    if (
        hasattr(config, name)
        and not {name, "num_attention_heads"} & content.keys()
        and not any(isinstance(v, dict) for v in content.values())
    ):
        why = f"transformers would take {getattr(config, name)}"
        raise InputError(f"the config does not say {name}", where=str(folder / "config.json"), why=why, do=WHOLE)


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
        why = f"it knows {number_of(size, 'token')}, the embeddings have {number_of(rows, 'row')}"
        raise InputError("the tokenizer is not that of these weights", where=str(folder), why=why, do=WHOLE)
    if kind in BERT_KIN | ROBERTA_POSITIONS and not tokenizer.num_special_tokens_to_add():
        why = f"an encoder of the kind {kind} is trained with a first and a last one"
        raise InputError("the tokenizer puts no special tokens around a text", where=str(folder), why=why, do=WHOLE)


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
        why = f"{name}: {' in the file, '.join(str(tuple(shape)) for shape in shapes)} by the config"
        raise InputError("weights of another shape", where=str(folder), why=why, do="Take config and weights of one model")
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
        why = f"the config counts fewer blocks than the file holds: {left[0]} and {len(left) - 1} more would be left out"
        raise InputError("weights would be left out", where=str(folder), why=why, do="Take config and weights of one model")
    return bool(missing)


def require_numbers(folder: Path, modules: Iterable[nn.Module]) -> None:
    """Refuse weights that no vector could depend on, when an encoder is prepared: NaN, infinity, zeros, or integers without their scales.

    Raises:
        InputError: names the weight.
    """
    do = "Take the weights from where they were published or trained; a run that diverged leaves such"
    for module in modules:
        for name, value in module.state_dict().items():
            if value.is_floating_point() and not bool(torch.isfinite(value).all()):
                bad = int((~torch.isfinite(value)).sum())
                why = f"{name}: {bad:,} of {number_of(value.numel(), 'number')}"
                raise InputError("the encoder's weights hold NaN or infinity", where=str(folder), why=why, do=do)
            if name.endswith(WORDS) and not bool(value.any()):
                raise InputError("the encoder's weights are zeros", where=str(folder), why=f"{name}: all of them", do=do)
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118 (no mapping)
                kind = file.get_slice(name).get_dtype()
                if kind.startswith(("I", "U")) and name.endswith(".weight"):
                    why = f"{name} is of the type {kind}: packed numbers, whose scales transformers would not apply"
                    raise InputError("the encoder's weights are integers", where=str(path), why=why, do="Take them as float numbers")


def doubts(folder: Path, tokenizer: Any, config: Any) -> list[str]:
    """Return what is not surely wrong, and changes vectors where it is: one sentence each, for the log and the lineage.

    Raises:
        InputError: the tokenizer makes a vocabulary with capitals lower case, so that these pieces are never used.
    """
    if tokenizer.is_fast:
        _require_case(folder, tokenizer)
    return [*_config_doubts(folder, config), *_tokenizer_doubts(folder, tokenizer, config), *_module_doubts(folder)]


def _require_case(folder: Path, tokenizer: Any) -> None:
    normalizer = tokenizer.backend_tokenizer.normalizer
    if normalizer is None or normalizer.normalize_str("A") != "a":
        return
    pieces = [piece for piece in tokenizer.get_vocab() if piece not in tokenizer.all_special_tokens]
    capital = sum(piece != piece.lower() for piece in pieces)
    if 10 * capital > len(pieces):
        why = f"{capital:,} of {number_of(len(pieces), 'piece')} have capitals, and every text is made lower case"
        do = "Say `do_lower_case: false` in tokenizer_config.json; without that file transformers takes true"
        raise InputError("most of the tokenizer's vocabulary cannot be used", where=str(folder), why=why, do=do)


def _config_doubts(folder: Path, config: Any) -> Iterator[str]:
    content = read_json(folder / "config.json")
    if config.model_type in BERT_KIN | ROBERTA_POSITIONS:
        for name in UNSEEN:
            if name not in content:
                yield f"config.json does not say {name}: {getattr(config, name, None)} is taken"


def _tokenizer_doubts(folder: Path, tokenizer: Any, config: Any) -> Iterator[str]:
    from tokenizers import Tokenizer

    size, rows = len(tokenizer), int(getattr(config, "vocab_size", 0) or 0)
    if size > rows > 0 or 10 * size < 9 * rows:
        yield f"the tokenizer knows {number_of(size, 'token')} and the embeddings have {number_of(rows, 'row')}: are they of one model?"
    if config.model_type in ROBERTA_POSITIONS and tokenizer.pad_token_id != config.pad_token_id:
        yield f"the padding id is {tokenizer.pad_token_id} to the tokenizer and {config.pad_token_id} to the config: positions hang on it"
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


def _module_doubts(folder: Path) -> Iterator[str]:
    modules = read_json(folder / "modules.json") if (folder / "modules.json").is_file() else []
    for module in modules:
        kind = str(module.get("type", "")).rpartition(".")[2]
        if kind == "Pooling" and not _config_of(folder, module).is_file():
            yield f"modules.json names {module.get('path')!r}, which is missing: SentenceTransformer cannot load the folder"
    own, named = (read_mapping(folder / f"{name}.json", or_empty=True) for name in ("sentence_bert_config", "config_sentence_transformers"))
    if own.get("do_lower_case"):
        yield "sentence_bert_config.json wants texts lower case first, which no readout does"
    prompts = named.get("prompts")
    if isinstance(prompts, dict) and (prompt := prompts.get(str(named.get("default_prompt_name")))):
        yield f"config_sentence_transformers.json puts {prompt!r} before each text: a readout does so where its prefix says it"


def require_modules(folder: Path) -> None:
    """Refuse SentenceTransformer's modules that are there in part: dense layers that nothing names, or a folder that is missing.

    Raises:
        InputError: names the folder.
    """
    path = folder / "modules.json"
    if not path.is_file():
        if found := sorted(part.name for part in folder.glob("[0-9]*_Dense*") if part.is_dir()):
            why = f"{', '.join(found)} would be left out"
            raise InputError("modules.json is missing", where=str(folder), why=why, do=WHOLE)
        return
    modules = read_json(path)
    if not isinstance(modules, list) or not all(isinstance(m, dict) and isinstance(m.get("type"), str) for m in modules):
        raise InputError("not SentenceTransformer's list of modules", where=str(path), do=WHOLE)
    if not any(module["type"].endswith(".Dense") for module in modules):
        return  # the readout says how states are pooled
    for module in modules:
        if module["type"].endswith((".Dense", ".Pooling")) and not _config_of(folder, module).is_file():
            why = f"modules.json names {module.get('path')!r}, which has no config.json"
            raise InputError("a module of the encoder is missing", where=str(folder), why=why, do=WHOLE)


def _config_of(folder: Path, module: Mapping[str, Any]) -> Path:
    return folder / str(module.get("path", "")) / "config.json"
