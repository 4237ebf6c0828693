"""Small results that commands on finished runs read."""

import pytest
from scored_results import HEAD, SCORE, TABLE

from crosslign.files import write_json
from crosslign.files.lineage import Lineage


@pytest.fixture
def results(tmp_path):
    """A corpus, a run's folder made of it, its score, and a table."""
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora/c.parquet").write_text("rows")
    (tmp_path / "systems/A-s1/last").mkdir(parents=True)
    (tmp_path / "systems/A-s1/last/weights").write_text("w")
    record = {"eval": "task", "subset": "de", "metric": "f1", "protocol": "", "direction": "", "value": 0.1 + 0.2}
    write_json(tmp_path / SCORE, {"records": [record]})
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/t.csv").write_text(HEAD + f"t,A,x,{0.1 + 0.2!r},,1,,,,,,{SCORE},task/de/f1//\n")
    made = {"corpora/c.parquet": [], "systems/A-s1": ["corpora/c.parquet"], SCORE: ["systems/A-s1"], "tables/t.csv": [SCORE]}
    for path, inputs in made.items():
        recipe = TABLE if path.startswith("tables") else {}
        Lineage("rule", recipe, [tmp_path / name for name in inputs], tmp_path).write(tmp_path / path, "kind")
    return tmp_path
