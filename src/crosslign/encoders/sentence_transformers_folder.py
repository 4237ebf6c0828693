"""What SentenceTransformer reads beside the transformer: pooling, normalisation, length and prompt."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crosslign.encoders.dense import Dense, modules_of, named_pooling
from crosslign.encoders.pooling import POOLING_KEYS, resolve_layer
from crosslign.errors import InputError
from crosslign.files import read_mapping, write_json

MODULES = "sentence_transformers.models"
"""Package of the module types: the old name, which old and new versions of SentenceTransformer resolve."""

log = logging.getLogger(__name__)


def read_modules(folder: Path) -> dict[str, Any]:
    """Return the readout of a SentenceTransformer folder: what `write_modules` wrote, or whoever saved it.

    Raises:
        InputError: it has no modules.json, one without a pooling, as `modules_of` and `named_pooling`,
            or a length or number of blocks that is none.
    """
    if not (folder / "modules.json").is_file():
        do = 'Set them, for example: readout={"pooling": "mean"}'
        raise InputError("the folder has no embedding settings", where=str(folder), why="modules.json is missing", do=do)
    kinds = modules_of(folder)
    poolings = [path for kind, path in kinds if kind == "Pooling"]
    if not poolings:
        raise InputError("a pooling module is needed", where=str(folder / "modules.json"), why="found none")
    pooled = named_pooling(folder / poolings[0] / "config.json")
    found: dict[str, Any] = {"pooling": "pooler" if any(kind == "Dense" for kind, _ in kinds) else pooled}
    found["normalise"] = any(kind == "Normalize" for kind, _ in kinds)
    reads, tokenizer = (read_mapping(folder / f"{name}.json", or_empty=True) for name in ("sentence_bert_config", "tokenizer_config"))
    blocks = _config_options(reads).get("num_hidden_layers")
    for key, value in (("max_length", reads.get("max_seq_length") or tokenizer.get("model_max_length")), ("layer", blocks)):
        if value and (type(value) is not int or value < 1):
            why = f"the {key} that it gives is {value!r}"
            raise InputError("not a positive whole number", where=str(folder / "sentence_bert_config.json"), why=why)
        if value:  # newer versions keep the length beside the tokenizer
            found[key] = value
    if prefix := _prompt(folder):
        found["prefix"] = prefix
    return found


def _config_options(reads: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what SentenceTransformer sets over config.json, by the newer or the older name."""
    options = reads.get("config_kwargs") or reads.get("config_args")
    return options if isinstance(options, dict) else {}


def _prompt(folder: Path) -> str:
    named = read_mapping(folder / "config_sentence_transformers.json", or_empty=True)
    prompts = named.get("prompts")
    prompt = prompts.get(str(named.get("default_prompt_name"))) if isinstance(prompts, dict) else None
    return prompt if isinstance(prompt, str) else ""


def unread(folder: Path, prefix: str) -> Iterator[str]:
    """Yield what SentenceTransformer would do in a folder and embedding settings do not, one sentence each.

    Args:
        folder: of the encoder.
        prefix: what the embedding settings put before each text.
    """
    prompt = _prompt(folder)
    for kind, path in modules_of(folder):
        place = folder / path / "config.json"
        if kind == "Pooling" and not place.is_file():
            yield f"modules.json names {path!r}, which is missing: SentenceTransformer cannot load the folder"
        elif kind == "Pooling" and prompt and read_mapping(place).get("include_prompt") is False:
            yield f"{path}/config.json leaves the tokens of the prompt {prompt!r} out of the pooling, which no readout does"
    own, named = (read_mapping(folder / f"{name}.json", or_empty=True) for name in ("sentence_bert_config", "config_sentence_transformers"))
    if own.get("do_lower_case"):
        yield "sentence_bert_config.json wants texts lower case first, which no readout does"
    if more := sorted(set(_config_options(own)) - {"num_hidden_layers"}):
        yield f"sentence_bert_config.json sets {', '.join(more)} over config.json, which is not done here"
    if named.get("truncate_dim"):
        yield f"config_sentence_transformers.json keeps {named['truncate_dim']} dimensions of a vector, and all are kept here"
    if prompt not in ("", prefix):
        yield f"config_sentence_transformers.json puts {prompt!r} before each text: a readout does so where its prefix says it"


def write_modules(
    folder: Path,
    dimension: int,
    blocks: int,
    positions: int,
    readout: Mapping[str, Any],
    dense: Dense | None = None,
    can_be_cut: bool = False,
) -> None:
    """Write modules.json and its companions beside a saved transformer.

    A readout that SentenceTransformer has no word for (`mean_no_special`, `avg_first_last`, an inner layer of a model that cannot be
    cut) is left out with a warning: the folder then loads in AutoModel and here, not with equal vectors in SentenceTransformer.

    Args:
        folder: the member's folder.
        dimension: length of its vectors.
        blocks: number of its transformer blocks.
        positions: most tokens that it can read.
        readout: pooling, layer, max_length, normalise, prefix; what is absent is mean, -1, all positions, true, none.
        dense: what the pooling `pooler` means: the encoder's own dense layers, or BERT's pooler.
        can_be_cut: whether the model with its first blocks alone gives an inner layer as its last; else it is closed by a norm.
    """
    pooling, added = readout.get("pooling", "mean"), list[str]()
    layer = resolve_layer(readout.get("layer", -1), blocks)
    if pooling == "pooler" and dense is not None:
        pooling, added, layer = dense.pooling, dense.save(folder, 2), blocks
    if pooling not in POOLING_KEYS or (layer != blocks and not can_be_cut):
        log.warning("%s: SentenceTransformer cannot express pooling %s at layer %d of %d", folder, pooling, layer, blocks)
        return
    last = f"{2 + len(added)}_Normalize"
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), *((name, "Dense") for name in added)]
    kinds += [(last, "Normalize")] if readout.get("normalise", True) else []
    modules = [{"idx": i, "name": str(i), "path": path, "type": f"{MODULES}.{kind}"} for i, (path, kind) in enumerate(kinds)]
    known = {"cls_token", "max_tokens", "mean_tokens", POOLING_KEYS[pooling]}
    modes = {f"pooling_mode_{key}": key == POOLING_KEYS[pooling] for key in sorted(known)}
    for path, _ in kinds[1:]:
        (folder / path).mkdir(parents=True, exist_ok=True)
    write_json(folder / "modules.json", modules)
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": dimension, **modes})
    if readout.get("normalise", True):
        write_json(folder / last / "config.json", {})
    reads: dict[str, Any] = {"max_seq_length": min(readout.get("max_length", positions), positions), "do_lower_case": False}
    write_json(folder / "sentence_bert_config.json", reads | ({"config_args": {"num_hidden_layers": layer}} if layer != blocks else {}))
    prefix = readout.get("prefix", "")
    prompts = {"prompts": {"prefix": prefix} if prefix else {}, "default_prompt_name": "prefix" if prefix else None}
    write_json(folder / "config_sentence_transformers.json", prompts | {"similarity_fn_name": "cosine"})
