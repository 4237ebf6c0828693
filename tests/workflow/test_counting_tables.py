"""Tables that count corpora and benchmarks: no encoder is needed for them, and on stand-ins they are built whole."""

import csv
import shutil

import pytest


def test_nothing_is_trained_for_a_table_that_counts(pristine):
    wanted = "targets=[moco_bert_table7,emma_x_table7,emma_x_table8,emma_x_table9]"
    jobs = pristine.planned(config=("papers=[moco_bert,emma_x]", wanted))
    rules = {rule for rule, _ in jobs}
    assert {"build_corpus", "build_evaluation", "build_examples", "count_rows", "make_table"} <= rules
    assert not rules & {"train_system", "embed", "score", "prepare_encoder"}
    assert sum(rule == "build_corpus" for rule, _ in jobs) > 260  # all languages of Table 7


@pytest.mark.long
def test_flores_is_counted_sentence_by_sentence_and_article_by_article(untouched):
    untouched.run(config=("papers=[emma_x]", "targets=[emma_x_table8]"))
    with open(untouched.results / "tables" / "emma_x_table8.csv", encoding="utf-8") as file:
        cells = {(row["row"], row["column"]): row for row in csv.DictReader(file)}
    ours = {place: float(row["ours"]) for place, row in cells.items() if row["ours"]}
    assert (ours["All", "Sentences"], ours["All", "Articles"]) == (24, 4)  # twelve lines a split, three an article
    assert ours["All", "Sentences an article"] == 6
    assert sum(ours[name, "Sentences"] for name in ("WikiNews", "WikiJunior", "WikiVoyage")) == 24
    assert ours["All", "Words a sentence"] > 1
    assert cells["All", "Sentences"]["published"] == "3001"
    assert "842" in (untouched.results / "tables" / "emma_x_table8.md").read_text(encoding="utf-8")

    # Counts lie among the scores, which suffice for a table on another machine.
    for folder in untouched.results.iterdir():
        if folder.name != "scores":
            shutil.rmtree(folder)
    shutil.rmtree(untouched.results.parent / "downloads", ignore_errors=True)
    table = "results/quick/tables/emma_x_table8.md"
    assert untouched.planned(table, config=("papers=[emma_x]",)) == [("make_table", "table=emma_x_table8")]
