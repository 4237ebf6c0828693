# Functions that find a rule's inputs and settings, in the order of the line of data; what they know stands in crosslign.config.


def read(*groups, **files):
    """Inputs of a rule: files by name, and functions that return such; with object storage each file's lineage too, which jobs read.

    On a shared file system it lies there anyway, beside its file: twice as many inputs would say nothing.
    """

    def found(wildcards):
        ask_for_cpus()
        given = {}
        with (
            ends_in_words()
        ):  # such as of a folder of another user's that may not be looked into
            for group in (*groups, files):
                given |= group(wildcards) if callable(group) else group
            given = {
                name: (
                    value(wildcards)
                    if callable(value)
                    else with_values(value, wildcards)
                )
                for name, value in given.items()
            }
        if STORED:
            every = [file for value in given.values() for file in listed(value)]
            given["lineage"] = lineage_beside(every)
        return given

    return found


def with_values(value, wildcards):
    return str(value).format(**wildcards) if isinstance(value, (str, Path)) else value


def lineage_beside(files):
    """Lineage of what rules make; that of a folder lies inside."""
    folders = [paths.system(""), paths.encoder(""), paths.hub_model("")]
    folders += [paths.tokenised("", "").parent, paths.searched("", "")]
    folders += [paths.filtered("", "")]
    made = [
        Path(file)
        for file in files
        if Path(file).is_relative_to(paths.root) and not is_sidecar(Path(file))
    ]
    return [
        sidecar_of(file)
        for file in dict.fromkeys(made)
        if not any(file.is_relative_to(folder) for folder in folders)
    ]


def stand_in_sources():
    return [
        s
        for s in project.sources
        if project.stand_in and "stand_in" in project.sources[s]
    ]


def encoder_inputs(wildcards):
    files = graph.own_files(project, project.encoders[wildcards.encoder])
    corpora = graph.encoder_corpora(project, wildcards.encoder)
    return {"files": list(files.values()), "corpora": corpora}


def source_recipe(wildcards):
    return graph.source_recipe(project, wildcards.source, wildcards.file)


def fetch_hints(wildcards):
    """What makes a file easier to get and changes none of its bytes: further addresses, what its host bears, its rough size."""
    file = graph.source_file(project, wildcards.source, wildcards.file)
    return hints_text(project.sources[wildcards.source], file)


def fetch_priority(wildcards):
    """Small files before large ones: what can go on with them need not wait."""
    return file_priority(project, wildcards.source, wildcards.file)


def priority_of(rule):
    """Which jobs of a rule that waits with others start first."""
    return lambda wildcards: job_priority(project, rule, dict(wildcards.items()))


def own_file_of(wildcards):
    found = copied_file(project, wildcards.source, wildcards.file)
    return [local(str(file)) for file in found]


def own_encoder_of(wildcards):
    """Files of an encoder of the user's own, so that a changed one is prepared again; once prepared, it may go."""
    return [local(str(file)) for file in own_encoder(project, wildcards.encoder)]


def encoder_recipe(wildcards):
    return graph.encoder_recipe(project, wildcards.encoder)


def own_of_corpus(wildcards):
    """Models of the user's own that a corpus' filters read, so that it is built again by changed ones."""
    entry = project.corpora[wildcards.corpus]
    return [local(str(file)) for file in own_models_of_filters(entry, project.sources)]


def own_of_view(wildcards):
    """Files of a translator's models in folders of the user's own."""
    with ends_in_words():
        return [local(str(file)) for file in own_models(project.views[wildcards.view])]


def corpus_inputs(wildcards):
    corpus = wildcards.corpus
    return named_inputs(
        files=list(graph.own_files(project, project.corpora[corpus]).values()),
        references=graph.corpus_references(project, corpus),
        parts=graph.evaluation_parts(project, corpus),
    )


def corpus_shares(wildcards):
    """Shares of a large source, each filtered by a job of its own; nothing where the corpus' own job filters all."""
    parts = graph.corpus_parts(project, wildcards.corpus)
    folders = [paths.filtered(wildcards.corpus, part) for part in parts]
    return {"derived": folders} if folders else {}


def share_recipe(wildcards):
    return graph.share_recipe(project, wildcards.corpus, wildcards.part)


def corpus_recipe(wildcards):
    return graph.corpus_recipe(project, wildcards.corpus)


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
    return graph.examples_recipe(project, wildcards.examples)


def view_inputs(wildcards):
    models = {
        model.name: paths.hub_model(folder)
        for folder, model in view_models(wildcards.view).items()
    }
    corpora = graph.view_inputs(project, wildcards.view)
    return named_inputs(corpora=corpora, models=models)


def examples_inputs(wildcards):
    return named_inputs(**graph.examples_inputs(project, wildcards.examples))


def recipe_of(wildcards):
    return run_recipe(project, wildcards.run)


def pace(key):
    return lambda w: pace_of(project, split_run(project, w.run)[0])[key]


def tokenising_members(wildcards):
    """Folders of the encoders whose tokenizers read a training set, by member."""
    encoders = copy_of(project, wildcards.examples, wildcards.key)["encoders"]
    return {name: paths.encoder(encoder) for name, encoder in encoders.items()}


def training_inputs(wildcards):
    recipe = recipe_of(wildcards)
    named = sorted({term["examples"] for term in recipe["terms"]})
    tokenised = copies(project, recipe)
    return named_inputs(
        derived={
            name: paths.tokenised(name, key_of(tokenised[name])) for name in named
        },
        examples={name: paths.examples(name) for name in named},
        base=graph.base_inputs(project, recipe),
        selection=graph.selection_sets(project, recipe),
        **graph.choice_inputs(project, recipe),
    )


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


def score_inputs(wildcards):
    return named_inputs(roles=graph.score_inputs(project, *wildcards))


def counted_inputs(wildcards):
    rows = {}
    for (kind, name), path in cells.counted_rows(project, wildcards.table).items():
        rows.setdefault(kind, {})[name] = path
    return named_inputs(rows=rows)


def counting(wildcards):
    return {
        "table": wildcards.table,
        "counted": [list(key) for key in cells.counted_rows(project, wildcards.table)],
    }


def figure_inputs(wildcards):
    return figures.figure_inputs(project, wildcards.figure)


def own_side(wildcards):
    """The user's own files of one side of a mining; where it, or what the system needs, is not there, Snakemake would not say what to fix."""
    with ends_in_words():
        require_there(project, wildcards.mine)
    own = side_files(project, mine_recipe(project, wildcards.mine), wildcards.side)
    return [local(str(file)) for file in own]


def mining_texts(wildcards):
    return texts_recipe(mine_recipe(project, wildcards.mine), wildcards.side)


def mining_embedding(wildcards):
    return vectors_recipe(mine_recipe(project, wildcards.mine), wildcards.side)


def mining_searched(wildcards):
    """Vectors of both sides, and their texts, for the line of a sentence whose vector cannot be used."""
    mine = wildcards.mine
    return mining_vectors(mine, MINED_SIDES)


def mining_vectors(mine, sides):
    """Vectors and texts of some sides, of the first entry that has the same."""
    return {
        **{side: vectors_path(project, mine, side) for side in sides},
        **{f"{side}_texts": texts_path(project, mine, side) for side in sides},
    }


def mining_range(wildcards):
    return range_recipe(mine_recipe(project, wildcards.mine), wildcards.part)


def mining_parts(wildcards):
    parts = parts_of(mine_recipe(project, wildcards.mine))
    return [paths.searched(wildcards.mine, part) for part in parts]


def mining_search(wildcards):
    return search_recipe(mine_recipe(project, wildcards.mine))


def mining_calibration(wildcards):
    return calibration_recipe(mine_recipe(project, wildcards.mine))


def mining_hidden(wildcards):
    return mining_vectors(wildcards.mine, (*MINED_SIDES, *PLANT_SIDES))


def mining_chosen(wildcards):
    return {side: texts_path(project, wildcards.mine, side) for side in MINED_SIDES}


def mining_planted(wildcards):
    planted = "plants" in mine_recipe(project, wildcards.mine)
    return {"calibration": paths.mined_calibration(wildcards.mine)} if planted else {}


def mining_pairs(wildcards):
    return pairs_recipe(mine_recipe(project, wildcards.mine))


def mining_members(wildcards):
    recipe = mine_recipe(project, wildcards.mine)
    found = mined_members(project, recipe)
    return {name: str(folder) for name, folder in found.items()}


# What overview, overlap and report read is asked for by their jobs alone: each start of Snakemake, in every job's process too, does without.


@cache
def covered_scores():
    """Scores behind the tables that this run covers."""
    with ends_in_words():
        found = [cells.table_scores(project, table) for table in COVERED_TABLES]
    return sorted({score for scores in found for score in scores})


@cache
def behind_report():
    """Lineage of the scores of the report, and of all behind them."""
    with ends_in_words():
        return lineage_behind(project, covered_scores(), view_models)


@cache
def measured():
    """What the overlap is measured on."""
    with ends_in_words():
        return overlap_inputs(project)


def published(tables):
    """Files of the figures that papers printed in these tables, and of what does not add up in them."""
    shown = {project.tables[table].get("published_from", table) for table in tables}
    named = [
        Path(os.path.relpath(printed_path(PRINTED, name))) for name in sorted(shown)
    ]
    found = list(filter(Path.exists, named))
    errata = dict.fromkeys(path.with_name("errata.csv") for path in found)
    return [local(str(path)) for path in (*found, *filter(Path.exists, errata))]
