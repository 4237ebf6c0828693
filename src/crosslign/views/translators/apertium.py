"""Apertium: rule-based translation without any hub or network (Debian packages `apertium`, `apertium-eng-spa`, `apertium-fr-es`, …)."""

from __future__ import annotations

import logging
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.errors import InputError, ResourceError
from crosslign.files import sha256_file, sha256_text
from crosslign.languages import normalise
from crosslign.views import TRANSLATORS, TranslatorSetting

LOG = logging.getLogger(__name__)
AT_ONCE = 2000
PATIENCE = 600
"""Seconds that one call may take."""


def modes() -> dict[tuple[str, str], str]:
    """Return the installed modes by (source, target); of several for one pair the shortest name (`es-pt` before `es-pt_BR`).

    Raises:
        ResourceError: apertium is not installed.
    """
    if shutil.which("apertium") is None:
        raise ResourceError(
            "apertium is not installed", do="apt-get install apertium and its pairs, such as apertium-eng-spa apertium-fr-es apertium-es-pt"
        )
    listed = subprocess.run(["apertium", "-l"], capture_output=True, text=True, check=False).stdout.split()
    found: dict[tuple[str, str], str] = {}
    for mode in sorted(listed, key=lambda name: (len(name), name)):
        parts = mode.split("-")
        if len(parts) == 2 and normalise(parts[0]) != normalise(parts[1]):
            found.setdefault((normalise(parts[0]), normalise(parts[1])), mode)
    return found


def shortest_chain(known: Mapping[tuple[str, str], str], source: str, target: str) -> list[str] | None:
    """Return the fewest modes that lead from one language to another (of equally many the first by name), None where none do."""
    waiting: list[tuple[str, list[str]]] = [(normalise(source), [])]
    seen = {normalise(source)}
    for lang, chain in waiting:
        if lang == normalise(target):
            return chain
        for (start, end), mode in sorted(known.items()):
            if start == lang and end not in seen:
                seen.add(end)
                waiting.append((end, [*chain, mode]))
    return None


@TRANSLATORS.register
class Apertium:
    """Translates through the installed pairs, over other languages where no pair leads straight there (en → es → fr).

    Some pairs crash on some sentences and leave out the rest: numbers of lines are compared, and a batch that comes back
    short is halved until the sentence is found; it has no translation. Words that Apertium does not know stay as they are.

    Args:
        setting: the view.
        chains: modes to go through instead, by `source-target`: `{en-fr: [eng-spa, es-fr]}`.

    Raises:
        ResourceError: apertium is not installed.
        InputError: no installed modes lead from a language to another.
    """

    def __init__(self, setting: TranslatorSetting, *, chains: Mapping[str, Sequence[str]] | None = None) -> None:
        known = modes()
        self._chains: dict[tuple[str, str], list[str]] = {}
        for source in setting.langs:
            for target in setting.targets:
                chain = (chains or {}).get(f"{source}-{target}") or shortest_chain(known, source, target)
                if source == target:
                    continue
                if chain is None:
                    raise InputError(
                        f"apertium cannot translate from {source!r} into {target!r}",
                        where=setting.where,
                        why=f"installed: {', '.join(sorted(known.values())) or 'none'}",
                        do="Install a pair, or name other targets",
                    )
                self._chains[source, target] = list(chain)
        self.identity: Mapping[str, Any] | None = {
            "engine": "apertium",
            "version": _version(),
            "modes": {mode: _data_of(mode) for mode in sorted({mode for chain in self._chains.values() for mode in chain})},
            "chains": {f"{source}-{target}": chain for (source, target), chain in sorted(self._chains.items())},
        }

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str | None]:
        """Return the translation of each text, None where Apertium gives none."""
        found: list[str | None] = list(texts)
        for mode in self._chains[source, target]:
            rows = [row for row, text in enumerate(found) if text]
            given = [str(found[row]) for row in rows]
            answers = [answer for start in range(0, len(given), AT_ONCE) for answer in _translate(mode, given[start : start + AT_ONCE])]
            for row, answer in zip(rows, answers, strict=True):
                found[row] = answer
        return found


def _translate(mode: str, lines: Sequence[str]) -> list[str | None]:
    """Translate lines with one mode; those that make it crash are None."""
    if not lines:
        return []
    answer = _call(mode, lines)
    if answer is not None:
        return [" ".join(line.split()) or None for line in answer]
    if len(lines) == 1:
        LOG.warning("apertium %s gives nothing for %r", mode, lines[0])
        return [None]
    middle = len(lines) // 2
    return [*_translate(mode, lines[:middle]), *_translate(mode, lines[middle:])]


def _call(mode: str, lines: Sequence[str]) -> list[str] | None:
    """Return a line for each line, None where Apertium failed or lost some.

    An empty line stands between two lines: Apertium may move words over a single line's end.
    """
    text = "".join(f"{line}\n\n" for line in lines)
    try:
        command = ["apertium", "-u", "-f", "txt", mode]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except (subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    answer = done.stdout.split("\n")
    between = answer[1 : 2 * len(lines) : 2]
    whole = len(answer) == 2 * len(lines) + 1 and not any(line.strip() for line in between)
    return answer[0 : 2 * len(lines) : 2] if done.returncode == 0 and whole else None


def _version() -> str:
    done = subprocess.run(["apertium", "-V"], capture_output=True, text=True, check=False)
    return " ".join((done.stdout or done.stderr).split())[:80]


def _data_of(mode: str) -> str:
    """Return the hash of the files of a mode: its pair's version, whatever package it came in."""
    for folder in (Path("/usr/share/apertium/modes"), Path("/usr/local/share/apertium/modes")):
        if (folder / f"{mode}.mode").exists():
            words = (folder / f"{mode}.mode").read_text(encoding="utf-8").replace("'", " ").split()
            files = sorted({Path(word) for word in words if word.startswith("/") and Path(word).is_file()})
            return sha256_text("".join(sha256_file(path) for path in files))[:16]
    return "unknown"
