"""The stage of evaluation corpora: what a reader gives is counted and written, and what it is given of corpora."""

import pyarrow as pa
import pytest

from crosslign.corpora import EVALUATIONS
from crosslign.corpora.build_evaluation import build_evaluation
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.errors import InputError
from crosslign.files import write_rows


def test_an_evaluation_is_read_and_written(monkeypatch, tmp_path):
    def read(given, **options):
        builder = EvaluationBuilder(given.name)
        for n, text in enumerate(given.corpora["c"]["text"].to_pylist()[: given.limit]):
            builder.item(f"i{n}", "de-en", "source", "en", text)
        assert (given.langs, given.seed, options) == (["en"], 42, {"size": 3})
        return builder.build()

    monkeypatch.setitem(EVALUATIONS._entries, "any", read)
    write_rows(tmp_path / "c.parquet", pa.table({"id": ["1", "2", "3"], "lang": ["en"] * 3, "text": ["x", "y", "x"]}), "mono")
    out = {part: tmp_path / f"{part}.parquet" for part in ("texts", "items", "gold")}
    given = {"reader": "any", "langs": ["en"], "options": {"size": 3}}
    counts = build_evaluation("e", given, {}, {"c": tmp_path / "c.parquet"}, {}, out, 3)
    sizes = {"source_items": {"de-en": 3}, "item_groups": {"de-en": 0}}
    assert counts == {
        "rows": 2,
        "items": 3,
        "gold": 0,
        "subsets": {"de-en": 3},
        "per_language": {"en": 2},
        "words": {"en": 2},
        "sizes": sizes,
    }
    assert Evaluation.read(out).texts["text"].to_pylist() == ["x", "y"]
    with pytest.raises(InputError, match="empty"):
        build_evaluation("e", given, {}, {"c": tmp_path / "c.parquet"}, {}, out, 0)


def test_a_set_reads_of_its_corpora_only_rows_of_its_languages(monkeypatch, tmp_path):
    """Of 15 languages of XNLI-MT a set of two takes two, and one corpus is held at a time."""
    rows = {"id": ["1", "2", "3", "4"], "group": ["g"] * 4, "a_lang": ["en", "sw", "de", "fr"], "a_text": ["a", "b", "c", "d"]}
    second = {"b_lang": ["en", "sw", "de", "sw"], "b_text": ["e", "f", "g", "h"], "label": [[0.0]] * 4}
    write_rows(tmp_path / "c.parquet", pa.table({**rows, **second}), "labelled")
    found = {}

    def read(given, **options):
        found[given.name] = given.corpora["c"]["id"].to_pylist()
        assert list(given.corpora) == ["c"]
        assert given.corpora["c"] is not given.corpora["c"]
        return EvaluationBuilder(given.name).build()

    monkeypatch.setitem(EVALUATIONS._entries, "any", read)
    for name, langs, options in (("pivoted", ["sw"], {}), ("other", ["sw"], {"pivot": "de"}), ("all", [], {})):
        with pytest.raises(InputError, match="empty"):
            build_evaluation(name, {"reader": "any", "options": options, "langs": langs}, {}, {"c": tmp_path / "c.parquet"}, {}, {})
    assert found == {"pivoted": ["1", "2", "4"], "other": ["2", "3", "4"], "all": ["1", "2", "3", "4"]}
