"""The pages that teach how to add something are run as they stand."""

import json
import re
import shutil

import pytest
from project_copy import ROOT, jobs_of, own_copy
from ruamel.yaml import YAML


def blocks(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [YAML(typ="safe").load(block) for block in re.findall(r"```yaml\n(.*?)```", text, flags=re.S)]


def add(workflow, file, block):
    """Merge a block of a page into a configuration file; rows of a table are put behind those that are there."""
    yaml = YAML()
    path = own_copy(workflow.folder, file)
    content = yaml.load(path.read_text(encoding="utf-8"))
    for section, entries in block.items():
        for name, entry in entries.items():
            if name in content[section] and section == "tables":
                content[section][name]["rows"].extend(entry["rows"])
            else:
                content[section][name] = entry
    with open(path, "w", encoding="utf-8") as out:
        yaml.dump(content, out)


@pytest.mark.long
def test_a_model_of_ones_own_is_one_more_row_and_nothing_else_runs(changed):
    encoder, scale, row, *_ = blocks("add-a-system.md")
    model = changed.folder / "my_encoder"
    shutil.copytree(changed.results / "encoders" / "tiny_bert" / "main", model, dirs_exist_ok=True)
    encoder["encoders"]["my_encoder"]["path"] = str(model)
    add(changed, "config/encoders.yaml", encoder)
    add(changed, "config/scales/quick.yaml", scale)
    add(changed, "config/papers/quickstart.yaml", row)
    table = changed.results / "tables" / "quickstart.csv"
    before = table.read_text(encoding="utf-8").splitlines()
    jobs = jobs_of(changed.run(str(table.relative_to(changed.folder))))
    assert {name.split(",")[0] for rule, name in jobs if rule in ("embed", "score", "prepare_encoder")} == {
        "run=my_encoder",
        "encoder=my_encoder",
    }
    assert {rule for rule, _ in jobs} == {"prepare_encoder", "embed", "score", "make_table"}
    after = table.read_text(encoding="utf-8").splitlines()
    assert len(after) == len(before) + 12
    assert sum(",my encoder," in line for line in after) == 12


def test_graded_pairs_of_ones_own_are_a_task_and_a_table(untouched, tmp_path):
    corpora, tasks, tables, _ = blocks("add-a-task.md")
    (tmp_path / "pairs.tsv").write_text("source\ttranslation\tgrade\nDas Haus ist alt.\tThe house is old.\t5\n", encoding="utf-8")
    corpora["sources"]["my_grades"]["local"] = str(tmp_path)
    for file, block in (("corpora.yaml", corpora), ("tasks.yaml", tasks), ("papers/quickstart.yaml", tables)):
        add(untouched, f"config/{file}", block)
    jobs = untouched.planned("my_grades_table")
    assert {("embed", "run=minilm_l6"), ("score", "run=minilm_l6"), ("make_table", "table=my_grades_table")} <= set(jobs)
    assert {"my_pairs", "my_sts"} <= {name.partition("=")[2] for _, name in jobs}


def test_line_aligned_files_of_ones_own_are_a_task_and_a_table(untouched, tmp_path):
    (aligned,) = blocks("add-a-task.md")[3:]
    for name in ("newstest.de", "newstest.en"):
        (tmp_path / name).write_text("eins\nzwei\n", encoding="utf-8")
    aligned["sources"]["newstest"]["local"] = str(tmp_path)
    for file, names in (("corpora.yaml", ("sources", "corpora")), ("tasks.yaml", ("tasks",)), ("papers/quickstart.yaml", ("tables",))):
        add(untouched, f"config/{file}", {name: aligned[name] for name in names})
    jobs = untouched.planned("newstest")
    assert {("embed", "run=minilm_l6"), ("score", "run=minilm_l6"), ("make_table", "table=newstest")} <= set(jobs)


def test_a_recipe_of_ones_own_resolves(untouched):
    _, _, _, recipe, _ = blocks("add-a-system.md")
    add(untouched, "config/papers/quickstart.yaml", recipe)
    jobs = untouched.planned("results/quick/systems/QS-P-cold-s42")
    assert ("train_system", "run=QS-P-cold-s42") in jobs


@pytest.mark.long
def test_a_cross_encoder_with_a_regulariser_is_built_from_its_recipe(changed):
    (recipe,) = blocks("method-recipes.md")
    path = own_copy(changed.folder, "config/papers/quickstart.yaml")
    with open(path, "a", encoding="utf-8") as file:
        YAML().dump({"finetunes": recipe.pop("finetunes")}, file)
    add(changed, "config/papers/quickstart.yaml", recipe)
    run = changed.results / "systems" / "minilm_l6+nli_scl-s42"
    changed.run(str(run.relative_to(changed.folder)))
    terms = json.loads((run / "curve.jsonl").read_text(encoding="utf-8").splitlines()[-1])["terms"]
    assert set(terms) == {"cross_entropy", "supervised_contrastive"}
    assert (run / "last" / "parts.safetensors").exists()


def test_a_corpus_of_ones_own_becomes_examples(changed, tmp_path):
    corpus, *more, examples, table = blocks("add-a-corpus.md")
    for lang, text in (("de", "Das Haus ist alt.\nWir gehen heute nach Hause.\n"), ("en", "The house is old.\nWe are going home today.\n")):
        (tmp_path / f"mine.{lang}").write_text(text, encoding="utf-8")
    corpus["sources"]["my_files"]["local"] = str(tmp_path)
    for block in (corpus, *more):
        add(changed, "config/corpora.yaml", block)
    add(changed, "config/papers/quickstart.yaml", examples)
    add(changed, "config/papers/quickstart.yaml", table)
    changed.run("results/quick/tables/my_corpora.md")
    assert "| My files | 2 |" in (changed.results / "tables" / "my_corpora.md").read_text(encoding="utf-8")
