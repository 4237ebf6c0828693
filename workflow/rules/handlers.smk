# What is checked and said when a run begins and ends: devices, the scheduler, the user's own files, costs, failures, the first table.
import os
import sys

from crosslign.config.uses import all_missing, require_own_files
from crosslign.errors import InputError
from crosslign.files.atomic import require_writable
from crosslign.jobs.leases import gpu_note, visible_gpus
from crosslign.planning.cost import cost_of, cost_text, no_memory, no_room, too_long
from crosslign.reporting.summary import summary
from crosslign.slurm.checks import (
    most,
    require_alone,
    require_scheduler,
    require_status,
)
from crosslign.slurm.checks import too_long as more_time
from crosslign.slurm.queue import RECORD
from snakemake.exceptions import WorkflowError


def count_gpus(scheduler):
    """Start no more jobs on GPUs than this machine has for them, unless the user said how many: one that waits holds its cores."""
    found = len(visible_gpus(os.environ)) if workflow.local_exec and GPUS else 0
    if found and "gpu" not in scheduler.global_resources:
        scheduler.global_resources["gpu"] = scheduler.resources["gpu"] = max(
            GPUS, found
        )


def require_executor(job):
    """End where the executor would refuse jobs before Slurm sees them, for an option that it knows better."""
    import snakemake_executor_plugin_slurm as plugin  # only where it is in use

    try:
        plugin.validate_slurm_extra(job)
        plugin.set_gres_string(job)
    except WorkflowError as error:
        raise InputError(
            f"the executor rejects jobs of {job.rule.name}",
            why=str(error),
            do="Fix slurm/local.yaml",
        ) from error


def as_submitted(dag, job):
    """A job, by the name of its rule, and the group that it goes with, by what it is called in messages."""
    yield job.rule.name, job
    if group := dag.get_job_group(job):
        yield f"{job.rule.name}, in groups", group


def check_scheduler(dag):
    """End at once where Slurm, or its executor, would refuse jobs."""
    jobs = [job for job in dag.needrun_jobs() if not job.is_local]
    if workflow.executor_plugin.name != "slurm" or not jobs:
        return
    if not UNKNOWN_ENGINE and UNKNOWN_EXECUTOR:
        print(f"warning: {UNKNOWN_EXECUTOR}", file=sys.stderr)
    settings = workflow.executor_settings
    own = {name: getattr(settings, name, None) for name in ("qos", "reservation")}
    own = {name: value for name, value in own.items() if value}
    asked = most(
        (name, {**dict(one.resources.items()), "threads": one.threads, **own})
        for job in jobs
        for name, one in as_submitted(dag, job)
    )
    with ends_in_words():
        require_status(asked.values(), settings.status_command)
        require_scheduler(asked)
        tries = 1 + max(job.restart_times for job in jobs)
        if tries > 1 and (note := more_time(asked, most_of(project)[1])):
            print(f"note: {note}", file=sys.stderr)
        if workflow.execution_settings.lock:
            require_alone(workflow.scheduler._executor.run_uuid, RECORD)
        for job in {job.rule.name: job for job in jobs}.values():
            require_executor(job)


def print_missing():
    """Say what tables and figures are made without, and why: in them it is a dash and a footnote, also of a misspelt path."""
    for reason in all_missing(project):
        print(f"note: left out because {reason}", file=sys.stderr)


def print_gpu_note():
    """Say what GPUs asked for and not there mean, where jobs run on this machine: what nodes of a cluster have is not seen here."""
    if workflow.local_exec and (note := gpu_note(GPUS, os.environ)):
        print(f"note: {note}", file=sys.stderr)


def print_cost(dag):
    """Print what the jobs of this run are expected to cost, before the first of them; end where one has no memory."""
    found = list(dag.needrun_jobs())
    jobs = [(job.rule.name, dict(job.wildcards_dict)) for job in found]
    with ends_in_words():
        if refusal := no_memory(project, jobs):
            raise refusal
    # On this machine, as many jobs as it has devices are at work on what lies on the disk for a while.
    working = max(1, GPUS) if workflow.local_exec else at_once()
    print(f"plan: {cost_text(cost_of(project, jobs, working))}", file=sys.stderr)
    if note := no_room(project, jobs):
        print(f"note: {note}", file=sys.stderr)
    tries = 1 + max((job.restart_times for job in found), default=0)
    if not workflow.local_exec and (note := too_long(project, jobs, tries)):
        print(f"note: {note}", file=sys.stderr)


def print_failures():
    """Say of each job that stayed failed what, why, where its logs are, and what to do."""
    if text := failures.text():
        print(text, file=sys.stderr)


def check_results():
    """End at once where nothing could be written, before anything is fetched."""
    with ends_in_words():
        require_writable(paths.results)


def check_own_files(dag):
    """End at once where a file of the user's own that this run copies is not there, before other files are fetched."""
    fetched = [job.wildcards for job in dag.needrun_jobs() if job.rule.name == "fetch"]
    with ends_in_words():
        require_own_files(project, ((one.source, one.file) for one in fetched))


def print_summary(dag):
    """Print the first of this run's tables, one that `targets:` names before others, and where the files are."""
    own = {job.wildcards.table for job in dag.jobs if job.rule.name == "make_table"}
    done = [table for table in project.tables if table in own]
    done.sort(key=lambda table: table not in project.settings["targets"])
    if STORED and done:
        print(f"the results {paths.results} are in this run's storage", file=sys.stderr)
    elif done:
        # Loads what each start of Snakemake, in every job's process too, can do without.
        from crosslign.reporting.layout import scaled_title

        files = [
            ("tables", paths.results / "tables"),
            ("figures", paths.results / "figures"),
            ("report", paths.report),
        ]
        table = project.tables[done[0]]
        numbers = {
            key: value
            for key, value in table.get("print", {}).items()
            if key in ("scale_by", "decimals")
        }
        title = scaled_title(
            table["title"], project.settings["scale"], project.stand_in
        )
        print(
            summary(title, paths.table(done[0], "csv"), files, **numbers),
            file=sys.stderr,
        )
