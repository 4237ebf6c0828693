# What is changed in classes of Snakemake and of its Slurm executor, all of it. Each change names what it replaces, and why; of versions
# that nobody has tried it on it stays away, and runs go on as the packages do by themselves.
import shlex
import sys
import threading
from functools import cache
from pathlib import Path

from crosslign.jobs.engine import unknown_version
from crosslign.slurm.executor import PatientExecutor
from snakemake import common as engine, rules as engine_rules
from snakemake.dag import DAG, ScriptProcessor
from snakemake.executors.local import Executor as LocalExecutor
from snakemake.jobs import GroupJob, Job
from snakemake.persistence import PersistenceBase
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.script import PythonScript
from snakemake.sourcecache import LocalGitFile
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry
from snakemake_interface_storage_plugins.registry import StoragePluginRegistry

DERIVED_REASONS = ("output files have to be", "input files updated by")
"""Beginnings of the reasons of a job that lie in other jobs, as Snakemake words them."""


def quote_interpreter():
    """Replaces `get_python_executable` of executors and `PythonScript._execute_cmd`.

    Snakemake puts the interpreter's path into commands as it stands: from a folder with a space in its name no job would start.
    """

    def quote(executor):
        as_it_stands = executor.get_python_executable
        executor.get_python_executable = lambda self: shlex.quote(as_it_stands(self))

    plugins = ExecutorPluginRegistry().plugins.values()
    for executor in {
        LocalExecutor,
        RemoteExecutor,
        *(plugin.executor for plugin in plugins),
    }:
        if "get_python_executable" in vars(executor):
            quote(executor)
    run_script = PythonScript._execute_cmd

    def run_with_quoted_interpreter(script, command, **given):
        if given.get("py_exec") == sys.executable:
            given["py_exec"] = shlex.quote(sys.executable)
        return run_script(script, command, **given)

    PythonScript._execute_cmd = run_with_quoted_interpreter


def take_sigterm_apart():
    """Replaces `JobScheduler.exit_gracefully`, with which Snakemake takes a SIGTERM, by the same in a thread of its own.

    It wants a lock that the scheduler holds while it looks after jobs that have ended. Told twice, or together with its jobs, as on
    Slurm, it waited for itself, for ever. Jobs that only wait in Slurm's queue are then cancelled: nobody would start them else.
    """
    as_it_was = JobScheduler.exit_gracefully

    def take(scheduler, *signal):
        as_it_was(scheduler, *signal)
        if cancel := getattr(scheduler._executor, "cancel_pending", None):
            cancel()

    def told_to_end(scheduler, *signal):
        threading.Thread(target=take, args=(scheduler, *signal), daemon=True).start()

    JobScheduler.exit_gracefully = told_to_end


def try_no_hopeless_job_again(hopeless):
    """Replaces `Job.restart_times`, which knows `retries` alone: what failed of input that cannot be used is not tried again.

    And `GroupJob.restart_times`, which takes the most of its jobs: a group is tried as a whole, in vain where one of them is such.
    """
    Job.restart_times = property(
        lambda job: 0 if hopeless(job.jobid) else job.rule.restart_times
    )
    GroupJob.restart_times = property(
        lambda group: min(job.restart_times for job in group.jobs)
    )


def keep_what_is_whole(described):
    """Replaces `Job.cleanup`, which removes what jobs made that ended well, where another of their group failed: that stays.

    One job that cannot be done would else keep all others of its group from being done, and all that is made of them. It ended well if
    all of its outputs are there, with lineage.
    """
    as_it_was = Job.cleanup

    async def clean(job, *skipped):
        whole = job.group and all(Path(path).exists() for path in job.output)
        if not (whole and described(job)):
            await as_it_was(job, *skipped)

    Job.cleanup = clean


def rerun_by_lineage(described, changes):
    """Replaces what `PersistenceBase` remembers of outputs, and their time stamps, by their lineage; without any, these answer as ever.

    A results folder that was copied, or shared, comes without the folder .snakemake: all of it would be rerun.

    Args:
        described: tells whether the outputs of a job have lineage.
        changes: what has changed since they were made.
    """

    def answer(name, found):
        recorded = getattr(PersistenceBase, name)

        def ask(self, job, **file):
            return found(job, **file) if described(job) else recorded(self, job, **file)

        setattr(PersistenceBase, name, ask)

    time_of_outputs = Job.output_mintime

    async def time_without_lineage(job):
        # Of what lies there without lineage; never of a benchmark alone.
        there = any(Path(path).exists() for path in job.output)
        return await time_of_outputs.fget(job) if there and not described(job) else None

    Job.output_mintime = property(time_without_lineage)
    answer("has_metadata", lambda job: True)
    answer("has_outdated_metadata", lambda job: False)
    answer("input_changed", lambda job, file=None: ())
    answer("params_changed", changes)


def spare_whole_readers(described, in_words):
    """Replaces `DAG.update_needrun`, which runs all readers of a temporary file where one of them needs it: the others stay (issue 2328).

    A system that is added would train all others that read its tokenised training set. A temporary file of a rerun is what it
    was; its readers with lineage run for a reason of their own, or where something else changes above them.

    Args:
        described: tells whether the outputs of a job have lineage.
        in_words: a context that ends the run with an error for people.
    """
    as_it_was = DAG.update_needrun

    def by_itself(dag, job):
        reason = dag.reason(job)
        wanted = job in dag.targetjobs and (reason.missing_output or not job.output)
        names = reason.get_names()
        return wanted or any(not name.startswith(DERIVED_REASONS) for name in names)

    def undescribed(job):
        there = any(Path(path).exists() for path in job.output)
        return not job.output or (there and not described(job))

    async def update(dag, **given):
        with (
            in_words()
        ):  # it looks at each file, and would name this line for one that nobody may look at
            await as_it_was(dag, **given)
        asked = set(dag._needrun)
        changed = {job for job in asked if by_itself(dag, job)}
        again, waiting = set(), list(changed)
        while waiting:
            job = waiting.pop()
            for other, files in dag.dependencies[job].items():
                if other in asked and other not in changed:
                    gone = files & dag.reason(other).missing_output
                    kind = again if gone <= other.temp_output else changed
                    if gone and other not in kind:
                        kind.add(other)
                        waiting.append(other)
            for reader, files in dag.depending[job].items():
                if reader in asked and reader not in changed:
                    news = job in changed or files - job.temp_output
                    if news or undescribed(reader):
                        changed.add(reader)
                        waiting.append(reader)
        for job in asked - again - changed:
            dag._needrun.remove(job)
            dag._checkpoint_jobs.discard(job)
            dag.reason(job).clear()
            del dag._n_until_ready[job]
        for job in dag._needrun:
            dag._n_until_ready[job] = len(dag.dependencies[job].keys() & dag._needrun)
        dag._len = len(dag._finished | dag._needrun)

    DAG.update_needrun = update


def ask_once():
    """Replaces `get_function_params` and `ScriptProcessor.process_job`, which ask for each job what is the same for all jobs of a rule.

    The parameters of its functions, some forty times a job, and whether its script can be read, unless wildcards stand in its path.
    """
    engine_rules.get_function_params = engine.get_function_params = cache(
        engine.get_function_params
    )
    as_it_was, readable = ScriptProcessor.process_job, set()

    def process(processor, job):
        script = getattr(job.rule, processor.script_type)
        place = f"{job.rule.basedir} {script}"
        if place not in readable:
            as_it_was(processor, job)
            readable.update([place] if "{" not in place else [])

    ScriptProcessor.process_job = process


def drop_start_limit(scheduler):
    """Replaces the scheduler's `job_rate_limiter` by none where it is Snakemake's default, 100 starts a second; a user's own stays.

    With a limit, Snakemake 9 looks at all ready jobs again a second after each look, and each job that ends adds one more such chain
    of looks: after some hundred jobs a whole core, a login node's too, does nothing else.
    """
    limiter = getattr(scheduler, "job_rate_limiter", None)
    if not UNKNOWN_ENGINE and limiter and limiter.max_jobs == 100:
        scheduler.job_rate_limiter = None


def run_handlers_of_module(*handlers):
    """Replaces the workflow's handlers `onstart`, `onsuccess` and `onerror`, which are those of its main Snakefile alone, by these.

    Used as a module, this workflow would check neither disk nor scheduler, and print neither costs, failures nor the table. A handler
    that the main Snakefile defines below its `module` replaces them; it may call `crosslign.onstart()` (docs/deploy.md).
    """
    for name, handler in zip(("_onstart", "_onsuccess", "_onerror"), handlers):
        setattr(workflow, name, handler.func)


def join_source_files():
    """Replaces `LocalGitFile.join`, which joins texts alone, by one that takes what other source files' `join` take.

    Snakemake asks for a rule's script by a source file, and each rule with a script of a module from `git+file` is a TypeError.
    """
    join = LocalGitFile.join
    LocalGitFile.join = lambda self, path: join(self, str(path))


def leave_cores_to_nodes():
    """Replaces `RemoteExecutor.cores`, which hands jobs on nodes the cores of the machine that Snakemake is started on, by the node's own.

    A job on a node would use two processes of the eight that it asked for, where that machine has two (issues 2997 and 3191).
    """
    RemoteExecutor.cores = property(lambda executor: "all")


def keep_groups_on_one_node():
    """Replaces `GroupJob.resources`, which sums the `nodes` of jobs that run side by side: a group runs on one, with all its devices."""
    as_it_was = GroupJob.resources

    def resources(group):
        found = as_it_was.fget(group)
        if "nodes" not in group._resources or group._resources["nodes"] == 1:
            return found
        group._resources["nodes"] = 1
        return as_it_was.fget(group)

    GroupJob.resources = property(resources)


def mark_local_jobs():
    """Replaces `resources` of the rules whose jobs stay on this machine by ones with a further one, `local_cores`, which is bounded below.

    Snakemake's `local-cores` bounds nothing (issue 2896): as many jobs as this machine has cores, and five, would start beside each other.
    """
    for local in filter(lambda made: made.name in workflow._localrules, workflow.rules):
        local.resources["local_cores"] = 1


def bound_local_jobs(scheduler):
    """Replaces `global_resources` of the scheduler, where jobs go elsewhere, by ones with a bound of those that stay: `local-cores`."""
    bound = workflow.resource_settings.local_cores
    if not UNKNOWN_ENGINE and bound and not workflow.local_exec:
        for resources in (scheduler.global_resources, scheduler.resources):
            resources["local_cores"] = bound


def submit_with_patience():
    """Replaces the executor of snakemake-executor-plugin-slurm by one on top of it: `PatientExecutor` says what it does, and why."""
    if slurm := ExecutorPluginRegistry().plugins.get("slurm"):
        slurm.executor = type("Executor", (PatientExecutor, slurm.executor), {})


def ask_again_for_folders():
    """Replaces `is_dir` of snakemake-storage-plugin-s3, which remembers that there was no such folder before a job made it.

    The folder's upload is then called missing, and the run ends: of what is remembered, a folder that is there stays one.
    """
    if s3 := StoragePluginRegistry().plugins.get("s3"):
        as_it_was = s3.storage_object.is_dir

        def is_dir(stored):
            stored._is_dir = stored._is_dir or None
            return as_it_was(stored)

        s3.storage_object.is_dir = is_dir


UNKNOWN_ENGINE = unknown_version("snakemake")
"""Why Snakemake's own classes stay as they are; empty where they are changed."""
UNKNOWN_EXECUTOR = unknown_version("snakemake-executor-plugin-slurm")
"""The same of its Slurm executor."""
UNKNOWN_STORAGE = unknown_version("snakemake-storage-plugin-s3")
"""The same of its storage in S3."""
