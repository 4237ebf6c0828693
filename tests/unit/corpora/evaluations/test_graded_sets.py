"""Sets of graded pairs in their official formats: STS12-16, STS-B and SICK-R through the catalog's readers, STS22, quality estimation."""

from __future__ import annotations

import gzip
import io
import json
import tarfile

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from gold_pairs import pairs_of

from crosslign.corpora import EVALUATIONS, READERS, Given
from crosslign.corpora.evaluation import Evaluation
from crosslign.errors import InputError


def write(folder, files):
    """Write {name: text} and return path by name."""
    paths = {}
    for name, text in files.items():
        paths[name] = folder / name
        paths[name].parent.mkdir(parents=True, exist_ok=True)
        paths[name].write_text(text, encoding="utf-8")
    return paths


def read(kind, files, langs=(), limit=None, corpora=None, **options) -> Evaluation:
    return EVALUATIONS.get(kind)(Given(files, corpora or {}, "demo", list(langs), limit, 0), **options)


STS16 = {
    "STS/STS16-en-test/STS.input.headlines.txt": "A dog.\tA hound.\tsource\nRain.\tSun.\nOne.\tTwo.\n",
    "STS/STS16-en-test/STS.gs.headlines.txt": "4.5\n\n0\n",
    "STS/STS16-en-test/STS.input.plagiarism.txt": "He ran.\tHe walked.\n",
    "STS/STS16-en-test/STS.gs.plagiarism.txt": "2\n",
    "STS/STS15-en-test/STS.input.images.txt": "x\ty\n",
    "STS/STS15-en-test/STS.gs.images.txt": "1\n",
    "STS/STS16-en-test/STS.gs.ALL.txt": "4.5\n",
}


def test_sts16_leaves_out_pairs_that_were_not_graded(tmp_path):
    evaluation = read("senteval_sts", write(tmp_path, STS16), year=16)
    assert evaluation.items["subset"].unique().to_pylist() == ["headlines", "plagiarism"]
    assert pairs_of(evaluation, "headlines") == [("en", "A dog.", "en", "A hound.", 4.5), ("en", "One.", "en", "Two.", 0)]
    assert read("senteval_sts", write(tmp_path, STS16), year=16, limit=1).gold.num_rows == 2


def test_sts_years_are_read_from_the_bundle_as_it_is_packed(tmp_path):
    paths = write(tmp_path, STS16)
    with tarfile.open(tmp_path / "senteval.tar", "w") as archive:
        for name, path in paths.items():
            archive.add(path, f"downstream/{name}")
    packed = read("senteval_sts", {"senteval.tar": tmp_path / "senteval.tar"}, year=16)
    assert packed.gold.equals(read("senteval_sts", paths, year=16).gold)


@pytest.mark.parametrize("form", ["STS2016.{}.txt", "sts2016-with-gs/STS2016.{}.txt", "test-gold/STS.{}.txt", "STS2016-en-test/STS.{}.txt"])
def test_sts_years_are_read_as_semeval_gave_them_out(tmp_path, form):
    own = {form.format(name[len("STS/STS16-en-test/STS.") : -len(".txt")]): text for name, text in STS16.items() if "STS16" in name}
    bundle = read("senteval_sts", write(tmp_path, STS16), year=16)
    assert read("senteval_sts", write(tmp_path, own), year=16).gold.equals(bundle.gold)


def test_files_without_a_year_are_of_none_where_others_name_one(tmp_path):
    plain = {"STS.input.images.txt": "x\ty\nx\tz\n", "STS.gs.images.txt": "1\n2\n"}
    assert read("senteval_sts", write(tmp_path, {**STS16, **plain}), year=15).gold.num_rows == 1
    twice = {**plain, **{f"more/{name}": text for name, text in plain.items()}}
    with pytest.raises(InputError, match=r"demo: .*images.*STS\.input\.images\.txt.*more"):
        read("senteval_sts", write(tmp_path, twice), year=15)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("gs.headlines", "4.5\n\n", r"STS\.gs\.headlines\.txt:3: .*\b3 pairs, 2 "),
        ("gs.headlines", "4.5\n\n5.5\n", r"gs\.headlines\.txt:3: .*grade.*'5\.5'"),
        ("gs.headlines", "4.5\n\nnan\n", r"gs\.headlines\.txt:3: .*grade.*'nan'"),
        ("input.headlines", "A dog.\tA hound.\nRain.\nOne.\n", r"input\.headlines\.txt:3: .*sentences.* 1$"),
        ("input.headlines", "A dog.\t \nRain.\tSun\nOne.\tTwo.\n", r"input\.headlines\.txt:1: .*empty"),
    ],
)
def test_sts_year_mistakes(tmp_path, file, text, message):
    paths = write(tmp_path, {**STS16, f"STS/STS16-en-test/STS.{file}.txt": text})
    with pytest.raises(InputError, match=message):
        read("senteval_sts", paths, year=16)


def test_sts_year_files_that_are_missing(tmp_path):
    paths = write(tmp_path, STS16)
    with pytest.raises(InputError, match=r"demo: .*STS14-en-test.*STS2014\.input"):
        read("senteval_sts", paths, year=14)
    del paths["STS/STS16-en-test/STS.gs.plagiarism.txt"]
    with pytest.raises(InputError, match=r"demo: .*plagiarism"):
        read("senteval_sts", paths, year=16)


def test_sts13_has_grades_of_smt_alone(tmp_path):
    head = "STS/STS13-en-test/STS"
    texts = {f"{head}.input.FNWN.txt": "a\tb\n", f"{head}.gs.FNWN.txt": "1\n", f"{head}.gs.SMT.txt": "2\n3\n"}
    evaluation = read("senteval_sts", write(tmp_path, texts), year=13)
    assert evaluation.items["subset"].unique().to_pylist() == ["FNWN"]
    with pytest.raises(InputError, match=r"demo: .*SMT"):
        read("senteval_sts", write(tmp_path, {f"{head}.input.SMT.txt": "a\tb\n"}), year=13)


def corpus(reader, files, langs, **options):
    return pa.concat_tables(READERS.get(reader)(files, "demo", langs, **options))


def test_sts_benchmark_through_the_readers_of_the_catalog(tmp_path):
    line = "main-captions\tMSRvid\t2012test\t{}\t{}\t{}\t{}\n"
    text = line.format("0024", "2.500", 'A "girl" sings.', "A girl hums.") + line.format("0033", "3.600", "A man.", "A woman.")
    files = write(tmp_path, {"sts-test.csv": text})
    table = corpus("tsv", files, ["en"], columns={5: "score", 6: "a_text", 7: "b_text"})
    evaluation = read("graded", {}, corpora={"stsb": table}, subset="en")
    assert pairs_of(evaluation, "en") == [("en", 'A "girl" sings.', "en", "A girl hums.", 2.5), ("en", "A man.", "en", "A woman.", 3.6)]


def test_sick_through_the_readers_of_the_catalog(tmp_path):
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    files = write(tmp_path, {"SICK_test_annotated.txt": head + "6\tA dog is here\tNo dog is here\t3.3\tCONTRADICTION\n"})
    columns = {"sentence_A": "a_text", "sentence_B": "b_text", "relatedness_score": "score"}
    table = corpus("tsv", files, ["en"], columns=columns, header=True)
    evaluation = read("graded", {}, corpora={"sickr": table})
    assert pairs_of(evaluation, "en-en") == [("en", "A dog is here", "en", "No dog is here", 3.3)]


def test_korean_pairs_of_the_mirror(mirror):
    columns = {"sentence1": "a_text", "sentence2": "b_text", "score": "score"}
    table = corpus("tsv", {"sts-dev.tsv": mirror / "korsts" / "sts-dev.tsv"}, ["ko"], columns=columns, header=True)
    evaluation = read("graded", {}, corpora={"korsts": table})
    assert evaluation.gold.num_rows == 1500
    assert max(evaluation.gold["score"].to_pylist()) == 5


def test_graded_pairs_keep_both_languages_and_drop_what_has_no_score():
    columns = {"id": ["1", "2", "3"], "a_lang": ["en", "de", "en"], "a_text": ["a", "b", "c"], "b_lang": ["de", "en", "de"]}
    table = pa.table({**columns, "b_text": ["x", "y", "z"], "score": pa.array([1.0, 2.0, None], pa.float32())})
    evaluation = read("graded", {}, corpora={"ext": table})
    assert pairs_of(evaluation, "en-de") == [("en", "a", "de", "x", 1)]
    assert pairs_of(evaluation, "de-en") == [("de", "b", "en", "y", 2)]
    assert evaluation.gold.num_rows == 2
    assert read("graded", {}, ["en"], corpora={"ext": table}).gold.num_rows == 0


STS22 = [
    {"id": "1", "score": 4.5, "sentence1": "Eins.", "sentence2": "One.", "lang": "de-en"},
    {"id": "2", "score": 1.0, "sentence1": "Un.", "sentence2": "Deux.", "lang": "fr"},
    {"id": "3", "score": None, "sentence1": "Trois.", "sentence2": "Quatre.", "lang": "fr"},
]


@pytest.mark.parametrize("form", ["test.jsonl", "test.jsonl.gz", "test.parquet"])
def test_sts22_in_the_forms_of_mteb(tmp_path, form):
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in STS22)
    path = tmp_path / form
    if form.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    elif form.endswith(".parquet"):
        pa.parquet.write_table(pa.Table.from_pylist(STS22), path)
    else:
        path.write_text(text, encoding="utf-8")
    evaluation = read("mteb_sts", {f"data/{form}": path})
    assert pairs_of(evaluation, "de-en") == [("de", "Eins.", "en", "One.", 4.5)]
    assert pairs_of(evaluation, "fr") == [("fr", "Un.", "fr", "Deux.", 1)]
    assert read("mteb_sts", {f"data/{form}": path}, subsets=["fr"]).items["subset"].unique().to_pylist() == ["fr"]
    with pytest.raises(InputError, match=r"demo: .*'fr-pl'.* fr$"):
        read("mteb_sts", {f"data/{form}": path}, subsets=["fr", "fr-pl"])


def test_sts17_of_mteb_by_folder_and_mistakes(tmp_path):
    row = {"score": 2, "sentence1": "a", "sentence2": "b"}
    paths = write(tmp_path, {"data/en-tr/test.jsonl": json.dumps(row) + "\n"})
    assert pairs_of(read("mteb_sts", paths), "en-tr") == [("en", "a", "tr", "b", 2)]
    for broken, message in (
        ({**row, "score": 6}, r"test\.jsonl:1: .*grade.*'6'"),
        ({**row, "sentence2": ""}, r"test\.jsonl:1: .*sentence2"),
        ([1], r"test\.jsonl:1: .*object.* 1$"),
    ):
        paths["data/en-tr/test.jsonl"].write_text(json.dumps(broken) + "\n")
        with pytest.raises(InputError, match=message):
            read("mteb_sts", paths)
    paths["data/en-tr/test.jsonl"].write_text("{\n")
    with pytest.raises(InputError, match=r"test\.jsonl:1: .* JSON; "):
        read("mteb_sts", paths)
    with pytest.raises(InputError, match=r"test\.jsonl: .*`lang`.*name"):
        read("mteb_sts", write(tmp_path, {"test.jsonl": json.dumps(row) + "\n"}))


@pytest.mark.parametrize("packing", [".json", ".json.gz"])
def test_pairs_of_a_json_array_are_read_also_behind_a_blank_line(tmp_path, packing):
    rows = [{"score": 2, "sentence1": "a", "sentence2": "b"}, {"score": 4, "sentence1": "c", "sentence2": "d"}]
    content = ("\n" + json.dumps(rows, indent=1)).encode()
    path = tmp_path / f"en{packing}"
    path.write_bytes(gzip.compress(content) if packing.endswith("gz") else content)
    assert pairs_of(read("mteb_sts", {path.name: path}), "en") == [("en", "a", "en", "b", 2), ("en", "c", "en", "d", 4)]


def test_a_set_of_pairs_is_never_empty(tmp_path):
    with pytest.raises(InputError, match=r"demo: .*en\.tsv.*\.jsonl"):
        read("mteb_sts", write(tmp_path, {"en.tsv": "2\ta\tb\n"}))


def test_an_article_of_sts22_without_text_is_one_space(tmp_path):
    """Sizes and published figures of its first version count such pairs."""
    text = "".join(json.dumps({"score": 2, "sentence1": first, "sentence2": "b"}) + "\n" for first in ("a", "", None, " "))
    paths = write(tmp_path, {"en/test.jsonl": text})
    found = pairs_of(read("mteb_sts", paths, empty_as_space=True), "en")
    assert found == [("en", first, "en", "b", 2) for first in ("a", " ", " ", " ")]
    with pytest.raises(InputError, match=r"test\.jsonl:2: .*sentence1"):
        read("mteb_sts", paths)


QE = "index\toriginal\ttranslation\tscores\tmean\tz_scores\tz_mean\tmodel_scores\n"


def quality_archive(folder, name, text, **others):
    with tarfile.open(folder / name, "w:gz") as archive:
        for member, content in {"dev.ende.df.short.tsv": text, **others}.items():
            info = tarfile.TarInfo(f"{name.removesuffix('.tar.gz')}/{member}")
            info.size = len(content.encode())
            archive.addfile(info, io.BytesIO(content.encode()))
    return {name: folder / name}


def test_quality_estimation_is_scored_by_z_mean(tmp_path):
    files = quality_archive(tmp_path, "en-de-dev.tar.gz", QE + '0\tShe said "no.\tSie sagte nein.\t[1, 2]\t64.1\t[0.1]\t-0.25\t-0.3\n')
    assert pairs_of(read("mlqe_pe", files), "en-de") == [("en", 'She said "no.', "de", "Sie sagte nein.", -0.25)]
    assert pairs_of(read("mlqe_pe", files, score="mean"), "en-de")[0][4] == 64.1
    with pytest.raises(InputError, match=r"dev\.ende\.df\.short\.tsv:1: .*'z_median'"):
        read("mlqe_pe", files, score="z_median")
    with pytest.raises(InputError, match=r"demo: .*dev\.ende\.df\.short\.tsv"):
        read("mlqe_pe", files, ["fr", "en"])
    twice = {**files, **quality_archive(tmp_path, "en-de-test.tar.gz", QE + "0\ta\tb\t[]\t1\t[]\t1\t1\n")}
    with pytest.raises(InputError, match=r"demo: .*en-de.*`files`"):
        read("mlqe_pe", twice)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0\ta\tb\t[]\t1\t[]\n", r"dev\.ende\.df\.short\.tsv:2: .*6.*\b8\b"),
        ("0\ta\tb\t[]\t1\t[]\tgood\t1\n", r"short\.tsv:2: .*grade.*'good'"),
        ("0\t\tb\t[]\t1\t[]\t1\t1\n", r"dev\.ende\.df\.short\.tsv:2: .*empty"),
    ],
)
def test_quality_estimation_mistakes(tmp_path, line, message):
    with pytest.raises(InputError, match=message):
        read("mlqe_pe", quality_archive(tmp_path, "en-de-dev.tar.gz", QE + line))


def test_sentences_of_a_document_of_quality_estimation_are_resampled_together(tmp_path):
    """Where the archive names them, behind a first line `doc_id`."""
    rows = QE + "".join(f"{at}\ta{at}\tb{at}\t[]\t1\t[]\t{at}\t1\n" for at in range(3))
    files = quality_archive(tmp_path, "en-de-dev.tar.gz", rows, **{"dev.doc_ids": "doc_id\nMoon\nMoon\nSun\n"})
    assert read("mlqe_pe", files).items["cluster"].to_pylist() == ["Moon"] * 4 + ["Sun"] * 2
    assert "cluster" not in read("mlqe_pe", quality_archive(tmp_path, "en-de-dev.tar.gz", rows)).items.column_names
    files = quality_archive(tmp_path, "en-de-dev.tar.gz", rows, **{"dev.doc_ids": "doc_id\nMoon\nMoon\n"})
    with pytest.raises(InputError, match=r"dev\.doc_ids:4: .*\.tsv.*4,.*doc_ids.*\b3\b"):
        read("mlqe_pe", files)


def test_quality_estimation_of_2021_has_a_file_a_side(tmp_path):
    members = {"test21.src": "One.\nTwo.\n", "test21.mt": "Eins.\nZwei.\n", "goldlabels/test21.da": "-0.5\n1.25\n"}

    def packed(**changes):
        with tarfile.open(tmp_path / "en-de-test21.tar.gz", "w:gz") as archive:
            for name, text in {**members, **changes}.items():
                info = tarfile.TarInfo(f"en-de-test21/{name}")
                info.size = len(text)
                archive.addfile(info, io.BytesIO(text.encode()))
        return {"en-de-test21.tar.gz": tmp_path / "en-de-test21.tar.gz"}

    assert pairs_of(read("mlqe_pe", packed()), "en-de") == [("en", "One.", "de", "Eins.", -0.5), ("en", "Two.", "de", "Zwei.", 1.25)]
    with pytest.raises(InputError, match=r"test21\.da:2: .*test21\.da.*1, test21\.mt.*2, test21\.src.*\b2\b"):
        read("mlqe_pe", packed(**{"goldlabels/test21.da": "1\n"}))
    del members["test21.mt"]
    with pytest.raises(InputError, match=r"test21\.src: .*test21\.mt .*en-de .*missing"):
        read("mlqe_pe", packed())


def test_quality_estimation_of_the_mirror(mirror):
    files = {path.name: path for path in (mirror / "mlqe-pe/direct-assessments/dev").glob("*.tar.gz")}
    evaluation = read("mlqe_pe", files)
    assert evaluation.gold.num_rows == 7000
    items = evaluation.items.filter(pc.equal(evaluation.items["subset"], "ro-en"))
    assert len(items["cluster"].unique()) == 100  # ten sentences of each article
    first = pairs_of(evaluation, "en-de")[0]
    assert (first[0], first[2], first[4]) == ("en", "de", -0.3122)
    assert first[1].startswith("Simultaneously, the Legion took part")
