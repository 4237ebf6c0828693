# Functions that find a rule's inputs and settings, in the order of the line of data; what they know stands in crosslign.config.


def stand_in_sources():
    return [
        s
        for s in project.sources
        if project.stand_in and "stand_in" in project.sources[s]
    ]


def source_recipe(wildcards):
    entry = {
        key: value
        for key, value in project.sources[wildcards.source].items()
        if key != "files"
    }
    return {
        "source": wildcards.source,
        "entry": entry,
        "file": graph.source_file(project, wildcards.source, wildcards.file),
    }


def reference_inputs(wildcards):
    return graph.corpus_references(project, wildcards.corpus)


def part_tables(wildcards):
    parts = graph.evaluation_parts(project, wildcards.corpus)
    return [tables[part] for tables in parts.values() for part in EVALUATION_FILES]


def corpus_recipe(limit):
    def recipe(wildcards):
        return {
            "corpus": wildcards.corpus,
            "entry": project.corpora[wildcards.corpus],
            "limit": LIMITS.get(limit),
        }

    return recipe


def examples_named(key):
    return lambda w: list(graph.examples_inputs(project, w.examples)[key])


def examples_paths(key):
    return lambda w: list(graph.examples_inputs(project, w.examples)[key].values())


def recipe_of(wildcards):
    system, seed = split_run(project, wildcards.run)
    return resolve(project, system, seed)


def training_examples(wildcards):
    return sorted({term["examples"] for term in recipe_of(wildcards)["terms"]})


def selection_tables(wildcards):
    sets = graph.selection_sets(project, recipe_of(wildcards))
    return [tables[part] for tables in sets.values() for part in EVALUATION_FILES]


def head_modules(wildcards):
    head = graph.run_head(project, wildcards.run, wildcards.text_set)
    return [f"crosslign.objectives.parts.{head['entry']['kind']}"] if head else []


def score_recipe(wildcards):
    system, seed = split_run(project, wildcards.run)
    return {
        "run_id": wildcards.run,
        "system": system,
        "seed": seed,
        "checkpoint": wildcards.checkpoint,
        "readout": wildcards.readout,
        "readout_entry": readout_entry(project, wildcards.readout),
        "profile": project.settings["scale"],
        "task": wildcards.task,
        "task_entry": project.tasks[wildcards.task],
    }


def score_matrices(wildcards):
    return [
        tables["matrix"] for tables in graph.score_inputs(project, *wildcards).values()
    ]


def score_sets(wildcards):
    tables = graph.score_inputs(project, *wildcards).values()
    return [entry[part] for entry in tables for part in EVALUATION_FILES]


def figure_inputs(wildcards):
    return cells.figure_inputs(project, wildcards.figure)
