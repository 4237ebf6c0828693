"""The stage of examples: ids, decontamination, samples, errors."""

from __future__ import annotations

import pyarrow as pa
import pytest

from crosslign.errors import InputError
from crosslign.examples import rows as shelves
from crosslign.examples.build import build_examples
from crosslign.examples.builders import nli_groups
from crosslign.files import read_rows, sha256_file, write_rows


@pytest.fixture
def paths(tmp_path, multiway, nli):
    write_rows(tmp_path / "verses.parquet", multiway, "multiway")
    write_rows(tmp_path / "nli.parquet", nli, "labelled")
    texts = pa.table({"text_id": ["t:0", "t:1"], "lang": ["en", "de"], "text": ["3 EN, 1!", "7 de 0"]})
    write_rows(tmp_path / "test.parquet", texts, "texts")
    return {name: tmp_path / f"{name}.parquet" for name in ("verses", "nli", "test")}


def build(paths, out, limit=None, others=None, **entry):
    corpora = {name: paths[name] for name in entry.get("from", [])}
    return build_examples("x", entry, corpora, {"test": paths["test"]}, others or {}, out, limit)


def test_evaluation_sentences_are_kept_out_and_counted(paths, tmp_path):
    out = tmp_path / "out.parquet"
    counts = build(paths, out, builder="dropout_pairs", decontaminate=["test"], langs=["en", "de"], **{"from": ["verses"]})
    assert counts == {
        "shape": "pairs",
        "built": 150,
        "decontamination": {
            "before": 150,
            "after": 148,
            "pair_level": 2,
            "evaluations": {"test": {"dropped": 2, "pair_level": 2, "corpora": {"m": 2}}},
        },
        "rows": 148,
        "per_language": {"de": 59, "en": 89},
        "per_corpus": {"m": 148},
    }
    table = read_rows(out, "pairs")
    assert not {"3 en 1", "7 de 0"} & set(table["a_text"].to_pylist())
    ids = table["id"].to_pylist()
    assert ids[0] == "x:0"
    assert len(set(ids)) == 148
    assert ids[-1] == "x:149"  # numbers are those of the rows as built


def test_nothing_is_kept_out_unless_it_is_asked_for(paths, tmp_path):
    counts = build(paths, tmp_path / "out.parquet", builder="dropout_pairs", langs=["en"], **{"from": ["verses"]})
    assert counts["decontamination"] == {"before": 90, "after": 90, "pair_level": 0, "evaluations": {}}


def test_samples_nest_and_bytes_repeat(paths, tmp_path):
    entry = {"builder": "crosslingual_triplets", "langs": ["en", "de", "fr"], "from": ["nli"]}
    found = {}
    for limit in (3, 8, 100):
        build(paths, tmp_path / f"{limit}.parquet", limit, **entry)
        found[limit] = read_rows(tmp_path / f"{limit}.parquet", "triplets").to_pylist()
    assert [len(rows) for rows in found.values()] == [3, 8, 12]
    assert all(row in found[8] for row in found[3])
    build(paths, tmp_path / "again.parquet", 8, **entry)
    assert sha256_file(tmp_path / "again.parquet") == sha256_file(tmp_path / "8.parquet")


def test_a_union_reads_other_sets(paths, tmp_path):
    build(paths, tmp_path / "a.parquet", builder="nli_triplets", langs=["en"], **{"from": ["nli"]})
    build(paths, tmp_path / "b.parquet", builder="dropout_pairs", langs=["en"], **{"from": ["verses"]})
    others = {"a": tmp_path / "a.parquet", "b": tmp_path / "b.parquet"}
    counts = build(paths, tmp_path / "u.parquet", others=others, builder="union", of=["a", "b"], drop_hard_negatives=True)
    assert (counts["shape"], counts["rows"]) == ("pairs", 93)
    rows = read_rows(tmp_path / "u.parquet", "pairs")
    assert sorted(rows["id"].to_pylist()) == sorted(f"x:{n}" for n in range(93))
    assert ["n:en:2", "n:en:6"] in rows["rows"].to_pylist()


def test_errors_write_nothing(paths, tmp_path):
    out = tmp_path / "out.parquet"
    with pytest.raises(InputError, match=r": .*built"):
        build(paths, out, builder="dropout_pairs", langs=["sw"], **{"from": ["verses"]})
    with pytest.raises(InputError, match=r"'dropout_pair'.*'dropout_pairs'"):
        build(paths, out, builder="dropout_pair", **{"from": ["verses"]})
    write_rows(paths["test"], pa.table({"text_id": ["t"], "lang": ["en"], "text": ["p1-en"]}), "texts")
    write_rows(paths["nli"], read_rows(paths["nli"]).slice(8, 2), "labelled")
    with pytest.raises(InputError, match=r": .*every"):
        build(paths, out, builder="nli_triplets", decontaminate=["test"], langs=["en"], **{"from": ["nli"]})
    assert not out.exists()


def test_large_sets_are_those_of_small_shelves(paths, tmp_path, monkeypatch):
    entries = {
        "a": {"builder": "crosslingual_triplets", "langs": ["en", "de", "fr"], "from": ["nli"]},
        "b": {"builder": "parallel_pairs", "pairs": ["en-de", "fr-en"], "max_per_pair": 20, "from": ["verses"]},
        "c": {"builder": "nli_groups", "langs": ["en", "de", "fr"], "size": 2, "from": ["nli"]},
        "d": {"builder": "monolingual", "rows": 70, "from": ["verses", "nli"]},
        "e": {"builder": "nli_triplets", "from": ["nli"]},
        "f": {"builder": "union", "of": ["a", "b"], "repeat": {"b": 2}, "drop_hard_negatives": True},
    }
    whole: dict[str, list] = {}
    for shelf in (shelves.SHELF, 5):
        monkeypatch.setattr(shelves, "SHELF", shelf)
        monkeypatch.setattr(nli_groups, "SHELF", shelf)
        for name, entry in entries.items():
            build(paths, tmp_path / f"{name}.parquet", 40, others={key: tmp_path / f"{key}.parquet" for key in "ab"}, **entry)
            found = read_rows(tmp_path / f"{name}.parquet").to_pylist()
            assert found == whole.setdefault(name, found)
            assert len(found) >= 8
