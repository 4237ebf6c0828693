"""A wrong configuration ends at once, with one line that names file, key, what was found and what is allowed."""

import re

import pytest

from crosslign.config.load import load_project
from crosslign.errors import InputError

EDITS = {
    "a typo in a recipe": (
        "config/papers/quickstart.yaml",
        "learning_rate: 1e-5",
        "learning_rat: 1e-5",
        r"quickstart\.yaml:\d+: .*unknown key 'learning_rat'.*did you mean 'learning_rate'",
    ),
    "a typo in a term": (
        "config/papers/quickstart.yaml",
        "temperature: 0.05",
        "temprature: 0.05",
        r"quickstart\.yaml:\d+: .*'temprature'.*'temperature'",
    ),
    "an unknown system": (
        "config/papers/quickstart.yaml",
        "system: QS-XA}",
        "system: QS-AX}",
        r"quickstart\.yaml:\d+: tables\.quickstart\..*'QS-AX'.*QS-XA",
    ),
    "an unknown language": (
        "config/corpora.yaml",
        "langs: [en, de, fr, es, ru, zh]",
        "langs: [en, german]",
        r"corpora\.yaml:\d+: .*'german'",
    ),
    "an unknown filter": (
        "config/corpora.yaml",
        "- length:",
        "- lenght:",
        r"corpora\.yaml:\d+: .*'lenght'.*'length'",
    ),
    "a filter's typo": (
        "config/corpora.yaml",
        "max_ratio: 3.0",
        "max_ration: 3.0",
        r"corpora\.yaml:\d+: .*'max_ration'.*'max_ratio'",
    ),
    "an unknown objective": (
        "config/papers/quickstart.yaml",
        "objective: infonce",
        "objective: infonse",
        r"quickstart\.yaml:\d+: .*'infonse'.*'infonce'",
    ),
    "a wrong type": ("config/papers/quickstart.yaml", "batch: 32", "batch: many", r"quickstart\.yaml:\d+: .*batch.*'many'.*integer"),
    "a key that occurs twice": (
        "config/config.yaml",
        "scale: laptop",
        "scale: laptop\nscale: quick",
        r"config\.yaml:\d+: .*twice.*'scale'",
    ),
    "code": (
        "config/config.yaml",
        "scale: laptop",
        "scale: laptop\n__use_yte__: true\n__definitions__: [import os; os.mkdir('owned')]",
        r"config\.yaml:\d+: .*unknown.*'__use_yte__'",
    ),
    "an unknown scale": ("config/config.yaml", "scale: laptop", "scale: laptob", r"scale: .*'laptob'.*'laptop'"),
    "an unknown task": (
        "config/papers/quickstart.yaml",
        "task: sts_written",
        "task: sts_writen",
        r"quickstart\.yaml:\d+: .*'sts_writen'.*'sts_written'",
    ),
    "a system made from itself": (
        "config/papers/quickstart.yaml",
        "base: {encoder: minilm_l6}",
        "base: {system: QS-U}",
        r"'QS-U'.*QS-U -> ",
    ),
    "a tag": ("config/config.yaml", "scale: laptop", "scale: !!python/object:os.system laptop", r"config\.yaml"),
}


@pytest.mark.parametrize("name", EDITS)
def test_one_line_that_helps(untouched, name):
    file, old, new, message = EDITS[name]
    untouched.edit(file, old, new)
    with pytest.raises(InputError, match=message) as error:
        load_project(untouched.folder)
    assert "\n" not in str(error.value)


def test_the_workflow_stops_before_any_job_with_exit_code_2(untouched):
    untouched.edit(*EDITS["code"][:3])
    done = untouched.run(check=False)
    assert done.returncode == 2
    assert not (untouched.folder / "owned").exists()
    assert [line for line in done.stderr.splitlines() if line.startswith("error:")] != []
    assert "Traceback" not in done.stderr
    assert not untouched.results.exists()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("quickstrat", r"unknown target 'quickstrat'.*did you mean 'quickstart'"),
        ("five_methods", "target 'five_methods' is a paper that is switched off"),
    ],
)
def test_a_misspelt_target_of_the_command_line_is_named_with_the_nearest(untouched, target, message):
    done = untouched.run(target, check=False)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert re.search(message, line)
    assert "Traceback" not in done.stderr


def test_norwegian_stays_norwegian(untouched):
    untouched.edit(
        "config/corpora.yaml",
        'langs: [en, de, fr, es, ru, zh]\n    licence: "Bible',
        'langs: [en, de, fr, es, ru, zh, no]\n    licence: "Bible',
    )
    assert "no" in load_project(untouched.folder).corpora["bible_test"]["langs"]
