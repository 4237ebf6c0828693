"""What jobs ask for: more for larger encoders, more data and further attempts, and never under the shortest nor over the longest."""

from dataclasses import replace
from pathlib import Path

import pytest

from crosslign.config.data_plan import data_plan
from crosslign.config.load import load_project
from crosslign.config.loads import COPY_SHARE, corpus_mb, encoder_size, examples_mb, large_sets, parameters
from crosslign.config.resolve import kept_checkpoints, run_recipe, runs_of
from crosslign.config.resources import (
    LONGEST,
    MOST_MB,
    REMEMBERING,
    SHORTEST,
    corpus_threads,
    job_need,
    load_of,
    search_gpus,
    search_threads,
    tokenising_threads,
    uncapped_need,
)
from crosslign.corpora.filters import FILTERS
from crosslign.errors import InputError

ROOT = Path(__file__).resolve().parents[3]


def project(scale, papers=("msimcse", "moco_bert"), **more):
    return load_project(ROOT, {"scale": scale, "papers": list(papers), "targets": ["all"], **more})


@pytest.fixture(scope="module")
def paper():
    return project("paper")


@pytest.fixture(scope="module")
def mpcl():
    return project("paper", ("mpcl",))


@pytest.fixture(scope="module")
def web():
    return project("paper", ("emma_x",))


@pytest.fixture(scope="module")
def quick():
    return project("quick")


def test_a_larger_encoder_asks_for_more_memory(paper):
    large, base = (job_need(paper, "prepare_encoder", {"encoder": name}, 1).mem_mb for name in ("xlm-r", "bert_base_en"))
    assert large > base > 2000
    assert parameters(paper, "MS-E-s42") == encoder_size(paper, "xlm-r") == 560


def test_only_large_corpora_with_filters_of_single_rows_get_several_processes(web):
    """Golden: of 24 GB of CCMatrix's English and Chinese fewer rows are read than identified; 54 MB; MultiNLI's 227 MB have no filter."""
    large = ("ccmatrix_en-zh", "ccaligned_en-th", "wikipedia_dump_en")
    small = ("ccmatrix_en-fy", "tatoeba_en-zh", "multinli_train", "xnli_mt")
    assert [corpus_threads(web, name) for name in large] == [4] * len(large)
    assert [corpus_threads(web, name) for name in small] == [1] * len(small)
    assert {corpus_threads(project("quick", ("emma_x",)), name) for name in large} == {1}


def test_a_sample_that_is_drawn_first_waits_for_its_reader_alone(web):
    """Golden: 92 GB of ParaCrawl, and CC-100's first gigabytes, have no filter that is worth a process; 161 GB of CCMatrix take longer to
    read than their candidates' languages to identify. Without a sample all rows are filtered.
    """
    sampled = ("paracrawl_en-fr", "cc100_en", "cc100_sw", "ccmatrix_en-es")
    assert [corpus_threads(web, name) for name in sampled] == [1] * len(sampled)
    entry = {key: value for key, value in web.corpora["paracrawl_en-fr"].items() if key != "sample"}
    assert corpus_threads(replace(web, corpora={**web.corpora, "paracrawl_en-fr": entry}), "paracrawl_en-fr") == 4


def test_a_file_of_unknown_size_is_small_where_evaluation_sets_alone_are_made_of_it():
    """Golden: MTOP's twelve files count 2 MB each where nobody says their size, and 50 MB where they train."""
    known = project("paper", ("mpcl",))
    source = known.sources["mtop_mteb"]
    unsized = {**source, "files": [{"name": file["name"]} for file in source["files"]]}
    mpcl = replace(known, sources={**known.sources, "mtop_mteb": unsized})
    assert corpus_mb(mpcl, "mtop") == 24
    rows = {"builder": "labelled_rows", "from": ["mtop_train_rows"]}
    trained = replace(mpcl, examples={**mpcl.examples, "mtop_rows": rows})
    assert corpus_mb(trained, "mtop_train_rows") == 300
    assert corpus_mb(trained, "mtop_test_rows") == 12


def test_an_archive_of_many_sets_counts_once_and_is_read_whole(paper):
    """Golden: 2.77 GB packed; the test part has 5,000 laws in 23 languages, each counted as five sentences of 100 bytes."""
    needs = data_plan(paper, ["multi_eurlex_test", "multi_eurlex_dev", "sts12", "sts13"])
    files = {(need.source, need.file): need.about_bytes for need in needs}
    assert sum(files.values()) == 2_770_050_147 + 89_800_000
    assert corpus_mb(paper, "multi_eurlex_test") == pytest.approx(115_000 * 500 / 1e6, rel=0.1)
    assert corpus_mb(paper, "sts12") < 1
    assert job_need(paper, "build_evaluation", {"corpus": "multi_eurlex_dev"}, 1).runtime > 30 + 2770 * 4 / 50 - 1
    assert not {"multi_eurlex_test", "sts12"} & set(large_sets(paper))


def test_a_download_asks_for_the_disk_of_its_file(web):
    file = next(file for file in web.sources["opus_paracrawl"]["files"] if file["name"] == "en-fr.txt.zip")
    wildcards = {"source": "opus_paracrawl", "file": "en-fr.txt.zip"}
    assert job_need(web, "fetch", wildcards, 1).disk_mb == pytest.approx((file.get("bytes") or file["about_bytes"]) / 1e6, abs=2)


def test_filters_that_remember_rows_get_no_processes(web):
    every = {key: value for key, value in web.corpora["paracrawl_en-fr"].items() if key != "sample"}
    entry = {**every, "filters": [{"exact_duplicate": {}}]}
    assert corpus_threads(replace(web, corpora={**web.corpora, "paracrawl_en-fr": entry}), "paracrawl_en-fr") == 1
    for rule in REMEMBERING:
        assert FILTERS.get(rule).remembers


def test_a_corpus_asks_for_the_time_and_disk_of_what_it_reads(web):
    """All of an archive is read, whatever is kept of it; without a sample, or before near duplicates, all waits on disk, too."""
    wildcards = {"corpus": "paracrawl_en-fr"}
    entry = web.corpora["paracrawl_en-fr"]
    halved = replace(web, corpora={**web.corpora, "paracrawl_en-fr": {**entry, "sample": entry["sample"] // 2}})
    whole, half = (job_need(of, "build_corpus", wildcards, 1) for of in (web, halved))
    assert whole.runtime > half.runtime > 91_000 / 500
    assert 10_000 > whole.disk_mb > half.disk_mb
    assert job_need(web, "build_corpus", wildcards, 2).disk_mb == 2 * whole.disk_mb
    near = {**entry, "filters": [*entry["filters"], {"near_duplicate": {}}]}
    every = {key: value for key, value in entry.items() if key != "sample"}
    for staging in (near, every):
        of = replace(web, corpora={**web.corpora, "paracrawl_en-fr": staging})
        assert job_need(of, "build_corpus", wildcards, 1).disk_mb > 60_000


def test_language_identification_takes_longer(web):
    """Of a sample, for the rows that could be drawn when they came."""
    every = {key: value for key, value in web.corpora["ccmatrix_en-ca"].items() if key != "sample"}
    without = {**every, "filters": [step for step in every["filters"] if "language_id" not in step]}
    whole, unidentified, drawn = (
        job_need(replace(web, corpora={**web.corpora, "ccmatrix_en-ca": entry}), "build_corpus", {"corpus": "ccmatrix_en-ca"}, 1)
        for entry in (every, without, web.corpora["ccmatrix_en-ca"])
    )
    read = load_of(web, "build_corpus", {"corpus": "ccmatrix_en-ca"}).read_mb
    assert whole.runtime - unidentified.runtime == pytest.approx(11 * read / 200, abs=1)
    assert drawn.runtime < whole.runtime / 3


def test_rows_that_could_be_drawn_are_counted_as_records_are(web):
    """Of n numbers in random order, each is among the k least so far with probability min(1, k / n); a row is let go 2 k rows late."""
    load = load_of(web, "build_corpus", {"corpus": "ccmatrix_en-es"})
    k, n = load.text_mb, load.read_mb
    expected = 2 * k + sum(k / place for place in range(round(2 * k), round(n)))
    assert load.filtered_mb == pytest.approx(expected, rel=0.05)
    small = load_of(web, "build_corpus", {"corpus": "paracrawl_en-sw"})
    assert small.filtered_mb == small.read_mb == small.text_mb


def test_a_sample_asks_for_the_memory_of_twice_its_rows(web):
    """ParaCrawl's 5.1 million rows of 300 bytes take 5.4 GB by the extrapolation of benchmarks/growth.py."""
    assert job_need(web, "build_corpus", {"corpus": "paracrawl_en-fr"}, 1).mem_mb > 1.2 * 5400


@pytest.mark.parametrize("papers", [("msimcse", "moco_bert"), ("scl", "mpcl", "emma_x")])
def test_no_corpus_of_the_papers_asks_for_more_than_a_day(papers):
    """Golden: the markup of Wikipedia takes seven hours (docs/filters-and-views.md)."""
    found = project("paper", papers)
    corpora = [name for name, entry in found.corpora.items() if entry["kind"] != "evaluation"]
    minutes = {name: uncapped_need(found, "build_corpus", {"corpus": name}).runtime for name in corpora}
    assert max(minutes.values()) < LONGEST
    assert minutes.get("wikipedia_dump_en", 9999) > 1.2 * 7 * 60


def test_an_evaluation_set_that_is_a_part_of_an_archive_asks_for_what_it_reads(web):
    """MultiEURLEX's 2.8 GB hold 5,000 laws in 23 languages that are tested on, 1.5 GB of text: the job holds all of it."""
    need = job_need(web, "build_evaluation", {"corpus": "multi_eurlex_test"}, 1)
    assert need.mem_mb > 2 * 1536
    assert need.runtime > 120


def test_a_large_training_set_is_tokenised_by_several_processes_and_its_copy_needs_disk(paper):
    assert [tokenising_threads(one, "nli_english") for one in (paper, project("quick"))] == [4, 1]
    text = examples_mb(paper, "nli_english")
    need = job_need(paper, "tokenise", {"examples": "nli_english", "key": "0"}, 1)
    assert (need.mem_mb, need.disk_mb) == (8000, 1 + int(COPY_SHARE * text))
    assert need.runtime == int(30 + text / 20)


def test_wikipedia_can_be_trained_on(paper):
    """The ready form stands in for SimCSE's million sentences, under the same searched sets."""
    built, released = (paper.examples[name] for name in ("wiki_en_built", "wiki_en"))
    assert (built["from"], built["builder"]) == (["wikipedia_en"], released["builder"])
    assert paper.corpora["wikipedia_en"]["sample"] == paper.corpora["wikipedia_dump_en"]["sample"] == 1_000_000
    assert built["decontaminate"] == released["decontaminate"]


def test_an_evaluation_set_cut_from_a_corpus_asks_for_what_it_reads(paper):
    """XNLI-MT is 466 MB packed, of which `xnli_en_sw` keeps 199 premises."""
    need = job_need(paper, "build_evaluation", {"corpus": "xnli_en_sw"}, 1)
    assert need.mem_mb >= int(2000 + corpus_mb(paper, "xnli_mt"))
    assert need.runtime > 30 + 30
    assert need.disk_mb < 10


def test_a_large_text_set_asks_for_what_any_other_does(paper):
    wildcards = {"run": "xlm-r", "checkpoint": "base", "readout": "mean", "text_set": "tatoeba"}
    assert job_need(paper, "embed_large", wildcards, 1) == job_need(paper, "embed", wildcards, 1)


def test_small_scales_ask_for_little(paper, quick):
    run = {"run": "MB-base-s42"}
    small, large = job_need(quick, "train_system", run, 1), job_need(paper, "train_system", run, 1)
    assert small.mem_mb < 4100 < large.mem_mb
    assert small.runtime <= large.runtime
    assert encoder_size(quick, "tiny_bert") < 1


def test_declared_hours_give_the_time(paper):
    assert paper.systems["MB-base"]["gpu_hours"] == 14
    assert job_need(paper, "train_system", {"run": "MB-base-s42"}, 1).runtime == LONGEST
    assert job_need(project("paper", max_runtime=4000), "train_system", {"run": "MB-base-s42"}, 1).runtime == 60 + 120 * 14


def test_the_first_attempt_is_multiplied(paper):
    wildcards = {"run": "MS-E-s42", "checkpoint": "last", "readout": "cls_t32", "text_set": "tatoeba_deu"}
    wildcards["text_set"] = next(name for name, entry in paper.corpora.items() if entry["kind"] == "evaluation")
    first, third = (job_need(paper, "embed", wildcards, attempt) for attempt in (1, 3))
    assert third.mem_mb == 3 * first.mem_mb
    assert third.runtime == min(LONGEST, 3 * first.runtime)
    assert third.disk_mb == 3 * first.disk_mb


def test_no_attempt_asks_for_more_memory_than_there_is(paper):
    wildcards = {
        "run": "xlm-r",
        "task": max(paper.tasks, key=lambda task: job_need(paper, "score", {"run": "xlm-r", "task": task}, 1).mem_mb),
    }
    assert job_need(paper, "score", wildcards, 1).mem_mb == MOST_MB
    assert [job_need(paper, "score", wildcards, attempt).mem_mb for attempt in (2, 4)] == [120_000, 120_000]
    small = project("paper", max_mem_mb=50_000)
    assert {job_need(small, "score", wildcards, attempt).mem_mb for attempt in (1, 2, 3, 4)} == {50_000}


def test_data_are_capped_by_the_scale_and_unpacked(paper, quick):
    name = next(n for n, e in paper.corpora.items() if e["kind"] != "evaluation" and corpus_mb(paper, n) > 10)
    assert corpus_mb(quick, name) < 1 < corpus_mb(paper, name)
    examples = next(iter(paper.examples))
    assert 0 < examples_mb(quick, examples) < 1


def test_labelled_examples_of_one_language_count_its_rows_alone():
    scl = project("paper", ("scl",))
    english, all_languages = (examples_mb(scl, name) for name in ("xnli_transfer", "xnli_tt"))
    assert all_languages == sum(corpus_mb(scl, name) for name in scl.examples["xnli_tt"]["from"])
    read = {name: corpus_mb(scl, name) for name in scl.examples["xnli_transfer"]["from"]}
    expected = (read["xtreme_xnli"] + read["xnli_full"] + read["xnli_partial"]) / 15 + read["xnli_code_switch"]  # which is English alone
    assert english == pytest.approx(expected)


def test_a_rule_without_figures_asks_for_the_least(paper):
    assert job_need(paper, "make_table", {}, 1).runtime == SHORTEST


BUCC_TRAINING = {"de-en": (413_869, 399_337), "fr-en": (271_874, 369_810), "ru-en": (460_853, 558_401), "zh-en": (94_637, 88_860)}
"""Sentences of each side of BUCC 2018's training files."""
SLOW = 24.9e-9
"""Seconds a pair: one thread of a CPU without products in bfloat16, vectors of 1,024 dimensions."""


@pytest.mark.parametrize("task", ["bucc", "bucc_cosine", "bucc_moco"])
def test_a_score_that_searches_has_time_for_every_pair_of_sentences(paper, task):
    """The time grows with the product of the sides, not with their sum."""
    sides = [BUCC_TRAINING["zh-en"]] if task == "bucc_moco" else list(BUCC_TRAINING.values())
    pairs = sum(n * m for n, m in sides) * (2 if task == "bucc" else 1)  # the official test is searched, too
    minutes = pairs * SLOW / 60 / search_threads(paper, task)
    assert job_need(paper, "score", {"run": "xlm-r", "task": task}, 1).runtime > 1.2 * minutes


def test_a_set_of_many_sentences_asks_for_the_memory_of_its_items(paper):
    """Every sentence of BUCC is an item of 1.1 kB (benchmarks/growth.py)."""
    sentences = sum(n + m for n, m in BUCC_TRAINING.values())
    assert job_need(paper, "build_evaluation", {"corpus": "bucc2018_training"}, 1).mem_mb > 1.2 * 1.1e-3 * sentences


def test_a_figure_of_the_nearest_sentences_asks_for_the_memory_of_their_vectors(paper):
    """By hand: a million vectors of 768 numbers are mapped, and as many on the grid of the search."""
    needs = [job_need(paper, "draw_figure", {"figure": name}, 1).mem_mb for name in ("moco_bert_table10_sentences", "moco_bert_figure2")]
    assert needs[0] > 1.2 * 2 * 768 * 4
    assert needs[1] == 4000


def test_what_needs_little_asks_for_no_more_than_ten_times_that(web):
    """By hand: keys of 16 bytes of at most 40 million sentences are sorted; Mewsli-X has 15,000 mentions and a million entities."""
    assert job_need(web, "measure_overlap", {}, 1).mem_mb < 10 * 3 * 16 * 40
    search = 15e3 * 1e6 * SLOW / 60
    assert job_need(web, "score", {"run": "xlm-r", "task": "mewsli_x"}, 1).runtime < 60 + 10 * search


def test_only_large_searches_get_threads_and_a_gpu(paper, quick):
    assert (search_threads(paper, "bucc"), search_threads(paper, "bucc_sample"), search_threads(paper, "tatoeba")) == (8, 1, 1)
    assert [search_gpus(paper, task) for task in ("bucc", "bucc_sample", "sts12")] == [min(1, paper.gpus), 0, 0]
    assert search_threads(quick, "bucc") == 1


@pytest.mark.parametrize("gpus", [0, 2])
def test_a_range_of_a_search_asks_for_its_share_of_time_and_memory(tmp_path, gpus):
    """By hand: 40 million lines of 100 bytes a side, 768 numbers a vector, as its size has it, 8 threads."""
    with (tmp_path / "lines").open("wb") as file:
        file.truncate(4_000_000_000)  # sparse
    side = {"file": str(tmp_path / "lines"), "lang": "en"}
    entry = {"system": "me5_small", "source": side, "target": side}
    mine = {"whole": entry, "parts": {**entry, "shards": 20}}
    own = load_project(ROOT, {"scale": "paper", "papers": ["quickstart"], "mine": mine, "gpus": gpus})
    whole = load_of(own, "mine_search", {"mine": "whole", "part": "1-of-1"})
    assert whole.compared == pytest.approx(1.6e15)
    assert whole.search_minutes == pytest.approx(1.6e15 * SLOW * 768 / 1024 / 60 / 8 / (20 * gpus or 1), rel=0.05)
    part = load_of(own, "mine_search", {"mine": "parts", "part": "3-of-20"})
    assert part.search_minutes == pytest.approx(whole.search_minutes / 20)
    needs = [uncapped_need(own, "mine_search", {"mine": name, "part": part}) for name, part in (("whole", "1-of-1"), ("parts", "3-of-20"))]
    assert needs[0].runtime > whole.search_minutes
    assert part.search_minutes < needs[1].runtime < needs[0].runtime / (5 if gpus else 15)
    assert needs[1].mem_mb < needs[0].mem_mb


def test_a_run_is_counted_with_every_name_it_keeps_and_a_training_with_its_queue(paper, mpcl):
    """By hand, at 4 bytes a weight: MPCL keeps its last weights and five best ones; two encoders of 768 numbers have a ring each."""
    run = next(name for system in mpcl.systems for name in runs_of(mpcl, system) if len(kept_checkpoints(run_recipe(mpcl, name))) == 6)
    found = load_of(mpcl, "train_system", {"run": run})
    assert found.kept_mb == pytest.approx(4 * 6 * found.parameters)
    assert found.staged_mb == pytest.approx((3 * 3 + 4 * 5) * 4 * found.parameters)
    bert = load_of(paper, "train_system", {"run": "MB-base-s42"})
    rings = 2 * 204_800 * 768 * 4 / 1e6
    names = len(kept_checkpoints(run_recipe(paper, "MB-base-s42"))) - 1
    working = 3 * (4 * 4 * bert.parameters + rings) + 4 * names * 4 * bert.parameters
    assert bert.staged_mb == pytest.approx(working)


def test_members_of_one_encoder_count_each_and_rings_by_language_too():
    """By hand: two copies of a small encoder with 384 numbers are trained, and each of five languages has a ring."""
    known = project("paper", ("five_methods",))
    two = load_of(known, "train_system", {"run": "QM-MB-s42"})
    assert two.parameters == 2 * encoder_size(known, "minilm_l6")
    assert two.kept_mb == pytest.approx(4 * two.parameters)
    rings = {members: members * 2048 * 384 * 4 / 1e6 for members in (2, 5)}
    assert two.staged_mb == pytest.approx(3 * (16 * two.parameters + rings[2]))
    queue = known.systems["QM-MB"]["parts"]["queue"] | {"langs": ["en", "de", "fr", "sw", "zh"]}
    many = replace(known, systems={**known.systems, "QM-MB": known.systems["QM-MB"] | {"parts": {"queue": queue}}})
    assert load_of(many, "train_system", {"run": "QM-MB-s42"}).staged_mb == pytest.approx(3 * (16 * two.parameters + rings[5]))
    halved = queue | {"store": "float16"}
    small = replace(known, systems={**known.systems, "QM-MB": known.systems["QM-MB"] | {"parts": {"queue": halved}}})
    assert load_of(small, "train_system", {"run": "QM-MB-s42"}).staged_mb == pytest.approx(3 * (16 * two.parameters + rings[5] / 2))
    memory = [uncapped_need(of, "train_system", {"run": "QM-MB-s42"}).mem_mb for of in (many, small)]
    assert memory[0] - memory[1] == pytest.approx(rings[5], abs=1)
    system = {"base": {"system": "QM-MB"}, **{key: known.systems["QM-MB"][key] for key in ("parts", "terms", "train", "readout", "seeds")}}
    on = replace(known, systems={**known.systems, "further": system}, paper_of={**known.paper_of, "further": "five_methods"})
    assert load_of(on, "train_system", {"run": "further-s42"}).staged_mb == pytest.approx(two.staged_mb)


def test_views_copy_neither_dictionaries_nor_given_translations():
    """XNLI's translations are 2.5 GB; two whole and two partial views of them, and one of its English, a fifteenth."""
    scl = project("paper", ("scl",))
    text = corpus_mb(scl, "xtreme_xnli")
    assert 2_300 < text < 2_700
    assert corpus_mb(scl, "xnli_full") == corpus_mb(scl, "xnli_partial") == pytest.approx(2 * text)
    assert corpus_mb(scl, "xnli_code_switch") == pytest.approx(text / 15)
    assert examples_mb(scl, "xnli_tt") == pytest.approx((5 + 1 / 15) * text)
    minutes = 19  # by the extrapolation of benchmarks/growth.py
    assert 1.2 * 1.2 * minutes < job_need(scl, "build_view", {"view": "xnli_partial"}, 1).runtime < 10 * minutes / 1.2


def test_what_examples_hold_in_memory_is_asked_for_whole():
    """EMMA-X at its printed size: 23 billion sentences at some 30 bytes each."""
    full = project("paper", ("emma_x",), sizes={"emma_x": "full"})
    asked = uncapped_need(full, "build_examples", {"examples": "ex_monolingual-full"}).mem_mb
    assert 500_000 < asked < 1_500_000
    assert job_need(full, "build_examples", {"examples": "ex_monolingual-full"}, 1).mem_mb == 120_000


def test_a_share_of_a_corpus_asks_for_its_part_of_the_filters_and_reads_all(paper):
    corpus = "paracrawl_en-fr"
    shared = project("paper", corpus_shards={corpus: 8})
    whole = load_of(paper, "build_corpus", {"corpus": corpus})
    share, rest = (load_of(shared, rule, {"corpus": corpus}) for rule in ("filter_shards", "build_corpus"))
    assert share.read_mb == whole.read_mb
    assert share.filtered_mb == whole.filtered_mb / 8
    assert rest.filtered_mb == 0
    needs = [uncapped_need(own, rule, {"corpus": corpus}) for own, rule in ((paper, "build_corpus"), (shared, "filter_shards"))]
    assert needs[1].runtime < needs[0].runtime


@pytest.mark.parametrize(
    ("corpus", "found"),
    [("paracrawl_en-fi", "unknown"), ("tatoeba", "shared"), ("multinli_train", "shared")],
)
def test_a_corpus_that_no_jobs_can_share_is_refused_when_the_configuration_is_read(corpus, found):
    with pytest.raises(InputError, match=rf"corpus_shards\.{corpus}.*{found}"):
        project("paper", corpus_shards={corpus: 3})
    assert project("quick", corpus_shards={"tatoeba": 1})
