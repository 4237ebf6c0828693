"""The stage of corpora: filters in order, counts, samples, errors."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from crosslign.corpora import READERS, build
from crosslign.corpora.build import build_corpus
from crosslign.corpora.dedup import bare, digests
from crosslign.corpora.sampling import Draw, draws, priorities
from crosslign.errors import InputError
from crosslign.files import read_rows, rows, sha256_file, write_rows
from crosslign.files.rows import SCHEMAS


@pytest.fixture
def reads(monkeypatch):
    """Make the reader yield given rows in tables of `size`."""

    def use(kind, rows, size=3):
        def read(files, corpus, langs, **options):
            for start in range(0, len(rows), size):
                yield pa.Table.from_pylist(rows[start : start + size], schema=SCHEMAS[kind])

        monkeypatch.setitem(READERS._entries, "any", read)

    return use


def mono(texts, lang="en"):
    return [{"id": f"c:f:{n}", "lang": lang, "text": text} for n, text in enumerate(texts, start=1)]


def entry(kind, filters=(), langs=("en",), **more):
    return {"kind": kind, "reader": "any", "langs": list(langs), "filters": list(filters), **more}


def test_filters_run_in_order_and_are_counted(reads, tmp_path):
    reads("mono", mono(["one two", "one", "One two!", "<b> x", "three four", "“five” six"]))
    filters = [{"length": {"min_words": 2}}, {"html_tags": None}, {"punctuation": {}}, {"exact_duplicate": {}}]
    counts = build_corpus("c", entry("mono", filters), {}, {}, tmp_path / "new" / "en.parquet")
    assert counts == {
        "read": 6,
        "read_bytes": 47,  # quotation marks have three
        "filters": [
            {"filter": "length", "before": 6, "after": 5},
            {"filter": "html_tags", "before": 5, "after": 4},
            {"filter": "punctuation", "before": 4, "after": 4, "changed": 1},
            {"filter": "exact_duplicate", "before": 4, "after": 3},
        ],
        "rows": 3,
        "per_language": {"en": 3},
        "rows_per_language": {"en": 3},
    }
    table = read_rows(tmp_path / "new" / "en.parquet", "mono")
    assert table["text"].to_pylist() == ["one two", "three four", '"five" six']
    assert table["id"].to_pylist() == ["c:f:1", "c:f:5", "c:f:6"]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["en.parquet"]


def test_batches_do_not_matter(reads, tmp_path):
    rows = mono([f"row {n % 7} {'x' * (n % 5)}" for n in range(40)])
    filters = [{"exact_duplicate": {}}, {"near_duplicate": {"threshold": 0.9}}]
    sums = set()
    for size in (1, 3, 40):
        reads("mono", rows, size)
        build_corpus("c", entry("mono", filters), {}, {}, tmp_path / f"{size}.parquet", 10)
        sums.add(sha256_file(tmp_path / f"{size}.parquet"))
    assert len(sums) == 1


def test_samples_keep_order_and_nest(reads, tmp_path):
    reads("mono", mono([f"row {n}" for n in range(50)]))
    chosen = {}
    for limit in (5, 20, 60):
        counts = build_corpus("c", entry("mono"), {}, {}, tmp_path / "x.parquet", limit)
        chosen[limit] = read_rows(tmp_path / "x.parquet")["id"].to_pylist()
        assert counts["rows"] == len(chosen[limit]) == min(limit, 50)
        assert chosen[limit] == sorted(chosen[limit], key=lambda row: int(row.rsplit(":", 1)[1]))
    assert set(chosen[5]) < set(chosen[20]) < set(chosen[60])
    build_corpus("c", entry("mono", seed=7), {}, {}, tmp_path / "x.parquet", 5)
    assert read_rows(tmp_path / "x.parquet")["id"].to_pylist() != chosen[5]


def test_a_corpus_may_name_the_size_of_its_own_sample(reads, tmp_path):
    reads("mono", mono([f"row {n}" for n in range(50)]))
    rows = {}
    for sample, limit in ((7, None), (7, 20), (20, 7), (None, 7)):
        build_corpus("c", entry("mono", sample=sample), {}, {}, tmp_path / "x.parquet", limit)
        rows[sample, limit] = tuple(read_rows(tmp_path / "x.parquet")["id"].to_pylist())
    assert len(rows[7, None]) == 7
    assert len(set(rows.values())) == 1


def test_a_bounded_sample_is_that_of_a_sort(reads, tmp_path):
    reads("mono", mono([f"row {n}" for n in range(400)]), size=7)
    for limit in (1, 3, 399, 400, 401):
        build_corpus("c", entry("mono"), {}, {}, tmp_path / "x.parquet", limit)
        ids = [f"c:f:{n}" for n in range(1, 401)]
        keys = priorities(ids, 42)
        expected = [ids[place] for place in sorted(sorted(range(400), key=lambda place: keys[place])[:limit])]
        assert read_rows(tmp_path / "x.parquet")["id"].to_pylist() == expected


def test_a_draw_holds_no_more_than_it_must():
    draw = Draw(10, 0)
    ids = [str(n) for n in range(300_000)]
    for start in range(0, len(ids), 1000):
        draw.add(pa.table({"id": ids[start : start + 1000]}))
        assert sum(held.table.num_rows for held in draw._held) <= 20 + 65_536 + 1000
    values = priorities(ids, 0)
    expected = {ids[n] for n in sorted(range(len(ids)), key=lambda n: values[n])[:10]}
    assert {row for table in draw.drawn() for row in table["id"].to_pylist()} == expected


def slow_sample(rows, filters, keep, limit, seed=42):
    """All rows filtered, the first of each key kept, the least priorities of these: the meaning, without a bound."""
    passed = [row for row in rows if all(test(row) for test in filters)]
    first = {}
    for place, row in enumerate(passed):
        first.setdefault(digests(pa.array([f"{row['lang']}\x1f{keep(row['text'])}"]))[0], place)
    keys = np.array(list(first), "S16")
    values = draws(np.frombuffer(b"".join(key.ljust(16, b"\0") for key in keys.tolist()), "<u8")[::2].copy(), seed)
    places = sorted(np.array(list(first.values()))[np.argsort(values, kind="stable")[:limit]])
    return [passed[place]["id"] for place in places]


@pytest.mark.parametrize("limit", [1, 30, 400, 5000])
@pytest.mark.parametrize("size", [7, 500])
def test_duplicates_and_filters_and_the_draw_may_come_in_any_order(reads, tmp_path, limit, size, monkeypatch):
    monkeypatch.setattr("crosslign.corpora.sampling.SPARE", 50)
    made = random.Random(1)
    rows = mono([f"{'word ' * made.randrange(1, 4)}{made.randrange(700)}{made.choice(['', '!', '.'])}" for _ in range(3000)])
    reads("mono", rows, size)
    long, twice = {"length": {"min_words": 3}}, {"exact_duplicate": {}}
    found = []
    for filters in ([long, twice], [twice, long]):
        counts = build_corpus("c", entry("mono", filters), {}, {}, tmp_path / "x.parquet", limit)
        found.append(read_rows(tmp_path / "x.parquet")["id"].to_pylist())
        assert counts["seen_whole"] == 0
        assert counts["read"] == 3000
    expected = slow_sample(rows, [lambda row: len(row["text"].split()) >= 3], bare, limit)
    assert found == [expected, expected]


def test_a_change_of_texts_and_near_duplicates_see_all_rows(reads, tmp_path):
    reads("mono", mono([f"“row” number {n}" for n in range(300)]))
    filters = [
        {"length": {}},
        {"punctuation": {}},
        {"exact_duplicate": {}},
        {"near_duplicate": {"threshold": 0.99}},
        {"length": {"max_words": 5}},
    ]
    counts = build_corpus("c", entry("mono", filters), {}, {}, tmp_path / "x.parquet", 5)
    assert counts["seen_whole"] == 4
    assert [step["before"] for step in counts["filters"][:4]] == [300] * 4


def test_rows_of_a_named_corpus_are_no_part_of_a_sample(reads, tmp_path):
    write_rows(tmp_path / "other.parquet", pa.table({"id": ["o:1"], "lang": ["en"], "text": ["Row 3!"]}), "mono")
    reads("mono", mono([f"row {n}" for n in range(10)]))
    given = entry("mono", [{"exact_duplicate": {"corpora": ["other"]}}])
    counts = build_corpus("c", given, {}, {"other": tmp_path / "other.parquet"}, tmp_path / "x.parquet", 50)
    assert "row 3" not in read_rows(tmp_path / "x.parquet")["text"].to_pylist()
    assert counts["filters"] == [{"filter": "exact_duplicate", "before": 10, "after": 9}]


def test_costly_filters_see_the_rows_alone_that_can_still_be_drawn(reads, tmp_path):
    reads("mono", mono([f"sentence {n} of many" for n in range(200_000)]), 8192)
    counts = build_corpus("c", entry("mono", [{"length": {"min_words": 2}}, {"exact_duplicate": {}}]), {}, {}, tmp_path / "x.parquet", 100)
    assert counts["rows"] == 100
    assert counts["filters"][0]["before"] < 90_000  # 65,736 until the first bound, a thousandth of what follows


def multiway(texts):
    """Rows from {group: {lang or lang/version: text}}."""
    rows = []
    for group, sides in texts.items():
        for name, text in sides.items():
            lang, _, version = name.partition("/")
            rows.append({"id": f"c:{group}:{name}", "group": group, "lang": lang, "text": text, "version": version or None})
    return rows


def test_rows_of_groups_are_judged_alone_against_the_pivot(reads, tmp_path):
    rows = multiway(
        {
            "1": {"de": "eins zwei", "en/b": "one two three four five six seven", "en/a": "one two", "fr": "un deux"},
            "2": {"de": "eins zwei drei vier fünf sechs", "en/a": "one", "fr": "un"},
            "3": {"de": "same text", "fr": "Same text", "en/a": "same text"},
            "4": {"de": "ohne Englisch", "fr": "o"},
        }
    )
    reads("multiway", rows, 2)
    counts = build_corpus(
        "c", entry("multiway", [{"length_ratio": {}}, {"identical_pair": {}}], ("de", "en", "fr")), {}, {}, tmp_path / "all.parquet"
    )
    kept = read_rows(tmp_path / "all.parquet")["id"].to_pylist()
    # The pivot is the lowest version; a row in the pivot's language is compared with nothing.
    assert kept == ["c:1:de", "c:1:en/b", "c:1:en/a", "c:1:fr", "c:2:en/a", "c:2:fr", "c:3:en/a", "c:4:de", "c:4:fr"]
    assert [(c["before"], c["after"]) for c in counts["filters"]] == [(12, 11), (11, 9)]
    assert counts["read"] == 12
    assert counts["groups"] == 4
    assert counts["per_language"] == {"de": 2, "en": 4, "fr": 3}


def test_limits_count_groups_of_a_multiway_corpus(reads, tmp_path):
    reads("multiway", multiway({str(g): {"en": f"e{g}", "de": f"d{g}"} for g in range(20)}))
    counts = build_corpus("c", entry("multiway", langs=("de", "en")), {}, {}, tmp_path / "all.parquet", 6)
    assert (counts["groups"], counts["rows"]) == (6, 12)


def test_labelled_groups_stay_together_below_the_limit(reads, tmp_path):
    rows = [
        {"id": f"c:{lang}:{n}:{label}", "a_lang": lang, "a_text": "a", "b_lang": lang, "b_text": "b", "label": [label], "group": str(n)}
        for lang in ("de", "en")
        for n in range(10)
        for label in (0.0, 2.0)
    ]
    reads("labelled", rows)
    counts = build_corpus("c", entry("labelled", langs=("de", "en")), {}, {}, tmp_path / "all.parquet", 10)
    assert counts["rows"] == 8
    assert counts["groups"] == 2


def test_a_near_twin_in_one_language_drops_the_group(reads, tmp_path):
    held_out = "and it came to pass that the king went out of the city"
    write_rows(tmp_path / "test.parquet", pa.table({"id": ["t:1"], "group": ["g"], "lang": ["en"], "text": [held_out]}), "multiway")
    reads("multiway", multiway({"1": {"de": "und der König", "en": held_out + "!"}, "2": {"de": "und so", "en": "another sentence"}}), 1)
    filters = [{"not_near": {"corpora": ["held"], "threshold": 0.8}}]
    counts = build_corpus("c", entry("multiway", filters, ("de", "en")), {}, {"held": tmp_path / "test.parquet"}, tmp_path / "all.parquet")
    assert read_rows(tmp_path / "all.parquet")["group"].to_pylist() == ["2", "2"]
    assert counts["filters"] == [{"filter": "not_near", "before": 4, "after": 2}]


def test_rows_and_groups_of_each_class_are_counted(reads, tmp_path):
    made = [("a", 0.0, "x"), ("b", 1.0, "x"), ("c", 0.0, "x"), ("d", 0.0, "y")]
    reads("labelled", [{"id": f"c:{t}", "a_lang": "en", "a_text": t, "label": [label], "group": group} for t, label, group in made])
    counts = build_corpus("c", entry("labelled", labels=["no", "yes"]), {}, {}, tmp_path / "all.parquet")
    assert counts["labels"] == {"rows": {"no": 3, "yes": 1}, "groups": {"no": 2, "yes": 1}}
    assert (counts["groups"], counts["rows_per_language"]) == (2, {"en": 4})


@pytest.mark.parametrize("step", [1, -1], ids=["ascending", "descending"])
def test_ids_beyond_memory_are_unique_too(reads, tmp_path, monkeypatch, step):
    monkeypatch.setattr(build.dedup, "IN_MEMORY", 4)
    monkeypatch.setattr(rows, "ROW_GROUP", 3)
    made = mono([str(n) for n in range(20)])[::step]
    reads("mono", made)
    assert build_corpus("c", entry("mono"), {}, {}, tmp_path / "en.parquet")["rows"] == 20
    for repeated in (2, 15):  # one that was held in memory, one that was not
        for twice in ([*made, made[repeated]], [*made[:repeated], *made[repeated - 1 :]]):  # at the end, and next to itself
            reads("mono", twice)
            with pytest.raises(InputError, match=r"c: .*unique"):
                build_corpus("c", entry("mono"), {}, {}, tmp_path / "no.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["en.parquet"]


def test_errors_leave_nothing_behind(reads, tmp_path):
    out = tmp_path / "out" / "en.parquet"
    reads("mono", mono(["one", "two"]))
    with pytest.raises(InputError, match=r"c: .*2 rows.*length 2 → 0"):
        build_corpus("c", entry("mono", [{"length": {"min_words": 5}}]), {}, {}, out)
    with pytest.raises(InputError, match=r"c: filters: .*'lenght'.*'length'"):
        build_corpus("c", entry("mono", [{"lenght": {}}]), {}, {}, out)
    reads("mono", [*mono(["one"]), *mono(["two"])])
    with pytest.raises(InputError, match=r"c: .*'c:f:1'.*unique"):
        build_corpus("c", entry("mono"), {}, {}, out)
    reads("mono", [{**mono(["one"])[0], "id": None}])
    with pytest.raises(InputError, match=r"c: .*no id"):
        build_corpus("c", entry("mono"), {}, {}, out)
    reads("mono", mono(["one", ""]))
    with pytest.raises(InputError, match=r"c: .*'c:f:2'.*empty"):
        build_corpus("c", entry("mono"), {}, {}, out)
    assert list(out.parent.iterdir()) == []


def test_a_map_that_empties_a_text_drops_its_row(reads, tmp_path):
    reads(
        "bitext",
        [
            {"id": "c:1", "a_lang": "en", "a_text": "hi", "b_lang": "de", "b_text": "\u200b"},
            {"id": "c:2", "a_lang": "en", "a_text": "hi", "b_lang": "de", "b_text": "na"},
        ],
    )
    counts = build_corpus("c", entry("bitext", [{"punctuation": {}}], ("de", "en")), {}, {}, tmp_path / "x.parquet")
    assert counts["rows"] + (counts["filters"][0]["before"] - counts["filters"][0]["after"]) == 2
    assert all(read_rows(tmp_path / "x.parquet")["b_text"].to_pylist())


def test_what_a_reader_leaves_out_is_counted(tmp_path):
    """PAWS-X's placeholder NS on either side, and a side that is empty."""
    lines = ["Ein Satz\tEin Satz, neu\t1", "NS\tEin Satz\t0", "Ein Satz\tNS\t0", "\tEin Satz\t0", "Noch einer\tNoch einer, NS\t1"]
    (tmp_path / "dev-de.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    options = {"kind": "labelled", "columns": {"1": "a_text", "2": "b_text", "3": "label"}, "skip": {"1": ["NS"], "2": ["NS"]}}
    given = {**entry("labelled", options={**options, "skip_empty": True}), "reader": "tsv", "langs": ["de"], "filters": []}
    counts = build_corpus("c", given, {"dev-de.tsv": tmp_path / "dev-de.tsv"}, {}, tmp_path / "c.parquet")
    assert counts["left_out"] == {"skipped": 2, "empty": 1}
    assert (counts["read"], counts["rows"]) == (2, 2)
