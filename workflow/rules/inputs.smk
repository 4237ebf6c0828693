# Functions that find a rule's inputs and settings, in the order of the line of data; what they know stands in crosslign.config.


def stand_in_sources():
    return [
        s
        for s in project.sources
        if project.stand_in and "stand_in" in project.sources[s]
    ]


def source_entry(source):
    """A source's entry without its files, which recipes name one by one."""
    entry = graph.settings_of(project.sources[source])
    return {key: value for key, value in entry.items() if key != "files"}


def source_recipe(wildcards):
    file = graph.source_file(project, wildcards.source, wildcards.file)
    return {
        "source": wildcards.source,
        "entry": source_entry(wildcards.source),
        "file": graph.settings_of(file),
    }


def own_file_of(wildcards):
    """The user's own file that a `local` source copies, so that an edited one is copied again; once copied, it may go."""
    source = project.sources[wildcards.source]
    if source_kind(source) != "local":
        return []
    file = graph.source_file(project, wildcards.source, wildcards.file)
    own = with_home(describe(source, file))
    copy = paths.download(wildcards.source, wildcards.file)
    return [own] if own.is_file() or copy.is_file() else []


def stand_in_recipe(source):
    return {
        "source": source,
        "entry": source_entry(source),
        "files": [graph.settings_of(file) for file in project.sources[source]["files"]],
    }


def encoder_recipe(wildcards):
    return {
        "encoder": wildcards.encoder,
        "entry": graph.settings_of(project.encoders[wildcards.encoder]),
    }


def reference_inputs(wildcards):
    return graph.corpus_references(project, wildcards.corpus)


def part_tables(wildcards):
    parts = graph.evaluation_parts(project, wildcards.corpus)
    return [tables[part] for tables in parts.values() for part in EVALUATION_FILES]


def corpus_recipe(limit):
    def recipe(wildcards):
        entry = project.corpora[wildcards.corpus]
        return {
            "corpus": wildcards.corpus,
            "entry": graph.settings_of(entry),
            "limit": None if entry.get("whole") else LIMITS.get(limit),
        }

    return recipe


def view_models(view):
    """Models of the hub that a view's translator needs, by the folders that they are fetched into."""
    with ends_in_words():
        return {model.folder: model for model in hub_models(project.views[view])}


def view_gpus(wildcards):
    """Devices of a view's job: those of the scale where its translator computes on one."""
    with ends_in_words():
        return GPUS if uses_gpu(project.views[wildcards.view]) else 0


def model_recipe(wildcards):
    """Name and revision of a model, by the view that needs it."""
    model = next(
        models[wildcards.model]
        for models in map(view_models, project.views)
        if wildcards.model in models
    )
    return {"name": model.name, "revision": model.revision}


def examples_recipe(wildcards):
    return {
        "examples": wildcards.examples,
        "entry": project.examples[wildcards.examples],
        "limit": LIMITS.get("example_rows"),
    }


def examples_named(key):
    return lambda w: list(graph.examples_inputs(project, w.examples)[key])


def examples_paths(key):
    return lambda w: list(graph.examples_inputs(project, w.examples)[key].values())


def recipe_of(wildcards):
    return run_recipe(project, wildcards.run)


def pace(key):
    return lambda w: pace_of(project, split_run(project, w.run)[0])[key]


def training_examples(wildcards):
    return sorted({term["examples"] for term in recipe_of(wildcards)["terms"]})


def tokenised_examples(wildcards):
    found = copies(project, recipe_of(wildcards))
    return [
        paths.tokenised(name, key_of(found[name]))
        for name in training_examples(wildcards)
    ]


def tokenising_members(wildcards):
    """Folders of the encoders whose tokenizers read a training set, by member."""
    encoders = copy_of(project, wildcards.examples, wildcards.key)["encoders"]
    return {name: paths.encoder(encoder) for name, encoder in encoders.items()}


def selection_tables(wildcards):
    sets = graph.selection_sets(project, recipe_of(wildcards))
    return [tables[part] for tables in sets.values() for part in EVALUATION_FILES]


def selection_tasks(wildcards):
    """The tasks that a training selects by; bytes depend on them, and no recipe holds them."""
    selects = recipe_of(wildcards)["select"].values()
    return {one["task"]: scored_entry(project, one["task"]) for one in selects}


def embedding_recipe(wildcards):
    return {
        **{
            key: wildcards.get(key)
            for key in ("run", "checkpoint", "text_set", "readout")
        },
        "readout_entry": readout_entry(project, wildcards.readout),
        "head": graph.run_head(project, wildcards.run, wildcards.text_set),
    }


def fitted(wildcards, part):
    """What a whitened readout is fitted to; nothing for any other."""
    run, checkpoint, readout = wildcards.run, wildcards.checkpoint, wildcards.readout
    return graph.fitted_to(project, run, checkpoint, readout).get(part, [])


def score_recipe(wildcards):
    system, seed = split_run(project, wildcards.run)
    return {
        "run_id": wildcards.run,
        "system": system,
        "seed": seed,
        "checkpoint": wildcards.checkpoint,
        "readout": wildcards.readout,
        "readout_entry": {
            **readout_entry(project, wildcards.readout),
            "max_length": graph.score_length(
                project, wildcards.run, wildcards.readout, wildcards.task
            ),
        },
        "profile": project.settings["scale"],
        "task": wildcards.task,
        "task_entry": scored_entry(project, wildcards.task),
    }


def score_gpus(wildcards):
    """Devices of a score's job: one where its searches would keep a CPU busy for long."""
    return search_gpus(project, wildcards.task)


def score_matrices(wildcards):
    return [
        tables["matrix"] for tables in graph.score_inputs(project, *wildcards).values()
    ]


def score_sets(wildcards):
    tables = graph.score_inputs(project, *wildcards).values()
    return [entry[part] for entry in tables for part in EVALUATION_FILES]


def counting(wildcards):
    return {
        "table": wildcards.table,
        "counted": [list(key) for key in cells.counted_rows(project, wildcards.table)],
    }


def figure_inputs(wildcards):
    return cells.figure_inputs(project, wildcards.figure)


def own_side(wildcards):
    """The user's own file of one side of a mining; where it, or what the system needs, is not there, Snakemake would not say where to mend it."""
    with ends_in_words():
        require_there(project, wildcards.mine)
    return side_file(project, mine_recipe(project, wildcards.mine), wildcards.side)


def mining(mine, *keys):
    """What one step takes of the recipe, so that a changed threshold searches nothing again."""
    recipe = mine_recipe(project, mine)
    return {"mine": mine, **{key: recipe[key] for key in keys}}


def mining_texts(wildcards):
    recipe = mine_recipe(project, wildcards.mine)
    keys = mining(wildcards.mine, "dedup", "limit", "licence")
    return {**keys, "side": wildcards.side, **recipe[wildcards.side]}


def mining_embedding(wildcards):
    keys = ("run", "checkpoint", "encoders", "readout", "readout_entry", "embeddings")
    return {**mining(wildcards.mine, *keys), "side": wildcards.side}


def mining_pairs(wildcards):
    keys = ("run", "checkpoint", "readout", "embeddings", "dedup", "k", "margin")
    more = ("encoders", "retrieval", "threshold", "output", "backend")
    return mining(wildcards.mine, *keys, *more)


def mining_members(wildcards):
    recipe = mine_recipe(project, wildcards.mine)
    found = mined_members(project, recipe)
    return {name: str(folder) for name, folder in found.items()}


with ends_in_words():
    BEHIND_REPORT = lineage_behind(project, COVERED_SCORES, view_models)


def published(tables):
    """Files of the figures that papers printed in these tables, and of what does not add up in them."""
    shown = {project.tables[table].get("published_from", table) for table in tables}
    found = [
        path for name in sorted(shown) if (path := PUBLISHED / f"{name}.csv").exists()
    ]
    return [*found, *filter(Path.exists, [PUBLISHED / "errata.csv"])] if found else []
