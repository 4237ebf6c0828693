"""One cell explained: the whole chain by hand-made lineage, and a row or column that is not the one that was meant."""

import json
import re
from dataclasses import replace

import pytest
from ruamel.yaml import YAML
from small_chain import MATRIX, ROOT, RUN, SCORE, TABLES, build_chain, made, record

from crosslign.config.baselines import unique_names
from crosslign.config.load import load_project
from crosslign.errors import InputError
from crosslign.files.lineage import checksum
from crosslign.paths import Paths
from crosslign.provenance.chain import chain
from crosslign.provenance.explain import explain, find_cell


@pytest.fixture(scope="module")
def quickstart():
    return load_project(ROOT, {"scale": "laptop", "results": "results", "papers": ["quickstart"]})


@pytest.fixture
def project(tmp_path, quickstart):
    found = replace(quickstart, paths=Paths(tmp_path / "results", "laptop"))
    build_chain(found.paths.results)
    return found


def test_the_chain_ends_at_the_download_that_lies_outside_of_the_results(project):
    links = chain(project.paths.results, [SCORE])
    assert [(link.kind, link.path) for link in links] == [
        ("scores", SCORE),
        ("embeddings", MATRIX),
        ("system", f"systems/{RUN}"),
        ("examples", "examples/verses.parquet"),
        ("evaluation", "corpora/quickstart"),
        ("corpus", "corpora/c/all.parquet"),
        ("download", "../downloads/bible/verses.whl"),
    ]
    assert links[3].made_of == ["corpora/quickstart", "corpora/c/all.parquet"]
    assert list(links[4].files) == TABLES


def test_a_translation_model_that_lies_beside_the_downloads_is_part_of_the_chain(tmp_path):
    results = tmp_path / "laptop"
    made(tmp_path, "models/org--de@main", "translation_model", "fetch_model", [], {"name": "org/de"})
    made(results, "views/v/all.parquet", "view", "build_view", ["../models/org--de@main"], {"view": "v"})
    view, model = chain(results, ["views/v/all.parquet"])
    assert (model.kind, model.path, model.lineage["recipe"]) == ("translation_model", "../models/org--de@main", {"name": "org/de"})
    assert view.made_of == [model.path]


def test_what_has_changed_since_is_not_taken_for_what_was_read(project):
    sidecar = project.paths.root / "downloads" / "bible" / "verses.whl.lineage.json"
    other = json.loads(sidecar.read_text())
    sidecar.write_text(json.dumps({**other, "artefact": {**other["artefact"], "sha256": "of other bytes"}}))
    last = chain(project.paths.results, [SCORE])[-1]
    assert (last.kind, last.path, last.lineage) == ("input", "../downloads/bible/verses.whl", None)


def test_the_whole_chain_is_printed_with_its_hashes_recipes_and_commands(project):
    out = explain(project, "quickstart", "QS-P", "xx→en", ["--config", "scale=laptop"], full=True)
    results = project.paths.results
    assert "ours       50.0 (95 % interval 25.0 to 75.0)" in out
    assert "xx→en: 0.5 on 320 items" in out
    assert "direction xx2en" in out
    for path in (
        SCORE,
        MATRIX,
        f"systems/{RUN}",
        "examples/verses.parquet",
        "corpora/c/all.parquet",
        *TABLES,
        "../downloads/bible/verses.whl",
    ):
        assert checksum(results / path) in out, path
    for rule in ("score", "embed", "train_system", "build_examples", "build_evaluation", "build_corpus", "fetch"):
        assert f"made by   {rule}@3, code code-of-{rule}, commit " in out
    forced = re.findall(r"snakemake --cores all --config scale=laptop --forcerun (\S+) -- (\S+)", out)
    assert [made for made, _ in forced] == [target for _, target in forced]
    assert f"{project.paths.root}/downloads/bible/verses.whl" in dict(forced)
    assert len(forced) == out.count("made by   ")
    for fact in ("learning_rate: 0.0003", "package: bible", "{read: 9, rows: 7}", "licence    CC0-1.0", "versions   ", "torch "):
        assert fact in out, fact


def test_a_first_look_has_a_line_for_each_record_and_artefact_and_says_how_to_see_the_rest(project):
    lines = explain(project, "quickstart", "QS-P", "xx→en").splitlines()
    assert len(lines) < 24
    assert [line for line in lines if line.startswith("  xx→en: 0.5 on 320 items") and line.endswith(f"run {RUN}")]
    chained = [line.split()[1:3] for line in lines if re.match(r" +\[\d+\] ", line)]
    assert [path for _, path in chained] == [link.path for link in chain(project.paths.results, [SCORE])]
    assert "--full" in lines[-1]


def test_a_first_look_shows_some_of_many_artefacts_of_a_kind_and_counts_the_others(project):
    results = project.paths.results
    more = [f"embeddings/{RUN}/last/mean_t64_bf16/{name}.npy" for name in "abcdefg"]
    for path in more:
        made(results, path, "embeddings", "embed", [f"systems/{RUN}"], {})
    made(results, SCORE, "scores", "score", [MATRIX, *more], {}, text={"records": [record(0.5, "xx2en")]})
    lines = explain(project, "quickstart", "QS-P", "xx→en").splitlines()
    at = next(number for number, line in enumerate(lines) if line.strip() == "and 4 more")
    assert [line.split()[1] for line in lines[at - 4 : at]] == ["embeddings"] * 4
    assert "from [2-9]" in next(line for line in lines if f" {SCORE} " in line)


def test_names_are_found_without_arrows_too(project):
    out = explain(project, "quickstart", "QS-P", "xx->en")
    assert out == explain(project, "quickstart", "QS-P", "xx→en")
    assert re.search(r"^column .*xx→en$", out, flags=re.MULTILINE)


def test_a_recipe_is_printed_as_yaml_that_reads_back(project):
    lines = explain(project, "quickstart", "QS-P", "xx→en", full=True).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("[3] systems"))
    recipe = next(line for line in lines[start:] if line.startswith("    recipe"))
    assert YAML(typ="safe").load(recipe.removeprefix("    recipe")) == {"train": {"learning_rate": 3e-4, "steps": 8}}


def test_a_cell_that_is_not_built_names_the_command_that_builds_it(project):
    with pytest.raises(InputError, match="snakemake --cores all --config scale=laptop -- ") as caught:
        explain(project, "quickstart", "QS-E", "xx→en", ["--config", "scale=laptop"])
    assert "Run snakemake --cores all --config scale=laptop -- " in caught.value.do
    assert caught.value.do.endswith("tables/quickstart.md")


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    settings = {"scale": "quick", "results": str(tmp_path_factory.mktemp("none")), "papers": ["msimcse", "mpcl", "moco_bert"]}
    return load_project(ROOT, settings)


def test_a_row_is_found_by_its_system_or_under_its_heading_where_several_have_its_label(papers):
    with pytest.raises(InputError, match=r"2 .*'DuEAM'") as caught:
        find_cell(papers, "msimcse_table1", "DuEAM", papers.tables["msimcse_table1"]["columns"][0]["label"])
    groups = [row["group"] for row in papers.tables["msimcse_table1"]["rows"] if row["label"] == "DuEAM"]
    column = papers.tables["msimcse_table1"]["columns"][0]["label"]
    assert all(f"'{group}: DuEAM'" in caught.value.do for group in groups)
    assert [find_cell(papers, "msimcse_table1", f"{group}: DuEAM", column).row["group"] for group in groups] == groups


def test_a_row_is_found_as_sorted_html_shows_it_even_where_its_label_is_its_own(papers):
    found = find_cell(papers, "msimcse_table1", "Fully Supervised: LaBSE", "BUCC")
    assert found.row["system"] == "labse"
    assert find_cell(papers, "mpcl_table7", "mBERT: + Single (MP-mbert-single-main)", "STS17: STS17 in").row["group"] == "mBERT"


def test_every_name_of_a_csv_finds_its_cell(papers):
    """`row` and `column` of a table's CSV are what a reader has before him."""
    for name, table in papers.tables.items():
        columns = unique_names(table["columns"])
        places = [(row, columns[0]) for row in unique_names(table["rows"])] + [(unique_names(table["rows"])[0], name) for name in columns]
        found = [find_cell(papers, name, row, column).numbers for row, column in places]
        assert found == [(at, 0) for at in range(len(table["rows"]))] + [(0, at) for at in range(len(columns))]


def test_a_name_that_fits_two_rows_is_answered_by_names_that_fit_one(papers):
    table, column = "msimcse_table3", papers.tables["msimcse_table3"]["columns"][0]["label"]
    with pytest.raises(InputError, match=r"2 .*'xlm-r'") as caught:
        find_cell(papers, table, "xlm-r", column)
    assert "'XLM-R'; 'XLM-R, block 1 and last'" in caught.value.do
    assert find_cell(papers, table, "XLM-R, block 1 and last", column).row["readout"] == "first1_last"


def test_a_figure_is_named_as_one(papers):
    with pytest.raises(InputError, match=r"crosslign explain: mpcl_figure4 .*figure"):
        find_cell(papers, "mpcl_figure4", "any", "any")


def test_a_published_figure_alone_is_shown_with_its_reason_and_its_file(papers):
    lines = explain(papers, "msimcse_table1", "XLM-E", "Tatoeba-14").splitlines()
    assert any(line.startswith("ours       –: no public weights: microsoft/unilm") for line in lines)
    assert "published  72.3 (resources/published/msimcse_table1.csv)" in lines


def test_a_cell_is_shown_with_the_footnotes_of_its_row_its_column_and_its_table(papers):
    lines = explain(papers, "mpcl_table1", "LASER Artetxe and Schwenk (2019)", "BUCC").splitlines()
    notes = [line.removeprefix("note").strip() for line in lines if line.startswith("note ")]
    assert any(note.startswith("LaBSE's 93.5 is of the training files") for note in notes)
    assert any(note.startswith("Checkpoint chosen by another test set") for note in notes)
    assert not any("cased model" in note for note in notes)
    lines = explain(papers, "msimcse_table3", "Fully Supervised: LASER", "ar-ar").splitlines()
    assert sum("Under a wrong column" in line for line in lines) == 1


def test_a_setting_of_a_recipe_needs_no_scores(papers):
    table = papers.tables["moco_bert_table9"]
    row = next(row for row in table["rows"] if "setting" in row)
    column = next(column for column in table["columns"] if "setting_of" in column)
    value = next(line for line in explain(papers, "moco_bert_table9", row["label"], column["label"]).splitlines() if "ours" in line)
    assert value.split()[1] not in ("–", "")


def test_each_artefact_stands_once_and_before_what_it_was_made_of(project):
    results = project.paths.results
    made(results, "tables/quickstart.md", "table", "make_table", [SCORE, f"systems/{RUN}", MATRIX], {})
    links = chain(results, ["tables/quickstart.md", SCORE])
    paths = [link.path for link in links]
    assert len(paths) == len(set(paths)) == 8
    assert all(paths.index(link.path) < paths.index(part) for link in links for part in link.made_of)


def test_an_average_shows_every_record_that_it_is_made_of(project):
    into = {"label": "into", "task": "tatoeba_bible", "subset": "avg", "metric": "accuracy", "direction": "xx2en"}
    columns = [into, {**into, "label": "out of", "direction": "en2xx"}, {"label": "mean", "mean_of": ["into", "out of"]}]
    table = {"title": "Both ways", "columns": columns, "rows": [{"label": "verses", "system": "QS-P"}]}
    out = explain(replace(project, tables={"t": table}, paper_of={**project.paper_of, "t": "p"}), "t", "verses", "mean")
    assert "ours       37.5" in out.splitlines()
    assert "mean of    the columns into, out of" in out
    assert "into: 0.5 on 320 items" in out
    assert "out of: 0.25 on 320 items" in out
    assert len([line for line in out.splitlines() if SCORE in line]) == 1


def test_an_average_of_averages_is_explained_as_the_table_shows_it(project):
    into = {"task": "tatoeba_bible", "subset": "avg", "metric": "accuracy", "direction": "xx2en"}
    both = {"label": "both", "mean_of": [into, {**into, "direction": "en2xx"}]}
    table = {"title": "T", "columns": [{"label": "all", "mean_of": ["both", "into"]}, both, {"label": "into", **into}]}
    table["rows"] = [{"label": "verses", "system": "QS-P"}]
    out = explain(replace(project, tables={"t": table}, paper_of={**project.paper_of, "t": "p"}), "t", "verses", "all")
    assert "ours       43.8" in out.splitlines()  # the mean of 37.5 and 50, not of 50, 25 and 50
    assert [line.split(" on ")[0].strip() for line in out.splitlines() if " on 320 items" in line] == [
        "both: 0.5",
        "both: 0.25",
        "into: 0.5",
    ]


def test_a_gap_is_explained_as_the_table_shows_it(project):
    column = {"label": "into", "task": "tatoeba_bible", "subset": "deu", "metric": "accuracy", "direction": "xx2en"}
    table = {"title": "T", "columns": [column], "rows": [{"label": "verses", "system": "QS-P"}], "print": {"gaps": "mark"}}
    marked = replace(project, tables={"t": table}, paper_of={**project.paper_of, "t": "p"})
    out = explain(marked, "t", "verses", "into")
    assert re.search(r"^ours       –: gap: 0 records fit .*subset deu.* in tatoeba_bible.json$", out, flags=re.MULTILINE)
    assert f"[1] scores     {SCORE}" in out
    with pytest.raises(InputError, match=": 0 records"):
        explain(replace(marked, tables={"t": {**table, "print": {}}}), "t", "verses", "into")


def test_scores_that_came_without_lineage_are_named_by_their_bytes(project):
    results = project.paths.results
    (results / f"{SCORE}.lineage.json").unlink()
    (link,) = chain(results, [SCORE])
    assert (link.kind, link.sha256) == ("input", {SCORE: checksum(results / SCORE)})
    out = explain(project, "quickstart", "QS-P", "xx→en", full=True)
    assert "outside this project: no lineage describes it" in out
    assert not re.search(r"^(versions|sha256) *$", out, flags=re.MULTILINE)


def test_a_score_that_was_changed_is_not_explained(project):
    file = project.paths.results / SCORE
    file.write_text(file.read_text().replace("0.5", "0.9"))
    with pytest.raises(InputError, match=r"tatoeba_bible\.json: .*lineage.*crosslign verify"):
        explain(project, "quickstart", "QS-P", "xx→en")
