"""Golden results of what makes text and whole numbers: files, rows, evaluation corpora, filters, views, training sets."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sqlite3
import tarfile
import tempfile
import zipfile
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from golden import Case
from made_inputs import (
    FOLDER,
    ROWS,
    behind_corpora,
    corpus,
    corpus_file,
    cover,
    digest,
    evaluation,
    project,
    rows_digest,
    sentences,
    view,
)

from crosslign.config import graph
from crosslign.config.catalog import reader_of
from crosslign.corpora import EVALUATIONS, READERS, STAND_INS, Given
from crosslign.corpora.pipeline import Pipeline
from crosslign.examples import BUILDERS, Material
from crosslign.examples.rows import Rows
from crosslign.examples.shapes import shape_of
from crosslign.files import write_rows
from crosslign.files.home import own_folder
from crosslign.files.rows import SCHEMAS
from crosslign.registry import options_of

FILES = 3
"""Files of a stand-in that are looked at: the first, the last and one between."""


def content_digest(content) -> str:
    """Return a digest of what a file holds, whatever packed it: archives by their members, Parquet by its rows, databases by their text."""
    if not isinstance(content, bytes):
        return digest({name: content_digest(inner) for name, inner in content.items()})
    for mark, opened in ((b"\x1f\x8b", gzip.decompress), (b"BZh", bz2.decompress), (b"\xfd7zXZ", lzma.decompress)):
        if content.startswith(mark):
            return content_digest(opened(content))
    if content.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return content_digest({name: archive.read(name) for name in archive.namelist()})
    if content[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            return content_digest({one.name: archive.extractfile(one).read() for one in archive if one.isfile()})
    if content.startswith(b"PAR1"):
        return rows_digest(pq.read_table(io.BytesIO(content)))
    if content.startswith(b"SQLite format 3"):
        with tempfile.NamedTemporaryFile() as file:
            Path(file.name).write_bytes(content)
            return digest(list(sqlite3.connect(file.name).iterdump()))
    return digest(content.decode("latin-1"))


def stand_ins(kept):
    """A few files of each source that has a stand-in."""
    entries = []
    for source, entry in project().sources.items():
        if "stand_in" in entry:
            names = [file["name"] for file in entry["files"]]
            for name in sorted({names[0], names[-1], names[len(names) // 2]}):
                entries.append((entry["stand_in"], f"{source}/{name}", {"file": Path(name).suffix}))
    for kind, label, _ in cover("corpora.stand_ins", entries, kept):
        name = label.partition("/")[2]
        yield f"corpora.stand_ins/{kind}", label, Case(lambda kind=kind, name=name: content_digest(STAND_INS.get(kind)(name, sentences())))


def _catalog(kind_is_evaluation: bool):
    for name, entry in project().corpora.items():
        if (entry["kind"] == "evaluation") == kind_is_evaluation and _read(name):
            yield name, entry


def _read(name: str) -> bool:
    """Tell whether the files of a corpus can be had without a download."""
    entry = project().corpora[name]
    source = project().sources[entry["source"]] if "source" in entry else {"local": "resources"}
    there = "stand_in" in source or ("local" in source and own_folder(source["local"]).is_dir())
    return there and all(_read(one) for one in [*graph.corpus_references(project(), name), *entry.get("of", [])])


def readers(kept):
    """Corpora that together use every option of every reader, as it reads them."""
    entries = [(e["reader"], name, {"kind": e["kind"], **e.get("options", {})}) for name, e in _catalog(False)]
    for reader, label, _ in cover("corpora.readers", entries, kept):
        others = frozenset(behind_corpora([label]) - {f"crosslign.corpora.readers.{reader}"})
        yield f"corpora.readers/{reader}", label, Case(lambda label=label: rows_digest(corpus(label).slice(0, ROWS)), others)

    yield "corpora.readers/dataset", "translations", Case(_dataset)  # of a user's own choice: the catalog has none


def _dataset():
    path = FOLDER / "dataset" / "train.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"translation": {"en": one, "de": other}, "likeness": len(other) / 100} for one, other, *_ in PAIRS[:6]]
    pq.write_table(pa.Table.from_pylist(rows), path)
    columns = {"translation.en": "a_text", "translation.de": "b_text", "likeness": "score"}
    return rows_digest(pa.concat_tables(READERS.get("dataset")({path.name: path}, "dataset", ["en", "de"], kind="bitext", columns=columns)))


def evaluations(kept):
    """Evaluation corpora that together use every option of every reader."""
    entries = [
        (reader_of(e), name, {**e.get("options", {}), **({"of": len(e["of"]) > 1} if "of" in e else {})}) for name, e in _catalog(True)
    ]
    for reader, label, _ in cover("corpora.evaluations", entries, kept):
        others = frozenset(behind_corpora([label]) - {f"crosslign.corpora.evaluations.{reader}"})
        yield f"corpora.evaluations/{reader}", label, Case(partial(_evaluation, label), others)
    yield "corpora.evaluations/aligned_lines", "two languages", Case(_aligned_lines)  # of a user's own files: the catalog has none


def _aligned_lines():
    files = {f"news.{lang}": FOLDER / "lines" / f"news.{lang}" for lang in ("de", "en")}
    for path, side in zip(files.values(), (1, 0), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{pair[side]}\n" for pair in PAIRS[:6]), encoding="utf-8")
    return _parts(EVALUATIONS.get("aligned_lines")(Given(files, {}, "lines", ["de", "en"], None, 42)))


def _evaluation(name):
    return _parts(evaluation(name))


def _parts(found):
    return {part: rows_digest(getattr(found, part)) for part in ("texts", "items", "gold")}


PAIRS = [
    ("The dog sleeps.", "Der Hund schläft."),
    ("The dog sleeps.", "Der Hund schläft."),
    ("the DOG  sleeps", "der Hund schläft"),
    ("We paid 25 euros on 3 May.", "Wir zahlten 52 Euro am 3. Mai."),
    ("We paid 25 euros on 3 May.", "Wir zahlten 25 Euro am 3. Mai."),
    ("Yes", "Ja"),
    ("", "Nichts"),
    ("Same here", "Same here"),
    ("<b>Bold</b> words &amp; more", "<i>Fette</i> Wörter &amp; mehr"),
    ("one " * 24, "eins " * 24),
    ("one " * 26, "eins " * 26),
    ("one " * 41, "eins " * 41),
    ("one " * 61, "eins " * 61),
    ("one " * 91, "eins " * 91),
    ("one " * 101, "eins " * 99),
    ("two words", "ein zwei drei vier fünf sechs sieben"),
    ("two words only", "sieben kleine graue Gänse gingen über Land"),
    ("Abcdefghij" * 5, "kurz"),
    ("§§§ ### 123 456", "!!! ??? 789"),
    ("Привет, как дела?", "Hallo, wie geht es?"),
    ("你好,今天天气很好。", "Guten Tag, schönes Wetter."),
    ("Das ist ein deutscher Satz, der hier falsch steht.", "Ein deutscher Satz steht hier richtig."),
    ("What? Who? When...", "Was? Wer? Wann..."),
    (
        "The quick brown fox jumps over the lazy dog near the old river bank today.",
        "Der schnelle braune Fuchs springt heute am Ufer über den Hund.",
    ),
    (
        "The quick brown fox jumps over the lazy dog near the old river bank tonight.",
        "Der schnelle braune Fuchs springt nachts am Ufer über den Hund.",
    ),
    *(("one " * words, "eins " * words) for bound in (1, 3, 4, 25, 30, 40, 60, 90, 100) for words in (bound - 1, bound, bound + 1)),
    *(("好" * signs, "天" * signs) for bound in (50, 60, 126) for signs in (bound - 1, bound, bound + 1)),
    *(("one " * words, "eins " * other) for words, other in ((10, 30), (10, 31), (10, 40), (10, 41), (40, 10), (41, 10))),
    *((f"{'a' * letters} b", f"{'b' * letters} a") for letters in (39, 40, 41)),
    ("abc 1234", "abcd 1234"),
    ("abcd1", "abcde 1"),
    ("In 1990 and 2000 came 30", "1990, 2001 und 30"),
]
"""What filters are tried on: repeated, changed, empty, marked up, long, short, lopsided, in other scripts and other languages."""


def filters(kept):
    """Every filter with each of its settings, on `PAIRS`, as pairs and as single sentences."""
    entries = {}
    for _name, entry in project().corpora.items():
        for step in entry.get("filters", []):
            for rule, options in step.items():
                plain = {key: value for key, value in (options or {}).items() if key != "corpora"}
                entries.setdefault((rule, digest(plain)), (rule, f"{rule} {plain}", (plain, "corpora" in (options or {}))))
    for rule, label, (plain, refers) in entries.values():
        yield f"corpora.filters/{rule}", label, Case(partial(_filtered, rule, plain, refers))
    unused = {"punctuation": {}} if not any(rule == "punctuation" for rule, *_ in entries.values()) else {}
    for rule, plain in unused.items():
        yield f"corpora.filters/{rule}", f"{rule} {plain}", Case(partial(_filtered, rule, plain, False))
    yield "corpora.filters/as_clean", "lopsided pairs", Case(_as_clean)


def _as_clean():
    """Pairs of growing length, of which every ninth is lopsided, against a sample without these."""
    texts = [
        (" ".join(["bread and butter"] * (2 + n % 7)), " ".join(["Brot und Butter"] * (2 + n % 7 + 9 * (n % 9 == 8)))) for n in range(180)
    ]
    rows = [{"id": f"x:{n}", "a_lang": "en", "a_text": a, "b_lang": "de", "b_text": b} for n, (a, b) in enumerate(texts)]
    path = FOLDER / "clean.parquet"
    write_rows(path, pa.Table.from_pylist([row for n, row in enumerate(rows) if n % 9 < 8], SCHEMAS["bitext"]), "bitext")
    pipeline = Pipeline("x", "bitext", ("en", "de"), [{"as_clean": {"corpora": ["clean"]}}], {"clean": path})
    kept = pa.concat_tables(list(pipeline.apply(iter([pa.Table.from_pylist(rows, SCHEMAS["bitext"])]))))
    borders = pipeline.settle()["filters"][0]["learned"]
    return {"rows": rows_digest(kept), "borders": [[one["measure"], one["bound"], one["kept"], len(one["outside"])] for one in borders]}


def _filtered(rule, plain, refers):
    left, right = ([pair[side] for pair in PAIRS] for side in (0, 1))
    ids = [f"x:{number}" for number in range(len(PAIRS))]
    both = pa.table(
        {"id": ids, "a_lang": ["en"] * len(ids), "a_text": left, "b_lang": ["de"] * len(ids), "b_text": right, "score": [None] * len(ids)},
        SCHEMAS["bitext"],
    )
    one = pa.table({"id": ids, "lang": ["de"] * len(ids), "text": right}, SCHEMAS["mono"])
    counted = one.set_column(1, "lang", pa.array(["zh"] * len(ids)))  # its length is that of its characters
    references = {"near": _reference(one)} if refers else {}
    options = {**plain, **({"corpora": ["near"]} if refers else {})}
    found = {}
    for kind, table in (("bitext", both), ("mono", one), ("mono", counted)):
        pipeline = Pipeline("x", kind, ("en", "de"), [{rule: options}], references)
        for batch in [table] if pipeline.needs_survey else ():
            pipeline.survey(batch)
        kept = pa.concat_tables(list(pipeline.apply(iter([table]))))
        found[f"{kind} {table[1][0]}"] = {"kept": [int(i.partition(":")[2]) for i in kept["id"].to_pylist()], "rows": rows_digest(kept)}
    return found


def _reference(table):
    path = FOLDER / "near.parquet"
    if not path.exists():
        write_rows(path, table.slice(23, 1), "mono")
    return path


def views(kept):
    """Every view of the papers; and with it the translator that gives what is provided."""
    entries = [(e["builder"], name, options_of("views", e)) for name, e in project().views.items()]
    for builder, label, _ in cover("views.builders", entries, kept):
        others = behind_corpora([label])
        yield f"views.builders/{builder}", label, Case(partial(_view, label), frozenset(others - {f"crosslign.views.builders.{builder}"}))
        if "provided" in project().views[label].get("translator", {}):
            yield (
                "views.translators/provided",
                label,
                Case(partial(_view, label), frozenset(others - {"crosslign.views.translators.provided"})),
            )


def _view(name):
    return rows_digest(view(name))


def builders(kept):
    """Training sets that together use every option of every builder."""
    entries = []
    for name, entry in project().examples.items():
        named = [*entry.get("from", []), *(one for other in entry.get("of", []) for one in project().examples[other].get("from", []))]
        if len(named) <= 6 and all(one in project().views or _read(one) for one in named):
            entries.append((entry["builder"], name, options_of("examples", entry)))
    for builder, label, _ in cover("examples.builders", entries, kept):
        others = _behind(label) - {f"crosslign.examples.builders.{builder}"}
        yield f"examples.builders/{builder}", label, Case(lambda label=label: rows_digest(examples(label)), frozenset(others))

    yield "examples.builders/nli_triplets", "drawn", Case(_drawn_triplets)
    yield "examples.builders/taught_pairs", "by length", Case(_taught_pairs)
    yield "examples.builders/margin_pairs", "by letters", Case(_margin_pairs)


def _taught_pairs():
    """Pairs whose teacher gives lengths; of one pair neither side is in its language."""
    sides = [("The cat", "en", "Paka", "sw"), ("Mbwa", "sw", "The old dog", "en"), ("Der Hund", "de", "Mbwa", "sw")]
    columns = dict(zip(("a_text", "a_lang", "b_text", "b_lang"), map(list, zip(*sides, strict=True)), strict=True))
    path = FOLDER / "pairs.parquet"
    write_rows(path, pa.table({"id": ["p:0", "p:1", "p:2"], "rows": [["c:0"], ["c:1"], ["c:2"]], **columns}, SCHEMAS["pairs"]), "pairs")
    material = Material("x", {}, {"p": Rows.of_file(path)}, [], 42, teach=lambda texts, langs: [[float(len(text))] for text in texts])
    return rows_digest(pa.concat_tables(list(BUILDERS.get("taught_pairs")(material))))


def _margin_pairs():
    """Pairs of words whose vectors count their letters; good ones are spelled alike."""
    words = ["".join(chr(97 + (7 * n + step * at) % 26) for at in range(5)) for n in range(120) for step in (1, 3)]
    columns = {"a_lang": ["de"] * 240, "a_text": words, "b_lang": ["en"] * 240, "b_text": [words[n ^ (n % 3 == 0)] for n in range(240)]}
    pairs, clean = FOLDER / "pairs.parquet", FOLDER / "clean.parquet"
    ids = {"id": [f"p:{n}" for n in range(240)]}
    write_rows(pairs, pa.table({**ids, "rows": [[f"c:{n}"] for n in range(240)], **columns}, SCHEMAS["pairs"]), "pairs")
    good = {**ids, **columns, "b_text": words, "score": pa.nulls(240, pa.float32())}
    write_rows(clean, pa.table(good, SCHEMAS["bitext"]), "bitext")
    sets = {"c": Rows.of_file(clean)}, {"p": Rows.of_file(pairs)}
    material = Material(
        "x", *sets, [], 42, teach=lambda texts, langs: [[float(text.count(chr(97 + at))) for at in range(26)] for text in texts]
    )
    return rows_digest(pa.concat_tables(list(BUILDERS.get("margin_pairs")(material, keep=0.9))))


def _drawn_triplets():
    """Premises with several contradictions, and no groups that say which belongs to which."""
    columns = {"id": [f"x:{n}" for n in range(24)], "a_lang": ["en"] * 24, "a_text": [f"premise {n // 6}" for n in range(24)]}
    columns |= {
        "b_lang": ["en"] * 24,
        "b_text": [f"sentence {n}" for n in range(24)],
        "label": [[2.0 if n % 3 else 0.0] for n in range(24)],
    }
    path = FOLDER / "ungrouped.parquet"
    write_rows(path, pa.table({**columns, "group": [None] * 24}, SCHEMAS["labelled"]), "labelled")
    material = Material("x", {"rows": Rows.of_file(path)}, {}, ["en"], 42)
    return rows_digest(pa.concat_tables(list(BUILDERS.get("nli_triplets")(material))))


def _behind(name):
    entry = project().examples[name]
    found = {f"crosslign.examples.builders.{entry['builder']}"} | behind_corpora(entry.get("from", []))
    return found.union(*(_behind(other) for other in entry.get("of", [])))


def examples(name) -> pa.Table:
    """Return a training set as its builder makes it of the first rows of its corpora."""
    entry = project().examples[name]
    others = {}
    for other in entry.get("of", []):
        path = FOLDER / "examples" / f"{other}.parquet"
        made = examples(other)
        write_rows(path, made.set_column(0, "id", pa.array([f"{other}:{n}" for n in range(made.num_rows)])), shape_of(made.column_names))
        others[other] = Rows.of_file(path)
    named = {one: Rows.of_file(corpus_file(one)) for one in entry.get("from", [])}
    material = Material(name, named, others, entry.get("langs", ()), entry.get("seed", 42))
    return pa.concat_tables(list(BUILDERS.get(entry["builder"])(material, **options_of("examples", entry)))).slice(0, ROWS)
