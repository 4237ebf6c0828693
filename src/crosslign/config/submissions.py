"""Jobs are submitted while Slurm answers, and none after the run was told to end: the executor tries on, and leaves jobs behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from crosslign.config.scheduler import ask

PAUSE_SECONDS = 15.0


def is_down() -> bool:
    """Tell whether Slurm says of all its controllers that they are down; a command that is missing or hangs says nothing."""
    said = ask(["scontrol", "ping"])[0]
    return "DOWN" in said and "UP" not in said


class Submissions:
    """Stands in for `get_submit_command` of the Slurm executor (2.8), which calls it in threads of its own before each `sbatch`.

    - While no controller answers, it waits: the executor takes each `sbatch` that fails for a failed try of the job, and all tries of
      all jobs that are ready are used up within a minute.
    - Once the run is told to end (`ending`), it ends the thread: the executor goes on to submit what is ready, after it has cancelled
      what runs.

    Args:
        command: the executor's own.
        tell: where warnings go.
        pause: seconds between two looks for a controller.
    """

    def __init__(self, command: Callable[..., str], tell: Callable[[str], object], pause: float = PAUSE_SECONDS) -> None:
        self._command, self._tell, self._pause = command, tell, pause
        self._ends = threading.Event()
        self._answers = True
        self._run = ""

    def __call__(self, job: Any, params: Mapping[str, Any], **more: Any) -> str:
        """Return the command that submits a job, as soon as Slurm can take it."""
        self._run = params["run_uuid"]
        while not self._ends.is_set() and is_down():
            if self._answers:
                self._tell("Slurm does not answer: no jobs are submitted until it does")
            self._answers = False
            self._ends.wait(self._pause)
        self._answers = True
        if self._ends.is_set():
            raise SystemExit  # of this thread; any other error would be told as a failure of the job
        return self._command(job, params, **more)

    def ending(self, cancel: Callable[..., Any], submitted: Callable[[], object]) -> Callable[..., None]:
        """Return a stand-in for the executor's `cancel_slurm_jobs` that leaves no job of the run.

        Args:
            cancel: the executor's own; it knows the jobs that have been told to it, but not while it asks after them.
            submitted: returns when no `sbatch` is under way.
        """

        def ended(*given: Any) -> None:
            self._ends.set()
            cancel(*given)
            submitted()
            if self._run:
                ask(["scancel", f"--name={self._run}"])

        return ended
