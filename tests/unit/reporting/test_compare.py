"""Two results folders: what moved, and what differs first behind it."""

import pytest

from crosslign.errors import InputError
from crosslign.files import write_json
from crosslign.files.lineage import Lineage
from crosslign.reporting.compare import compare, moves

SCORE = "scores/A-s1/last/mean/task.json"


def folder(root, text="a", value=0.5, low=0.4, high=0.6, rate=1e-5):
    """A corpus, a system made of it, and a score made of the system, each with lineage."""
    made = {"corpora/c/all.parquet": [], "systems/A-s1.bin": ["corpora/c/all.parquet"], SCORE: ["systems/A-s1.bin"]}
    record = {"subset": "de", "metric": "accuracy", "direction": "", "protocol": "", "value": value, "ci_low": low, "ci_high": high}
    for path, inputs in made.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        if path == SCORE:
            write_json(root / path, {"records": [record]})
        else:
            (root / path).write_text(f"{path} {text} {rate if 'systems' in path else ''}")
        recipe = {"learning_rate": rate} if "systems" in path else {}
        Lineage("rule", recipe, [root / name for name in inputs], root).write(root / path, "kind")
    return root


def test_equal_folders_do_not_differ(tmp_path):
    text = compare(folder(tmp_path / "a"), folder(tmp_path / "b"))
    assert text.splitlines() == ["1 score files on both sides, 0 only before, 0 only after", "no score differs"]


@pytest.mark.parametrize(
    ("value", "low", "high", "significant"), [(0.8, 0.7, 0.9, True), (0.55, 0.45, 0.65, False), (0.8, None, None, None)]
)
def test_a_move_is_significant_when_the_intervals_are_apart(tmp_path, value, low, high, significant):
    (move,) = moves(folder(tmp_path / "a"), folder(tmp_path / "b", value=value, low=low, high=high))
    assert (move.before, move.after, move.significant) == (0.5, value, significant)


def test_the_cause_named_is_the_first_on_the_way_back(tmp_path):
    text = compare(folder(tmp_path / "a"), folder(tmp_path / "b", value=0.7, rate=2e-5))
    assert "systems/A-s1.bin: recipe differs" not in text.split("what differs first:")[0]
    assert text.splitlines()[-1] == "  systems/A-s1.bin: recipe differs"


def test_a_folder_without_scores_is_refused(tmp_path):
    with pytest.raises(InputError, match="no scores here"):
        compare(tmp_path, tmp_path)
