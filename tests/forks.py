"""Processes that cost no imports: one process has loaded the libraries, and forks a child for each program that a test runs.

To load torch and transformers takes seconds, more than what most tests do with them; a forked child is a process like any other: it can be
killed, limited and told to stop. `Forks.python` is a command in the place of Python's own, whose programs are such children.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

LOADED = (
    "crosslign.corpora.pipeline",
    "crosslign.encoders.formats",
    "crosslign.encoders.matrices",
    "crosslign.training.fit",
    "transformers.modeling_utils",
)
PYTHON = "CROSSLIGN_TEST_PYTHON"
"""Names, for a child, the command that its own children are to be run by in the place of Python's."""
SECONDS = 300
LINE = 1 << 20


class Done(NamedTuple):
    """How a child ended: its exit code, or minus the signal that ended it, and what it said."""

    returncode: int
    stdout: str
    stderr: str


class Child(NamedTuple):
    """A child that was started: its number, what its end is read from, and the file that it writes to, but for its ending."""

    pid: int
    answers: IO[str]
    said: Path


def command_at(folder: Path, address: str) -> Path:
    """Write the command in the place of Python's own, whose programs are children of the process that answers at an address."""
    command, client = folder / "python", Path(__file__).with_name("forks_client.py")
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -IS '{client}' '{address}' \"$@\"\n", encoding="utf-8")
    command.chmod(0o755)
    return command


class Forks:
    """The process that forks.

    Args:
        folder: for what the children say.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        self._place = Path(tempfile.mkdtemp(prefix="forks-", dir="/tmp"))  # a socket's name is short
        self._address = str(self._place / "socket")
        self.python = command_at(self._place, self._address)
        path = os.pathsep.join(filter(None, [str(Path(__file__).parent), *sys.path]))
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": path}
        command = [sys.executable, __file__, self._address]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def load(self, *names: str) -> None:
        """Load further modules, once."""
        answers = self._ask((0, 1, 2), names=names)
        assert answers.readline() == "loaded\n"
        answers.close()

    def _ask(self, files: tuple[int, int, int], **asked: object) -> IO[str]:
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(self._address)
            socket.send_fds(link, [json.dumps(asked).encode() + b"\n"], files)
            return link.makefile("r", encoding="ascii")

    def start(self, code: str, *arguments: object, environment: Mapping[str, str] | None = None, seconds: int = SECONDS) -> Child:
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
        words = ["-c", code, *map(str, arguments)]
        with open(os.devnull, "rb") as none, open(f"{said}.out", "wb") as out, open(f"{said}.err", "wb") as err:
            files = none.fileno(), out.fileno(), err.fileno()
            answers = self._ask(files, words=words, environment=given, seconds=seconds, folder=str(Path.cwd()))
        return Child(int(answers.readline()), answers, said)

    def wait(self, child: Child) -> Done:
        """Wait for a child."""
        with child.answers:
            code = int(child.answers.readline())
        return Done(code, *(child.said.with_suffix(end).read_text(errors="replace") for end in (".out", ".err")))

    def run(self, code: str, *arguments: object, environment: Mapping[str, str] | None = None, seconds: int = SECONDS) -> Done:
        """Start a program and wait for it."""
        return self.wait(self.start(code, *arguments, environment=environment, seconds=seconds))

    def stop(self) -> None:
        """End the process that forks."""
        self._process.communicate()
        shutil.rmtree(self._place)


def _program(words: list[str]) -> None:
    """Run what Python's own command would: `-c CODE`, `-m MODULE` or a file, with its words behind."""
    first, rest = words[0], words[1:]
    if first == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    elif first == "-m":
        sys.argv = rest
        sys.path.insert(0, str(Path.cwd()))
        if not hasattr(sys.modules.get(rest[0]), "__path__"):
            sys.modules.pop(rest[0], None)  # a program is a module of its own, though another may have imported the same file
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, str(Path(first).resolve().parent))
        runpy.run_path(first, run_name="__main__")


def _child(asked: dict[str, Any], files: list[int]) -> int:
    """Run a program in this process, and return its exit code."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.alarm(asked.get("seconds", 0))
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    for number, opened in enumerate(files):
        os.dup2(opened, number)
    os.closerange(3, max(files) + 1)
    sys.executable = os.environ.get(PYTHON, sys.executable)
    try:
        _program(asked["words"])
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _fork(asked: dict[str, Any], files: list[int]) -> int:
    """Return the number of a child that does what is asked."""
    if child := os.fork():
        return child
    code = 1
    try:
        code = _child(asked, files)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


class Server:
    """Answers requests until its standard input ends; a child whose asker is gone is killed."""

    def __init__(self, address: str) -> None:
        self._waiting: dict[socket.socket, int] = {}
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(address)
        self._listener.listen(64)
        self._woken, woken = os.pipe()
        os.set_blocking(woken, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(woken)

    def _accept(self) -> None:
        link, _ = self._listener.accept()
        line, files, *_ = socket.recv_fds(link, LINE, 3)
        while not line.endswith(b"\n"):
            line += link.recv(LINE)
        asked = json.loads(line)
        if "names" in asked:
            for name in asked["names"]:
                importlib.import_module(name)
            link.sendall(b"loaded\n")
            link.close()
        else:
            self._waiting[link] = _fork(asked, files)
            link.sendall(f"{self._waiting[link]}\n".encode())
        for file in files:
            os.close(file)

    def _reap(self) -> None:
        os.read(self._woken, LINE)
        for link, child in list(self._waiting.items()):
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                del self._waiting[link]
                with suppress(OSError), link:  # whoever asked may be gone
                    link.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())

    def _told(self, link: socket.socket) -> None:
        """Pass a signal on; where the one who asked is gone, kill."""
        told = b""
        with suppress(OSError):
            told = link.recv(1)
        os.kill(self._waiting[link], told[0] if told else signal.SIGKILL)
        if told:
            return
        os.waitpid(self._waiting.pop(link), 0)
        link.close()

    def run(self) -> None:
        parts: dict[Any, Callable[[], None]] = {self._listener: self._accept, self._woken: self._reap}
        while True:
            ready, _, _ = select.select([0, *parts, *self._waiting], [], [])
            if 0 in ready:
                return
            for one in ready:
                if one in self._waiting:
                    self._told(one)
            for one in parts.keys() & set(ready):
                parts[one]()


def main() -> None:
    """Load, say so, and answer until the input ends."""
    sys.modules["forks"] = sys.modules["__main__"]
    for name in LOADED:
        importlib.import_module(name)
    server = Server(sys.argv[1])
    print("ready", flush=True)
    server.run()


if __name__ == "__main__":
    main()
