"""Whether results are what their lineage says, on one screen: artefacts by their hashes, cells of tables by their scores."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from crosslign.console import number_of, printable
from crosslign.provenance.artefact_states import MISSING, REMOVED, SOUND, STALE, TOUCHED, UNREAD, WHOLE, Finding, artefacts
from crosslign.provenance.cell_states import cells
from crosslign.provenance.code_states import code_lines


def verify(results: Path, project: Path = Path(), own: Iterable[Finding] = ()) -> tuple[str, bool]:
    """Check a results folder; `project` and `own` are those of `artefacts`.

    Returns:
        one screen of text, and whether everything is whole.

    Raises:
        InputError: there are no results.
    """
    found = list(artefacts(results, project, own))
    tables = list(cells(results))
    bad = [finding for finding in [*found, *tables] if finding.state not in SOUND]
    lines = [f"{results}: {number_of(len(found), 'artefact')}, {number_of(len(tables), 'table')}"]
    for state in (WHOLE, STALE, MISSING, TOUCHED, UNREAD):
        lines.append(f"  {state:<16} {sum(finding.state == state for finding in [*found, *tables])}")
    if removed := sum(finding.state == REMOVED for finding in found):
        lines.append(f"  {REMOVED:<16} {number_of(removed, 'matrix', 'matrices')} of vectors, no longer needed by what was made from them")
    shown = sorted(bad, key=lambda finding: (finding.state, finding.path))[:20]
    lines += [" ".join(f"{finding.state}: {finding.path} ({finding.why})".split("\n")) for finding in shown]  # a name may hold a line end
    if len(bad) > len(shown):
        lines.append(f"... and {len(bad) - len(shown)} more")
    lines += code_lines(results)
    if any(finding.state == UNREAD for finding in bad):
        lines.append("what cannot be read stays where it is, with all that depends on it: change its permissions, or check its disk")
    lines.append(
        "all results are complete and undamaged"
        if not bad
        else "crosslign verify --discard removes stale and touched files; the next run rebuilds them, and missing ones"
    )
    return printable("\n".join(lines)), not bad
