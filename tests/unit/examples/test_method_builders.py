"""Builders of MPCL, SCL and EMMA-X on small corpora."""

import zlib
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosslign.errors import InputError
from crosslign.examples.builders.monolingual import shares
from crosslign.examples.shapes import shaped
from crosslign.files.rows import SCHEMAS
from crosslign.views.build import view_schema


def groups_set(*sizes):
    texts = [[f"{g} {m}" for m in range(size)] for g, size in enumerate(sizes)]
    ids = [[f"c:{text}" for text in group] for group in texts]
    table = shaped("groups", rows=pa.array(ids), texts=pa.array(texts), langs=pa.array([["en", "de", "fr", "es"][:s] for s in sizes]))
    return table.set_column(0, "id", pa.array([f"g:{n}" for n in range(len(sizes))]))


class TestDisjointPairs:
    def test_each_member_stands_in_one_pair_of_its_own_group(self, run):
        made = run("disjoint_pairs", others={"g": groups_set(4, 4, 3)})
        assert len(made) == 2 + 2 + 1
        seen = [text for row in made for text in (row["a_text"], row["b_text"])]
        assert len(set(seen)) == 10
        assert set(seen) < {f"{g} {m}" for g, size in enumerate((4, 4, 3)) for m in range(size)}
        for row in made:
            assert row["a_text"][0] == row["b_text"][0]
            assert row["a_lang"] != row["b_lang"]
            assert row["rows"] == [f"c:{row['a_text']}", f"c:{row['b_text']}"]

    def test_pairs_and_orientation_are_drawn(self, run):
        partners = {frozenset((r["a_lang"], r["b_lang"])) for r in run("disjoint_pairs", others={"g": groups_set(*[4] * 40)})}
        firsts = {r["a_lang"] for r in run("disjoint_pairs", others={"g": groups_set(*[4] * 40)})}
        assert len(partners) == 6
        assert firsts == {"en", "de", "fr", "es"}

    def test_other_shapes_are_refused(self, run):
        pairs = shaped("pairs", rows=pa.array([["x"]]), a_text=pa.array(["t"]), a_lang=pa.array(["en"]))
        with pytest.raises(InputError, match="groups"):
            run("disjoint_pairs", others={"p": pairs})


class TestNLIGroups:
    def test_a_premise_in_all_languages_with_a_contradiction_of_its_own(self, run, nli):
        made = run("nli_groups", [nli], langs=["en", "de", "fr"], per="premise")
        assert [row["texts"] for row in made] == [[f"p{n}-{lang}" for lang in ("en", "de", "fr")] for n in (1, 2, 3)]
        assert [row["langs"] for row in made] == [["en", "de", "fr"]] * 3
        hard = [row["c_text"].split("-") if row["c_text"] else None for row in made]
        assert hard[0][0] in {"k1", "k2"}
        assert hard[1][0] == "k3"
        assert hard[2] is None
        assert [row["c_lang"] for row in made] == [hard[0][1], hard[1][1], None]
        assert [len(row["rows"]) for row in made] == [4, 4, 3]

    def test_per_row_repeats_premises_and_draws_apart(self, run, nli):
        made = run("nli_groups", [nli], langs=["en", "de", "fr"], size=2)
        assert len(made) == 8
        assert all(len(set(row["langs"])) == 2 for row in made)
        assert len({tuple(row["langs"]) for row in made}) > 1
        assert not any(row["c_text"] for row in run("nli_groups", [nli], langs=["en", "de"], hard_negatives=False))

    def test_contradictions_and_their_languages_are_drawn(self, run, nli):
        seen = {run("nli_groups", [nli], langs=["en", "de", "fr"], per="premise", seed=seed)[0]["c_text"] for seed in range(40)}
        assert seen == {f"{name}-{lang}" for name in ("k1", "k2") for lang in ("en", "de", "fr")}

    def test_unique_sentences_are_premises_and_hypotheses_once_each(self, run, nli):
        made = run("nli_groups", [nli], langs=["en", "de", "fr"], per="unique_sentences", hard_negatives=False)
        sentences = ["p1", "p2", "p3", "e1", "k1", "e2", "k2", "n2", "e3", "k3", "e4"]
        assert [row["texts"] for row in made] == [[f"{name}-{lang}" for lang in ("en", "de", "fr")] for name in sentences]
        two = run("nli_groups", [nli], langs=["en", "de", "fr"], size=2, per="unique_sentences", hard_negatives=False)
        assert [{text.split("-")[0] for text in row["texts"]} for row in two] == [{name} for name in sentences]
        assert all(text.endswith(lang) for row in two for text, lang in zip(row["texts"], row["langs"], strict=True))
        with pytest.raises(InputError, match=r"x: .*`hard_negatives: false`, .*`per: premise`"):
            run("nli_groups", [nli], langs=["en", "de"], per="unique_sentences")

    @pytest.mark.parametrize("options", [{"per": "row"}, {"per": "unique_sentences", "hard_negatives": False}])
    def test_a_smaller_sample_is_part_of_a_larger_one(self, run, nli, options):
        found = {most: run("nli_groups", [nli], langs=["en", "de", "fr"], max_groups=most, **options) for most in (3, 6, 99, None)}
        assert (len(found[3]), len(found[6])) == (3, 6)
        assert all(row in found[6] for row in found[3])
        assert found[99] == found[None] != found[6]

    def test_too_many_languages_are_refused(self, run, nli):
        with pytest.raises(InputError, match=r"x: .*premise.* 4 .*`size`"):
            run("nli_groups", [nli], size=4)


class TestMonolingual:
    def corpus(self, rows, **sizes):
        return rows(
            "mono", [{"id": f"{lang}{n}", "lang": lang, "text": f"{lang} {n}"} for lang, size in sizes.items() for n in range(size)]
        )

    def test_small_languages_are_raised(self, run, rows):
        made = run("monolingual", [self.corpus(rows, en=1000, sw=10)], rows=500)
        by_lang = {lang: [row for row in made if row["a_lang"] == lang] for lang in ("en", "sw")}
        # 1000^0.3 = 7.943 and 10^0.3 = 1.995: 399.6 and 100.4 of 500 rows.
        assert {lang: len(found) for lang, found in by_lang.items()} == {"en": 400, "sw": 100}
        assert len({row["a_text"] for row in by_lang["en"]}) == 400
        assert all(sum(row["a_text"] == f"sw {n}" for row in by_lang["sw"]) == 10 for n in range(10))
        assert all(row["b_text"] is None for row in made)
        assert [row["a_lang"] for row in made] != sorted(row["a_lang"] for row in made)

    def test_what_a_share_leaves_out_is_drawn(self, run, rows):
        """Seven of ten, then ten and three of them once more: over seeds each sentence is left out, and each comes again."""
        corpus = self.corpus(rows, en=10)
        for size, once in ((7, 0), (13, 1)):
            drawn = [Counter(row["a_text"] for row in run("monolingual", [corpus], rows=size, seed=seed)) for seed in range(30)]
            assert all(sum(found.values()) == size for found in drawn)
            assert all({found[f"en {n}"] for n in range(10)} == {once, once + 1} for found in drawn)
            for n in range(10):
                assert {found[f"en {n}"] for found in drawn} == {once, once + 1}

    def test_exponent_one_keeps_the_sizes(self, run, rows):
        made = run("monolingual", [self.corpus(rows, en=30, sw=10)], exponent=1.0)
        assert sorted(row["a_text"] for row in made) == sorted([f"en {n}" for n in range(30)] + [f"sw {n}" for n in range(10)])

    def test_languages_without_a_row_are_refused(self, run, rows):
        with pytest.raises(InputError, match=r"x: .*rows: 1, languages: 2\. .*`rows`"):
            run("monolingual", [self.corpus(rows, en=5, sw=5)], rows=1)

    @given(
        st.dictionaries(st.text("abcdef", min_size=2, max_size=2), st.integers(1, 10**9), min_size=1),
        st.floats(0, 1),
        st.integers(0, 10**6),
    )
    def test_shares_add_up_and_stay_within_one_of_exact(self, sizes, exponent, count):
        made = shares(sizes, exponent, count)
        total = sum(size**exponent for size in sizes.values())
        assert sum(made.values()) == count
        assert all(abs(made[lang] - count * size**exponent / total) <= 1 + 1e-6 for lang, size in sizes.items())


class TestVersionPairs:
    def test_versions_are_paraphrases_and_neighbours_are_not(self, run, multiway):
        made = run("version_pairs", [multiway], langs=["en", "de", "fr"], views=2)
        assert len(made) == 30
        assert {row["label"][0] for row in made} == {0.0, 1.0}
        for row in made:
            a, b = (row[name].split() for name in ("a_text", "b_text"))
            assert a[1] == b[1] == "en"
            assert row["label"] == [float(a[0] == b[0])]
            assert int(b[0]) in (int(a[0]), (int(a[0]) + 1) % 30)
            assert row["a_text"] != row["b_text"]
            assert row["supervised"] is False
            assert len(row["views"]) == 2
            for view in row["views"]:
                assert view["kind"] == "full"
                assert view["lang"] in ("de", "fr")
                assert [view["a_text"].split()[:2], view["b_text"].split()[:2]] == [[a[0], view["lang"]], [b[0], view["lang"]]]
                assert view["lang"] == "fr" or view["a_text"] != view["b_text"]

    def test_the_share_of_negatives(self, run, multiway):
        assert {row["label"][0] for row in run("version_pairs", [multiway], negatives=0.0)} == {1.0}
        assert {row["label"][0] for row in run("version_pairs", [multiway], negatives=1.0)} == {0.0}

    def test_one_version_is_refused(self, run, multiway):
        with pytest.raises(InputError, match=r"x: .*versions.*'fr'"):
            run("version_pairs", [multiway], anchor="fr")


@pytest.fixture
def view_of():
    """Return a function that makes a view's table of labelled rows."""

    def make(kind, content):
        columns = {"kind": kind, "n": 1, "replaced": 1.0}
        return pa.Table.from_pylist([{**columns, **row} for row in content], schema=view_schema("labelled"))

    return make


class TestLabelledRows:
    def copies(self, nli, lang, target, keep=lambda n: True):
        rows = [row for n, row in enumerate(row for row in nli.to_pylist() if row["a_lang"] == lang) if keep(n)]
        changed = {"a_lang": target, "b_lang": target}
        return [{**row, **changed, "id": f"v:{row['id']}", "of": row["id"], "a_text": f"{row['a_text']}>{target}"} for row in rows]

    def test_rows_with_their_views_in_source_order(self, run, nli, view_of):
        views = {
            "v1": view_of("full", self.copies(nli, "en", "de")),
            "v2": view_of("full", self.copies(nli, "en", "fr", lambda n: n % 2 == 0)),
        }
        made = run("labelled_rows", {"n": nli, **views}, langs=["en"])
        assert [row["a_text"] for row in made] == [row["a_text"] for row in nli.to_pylist() if row["a_lang"] == "en"]
        assert [[view["lang"] for view in row["views"]] for row in made] == [["de", "fr"], ["de"]] * 4
        assert made[0]["views"][0] == {"kind": "full", "lang": "de", "a_text": "p1-en>de", "b_text": "e1-en"}
        assert made[0]["label"] == [0.0]
        assert made[0]["rows"] == ["n:en:0", "v:n:en:0", "v:n:en:0"]
        assert all(row["supervised"] for row in made)

    def test_code_switched_views_of_english_serve_aligned_rows(self, run, nli, view_of):
        switched = view_of("code_switch", self.copies(nli, "en", "fr"))
        full = view_of("full", self.copies(nli, "de", "en"))
        made = run("labelled_rows", {"n": nli, "cs": switched, "t": full}, langs=["de", "en"], supervised=["en"])
        by_lang = {lang: [row for row in made if row["a_lang"] == lang] for lang in ("de", "en")}
        assert [row["supervised"] for row in by_lang["de"] + by_lang["en"]] == [False] * 8 + [True] * 8
        for german, english in zip(by_lang["de"], by_lang["en"], strict=True):
            assert {view["kind"] for view in german["views"]} == {"full", "code_switch"}
            assert [view for view in german["views"] if view["kind"] == "code_switch"] == english["views"]
        assert by_lang["de"][0]["group"] != by_lang["en"][0]["group"]

    def test_a_partial_view_is_of_the_language_that_changed(self, run, nli, view_of):
        copies = [{**copy, "a_lang": "en", "a_text": copy["a_text"].split(">")[0]} for copy in self.copies(nli, "en", "de")]
        (view,) = run("labelled_rows", {"n": nli, "v": view_of("partial", copies)}, langs=["en"])[0]["views"]
        assert (view["kind"], view["lang"]) == ("partial", "de")

    def test_without_views_there_are_none(self, run, nli):
        assert {row["views"] for row in run("labelled_rows", [nli], langs=["fr"])} == {None}

    def test_a_view_of_something_else_is_refused(self, run, nli, view_of):
        stray = view_of("full", [{**copy, "of": "gone"} for copy in self.copies(nli, "en", "de")])
        with pytest.raises(InputError, match="'gone'"):
            run("labelled_rows", {"n": nli, "v": stray})


class TestTaughtPairs:
    PAIRS = (("cat", "en", "paka", "sw"), ("mbwa", "sw", "a dog", "en"), ("Hund", "de", "mbwa", "sw"), ("alone", "en", None, None))

    def made(self, run, **options):
        names = ("a_text", "a_lang", "b_text", "b_lang")
        columns = {name: pa.array(values, pa.string()) for name, values in zip(names, zip(*self.PAIRS, strict=True), strict=True)}
        rows = pa.array([[f"c:{n}"] for n in range(len(self.PAIRS))])
        return run("taught_pairs", others={"p": shaped("pairs", rows=rows, **columns)}, **options)

    def test_the_label_is_the_vector_of_the_side_that_the_teacher_reads(self, run):
        made = self.made(
            run, teach=lambda texts, langs: [[float(len(text)), float(lang == "en")] for text, lang in zip(texts, langs, strict=True)]
        )
        assert [row["label"] for row in made] == [
            [3.0, 1.0],
            [5.0, 1.0],
            [5.0, 1.0],
        ]  # "cat", "a dog", "alone"; German and Swahili: left out
        assert [row["rows"] for row in made] == [["c:0"], ["c:1"], ["c:3"]]
        assert [(row["a_text"], row["b_text"]) for row in made][:2] == [("cat", "paka"), ("mbwa", "a dog")]

    def test_without_a_teacher_it_is_refused(self, run):
        with pytest.raises(InputError, match=r"x: .*`teacher: minilm_l6`"):
            self.made(run)


class TestMarginPairs:
    """Vectors are drawn by the text: a sentence and its translation (the same number) are near, others are not; some are worse."""

    @staticmethod
    def teach(texts, langs):
        import numpy as np

        found = []
        for text in texts:
            kind, number = text.split()
            meaning = np.random.default_rng(int(number)).standard_normal(16)
            own = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(16)
            found.append((meaning + (1.5 if kind == "vague" else 0.3) * own).tolist())
        return found

    @staticmethod
    def sets(good=300):
        sides = [(f"wort {n}", f"word {n}") for n in range(200)] + [(f"wort {n}", f"word {n + 1000}") for n in range(200, 260)]
        texts = dict(zip(("a_text", "b_text"), map(pa.array, zip(*sides, strict=True)), strict=True))
        rows = pa.array([[f"c:{n}"] for n in range(len(sides))])
        pairs = shaped("pairs", rows=rows, a_lang=pa.array(["de"] * len(sides)), b_lang=pa.array(["en"] * len(sides)), **texts)
        clean = [
            {"id": f"g:{n}", "a_lang": "en", "a_text": f"good {n}", "b_lang": "de", "b_text": f"gut {n}"} for n in range(5000, 5000 + good)
        ]
        return pa.Table.from_pylist(clean, SCHEMAS["bitext"]), pairs

    def made(self, run, good=300, **options):
        clean, pairs = self.sets(good)
        return run("margin_pairs", {"g": clean}, others={"p": pairs}, **{"teach": self.teach, **options})

    def test_pairs_stay_whose_margin_is_that_of_good_ones(self, run):
        kept = [int(row["rows"][0].split(":")[1]) for row in self.made(run, keep=0.98)]
        right = [number for number in kept if number < 200]
        assert len(right) > 185
        assert len(kept) - len(right) < 6  # of 60 that are no translations

    def test_what_it_learned_is_told_with_the_pairs_on_both_sides(self, tmp_path):
        from crosslign.examples.build import build_examples
        from crosslign.files.rows import write_rows

        for name, table, kind in zip("gp", self.sets(), ("bitext", "pairs"), strict=True):
            write_rows(tmp_path / name, table, kind)
        entry = {"builder": "margin_pairs", "of": ["p"], "from": ["g"], "teacher": "me5_small", "keep": 0.9}
        sets = {"g": tmp_path / "g"}, {}, {"p": tmp_path / "p"}
        counts = build_examples("t", entry, *sets, tmp_path / "out.parquet", teach=self.teach)
        (border,) = counts["learned"]
        assert (border["measure"], border["rows"], border["kept"]) == ("margin of de and en", 260, counts["rows"])
        assert (len(border["inside"]), len(border["outside"])) == (20, 20)
        values = [row[0] for row in border["inside"]]
        assert values == sorted(values)
        assert values[0] >= border["bound"] > border["outside"][0][0]

    def test_the_margin_is_the_cosine_over_the_mean_to_both_sides_nearest(self):
        import numpy as np

        from crosslign.examples.builders import margin_pairs

        unit = {"a": [1.0, 0.0], "b": [0.0, 1.0], "x": [0.6, 0.8], "y": [0.8, 0.6], "z": [1.0, 0.0]}
        measure = margin_pairs._Margins((["a", "b"], ["x", "y", "z"]), lambda texts, _: [unit[text] for text in texts], ("de", "en"), 2)
        # a and x: 0.6; a is 0.8 from y and 1.0 from z (its own, x, does not count); x is 0.8 from b.
        assert np.allclose(measure((["a"], ["x"])), 0.6 / ((0.9 + 0.8) / 2), atol=1e-5)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"teach": None}, r"x: .*`teacher: me5_small`"),
            ({"good": 99}, r"x: .* 99 .* de and en\b"),
        ],
    )
    def test_what_cannot_be_measured_is_refused(self, run, options, message):
        with pytest.raises(InputError, match=message):
            self.made(run, **options)
