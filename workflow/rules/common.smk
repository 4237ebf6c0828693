# Configuration, checked before anything runs; names, paths, versions and resources that all rules share.
import os
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import crosslign
from crosslign.config import cells, figures, graph
from crosslign.config.ancestors import lineage_behind
from crosslign.config.claims import claim_scores, claims_recipe
from crosslign.config.catalog import hints_text
from crosslign.config.load import load_project
from crosslign.config.project import own_models as own_models_of_filters
from crosslign.config.mining import (
    calibration_recipe,
    mine_recipe,
    mined_folder,
    mined_members,
    pairs_recipe,
    parts_of,
    range_recipe,
    require_there,
    search_recipe,
    side_files,
    texts_path,
    texts_recipe,
    vectors_path,
    vectors_recipe,
)
from crosslign.config.overlap import expected_none, overlap_inputs
from crosslign.config.priorities import job_priority
from crosslign.config.readouts import readout as readout_entry
from crosslign.config.resolve import (
    pace_of,
    run_recipe,
    scored_entry,
    split_run,
)
from crosslign.config.groups import GROUPED, Groups
from crosslign.config.loads import large_sets
from crosslign.config.resources import (
    STAND_IN_RULE,
    corpus_threads,
    file_priority,
    job_need,
    most as most_of,
    most_cpus,
    search_gpus,
    search_threads,
    tokenising_threads,
)
from crosslign.config.settings import own_file, read_settings
from crosslign.config.targets import covered, target_files, target_names
from crosslign.config.tokenised import copies, copy_of, key_of
from crosslign.config.trials import choice_recipe, trials_of
from crosslign.config.uses import copied_file, own_encoder
from crosslign.config.versions import job_versions
from crosslign.files.atomic import in_words
from crosslign.files.home import name_user, require_plain_path
from crosslign.files.lineage import is_sidecar, sidecar_of
from crosslign.paths import EVALUATION_FILES
from crosslign.jobs.alone import ENGINE_VARIABLE, engine_mark
from crosslign.jobs.failures import FailuresHandler
from crosslign.jobs.job import all_paths, inputs_of, named_inputs
from crosslign.jobs.job import listed as listed_inputs
from crosslign.jobs.hangup import end_on_hangup
from crosslign.jobs.remaining import BriefFilter, Remaining, RemainingHandler
from crosslign.paths import (
    CLAIMS_FORMATS,
    FIGURE_FORMATS,
    MINED_SIDES,
    PLANT_SIDES,
    OVERVIEW_FORMATS,
    PUBLISHED,
    TABLE_FORMATS,
    own_runs,
    printed_path,
)
from crosslign.provenance.causes import ABSENT
from crosslign.provenance.reruns import Asked, Reruns
from crosslign.views.hub_models import hub_models, own_models, uses_gpu
from snakemake.persistence import ParamsChange

IS_MODULE = not workflow.modifier.is_main_snakefile()
"""Whether another workflow uses this one: its `config:` then says what is asked for."""


def root_of(source):
    """The folder of the configuration: that of the run, else of the checkout that rules or library come from; they may be remote."""
    local = [Path(source).parents[1]] if hasattr(source, "__fspath__") else []
    folders = [Path.cwd(), *local, Path(crosslign.__file__).parents[2]]
    found = (one for one in folders if (one / "config").is_dir())
    return next(found, Path.cwd())


ROOT = root_of(workflow.current_basedir)
# Relative, so that a project that was moved has nothing to make again.
PRINTED = Path(os.path.relpath(ROOT / PUBLISHED))


@contextmanager
def ends_in_words():
    """Print an error that is meant for the user, and end with its exit code."""
    try:
        yield
    except Exception as error:
        if (told := in_words(error)) is None:
            raise
        print(f"error: {told}", file=sys.stderr)
        sys.exit(told.exit_code)


with ends_in_words():
    files = [own_file(ROOT, Path()), *workflow.overwrite_configfiles]
    settings = read_settings(
        [path for path in files if not IS_MODULE or Path(path).exists()],
        config if IS_MODULE else workflow.config_settings.config,
    )
    project = load_project(ROOT, settings, checks=workflow.is_main_process)

# Object storage hands a job what its rule declares, and nothing else.
STORED = bool(workflow.storage_settings.default_storage_provider)
GPUS = project.gpus
failures = FailuresHandler()


def at_once():
    """Jobs that may run at the same time: on a cluster as many as may be in its queue, on this machine one a core."""
    return (workflow.cores if workflow.local_exec else workflow.nodes) or 1


def elsewhere():
    """Whether jobs run on other machines, or this one is such a job."""
    return workflow.remote_exec or not workflow.local_exec


def beside_others(threads):
    """As many threads, of this machine at most half: a job that wants all its cores waits for the end of the longest training."""
    return threads if elsewhere() else min(threads, max(1, workflow.cores // 2))


reruns = Reruns()


def listed(paths):
    """One path, or several, as a list."""
    return [paths] if isinstance(paths, (str, Path)) else list(paths)


def artefacts(files):
    """Outputs of a job without the lineage that lies beside them."""
    return [path for path in map(Path, files) if not is_sidecar(path)]


def described(job):
    """Tell whether lineage can say if a job would run again."""
    return reruns.described(artefacts(job.output))


def changes(job, file=None):
    """What has changed since the outputs of a job were made, as Snakemake prints it."""
    given = [Path(path) for _, paths in job.input.items() for path in listed(paths)]
    copied = sorted(set(map(Path, job.input)) - set(given))
    files = job.output if file is None else [file]
    asked = (
        artefacts(files),
        all_paths(listed_inputs(inputs_of(job.input.items()))),
        copied,
    )
    found = reruns.why(Asked(*asked, dict(job.params.items())))
    before, now = ({pair[side] for pair in found} - {ABSENT} for side in (0, 1))
    return ParamsChange(before, now, set(files) if found else set())


if not UNKNOWN_ENGINE:
    quote_interpreter()
    ask_once()
    take_sigterm_apart()
    join_source_files()
    leave_cores_to_nodes()
    keep_groups_on_one_node()
    if workflow.is_main_process:
        try_no_hopeless_job_again(failures.hopeless)
        if not STORED:  # lineage lies in the storage, and Snakemake's own records here
            rerun_by_lineage(described, changes)
            spare_whole_readers(described, ends_in_words)
            keep_what_is_whole(described)
        if not UNKNOWN_EXECUTOR:
            submit_with_patience()
        if not UNKNOWN_STORAGE:
            ask_again_for_folders()
        elif workflow.storage_settings.default_storage_provider == "s3":
            print(f"warning: {UNKNOWN_STORAGE}", file=sys.stderr)
elif workflow.is_main_process:
    print(f"warning: {UNKNOWN_ENGINE}", file=sys.stderr)
end_on_hangup()
if workflow.is_main_process:
    with ends_in_words():
        require_plain_path(ROOT, Path(sys.executable))
    name_user()
    logger.addHandler(failures)
    os.environ[ENGINE_VARIABLE] = engine_mark()
    for mirror in filter(lambda folder: not folder.is_dir(), project.mirrors):
        print(
            f"note: the mirror {mirror} does not exist, so it is not used",
            file=sys.stderr,
        )
    for plugin in project.plugins:
        print(f"note: {plugin}", file=sys.stderr)
    for entry, path in project.replaced.items():
        print(f"note: {entry} comes from {path}, not from the catalog", file=sys.stderr)
    for path in dict.fromkeys(project.added.values()):
        own = [entry for entry, place in project.added.items() if place == path]
        more = f" and {len(own) - 5} more" if len(own) > 5 else ""
        print(f"note: {path} adds {', '.join(own[:5])}{more}", file=sys.stderr)
    logger.addHandler(
        RemainingHandler(
            Remaining(project.scale.get("expected_seconds", {}), at_once),
            starts=lambda: not workflow.dryrun,
        )
    )
    # The log file stays whole, and so does what a user adds with --logger.
    for handler in logger.handlers:
        if handler.name == "DefaultStreamHandler":
            handler.addFilter(
                BriefFilter(lambda: workflow.dryrun or workflow.output_settings.verbose)
            )

paths = project.paths
COVERED_TABLES, COVERED_FIGURES = covered(project)
LARGE_SETS = large_sets(project)


def names(ids):
    """A wildcard constraint that allows exactly these ids."""
    return "|".join(sorted(map(re.escape, ids), key=len, reverse=True)) or "none"


wildcard_constraints:
    source=names(project.sources),
    file=r"[^/]+(?<!\.lineage\.json)",
    encoder=names(project.encoders),
    corpus=names(project.corpora),
    langs=r"all|[a-z]{2,3}(-[a-z]{2,3})?",
    view=names(project.views),
    examples=names(project.examples),
    run=r"[^/]+",
    system=names(system for system in project.systems if trials_of(project, system)),
    checkpoint=r"[a-z0-9_]+",
    readout=r"[a-z0-9_]+",
    text_set=names(project.corpora),
    task=names(project.tasks),
    table=names(project.tables),
    figure=names(project.figures),
    mine=names(project.settings["mine"]),
    part=r"\d+-of-\d+",
    side=names((*MINED_SIDES, *PLANT_SIDES)),


@cache
def ask_for_cpus():
    """Let jobs on nodes ask for up to `max_cpus`: Snakemake caps them, and groups, by the cores of the machine that it is started on."""
    if not UNKNOWN_ENGINE and workflow.is_main_process and not workflow.local_exec:
        workflow.global_resources["_cores"] = most_cpus(project)


@cache
def groups():
    """The groups of short jobs, by the sizes that the profile gives them, which Snakemake knows when it has read all rules."""
    sizes = workflow.group_settings.group_components
    # A group's jobs share the devices of one job, and no more memory than any job may have: what has no room waits within.
    if not GROUPED.isdisjoint(sizes):
        for name, limit in {"gpu": max(1, GPUS), "mem_mb": most_of(project)[0]}.items():
            workflow.resource_scopes.update({name: "local"})
            if name not in workflow.resource_settings.resources:
                workflow.global_resources[name] = limit
    return Groups(project, sizes)


def grouped(*names, by):
    """The group with which a short job goes to a scheduler, the first that takes it of those that the profile gives a size; else None."""

    def group(given):
        for name in names:
            if found := groups().group(name, tuple(given[key] for key in by)):
                workflow.parent_groupids[found] = name
                return found
        return None

    return group


def needs(rule):
    """Memory, time and disk of a rule's jobs, by what they work on and by attempt."""

    @cache
    def need(attempt, *wildcards):
        return job_need(project, rule, dict(wildcards), attempt)

    def asked(name):
        return lambda wildcards, attempt: getattr(
            need(attempt, *wildcards.items()), name
        )

    return {name: asked(name) for name in ("mem_mb", "runtime", "disk_mb")}


def with_lineage(**files):
    """Outputs of a rule, each with its lineage."""
    return {**files, "lineage": [sidecar_of(file) for file in files.values()]}


def versioned(stage, recipe, tasks=None):
    """The stage of a rule's jobs, and what they run again for: their recipe, and the versions of stage and implementations.

    Where a training selects by tasks, their scorers count, too.
    """
    found = recipe if callable(recipe) else lambda wildcards: recipe

    def version(wildcards):
        return job_versions(
            stage, found(wildcards), tasks(wildcards) if tasks else None
        )

    return {"stage": stage, "recipe": found, "version": version}


def targets(wanted):
    """Files of the named targets."""
    with ends_in_words():
        return target_files(project, wanted)


def files_of(name):
    """What gives the files of a target, when it is asked for."""
    return lambda wildcards: targets([name])
