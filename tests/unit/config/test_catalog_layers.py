"""Entries of a project's own: over the catalog, whole, and the run knows which."""

from pathlib import Path

import pytest

from crosslign.config import layers
from crosslign.config.load import load_project
from crosslign.errors import InputError
from crosslign.paths import CATALOG, printed_path

ROOT = Path(__file__).resolve().parents[3]
TASK = "{scorer: retrieval, texts: {test: tatoeba}, output: vectors, main: {metric: accuracy, subset: deu, direction: xx2en}}"


@pytest.fixture
def project(tmp_path):
    """A project that has no file of its own yet."""
    (tmp_path / "workflow").symlink_to(ROOT / "workflow")
    (tmp_path / "config" / "papers").mkdir(parents=True)
    return tmp_path


def write(project, name, text):
    (project / "config" / name).write_text(text, encoding="utf-8")


def test_an_entry_of_ones_own_is_added_and_the_catalogs_stay(project):
    write(project, "tasks.yaml", f"tasks:\n  mine: {TASK}\n")
    loaded = load_project(project, {"scale": "quick"})
    assert loaded.tasks["mine"]["texts"] == {"test": "tatoeba"}
    assert "tatoeba" in loaded.tasks
    assert loaded.replaced == {}
    assert loaded.added == {"tasks.mine": Path("config/tasks.yaml")}


def test_an_entry_takes_the_place_of_the_whole_one_of_its_name_and_the_run_knows(project):
    write(project, "tasks.yaml", f"tasks:\n  tatoeba_zh: {TASK}\n")
    loaded = load_project(project, {"scale": "quick"})
    assert "footnote" not in loaded.tasks["tatoeba_zh"]
    assert loaded.replaced == {"tasks.tatoeba_zh": Path("config/tasks.yaml")}
    assert loaded.added == {}


def test_an_equal_entry_replaces_nothing(project):
    write(project, "papers/quickstart.yaml", (CATALOG / "papers" / "quickstart.yaml").read_text(encoding="utf-8"))
    assert load_project(project, {"scale": "quick"}).replaced == {}


def test_a_scale_takes_over_what_a_project_leaves_out(project):
    (project / "config" / "scales").mkdir()
    write(project, "scales/quick.yaml", "limits: {steps: 3}\n")
    scale = load_project(project, {"scale": "quick"}).scale
    assert scale["limits"]["steps"] == 3
    assert scale["limits"]["batch"] > 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tasks:\n  mine: {scorer: retrieval}\n", r"^config/tasks\.yaml:2: tasks\.mine: .*'texts'"),
        (f"tasks:\n  mine: {TASK.replace('test: tatoeba', 'test: tatoebba')}\n", r"^config/tasks\.yaml:2: .*'tatoebba'.*mean 'tatoeba'"),
    ],
)
def test_a_fault_is_told_by_the_file_that_it_stands_in(project, text, said):
    write(project, "tasks.yaml", text)
    with pytest.raises(InputError, match=said):
        load_project(project, {"scale": "quick"})


def test_a_fault_that_an_own_entry_makes_in_the_catalog_is_told_by_the_catalogs_line(project):
    write(project, "corpora.yaml", "sources:\n  written: {local: ., files: [{name: a.txt}], licence: mine}\n")
    with pytest.raises(InputError, match=r"catalog/corpora\.yaml:\d+: .*'nli_en\.tsv'.*a\.txt"):
        load_project(project, {"scale": "quick"})


def test_printed_figures_of_ones_own_go_before_the_catalogs(tmp_path):
    assert printed_path(tmp_path, "mpcl_table1") == CATALOG / "resources" / "published" / "mpcl_table1.csv"
    (tmp_path / "mpcl_table1.csv").write_text("mine", encoding="utf-8")
    assert printed_path(tmp_path, "mpcl_table1") == tmp_path / "mpcl_table1.csv"


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A library whose catalog has one file; each call reads it as a process of its own does."""
    catalog = tmp_path / "library" / "catalog"
    catalog.mkdir(parents=True)
    (catalog / "tasks.yaml").write_text("tasks: {a: 1}\n", encoding="utf-8")
    monkeypatch.setattr(layers, "CATALOG", catalog)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def checked():
        layers._from_catalog.cache_clear()
        layers._library_sum.cache_clear()
        found = []

        def check(file):
            found.append(file.content["tasks"]["a"])
            if found == ["wrong"]:
                raise InputError("found 'wrong'")

        layers.load_layers(tmp_path, "tasks.yaml", check=check)
        return found

    yield catalog, checked
    layers._from_catalog.cache_clear()
    layers._library_sum.cache_clear()


def test_a_file_of_the_catalog_is_checked_once_until_a_file_of_the_library_changes(library):
    catalog, checked = library
    assert (checked(), checked()) == ([1], [])
    (catalog.parent / "schema.py").write_text("", encoding="utf-8")
    assert (checked(), checked()) == ([1], [])
    (catalog / "tasks.yaml").write_text("tasks: {a: wrong}\n", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(InputError, match="found 'wrong'"):
            checked()
    (catalog / "tasks.yaml").write_text("tasks: {a: 2}\n", encoding="utf-8")
    assert (checked(), checked()) == ([2], [])


@pytest.mark.parametrize("cache", ["/dev/null", "/proc/none"])
def test_where_no_note_can_be_kept_the_catalog_is_checked_each_time(library, monkeypatch, cache):
    _, checked = library
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    assert (checked(), checked()) == ([1], [1])


def test_a_user_without_a_home_has_the_catalog_checked(library, monkeypatch):
    _, checked = library
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", lambda number: {}[number])
    assert (checked(), checked()) == ([1], [1])
