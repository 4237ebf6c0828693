# systems -> embeddings: each distinct text once per run, checkpoint and readout.


rule embed:
    input:
        encoder=lambda w: graph.run_folder(project, w.run),
        texts=lambda w: paths.evaluation(w.text_set, "texts"),
        fitted_matrix=lambda w: fitted(w, "matrix"),
        fitted_texts=lambda w: fitted(w, "texts"),
        fitted_items=lambda w: fitted(w, "items"),
    output:
        matrix=paths.embeddings("{run}", "{checkpoint}", "{readout}", "{text_set}"),
    log:
        paths.log("embed", "{run}/{checkpoint}/{readout}/{text_set}"),
    benchmark:
        paths.benchmark("embed", "{run}/{checkpoint}/{readout}/{text_set}")
    wildcard_constraints:
        text_set=names(set(project.corpora) - set(LARGE_SETS)),
    conda:
        environment(GPUS)
    threads: 1
    resources:
        **needs("embed"),
        gpu=GPUS,
    params:
        recipe=lambda w: {
            "run": w.run,
            "checkpoint": w.checkpoint,
            "text_set": w.text_set,
            "readout": w.readout,
            "readout_entry": readout_entry(project, w.readout),
            "head": graph.run_head(project, w.run, w.text_set),
        },
        members=lambda w: {
            name: str(folder)
            for name, folder in graph.run_members(project, w.run, w.checkpoint).items()
        },
        threads=1,
        work=lambda w: str(
            paths.checkpoints(f"embed/{w.run}/{w.checkpoint}/{w.readout}")
        ),
        root=lambda w: str(paths.results),
        code=lambda w: code("embed", *head_modules(w)),
    message:
        "Encoding {wildcards.text_set} with {wildcards.run} ({wildcards.checkpoint}, {wildcards.readout})"
    script:
        "../scripts/embed.py"


# Vectors of large sets are removed after their last score, unless `keep: {embeddings: true}`.
use rule embed as embed_large with:
    output:
        matrix=temp(
            paths.embeddings("{run}", "{checkpoint}", "{readout}", "{text_set}")
        ),
    wildcard_constraints:
        text_set=names(LARGE_SETS),
