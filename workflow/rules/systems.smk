# examples -> systems: one training job a run. Checkpoints for resume lie outside the declared output, which a failed job loses.


def recipe_of(wildcards):
    system, seed = split_run(project, wildcards.run)
    return resolve(project, system, seed)


def training_examples(wildcards):
    return sorted({term["examples"] for term in recipe_of(wildcards)["terms"]})


def selection_tables(wildcards):
    sets = graph.selection_sets(project, recipe_of(wildcards))
    return [tables[part] for tables in sets.values() for part in EVALUATION_FILES]


rule train_system:
    message:
        "Training {wildcards.run}"
    input:
        examples=lambda w: [paths.examples(name) for name in training_examples(w)],
        base=lambda w: graph.base_inputs(project, recipe_of(w)),
        selection=selection_tables,
    output:
        folder=directory(paths.system("{run}")),
    params:
        recipe=recipe_of,
        seed=lambda w: split_run(project, w.run)[1],
        examples=training_examples,
        members=lambda w: {name: str(folder) for name, folder in graph.base_members(project, recipe_of(w)).items()},
        selection=lambda w: list(graph.selection_sets(project, recipe_of(w))),
        tasks=lambda w: {s["task"]: project.tasks[s["task"]] for s in recipe_of(w)["select"].values()},
        checkpoints=lambda w: str(paths.checkpoints(w.run)),
        threads=lambda w: recipe_of(w)["train"]["threads"],
        root=str(paths.results),
        code=lambda w: code("train_system", *objective_modules(recipe_of(w))),
    wildcard_constraints:
        run=r"[^/]+-s\d+",
    log:
        paths.log("train_system", "{run}"),
    benchmark:
        paths.benchmark("train_system", "{run}")
    threads: lambda w: recipe_of(w)["train"]["threads"]
    resources:
        mem_mb=lambda w, attempt: 6000 * attempt,
        runtime=lambda w, attempt: 240 * attempt,
    priority: 10
    script:
        "../scripts/train_system.py"
