"""Two results folders: which cells moved, whether by more than chance, and what differs first behind them."""

import math
import re

import numpy as np
import pyarrow as pa
import pytest

from crosslign.errors import InputError
from crosslign.files import read_json, write_json, write_rows
from crosslign.files.lineage import Lineage, lineage_path
from crosslign.files.rows import SCHEMAS
from crosslign.paths import resamples_path
from crosslign.provenance.artefact_states import TOUCHED
from crosslign.provenance.causes import changed_keys
from crosslign.provenance.cell_states import cells
from crosslign.provenance.compare import compare, ranges_of, record_moves, table_moves, tables, welch
from crosslign.reporting import significance
from crosslign.tasks import records as score_records

CORPUS, TABLE = "corpora/c/items.parquet", "tables/t.csv"
RECIPE = {"train": {"learning_rate": 1e-5}, "terms": [{"temperature": 0.05}]}
NOISE = np.random.default_rng(0).normal(0, 0.01, 400)


def write(root, path, inputs, recipe, content, code="c0"):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        (root / path).write_text(content)
    else:
        write_json(root / path, content)
    Lineage("rule", recipe, [root / name for name in inputs], root, code=code).write(root / path, "kind")


def record(subset, value, width):
    ends = {"ci_low": value - width, "ci_high": value + width} if width and value is not None else {}
    known = {"subset": subset, "metric": "accuracy", "direction": "", "protocol": "", "value": value, "n_items": 10, **ends}
    return {**known, "eval": "task", "reason": "" if value is not None else "one class only", "run_id": "r", "status": "ok"}


def column(label, **more):
    return {"label": label, "group": "G", "task": "task", **more}


def resolved(runs):
    """A table of two rows: A (its runs) and B; columns x, y and their mean."""

    def cells(names):
        scores = [f"scores/{name}/task.json" for name in names]
        select = {"task": "task", "metric": "accuracy", "protocol": "", "direction": ""}
        return [*({"scores": scores, "select": {**select, "subset": s}} for s in ("x", "y")), {"mean_of": ["x", "y"]}]

    rows = [{"label": "A", "system": "A"}, {"label": "B", "system": "B"}]
    columns = [column("x"), column("y"), {"label": "mean", "group": "G", "mean_of": ["x", "y"]}]
    return {"id": "t", "title": "Title", "rows": rows, "columns": columns, "cells": [cells(runs), cells(["B-s1"])]}


def folder(root, x=(0.5,), width=0.05, recipe=RECIPE, corpus="text", code="c0", noise=None):
    """A corpus, systems A (a run for each value of x) and B made of it, their scores on x and y, and the table of them.

    Args:
        root: the results folder.
        x: values of A's runs on x; y is always 0.25, B 0.5 on both.
        width: of the intervals to either side; 0 for none.
        recipe: of A.
        corpus: content of the corpus.
        code: fingerprint of the jobs that train A.
        noise: added to A's value on x for its resamples.
    """
    write(root, CORPUS, [], {}, corpus)
    runs = [f"A-s{seed}" for seed in range(1, len(x) + 1)]
    for run, value in zip([*runs, "B-s1"], [*x, 0.5], strict=True):
        write(
            root, f"systems/{run}.bin", [CORPUS], recipe if run != "B-s1" else {}, f"{run} {recipe if run != 'B-s1' else ''} {corpus}", code
        )
        records = [record("x", value, width), record("y", 0.25 if run != "B-s1" else 0.5, width)]
        score = root / "scores" / run / "task.json"
        write(root, f"scores/{run}/task.json", [f"systems/{run}.bin", CORPUS], {}, {"records": records})
        if noise is not None:
            kept = [("x", value + noise), ("y", 0.25 + NOISE)]
            rows = [{"subset": s, "metric": "accuracy", "direction": "", "protocol": "", "values": v.astype(np.float32)} for s, v in kept]
            write_rows(resamples_path(score), pa.Table.from_pylist(rows, schema=SCHEMAS["resamples"]), "resamples")
    write(root, TABLE, [f"scores/{run}/task.json" for run in [*runs, "B-s1"]], resolved(runs), "csv")
    return root


def moved(before, after):
    return table_moves((before, tables(before)["t"]), (after, tables(after)["t"]))


def test_equal_folders_do_not_differ(tmp_path):
    lines = compare(folder(tmp_path / "a"), folder(tmp_path / "b")).splitlines()
    assert "6 cells of 1 table on both sides: 0 differ, 0 significantly" in lines
    assert lines[-1] == "no score differs"


def test_a_moved_cell_moves_its_average_by_hand(tmp_path):
    moves, cells = moved(folder(tmp_path / "a", x=(0.5,)), folder(tmp_path / "b", x=(0.53,)))
    assert cells == 6
    assert [(m.row, m.column, m.before, m.after, m.delta) for m in moves] == [
        ("A", "G: x", "50.00", "53.00", "+3.00"),
        ("A", "G: mean", "37.50", "39.00", "+1.50"),
    ]


@pytest.mark.parametrize(("value", "width", "significant"), [(0.7, 0.05, True), (0.55, 0.05, False), (0.7, 0, None)])
def test_without_seeds_and_resamples_the_intervals_decide(tmp_path, value, width, significant):
    move = moved(folder(tmp_path / "a", width=width), folder(tmp_path / "b", x=(value,), width=width))[0][0]
    assert (move.significant, move.test) == (significant, "intervals" if width else "")


def test_equal_items_are_tested_in_pairs(tmp_path):
    """Each resample moves by the same 0.02, far less than the intervals are wide: none of 400 lies on the other side of zero."""
    before, after = folder(tmp_path / "a", noise=NOISE), folder(tmp_path / "b", x=(0.52,), noise=NOISE)
    moves, _ = moved(before, after)
    assert [(m.column, m.test, m.significant) for m in moves] == [("G: x", "paired", True), ("G: mean", "paired", True)]
    assert moves[0].p_value == pytest.approx(2 / 401)


def test_a_difference_within_the_noise_of_the_items_is_none(tmp_path):
    other = np.random.default_rng(1).normal(0, 0.02, 400)
    move = moved(folder(tmp_path / "a", noise=NOISE), folder(tmp_path / "b", x=(0.505,), noise=other))[0][0]
    assert (move.test, move.significant) == ("paired", False)


def test_other_items_are_not_tested_in_pairs(tmp_path):
    move = moved(folder(tmp_path / "a", noise=NOISE), folder(tmp_path / "b", x=(0.52,), corpus="other text", noise=NOISE))[0][0]
    assert (move.test, move.significant) == ("intervals", False)


def test_several_seeds_are_compared_by_welchs_test(tmp_path):
    """t = 0.1 / sqrt(2 · 0.0004 / 3) with four degrees of freedom, whose distribution has a closed form."""
    before, after = (0.50, 0.52, 0.54), (0.60, 0.62, 0.64)
    t2 = 0.01 / (2 * 0.0004 / 3)
    p_value = 2 * (0.5 - 3 / 8 * math.sqrt(t2 / (1 + t2 / 4)) * (1 - t2 / 12 / (1 + t2 / 4)))
    assert welch(before, after) == pytest.approx(p_value, rel=1e-9)
    moves, _ = moved(folder(tmp_path / "a", x=before), folder(tmp_path / "b", x=after))
    assert (moves[0].test, moves[0].significant, moves[0].before, moves[0].after) == ("seeds", True, "52.00", "62.00")
    assert moves[0].p_value == pytest.approx(p_value)
    assert welch((0.5,), (0.6, 0.7)) is None


def test_a_changed_setting_is_named_with_both_values(tmp_path):
    recipe = {"train": {"learning_rate": 3e-5}, "terms": [{"temperature": 0.1}]}
    lines = compare(folder(tmp_path / "a"), folder(tmp_path / "b", x=(0.7,), recipe=recipe)).splitlines()
    assert lines[-2:] == [
        "[1] systems/A-s1.bin: recipe key terms[0].temperature, 0.05 → 0.1",
        "[2] systems/A-s1.bin: recipe key train.learning_rate, 1e-05 → 3e-05",
    ]
    assert re.search(r"^A +G: x +50\.00 +70\.00 +\+20\.00  yes, intervals +\[1-2\]$", "\n".join(lines), flags=re.MULTILINE)


def test_a_changed_corpus_is_named_with_its_hashes_and_not_what_hangs_on_it(tmp_path):
    before, after = folder(tmp_path / "a"), folder(tmp_path / "b", x=(0.7,), corpus="other text")
    (before / (CORPUS + ".lineage.json")).unlink()
    (after / (CORPUS + ".lineage.json")).unlink()
    hashes = [read_json(lineage_path(root / "systems/A-s1.bin"))["inputs"][0]["sha256"][:12] for root in (before, after)]
    text = compare(before, after)
    assert text.splitlines()[-1] == f"[1] {CORPUS}: different bytes, sha256 {hashes[0]} → {hashes[1]}"
    assert "[2]" not in text


def test_changed_code_and_versions_are_named_once(tmp_path):
    before, after = folder(tmp_path / "a", x=(0.5, 0.6)), folder(tmp_path / "b", x=(0.7, 0.9), code="c1", recipe={**RECIPE, "note": "n"})
    for sidecar in after.rglob("*.lineage.json"):
        content = read_json(sidecar)
        write_json(sidecar, {**content, "versions": {**content["versions"], "torch": "0.1"}})
    lines = compare(before, after).splitlines()
    causes = lines[lines.index("First differences behind them") + 1 :]
    assert sum("other code, same version in the rule rule: c0 → c1" in cause for cause in causes) == 1
    assert sum(cause.endswith("→ 0.1") and "version of torch" in cause for cause in causes) == 1
    assert sum("recipe key note, (absent) → n" in cause for cause in causes) == 2


def test_other_code_is_said_even_where_nothing_moved(tmp_path):
    before, after = folder(tmp_path / "a"), folder(tmp_path / "b")
    for sidecar in after.rglob("scores/**/*.lineage.json"):
        content = read_json(sidecar)
        write_json(sidecar, {**content, "run": {**content["run"], "code": "c1"}})
    text = compare(before, after)
    assert "other code, same version: 2 score files of them" in text
    assert "no score differs" in text
    assert "other code" not in compare(before, before)


def test_a_raised_version_is_named_and_not_the_code_that_changed_with_it(tmp_path):
    before, after = folder(tmp_path / "a"), folder(tmp_path / "b", x=(0.7,), code="c1")
    for sidecar in after.rglob("*.lineage.json"):
        write_json(sidecar, {**read_json(sidecar), "version": "rule@1 sts@2"})
    lines = compare(before, after).splitlines()
    causes = lines[lines.index("First differences behind them") + 1 :]
    assert sum("version of the code: sts@1 → sts@2" in cause for cause in causes) == 1
    assert not any("other code" in cause for cause in causes)


def test_an_evaluation_set_is_named_once_and_not_by_its_tables(tmp_path):
    before, after = folder(tmp_path / "a"), folder(tmp_path / "b", x=(0.7,))
    for root, limit in ((before, 64), (after, 32)):
        for part in ("items", "gold"):
            write(root, f"corpora/e/{part}.parquet", [], {"limit": limit}, f"{part} {limit}")
            sidecar = root / f"corpora/e/{part}.parquet.lineage.json"
            content = read_json(sidecar)
            write_json(sidecar, {**content, "artefact": {**content["artefact"], "kind": "evaluation"}})
        score = root / "scores/A-s1/task.json"
        write(root, "scores/A-s1/task.json", ["corpora/e/items.parquet", "corpora/e/gold.parquet"], {}, read_json(score))
    assert compare(before, after).splitlines()[-1] == "[1] corpora/e: recipe key limit, 64 → 32"


def test_bytes_that_differ_for_no_reason_are_said_to(tmp_path):
    text = compare(folder(tmp_path / "a"), folder(tmp_path / "b", x=(0.7,)))
    assert text.splitlines()[-1] == "[1] scores/A-s1/task.json: different bytes from equal inputs, settings, code and versions"


def test_a_value_that_is_gone_is_a_dash(tmp_path):
    moves, _ = moved(folder(tmp_path / "a"), folder(tmp_path / "b", x=(None,)))
    assert (moves[0].before, moves[0].after, moves[0].delta, moves[0].significant) == ("50.00", "–", "", None)


def asking(root, change):
    """The folder of `folder`, whose table was made with other settings."""
    folder(root)
    sidecar = lineage_path(root / TABLE)
    lineage = read_json(sidecar)
    change(lineage["recipe"])
    write_json(sidecar, lineage)
    return root


def test_a_column_that_asks_for_something_else_is_the_cause_of_its_moves(tmp_path):
    """Equal scores, another configuration: x of A is read from y, and the mean of B is of x alone."""

    def change(recipe):
        recipe["cells"][0][0]["select"]["subset"] = "y"

    text = compare(folder(tmp_path / "a"), asking(tmp_path / "b", change))
    assert "[1] the column G: x of t: subset x → y" in text.splitlines()
    assert re.search(r"A +G: x +50\.00 +25\.00 +-25\.00 .*\[1\]", text)


def test_an_average_of_other_columns_says_of_how_many(tmp_path):
    text = compare(folder(tmp_path / "a"), asking(tmp_path / "b", lambda recipe: recipe["cells"][0][2].update(mean_of=["x"])))
    assert "[1] the column G: mean of t: of 2 evaluations → of 1" in text.splitlines()


def test_cells_and_tables_of_one_side_are_counted_and_named(tmp_path):
    def change(recipe):
        recipe["rows"][1]["label"] = "C"

    before, after = folder(tmp_path / "a"), asking(tmp_path / "b", change)
    write(after, "tables/u.csv", [], {**resolved(["A-s1"]), "id": "u"}, "csv")
    lines = compare(before, after).splitlines()
    assert "3 cells of 1 table on both sides: 0 differ, 0 significantly" in lines
    assert "3 cells only before, 9 only after" in lines
    assert "tables only after: u" in lines
    assert not any(line.startswith("tables only before") for line in lines)
    assert not any("only before" in line for line in compare(before, before).splitlines() if "cell" in line)


def test_scores_without_tables_are_compared_record_by_record(tmp_path):
    before, after = folder(tmp_path / "a"), folder(tmp_path / "b", x=(0.7,))
    (before / TABLE).unlink()
    text = compare(before, after)
    assert "0 cells of 0 tables on both sides" in text
    assert "1 record differ in scores that no compared table shows" in text
    assert re.search(r"^A-s1/task\.json +x accuracy +50\.00 +70\.00 +\+20\.00  yes, intervals +\[1\]$", text, flags=re.MULTILINE)


def test_a_table_whose_scores_are_gone_is_not_compared_and_says_so(tmp_path):
    before, after = folder(tmp_path / "a"), folder(tmp_path / "b", x=(0.7,))
    (before / "scores/B-s1/task.json").unlink()
    assert "t: not compared, " in compare(before, after)


def test_scores_of_a_table_that_cannot_be_compared_are_compared_one_by_one(tmp_path):
    before, after = folder(tmp_path / "a"), folder(tmp_path / "b", x=(0.75,))
    write_json(after / "scores" / "B-s1" / "task.json", [])
    lines = compare(before, after).splitlines()
    assert any(line.startswith("t: not compared, ") for line in lines)
    assert any(re.match(r"scores/B-s1/task.json: not compared, .*: not a score file", line) for line in lines)
    assert any(line.split()[:5] == ["A-s1/task.json", "x", "accuracy", "50.00", "75.00"] for line in lines)
    write_json(after / "scores" / "A-s1" / "task.json", read_json(before / "scores" / "A-s1" / "task.json"))
    assert "no score differs" not in compare(before, after)


FORGED = {
    "a cell without scores": lambda recipe: recipe["cells"][0][0]["scores"].clear(),
    "a mean of itself": lambda recipe: recipe["cells"][0][2].update(mean_of=["mean"]),
    "a mean of no column": lambda recipe: recipe["cells"][0][2].update(mean_of=[[]]),
    "a row of no cells": lambda recipe: recipe.update(cells=[7, 7]),
    "a column that is none": lambda recipe: recipe["columns"].insert(0, []),
    "no columns": lambda recipe: recipe.pop("columns"),
}


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_table_whose_lineage_was_changed_by_hand_is_not_compared_and_its_lineage_named(tmp_path, forged, side):
    before, after = folder(tmp_path / "before"), folder(tmp_path / "after", x=(0.7,))
    sidecar = lineage_path(tmp_path / side / TABLE)
    content = read_json(sidecar)
    FORGED[forged](content["recipe"])
    write_json(sidecar, content)
    assert re.search(
        rf"^t: not compared, {sidecar}: the file is damaged or was changed; .*Run crosslign verify --discard",
        compare(before, after),
        re.MULTILINE,
    )
    (finding,) = cells(tmp_path / side)
    assert finding.state == TOUCHED


def test_a_table_is_known_by_its_file_whatever_its_lineage_calls_it(tmp_path):
    before, after = folder(tmp_path / "before"), folder(tmp_path / "after", x=(0.7,))
    content = read_json(lineage_path(before / TABLE))
    content["recipe"]["id"] = 7
    write_json(lineage_path(before / TABLE), content)
    assert "6 cells of 1 table on both sides: 2 differ" in compare(before, after)


def test_scores_whose_names_are_no_texts_are_no_score_file(tmp_path):
    before, after = folder(tmp_path / "a"), folder(tmp_path / "b", x=(0.75,))
    for root in (before, after):
        (root / TABLE).unlink()
    write_json(after / "scores/A-s1/task.json", {"records": [record("x", 0.75, 0.05) | {"metric": {"": {}}}]})
    assert re.search(r"scores/A-s1/task.json: not compared, .*: not a score file", compare(before, after))


def test_a_folder_without_scores_is_refused(tmp_path):
    with pytest.raises(InputError, match=rf"{tmp_path}/scores: .*results/laptop"):
        compare(tmp_path, tmp_path)


def test_changed_keys_by_hand():
    old = {"a": 1, "b": {"c": [1, {"d": 2}], "e": "x"}, "f": [1]}
    new = {"a": 1, "b": {"c": [1, {"d": 3}]}, "f": [1, 2], "g": 0}
    found = [("b.c[1].d", 2, 3), ("b.e", "x", "(absent)"), ("f", [1], [1, 2]), ("g", "(absent)", 0)]
    assert list(changed_keys(old, new)) == found


def test_causes_are_pointed_at_in_ranges():
    assert [ranges_of(numbers) for numbers in ([], [4], [1, 2, 3, 5, 8, 9])] == ["", "4", "1-3, 5, 8-9"]


def test_a_score_that_was_changed_by_hand_is_not_tested_and_named(tmp_path):
    for side in ("a", "b"):
        folder(tmp_path / side, noise=NOISE)
    score = tmp_path / "b" / "scores" / "A-s1" / "task.json"
    records = read_json(score)["records"]
    records[0]["value"] = 0.9
    write_json(score, {"records": records})
    said = compare(tmp_path / "a", tmp_path / "b")
    (line,) = [line for line in said.splitlines() if line.startswith("A ") and "G: x" in line]
    assert "+40.00" in line
    assert "not tested" in line
    assert "[1] scores/A-s1/task.json: its bytes differ, but its lineage does not: one file was changed by hand" in said


def test_a_score_file_is_read_once_however_many_records_moved(tmp_path, monkeypatch):
    read = []
    for module, name in ((score_records, "read_json"), (significance, "read_rows")):
        original = getattr(module, name)
        monkeypatch.setattr(module, name, lambda path, *rest, original=original: read.append(path) or original(path, *rest))
    subsets = [f"s{number}" for number in range(5)]
    for side, value in (("a", 0.5), ("b", 0.6)):
        path = tmp_path / side / "scores" / "A-s1" / "task.json"
        write(tmp_path / side, CORPUS, [], {}, "text")
        write(tmp_path / side, "scores/A-s1/task.json", [CORPUS], {}, {"records": [record(subset, value, 0.01) for subset in subsets]})
        rows = [{"subset": s, "metric": "accuracy", "protocol": "", "direction": "", "values": list(value + NOISE)} for s in subsets]
        write_rows(resamples_path(path), pa.Table.from_pylist(rows, schema=SCHEMAS["resamples"]), "resamples")
    moves, complaints = record_moves(tmp_path / "a", tmp_path / "b", ["scores/A-s1/task.json"])
    assert (len(moves), complaints) == (5, [])
    assert len(read) == len(set(read)) == 4
