import importlib
import subprocess
import sys

import pytest

from crosslign import registry
from crosslign.config.versions import code_behind, job_versions, raised
from crosslign.corpora import EVALUATIONS, READERS, SOURCES, STAND_INS
from crosslign.corpora.filters import FILTERS
from crosslign.encoders.formats import FORMATS
from crosslign.errors import InputError
from crosslign.examples import BUILDERS
from crosslign.mining.backends import BACKENDS
from crosslign.objectives import OBJECTIVES, PARTS
from crosslign.reporting.figures import FIGURES
from crosslign.stages import STAGES
from crosslign.tasks import SCORERS
from crosslign.views import TRANSLATORS, VIEWS

POINTS = (
    STAGES, SOURCES, STAND_INS, READERS, EVALUATIONS, FILTERS, FORMATS, VIEWS, TRANSLATORS, BUILDERS, OBJECTIVES, PARTS, SCORERS,
    BACKENDS, FIGURES,
)  # fmt: skip
"""All that make results: every registry but that of commands."""
TRAINING = {
    "terms": [{"objective": "momentum_contrast"}, {"objective": "infonce"}, {"objective": "infonce"}],
    "parts": {"queue": {"kind": "momentum_queue"}, "head": {"kind": "classification"}},
    "select": {"best": {"task": "dev"}},
}
RECIPES = {
    "fetch": ({"entry": {"url": "https://x"}}, "fetch@1 url@1"),
    "write_stand_in": ({"entry": {"stand_in": "xnli_zip"}}, "write_stand_in@1 xnli_zip@1"),
    "prepare_encoder": ({"entry": {"hub": "x"}}, "prepare_encoder@1 transformers_folder@1"),
    "build_corpus": ({"entry": {"reader": "tsv", "filters": [{"length": {}, "html_tags": {}}, {"length": {}}]}},
                     "build_corpus@2 html_tags@1 length@1 tsv@1"),
    "filter_shards": ({"entry": {"reader": "tsv", "filters": [{"length": {}}]}}, "filter_shards@1 length@1 tsv@1"),
    "build_evaluation": ({"entry": {"reader": "sts_tsv", "kind": "evaluation"}}, "build_evaluation@1 sts_tsv@1"),
    "build_evaluation of others": ({"entry": {"of": ["sts_tsv"], "kind": "evaluation"}}, "build_evaluation@1 joined@2"),
    "build_view": ({"entry": {"builder": "full_translation", "translator": {"apertium": {}}}},
                   "build_view@1 full_translation@1 apertium@1"),
    "build_examples": ({"entry": {"builder": "union"}}, "build_examples@1 union@1"),
    "embed": ({"head": {"name": "label", "entry": {"kind": "classification"}}}, "embed@1 classification@1"),
    "score": ({"task_entry": {"scorer": "sts"}}, "score@2 sts@2"),
    "mine_search": ({"backend": "exact"}, "mine_search@1 exact@1"),
    "mine_join": ({"backend": "exact"}, "mine_join@1 mine_search@1 exact@1"),
    "draw_figure": ({"kind": "bars"}, "draw_figure@3 bars@1"),
    "make_table": ({"rows": []}, "make_table@8"),
}  # fmt: skip


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.kind)
def test_every_implementation_has_a_version_that_can_be_read_without_importing_it(point):
    for name in point.names():
        assert point.version(name) >= 1


@pytest.mark.parametrize("rule", RECIPES)
def test_a_job_rests_on_its_stage_and_on_what_its_recipe_names(rule):
    recipe, said = RECIPES[rule]
    rule = rule.split()[0]
    assert sorted(job_versions(rule, recipe).split()) == sorted(said.split())
    assert job_versions(rule, recipe).startswith(f"{rule}@")
    for module in code_behind(rule, recipe).values():
        assert importlib.import_module(module)


def test_a_training_rests_on_its_terms_parts_and_the_scorers_that_it_selects_by():
    said = job_versions("train_system", TRAINING, {"dev": {"scorer": "sts"}})
    assert said == "train_system@1 tokenise@1 momentum_contrast@1 infonce@1 momentum_queue@1 classification@1 sts@2"


def test_two_of_one_name_are_told_apart_by_their_extension_point():
    said = job_versions("train_system", TRAINING, {"dev": {"scorer": "classification"}})
    assert "parts.classification@1" in said
    assert "scorers.classification@2" in said


def test_what_rises_is_named_and_what_nobody_had_named_was_the_first():
    assert raised("embed@1", "embed@1") == []
    assert raised("score@1 sts@1", "score@1 sts@3") == [("sts@1", "sts@3")]
    assert raised("", "score@1 sts@1") == []
    assert raised("", "score@2 sts@1") == [("score@1", "score@2")]
    assert raised("score@2 sts@1", "score@1 sts@1") == [("score@2", "score@1")]  # an older checkout makes it again, too
    assert raised("score@1 gone@7", "score@1 new@1") == []


def test_versions_are_read_without_loading_what_they_are_of():
    ask = f"job_versions('train_system', { {**TRAINING, 'select': {}} }, {{}})"
    program = f"import sys; from crosslign.config.versions import job_versions; {ask}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("call", ["", "@X.register", "@X.register()", "@X.register(version=0)", "@X.register(version=ONE)"])
def test_a_version_that_is_no_plain_number_is_refused(tmp_path, monkeypatch, call):
    file = tmp_path / "one.py"
    file.write_text(f"{call}\ndef f(): ...\n")
    monkeypatch.setattr(registry, "source_of", lambda module: file)
    with pytest.raises(InputError, match=r"toy.one.*@NAME.register\(version=1\)"):
        registry.version_of.__wrapped__("toy.one")
