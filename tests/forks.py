"""Processes that cost no imports: one process has loaded the libraries, and forks a child for each program that a test runs.

To load torch and transformers takes seconds, more than what most tests do with them; a forked child is a process like any other: it can be
killed, limited and told to stop.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

LOADED = (
    "crosslign.corpora.pipeline",
    "crosslign.encoders.formats",
    "crosslign.encoders.text_sets",
    "crosslign.training.fit",
    "transformers.modeling_utils",
)
SECONDS = 300


class Done(NamedTuple):
    """How a child ended: its exit code, or minus the signal that ended it, and what it said."""

    returncode: int
    stdout: str
    stderr: str


class Forks:
    """The process that forks.

    Args:
        folder: for what the children say.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        path = os.pathsep.join(filter(None, [str(Path(__file__).parent), *sys.path]))
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": path}
        command = [sys.executable, __file__]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def _ask(self, **asked: object) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def start(
        self, code: str, *arguments: object, environment: Mapping[str, str] | None = None, seconds: int = SECONDS
    ) -> tuple[int, Path]:
        """Start a program as `python -c` would; `wait` takes what this returns.

        Args:
            code: the program.
            arguments: its words, behind `-c`.
            environment: added to this process's own.
            seconds: a child that takes longer is ended by the kernel (SIGALRM).
        """
        self._count += 1
        said = self._folder / str(self._count)
        given = {**os.environ, "HF_HUB_OFFLINE": "1", **(environment or {})}
        asked = {"code": code, "arguments": list(map(str, arguments)), "environment": given, "seconds": seconds}
        return self._ask(**asked, folder=str(Path.cwd()), said=str(said)), said

    def wait(self, child: tuple[int, Path]) -> Done:
        """Wait for a child."""
        pid, said = child
        return Done(self._ask(wait=pid), *(said.with_suffix(end).read_text(errors="replace") for end in (".out", ".err")))

    def run(self, code: str, *arguments: object, environment: Mapping[str, str] | None = None, seconds: int = SECONDS) -> Done:
        """Start a program and wait for it."""
        return self.wait(self.start(code, *arguments, environment=environment, seconds=seconds))

    def stop(self) -> None:
        """End the process that forks."""
        self._process.communicate()


def _child(asked: dict) -> int:
    """Run a program in this process, and return its exit code."""
    signal.alarm(asked["seconds"])
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    for number, name in enumerate((os.devnull, f"{asked['said']}.out", f"{asked['said']}.err")):
        opened = os.open(name, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = ["-c", *asked["arguments"]]
    try:
        exec(compile(asked["code"], "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main() -> None:
    """Answer lines until the input ends."""
    for name in LOADED:
        importlib.import_module(name)
    for line in sys.stdin:
        asked = json.loads(line)
        if "wait" in asked:
            print(os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1]), flush=True)
        elif child := os.fork():
            print(child, flush=True)
        else:
            code = _child(asked)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


if __name__ == "__main__":
    main()
