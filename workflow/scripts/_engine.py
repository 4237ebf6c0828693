"""What all scripts of this folder do: hand what the workflow engine gives them to the library, which knows no engine."""

from collections.abc import Callable
from typing import Any

from crosslign.collector import collect_rarely
from crosslign.jobs.frame import execute
from crosslign.jobs.job import Job

collect_rarely()  # before a script imports its stage, and with it torch


def run(stage: Callable[[Job], None], given: Any) -> None:
    """Run a stage as a job of its rule; of the rule's inputs and parameters it gets those that have a name."""
    execute(
        stage,
        inputs=given.input.items(),
        outputs=given.output.items(),
        params=given.params.items(),
        resources=given.resources.items(),
        threads=given.threads,
        log=given.log[0],
    )
