"""A copy of the project that a test may change and run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from crosslign.paths import CATALOG

ROOT = Path(__file__).resolve().parents[1]
WORKFLOW = ("Snakefile", "workflow", "profiles", "envs")


def copy_project(target, names=(*WORKFLOW, "config", "CITATION.cff", "LICENSE")):
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name)
        else:
            shutil.copy(source, target / name)
    return target


def own_copy(folder, file):
    """Return a file of a project's folder, such as `config/tasks.yaml`; where it has none, the catalog's is copied there first."""
    path = folder / file
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CATALOG / file.removeprefix("config/"), path)
    return path


MESSAGES = {
    "fetch": r"Fetching (?P<file>\S+) of",
    "write_stand_in": r"Writing synthetic data for (?P<source>\S+)",
    "prepare_encoder": r"Preparing the base encoder (?P<encoder>\S+)",
    "filter_shards": r"Filtering part (?P<part>\S+) of the corpus",
    "build_corpus": r"Reading and filtering the corpus (?P<corpus>\S+)",
    "build_evaluation": r"Building the evaluation corpus (?P<corpus>\S+)",
    "fetch_model": r"Fetching the translation model (?P<model>\S+)",
    "build_view": r"Building the view (?P<view>\S+)",
    "build_examples": r"Building the training set (?P<examples>\S+)",
    "tokenise": r"Tokenising the training set (?P<examples>\S+) \(",
    "train_system": r"Training (?P<run>\S+)",
    "choose": r"Choosing values for (?P<system>\S+) from",
    "embed": r"Encoding \S+ with (?P<run>\S+)",
    "score": r"Scoring (?P<run>\S+) on",
    "count_rows": r"Counting the data behind the table (?P<table>\S+)",
    "make_table": r"Building the table (?P<table>\S+)",
    "draw_figure": r"Drawing the figure (?P<figure>\S+)",
    "mine_texts": r"Reading the (?P<side>\S+) sentences of",
    "mine_embed": r"Encoding the (?P<side>\S+) sentences of",
    "mine_search": r"Searching for nearest neighbours of (?P<mine>\S+), part",
    "mine_join": r"Joining the nearest neighbours of (?P<mine>\S+)",
    "mine_calibrate": r"Hiding known pairs in the sides of (?P<mine>\S+)",
    "mine_pairs": r"Writing the pairs of (?P<mine>\S+)",
    "write_report": r"Writing the report(?P<report>)",
    "write_overview": r"Writing the overview(?P<overview>) of tables and figures",
    "measure_overlap": r"Counting evaluation text in the corpora(?P<overlap>)",
}


def job_of(message):
    """Return (rule, `wildcard=value`) of a job from its message."""
    for rule, pattern in MESSAGES.items():
        match = re.match(pattern, message)
        if match:
            return rule, "=".join(next(iter(match.groupdict().items())))
    raise AssertionError(f"no rule says {message!r}")


def jobs_of(done):
    """Return (rule, name) of every job that a run started, or that a dry run would start."""
    found = re.findall(r"^Job \d+: (.*)$", done.stdout + done.stderr, flags=re.MULTILINE)
    return [job_of(message) for message in found]


def environment(**more):
    """Return the variables that every command of these tests runs with: no network, and no mirror of the person who runs them."""
    given = {name: value for name, value in os.environ.items() if name != "CROSSLIGN_MIRROR"}
    return {**given, "CROSSLIGN_OFFLINE": "1", "HF_HUB_OFFLINE": "1", **more}


class Workflow:
    """Runs Snakemake in a copy of the project."""

    def __init__(self, folder, python=sys.executable):
        self.folder, self.python = folder, str(python)
        self.results = folder / "results" / "quick"

    def run(self, *arguments, scale="quick", check=True, variables=None, config=()):
        command = [self.python, "-m", "snakemake", "--cores", "2", *arguments, "--config", f"scale={scale}", *config]
        settings = environment(**(variables or {}))
        done = subprocess.run(command, cwd=self.folder, env=settings, capture_output=True, text=True, check=False)
        if check:
            assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-6000:]
        return done

    def planned(self, *arguments, scale="quick", config=()):
        """Return (rule, name) of every job that a dry run would start."""
        return jobs_of(self.run("-n", *arguments, scale=scale, config=config))

    def edit(self, file, old, new):
        path = own_copy(self.folder, file)
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")


class Pristine(Workflow):
    """A project that no test changes: what a dry run of it would start is asked once."""

    def __init__(self, folder, python=sys.executable):
        super().__init__(folder, python)
        self._plans = {}

    def planned(self, *arguments, scale="quick", config=()):
        key = (arguments, scale, tuple(config))
        if key not in self._plans:
            self._plans[key] = super().planned(*arguments, scale=scale, config=config)
        return self._plans[key]
