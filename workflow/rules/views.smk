# corpora -> views: augmented copies. The models of a translator come from the hub by a rule of their own, before any view.


rule fetch_model:
    output:
        folder=directory(paths.hub_model("{model}")),
    log:
        paths.log("fetch_model", "{model}"),
    benchmark:
        paths.benchmark("fetch_model", "{model}")
    wildcard_constraints:
        model=r"[^/]+@[^/]+",
    localrule: True
    threads: 1
    resources:
        **needs("fetch_model"),
    params:
        **versioned("fetch_model", model_recipe),
        root=lambda w: str(paths.shared),
        offline=False,
    message:
        "Fetching the translation model {wildcards.model}"
    script:
        "../scripts/run_stage.py"


rule build_view:
    input:
        own_of_view,
        unpack(read(view_inputs)),
    output:
        **with_lineage(rows=paths.view("{view}")),
    log:
        paths.log("build_view", "{view}"),
    benchmark:
        paths.benchmark("build_view", "{view}")
    priority: priority_of("build_view")
    threads: 1
    resources:
        **needs("build_view"),
        gpu=view_gpus,
    params:
        **versioned(
            "build_view", lambda w: {"view": w.view, "entry": project.views[w.view]}
        ),
        root=lambda w: str(paths.results),
        translations=str(paths.translations),
        own=lambda w: list(map(str, own_of_view(w))),
    message:
        "Building the view {wildcards.view}"
    script:
        "../scripts/run_stage.py"
