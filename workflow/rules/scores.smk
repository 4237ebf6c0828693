# embeddings -> scores: one JSON of records per run and task.


rule score:
    input:
        unpack(read(score_inputs)),
    output:
        **with_lineage(
            scores=paths.score("{run}", "{checkpoint}", "{readout}", "{task}"),
            resamples=paths.resamples("{run}", "{checkpoint}", "{readout}", "{task}"),
        ),
    log:
        paths.log("score", "{run}/{checkpoint}/{readout}/{task}"),
    benchmark:
        paths.benchmark("score", "{run}/{checkpoint}/{readout}/{task}")
    # Scores of another group are neither computed nor rerun here.
    wildcard_constraints:
        run=own_runs(paths.results),
    priority: priority_of("score")
    group:
        grouped("scores", "large_scores", by=["run", "checkpoint", "readout", "task"])
    threads: lambda w: search_threads(project, w.task)
    resources:
        **needs("score"),
        # no settings: values depend neither on devices nor on threads
        gpu=score_gpus,
        search_threads=lambda w: search_threads(project, w.task),
    params:
        **versioned("score", score_recipe),
        threads=1,
        work=str(paths.checkpoints("score/{run}/{checkpoint}/{readout}/{task}")),
        root=lambda w: str(paths.results),
    message:
        "Scoring {wildcards.run} on {wildcards.task} ({wildcards.checkpoint}, {wildcards.readout})"
    script:
        "../scripts/run_stage.py"
