# sources -> corpora: fetch, prepare encoders, read and filter text, make evaluation corpora.


rule fetch:
    input:
        own_file_of,  # an input without a name does not enter lineage: a download is a source, made of no other artefact
    output:
        **with_lineage(file=paths.download("{source}", "{file}")),
    log:
        paths.log("fetch", "{source}/{file}"),
    benchmark:
        paths.benchmark("fetch", "{source}/{file}")
    wildcard_constraints:
        source=names(set(project.sources) - set(stand_in_sources())),
    priority: fetch_priority
    localrule: True
    threads: 1
    resources:
        **needs("fetch"),
        # No setting: a file is the same wherever it came from, so another mirror reruns no download.
        mirrors=os.pathsep.join(map(str, project.mirrors)),
        hints=fetch_hints,
    params:
        **versioned("fetch", source_recipe),
        root=lambda w: str(paths.shared),
        offline=False,
    message:
        "Fetching {wildcards.file} of {wildcards.source}"
    script:
        "../scripts/run_stage.py"


# One job writes all files of a source: hundreds of small files would cost hundreds of starts of Python.
for source in stand_in_sources():

    rule:
        name:
            f"{STAND_IN_RULE}_{source}"
        input:
            unpack(
                read(
                    sentences=lambda w: list(
                        graph.source_paths(project, "written").values()
                    )
                )
            ),
        output:
            **with_lineage(**graph.source_paths(project, source)),
        log:
            paths.log(STAND_IN_RULE, source),
        benchmark:
            paths.benchmark(STAND_IN_RULE, source)
        localrule: True
        threads: 1
        resources:
            **needs(STAND_IN_RULE),
        params:
            **versioned(STAND_IN_RULE, graph.stand_in_recipe(project, source)),
            root=str(paths.results),
        message:
            f"Writing synthetic data for {source}"
        script:
            "../scripts/run_stage.py"


rule prepare_encoder:
    input:
        own_encoder_of,
        unpack(read(encoder_inputs)),
    output:
        folder=directory(paths.encoder("{encoder}")),
    log:
        paths.log("prepare_encoder", "{encoder}"),
    benchmark:
        paths.benchmark("prepare_encoder", "{encoder}")
    localrule: True
    threads: 1
    resources:
        **needs("prepare_encoder"),
    params:
        **versioned("prepare_encoder", encoder_recipe),
        root=lambda w: str(paths.results),
        offline=lambda w: "hub" not in project.encoders[w.encoder],
        own=lambda w: list(map(str, own_encoder(project, w.encoder))),
    message:
        "Preparing the base encoder {wildcards.encoder}"
    script:
        "../scripts/run_stage.py"


# A job a share of a large source: one that is killed starts again alone, and goes on behind the shards that it has done.
rule filter_shards:
    input:
        own_of_corpus,
        unpack(read(corpus_inputs)),
    output:
        folder=temp(directory(paths.filtered("{corpus}", "{part}"))),
    log:
        paths.log("filter_shards", "{corpus}/{part}"),
    benchmark:
        paths.benchmark("filter_shards", "{corpus}/{part}")
    priority: 2
    threads: lambda w: corpus_threads(project, w.corpus)
    resources:
        **needs("filter_shards"),
    params:
        **versioned("filter_shards", share_recipe),
        root=lambda w: str(paths.results),
        own=lambda w: list(map(str, own_of_corpus(w))),
    message:
        "Filtering part {wildcards.part} of the corpus {wildcards.corpus}"
    script:
        "../scripts/run_stage.py"


rule build_corpus:
    input:
        own_of_corpus,
        unpack(read(corpus_inputs, corpus_shares)),
    output:
        **with_lineage(rows=paths.corpus("{corpus}", "{langs}")),
    log:
        paths.log("build_corpus", "{corpus}/{langs}"),
    benchmark:
        paths.benchmark("build_corpus", "{corpus}/{langs}")
    # A corpus has one file, which is called by its languages: under the name of one of them it would hold all.
    wildcard_constraints:
        corpus="|".join(
            rf"{re.escape(corpus)}(?=/{graph.corpus_langs(entry)}\.)"
            for corpus, entry in project.corpora.items()
            if entry["kind"] != "evaluation"
        )
        or "none",
    priority: 2  # before what is still to be fetched
    group:
        grouped("corpora", by=["corpus"])
    threads: lambda w: corpus_threads(project, w.corpus)
    resources:
        **needs("build_corpus"),
    params:
        **versioned("build_corpus", corpus_recipe),
        root=lambda w: str(paths.results),
        own=lambda w: list(map(str, own_of_corpus(w))),
    message:
        "Reading and filtering the corpus {wildcards.corpus}"
    script:
        "../scripts/run_stage.py"


rule build_evaluation:
    input:
        own_of_corpus,
        unpack(read(corpus_inputs)),
    output:
        **with_lineage(
            **{
                f"{part}_rows": paths.evaluation("{corpus}", part)
                for part in EVALUATION_FILES
            }
        ),
    log:
        paths.log("build_evaluation", "{corpus}"),
    benchmark:
        paths.benchmark("build_evaluation", "{corpus}")
    wildcard_constraints:
        corpus=names(
            c for c, entry in project.corpora.items() if entry["kind"] == "evaluation"
        ),
    priority: 2  # before what is still to be fetched
    group:
        grouped("evaluations", by=["corpus"])
    threads: 1
    resources:
        **needs("build_evaluation"),
    params:
        **versioned("build_evaluation", corpus_recipe),
        root=lambda w: str(paths.results),
        own=lambda w: list(map(str, own_of_corpus(w))),
    message:
        "Building the evaluation corpus {wildcards.corpus}"
    script:
        "../scripts/run_stage.py"
