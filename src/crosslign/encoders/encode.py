"""Sentences to vectors: sorted by length, in batches of equal token count, in the order they came (docs/computing.md)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from crosslign.ahead import one_ahead
from crosslign.console import number_of
from crosslign.devices import computed_in, float32_products
from crosslign.encoders.model import Member, Model
from crosslign.encoders.packed.inference import PackedBackbone, supported
from crosslign.encoders.packed.packing import Packed
from crosslign.encoders.packed.training import PackedTraining, trains_packed
from crosslign.encoders.tokens import Tokens
from crosslign.encoders.unknown import Known, count_unknown
from crosslign.entries.catalog import Readout
from crosslign.errors import InputError, ResourceError
from crosslign.memory import free_memory, is_out_of_memory
from crosslign.progress import ONLY_IN_FILE, Progress

TOKEN_BUDGET = 2048
"""Tokens of a batch on a CPU, padding included: more does not fit its caches; a GPU takes 32 times as many."""

CHUNK = 65536
"""Sentences that are tokenised, sorted and encoded at a time; bounds the memory that token ids take."""

PART = 2048
"""The same on a GPU, which works on one part while a thread tokenises the next; a part is a batch or some."""

LIKE = 0.8
"""On a GPU a batch takes in no sentence with less than this share of its longest one's tokens: most of them would be padding."""

LEAST = 4096
"""Tokens that a batch on a GPU has all the same, padding included: a smaller one takes as long to launch as to compute."""

PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16}

log = logging.getLogger(__name__)
Matrix = NDArray[np.float32]


def autocast(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """Return the context in which a forward pass has the precision `fp32`, `tf32`, `bf16` or `fp16`."""
    if precision == "tf32":
        return float32_products("tf32")
    return torch.autocast(device.type, PRECISIONS[precision]) if precision in PRECISIONS else nullcontext()


@contextmanager
def evaluating(model: Model) -> Iterator[None]:
    """Switch dropout and gradients off, and the mode back at the end."""
    before = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(before)


def token_batches(
    lengths: NDArray[np.int64], order: NDArray[np.int64], budget: int, least: int | None = None
) -> Iterator[NDArray[np.int64]]:
    """Cut `order`, sorted by falling length, into batches of at most `budget` tokens, padding included; at least one row each.

    With `least`, a batch of more than so many tokens, padding included, has no row shorter than `LIKE` of its longest.
    """
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        size = max(1, budget // longest)
        if least is not None:
            alike = int(np.count_nonzero(lengths[order[start : start + size]] >= LIKE * longest))
            size = min(size, max(1, alike, least // longest))
        yield order[start : start + size]
        start += size


def _packed(model: Model, member: Member, precision: str, blocks: int | None) -> Packed | None:
    """Return the pass without padding that takes the place of the member's backbone, where there is one."""
    if supported(member.backbone, precision):
        return PackedBackbone(member.backbone, precision, token_budget(model), blocks)
    if precision in PRECISIONS and model.device.type == "cuda" and trains_packed(member.backbone, precision, model.kernels):
        return PackedTraining(member.backbone, precision, blocks, kernels=model.kernels)
    return None


def _encode_rows(member: Member, backbone: Packed | None, tokens: Tokens, rows: NDArray[np.int64], readout: Readout) -> Tensor:
    """Return vectors, float32 [rows, d] in host memory; a GPU has yet to fill them when this returns."""
    if backbone:
        backbone.lengths = np.array([len(tokens.ids[i]) for i in rows])
    features = member.collate(tokens.ids, tokens.segments, rows)
    vectors: Tensor = member(features, readout["pooling"], readout.get("layer", -1), backbone).float()
    if readout.get("normalise", True):
        vectors = vectors / vectors.norm(dim=1, keepdim=True).clamp(min=1e-12)
    return vectors.to("cpu", non_blocking=vectors.device.type == "cuda")


def token_budget(model: Model) -> int:
    """Return how many tokens a batch may have, padding included: what the device is known for, or less where that did not fit."""
    return model.token_budget or TOKEN_BUDGET * (1 if model.device.type == "cpu" else 32)


def _encode_batches(
    model: Model, encode_rows: Callable[[NDArray[np.int64]], Tensor], lengths: NDArray[np.int64], names: Sequence[str], progress: Progress
) -> list[tuple[NDArray[np.int64], Tensor]]:
    """Encode sentences of these lengths, the longest first; where memory does not suffice, go on with batches of half the size."""
    waiting = np.argsort(-lengths, kind="stable")
    least = LEAST if model.device.type == "cuda" else None  # on a CPU the packed pass meets no padding
    found: list[tuple[NDArray[np.int64], Tensor]] = []
    while len(waiting):
        rows, vectors = next(token_batches(lengths, waiting, token_budget(model), least)), None
        try:
            vectors = encode_rows(rows)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if len(rows) == 1:
                what, why = f"a batch of only {names[rows[0]]} does not fit into memory", number_of(lengths[rows[0]], "token")
                raise ResourceError(what, why=why, do="Lower the readout's max_length") from error
            model.token_budget = max(1, int(lengths[rows[0]]) * (len(rows) // 2))
            log.warning("out of memory with %d sentences per batch: continuing with %d tokens per batch", len(rows), model.token_budget)
        if vectors is None:  # with the exception its tensors are gone
            free_memory()
            continue
        found.append((rows, vectors))
        waiting = waiting[len(rows) :]
        progress.add(len(rows))
    return found


def _encode_member(model: Model, member: Member, tokens: Tokens, readout: Readout, names: Sequence[str], progress: Progress) -> Matrix:
    """Encode tokenised sentences; a budget that memory lowered is kept for later calls."""
    lengths = np.fromiter((len(ids) for ids in tokens.ids), np.int64, len(tokens.ids))
    precision = computed_in(readout.get("precision", "fp32"), model.device.type)
    backbone = _packed(model, member, precision, member.blocks_read(readout["pooling"], readout.get("layer", -1)))
    with nullcontext() if backbone else autocast(precision, model.device):  # the weights that it casts are kept until it ends
        found = _encode_batches(model, lambda rows: _encode_rows(member, backbone, tokens, rows, readout), lengths, names, progress)
    if model.device.type == "cuda":
        torch.cuda.synchronize(model.device)
    out = np.empty((len(lengths), member.width(readout["pooling"])), dtype=np.float32)
    while found:  # each part is freed once it is copied: together they never take twice the memory
        rows, vectors = found.pop()
        out[rows] = vectors.numpy()
    return out


def _check(vectors: Matrix, texts: Sequence[str], names: Sequence[str]) -> None:
    """Refuse vectors that no score could depend on."""
    bad = np.flatnonzero(~np.isfinite(vectors).all(1) | ~vectors.any(1))
    if len(bad):
        row = int(bad[0])
        why = "NaN or infinity" if not np.isfinite(vectors[row]).all() else "a zero vector"
        raise InputError(
            f"the encoder returns {why} for {names[row]}",
            why=f"text {texts[row][:80]!r}; {number_of(len(bad), 'such row')}",
            do="Check the checkpoint, or the readout's precision",
        )


@dataclass(frozen=True)
class TokenisedTexts:
    """Sentences that were tokenised together.

    Attributes:
        member: name of the member that reads them.
        rows: int64 [n], their places among all.
        tokens: their token ids.
    """

    member: str
    rows: NDArray[np.int64]
    tokens: Tokens


def tokenised(
    model: Model, texts: Sequence[str], langs: Sequence[str], readout: Readout, pair_texts: Sequence[str] | None = None
) -> Iterator[TokenisedTexts]:
    """Yield all sentences in parts, one member's after the other's; the arguments are those of `encode_counted`."""
    member_of = {lang: model.member_of(lang) for lang in dict.fromkeys(langs)}
    chosen = np.array([member_of[lang] for lang in langs], dtype=object)
    prefix, max_length = readout.get("prefix", ""), readout.get("max_length", 1 << 30)
    for name in sorted(set(chosen)):
        rows, size = np.flatnonzero(chosen == name), CHUNK
        if model.device.type == "cuda":  # small parts hold sentences of like length, or much of a batch would be padding
            letters = [len(texts[i]) + (len(pair_texts[i]) if pair_texts is not None else 0) for i in rows.tolist()]
            rows, size = rows[np.argsort(-np.array(letters), kind="stable")], PART
        for part in (rows[i : i + size] for i in range(0, len(rows), size)):
            seconds = [pair_texts[i] for i in part] if pair_texts is not None else None
            yield TokenisedTexts(name, part, model.member(name).tokenise([prefix + texts[i] for i in part], seconds, max_length))


def _width(model: Model, members: Sequence[str], pooling: str) -> int:
    widths = {name: model.member(name).width(pooling) for name in members}
    if len(set(widths.values())) > 1:
        raise InputError(
            "the members' vectors differ in dimension", why=f"{widths}", do="Encode texts of these languages into separate matrices"
        )
    return next(iter(widths.values()), model.width(pooling))


def encode_counted(
    model: Model,
    texts: Sequence[str],
    langs: Sequence[str],
    readout: Readout,
    pair_texts: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    progress: Progress | None = None,
    parts: Iterable[TokenisedTexts] | None = None,
    known: Known | None = None,
) -> tuple[Matrix, int]:
    """Encode sentences and count those that were cut.

    Args:
        model: the encoder; it is put into eval mode, and back.
        texts: n sentences.
        langs: n language codes; they pick the member.
        readout: pooling; and layer (-1), max_length (all positions), normalise (true), precision (fp32), prefix ("").
        pair_texts: n second segments for a cross-encoder, or None.
        names: n ids for messages; `row 0` and so on by default.
        progress: counts the sentences, where they are part of more; by default they are all.
        parts: what `tokenised` gave for them, where that was done before; else a GPU works on a part while a thread tokenises the next.
        known: where to count known and unknown tokens by language.

    Returns:
        float32 [n, d] in the order of `texts`, and the number of texts that were longer than max_length. Equal input gives
        equal bytes; another budget (`token_budget`, which halves where memory runs out) or order of texts moves values by
        rounding only.

    Raises:
        InputError: a language without member, or a vector with NaN or of zeros; names the text.
        ResourceError: not even one sentence fits into memory; names it.
    """
    if "whitening" in readout:
        do = "Use it only in a table: in a row, a column or the table itself"
        raise InputError("a whitened readout must be fitted to vectors", where="readout", why="a training has none", do=do)
    names = names or [f"row {row}" for row in range(len(texts))]
    members = sorted({model.member_of(lang) for lang in dict.fromkeys(langs)})
    vectors = np.empty((len(texts), _width(model, members, readout["pooling"])), dtype=np.float32)
    progress, truncated = progress or Progress(len(texts), "encoded", "sentences"), 0
    if parts is None:
        parts = tokenised(model, texts, langs, readout, pair_texts)
        parts = one_ahead(parts) if model.device.type == "cuda" else parts
    with evaluating(model):
        for part in parts:
            truncated += part.tokens.truncated
            named = [names[i] for i in part.rows]
            if known is not None:
                tokenizer, rows = model.member(part.member).tokenizer, part.rows.tolist()
                count_unknown(tokenizer, part.tokens, [langs[i] for i in rows], [texts[i] for i in rows], known)
            vectors[part.rows] = _encode_member(model, model.member(part.member), part.tokens, readout, named, progress)
    _check(vectors, texts, names)
    if truncated:
        log.info("%d of %d texts were cut to %d tokens", truncated, len(texts), readout.get("max_length", 1 << 30), extra=ONLY_IN_FILE)
    return vectors, truncated


def encode(
    model: Model,
    texts: Sequence[str],
    langs: Sequence[str],
    readout: Readout,
    pair_texts: Sequence[str] | None = None,
) -> Matrix:
    """Encode sentences: `encode_counted` without the count."""
    return encode_counted(model, texts, langs, readout, pair_texts)[0]


def apply_head(head: nn.Module, vectors: Matrix, device: torch.device | str = "cpu") -> Matrix:
    """Return the logits of a classification head in evaluation mode, float32 [n, classes], of vectors [n, d] not normalised."""
    before = head.training
    head.to(device).eval()
    try:
        with torch.inference_mode():
            blocks = [head(torch.from_numpy(vectors[i : i + CHUNK]).to(device)).float().cpu() for i in range(0, len(vectors), CHUNK)]
    finally:
        head.train(before)
    return np.asarray(torch.cat(blocks).numpy(), dtype=np.float32) if blocks else vectors[:, :0]


def text_columns(table: pa.Table, where: str) -> tuple[list[str], list[str], list[str], list[str] | None]:
    """Return ids, texts, languages and second segments (None where no row has one) of texts.

    Raises:
        InputError: only some rows have a second segment.
    """
    pairs = table["pair_text"].to_pylist()
    missing = sum(pair is None for pair in pairs)
    if 0 < missing < len(pairs):
        raise InputError("only some rows have a pair_text", where=where, why=f"{missing} of {len(pairs)} have none")
    columns = (table[name].to_pylist() for name in ("text_id", "text", "lang"))
    return (*columns, None if missing == len(pairs) else pairs)
