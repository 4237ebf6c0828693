# A user's own files -> sentences -> vectors -> nearest neighbours -> scored pairs (docs/mine-your-own.md).


rule mine_texts:
    input:
        file=own_side,
    output:
        **with_lineage(rows=paths.mined_texts("{mine}", "{side}")),
    log:
        paths.log("mine_texts", "{mine}/{side}"),
    benchmark:
        paths.benchmark("mine_texts", "{mine}/{side}")
    threads: 1
    resources:
        **needs("mine_texts"),
    params:
        **versioned("mine_texts", mining_texts),
        root=lambda w: str(paths.results),
    message:
        "Reading the {wildcards.side} sentences of {wildcards.mine}"
    script:
        "../scripts/run_stage.py"


rule mine_embed:
    input:
        unpack(
            read(
                encoder=lambda w: mined_folder(project, mine_recipe(project, w.mine)),
                texts=lambda w: texts_path(project, w.mine, w.side),
            )
        ),
    output:
        **with_lineage(matrix=paths.mined_embeddings("{mine}", "{side}")),
    log:
        paths.log("mine_embed", "{mine}/{side}"),
    benchmark:
        paths.benchmark("mine_embed", "{mine}/{side}")
    threads: lambda w: mine_recipe(project, w.mine)["threads"]
    resources:
        **needs("mine_embed"),
        gpu=GPUS,
        kernels=project.kernels,
    params:
        **versioned("mine_embed", mining_embedding),
        members=mining_members,
        work=str(paths.checkpoints("mine/{mine}")),
        threads=lambda w: mine_recipe(project, w.mine)["threads"],
        root=lambda w: str(paths.results),
    message:
        "Encoding the {wildcards.side} sentences of {wildcards.mine}"
    script:
        "../scripts/run_stage.py"


# A job a range of the sources: one that is killed goes on by itself, and the others keep what they have.
rule mine_search:
    input:
        unpack(read(mining_searched)),
    output:
        folder=temp(directory(paths.searched("{mine}", "{part}"))),
    log:
        paths.log("mine_search", "{mine}/{part}"),
    benchmark:
        paths.benchmark("mine_search", "{mine}/{part}")
    threads: 16
    resources:
        **needs("mine_search"),
        gpu=GPUS,
    params:
        **versioned("mine_search", mining_range),
        work=str(paths.checkpoints("mine/{mine}/{part}")),
        root=lambda w: str(paths.results),
    message:
        "Searching for nearest neighbours of {wildcards.mine}, part {wildcards.part}"
    script:
        "../scripts/run_stage.py"


rule mine_join:
    input:
        unpack(read(mining_searched, derived=mining_parts)),
    output:
        **with_lineage(neighbours=paths.mined_neighbours("{mine}")),
    log:
        paths.log("mine_join", "{mine}"),
    benchmark:
        paths.benchmark("mine_join", "{mine}")
    threads: 1
    resources:
        **needs("mine_join"),
    params:
        **versioned("mine_join", mining_search),
        root=lambda w: str(paths.results),
    message:
        "Joining the nearest neighbours of {wildcards.mine}"
    script:
        "../scripts/run_stage.py"


# Known pairs, hidden among the sides and found again: precision and recall by score.
rule mine_calibrate:
    input:
        unpack(
            read(
                mining_hidden,
                neighbours=paths.mined_neighbours("{mine}"),
            )
        ),
    output:
        **with_lineage(calibration=paths.mined_calibration("{mine}")),
    log:
        paths.log("mine_calibrate", "{mine}"),
    benchmark:
        paths.benchmark("mine_calibrate", "{mine}")
    threads: 16
    resources:
        **needs("mine_calibrate"),
    params:
        **versioned("mine_calibrate", mining_calibration),
        root=lambda w: str(paths.results),
    message:
        "Hiding known pairs in the sides of {wildcards.mine}"
    script:
        "../scripts/run_stage.py"


rule mine_pairs:
    input:
        unpack(
            read(
                mining_planted,
                mining_chosen,
                neighbours=paths.mined_neighbours("{mine}"),
            )
        ),
    output:
        **with_lineage(
            tsv=paths.mined("{mine}", "tsv"), parquet=paths.mined("{mine}", "parquet")
        ),
    log:
        paths.log("mine_pairs", "{mine}"),
    benchmark:
        paths.benchmark("mine_pairs", "{mine}")
    threads: 1
    resources:
        **needs("mine_pairs"),
    params:
        **versioned("mine_pairs", mining_pairs),
        root=lambda w: str(paths.results),
    message:
        "Writing the pairs of {wildcards.mine}"
    script:
        "../scripts/run_stage.py"
