"""Verdicts on claims, against hand-made scores, and the claims of the catalog."""

import csv
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from crosslign.config.claims import claim_scores, claims_recipe, resolve_claims
from crosslign.config.load import load_project
from crosslign.errors import InputError
from crosslign.files import write_json, write_rows
from crosslign.paths import CATALOG, PUBLISHED, resamples_path
from crosslign.reporting.claims import as_csv, as_html, as_markdown, build_claims, judge, ledger

ROOT = Path(__file__).resolve().parents[3]
PAPERS = ["msimcse", "moco_bert", "scl", "mpcl", "emma_x"]
SELECT = {"task": "t", "subset": "de", "metric": "accuracy", "protocol": "", "direction": ""}


def rewrite(results, score, values):
    """Give a score file other resamples."""
    row = {key: [SELECT[key]] for key in ("subset", "metric", "protocol", "direction")}
    write_rows(resamples_path(results / score), pa.table({**row, "values": [list(values)]}), "resamples")


@pytest.fixture
def compared(tmp_path):
    """Return a comparison of two rows by the scores of their seeds, whose items vary by 1 point of each run."""
    items = {name: np.random.default_rng(seed).normal(size=4000) * 0.01 for seed, name in enumerate("ab")}

    def cells(name, values, seed):
        files = []
        for number, value in enumerate(values):
            path = tmp_path / "scores" / f"{name}{number}.json"
            record = {**SELECT, "eval": "t", "value": value, "seed": number if seed else None, "n_items": 9, "run_id": name}
            write_json(path, {"records": [record]})
            rewrite(tmp_path, path, value + items[name])
            files.append(str(path.relative_to(tmp_path)))
        return [{"scores": files, "select": SELECT}]

    def of(a, b, sign=1, seed=True):
        sides = {side: {"row": name, "place": at, "cells": cells(name, values, seed)}
                 for at, (side, name, values) in enumerate((("better", "a", a), ("worse", "b", b)))}  # fmt: skip
        return {"table": "t", "columns": ["x"], "places": [0], "sign": sign, "scale_by": 100, **sides}

    return of


def test_verdicts_follow_the_interval_of_the_difference(compared, tmp_path):
    """Untrained: the difference varies by the items alone, sqrt(2) points, so that 2.8 points show."""
    found = [judge(compared([0.5 + gain], [0.5], seed=False), tmp_path) for gain in (0.04, 0.01, -0.04)]
    assert [one.verdict for one in found] == ["supported", "undecided", "refuted"]
    assert found[0].smallest == pytest.approx(1.96 * 2**0.5, rel=0.03)
    assert found[0].difference == pytest.approx(4)
    assert found[1].high == pytest.approx(1 + found[1].smallest)
    assert found[0].files == ("scores/a0.json", "scores/b0.json")


def test_seeds_that_differ_widen_the_interval_and_one_seed_is_said(compared, tmp_path):
    wide = judge(compared([0.50, 0.60, 0.55], [0.45, 0.55, 0.50]), tmp_path)
    assert wide.verdict == "undecided"
    assert wide.smallest > 8
    assert "one seed" in judge(compared([0.9], [0.5]), tmp_path).note


def test_where_less_is_better_the_sign_turns(compared, tmp_path):
    found = judge(compared([0.40], [0.50], sign=-1, seed=False), tmp_path)
    assert (found.verdict, found.difference) == ("supported", pytest.approx(10))


def test_a_rounding_error_supports_nothing_and_resamples_without_values_decide_nothing(compared, tmp_path):
    """Equal systems, of which one's score is the mean of three; then one whose resamples are not defined."""
    equal = compared([0.1 + 0.2], [0.3], seed=False)
    for side in ("better", "worse"):
        rewrite(tmp_path, equal[side]["cells"][0]["scores"][0], np.full(4000, 0.3))
    assert judge(equal, tmp_path).verdict == "undecided"
    undefined = compared([0.5], [0.3], seed=False)
    rewrite(tmp_path, undefined["better"]["cells"][0]["scores"][0], np.where(np.arange(4000) < 2500, np.nan, 0.5))
    found = judge(undefined, tmp_path)
    assert (found.verdict, found.smallest, found.note) == ("undecided", None, "too few of the resamples are defined")
    beyond = compared([0.5], [0.3], seed=False)  # one resample in a thousand lies beyond what float32 holds
    rewrite(tmp_path, beyond["better"]["cells"][0]["scores"][0], np.where(np.arange(4000) % 1000, 0.5, np.inf))
    found = judge(beyond, tmp_path)
    assert (found.verdict, found.smallest) == ("supported", pytest.approx(1.96, rel=0.05))


def test_what_was_not_run_says_why(compared, tmp_path):
    assert judge({"table": "t", "reason": "no public weights"}, tmp_path).note == "no public weights"
    gone = compared([0.5], [0.5])
    (tmp_path / "scores" / "b0.json").unlink()
    assert judge(gone, tmp_path).verdict == "not run"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    results = str(tmp_path_factory.mktemp("results"))
    return load_project(
        ROOT, {"scale": "paper", "papers": [*PAPERS, "contest"], "targets": ["contest_parallel", "claims"], "results": results}
    )


def test_each_paper_has_eight_claims_or_more_with_a_place_and_what_could_explain_a_refutation(project):
    claims = resolve_claims(project)
    assert min(sum(claim["paper"] == paper for claim in claims) for paper in PAPERS) >= 8
    assert all(claim["place"] and claim["could_explain"] for claim in claims)
    assert {claim["paper"] for claim in claims if "equal" in claim} == set(PAPERS)


def test_published_differences_are_those_of_the_printed_figures_and_favour_what_is_claimed(project):
    recipe = claims_recipe(project)
    lines = ledger(recipe["claims"], recipe["tables"], project.paths.results, CATALOG / PUBLISHED)
    published = {line["claim"]["id"]: line["published"] for line in lines}
    assert published["MBC-momentum"] == pytest.approx(((76.20 + 0.01) + 93.14) / 2)  # table 5: -0.01 and 0.00 without momentum
    assert not {name: value for name, value in published.items() if value is not None and value <= 0}
    assert published["MSC-infoxlm"] == pytest.approx(((82.0 + 78.0) - (77.8 + 67.3)) / 2)  # its figure of BUCC is not printed
    assert None not in {line["published"] for line in lines if line["kind"] == "own"}
    assert {line["verdict"].verdict for line in lines} == {"not run"}


def test_verdicts_need_the_scores_of_the_tables_that_the_run_covers(project):
    runs = {path.relative_to(project.paths.results / "scores").parts[0] for path in claim_scores(project)}
    assert {"CT-MB-s42", "CT-MB-m0-s46", "CT-EX-p2-s44"} <= runs
    assert not {run for run in runs if run.startswith(("MS-", "MB-", "MP-", "EX-"))}


def test_the_ledger_is_written_in_three_forms_with_links_to_lineage(compared, tmp_path):
    claim = {
        "id": "C-1",
        "paper": "p",
        "says": "A <beats> B.",
        "place": "table 1",
        "published": 2.5,
        "equal": compared([0.54], [0.5], seed=False),
    }
    out = {form: tmp_path / f"claims.{form}" for form in ("md", "csv", "html")}
    counts = build_claims({"claims": [claim], "tables": {}, "title": "T"}, tmp_path, tmp_path, out)
    assert counts == {"supported": 1}
    (row,) = csv.DictReader(io.StringIO(out["csv"].read_text(encoding="utf-8")))
    assert (row["verdict"], row["better"], float(row["published"])) == ("supported", "a", 2.5)
    assert "54.0 and 50.0: +4.0 [+1." in out["md"].read_text(encoding="utf-8")
    page = out["html"].read_text(encoding="utf-8")
    assert 'href="scores/a0.json.lineage.json"' in page
    assert "A &lt;beats&gt; B.</td><td>supported" in page
    assert "Refuted: it lies below zero" in page  # what the verdicts mean
    assert all(form for form in (as_csv([]), as_markdown([], "T"), as_html([], "T")))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"table": "msimcse_table"}, r"claims\.MSC-more-languages\.own\.table: .*'msimcse_table'"),
        ({"better": "MS-XB"}, r"own\.better: .*'MS-XB'.*'MS-XA'"),
        ({"columns": ["BUCK"]}, r"own\.columns: .*'BUCK'.*'BUCC'"),
    ],
)
def test_a_claim_of_what_there_is_not_is_refused(project, change, said):
    from dataclasses import replace

    from crosslign.config.claims import check_claims

    claim = project.claims["MSC-more-languages"]
    wrong = replace(project, claims={"MSC-more-languages": {**claim, "own": {**claim["own"], **change}}})
    with pytest.raises(InputError, match=said):
        check_claims(wrong, {})
