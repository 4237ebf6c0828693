"""Stage examples: how much evaluation text each corpus holds, and how much of it was kept out of training."""

from __future__ import annotations

from crosslign.corpora import overlap
from crosslign.files import read_json, write_text
from crosslign.files.lineage import lineage_path
from crosslign.jobs.job import Job
from crosslign.stages import STAGES


@STAGES.register(version=1)
def measure_overlap(job: Job) -> None:
    """Write the matrix of all corpora and evaluation corpora."""
    corpora, evaluations, examples = (job.inputs.get(kind, {}) for kind in ("corpora", "evaluations", "examples"))
    removed = overlap.removed_by_corpus([read_json(lineage_path(path))["counts"]["decontamination"] for path in examples.values()])
    none = {(corpus, name) for corpus, names in job.params["recipe"]["expect_none"].items() for name in names}
    rows = [
        {
            "corpus": corpus,
            **row,
            "removed": removed.get((corpus, row["evaluation"]), 0),
            "expected": "none" if (corpus, row["evaluation"]) in none else "",
        }
        for corpus, path in corpora.items()
        for row in overlap.measure_corpus(path, evaluations)
    ]
    with job.publish("overlap") as (out, counts):
        write_text(out["csv"], overlap.as_csv(rows))
        write_text(out["md"], overlap.as_markdown(rows))
        counts.update(rows=len(rows), found=sum(row["found"] for row in rows), removed=sum(row["removed"] for row in rows))
