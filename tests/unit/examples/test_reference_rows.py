"""Rows of every fine-tune, read from lines of the official format, against what the reference processors made of the same lines.

`reference/*.json` hold the lines, which were written by hand, and the processor's own output, with its repository and commit; its code
stays outside.
"""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from held_rows import held

from crosslign.config.load import load_project
from crosslign.corpora import READERS
from crosslign.examples import BUILDERS, Material

ROOT = Path(__file__).resolve().parents[3]
REFERENCES = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((Path(__file__).parent / "reference").glob("*.json"))
}
FIRST_CONCEPT = 100_142
"""The concept of MultiEURLEX that is class 0."""


@pytest.fixture(scope="module")
def project():
    return load_project(ROOT, {"scale": "paper", "papers": ["emma_x", "msimcse"]})


def packed(name, members):
    """Return the bytes of an archive of this name, or of the one file that it is."""
    held_in = io.BytesIO()
    if name.endswith(".zip"):
        with zipfile.ZipFile(held_in, "w") as archive:
            for member, lines in members.items():
                archive.writestr(member, "".join(f"{line}\n" for line in lines))
        return held_in.getvalue()
    with tarfile.open(fileobj=held_in, mode="w:gz" if name.endswith("gz") else "w") as archive:
        for member, lines in members.items():
            content = "".join(f"{line}\n" for line in lines).encode("utf-8")
            entry = tarfile.TarInfo(member)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return held_in.getvalue()


def written(tmp_path, name, content):
    """Write one file of the official form: an archive of lines by member, lines, or one JSON document."""
    path = tmp_path / name
    if name.endswith((".zip", ".tar", ".gz")):
        path.write_bytes(packed(name, content))
    elif isinstance(content, list):
        path.write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
    else:
        path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


def plain(text):
    """Return a text as tokenizers of these encoders see it: runs of white space are one space."""
    return " ".join(text.split())


def label_of(row, entry):
    """Return a reference's label as the number, or the numbers, of its class."""
    label = row["label"]
    if isinstance(label, list):
        return sorted(float(int(concept) - FIRST_CONCEPT) for concept in label)
    names = {"contradictory": "contradiction"}
    if isinstance(label, str) and not label.replace(".", "").isdigit():
        return [float(entry["labels"].index(names.get(label, label)))]
    return [round(float(label), 4)]


def sets_of(project, finetune):
    return {term["examples"] for term in project.finetunes[finetune]["terms"]}


def rows_of(project, examples, corpus, lang, files):
    """Build a training set of one corpus, in one language, from files of the official form."""
    entry, options = project.corpora[corpus], dict(project.examples[examples])
    read = READERS.get(entry["reader"])
    langs = entry["langs"] if len(entry["langs"]) == 2 else [lang]
    tables = list(read(files, corpus, langs, **entry.get("options", {})))
    build = BUILDERS.get(options.pop("builder"))
    for key in ("from", "of", "seed", "decontaminate"):
        options.pop(key, None)
    langs = options.pop("langs", [])
    material = Material(examples, {corpus: held(pa.concat_tables(tables))}, {}, langs, 42)
    return [row for part in build(material, **options) for row in part.to_pylist()]


def made(row):
    """Return a row of a training set as the reference's are compared."""
    text_b = None if row["b_text"] is None else plain(row["b_text"])
    return row["a_lang"], plain(row["a_text"]), text_b, sorted(round(value, 4) for value in row["label"]) if "label" in row else None


@pytest.mark.parametrize("name", REFERENCES)
def test_rows_are_those_of_the_reference_processor(project, tmp_path, name):
    reference = REFERENCES[name]
    ((corpus, files),) = reference["file"].items()
    entry = project.corpora[corpus]
    paths = {file: written(tmp_path, file, content) for file, content in files.items()}
    for finetune in reference["finetunes"]:
        for examples in sets_of(project, finetune):
            assert corpus in project.examples[examples]["from"]
            found = []
            langs = dict.fromkeys(row["lang"] for row in reference["rows"])
            for lang in langs:
                found += [made(row) for row in rows_of(project, examples, corpus, lang, paths) if row["a_lang"] in langs]
            wanted = [
                (
                    row["lang"],
                    plain(row["a"]),
                    plain(row["b"]) if "b" in row else None,
                    label_of(row, entry) if "label" in row else None,
                )
                for row in reference["rows"]
            ]
            assert sorted(found, key=str) == sorted(wanted, key=str), finetune


def test_every_fine_tune_of_the_benchmark_has_a_reference(project):
    """XRETE's, and mSimCSE's classifiers: each training set that a fine-tune reads, by the processor that made its rows."""
    held_to = {finetune for reference in REFERENCES.values() for finetune in reference["finetunes"]}
    xrete = {name for name in project.finetunes if project.paper_of[name] == "emma_x"}
    assert xrete | {"pawsx_transfer"} == held_to
    assert all(len(reference["rows"]) >= 9 and reference["reference"]["commit"] for reference in REFERENCES.values())


@pytest.mark.parametrize("finetune", ["lareqa_squad", "mewsli_pairs"])
def test_what_asks_stands_first_in_every_row(project, tmp_path, finetune):
    """The loss is of the question or the mention to its answer; no row may turn the other way."""
    name = next(name for name, reference in REFERENCES.items() if finetune in reference["finetunes"])
    ((corpus, files),) = REFERENCES[name]["file"].items()
    paths = {file: written(tmp_path, file, content) for file, content in files.items()}
    asked = {plain(row["a"]) for row in REFERENCES[name]["rows"]}
    for examples in sets_of(project, finetune):
        assert {plain(row["a_text"]) for row in rows_of(project, examples, corpus, "en", paths)} == asked
