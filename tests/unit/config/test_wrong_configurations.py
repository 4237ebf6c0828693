"""What people write wrongly: one line says where, what was found, what is allowed, and mostly what to do; never a traceback."""

import re

import pytest
from small_configuration import CONFIG, CORPORA, ENCODERS, FILES, OTHER, PAPER, SCALE, TASKS, write_project

from crosslign.config.cells import table_scores
from crosslign.config.figures import figure_inputs
from crosslign.config.load import load_project
from crosslign.config.targets import target_files
from crosslign.errors import InputError

LINE = r"\.yaml:\d+: "
TRAIN = "train: {steps: 12, learning_rate: 1e-3, max_length: 24, precision: fp32}"
WRONG = {
    # values
    "no value": (CONFIG, "results: results", "results:", LINE + "results: .*nothing"),
    "a date": (
        CONFIG,
        "results: results",
        "results: 2026-11-22",
        LINE + "results: .*2026-11-22",
    ),
    "one of two types": (CONFIG, "mirror: []", "mirror: 5", LINE + r"mirror: .*5.*\[5\]"),
    "nothing in a list": (CONFIG, "mirror: []", "mirror: [~]", LINE + "mirror.0: .*nothing"),
    "a word for a list": (CONFIG, "papers: [one, two]", "papers: one", r"papers: .*\[one\]"),
    "keys for a list": (
        CORPORA,
        "filters:\n      - identical_pair: {}\n      - length: {min_words: 2}",
        "filters: {length: {min_words: 2}}",
        LINE + "corpora.written_nli.filters: .*{.*};.*`- `",
    ),
    "twice in a list": (PAPER, "seeds: [42]", "seeds: [42, 42]", LINE + "systems.P-A.seeds: 42 .*twice"),
    "yes": (ENCODERS, "normalise: true", "normalise: yes", LINE + "readouts.mean.normalise: .*'yes'"),
    "an exponent": (PAPER, "steps: 12", "steps: 1e5", LINE + r".*steps: .*100000\.0.*100000$"),
    "a quoted number": (
        PAPER,
        "learning_rate: 1e-3, max",
        'learning_rate: "1e-3", max',
        r"systems\.P-A\.train\.learning_rate: .*number",
    ),
    "another word": (PAPER, "every: 4", "every: epochs", r"systems\.P-A\.select\.best\.every: .*'epochs'.*'epoch'"),
    "a number too small, or a word": (PAPER, "every: 4", "every: 0", r"systems\.P-A\.select\.best\.every: 0 .* 1$"),
    "a language's name": (CONFIG, "lang: de}", "lang: german}", LINE + ".*'german'.*ISO 639-1.*639-3"),
    "a name with a space": (PAPER, "  P-B:", "  P B:", LINE + "systems.P B: 'P B'.*match"),
    "an unknown loss of others": (
        PAPER,
        "{objective: infonce, examples: both",
        "{objective: sentence_transformers_loss, loss: AngleLoss, examples: both",
        LINE + "systems.P-C.terms.0.loss: .*'AngleLoss'.*'AnglELoss'",
    ),
    "a loss that slices the model": (
        PAPER,
        "{objective: infonce, examples: both",
        "{objective: sentence_transformers_loss, loss: AdaptiveLayerLoss, examples: both",
        LINE + "systems.P-C.terms.0.loss: .*AdaptiveLayerLoss",
    ),
    "an option that an inner loss has not": (
        PAPER,
        "{objective: infonce, examples: both",
        "{objective: sentence_transformers_loss, loss: MatryoshkaLoss, examples: both, "
        "options: {matryoshka_dims: [8], loss: {loss: AnglELoss, options: {scales: 2}}}",
        LINE + "systems.P-C.terms.0.loss: AnglELoss.*'scales'.*'scale'",
    ),
    # names
    "an unknown scale": (CONFIG, "scale: mini", "scale: mni", "config.yaml.*--config: scale: .*'mni'.*'mini'"),
    "an unknown paper": (CONFIG, "papers: [one, two]", "papers: [one, tow]", "papers: .*'tow'"),
    "a system of another paper": (
        CONFIG,
        "papers: [one, two]",
        "papers: [two]",
        r"tables\.t_two\.rows\.0\.system: .*'P-B'.*config/papers/one.yaml",
    ),
    "an unknown fine-tune": (
        PAPER,
        "system: P-C+ft",
        "system: P-C+tf",
        LINE + ".*rows.2.system: .*'tf'.*ft$",
    ),
    "a column's fine-tune": (OTHER, "metric: spearman", "metric: spearman, finetune: tf", r"tables\.t_two\.rows\.0\.system: .*'tf'"),
    "a reader": (
        CORPORA,
        "reader: moses",
        "reader: jsonl",
        LINE + "corpora.bitext.reader: .*'jsonl'.*'json_lines'",
    ),
    "like itself": (PAPER, "like: P-A", "like: P-B", LINE + "systems.P-B.like: .*P-B -> P-B$"),
    "like an encoder": (PAPER, "like: P-A", "like: tiny", LINE + "systems.P-B.like: .*'tiny'.*P-A, P-B, P-C"),
    "settings of an encoder": (
        OTHER,
        "columns: [",
        "columns: [{label: s, setting_of: tiny}, ",
        r"tables\.t_two\.columns\.0\.setting_of: .*'tiny'",
    ),
    "a row of means": (
        OTHER,
        'task: sts_written, subset: mono, metric: spearman}]\n    rows: [{label: "P-B", system: P-B',
        'mean_of: [{task: sts_written, subset: mono, metric: spearman}]}]\n    rows: [{label: "P-B", system: P-BB',
        LINE + "tables.t_two.rows.0.system: .*'P-BB'",
    ),
    "a row to compare with": (PAPER, 'against: "P-A"', "against: PA", LINE + ".*rows.2.against: .*'PA'"),
    "a setting": (
        OTHER,
        'task: sts_written, subset: mono, metric: spearman}]\n    rows: [{label: "P-B", system: P-B',
        "setting_of: P-A}]\n    rows: [{label: rate, setting: train.rate",
        LINE + "tables.t_two.rows.0.setting: P-A.*'train.rate'.*'rate'",
    ),
    "a setting of a value": (
        OTHER,
        'task: sts_written, subset: mono, metric: spearman}]\n    rows: [{label: "P-B", system: P-B',
        "setting_of: P-A}]\n    rows: [{label: rate, setting: train.steps.x",
        r"tables\.t_two\.rows\.0\.setting: .*P-A.*'train.steps.x'.*'x'",
    ),
    # circles
    "a corpus of itself": (
        CORPORA,
        "from: [bitext], reader: parallel",
        "from: [find], reader: parallel",
        LINE + "corpora.find: .*find -> find$",
    ),
    "examples of themselves": (PAPER, "of: [pairs, nli]", "of: [both]", LINE + "examples.both: .*both -> both$"),
    "a system of its fine-tune": (PAPER, "base: {encoder: tiny}", "base: {system: P-C+ft}", LINE + "systems.P-A: .*P-A -> P-C -> P-A$"),
    "an average of itself": (TASKS, "mono: [en-en, de-de]", "mono: [mono]", LINE + "tasks.sts_written.averages.mono: .*mono -> mono$"),
    "a column of itself": (
        PAPER,
        "mean_of: [mono, into]",
        "mean_of: [mean]",
        LINE + "tables.t_one.columns.mean: .*mean -> mean$",
    ),
    # what would fail in a job, after hours
    "a column without a subset": (OTHER, "subset: mono, ", "", LINE + "tables.t_two.columns.0: .*'subset'.*missing"),
    "a column without a metric": (OTHER, ", metric: spearman", "", LINE + "tables.t_two.columns.0: .*'metric'.*missing"),
    "no length of training": (PAPER, "{steps: 12, ", "{", LINE + "systems.P-A: P-A.*`train: steps`.*`epochs`"),
    "no base, but a selection": (PAPER, "    base: {encoder: tiny}\n", "", LINE + "systems.P-A: P-A.*`base`"),
    "like a recipe without train": (PAPER, "    " + TRAIN + "\n", "", "P-A.*`train`"),
    "an encoder at no path": (ENCODERS, "path: models/own", 'path: ""', LINE + r"encoders.own.path: .*non-empty"),
    "an address for an id": (ENCODERS, "hub: org/name", "hub: https://huggingface.co/org/name", LINE + "encoders.other.hub: .*address"),
    "heads that do not divide": (ENCODERS, "heads: 2", "heads: 5", LINE + "encoders.tiny.construct.heads: `hidden`.*`heads`.* 5 .*32"),
    "a readout of one token": (PAPER, "readout: mean\n    seeds", "readout: mean_t1\n    seeds", r"systems\.P-A\.readout: .*'mean_t1'"),
    "curves of no training": (PAPER, "from: [P-A, P-B]", "from: [P-A, tiny]", LINE + "figures.f_one.from: 'tiny'.*curve"),
    "a filter's option": (
        CORPORA,
        "length_ratio: {max_ratio: 3.0}",
        "length_ratio: 3.0",
        r"length_ratio: .*3\.0.*max_ratio, unit",
    ),
    "a reader of another kind": (CORPORA, "reader: moses", "reader: nli_tsv", LINE + "corpora.bitext.reader: .*labelled, not bitext"),
    "a reader's default kind": (
        CORPORA,
        "reader: moses",
        "reader: json_lines\n    options: {columns: {de: a_text, en: b_text}}",
        r"corpora\.bitext\.reader: .*json_lines.*labelled,.*bitext..*bitext",
    ),
    "a column that no kind has": (
        CORPORA,
        "reader: moses",
        "reader: tsv\n    options: {columns: {de: a_txt, en: b_text}}",
        LINE + "corpora.bitext.options.columns.de: 'a_txt'.*'a_text'",
    ),
    "options that lack one": (CORPORA, "reader: moses", "reader: tsv", LINE + r"corpora.bitext.options: .*'columns'.*\[\]"),
    "a bitext of three": (
        CORPORA,
        "reader: moses\n    langs: [de, en]",
        "reader: moses\n    langs: [de, en, fr]",
        LINE + "corpora.bitext.langs: .*moses.* 2 .*de, en, fr",
    ),
    "articles of two languages": (
        CORPORA,
        'reader: text_lines\n    langs: ["{lang}"]',
        'reader: wikipedia_parquet\n    langs: ["{lang}", en]',
        LINE + "corpora.lined_de.langs: .*wikipedia_parquet.* 1 .*de, en",
    ),
    "examples of nothing": (
        PAPER,
        "{builder: parallel_pairs, from: [bitext], ",
        "{builder: parallel_pairs, ",
        r"examples\.pairs: .*'from'",
    ),
    "examples of an empty list": (PAPER, "{builder: parallel_pairs, from: [bitext]", "{builder: parallel_pairs, from: []", "non-empty"),
    "a union of corpora": (PAPER, "of: [pairs, nli], ", "from: [bitext], ", LINE + "examples.both.*'of'"),
    "a language that is not there": (
        PAPER,
        "[bitext], langs: [en, de]",
        "[bitext], langs: [fr]",
        r"examples\.pairs\.langs: .*'fr'.*de, en",
    ),
    "rows without labels": (
        PAPER,
        "nli_triplets, from: [written_nli]",
        "nli_triplets, from: [bitext]",
        r"examples\.nli\.from: .*'bitext'.*bitext; nli_triplets",
    ),
    "a term without labels": (
        PAPER,
        "part: label, examples: rows",
        "part: label, examples: pairs",
        r"finetunes\.ft\.terms\.0\.examples: .*cross_entropy.*labelled",
    ),
    "a main score of nothing": (
        TASKS,
        "metric: spearman, subset: mono",
        "metric: spearman, subset: all",
        r"main\.subset: sts_written .*'all'.*mono, cross",
    ),
    "an average of nothing": (TASKS, "mono: [en-en, de-de]", "mono: [en-en, de-fr]", LINE + ".*averages.mono: .*'de-fr'"),
    # YAML
    "a tab": (CONFIG, "targets: [t_one]", "targets:\n\t- t_one", LINE + ".*YAML.*tabs"),
    "a star": (SCALE, "encoders: {}", "encoders: {*: tiny}", LINE + ".*YAML.*[*] .*&"),
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_project(tmp_path)


def change(project, file, old, new):
    assert old in FILES[file]
    (project / file).write_text(FILES[file].replace(old, new, 1), encoding="utf-8")


def test_what_the_others_change_is_right_as_it_stands(project):
    loaded = load_project(project)
    assert all(table_scores(loaded, table) for table in loaded.tables)
    assert [panel for figure in loaded.figures for panel in figure_inputs(loaded, figure)["inputs"]["panels"] if "reason" in panel] == []
    assert target_files(loaded, ["t_one", "f_one", "m_one"])


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_configuration_is_one_line_that_helps(project, name):
    file, old, new, message = WRONG[name]
    change(project, file, old, new)
    with pytest.raises(InputError, match=message) as error:
        load_project(project)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (CONFIG, "lang: de}", "lang: no}"),
        (CORPORA, "each: {lang: [de, fr]}", "each: {lang: [de, no]}"),
        (CORPORA, "- exact_duplicate: {}", "- exact_duplicate:"),
        (CORPORA, "reader: moses", "reader: tsv\n    options: {columns: {de: a_text, en: b_text}, header: true}"),
        (PAPER, "precision: fp32", "precision: fp32, guards: {embedding_collapse: off}"),
        (PAPER, "readout: mean\n    seeds", "readout: mean_t2\n    seeds"),
        (PAPER, "like: P-A", "like: P-C"),
        (OTHER, FILES[OTHER], ""),
    ],
)
def test_what_looks_wrong_and_is_not_is_taken(project, file, old, new):
    change(project, file, old, new)
    load_project(project)


def test_a_child_of_a_recipe_without_train_is_refused_in_words(project):
    """A warm-up of one's own takes the parent's away: there may be none."""
    child = 'like: P-C\n    place: "probe b"\n    train: {learning_rate: 1e-4, warmup_steps: 3}'
    text = FILES[PAPER].replace('like: P-A\n    place: "probe b"\n    train: {learning_rate: 1e-4}', child)
    (project / PAPER).write_text(text.replace("    train: {steps: 5, learning_rate: 1e-3}\n", ""), encoding="utf-8")
    with pytest.raises(InputError, match=r"P-B.*`train: steps`") as error:
        load_project(project)
    assert re.match(r"config/papers/one\.yaml:\d+: systems\.P-B: ", str(error.value))
