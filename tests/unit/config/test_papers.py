"""Every paper file in config/papers resolves at every scale, and the methods' file holds what it promises."""

import json
import re
from pathlib import Path

import pytest

from crosslign.config.cells import resolve_table
from crosslign.config.kept_out import evaluations_of, searched
from crosslign.config.load import load_project
from crosslign.config.resolve import entry_of, resolve, runs_of
from crosslign.errors import InputError
from crosslign.paths import CATALOG

ROOT = Path(__file__).resolve().parents[3]
PAPERS = sorted(path.stem for path in (CATALOG / "papers").glob("*.yaml"))
SCALES = sorted(path.stem for path in (CATALOG / "scales").glob("*.yaml"))


def project(*papers, scale="laptop", **settings):
    return load_project(ROOT, {"scale": scale, "papers": list(papers), "targets": ["all"], **settings})


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("paper", PAPERS)
def test_all_systems_and_tables_of_a_paper_resolve(paper, scale):
    loaded = project(paper, scale=scale)
    for system in loaded.systems:
        for run in runs_of(loaded, system):
            assert resolve(loaded, system, int(run.rpartition("-s")[2]))["run_id"] == run
    for table in loaded.tables:
        cells = [cell for row in resolve_table(loaded, table)["cells"] for cell in row]
        assert all("scores" in cell or "reason" in cell or "mean_of" in cell or "parts" in cell or "text" in cell for cell in cells)


def test_the_page_of_protocols_names_every_evaluation_and_every_table_of_protocols():
    loaded = project("msimcse", "moco_bert", "scl", "mpcl", "emma_x", scale="paper")
    tables = [name for name in loaded.tables if name.endswith("_protocols")]
    page = (ROOT / "docs" / "protocols.md").read_text(encoding="utf-8")
    assert len(tables) > 1
    assert [name for name in (*loaded.tasks, *tables) if f"`{name}`" not in page] == []
    assert not any("published" in one for name in tables for kind in ("rows", "columns") for one in loaded.tables[name][kind])


def test_the_methods_table_has_all_five_methods_under_the_quick_starts_evaluations():
    loaded = project("quickstart", "five_methods")
    rows = [row["system"] for row in loaded.tables["methods"]["rows"]]
    used = {term["objective"] for system in rows[1:] for term in resolve(loaded, system, 42)["terms"]}
    wanted = {"infonce", "momentum_contrast", "alignment", "supervised_contrastive", "multi_positive_infonce", "rank_infonce", "gmm_ranks"}
    assert used == wanted
    tasks = [{column["task"] for column in loaded.tables[table]["columns"]} for table in ("methods", "quickstart")]
    assert tasks[0] == tasks[1]
    ablated = [row["system"] for row in loaded.tables["methods_ablations"]["rows"]]
    similarities = {t.get("similarity") for system in ablated[1:] for t in resolve(loaded, system, 42)["terms"]}
    assert {"cosine", "mse", "kl", "symmetric_kl"} <= similarities


def test_every_training_of_the_methods_table_is_kept_clean_of_its_evaluations():
    loaded = project("five_methods")
    parts = set(loaded.corpora["quickstart"]["of"])
    for name, entry in loaded.examples.items():
        if "of" not in entry:
            assert set(entry["decontaminate"]) == parts, name


def test_what_selects_a_fine_tune_is_kept_out_of_its_training():
    loaded = project("msimcse", "emma_x", scale="paper")
    for name, recipe in loaded.finetunes.items():
        chosen = {corpus for select in recipe.get("select", {}).values() for corpus in loaded.tasks[select["task"]]["texts"].values()}
        for term in recipe["terms"]:
            assert chosen <= set(loaded.examples[term["examples"]]["decontaminate"]), name


def test_bucc_is_kept_out_of_the_corpus_that_it_was_planted_from():
    loaded = project("moco_bert", scale="paper")
    wanted = {"bucc2018_sample_zh", "bucc2018_training_zh", "bucc2018_test_zh", "tatoeba_zh"}
    for name in ("en_zh_whole", "en_zh_un", "en_zh_casict"):
        assert wanted <= set(loaded.examples[name]["decontaminate"]), name


@pytest.mark.parametrize(("paper", "corpus"), [("msimcse", "tatoeba_38"), ("scl", "tatoeba_36")])
def test_training_leaves_out_the_languages_of_tatoeba_that_the_papers_tables_evaluate(paper, corpus):
    loaded = project(paper, scale="paper")
    columns = [column for table in loaded.tables.values() for column in table["columns"] if column.get("task") == "tatoeba"]
    averages = loaded.tasks["tatoeba"]["averages"]
    evaluated = {lang for column in columns for lang in averages.get(column["subset"], [column["subset"]])}
    assert evaluated | {"eng"} == set(loaded.corpora[corpus]["langs"])
    left_out = [entry["decontaminate"] for entry in loaded.examples.values() if "bucc2018_sample" in entry.get("decontaminate", [])]
    assert left_out
    assert all(corpus in names and "tatoeba" not in names for names in left_out)


def test_phase_two_goes_on_from_phase_one_of_its_seed():
    loaded = project("five_methods", seeds=[3, 4])
    assert runs_of(loaded, "QM-MB") == ["QM-MB-s3", "QM-MB-s4"]
    assert resolve(loaded, "QM-EX-p2", 4)["base"]["run"] == "QM-EX-p1-s4"


def test_a_setting_of_a_recipe_is_a_cell():
    table = resolve_table(project("moco_bert", scale="paper"), "moco_bert_table9")
    shown = {row["label"]: cells[0].get("text", cells[0].get("reason")) for row, cells in zip(table["rows"], table["cells"], strict=True)}
    assert shown["queue size"] == "409600"
    assert shown["temperature"] == "0.04"
    assert shown["pooling"] == "mean"
    assert shown["dropout"] == "0.1"
    assert shown["# of GPUs"].isdecimal()


def test_a_setting_that_no_recipe_has_is_named(monkeypatch):
    loaded = project("moco_bert", scale="paper")
    monkeypatch.setitem(loaded.tables["moco_bert_table9"]["rows"][0], "setting", "train.epoch")
    with pytest.raises(InputError, match=r"MB-main.*'train\.epoch'"):
        resolve_table(loaded, "moco_bert_table9")


def test_a_table_may_name_seeds_of_its_own_and_config_has_the_last_word():
    def runs(**settings):
        table = resolve_table(project("msimcse", scale="paper", **settings), "msimcse_table1_seeds")
        return [sum("-s" in score for score in cells[0]["scores"]) for cells in table["cells"]], table["cells"][2][0]["scores"]

    counts, scores = runs()
    assert counts == [0, *[3] * 9]
    assert [score.split("/")[1] for score in scores] == ["MS-E-s42", "MS-E-s43", "MS-E-s44"]
    assert [score.split("/")[1] for score in runs(seeds=[7])[1]] == ["MS-E-s7"]


def test_a_warm_up_in_steps_replaces_an_inherited_share():
    loaded = project("scl", scale="paper")
    loaded.systems["short"] = {"like": "SCL-ret-scl", "place": "", "train": {"warmup_steps": 7}}
    assert resolve(loaded, "SCL-ret-cl", 42)["train"]["warmup_share"] == 0.1
    train = entry_of(loaded, "short")["train"]
    assert train["warmup_steps"] == 7
    assert "warmup_share" not in train


def test_retrieval_of_scl_trains_on_the_last_layer_and_is_read_at_the_eighth():
    loaded = project("scl", scale="paper")
    for system in ("SCL-ret-scl", "SCL-ret-cl", "SCL-ret-mva"):
        recipe = resolve(loaded, system, 42)
        assert [(term["pooling"], term["layer"]) for term in recipe["terms"]] == [("cls", -1)]
        assert (recipe["readout"]["pooling"], recipe["readout"]["layer"]) == ("mean", 8)


def test_a_row_may_name_the_protocol_of_its_cells():
    (random,), (mbert,), *_ = resolve_table(project("msimcse", scale="paper"), "msimcse_table4")["cells"]
    assert (random["select"]["protocol"], mbert["select"]["protocol"]) == ("random", "")


def test_what_is_only_watched_chooses_no_checkpoint_and_is_no_footnote():
    loaded = project("moco_bert", scale="paper")
    watched = resolve(loaded, "MB-tau001", 42)["select"]
    assert {(entry["task"], entry["every"], entry["keep"]) for entry in watched.values()} == {
        ("stsb_dev", "epoch", False),
        ("bucc_moco_sample", "epoch", False),
    }
    assert not any("chosen" in note["text"] for note in resolve_table(loaded, "moco_bert_table1")["footnotes"])
    small = resolve(project("moco_bert", scale="quick"), "MB-main", 42)
    assert {entry["every"] for entry in small["select"].values()} == {4}


def test_the_strict_profile_of_emma_x_holds_the_printed_values():
    loaded = project("emma_x", scale="paper")
    one, two = (resolve(loaded, f"EX-p{phase}-paper", 42) for phase in (1, 2))
    assert two["base"]["run"] == "EX-p1-paper-s42"
    for recipe in (one, two):
        assert recipe["parts"]["queue"] == {"kind": "momentum_queue", "size": 256, "momentum": 0.999}
        assert (recipe["parts"]["gmm4"]["learning_rate"], recipe["parts"]["gmm4"]["squared_prior"]) == (3e-5, True)
        assert recipe["parts"]["scores4"]["s_init"] == "printed"
        assert (recipe["train"]["learning_rate"], recipe["train"]["schedule"], recipe["train"]["warmup_steps"]) == (5e-4, "cosine", 0)
        assert {term["batch"] for term in recipe["terms"]} == {1024}
    assert one["terms"][0]["temperature"] == two["terms"][0]["temperature_min"] == 0.04
    assert {(term["anchor_parallel"], term["self_positive"], term["examples"]) for term in two["terms"]} == {(0, False, "ex_monolingual")}


IDENTITY = {"system", "run_id", "paper"}
"""What tells one run from another and is no setting of it."""


def test_one_recipe_has_one_id_over_all_papers():
    loaded = project(*PAPERS, scale="paper")
    ids: dict[str, str] = {}
    for system in loaded.systems:
        recipe = {key: value for key, value in resolve(loaded, system, 42).items() if key not in IDENTITY}
        assert ids.setdefault(json.dumps(recipe, sort_keys=True), system) == system
    assert sum(system.startswith("SCL-") for system in loaded.systems) == 60, "58, and two that train on translations into six languages"


def test_each_seed_of_mpcl_trains_on_its_own_draw():
    loaded = project("mpcl", scale="paper")
    for seed in (42, 46):
        (term,) = resolve(loaded, "MP-xlmr-single-main", seed)["terms"]
        (warm,) = resolve(loaded, "MP-warm-xlmr-main", seed)["terms"]
        assert term["examples"] == warm["examples"] == f"xnli_single_main-s{seed}"
        assert loaded.examples[term["examples"]] == {"builder": "disjoint_pairs", "of": ["xnli_groups_main"], "seed": seed}
        assert loaded.examples[f"xnli_single_all15-s{seed}"]["of"] == [f"xnli_groups_all15-s{seed}"]
        assert loaded.examples[f"xnli_groups_all15-s{seed}"]["seed"] == seed
        assert resolve(loaded, "MP-xlmr-multi-main", seed)["terms"][0]["examples"] == "xnli_groups_main"
    assert all(isinstance(entry.get("seed", 42), int) for entry in loaded.examples.values())
    assert sum("-s" in name for name in loaded.examples) == 5 * 8
    few = project("mpcl", scale="paper", seeds=[7])
    assert "xnli_single_main-s7" in few.examples
    assert "xnli_single_main-s42" not in few.examples


@pytest.mark.parametrize("paper", PAPERS)
def test_what_checkpoints_are_selected_on_is_kept_out_of_training(paper):
    """`keep: false` only writes scores down; no other system selects on text that it may have been trained on."""
    loaded = project(paper, scale="paper")
    entries = {**{name: entry_of(loaded, name) for name in loaded.systems}, **loaded.finetunes}
    for name, entry in entries.items():
        selects = [select for select in entry.get("select", {}).values() if select.get("keep", True)]
        wanted = frozenset().union(*(evaluations_of(loaded, loaded.tasks[select["task"]]) for select in selects))
        for term in entry.get("terms", []):
            assert wanted <= searched(loaded, term["examples"]), (name, term["examples"])


PRINTED = {
    "msimcse": ("mSimCSE", "2.1 2.2 2.3 3.1 3.2 4.1 4.2 4.3 4.4 4.5 4.6 5.1 5.2", 8),
    "moco_bert": ("MoCo-BERT", "3.1 3.2 3.3 3.4", 10),
    "scl": ("SCL", "2.1 2.2 3.1 3.2 3.3 4.1 4.2 4.3 5.1 5.2 5.3 5.4", 7),
    "mpcl": ("MPCL", "3.1 3.2 3.3 3.4 3.5 3.5.1 3.5.2 3.6 3.7 3.7.1 3.7.2 3.8 4.1 4.2 4.3 A.1 A.2", 8),
    "emma_x": ("EMMA-X", "3.1 3.2 3.3 3.4 5.1 5.2 5.3 5.4 5.5 A.1 A.2 B.1 B.2", 19),
}
"""Golden, of the papers' texts: sections with a number of two parts or three, and how many tables there are."""
NUMBERED = re.compile(r"(?:^|\b(?:[Ss]ection|and|mSimCSE|MoCo-BERT|SCL|MPCL|EMMA-X) )((?:[1-9]|[A-C])\.\d(?:\.\d)?)\b(?!\.?\d)")


@pytest.mark.parametrize("paper", PAPERS)
def test_a_place_names_a_section_and_a_table_that_its_paper_has(paper):
    loaded = project(paper)
    own = {name: entry.get("place", "") for kind in (loaded.systems, loaded.finetunes, loaded.claims) for name, entry in kind.items()}
    wrong = []
    for name, place in own.items():
        of = next((one for one, (title, _, _) in PRINTED.items() if place.startswith(title)), paper)
        if of not in PRINTED:
            continue
        _, sections, tables = PRINTED[of]
        wrong += [(name, section) for section in NUMBERED.findall(place) if section not in sections.split()]
        wrong += [(name, table) for table in re.findall(r"[Tt]able (\d+)", place) if not 1 <= int(table) <= tables]
    assert not wrong
