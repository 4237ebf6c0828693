# corpora -> views: augmented copies.


rule build_view:
    input:
        corpora=lambda w: list(graph.view_inputs(project, w.view).values()),
    output:
        rows=paths.view("{view}", "{langs}"),
    log:
        paths.log("build_view", "{view}/{langs}"),
    benchmark:
        paths.benchmark("build_view", "{view}/{langs}")
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        **needs("build_view"),
    params:
        recipe=lambda w: {"view": w.view, "entry": project.views[w.view]},
        corpora=lambda w: list(graph.view_inputs(project, w.view)),
        root=lambda w: str(paths.results),
        translations=str(paths.translations),
        offline=lambda w: (
            "scheduled"
            if "transformers" in project.views[w.view].get("translator", {})
            else True
        ),
        code=lambda w: code("build_view", *view_modules(project.views[w.view])),
    message:
        "Making the view {wildcards.view}"
    script:
        "../scripts/build_view.py"
