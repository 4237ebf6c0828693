# corpora -> views: augmented copies.


rule build_view:
    message:
        "Making the view {wildcards.view}"
    input:
        corpora=lambda w: list(graph.view_inputs(project, w.view).values()),
    output:
        rows=paths.view("{view}", "{langs}"),
    params:
        recipe=lambda w: {"view": w.view, "entry": project.views[w.view]},
        corpora=lambda w: list(graph.view_inputs(project, w.view)),
        root=str(paths.results),
        code=lambda w: code("build_view", f"crosslign.views.builders.{project.views[w.view]['builder']}"),
    log:
        paths.log("build_view", "{view}/{langs}"),
    benchmark:
        paths.benchmark("build_view", "{view}/{langs}")
    threads: 1
    resources:
        mem_mb=lambda w, attempt: 4000 * attempt,
        runtime=240,
    script:
        "../scripts/build_view.py"
