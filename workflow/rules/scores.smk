# embeddings -> scores: one JSON of records per run and task.


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
    return [tables["matrix"] for tables in graph.score_inputs(project, *wildcards).values()]


def score_sets(wildcards):
    tables = graph.score_inputs(project, *wildcards).values()
    return [entry[part] for entry in tables for part in EVALUATION_FILES]


rule score:
    message:
        "Scoring {wildcards.run} on {wildcards.task} ({wildcards.checkpoint}, {wildcards.readout})"
    input:
        matrices=score_matrices,
        sets=score_sets,
    output:
        scores=paths.score("{run}", "{checkpoint}", "{readout}", "{task}"),
    params:
        recipe=score_recipe,
        threads=1,
        root=str(paths.results),
        code=lambda w: code("score", f"crosslign.tasks.scorers.{project.tasks[w.task]['scorer']}"),
    log:
        paths.log("score", "{run}/{checkpoint}/{readout}/{task}"),
    benchmark:
        paths.benchmark("score", "{run}/{checkpoint}/{readout}/{task}")
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 4000 * attempt,
        runtime=lambda w, attempt: 60 * attempt,
    script:
        "../scripts/score.py"
