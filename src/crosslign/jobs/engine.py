"""Versions of Snakemake and of its plugins that this workflow's changes to them were tried on (workflow/rules/patches.smk)."""

from __future__ import annotations

from importlib import metadata

KNOWN = {"snakemake": "9.27", "snakemake-executor-plugin-slurm": "2.8", "snakemake-storage-plugin-s3": "0.3"}
"""Each package with the one minor version whose classes are changed."""
WITHOUT = {
    "snakemake": "results that were copied may be made again, a path with a space stops jobs, and failures are tried to the last",
    "snakemake-executor-plugin-slurm": "a full queue, or an outage of Slurm, uses up the tries of jobs, whose names are the run's",
    "snakemake-storage-plugin-s3": "a folder that a job has stored may be called missing",
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
    tried = f"{package} {found} is not {KNOWN[package]}.x, on which this workflow's changes to it were tried"
    return f"{tried}: they stay away ({WITHOUT[package]})"
