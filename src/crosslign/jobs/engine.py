"""Versions of Snakemake and of its plugins that this workflow's changes to them were tried on (workflow/rules/patches.smk)."""

from __future__ import annotations

from importlib import metadata

KNOWN = {"snakemake": "9.27", "snakemake-executor-plugin-slurm": "2.8", "snakemake-storage-plugin-s3": "0.3"}
"""Each package with the one minor version whose classes are changed."""
WITHOUT = {
    "snakemake": "copied results may rerun, jobs fail if a path has a space, and failed jobs use up all retries",
    "snakemake-executor-plugin-slurm": "a full queue or an outage of Slurm uses up the retries of jobs, and all jobs have the run's name",
    "snakemake-storage-plugin-s3": "a folder that a job has stored may be reported as missing",
}
"""What a run does without those changes."""


def unknown_version(package: str) -> str:
    """Return what is to be said of a package of another version than the known one; empty where it is known, or not installed."""
    try:
        found = metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
    if found.split(".")[:2] == KNOWN[package].split("."):
        return ""
    tried = f"{package} {found} is not {KNOWN[package]}.x, with which this workflow's patches of it were tested"
    return f"{tried}: the patches are not applied ({WITHOUT[package]})"
