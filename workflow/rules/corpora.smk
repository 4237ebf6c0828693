# sources -> corpora: fetch, prepare encoders, read and filter text, make evaluation sets.


def stand_in_sources():
    return [s for s in project.sources if project.stand_in and "stand_in" in project.sources[s]]


def source_recipe(wildcards):
    entry = {key: value for key, value in project.sources[wildcards.source].items() if key != "files"}
    return {"source": wildcards.source, "entry": entry, "file": graph.source_file(project, wildcards.source, wildcards.file)}


def reference_inputs(wildcards):
    return graph.corpus_references(project, wildcards.corpus)


def corpus_recipe(limit):
    def recipe(wildcards):
        return {"corpus": wildcards.corpus, "entry": project.corpora[wildcards.corpus], "limit": LIMITS.get(limit)}

    return recipe


localrules:
    fetch,


rule fetch:
    message:
        "Fetching {wildcards.file} of {wildcards.source}"
    output:
        file=paths.download("{source}", "{file}"),
    params:
        recipe=source_recipe,
        mirrors=[str(mirror) for mirror in project.mirrors],
        root=str(paths.downloads),
        offline=False,
        code=lambda w: code("fetch", f"crosslign.corpora.sources.{source_kind(w.source)}"),
    wildcard_constraints:
        source=names(set(project.sources) - set(stand_in_sources())),
    log:
        paths.log("fetch", "{source}/{file}"),
    benchmark:
        paths.benchmark("fetch", "{source}/{file}")
    threads: 1
    resources:
        mem_mb=1000,
        runtime=120,
    script:
        "../scripts/fetch.py"


rule write_stand_in:
    message:
        "Writing {wildcards.file} of {wildcards.source} from the project's own sentences"
    input:
        sentences=lambda w: list(graph.source_paths(project, "written").values()),
    output:
        file=paths.download("{source}", "{file}"),
    params:
        recipe=source_recipe,
        root=str(paths.results),
        code=lambda w: code("fetch", f"crosslign.corpora.stand_ins.{project.sources[w.source]['stand_in']}"),
    wildcard_constraints:
        source=names(stand_in_sources()),
    log:
        paths.log("write_stand_in", "{source}/{file}"),
    benchmark:
        paths.benchmark("write_stand_in", "{source}/{file}")
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    script:
        "../scripts/write_stand_in.py"


rule prepare_encoder:
    message:
        "Preparing the base encoder {wildcards.encoder}"
    input:
        files=lambda w: list(graph.source_paths(project, project.encoders[w.encoder]["source"]).values()) if "source" in project.encoders[w.encoder] else [],
    output:
        folder=directory(paths.encoder("{encoder}")),
    params:
        recipe=lambda w: {"encoder": w.encoder, "entry": project.encoders[w.encoder]},
        root=str(paths.results),
        offline=lambda w: "hub" not in project.encoders[w.encoder],
        code=code("prepare_encoder"),
    log:
        paths.log("prepare_encoder", "{encoder}"),
    benchmark:
        paths.benchmark("prepare_encoder", "{encoder}")
    threads: 1
    resources:
        mem_mb=8000,
        runtime=60,
    script:
        "../scripts/prepare_encoder.py"


rule build_corpus:
    message:
        "Reading and filtering the corpus {wildcards.corpus}"
    input:
        files=lambda w: list(graph.corpus_files(project, w.corpus).values()),
        references=lambda w: list(reference_inputs(w).values()),
    output:
        rows=paths.corpus("{corpus}", "{langs}"),
    params:
        recipe=corpus_recipe("corpus_rows"),
        references=lambda w: list(reference_inputs(w)),
        root=str(paths.results),
        code=lambda w: code("build_corpus", *reader_modules(project.corpora[w.corpus])),
    wildcard_constraints:
        corpus=names(c for c, entry in project.corpora.items() if entry["kind"] != "evaluation"),
    log:
        paths.log("build_corpus", "{corpus}/{langs}"),
    benchmark:
        paths.benchmark("build_corpus", "{corpus}/{langs}")
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 4000 * attempt,
        runtime=240,
    script:
        "../scripts/build_corpus.py"


rule build_evaluation:
    message:
        "Making the evaluation set {wildcards.corpus}"
    input:
        files=lambda w: list(graph.corpus_files(project, w.corpus).values()),
        references=lambda w: list(reference_inputs(w).values()),
    output:
        **{f"{part}_rows": paths.evaluation("{corpus}", part) for part in EVALUATION_FILES},
    params:
        recipe=corpus_recipe("evaluation_items"),
        references=lambda w: list(reference_inputs(w)),
        root=str(paths.results),
        code=lambda w: code("build_corpus", *reader_modules(project.corpora[w.corpus])),
    wildcard_constraints:
        corpus=names(c for c, entry in project.corpora.items() if entry["kind"] == "evaluation"),
    log:
        paths.log("build_evaluation", "{corpus}"),
    benchmark:
        paths.benchmark("build_evaluation", "{corpus}")
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 4000 * attempt,
        runtime=60,
    script:
        "../scripts/build_evaluation.py"
