"""Slurm's commands, played by real processes that do what a test says, and write down how they were called."""

import shlex

import pytest

SCRIPT = """
echo "$*" >> {place}.calls
next=$(ls {place} | head -n 1)
[ -z "$next" ] || mv {place}/$next {place}.now
. {place}.now
"""


class SlurmCommands:
    """Commands that do one thing after another, one a call, and the last of them from then on."""

    def __init__(self, folder, command):
        self._folder, self._command = folder, command

    def does(self, name, *scripts):
        """Let a command do what these scripts of the shell say; `$*` are its arguments."""
        place = self._folder / name
        place.mkdir(parents=True, exist_ok=True)
        for old in place.iterdir():
            old.unlink()
        for number, script in enumerate(scripts):
            (place / f"{number:03}").write_text(script)
        self._command(name, SCRIPT.format(place=place))

    def answers(self, name, *texts):
        """Let a command print these texts."""
        self.does(name, *(f"printf '%s' {shlex.quote(text)}" for text in texts))

    def fails(self, name, words=""):
        """Let a command fail with these words."""
        self.does(name, f"echo {shlex.quote(words)} >&2; exit 1")

    def calls(self, name):
        """Return the arguments of each call, as one text."""
        file = self._folder / f"{name}.calls"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def slurm(tmp_path, command):
    """Slurm's commands; what one of them does a test says first."""
    return SlurmCommands(tmp_path / "slurm", command)
