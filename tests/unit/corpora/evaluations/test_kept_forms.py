"""Official files in the forms in which people keep them: packed, in an archive, in a folder of the publisher's whole repository."""

from __future__ import annotations

import gzip
import json
import zipfile

import pytest
from test_graded_sets import read, write

from crosslign.errors import InputError


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


QUESTION = {"premise": "p", "choice1": "a", "choice2": "b", "question": "cause", "label": 0}
PARAGRAPH = {"context": "One.", "sentence_breaks": [[0, 4]], "qas": [{"id": "q", "question": "Q?", "answers": [{"answer_start": 0}]}]}
MENTION = {"context": {"text": "A", "language": "de"}, "mentions": []}
LAW = {"celex_id": "1", "text": {"de": "x"}, "eurovoc_concepts": {"level_1": ["100142"]}}
SETS = {
    "tatoeba": ({}, {"tatoeba.deu-eng.deu": "eins\n", "tatoeba.deu-eng.eng": "one\n"}),
    "bucc": (
        {"langs": ["de"], "split": "training"},
        {"de-en.training.de": "a\teins\n", "de-en.training.en": "b\tone\n", "de-en.training.gold": "a\tb\n"},
    ),
    "flores200": ({"parts": ["dev"]}, {"deu_Latn.dev": "eins\n", "eng_Latn.dev": "one\n"}),
    "sts17": ({}, {"STS.input.track5.en-en.txt": "a\tb\n", "STS.gs.track5.en-en.txt": "1\n"}),
    "xcopa": ({}, {"test.it.jsonl": lines(QUESTION)}),
    "xquad_r": ({"part": "candidates"}, {"de.json": json.dumps({"data": [{"paragraphs": [PARAGRAPH]}]})}),
    "mewsli_x": (
        {"part": "entities"},
        {
            "wikinews_mentions-test.jsonl": lines(MENTION),
            "candidate_set_entities.jsonl": lines({"entity_id": "Q1", "description": "A cat."}),
        },
    ),
    "multi_eurlex": ({}, {"test.jsonl": lines(LAW)}),
}


def packed(folder, files):
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        for name, text in files.items():
            archive.writestr(f"master/{name}", text)
    return {"all.zip": folder / "all.zip"}


@pytest.mark.parametrize("kind", SETS)
def test_a_set_is_the_same_packed_and_in_an_archive(tmp_path, kind):
    options, files = SETS[kind]
    plain = read(kind, write(tmp_path, files), **options)
    zipped = read(kind, packed(tmp_path, files), **options)
    alone = {f"{name}.gz": tmp_path / f"{name}.gz" for name in files}
    for name, text in files.items():
        alone[f"{name}.gz"].write_bytes(gzip.compress(text.encode()))
    for other in (zipped, read(kind, alone, **options)):
        assert (other.texts, other.items, other.gold) == (plain.texts, plain.items, plain.gold)


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("archive", [False, True])
def test_two_files_for_one_place_are_refused(tmp_path, kind, archive):
    """Golden: cambridgeltl/xcopa holds `data/it/test.it.jsonl` and its translation `data-gmt/it/test.it.jsonl`, LAReQA two `de.json`."""
    options, files = SETS[kind]
    two = {f"{folder}/{name}": text for folder in ("data-gmt", "data") for name, text in files.items()}
    with pytest.raises(InputError, match=r"demo: .*data-gmt/.*data/.*`files`"):
        read(kind, packed(tmp_path, two) if archive else write(tmp_path, two), **options)


def test_files_of_two_splits_in_mtebs_form_are_refused(tmp_path):
    row = lines({"sentence1": "a", "sentence2": "b", "score": 1})
    files = write(tmp_path, {"train/en-de.jsonl": row, "test/en-de.jsonl": row})
    with pytest.raises(InputError, match=r"subset 'en-de': .*'en-de\.jsonl:1:first'"):
        read("mteb_sts", files)


def test_two_files_of_our_own_are_refused(tmp_path):
    files = write(tmp_path, {f"{folder}/sts_en.tsv": "id\tscore\tfirst\tsecond\n1\t2\ta\tb\n" for folder in "ab"})
    with pytest.raises(InputError, match=r"demo: .*sts_en\.tsv; .*a/sts_en\.tsv.*b/sts_en\.tsv"):
        read("sts_tsv", files)


def test_two_files_of_labels_are_refused_and_packed_ones_are_read(tmp_path):
    question = lines({"context": "c", "question": "q", "answerA": "a", "answerB": "b", "answerC": "c"})
    files = write(tmp_path, {"dev.jsonl": question})
    packed_labels = tmp_path / "dev-labels.lst.gz"
    packed_labels.write_bytes(gzip.compress(b"2\n"))
    found = read("xcopa", {**files, "dev-labels.lst.gz": packed_labels}, split="dev")
    assert found.items["label"].to_pylist() == [[0], [1], [0]]
    two = write(tmp_path, {f"{folder}/dev-labels.lst": "2\n" for folder in "ab"})
    with pytest.raises(InputError, match=r"dev\.jsonl: .*a/dev-labels\.lst.*b/dev-labels\.lst.*`files`"):
        read("xcopa", {**files, **two}, split="dev")
