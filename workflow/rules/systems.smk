# examples -> systems: one training job a run. Checkpoints for resume lie outside the declared output, which a failed job loses.


rule train_system:
    input:
        unpack(training_inputs),
    output:
        folder=directory(paths.system("{run}")),
    log:
        paths.log("train_system", "{run}"),
    benchmark:
        paths.benchmark("train_system", "{run}")
    wildcard_constraints:
        run=r"[^/]+-s\d+",
    priority: 10
    threads: lambda w: recipe_of(w)["train"]["threads"]
    resources:
        **needs("train_system"),
        gpu=GPUS,
        # no setting either: a device's kernels move values by rounding, as devices do
        kernels=project.kernels,
        # of a scheduler; no setting either: tokenising takes them, to the same bytes
        cpus_per_task=lambda w: training_cpus(project, w.run),
        # when checkpoints are written: no `params`, since a change must train nothing anew
        checkpoint_minutes=pace("checkpoint_minutes"),
        checkpoint_every=pace("checkpoint_every"),
    params:
        **versioned("train_system", recipe_of, selection_tasks),
        seed=lambda w: split_run(project, w.run)[1],
        members=lambda w: {
            name: str(folder)
            for name, folder in graph.base_members(project, recipe_of(w)).items()
        },
        tasks=selection_tasks,
        checkpoints=lambda w: str(paths.checkpoints(w.run)),
        tokenised=lambda w: str(paths.tokenised),
        threads=lambda w: recipe_of(w)["train"]["threads"],
        root=lambda w: str(paths.results),
    message:
        "Training {wildcards.run}"
    script:
        "../scripts/run_stage.py"
