"""The data section of a plan: what a run reads, where it lies or comes from, how large it is and under which licence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, takewhile

from crosslign.config.data_plan import STATES, FileNeed
from crosslign.console import bytes_text
from crosslign.files.text import csv_of

SHOWN = 4
"""Users of a source that are named."""
SAID = {"synthetic": "small, generated at this scale"}
FIELDS = ("state", "source", "file", "in_mirror", "path", "bytes", "about_bytes", "sha256", "origin", "licence", "used_by")
"""What is listed of each file."""


def _size(needs: Sequence[FileNeed]) -> str:
    if needs[0].state in SAID:
        return SAID[needs[0].state]
    known = [size for need in needs if (size := need.bytes or need.about_bytes)]
    if not known:
        return "size unknown"
    return bytes_text(sum(known)) + (f" and {len(needs) - len(known)} of unknown size" if len(known) < len(needs) else "")


def _origin(needs: Sequence[FileNeed]) -> str:
    """Return where files come from: the part that their origins share."""
    first, last = min(need.origin for need in needs), max(need.origin for need in needs)
    shared = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
    return shared if len(needs) == 1 else shared[: max(shared.rfind("/"), shared.rfind(" ")) + 1]


def _source_lines(name: str, needs: Sequence[FileNeed]) -> Iterator[str]:
    count, state = len(needs), needs[0].state
    users = list(dict.fromkeys(user for need in needs for user in need.used_by))
    used = ", ".join(users[:SHOWN]) + (f" and {len(users) - SHOWN} more" if len(users) > SHOWN else "")
    where = f"from {_origin(needs)}" if state in ("fetch", "mirror") else f"-> {needs[0].path.parent}"
    yield f"    {name}: {count} {'file' if count == 1 else 'files'}, {_size(needs)}, {needs[0].licence}, {where}; used by {used}"
    if state == "by hand":
        yield "      put there: " + ", ".join(need.file for need in needs)
        if needs[0].how:
            yield f"      {needs[0].how}"


def data_lines(needs: Sequence[FileNeed]) -> Iterator[str]:
    """Yield how many files there are in each state, and their sources; of those to be had by hand, every name and the place for it.

    Args:
        needs: what targets need, sorted by source.
    """
    yield "data"
    for state in STATES:
        files = [need for need in needs if need.state == state]
        if not files:
            continue
        yield f"  {state:<10} {len(files):>5} {'file ' if len(files) == 1 else 'files'}  {_size(files)}"
        for source, found in groupby(files, lambda need: need.source):
            if state not in SAID:
                yield from _source_lines(source, list(found))


def files_csv(needs: Sequence[FileNeed]) -> str:
    """Return a CSV of all files, a line each, for who must bring them to a machine without network."""
    listed = [{**vars(need), "used_by": " ".join(need.used_by)} for need in needs]
    return csv_of(FIELDS, ([need[field] for field in FIELDS] for need in listed))
