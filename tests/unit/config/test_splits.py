"""The files of one split, found in a repository of the hub, or in a folder of this machine, as its tools lay them."""

from __future__ import annotations

import datasets
import pyarrow as pa
import pytest

from crosslign.config.file_lists import with_listed_files
from crosslign.config.splits import files_of
from crosslign.corpora import READERS
from crosslign.errors import InputError

LAYOUTS = {
    "folders of configurations": [
        "README.md",
        "de/test-00000-of-00001.parquet",
        "de/train-00000-of-00002.parquet",
        "de/train-00001-of-00002.parquet",
    ],
    "converted": ["de/train/0000.parquet", "de/train/0001.parquet", "de/train_extra/0000.parquet", "fr/train/0000.parquet"],
    "below data": [
        "data/de/train-00000-of-00001-1a2b.parquet",
        "data/fr/train-00000-of-00001-1a2b.parquet",
        "data/de/trainer-00000-of-00001.parquet",
    ],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_split_is_found_as_the_hubs_tools_lay_it(layout):
    found = files_of(LAYOUTS[layout], "de", "train", "hub:a/b")
    assert found == [path for path in LAYOUTS[layout] if "de/" in path and ("/train-" in path or "/train/" in path)]
    assert found


@pytest.mark.parametrize(
    ("listed", "name", "said"),
    [
        (["de/train-00000-of-00001.parquet"], "fr", "hub:a/b: .*'train'.*'fr'.*de/train-00000"),
        (["de/train-00000-of-00001.parquet", "fr/train-00000-of-00001.parquet"], "", r"hub:a/b: .*\['de', 'fr'\]\..*`name`"),
        (["xnli.py", "data.zip"], "de", "hub:a/b: .*'de'; .*Parquet.*refs/convert/parquet"),
    ],
)
def test_what_is_no_split_is_told_with_what_there_is(listed, name, said):
    with pytest.raises(InputError, match=said):
        files_of(listed, name, "train", "hub:a/b")


LINE = '{"text": "x"}\n'
IN_FOLDERS = {
    "one file": (["train.jsonl.gz", "test.jsonl.gz", "README.md"], "", ["train.jsonl.gz"]),
    "folders of configurations": (
        ["de/train-00000-of-00002.csv", "de/train-00001-of-00002.csv", "fr/train.csv"],
        "de",
        ["de/train-00000-of-00002.csv", "de/train-00001-of-00002.csv"],
    ),
    "folders of splits": (["train/a.txt", "train/b.txt", "train/.c.txt.1a2b3c4d.part", "test/a.txt"], "", ["train/a.txt", "train/b.txt"]),
}


def listed(folder, **entry):
    return with_listed_files(folder, {"mine": {"local": str(folder / "set"), "split": "train", **entry}})["mine"]["files"]


def touch(folder, *names):
    for name in names:
        path = folder / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LINE)


@pytest.mark.parametrize("layout", IN_FOLDERS)
def test_a_split_is_found_in_a_folder(tmp_path, layout):
    names, name, wanted = IN_FOLDERS[layout]
    touch(tmp_path, *names)
    found = listed(tmp_path, **({"name": name} if name else {}))
    assert [file["path"] for file in found] == wanted
    assert [file["name"] for file in found] == [path.rpartition("/")[2] for path in wanted]


def test_a_split_that_datasets_saved_is_read(tmp_path):
    rows = datasets.Dataset.from_dict({"text": ["Eins.", "Zwei."]})
    datasets.DatasetDict({"train": rows, "test": rows}).save_to_disk(str(tmp_path / "set"))
    (file,) = listed(tmp_path)
    tables = READERS.get("dataset")({file["name"]: tmp_path / "set" / file["path"]}, "c", ["de"], columns={"text": "text"}, kind="mono")
    assert pa.concat_tables(tables)["text"].to_pylist() == ["Eins.", "Zwei."]


def test_a_folder_without_the_split_is_told_and_one_that_is_not_there_lacks_its_file(tmp_path):
    assert listed(tmp_path, name="de") == [{"name": "de-train.parquet"}]
    touch(tmp_path, "test.csv")
    with pytest.raises(InputError, match=r"'mine'.*/set: .*'train'.*\['test.csv'\]"):
        listed(tmp_path)
    touch(tmp_path, "de/train.csv", "fr/train.csv")
    with pytest.raises(InputError, match=r"/set: .*'train'.*\['de', 'fr'\].*`name`"):
        listed(tmp_path)
