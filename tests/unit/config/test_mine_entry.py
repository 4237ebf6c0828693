"""`mine:` of config.yaml, resolved and checked."""

from pathlib import Path

import pytest

from crosslign.config.load import load_project
from crosslign.config.mining import (
    DEFAULTS,
    calibration_recipe,
    mine_recipe,
    mined_folder,
    mined_members,
    pairs_recipe,
    parts_of,
    range_recipe,
    search_recipe,
    side_files,
    sides_of,
    texts_path,
    texts_recipe,
    vectors_path,
    vectors_recipe,
)
from crosslign.config.yaml_files import load_yaml
from crosslign.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
SIDES = {"source": {"file": "a.de", "lang": "de"}, "target": {"file": "/data/b.en", "lang": "en"}}


def project(name="my_mine", scale="laptop", papers=("quickstart",), **entry):
    return load_project(ROOT, {"scale": scale, "papers": list(papers), "mine": {name: {**SIDES, **entry}}})


def test_the_schema_names_the_defaults_that_the_code_fills_in():
    entry = load_yaml(ROOT / "workflow" / "schemas" / "config.yaml").content["$defs"]["mine"]["properties"]
    assert {key: value["default"] for key, value in entry.items() if "default" in value} == DEFAULTS


def test_a_trained_system_an_encoder_and_a_run_resolve():
    trained = mine_recipe(project(system="QS-P"), "my_mine")
    assert (trained["run"], trained["system"], trained["checkpoint"], trained["readout"]) == ("QS-P-s42", "QS-P", "last", "mean_t64_bf16")
    assert mine_recipe(project(system="QS-P-s42"), "my_mine") == trained
    base = mine_recipe(project(system="minilm_l6", readout="mean_t64_t96"), "my_mine")
    assert (base["run"], base["checkpoint"], base["readout_entry"]["max_length"]) == ("minilm_l6", "base", 96)
    assert base["limit"] is None
    assert mine_recipe(project(system="minilm_l6", scale="quick", allow_tiny=True), "my_mine")["limit"] == 600


@pytest.mark.parametrize("encoder", ["labse", "xlm-r", "me5_small", "minilm_l6"])
def test_the_encoder_that_a_person_named_reads_at_every_scale_of_real_text(encoder):
    """The default scale puts a small English encoder into the place of every other one, in recipes of papers."""
    for scale in ("laptop", "paper"):
        loaded = project(system=encoder, scale=scale)
        recipe = mine_recipe(loaded, "my_mine")
        assert recipe["encoders"] == [encoder]
        assert mined_folder(loaded, recipe) == loaded.paths.encoder(encoder)
        assert mined_members(loaded, recipe) == {"main": loaded.paths.encoder(encoder) / "main"}


def test_without_a_name_multilingual_e5_reads():
    assert mine_recipe(project(), "my_mine")["encoders"] == ["me5_small"]


def test_a_trained_system_names_the_encoder_that_it_was_trained_from():
    assert mine_recipe(project(system="QS-P"), "my_mine")["encoders"] == ["minilm_l6"]


def test_synthetic_data_has_tiny_encoders_which_nobody_takes_for_the_one_that_was_named():
    with pytest.raises(InputError, match=r"mine\.my_mine\.system: .*labse; tiny_bert.*--allow-tiny"):
        project(system="labse", scale="quick")
    assert mine_recipe(project(system="labse", scale="quick", allow_tiny=True), "my_mine")["encoders"] == ["tiny_bert"]


def test_a_system_of_a_paper_that_a_run_leaves_out_is_told_when_it_is_asked_for():
    """The same config.yaml serves runs of other papers."""
    loaded = project(system="QS-P", papers=["mpcl"])
    with pytest.raises(InputError, match=r"mine\.my_mine\.system: .*'QS-P'.*quickstart\.yaml.*`papers`"):
        mine_recipe(loaded, "my_mine")


def test_files_are_relative_to_the_project_or_lie_at_home(monkeypatch):
    monkeypatch.setenv("HOME", "/home/anna")
    loaded = project(system="QS-P")
    recipe = mine_recipe(loaded, "my_mine")
    assert side_files(loaded, recipe, "source") == [ROOT / "a.de"]
    assert side_files(loaded, recipe, "target") == [Path("/data/b.en")]
    assert side_files(loaded, {"source": {"file": "~/news.de.gz", "lang": "de"}}, "source") == [Path("/home/anna/news.de.gz")]


def test_a_side_is_one_file_or_several_and_a_pattern_stands_for_those_that_it_fits(tmp_path):
    for name in ("b-2.gz", "b-1.gz", "c.txt", "odd[1].txt"):
        (tmp_path / name).touch()
    files = {"b-*.gz": ["b-1.gz", "b-2.gz"], "odd[1].txt": ["odd[1].txt"], "d-*": ["d-*"]}
    for given, found in files.items():
        recipe = {"source": {"file": str(tmp_path / given), "lang": "de"}}
        assert side_files(project(), recipe, "source") == [tmp_path / name for name in found]
    several = project(source={"file": ["c.txt", str(tmp_path / "b-*.gz")], "lang": "de", "column": "de", "split": True})
    recipe = mine_recipe(several, "my_mine")
    assert side_files(several, recipe, "source") == [ROOT / "c.txt", tmp_path / "b-1.gz", tmp_path / "b-2.gz"]
    read = texts_recipe(recipe, "source")
    assert (read["column"], read["split"]) == ("de", True)
    assert not {"column", "split"} & texts_recipe(recipe, "target").keys()


def test_a_model_of_one_encoder_a_language_reads_its_languages():
    chinese = {"file": "a.zh", "lang": "cmn"}
    assert mine_recipe(project(papers=["moco_bert"], system="MB-main", source=chinese), "my_mine")["run"] == "MB-main-s42"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"system": "QS-Q"}, r"mine\.my_mine\.system: .*'QS-Q'"),
        ({"system": "QS-P-s7"}, r"mine\.my_mine\.system: .*'QS-P-s7'.*QS-P-s42"),
        ({"system": "QS-P+xnli"}, r"mine\.my_mine\.system: .*'xnli'"),
        ({"system": "QS-P", "checkpoint": "bset"}, r"mine\.my_mine\.checkpoint: QS-P.*'bset'"),
        ({"system": "minilm_l6", "checkpoint": "best"}, r"mine\.my_mine\.checkpoint: .*minilm_l6.*'best'"),
        (
            {"papers": ["moco_bert"], "system": "MB-main"},
            r"mine\.my_mine\.source\.lang: .*MB-main-s42.*'de'",
        ),
        ({"system": "QS-P", "readout": "mean_t65x"}, "readouts: .*'mean_t65x'"),
        ({"system": "QS-P", "k": 0}, r"mine\.my_mine\.k: 0 .* 1$"),
        ({"system": "QS-P", "margin": "ration"}, r"mine\.my_mine\.margin: .*'ration'.*'ratio'"),
        ({"system": "QS-P", "treshold": 1}, r"mine\.my_mine\.treshold: .*'treshold'.*'threshold'"),
        ({"system": "QS-P", "source": {"file": "a", "lang": False}}, r"mine\.my_mine\.source\.lang: .*false"),
        ({"system": "QS-P", "name": "quickstart"}, "mine: 'quickstart'.*table"),
        ({"system": "QS-P", "name": "all"}, "mine: 'all'.*targets"),
        ({"system": "QS-P", "name": "a/b"}, r"mine\.a/b: 'a/b'.*'\^"),
    ],
)
def test_what_is_wrong_is_said(entry, message):
    with pytest.raises(InputError, match=message):
        project(**entry)


def test_an_unknown_name_shows_the_nearest():
    with pytest.raises(InputError, match=r"mine: .*'my_mien'.*'my_mine'"):
        mine_recipe(project(system="QS-P"), "my_mien")


PLANTS = {"source": "dev.de", "target": "dev.en"}


def test_plants_are_two_more_sides_read_line_by_line_and_change_no_recipe_of_the_two():
    plain, planted = mine_recipe(project(), "my_mine"), mine_recipe(project(plants=PLANTS, precision=0.95), "my_mine")
    assert sides_of(plain) == ("source", "target")
    assert sides_of(planted) == ("source", "target", "plant_source", "plant_target")
    read = texts_recipe(planted, "plant_target")
    assert (read["file"], read["lang"], read["dedup"]) == ("dev.en", "en", "id")
    for recipe in (search_recipe, lambda one: texts_recipe(one, "source"), lambda one: vectors_recipe(one, "target")):
        assert recipe(plain) == recipe(planted)
    assert pairs_recipe(planted) == {**pairs_recipe(plain), "precision": 0.95}
    assert calibration_recipe(planted) == {"mine": "my_mine", "margin": "ratio", "retrieval": "max"}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"precision": 0.95}, r"mine\.my_mine: precision.*`plants: \{source"),
        ({"recall": 0.95, "precision": 0.9, "plants": PLANTS}, r"mine\.my_mine: precision.*recall"),
        ({"threshold": 1.05, "precision": 0.9, "plants": PLANTS}, r"mine\.my_mine: threshold.*precision"),
    ],
)
def test_there_is_one_way_to_a_threshold(entry, message):
    with pytest.raises(InputError, match=message):
        project(**entry)


def test_a_search_in_ranges_is_exact_and_no_part_of_a_result():
    one, four = (mine_recipe(project(shards=shards), "my_mine") for shards in (1, 4))
    assert parts_of(four) == ["1-of-4", "2-of-4", "3-of-4", "4-of-4"]
    assert range_recipe(four, "3-of-4") == {**search_recipe(four), "part": 3, "parts": 4}
    assert (search_recipe(one), pairs_recipe(one)) == (search_recipe(four), pairs_recipe(four))
    with pytest.raises(InputError, match=r"mine\.my_mine\.shards: .*faiss_flat.*`shards`"):
        project(shards=2, backend="faiss_flat")


def test_entries_with_the_same_files_and_encoder_share_sentences_and_vectors(tmp_path):
    first = {"system": "me5_small", "source": {"file": "a.de", "lang": "de"}, "target": {"file": "b.en", "lang": "en"}}
    turned = {**first, "source": first["target"], "target": first["source"]}
    others = {
        "again": {**first, "k": 9, "margin": "distance", "threshold": 1.1, "shards": 4},
        "turned": turned,
        "half": {**first, "embeddings": "float16"},
        "longer": {**first, "readout": "mean_t256"},
        "other_encoder": {**first, "system": "minilm_l6"},
        "one_thread": {**first, "threads": 1},
        "by_id": {**first, "dedup": "id"},
        "licensed": {**first, "licence": "CC0-1.0"},
    }
    project = load_project(ROOT, {"scale": "laptop", "papers": ["quickstart"], "mine": {"first": first, **others}})

    def owners(path):
        return {name: path(project, name, "source").parent.name + "/" + path(project, name, "source").stem for name in others}

    own = {name: f"{name}/source" for name in ("by_id", "licensed")}
    shared = dict.fromkeys(("again", "half", "longer", "other_encoder", "one_thread"), "first/source")
    assert owners(texts_path) == {**shared, "turned": "first/target", **own}
    encoded = {name: f"{name}/source" for name in ("half", "longer", "other_encoder", "one_thread")}
    assert owners(vectors_path) == {**shared, "turned": "first/target", **encoded, **own}
