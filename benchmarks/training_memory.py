"""Start time and memory of training on millions of pairs.

Writes a generated training set (`--rows`, distinct numbered sentence pairs, 5 million by default) and its tokenised store, whose token
ids are drawn instead of computed, since only their number matters here; tokenising itself is timed on `--tokenise` rows. Then opens the
store in a process of its own, as every start of a run does, and draws batches: time until the first one, memory above the encoder,
batches a second. Prints as its last line `ratio: <1 GiB / peak memory above the encoder>`.

    python benchmarks/training_memory.py --rows 5000000
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _common import measured, memory, parser

GIB = 1 << 30
ENGLISH = "river house stone green walk seven night paper open cloud winter bread road light small north glass field horse early"
GERMAN = "Fluss Haus Stein gehen sieben Nacht Papier offen Wolke Winter Brot Weg Licht klein Norden Glas Feld Pferd"
WORDS = [*ENGLISH.split(), *GERMAN.split()]


def write_examples(path: Path, rows: int) -> None:
    """Write a training set of shape pairs, a block of rows at a time."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from crosslign.files.rows import SCHEMAS

    draw, words = np.random.default_rng(1), pa.array(WORDS)
    with pq.ParquetWriter(path, SCHEMAS["pairs"], compression="zstd") as writer:
        for first in range(0, rows, 100_000):
            count = min(100_000, rows - first)
            numbers = pa.array(np.arange(first, first + count)).cast(pa.string())
            picks = draw.integers(0, len(WORDS), (2, 9, count))
            a, b = (pc.binary_join_element_wise(numbers, *(words.take(pa.array(column)) for column in side), " ") for side in picks)
            langs = [pa.array([lang]).take(pa.array(np.zeros(count, np.int64))) for lang in ("en", "de")]
            lists = pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32)), numbers)
            columns = {"id": numbers, "rows": lists, "a_text": a, "a_lang": langs[0], "b_text": b, "b_lang": langs[1]}
            writer.write_table(pa.table(columns).cast(SCHEMAS["pairs"]))


def write_copy(path: Path, folder: Path, model: Any) -> None:
    """Write a tokenised copy with drawn token ids, in the form of `tokenise_examples`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from crosslign.files import write_json
    from crosslign.training.tokenised import FACTS, LONGEST, SHARD, TOKENS, TRUNCATED

    folder.mkdir()
    source, draw, tokens = pq.ParquetFile(path), np.random.default_rng(2), 0
    total, waiting = source.metadata.num_rows, source.schema_arrow.empty_table()
    batches = source.iter_batches(SHARD)
    for number in range(-(-total // SHARD)):
        while waiting.num_rows < min(SHARD, total - number * SHARD):
            waiting = pa.concat_tables([waiting, pa.Table.from_batches([next(batches)])])
        rows, waiting = waiting.slice(0, SHARD).combine_chunks(), waiting.slice(SHARD)
        lengths = draw.integers(8, 17, 2 * len(rows))
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        ids = pa.ListArray.from_arrays(ends, draw.integers(5, 100, int(ends[-1]), dtype=np.int32))
        rows = rows.append_column(TOKENS, pa.ListArray.from_arrays(np.arange(0, 2 * len(rows) + 1, 2, dtype=np.int32), ids))
        rows = rows.append_column(LONGEST, pa.array(lengths.reshape(-1, 2).max(1).astype(np.int32)))
        rows = rows.append_column(TRUNCATED, pa.array(np.zeros(len(rows), np.int32)))
        with pa.OSFile(str(folder / f"{number:06}.arrow"), "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows)
        tokens += int(ends[-1])
    facts = {"examples": "", "tokenizers": model.tokenizer_keys()}
    write_json(folder / FACTS, {**facts, "forms": ["sentences"], "rows": total, "texts": 2 * total, "tokens": tokens, "truncated": 0})


def one_opening(folder: Path, encoder: Path, batches: int, by_length: bool) -> None:
    """Open the store, draw batches, and print what it took."""
    from crosslign.encoders.model import Model
    from crosslign.training.draws import Order
    from crosslign.training.tokenised import Store

    model = Model.load({"main": encoder})
    if not (folder / "store").exists():
        write_copy(folder / "pairs.parquet", folder / "store", model)
    before, start = memory("RssAnon"), time.perf_counter()
    peak_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    store = Store(folder / "store", model)
    order = Order("pairs", store.rows, 64, 42, store.lengths if by_length else None)
    store.batch(order.at(0), 0)
    first = time.perf_counter() - start
    start = time.perf_counter()
    for step in range(1, batches):
        store.batch(order.at(step), step)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_before
    found = {
        "first": first,
        "anonymous": memory("RssAnon") - before,
        "peak": peak * 1024,
        "rate": (batches - 1) / seconds,
        "rows": store.rows,
    }
    print(json.dumps(found))


def tokenising(folder: Path, encoder: Path, rows: int) -> float:
    """Return pairs a second that the store tokenises."""
    from crosslign.encoders.model import Model
    from crosslign.training.tokenised import tokenise_examples

    model = Model.load({"main": encoder}, weights=False)
    write_examples(folder / "some.parquet", rows)
    settings = {"max_length": 32, "prefix": "", "forms": ["sentences"]}
    start = time.perf_counter()
    tokenise_examples(folder / "some.parquet", folder / "some", folder / "some.work", model, settings)
    return rows / (time.perf_counter() - start)


def main() -> None:
    """Write the set and its store, open it."""
    given = parser(__doc__)
    given.add_argument("--rows", type=int, default=5_000_000)
    given.add_argument("--batches", type=int, default=1000)
    given.add_argument("--tokenise", type=int, default=20_000)
    given.add_argument("--by-length", action="store_true", help="batches grouped by length, whose order needs all lengths")
    given.add_argument("--open", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = given.parse_args()
    if options.open:
        folder, encoder = options.open
        one_opening(folder, encoder, options.batches, options.by_length)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        encoder = tiny_encoder(folder)
        write_examples(folder / "pairs.parquet", options.rows)
        command = [sys.executable, __file__, "--open", str(folder), str(encoder), f"--batches={options.batches}"]
        command += ["--by-length"] * options.by_length
        for _ in ("written", "opened again"):
            done = measured(command, HF_HUB_OFFLINE="1")
        found = json.loads(done.out.splitlines()[-1])
        print(f"tokenising, once for all: {tokenising(folder, encoder, options.tokenise):.0f} pairs a second")
        print(
            f"{found['rows']:,} pairs: first batch {found['first']:.1f} s after the encoder is there, {found['anonymous'] / 2**20:.0f} MiB "
            f"above it (peak {found['peak'] / 2**20:.0f} MiB, pages of mapped files included), {found['rate']:.0f} batches of 64 a second"
        )
        print(f"ratio: {GIB / max(found['peak'], 1):.2f}")


def tiny_encoder(folder: Path) -> Path:
    """Write a small random encoder with the words of the set."""
    from crosslign.encoders.construct import construct_bert

    options = {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "vocabulary": 400, "seed": 0}
    (folder / "words.tsv").write_text("\n".join([" ".join(WORDS), "0 1 2 3 4 5 6 7 8 9"]), encoding="utf-8")
    construct_bert(options, [folder / "words.tsv"], folder / "encoder")
    return folder / "encoder"


if __name__ == "__main__":
    main()
