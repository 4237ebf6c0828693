# examples -> systems: one training job a run, of a tuned system after its trials. Checkpoints for resume lie outside the declared output, which a failed job loses.


# Once for all trainings that read a set alike; finished shards lie outside the declared output, too.
rule tokenise:
    input:
        unpack(
            read(
                examples=paths.examples("{examples}"),
                encoders=lambda w: list(tokenising_members(w).values()),
            )
        ),
    output:
        folder=temp(directory(paths.tokenised("{examples}", "{key}"))),
    log:
        paths.log("tokenise", "{examples}-{key}"),
    benchmark:
        paths.benchmark("tokenise", "{examples}-{key}")
    wildcard_constraints:
        key=r"[0-9a-f]+",
    priority: priority_of("tokenise")
    group:
        grouped("tokenised", by=["examples", "key"])
    threads: lambda w: beside_others(tokenising_threads(project, w.examples))
    resources:
        **needs("tokenise"),
    params:
        **versioned("tokenise", lambda w: copy_of(project, w.examples, w.key)),
        members=lambda w: {
            name: str(folder / "main")
            for name, folder in tokenising_members(w).items()
        },
        work=str(paths.checkpoints("tokenise/{examples}-{key}")),
        root=lambda w: str(paths.results),
    message:
        "Tokenising the training set {wildcards.examples} ({wildcards.key})"
    script:
        "../scripts/run_stage.py"


rule train_system:
    input:
        unpack(read(training_inputs)),
    output:
        folder=directory(paths.system("{run}")),
    log:
        paths.log("train_system", "{run}"),
    benchmark:
        paths.benchmark("train_system", "{run}")
    wildcard_constraints:
        run=r"[^/]+-s\d+",
    priority: priority_of("train_system")
    threads: lambda w: recipe_of(w)["train"]["threads"]
    resources:
        **needs("train_system"),
        gpu=GPUS,
        # no setting either: a device's kernels move values by rounding, as devices do
        kernels=project.kernels,
        # of a scheduler: a process each for several devices
        cpus_per_task=lambda w, threads: max(threads, GPUS),
        # when checkpoints are written: no `params`, since a change must rerun no training
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
        checkpoints=str(paths.checkpoints("{run}")),
        threads=lambda w: recipe_of(w)["train"]["threads"],
        root=lambda w: str(paths.results),
    message:
        "Training {wildcards.run}"
    script:
        "../scripts/run_stage.py"


rule choose:
    input:
        unpack(
            read(lambda w: named_inputs(trials=graph.trial_folders(project, w.system)))
        ),
    output:
        **with_lineage(choice=paths.choice("{system}")),
    log:
        paths.log("choose", "{system}"),
    benchmark:
        paths.benchmark("choose", "{system}")
    localrule: True
    threads: 1
    resources:
        **needs("choose"),
    params:
        **versioned("choose", lambda w: choice_recipe(project, w.system)),
        root=lambda w: str(paths.results),
    message:
        "Choosing values for {wildcards.system} from its trials"
    script:
        "../scripts/run_stage.py"
