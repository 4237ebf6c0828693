"""A checkpoint that no training keeps is refused when the configuration is read, not after the training."""

from dataclasses import replace

import pytest
from test_papers import project

from crosslign.config.checkpoints import check_checkpoints
from crosslign.errors import InputError

COLUMN = {"label": "c", "task": "tatoeba", "subset": "deu", "metric": "accuracy"}


@pytest.fixture(scope="module")
def kept():
    return project("msimcse")


@pytest.fixture
def loaded(kept):
    return replace(kept)  # remembers nothing of what other tests changed


def table(system, **column):
    return {"title": "", "columns": [{**COLUMN, **column}], "rows": [{"label": "r", "system": system}]}


@pytest.mark.parametrize(
    ("section", "entry", "said"),
    [
        ("tables", table("MS-E", checkpoint="bset"), r"tables\.t\.columns\.0\.checkpoint: .*MS-E.*'bset'.*best, last.*'best'"),
        ("tables", table("MS-E+pawsx_transfer", checkpoint="dev"), r"tables\.t\.columns\.0\.checkpoint: .*'dev'"),
        (
            "systems",
            {"like": "MS-E", "checkpoint": {"stsb": "last", "default": "other"}},
            r"t\.checkpoint\.default: .*'other'.*best, last",
        ),
        ("systems", {"like": "MS-E", "checkpoint": {"stbs": "last", "default": "best"}}, r"systems\.t\.checkpoint\.stbs: .*'stbs'.*'stsb'"),
        ("systems", {"like": "MS-E", "checkpoint": "bets"}, r"t\.checkpoint: .*'bets'.*'best'"),
        ("systems", {"like": "MS-E", "select": {"best": {"keep": False}}}, r"systems\.t\.checkpoint: .*checkpoint 'best'"),
        ("systems", {"like": "MS-E", "select": {"last": {}}}, r"select\.last: 'last'.*checkpoint"),
        ("finetunes", {"select": {}, "checkpoint": "best"}, r"finetunes\.t\.checkpoint: .*'best'"),
        ("systems", {"like": "MS-E", "base": {"system": "MS-U", "checkpoint": "first"}}, r"systems\.t\.base\.checkpoint: .*MS-U.*'first'"),
        ("figures", {"from": ["xlm-r", "MS-E"], "checkpoint": "first"}, r"figures\.t\.checkpoint: .*MS-E.*'first'"),
    ],
)
def test_a_checkpoint_that_is_not_kept_is_refused(loaded, monkeypatch, section, entry, said):
    monkeypatch.setitem(getattr(loaded, section), "t", entry)
    monkeypatch.setitem(loaded.paper_of, "t", "msimcse")
    with pytest.raises(InputError, match=said):
        check_checkpoints(loaded, {})


@pytest.mark.parametrize("checkpoint", ["best", "last"])
def test_what_is_kept_may_be_named(loaded, monkeypatch, checkpoint):
    monkeypatch.setitem(loaded.tables, "t", table("MS-E", checkpoint=checkpoint))
    monkeypatch.setitem(loaded.paper_of, "t", "msimcse")
    check_checkpoints(loaded, {})
