"""The report: by paper, what each table shows and how far it is from the paper, stages, overlap and costs, from records alone."""

import re
from dataclasses import replace

import pytest
from small_report import RUN, VALUES, lineage, lineages, table, write_report, write_results

from crosslign.config.cells import table_files
from crosslign.files import read_json, write_json
from crosslign.reporting.headline import headline
from crosslign.reporting.layout import lay_out
from crosslign.reporting.markup import templates
from crosslign.reporting.readings import from_paper, seen
from crosslign.reporting.report import corpus_rows, decontamination_counts
from crosslign.reporting.run_records import run_facts, stage_times, system_costs
from crosslign.reporting.stage_graph import HEIGHT, WIDTH, draw_stages, layers, stage_edges, stage_graph


@pytest.fixture
def results(tmp_path):
    write_results(tmp_path)
    return tmp_path


def published(folder, figures):
    lines = [f",mA,t,{n},accuracy,{figure},higher" for n, figure in enumerate(figures)]
    (folder / "one.csv").write_text("\n".join(["group,model,task,subset,metric,value,direction", *lines, ""]), encoding="utf-8")


def test_the_distance_is_the_mean_absolute_difference_of_cells_that_have_both(results):
    published(results, [41.5, 40.5, 47.5])  # ours: 41.5 in each
    said = from_paper(lay_out(table("one", "p", "paper", quoted="A"), results, results))
    mean = (0 + 1 + 6) / 3
    assert f"Over the 3 cells that have both, ours differ from the published figures by {mean:.2f} points on average" in said
    assert said.endswith("at most by 6.00 (system A, language 2).")


def test_a_reduced_table_says_that_no_comparison_is_meant_and_shows_no_difference(results):
    published(results, [41.5, 40.5])
    reduced = lay_out(table("one", "p", "quick", quoted="A"), results, results)
    assert from_paper(reduced) == "2 cells have a published figure beside ours; at this scale they cannot be compared."
    assert {cell.delta for row in reduced.rows for cell in row.cells} == {""}
    full = lay_out(table("one", "p", "paper", quoted="A"), results, results)
    assert "by 0.50 points on average, at most by 1.00 (system A, language 1)" in from_paper(full)
    assert [cell.delta for cell in full.rows[0].cells[:3]] == ["+0.0", "+1.0", ""]


def test_what_we_see_counts_the_columns_that_a_system_wins(results):
    shown = lay_out(table("one", "p", "paper", quoted=""), results, results)
    assert seen(shown) == "24 of 24 cells have a value of ours. system B is best in 12 of the 12 columns in which systems differ."
    assert from_paper(shown) == ""  # nothing is published
    published(results, [41.5])
    other = {**table("one", "p", "paper", quoted="A"), "cells": [[{"reason": "not run"}] * 12, [{"reason": "not run"}] * 12]}
    assert from_paper(lay_out(other, results, results)) == "No cell has both a value of ours and a published figure."


def test_costs_add_up_the_seeds_of_a_system(results):
    costs = {cost.system: cost for cost in system_costs(lineages(results))}
    assert sorted(costs) == sorted(VALUES)
    assert (costs["A"].seeds, costs["A"].train_s, costs["A"].encode_s, costs["A"].score_s) == (2, 72.0, 72.0, 72.0)
    assert costs["A"].gpu_hours == pytest.approx(4 * RUN["wall_s"] / 3600)  # scoring is on the CPU
    assert costs["A"].peak_mb == 512.0


def test_costs_count_devices_and_the_parts_of_a_run_that_went_on(results):
    path = results / "systems" / "A-s1" / "lineage.json"
    lineage = read_json(path)
    lineage["run"] |= {"earlier_s": 100.0, "devices": 4}
    write_json(path, lineage)
    (cost,) = (cost for cost in system_costs(lineages(results)) if cost.system == "A")
    assert cost.train_s == 36 + 36 + 100
    assert cost.gpu_hours == pytest.approx((4 * 136 + 3 * 36) / 3600)


def test_a_job_with_several_artefacts_counts_once_and_takes_all_its_parts(results):
    """Its artefacts have the same lineage, but for themselves and the moment when each was written."""
    path = results / "corpora" / "c" / "all.parquet.lineage.json"
    one = read_json(path)
    other = {**one, "artefact": {**one["artefact"], "path": "corpora/c/items.parquet"}, "run": {**one["run"], "earlier_s": 4.0}}
    write_json(path.with_name("items.parquet.lineage.json"), other)
    times = stage_times(lineages(results))
    assert {stage: took.jobs for stage, took in times.items()} == {"fetch": 1, "build_corpus": 1, "train_system": 4, "embed": 4, "score": 4}
    assert (times["build_corpus"].seconds, times["embed"].seconds, times["embed"].peak_mb) == (40.0, 144.0, 512.0)


def test_the_graph_has_an_edge_for_each_kind_of_reading(results):
    words = stage_graph(lineages(results)).words
    assert words == ["fetch → build_corpus", "build_corpus → train_system", "train_system → embed", "embed → score"]


def test_the_graph_has_an_edge_from_downloads_that_scales_share(tmp_path):
    results = tmp_path / "laptop"
    write_results(results)
    (results / "downloads").rename(tmp_path / "downloads")
    sidecar = results / "corpora" / "c" / "all.parquet.lineage.json"
    write_json(sidecar, {**read_json(sidecar), "inputs": [{"path": "../downloads/w/a.whl", "sha256": ""}]})
    assert "fetch → build_corpus" in stage_graph(lineages(results, tmp_path / "downloads")).words


def test_the_graph_has_the_steps_of_a_users_own_mining(results):
    for name, content in (
        lineage("mined/m/source.parquet", "mine_texts"),
        lineage("mined/m/source.npy", "mine_embed", "mined/m/source.parquet"),
    ):
        write_json(results / name, content)
    assert "mine_texts → mine_embed" in stage_graph(lineages(results)).words


def test_layers_put_a_rule_below_all_that_it_reads():
    edges = {("a", "b"), ("b", "c"), ("a", "c"), ("x", "c")}
    assert layers("abcx", edges) == [["a", "x"], ["b"], ["c"]]
    assert stage_edges([{"artefact": {"path": "p"}, "rule": "r", "inputs": [{"path": "p"}, {"path": "from outside"}]}]) == set()


def test_the_page_asks_for_nothing_and_every_link_has_its_place(tmp_path):
    page = write_report(tmp_path, title="<script>alert(1)</script>").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert not re.findall(r'src="(?!data:)', page)
    links = set(re.findall(r'href="(?!#|data:)([^"]*)"', page))
    files = {f"tables/{name}.{form}" for name in ("one", "two") for form in ("html", "csv", "tex", "md")}
    assert links == files | {"overview.html"} | {f"scores/{system}-s{seed}.json" for system in VALUES for seed in (1, 2)}
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    for part in ("paper-first", "paper-second", "graph", "overlap", "cost", "licences"):
        assert f'id="{part}"' in page
    assert "Does it cross languages?" in page
    assert "<td>6 of 50</td>" in page
    assert "bucc (none expected)" in page


def test_licences_are_those_of_averages_too():
    table = {"cells": [[{"scores": ["a.json"]}, {"parts": [{"scores": ["b.json"]}, {"scores": ["c.json"]}]}, {"reason": "none"}]]}
    assert table_files(table) == {"a.json", "b.json", "c.json"}


def test_what_was_left_out_of_a_corpus_is_named_and_filters_that_dropped_nothing_are_folded():
    filters = [{"filter": "length", "before": 100, "after": 90}, {"filter": "script", "before": 90, "after": 90}]
    counts = {"read": 100, "rows": 80, "left_out": {"broken": 3, "empty": 2}, "filters": filters}
    plain = {"read": 7, "rows": 7, "filters": []}
    found = corpus_rows([lineage(name, "corpus", recipe={"corpus": name}, counts=c)[1] for name, c in (("c", counts), ("d", plain))])
    assert found[0]["left"] == [(3, "broken"), (2, "empty"), (10, "by length"), (10, "not in the sample")]
    others = {"learned": [], "switched": [], "overlap": [], "decontamination": []}
    page = templates().get_template("report_data.html").render(corpora=found, **others)
    first, second = (re.sub("<[^>]*>", "", row) for row in re.findall(r"<tr><td>.*</tr>", page))
    assert first == "c1053 broken, 2 empty, 10 by length, 10 not in the sample; none by script80"
    assert second == "d7none7"


def test_pairs_without_a_dropped_example_are_left_out():
    counts = {"bucc": {"dropped": 0, "pair_level": 0}, "sts": {"dropped": 2, "pair_level": 1}}
    one = lineage("e", "examples", recipe={"examples": "e"}, counts={"decontamination": {"evaluations": counts}})[1]
    assert decontamination_counts([one]) == [{"examples": "e", "corpus": "sts", "dropped": 2, "pair_level": 1}]


def test_the_head_says_when_at_which_commit_with_which_seeds_and_on_what(results):
    facts = run_facts([{**found, "versions": {"torch": "2"}} for found in lineages(results)])
    assert facts["Jobs"] == "14 jobs, 8 min 24 s of wall time"
    assert (facts["Started"], facts["Commit"], facts["Seeds"], facts["Computed on"]) == ("2026-01-01", "c0ffee", "1", "cpu, cuda:0")
    assert facts["Machine"] == "EPYC, 2 cores"
    assert "torch 2" in facts["Versions"]
    assert run_facts([]) == {"Jobs": "0 jobs, 0 s of wall time"}


def test_costs_are_named_as_tables_name_their_rows(tmp_path):
    assert 'system A <span class="soft">A</span>' in write_report(tmp_path).read_text(encoding="utf-8")


def test_the_headline_is_the_first_row_and_the_best_one_of_a_retrieval(results):
    shown = lay_out(table("one", "p", "paper", quoted=""), results, results)
    assert headline(shown).words == "Half: language 0: 41.5 for system A, 61.5 for system B."
    shown.columns[7]["group"] = "Retrieval"
    for value, (low, high) in ((0.2, (0.1, 0.9)), (0.1, (0.0, 0.3))):
        row = shown.rows[value < 0.2]
        row.cells[7].value.ours, row.cells[7].value.ci_low, row.cells[7].value.ci_high = value, low, high
    found = headline(shown)
    assert found.words == "Retrieval: language 7: 20.0 for system A, and no system lies above it."
    assert found.end == pytest.approx(90)
    assert [bar.interval for bar in found.bars] == [pytest.approx((10, 90)), pytest.approx((0, 30))]
    of_several_runs = shown.rows[1].cells[7].value
    of_several_runs.ci_low, of_several_runs.ci_high, of_several_runs.std = None, None, 0.2
    assert headline(shown).bars[1].interval == pytest.approx((0, 30))  # 0.1 - 0.2 and 0.1 + 0.2: the bar begins at 0
    assert headline(replace(shown, rows=shown.rows[:1])) is None


def drawn(path):
    """Return the points that a path of the graph leads through, its curves in small steps."""
    points, at = [], (0.0, 0.0)
    for command, numbers in re.findall(r"([MLC])([-\d. ]+)", path):
        given = [float(number) for number in numbers.split()]
        ends = [at, *zip(given[::2], given[1::2], strict=True)]
        steps = [step / 40 for step in range(41)]
        if command == "C":
            a, b, c, d = ends
            weights = [((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3) for t in steps]
            points += [tuple(w[0] * a[i] + w[1] * b[i] + w[2] * c[i] + w[3] * d[i] for i in (0, 1)) for w in weights]
        elif command == "L":
            points += [tuple(ends[0][i] + t * (ends[1][i] - ends[0][i]) for i in (0, 1)) for t in steps]
        at = ends[-1]
    return points


def test_no_edge_runs_behind_a_box_and_all_lie_within_the_drawing():
    edges = {("a", "b"), ("a", "x"), ("b", "c"), ("c", "d"), ("a", "c"), ("a", "d"), ("x", "d"), ("b", "e"), ("d", "e"), ("a", "e")}
    graph = draw_stages({}, edges)
    boxes = [(node.x, node.y) for node in graph.nodes]
    assert len(graph.paths) == len(edges)
    for x, y in (point for path in graph.paths for point in drawn(path)):
        assert not any(left < x < left + WIDTH and top + 0.5 < y < top + HEIGHT - 0.5 for left, top in boxes)
        assert 0 <= x <= graph.width
        assert 0 <= y <= graph.height
