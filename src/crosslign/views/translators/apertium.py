"""Apertium: rule-based translation without any hub or network (Debian packages `apertium`, `apertium-eng-spa`, `apertium-fr-es`, …)."""

from __future__ import annotations

import logging
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.console import number_of
from crosslign.errors import InputError, ResourceError
from crosslign.files import sha256_file, sha256_text
from crosslign.languages import normalise
from crosslign.options import Texts
from crosslign.registry import nearest
from crosslign.views import TRANSLATORS, TranslatorSetting

log = logging.getLogger(__name__)
AT_ONCE = 2000
PATIENCE = 600
"""Seconds that a call with `AT_ONCE` lines may take; one with fewer may take less, but a tenth of it always."""


def installed() -> list[str]:
    """Return the names of the installed modes, the shortest first.

    Raises:
        ResourceError: apertium is not installed.
    """
    if shutil.which("apertium") is None:
        raise ResourceError(
            "apertium is not installed", do="apt-get install apertium and its pairs, such as apertium-eng-spa apertium-fr-es apertium-es-pt"
        )
    listed = subprocess.run(["apertium", "-l"], capture_output=True, encoding="utf-8", check=False).stdout.split()
    return sorted(listed, key=lambda name: (len(name), name))


def by_pair(modes: Sequence[str]) -> dict[tuple[str, str], str]:
    """Return modes by (source, target); of several for one pair the first."""
    found: dict[tuple[str, str], str] = {}
    for mode in modes:
        parts = mode.split("-")
        if len(parts) == 2 and normalise(parts[0]) != normalise(parts[1]):
            found.setdefault((normalise(parts[0]), normalise(parts[1])), mode)
    return found


def check_chain(chain: Sequence[str], modes: Sequence[str], source: str, target: str, where: str) -> None:
    """Check modes that somebody named: installed, each going on where the one before ends, from `source` to `target`.

    Languages whose three-letter code is none of the project's may stand for any: `eng-cat` leads to `ca`.

    Raises:
        InputError: says which mode does not fit.
    """
    at, why = normalise(source), f"chain {source}-{target}: {list(chain)}"
    for mode in chain:
        if mode not in modes:
            raise InputError(f"apertium has no mode {mode!r}", where=where, why=nearest(mode, list(modes)))
        start, _, end = mode.partition("-")
        if not _may_be(start, at):
            raise InputError(
                f"the mode {mode!r} does not translate from {at!r}", where=where, why=f"chain {source}-{target}: {list(chain)}"
            )
        at = normalise(end)
    if not _may_be(at, normalise(target)):
        raise InputError(f"the chain ends in {at!r}, not in {target!r}", where=where, why=why)


def _may_be(code: str, lang: str) -> bool:
    return normalise(code) == lang or len(normalise(code)) == 3 != len(lang)


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


@TRANSLATORS.register(version=1)
class Apertium:
    """Translates through the installed pairs, over other languages where no pair leads straight there (en → es → fr).

    Some pairs crash on some sentences and leave out the rest: numbers of lines are compared, and a batch that comes back
    short is halved until the sentence is found; it has no translation. Words that Apertium does not know stay as they are.

    Args:
        setting: the view.
        chains: modes to go through instead, by `source-target`: `{en-fr: [eng-spa, es-fr]}`.

    Raises:
        ResourceError: apertium is not installed; in `translate`, one of its modes does not work.
        InputError: no installed modes lead from a language to another, or those of `chains` do not.
    """

    def __init__(self, setting: TranslatorSetting, *, chains: Mapping[str, Texts] | None = None) -> None:
        self._working: set[str] = set()
        self._chains = _chains_of(setting, chains or {})
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
            if given and mode not in self._working:
                _require_working(mode)
                self._working.add(mode)
            answers = [answer for start in range(0, len(given), AT_ONCE) for answer in _translate(mode, given[start : start + AT_ONCE])]
            for row, answer in zip(rows, answers, strict=True):
                found[row] = answer
        return found


def _chains_of(setting: TranslatorSetting, named: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], list[str]]:
    """Return the modes to go through for each pair of languages: those that are named, else the fewest."""
    modes = installed()
    known = by_pair(modes)
    pairs = {f"{source}-{target}": (source, target) for source in setting.langs for target in setting.targets if source != target}
    if unknown := next((name for name in named if name not in pairs), ""):
        raise InputError(
            f"`chains` names {unknown!r}, which the view does not translate", where=setting.where, why=nearest(unknown, list(pairs))
        )
    found: dict[tuple[str, str], list[str]] = {}
    for name, (source, target) in pairs.items():
        if name in named:
            check_chain(named[name], modes, source, target, setting.where)
        chain = named.get(name) or shortest_chain(known, source, target)
        if chain is None:
            raise InputError(
                f"apertium cannot translate from {source!r} into {target!r}",
                where=setting.where,
                why=f"installed: {', '.join(sorted(known.values())) or 'none'}",
                do="Install a pair, name its modes in `chains`, or name other targets",
            )
        found[source, target] = list(chain)
    return found


def _translate(mode: str, lines: Sequence[str]) -> list[str | None]:
    """Translate lines with one mode; those that make it crash are None."""
    if not lines:
        return []
    answer, why = _call(mode, lines)
    if answer is not None:
        return [" ".join(line.split()) or None for line in answer]
    if len(lines) == 1:
        log.warning("apertium %s returns no translation of %r: %s", mode, lines[0], why)
        return [None]
    middle = len(lines) // 2
    return [*_translate(mode, lines[:middle]), *_translate(mode, lines[middle:])]


def _require_working(mode: str) -> None:
    """Try a mode on a number: one that fails there fails on every sentence.

    Raises:
        ResourceError: it fails.
    """
    answer, why = _call(mode, ["1"])
    if answer is None:
        raise ResourceError(
            f"apertium's mode {mode!r} does not work", why=why, do=f"Try `echo 1 | apertium {mode}`, or install its pair again"
        )


def _call(mode: str, lines: Sequence[str]) -> tuple[list[str] | None, str]:
    """Return a line for each line, or None where Apertium failed or lost some, and why.

    An empty line stands between two lines: Apertium may move words over a single line's end.
    """
    text = "".join(f"{line}\n\n" for line in lines)
    try:
        command = ["apertium", "-u", "-f", "txt", mode]
        patience = PATIENCE * max(0.1, len(lines) / AT_ONCE)
        done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", timeout=patience, check=False)
    except (subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        return None, " ".join(str(error).split())
    answer = done.stdout.split("\n")
    between = answer[1 : 2 * len(lines) : 2]
    whole = len(answer) == 2 * len(lines) + 1 and not any(line.strip() for line in between)
    if done.returncode == 0 and whole:
        return answer[0 : 2 * len(lines) : 2], ""
    said = " ".join(done.stderr.split())[-200:]
    return None, f"exit status {done.returncode}, {len(answer) // 2:,} of {number_of(len(lines), 'line')}" + (f"; {said}" if said else "")


def _version() -> str:
    done = subprocess.run(["apertium", "-V"], capture_output=True, encoding="utf-8", check=False)
    return " ".join((done.stdout or done.stderr).split())[:80]


def _data_of(mode: str) -> str:
    """Return the hash of the files of a mode: its pair's version, whatever package it came in."""
    for folder in (Path("/usr/share/apertium/modes"), Path("/usr/local/share/apertium/modes")):
        if (folder / f"{mode}.mode").exists():
            words = (folder / f"{mode}.mode").read_text(encoding="utf-8").replace("'", " ").split()
            files = sorted({Path(word) for word in words if word.startswith("/") and Path(word).is_file()})
            return sha256_text("".join(sha256_file(path) for path in files))[:16]
    return "unknown"
