"""Members of a system: its encoders by language, and the languages that none of them covers."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from crosslign.config.project import Project
from crosslign.config.resolve import encoders_under
from crosslign.languages import normalise

FOR_ALL = frozenset({"main", "other"})
"""Members that read whatever no other member does."""
SHOWN = 5
"""Languages that a reason names."""


def reads(members: Collection[str], lang: str) -> bool:
    """Tell whether one of a model's members reads a language."""
    return not FOR_ALL.isdisjoint(members) or normalise(lang) in members


def text_languages(project: Project, corpus: str) -> set[str]:
    """Return the languages of an evaluation corpus; none where it has all that its files have, since these are not known before."""
    entry = project.corpora[corpus]
    if entry["langs"]:
        return set(map(normalise, entry["langs"]))
    if parts := [text_languages(project, part) for part in entry.get("of", [])]:
        return set().union(*parts) if all(parts) else set()
    options = entry.get("options", {})
    return {normalise(lang) for subset in [*options.get("subsets", []), *options.get("pairs", [])] for lang in subset.split("-")}


def why_unread(project: Project, system: str, corpora: Iterable[str]) -> str:
    """Return why a system cannot read evaluation corpora: languages that no member of it is for; else an empty string."""
    members = encoders_under(project, system)
    if not FOR_ALL.isdisjoint(members):
        return ""
    own = f"the system has an encoder each for {', '.join(members)}, none for"
    for corpus in corpora:
        langs = text_languages(project, corpus)
        if not langs:
            return f"{own} the other languages of {corpus}"
        if missing := sorted(lang for lang in langs if not reads(members, lang)):
            more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
            return f"{own} {', '.join(missing[:SHOWN])}{more}"
    return ""
