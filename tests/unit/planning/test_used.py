"""Declared against used: what lineage says of finished jobs."""

import pytest

from crosslign.files import read_json, write_json
from crosslign.files.lineage import sidecar_of
from crosslign.planning.used import Use, exponent, used_lines, uses


def lineage_of(results, name, rule, seconds, read, asked=None, started="2026-01-01", recipe=None):
    run = {"started": started, "wall_s": seconds, "peak_mb": 100.0, "read_bytes": read, "commit": "", "device": "cpu"}
    run |= {"asked": asked} if asked else {}
    facts = {"threads": 1, "seed": None, "versions": {}, "counts": {}, "stand_in": False, "rule": rule, "recipe": recipe or name}
    content = {"format": 1, "artefact": {"path": name, "sha256": "0", "bytes": 5_000_000, "kind": "corpus"}, "inputs": [], "licences": []}
    write_json(sidecar_of(results / name), {**content, **facts, "run": run})


def test_a_job_with_several_artefacts_is_one_and_what_it_wrote_is_their_sum(tmp_path):
    asked = {"mem_mb": 1000, "runtime": 20, "disk_mb": 100}
    for name in ("texts.parquet", "items.parquet"):
        lineage_of(tmp_path, f"corpora/a/{name}", "build_evaluation", 60.0, 10, asked, recipe="a")
    (one,) = uses(tmp_path)
    assert (one.rule, one.seconds, one.disk, one.asked) == ("build_evaluation", 60.0, 10_000_000, asked)
    line = used_lines([one])[1].split()
    assert line == ["build_evaluation", "1", "1.0", "min", "5%", "100.0", "MB", "10%", "10.0", "MB", "10%", "-"]


def test_what_a_job_gave_back_counts_as_disk_once(tmp_path):
    for name in ("one", "two"):
        lineage_of(tmp_path, f"systems/{name}", "train_system", 60.0, 10, {"disk_mb": 100}, recipe="both")
        record = read_json(path := sidecar_of(tmp_path / f"systems/{name}"))
        write_json(path, {**record, "run": {**record["run"], "working_bytes": 30_000_000}})
    (one,) = uses(tmp_path)
    assert one.share("disk_mb") == 0.4


def test_lineage_that_is_damaged_or_older_is_no_reason_to_stop(tmp_path):
    lineage_of(tmp_path, "a.parquet", "build_corpus", 60.0, 10)
    lineage_of(tmp_path, "b.parquet", "build_corpus", "soon", 10, started="2026-01-02")
    sidecar_of(tmp_path / "c.parquet").write_text("{")
    (one,) = uses(tmp_path)
    assert one.asked == {}
    assert used_lines([one])[1].split().count("-") == 4


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_of_a_power_law_is_its_power(power):
    jobs = [Use("score", size**power, 0, 0, size, {}) for size in (1_000, 9_000, 81_000)]
    assert exponent(jobs) == pytest.approx(power)


def test_sizes_too_much_alike_have_no_exponent():
    assert exponent([Use("score", 1.0, 0, 0, size, {}) for size in (100, 110, 120, 130)]) is None
    assert exponent([Use("score", 1.0, 0, 0, size, {}) for size in (100, 100, 1000, 1000)]) is None
