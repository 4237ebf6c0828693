"""One module a stage: what a job of the workflow does."""

from collections.abc import Callable

from crosslign.jobs.job import Job
from crosslign.registry import Registry

STAGES: Registry[Callable[[Job], None]] = Registry("stage", "crosslign.stages")
