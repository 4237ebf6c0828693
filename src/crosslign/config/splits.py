"""The files of one split of a data set, as the hub's own tools lay them in a repository or in a folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from crosslign.entries.catalog import Source
from crosslign.errors import InputError
from crosslign.files.home import own_folder
from crosslign.files.walk import files_below

PARQUET = re.compile(r"\.parquet")
READABLE = re.compile(r"\.(parquet|arrow|csv|tsv|jsonl?|ndjson|txt)(\.(gz|bz2|xz|zst))?")
"""What names of files end in that the reader `dataset` opens."""
OF_DATASETS = frozenset({"dataset_info.json", "state.json"})
"""Names of the files that `save_to_disk` writes beside the rows."""


def files_of(listed: Sequence[str], name: str, split: str, where: str, form: re.Pattern[str] = PARQUET) -> list[str]:
    """Return the paths of a split's files, in order.

    They lie as the hub's own tools lay them: `de/train-00000-of-00001.parquet`, `data/train-00000-of-00003-<hash>.parquet`, or
    `de/train/0000.parquet` as the hub converts data sets.

    Args:
        listed: all paths of the repository.
        name: the configuration, a folder; empty where there is only one.
        split: `train`, for one.
        where: the repository, for messages.
        form: what a file's name ends in.

    Raises:
        InputError: there is none, or they lie in several folders; names what there is.
    """
    named = re.compile(rf"{re.escape(split)}(-\d+-of-\d+(-\w+)?)?{form.pattern}")
    of_form = re.compile(rf".+{form.pattern}")
    there = sorted(path for path in listed if of_form.fullmatch(path) and PurePath(path).name not in OF_DATASETS)
    found = []
    for path in map(PurePath, there):
        folders = path.parts[:-1]
        if (not name or name in folders) and (named.fullmatch(path.name) or folders[-1:] == (split,)):
            found.append(str(path))
    if len({PurePath(path).parent for path in found}) == 1:
        return found
    what, of_hub = f"split {split!r} of {name!r}" if name else f"split {split!r}", form is PARQUET
    kind = "Parquet files" if of_hub else "files"
    if found:
        why, do = f"found in {sorted({str(PurePath(path).parent) for path in found})[:8]}", "Choose one with `name`"
    else:
        why = f"its {kind}: {there[:8]}" if there else f"it has no {kind}"
        hint = "; if the hub converts the data set, its files are on the branch refs/convert/parquet" if of_hub else ""
        do = f"Correct `name` or `split`{hint}"
    raise InputError(f"no single folder contains the {what}", where=where, why=why, do=do)


def split_files(name: str, source: Source) -> list[dict[str, str]]:
    """Return the files of a source with `split`: on the hub, and in a folder that is not there, `<name>-<split>.parquet` alone.

    Args:
        name: id of the source, for messages.
        source: its entry.

    Raises:
        InputError: the folder of this machine has no such split.
    """
    folder = own_folder(source["local"]) if "local" in source else None
    if folder is None or not folder.is_dir():
        return [{"name": "-".join(filter(None, [source.get("name"), source["split"]])) + ".parquet"}]
    listed = [path.relative_to(folder).as_posix() for path in files_below(folder)]
    found = files_of(listed, source.get("name", ""), source["split"], f"source {name!r}: {folder}", READABLE)
    return [{"name": PurePath(path).name, "path": path} for path in found]
