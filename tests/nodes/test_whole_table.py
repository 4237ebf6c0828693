"""A whole table, and all papers, as Snakemake, its executor and a real Slurm take them by the profile: only what jobs do is left out."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter

import pytest
from project_copy import ROOT, Workflow, copy_project, environment
from slurm_project import PATIENCE, engine_log, most_here

pytestmark = pytest.mark.long
OWN = """\
slurm-init-seconds-before-status-checks: 1
local-cores: 3
default-resources:
  slurm_partition: cpu
set-resources:
  train_system: {slurm_partition: gpu}
  embed: {slurm_partition: gpu}
  embed_large: {slurm_partition: gpu}
  build_view: {slurm_partition: gpu}
  score: {slurm_partition: gpu}
"""
WRITE_DOWN = '''

def write_down(dag):
    """Write down which outputs are folders, and what each job is to make that goes to Slurm, by the words that name it in its command."""
    import json
    from snakemake_interface_executor_plugins.utils import encode_target_jobs_cli_args as encoded

    found = list(dag.needrun_jobs())
    folders = [str(path) for job in found for path in job.output if path.is_directory]
    made = {encoded(job.get_target_spec())[0]: [*map(str, filter(None, [*job.output, job.benchmark]))] for job in found if not job.is_local}
    Path("before", "folders.json").write_text(json.dumps(folders))
    Path("before", "jobs.json").write_text(json.dumps(made))
'''
MAKE = '''\
"""Makes empty outputs."""
import json, os, sys

folder = os.path.dirname(__file__)


def make(paths):
    folders = set(json.load(open(os.path.join(folder, "folders.json"))))
    for path in paths:
        os.makedirs(path if path in folders else os.path.dirname(path), exist_ok=True)
        if path not in folders:
            open(path, "w").close()


if __name__ == "__main__":
    make(sys.argv[1:])
'''
IN_A_JOB = '''\
"""The command of a job of Slurm makes empty outputs of all jobs that it is given, and writes down their names."""
import json, os, sys

words = sys.orig_argv
if "SLURM_JOB_ID" in os.environ and "--target-jobs" in words:
    from make import folder, make

    after = words[words.index("--target-jobs") + 1 :]
    names = after[: next(at for at, word in enumerate(after) if word.startswith("--"))]
    known = json.load(open(os.path.join(folder, "jobs.json")))
    make(path for name in names for path in known[name])
    with open(os.path.join(folder, "given"), "a") as given:
        given.write("".join(f"{name}\\n" for name in names))
    os._exit(0)
'''
SCRIPT = re.compile(r'script:\n( +)"../scripts/run_stage.py"')


@pytest.fixture
def empty(tmp_path):
    """A project whose jobs, those on the login node too, make empty files."""
    project = Workflow(copy_project(tmp_path / "project"))
    shutil.copytree(ROOT / "slurm", project.folder / "slurm")
    (project.folder / "slurm" / "local.yaml").write_text(OWN)
    (project.folder / "before").mkdir()
    (project.folder / "before" / "sitecustomize.py").write_text(IN_A_JOB)
    (project.folder / "before" / "make.py").write_text(MAKE)
    command = f"{sys.executable} -S {project.folder}/before/make.py {{output}}"
    for rules in (project.folder / "workflow" / "rules").glob("*.smk"):
        rules.write_text(SCRIPT.sub(rf'shell:\n\1"{command}"', rules.read_text()))
    with open(project.folder / "workflow" / "rules" / "handlers.smk", "a") as handlers:
        handlers.write(WRITE_DOWN)
    project.edit("workflow/Snakefile", "onstart:\n", "onstart:\n    write_down(workflow.dag)\n")
    project.edit("workflow/Snakefile", "    print_summary(workflow.dag)\n", "    pass\n")  # an empty table has nothing to print
    return project


def run(nodes, empty, seconds, *asked):
    """Run the project to its end; return the jobs of Slurm, all of them completed, and the jobs of Snakemake in them, each once."""
    before = nodes.last()
    command = [sys.executable, "-m", "snakemake", "--cores", "all", "--profile", "slurm", *asked]
    variables = environment(PYTHONPATH=":".join([f"{empty.folder}/before", *filter(None, sys.path)]))
    with open(empty.folder / "run.log", "w") as log:
        done = subprocess.run(command, cwd=empty.folder, env=variables, stdout=log, stderr=log, check=False, timeout=seconds * PATIENCE)
    assert done.returncode == 0, (empty.folder / "run.log").read_text()[-6000:]
    submitted = nodes.jobs(after=before)
    assert {job.state for job in submitted} == {"COMPLETED"}
    known = json.loads((empty.folder / "before" / "jobs.json").read_text())
    given = Counter((empty.folder / "before" / "given").read_text().splitlines())
    assert given == Counter(known.keys())  # each once
    return submitted, known


def test_a_table_goes_to_slurm_in_groups_that_ask_for_what_a_node_has(nodes, empty):
    submitted, known = run(nodes, empty, 900, "--config", "scale=quick", "papers=[moco_bert]", "targets=[moco_bert_table5]")
    assert {job.fields["NumNodes"] for job in submitted} == {"1"}
    assert len(submitted) < len(known) / 3
    cpus = {job.fields["JobName"].partition("-")[0]: int(job.fields["NumCPUs"]) for job in submitted}
    # Side by side, and the threads of one; whatever the machine has on which the command was given.
    assert (cpus["scores"], cpus["embeds"]) == (16, 8)
    assert most_here(engine_log(empty.folder)) == 3  # `local-cores`


def test_all_of_the_papers_goes_to_slurm_in_fewer_than_seven_hundred_submissions(nodes, empty):
    (empty.folder / "slurm" / "local.yaml").write_text(OWN.replace("local-cores: 3\n", ""))
    submitted, known = run(nodes, empty, 1700)
    assert len(submitted) < 700
    assert most_here(engine_log(empty.folder)) == 4  # `local-cores` of the profile
    cpus = {job.comment: int(job.fields["NumCPUs"]) for job in submitted}
    assert max(cpus.values()) == 16  # `max_cpus`, whatever the machine has that the command was given on
    assert len(known) > 2000
    assert f" is {len(submitted)} submissions" in (ROOT / "docs" / "cluster.md").read_text()
