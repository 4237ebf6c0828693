"""A tuned system's training: it trains, and says in its lineage that it trained, with the values that its trials chose."""

from crosslign.files import write_json
from crosslign.files.lineage import Lineage, read_lineage
from crosslign.jobs.job import Job
from crosslign.stages import STAGES, train_system

RATE = "train.learning_rate"


def trained(tmp_path, monkeypatch, rate, **choice):
    """Return the rate that the trainer was given, and the lineage of the run."""
    given = {}

    def train_run(recipe, examples, base, sets, tasks, out, *_):
        given["rate"] = recipe["train"]["learning_rate"]
        out.mkdir(parents=True)
        (out / "weights").write_text("w", encoding="utf-8")
        return {"steps": 3, "earlier_s": 0.0, "working_bytes": 0}

    monkeypatch.setattr(train_system, "train_run", train_run)
    monkeypatch.setattr(train_system, "write_cards", lambda *_: None)
    recipe = {"run_id": "T-s42", "train": {"learning_rate": rate}}
    inputs = {"examples": {}, "derived": {}, **choice}
    outputs = {"folder": tmp_path / "systems" / "T-s42"}
    lineage = Lineage("train_system", recipe, list(choice.values()), tmp_path, 42)
    params = {"recipe": recipe, "members": {}, "checkpoints": str(tmp_path / "work"), "tasks": {}, "root": str(tmp_path)}
    resources = {"gpu": 0, "checkpoint_minutes": 10, "checkpoint_every": 0, "kernels": "off"}
    STAGES.get("train_system")(Job("train_system", inputs, outputs, params, 1, lineage, resources))
    return given["rate"], read_lineage(outputs["folder"])


def test_values_of_the_choice_are_trained_with_and_stand_in_lineage(tmp_path, monkeypatch):
    choice = tmp_path / "choices" / "T.json"
    choice.parent.mkdir()
    write_json(choice, {"chosen": {RATE: 4e-4}})
    Lineage("choose", {}, [], tmp_path).write(choice, "choice", choice)
    rate, lineage = trained(tmp_path, monkeypatch, "chosen", choice=choice)
    assert rate == 4e-4
    assert lineage["counts"]["chosen"] == {RATE: 4e-4}
    assert lineage["recipe"]["train"]["learning_rate"] == "chosen"
    assert [one["path"] for one in lineage["inputs"]] == ["choices/T.json"]


def test_a_system_that_is_not_tuned_trains_by_its_recipe(tmp_path, monkeypatch):
    rate, lineage = trained(tmp_path, monkeypatch, 1e-3)
    assert rate == 1e-3
    assert "chosen" not in lineage["counts"]
