"""An executor of a version that nobody has tried is left as it is, with one warning, and the run ends in the same bytes."""

import pytest
from other_version import renamed

pytestmark = pytest.mark.long
PACKAGE = "snakemake-executor-plugin-slurm"


def test_an_executor_that_nobody_has_tried_is_left_as_it_is_and_makes_the_same_table(nodes, project, tmp_path):
    project.forget_score()
    before = nodes.last()
    path = f"{renamed(tmp_path, PACKAGE, '2.99.0')}:{project.before}"
    said = project.on_slurm(PYTHONPATH=path).stdout
    assert said.count(f"warning: {PACKAGE} 2.99.0 is not 2.8.x, with which this workflow's patches of it were tested") == 1
    assert project.is_whole()
    (job,) = nodes.jobs(after=before)
    assert job.state == "COMPLETED"
    assert "score" not in job.fields["JobName"]  # the executor by itself calls all jobs by the run
