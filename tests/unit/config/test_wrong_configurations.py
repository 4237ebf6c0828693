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
    "no value": (CONFIG, "results: results", "results:", LINE + "results: found nothing; must be of type string"),
    "a date": (
        CONFIG,
        "results: results",
        "results: 2026-11-22",
        LINE + "results: found 2026-11-22; must be of type string. Put it in quo",
    ),
    "one of two types": (CONFIG, "mirror: []", "mirror: 5", LINE + "mirror: found 5; must be of type string or array"),
    "nothing in a list": (CONFIG, "mirror: []", "mirror: [~]", LINE + "mirror.0: found nothing; must be of type string"),
    "a word for a list": (CONFIG, "papers: [one, two]", "papers: one", "must be of type array. Write a list in brackets: .one."),
    "keys for a list": (
        CORPORA,
        "filters:\n      - identical_pair: {}\n      - length: {min_words: 2}",
        "filters: {length: {min_words: 2}}",
        LINE + "corpora.written_nli.filters: found {.*}; must be of type array. Begin each entry of a list with `- `",
    ),
    "twice in a list": (PAPER, "seeds: [42]", "seeds: [42, 42]", LINE + "systems.P-A.seeds: 42 occurs twice"),
    "yes": (ENCODERS, "normalise: true", "normalise: yes", LINE + "readouts.mean.normalise: found 'yes'.*Write true or false"),
    "an exponent": (PAPER, "steps: 12", "steps: 1e5", LINE + ".*steps: found 100000.0; must be of type integer. Write 100000"),
    "a quoted number": (
        PAPER,
        "learning_rate: 1e-3, max",
        'learning_rate: "1e-3", max',
        "must be of type number. Remove the quotes",
    ),
    "another word": (PAPER, "every: 4", "every: epochs", "found 'epochs'; must be of type integer or 'epoch'"),
    "a number too small, or a word": (PAPER, "every: 4", "every: 0", "0 is less than the minimum of 1"),
    "a language's name": (CONFIG, "lang: de}", "lang: german}", LINE + ".*'german' does not match .*Language code of ISO 639-1 or 639-3"),
    "a name with a space": (PAPER, "  P-B:", "  P B:", LINE + "systems.P B: 'P B' does not match .*letters, digits"),
    "an unknown loss of others": (
        PAPER,
        "{objective: infonce, examples: both",
        "{objective: sentence_transformers_loss, loss: AngleLoss, examples: both",
        LINE + r"systems.P-C.terms.0.loss: sentence-transformers has no loss 'AngleLoss'.*did you mean 'AnglELoss'",
    ),
    "a loss that slices the model": (
        PAPER,
        "{objective: infonce, examples: both",
        "{objective: sentence_transformers_loss, loss: AdaptiveLayerLoss, examples: both",
        LINE + r"systems.P-C.terms.0.loss: this trainer cannot use the loss AdaptiveLayerLoss; it slices the model",
    ),
    "an option that an inner loss has not": (
        PAPER,
        "{objective: infonce, examples: both",
        "{objective: sentence_transformers_loss, loss: MatryoshkaLoss, examples: both, "
        "options: {matryoshka_dims: [8], loss: {loss: AnglELoss, options: {scales: 2}}}",
        LINE + r"systems.P-C.terms.0.loss: AnglELoss has no option 'scales'.*did you mean 'scale'",
    ),
    # names
    "an unknown scale": (CONFIG, "scale: mini", "scale: mni", "config.yaml or --config: scale: unknown scale 'mni'.*did you mean 'mini'"),
    "an unknown paper": (CONFIG, "papers: [one, two]", "papers: [one, tow]", "papers: unknown paper 'tow'"),
    "a system of another paper": (
        CONFIG,
        "papers: [one, two]",
        "papers: [two]",
        "unknown system 'P-B'.*config/papers/one.yaml: add one to",
    ),
    "an unknown fine-tune": (
        PAPER,
        "system: P-C+ft",
        "system: P-C+tf",
        LINE + ".*rows.2.system: unknown fine-tune 'tf'; allowed: ft$",
    ),
    "a column's fine-tune": (OTHER, "metric: spearman", "metric: spearman, finetune: tf", "unknown fine-tune 'tf'"),
    "a reader": (
        CORPORA,
        "reader: moses",
        "reader: jsonl",
        LINE + "corpora.bitext.reader: unknown reader 'jsonl'.*did you mean 'json_lines'",
    ),
    "like itself": (PAPER, "like: P-A", "like: P-B", LINE + "systems.P-B.like: `like` of system 'P-B' is made from itself"),
    "like an encoder": (PAPER, "like: P-A", "like: tiny", LINE + "systems.P-B.like: unknown trained system 'tiny'"),
    "settings of an encoder": (OTHER, "columns: [", "columns: [{label: s, setting_of: tiny}, ", "unknown trained system 'tiny'"),
    "a row of means": (
        OTHER,
        'task: sts_written, subset: mono, metric: spearman}]\n    rows: [{label: "P-B", system: P-B',
        'mean_of: [{task: sts_written, subset: mono, metric: spearman}]}]\n    rows: [{label: "P-B", system: P-BB',
        LINE + "tables.t_two.rows.0.system: unknown system 'P-BB'",
    ),
    "a row to compare with": (PAPER, 'against: "P-A"', "against: PA", LINE + ".*rows.2.against: no other row 'PA' to compare with"),
    "a setting": (
        OTHER,
        'task: sts_written, subset: mono, metric: spearman}]\n    rows: [{label: "P-B", system: P-B',
        "setting_of: P-A}]\n    rows: [{label: rate, setting: train.rate",
        LINE + "tables.t_two.rows.0.setting: P-A has no setting 'train.rate'; 'rate' is not among",
    ),
    "a setting of a value": (
        OTHER,
        'task: sts_written, subset: mono, metric: spearman}]\n    rows: [{label: "P-B", system: P-B',
        "setting_of: P-A}]\n    rows: [{label: rate, setting: train.steps.x",
        "P-A has no setting 'train.steps.x'; 'x' is not among nothing",
    ),
    # circles
    "a corpus of itself": (
        CORPORA,
        "from: [bitext], reader: parallel",
        "from: [find], reader: parallel",
        LINE + "corpora.find: .*find -> find",
    ),
    "examples of themselves": (PAPER, "of: [pairs, nli]", "of: [both]", LINE + "examples.both: examples 'both' is made from itself"),
    "a system of its fine-tune": (PAPER, "base: {encoder: tiny}", "base: {system: P-C+ft}", LINE + "systems.P-A: .*P-A -> P-C -> P-A"),
    "an average of itself": (TASKS, "mono: [en-en, de-de]", "mono: [mono]", LINE + "tasks.sts_written.averages.mono: .*made from itself"),
    "a column of itself": (
        PAPER,
        "mean_of: [mono, into]",
        "mean_of: [mean]",
        LINE + "tables.t_one.columns.mean: column of t_one: 'mean' is made",
    ),
    # what would fail in a job, after hours
    "a column without a subset": (OTHER, "subset: mono, ", "", LINE + "tables.t_two.columns.0: key 'subset' is missing"),
    "a column without a metric": (OTHER, ", metric: spearman", "", LINE + "tables.t_two.columns.0: key 'metric' is missing"),
    "no length of training": (PAPER, "{steps: 12, ", "{", LINE + "systems.P-A: P-A has no `train: steps`; nor `epochs`"),
    "no base, but a selection": (PAPER, "    base: {encoder: tiny}\n", "", LINE + "systems.P-A: P-A has no `base`"),
    "like a recipe without train": (PAPER, "    " + TRAIN + "\n", "", r"P-A has no `train`"),
    "an encoder at no path": (ENCODERS, "path: models/own", 'path: ""', LINE + r"encoders.own.path: .*non-empty"),
    "an address for an id": (ENCODERS, "hub: org/name", "hub: https://huggingface.co/org/name", LINE + "encoders.other.hub: .*no address"),
    "heads that do not divide": (ENCODERS, "heads: 2", "heads: 5", LINE + "encoders.tiny.construct.heads: `hidden` must be a multiple"),
    "a readout of one token": (PAPER, "readout: mean\n    seeds", "readout: mean_t1\n    seeds", "unknown readout 'mean_t1'"),
    "curves of no training": (PAPER, "from: [P-A, P-B]", "from: [P-A, tiny]", LINE + "figures.f_one.from: 'tiny' has no curve"),
    "a filter's option": (
        CORPORA,
        "length_ratio: {max_ratio: 3.0}",
        "length_ratio: 3.0",
        "found 3.0; must be of type object.*max_ratio, unit",
    ),
    "a reader of another kind": (CORPORA, "reader: moses", "reader: nli_tsv", LINE + "corpora.bitext.reader: .*labelled, not bitext"),
    "a reader's default kind": (
        CORPORA,
        "reader: moses",
        "reader: json_lines\n    options: {columns: {de: a_text, en: b_text}}",
        "the reader json_lines gives rows of the kind labelled, not bitext. Write kind: bitext among its options",
    ),
    "a column that no kind has": (
        CORPORA,
        "reader: moses",
        "reader: tsv\n    options: {columns: {de: a_txt, en: b_text}}",
        LINE + "corpora.bitext.options.columns.de: 'a_txt' is not allowed.*did you mean 'a_text'",
    ),
    "options that lack one": (CORPORA, "reader: moses", "reader: tsv", LINE + "corpora.bitext.options: key 'columns' is missing"),
    "a bitext of three": (
        CORPORA,
        "reader: moses\n    langs: [de, en]",
        "reader: moses\n    langs: [de, en, fr]",
        LINE + "corpora.bitext.langs: the reader moses gives bitext rows of 2 languages; found de, en, fr",
    ),
    "articles of two languages": (
        CORPORA,
        'reader: text_lines\n    langs: ["{lang}"]',
        'reader: wikipedia_parquet\n    langs: ["{lang}", en]',
        LINE + "corpora.lined_de.langs: the reader wikipedia_parquet gives mono rows of 1 language; found de, en",
    ),
    "examples of nothing": (PAPER, "{builder: parallel_pairs, from: [bitext], ", "{builder: parallel_pairs, ", "key 'from' is missing"),
    "examples of an empty list": (PAPER, "{builder: parallel_pairs, from: [bitext]", "{builder: parallel_pairs, from: []", "non-empty"),
    "a union of corpora": (PAPER, "of: [pairs, nli], ", "from: [bitext], ", LINE + "examples.both.*'of' is missing"),
    "a language that is not there": (
        PAPER,
        "[bitext], langs: [en, de]",
        "[bitext], langs: [fr]",
        "no corpus of these examples has .*'fr'",
    ),
    "rows without labels": (
        PAPER,
        "nli_triplets, from: [written_nli]",
        "nli_triplets, from: [bitext]",
        "'bitext' is bitext; nli_triplets reads",
    ),
    "a term without labels": (
        PAPER,
        "part: label, examples: rows",
        "part: label, examples: pairs",
        "cross_entropy cannot read the .* labelled",
    ),
    "a main score of nothing": (
        TASKS,
        "metric: spearman, subset: mono",
        "metric: spearman, subset: all",
        "sts_written has no subset 'all'",
    ),
    "an average of nothing": (TASKS, "mono: [en-en, de-de]", "mono: [en-en, de-fr]", LINE + ".*averages.mono: .*no subset 'de-fr'"),
    # YAML
    "a tab": (CONFIG, "targets: [t_one]", "targets:\n\t- t_one", LINE + "not valid YAML; .*Indent with spaces, not with tabs"),
    "a star": (SCALE, "encoders: {}", "encoders: {*: tiny}", LINE + "not valid YAML; .*Put a text that begins with . or & in quotes"),
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
    with pytest.raises(InputError, match=r"P-B has no `train: steps`") as error:
        load_project(project)
    assert re.match(r"config/papers/one\.yaml:\d+: systems\.P-B: ", str(error.value))
