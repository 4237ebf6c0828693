"""Files of the user's own, outside of the results, that a project's configuration names: whether they are still what was read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import chdir, suppress
from pathlib import Path

from crosslign.config.catalog import source_kind
from crosslign.config.graph import corpus_path
from crosslign.config.mining import side_files, sides
from crosslign.config.project import Project, own_models
from crosslign.config.uses import copied_file, own_encoder
from crosslign.errors import InputError
from crosslign.files.checksums import sha256_file
from crosslign.files.lineage import lineage_path, sidecar_if_there
from crosslign.files.own import sum_of_all
from crosslign.provenance.artefact_states import STALE, UNREAD, Finding, unread
from crosslign.views.hub_models import own_models as own_models_of_view

SUMS = {"fetch": ("artefact", "bytes"), "mine_texts": ("run", "read_bytes")}
"""Rules whose lineage has the checksum of each file of the user's own, and where it has their bytes. That of others has one of all."""


def _made_of_own(project: Project) -> Iterator[tuple[Path, Sequence[Path]]]:
    """Yield what is made of files of the user's own, with these as they lie there now."""
    paths = project.paths
    for name, source in project.sources.items():
        if source_kind(source) == "local" and not (project.stand_in and "stand_in" in source):
            yield from ((paths.download(name, file["name"]), copied_file(project, name, file["name"])) for file in source["files"])
    yield from ((paths.encoder(name), own_encoder(project, name)) for name in project.encoders)
    yield from ((corpus_path(project, name), own_models(entry, project.sources)) for name, entry in project.corpora.items())
    yield from ((paths.view(name), own_models_of_view(entry)) for name, entry in project.views.items())
    yield from ((paths.mined_texts(name, side), side_files(project, recipe, side)) for name, side, recipe in sides(project))


def outside(project: Project) -> Iterator[Finding]:
    """Yield what was made of files of the user's own that have changed since. One that is gone refutes nothing: it may, once it was read.

    Raises:
        InputError: a file cannot be named, or the configuration is wrong.
    """
    results = project.paths.results
    try:
        with chdir(project.root):  # what is relative is so to the project
            for made, files in _made_of_own(project):
                there = [file.absolute() for file in files if file.is_file()]
                if there and _have_changed(made, there):
                    path = made.relative_to(results).as_posix() if made.is_relative_to(results) else os.path.normpath(made.absolute())
                    yield Finding(path, STALE, f"{os.path.commonpath(there)} has changed since")
    except OSError as error:
        yield Finding(str(error.filename), UNREAD, unread(error))


def _have_changed(made: Path, files: Sequence[Path]) -> bool:
    """Tell whether files are not those that an artefact's lineage has the checksums of; not where there is none that can be read."""
    with suppress(InputError):
        lineage = sidecar_if_there(lineage_path(made))
        if lineage and ("own" in lineage or lineage["rule"] in SUMS):
            part, key = SUMS.get(lineage["rule"], ("run", "own_bytes"))
            if sum(file.stat().st_size for file in files) > lineage[part].get(key, float("inf")):
                return True  # nobody waits for the sum of a terabyte of holes
            read = {lineage.get("own"), lineage["artefact"]["sha256"], *(entry["sha256"] for entry in lineage["inputs"])}
            return sum_of_all(files) not in read and any(sha256_file(file) not in read for file in files)
    return False
