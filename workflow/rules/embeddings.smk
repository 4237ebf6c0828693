# systems -> embeddings: each distinct text once per run, checkpoint and readout.


rule embed:
    input:
        unpack(
            read(
                encoder=lambda w: graph.run_folder(project, w.run),
                texts=lambda w: paths.evaluation(w.text_set, "texts"),
                fitted_matrix=lambda w: fitted(w, "matrix"),
                fitted_texts=lambda w: fitted(w, "texts"),
                fitted_items=lambda w: fitted(w, "items"),
            )
        ),
    output:
        **with_lineage(
            matrix=paths.embeddings("{run}", "{checkpoint}", "{readout}", "{text_set}")
        ),
    log:
        paths.log("embed", "{run}/{checkpoint}/{readout}/{text_set}"),
    benchmark:
        paths.benchmark("embed", "{run}/{checkpoint}/{readout}/{text_set}")
    wildcard_constraints:
        text_set=names(set(project.corpora) - set(LARGE_SETS)),
    group:
        grouped("embeds", by=["run", "checkpoint", "readout", "text_set"])
    # a GPU is fed by eight threads that tokenise; a CPU's threads are processes
    threads: 8 if GPUS else 1
    resources:
        **needs("embed"),
        gpu=GPUS,
        kernels=project.kernels,
    params:
        **versioned("embed", embedding_recipe),
        members=lambda w: {
            name: str(folder)
            for name, folder in graph.run_members(project, w.run, w.checkpoint).items()
        },
        threads=1,
        work=str(paths.checkpoints("embed/{run}/{checkpoint}/{readout}")),
        root=lambda w: str(paths.results),
    message:
        "Encoding {wildcards.text_set} with {wildcards.run} ({wildcards.checkpoint}, {wildcards.readout})"
    script:
        "../scripts/run_stage.py"


# Vectors of large sets are removed after their last score, unless `keep: {embeddings: true}`.
use rule embed as embed_large with:
    output:
        matrix=temp(
            paths.embeddings("{run}", "{checkpoint}", "{readout}", "{text_set}")
        ),
        lineage=sidecar_of(
            paths.embeddings("{run}", "{checkpoint}", "{readout}", "{text_set}")
        ),
    wildcard_constraints:
        text_set=names(LARGE_SETS),
    group:
        grouped("large_embeds", by=["run", "checkpoint", "readout", "text_set"])
