"""Two files to mined pairs in this process: the stages of the workflow one after the other, without its engine.

What comes out lies beside the output; encoders and their downloads, which every mining shares, in the user's cache folder.
"""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from crosslign.config.mining import (
    calibration_recipe,
    mine_recipe,
    mined_members,
    pairs_recipe,
    parts_of,
    range_recipe,
    reading,
    require_apart,
    search_recipe,
    side_files,
    sides_of,
    texts_recipe,
    vectors_recipe,
)
from crosslign.config.project import Project
from crosslign.entries.papers import Settings
from crosslign.errors import CrosslignError, InputError
from crosslign.files.atomic import require_writable
from crosslign.files.lineage import sidecar_of
from crosslign.jobs.alone import only_one
from crosslign.jobs.job import DERIVED
from crosslign.jobs.leases import visible_gpus
from crosslign.paths import MINED_SIDES
from crosslign.steps import Steps

NAME = "files"
"""What the entry of `mine:` is called that the command line stands for."""
PLACE = f"config/config.yaml: mine.{NAME}"


@contextmanager
def _named_as_given() -> Iterator[None]:
    """Let an error name what stood on the command line, not the entry that it became."""
    places = {f"{PLACE}.system": "--encoder", **{f"{PLACE}.{side}.lang": "--langs" for side in MINED_SIDES}}
    try:
        yield
    except InputError as error:
        raise InputError(error.what, where=places.get(error.where, error.where), why=error.why, do=error.do) from error


@dataclass(frozen=True)
class Mined:
    """Finished pairs and where what was counted on the way stands.

    Attributes:
        recipe: of the mining.
        pairs: Parquet file of the pairs.
        sides: sentences and vectors of each side.
        calibration: what planted pairs say, where there are any.
        work: folder of what was needed on the way.
    """

    recipe: Mapping[str, Any]
    pairs: Path
    sides: Mapping[str, tuple[Path, Path]]
    calibration: Path | None
    work: Path

    def forget(self) -> None:
        """Remove what was needed on the way."""
        shutil.rmtree(self.work, ignore_errors=True)


def mine_files(project: Project, entry: Mapping[str, Any], outputs: Mapping[str, Path]) -> Mined:
    """Mine two files; what is unfinished lies beside the first output, and is removed when all is done by `Mined.forget`.

    Args:
        project: the catalogs, with the cache as its folder of results.
        entry: as one of `mine:`; its system is a base encoder, its files are absolute.
        outputs: files of pairs by what they are, as `mining.pairs.write_pairs` takes them.

    Raises:
        CrosslignError: an unknown encoder, a file that cannot be read, no network for the download, no room; says why.
    """
    project = replace(project, settings=cast(Settings, {**project.settings, "mine": {NAME: entry}}))
    with _named_as_given():
        recipe = mine_recipe(project, NAME)
    if recipe["system"] not in project.encoders:
        do = "Name a trained system in an entry of `mine:` (docs/mine-your-own.md)"
        raise InputError(
            "two files can be mined only with a base encoder", where="--encoder", why=f"{recipe['system']} is a trained system", do=do
        )
    read = {side: side_files(project, recipe, side) for side in sides_of(recipe)}
    for file in itertools.chain.from_iterable(read.values()):
        if not file.is_file():
            raise InputError("file is missing, or not a regular file", where=str(file))
    first = next(iter(outputs.values()))
    calibration = first.with_name(f"{first.name}.calibration.json") if "plants" in recipe else None
    written = [*outputs.values(), *filter(None, [calibration])]
    require_apart(written, itertools.chain.from_iterable(read.values()))
    for path in written:
        require_writable(path.parent, sidecar_of(path).name)
    work = first.with_name(f".{first.name}.mining")
    print(f"encoder: {reading(recipe)}", file=sys.stderr, flush=True)
    os.environ["TQDM_DISABLE"] = "1"  # other libraries' bars, before they are loaded; the stages report their own progress
    with only_one(work / "mine"):
        steps = Steps(work)
        try:
            steps.encoder(project, recipe["encoders"][0])
            texts = _read(recipe, read, steps)
        except CrosslignError:
            if not any(place.exists() for place in _encoded(work, read)):  # nothing to go on with
                shutil.rmtree(work, ignore_errors=True)
            raise
        _mine(project, recipe, texts, steps, (given := {"parquet": work / "pairs.parquet", **outputs}), calibration)
    sides = {side: (work / f"{side}.parquet", work / f"{side}.npy") for side in MINED_SIDES}
    return Mined(recipe, given["parquet"], sides, calibration, work)


def _encoded(work: Path, sides: Iterable[str]) -> list[Path]:
    """Return where vectors lie, the unfinished ones first."""
    return [work / "encoding", *(work / f"{side}.npy" for side in sides)]


def _read(recipe: Mapping[str, Any], read: Mapping[str, list[Path]], steps: Steps) -> dict[str, Path]:
    """Read the sentences of each side; return where they lie."""
    texts = {side: steps.work / f"{side}.parquet" for side in read}
    for side, rows in texts.items():
        steps.run("mine_texts", texts_recipe(recipe, side), {"file": read[side]}, {"rows": rows}, steps.work.parent)
    return texts


def _mine(
    project: Project,
    recipe: Mapping[str, Any],
    texts: Mapping[str, Path],
    steps: Steps,
    outputs: Mapping[str, Path],
    calibration: Path | None,
) -> None:
    """Run the steps of mining behind the texts."""
    work, threads, gpu = steps.work, recipe["threads"], {"gpu": min(1, len(visible_gpus(os.environ)))}
    root, encoder = work.parent, project.paths.encoder(recipe["encoders"][0])
    members = {name: str(folder) for name, folder in mined_members(project, recipe).items()}
    encoding, *places = _encoded(work, texts)
    vectors = dict(zip(texts, places, strict=True))
    for side, rows in texts.items():
        given = {"encoder": encoder, "texts": rows}
        own: dict[str, Any] = {"members": members, "work": str(encoding), "threads": threads}
        steps.run("mine_embed", vectors_recipe(recipe, side), given, {"matrix": vectors[side]}, root, gpu, **own)
    near, given_texts = {"neighbours": work / "neighbours.safetensors"}, {f"{side}_texts": texts[side] for side in MINED_SIDES}
    own = {side: vectors[side] for side in MINED_SIDES}
    found = {part: work / "searched" / part for part in parts_of(recipe)}
    for part, folder in found.items():
        given = {"folder": folder}
        steps.run(
            "mine_search", range_recipe(recipe, part), {**own, **given_texts}, given, root, gpu, work=str(work / "search"), threads=threads
        )
    steps.run("mine_join", search_recipe(recipe), {**own, **given_texts, DERIVED: [*found.values()]}, near, root)
    chosen_by: dict[str, Path] = {}
    if calibration:
        given = {**near, **vectors, **{f"{side}_texts": path for side, path in texts.items()}}
        steps.run("mine_calibrate", calibration_recipe(recipe), given, {"calibration": calibration}, root)
        chosen_by = {"calibration": calibration}
    own = {side: texts[side] for side in MINED_SIDES}
    steps.run("mine_pairs", pairs_recipe(recipe), {**near, **own, **chosen_by}, outputs, root)
