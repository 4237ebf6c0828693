"""Peak memory of building training sets of millions of pairs, beside `datasets` making the same mix.

Texts are drawn words, the same for every run, and copies of them behind a number. The steps of ours: `pairs` takes nine tenths of a
bitext by a sample, sides drawn; `mix` shuffles these pairs with a twentieth as many triplets whose hard negatives are dropped; `rows`
gives labelled rows in five languages their translations as views; `groups` finds the sentences that say the same in five languages, as many
sentences as the bitext has rows. `datasets` makes the mix of the same two files: remove the columns,
concatenate, shuffle, write Parquet. Both mixes must hold the same rows (compared by a sum of hashes). Peak memory has the interpreter
included. Prints, as its last line, `ratio: <peer memory / our memory>` of the mix at the largest size.

    python benchmarks/examples_memory.py --sizes 1000000 5000000
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash
from _common import machine, measured, parser, versions

WORDS = 12
PART = 100_000
LANGS = ("en", "de", "fr", "es", "ru")
COLUMNS = ["rows", "a_text", "a_lang", "b_text", "b_lang"]
STEPS = ("pairs", "mix", "rows", "groups")


def texts(rows: int, seed: int) -> Iterator[pa.Array]:
    """Yield sentences of 12 drawn words, 100,000 at a time; from the second time on the same ones behind a number."""
    draw = np.random.default_rng(seed)
    words = np.array([f"w{number:05}" for number in range(50_000)], dtype=object)
    drawn = pa.array([" ".join(row) for row in words[draw.integers(0, len(words), (min(PART, rows), WORDS))].tolist()])
    for start in range(0, rows, PART):
        part = drawn.slice(0, rows - start)
        yield pc.binary_join_element_wise(str(start // PART), part, " ") if start else part


def write(path: Path, kind: str, batches: Iterator[dict[str, object]]) -> None:
    """Write batches of columns as a file of rows."""
    from crosslign.files.rows import SCHEMAS, write_batches

    write_batches(path, (pa.table({f.name: columns[f.name] for f in SCHEMAS[kind] if f.name in columns}) for columns in batches), kind)


def prepare(folder: Path, pairs: int) -> None:
    """Write a bitext, triplets, labelled rows in five languages."""

    def bitext() -> Iterator[dict[str, object]]:
        for part, (left, right) in enumerate(zip(texts(pairs, 1), texts(pairs, 2), strict=True)):
            size = len(left)
            ids = [f"c:{part * PART + row}" for row in range(size)]
            yield {"id": ids, "a_lang": ["en"] * size, "a_text": left, "b_lang": ["de"] * size, "b_text": right}

    def triplets() -> Iterator[dict[str, object]]:
        for part, columns in enumerate(zip(*(texts(pairs // 20, seed) for seed in (3, 4, 5)), strict=True)):
            size = len(columns[0])
            ids = [f"n:{part * PART + row}" for row in range(size)]
            sides = {f"{side}_text": column for side, column in zip("abc", columns, strict=True)}
            langs = {f"{side}_lang": ["en"] * size for side in "abc"}
            yield {"id": ids, "rows": [[row, row] for row in ids], **sides, **langs}

    def labelled() -> Iterator[dict[str, object]]:
        each = pairs // len(LANGS)
        for lang, code in enumerate(LANGS):
            for part, (left, right) in enumerate(zip(texts(each, 10 + lang), texts(each, 20 + lang), strict=True)):
                numbers = range(part * PART, part * PART + len(left))
                langs = [code] * len(left)
                labels = [[float(number % 3)] for number in numbers]
                ids, groups = [f"l:{code}:{number}" for number in numbers], [str(number) for number in numbers]
                yield {"id": ids, "a_lang": langs, "a_text": left, "b_lang": langs, "b_text": right, "label": labels, "group": groups}

    def multiway() -> Iterator[dict[str, object]]:
        each = pairs // len(LANGS)
        for lang, code in enumerate(LANGS):
            for part, sentences in enumerate(texts(each, 30 + lang)):
                names = [str(number) for number in range(part * PART, part * PART + len(sentences))]
                yield {"id": [f"g:{code}:{name}" for name in names], "lang": [code] * len(names), "text": sentences, "group": names}

    write(folder / "g.parquet", "multiway", multiway())
    write(folder / "c.parquet", "bitext", bitext())
    write(folder / "n.parquet", "triplets", triplets())
    write(folder / "l.parquet", "labelled", labelled())
    write_views(folder)


def write_views(folder: Path) -> None:
    """Write one view of the labelled rows: each with its texts marked."""
    with pq.ParquetFile(folder / "l.parquet") as file:
        writer = None
        for number, batch in enumerate(file.iter_batches(65_536)):
            table = pa.Table.from_batches([batch])
            ids = table["id"].to_pylist()
            table = table.set_column(0, "id", pa.array([f"v:{number}:{row}" for row in range(len(ids))]))
            table = table.append_column("of", pa.array(ids)).append_column("kind", pa.array(["full"] * len(ids)))
            writer = writer or pq.ParquetWriter(folder / "v.parquet", table.schema)
            writer.write_table(table)
        if writer:
            writer.close()


def ours(folder: Path, step: str, pairs: int) -> None:
    """Build one training set with crosslign (what the measured command does)."""
    from crosslign.examples.build import build_examples

    out = folder / f"{step}.parquet"
    if step == "pairs":
        entry = {"builder": "parallel_pairs", "from": ["c"], "langs": ["en", "de"], "pairs": ["en-de"], "max_per_pair": pairs * 9 // 10}
        build_examples("p", entry, {"c": folder / "c.parquet"}, {}, {}, out)
    elif step == "mix":
        entry = {"builder": "union", "of": ["p", "n"], "drop_hard_negatives": True}
        build_examples("m", entry, {}, {}, {"p": folder / "pairs.parquet", "n": folder / "n.parquet"}, out)
    elif step == "groups":
        entry = {"builder": "parallel_groups", "from": ["g"], "langs": list(LANGS), "size": 4}
        build_examples("g", entry, {"g": folder / "g.parquet"}, {}, {}, out)
    else:
        entry = {"builder": "labelled_rows", "from": ["l", "v"], "langs": list(LANGS)}
        build_examples("r", entry, {"l": folder / "l.parquet", "v": folder / "v.parquet"}, {}, {}, out)


def peer(folder: Path) -> None:
    """Make the mix with datasets (what the measured command does)."""
    import datasets

    cache = str(folder / "cache")
    parts = [datasets.Dataset.from_parquet(str(folder / name), cache_dir=cache) for name in ("pairs.parquet", "n.parquet")]
    parts = [part.remove_columns([name for name in part.column_names if name not in COLUMNS]) for part in parts]
    datasets.concatenate_datasets(parts).shuffle(seed=42).to_parquet(str(folder / "peer.parquet"))


def content(path: Path) -> tuple[int, int]:
    """Return the number of rows and the sum of the hashes of their texts and row ids."""
    rows = total = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(65_536, columns=COLUMNS):
            for row in zip(*(batch[name].to_pylist() for name in COLUMNS), strict=True):
                total += xxhash.xxh3_64_intdigest(repr(row).encode())
            rows += batch.num_rows
    return rows, total


def main() -> None:
    """Run the comparison."""
    command = parser(__doc__)
    command.add_argument("--sizes", type=int, nargs="+", default=[1_000_000], help="pairs of the bitext")
    command.add_argument("--steps", nargs="+", choices=STEPS, default=STEPS, help="steps to measure; `mix` needs `pairs`")
    command.add_argument("--run", nargs=3, metavar=("FOLDER", "STEP", "PAIRS"), help=argparse.SUPPRESS)
    args = command.parse_args()
    if args.run:
        folder, step, pairs = Path(args.run[0]), args.run[1], int(args.run[2])
        peer(folder) if step == "peer" else ours(folder, step, pairs)
        return
    print(f"machine: {machine()}; {versions('datasets', 'pyarrow')}")
    for pairs in args.sizes:
        folder = Path(tempfile.mkdtemp(prefix="crosslign-examples-memory-"))
        try:
            prepare(folder, pairs)
            found = {}
            for step in [*args.steps, *(["peer"] if "mix" in args.steps else [])]:
                found[step] = measured([sys.executable, __file__, "--run", str(folder), step, str(pairs)], OMP_NUM_THREADS="1")
                print(f"{pairs:,} pairs, {step}: {found[step].memory:.0f} MiB, {found[step].processor:.1f} s of processor", flush=True)
            if "mix" in args.steps and content(folder / "mix.parquet") != content(folder / "peer.parquet"):
                raise SystemExit("the two mixes differ")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    if "mix" in args.steps:
        print(f"ratio: {found['peer'].memory / found['mix'].memory:.2f}")


if __name__ == "__main__":
    main()
