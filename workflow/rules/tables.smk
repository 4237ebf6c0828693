# scores -> tables, figures, report.


rule count_rows:
    input:
        unpack(read(counted_inputs)),
    output:
        **with_lineage(counts=paths.counts("{table}")),
    log:
        paths.log("count_rows", "{table}"),
    benchmark:
        paths.benchmark("count_rows", "{table}")
    threads: 1
    resources:
        **needs("count_rows"),
    params:
        **versioned("count_rows", counting),
        root=lambda w: str(paths.results),
    message:
        "Counting the data behind the table {wildcards.table}"
    script:
        "../scripts/run_stage.py"


rule make_table:
    input:
        unpack(
            read(
                scores=lambda w: cells.table_scores(project, w.table),
                published=lambda w: published([w.table]),
            )
        ),
    output:
        md=report(
            paths.table("{table}", "md"),
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "{table}", "format": "Markdown"},
        ),
        csv=report(
            paths.table("{table}", "csv"),
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "{table}", "format": "CSV"},
        ),
        tex=paths.table("{table}", "tex"),
        html=report(
            paths.table("{table}", "html"),
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "{table}", "format": "HTML"},
        ),
        lineage=[sidecar_of(paths.table("{table}", form)) for form in TABLE_FORMATS],
    log:
        paths.log("make_table", "{table}"),
    benchmark:
        paths.benchmark("make_table", "{table}")
    localrule: True
    threads: 1
    resources:
        **needs("make_table"),
    params:
        **versioned("make_table", lambda w: cells.resolve_table(project, w.table)),
        published=str(PRINTED),
        root=lambda w: str(paths.results),
    message:
        "Building the table {wildcards.table}"
    script:
        "../scripts/run_stage.py"


rule draw_figure:
    input:
        unpack(read(files=lambda w: figure_inputs(w)["declared"])),
    output:
        png=report(
            paths.figure("{figure}", "png"),
            caption="../report/figure.rst",
            category="Figures",
            labels={"figure": "{figure}"},
        ),
        svg=paths.figure("{figure}", "svg"),
        csv=paths.figure("{figure}", "csv"),
        lineage=[sidecar_of(paths.figure("{figure}", form)) for form in FIGURE_FORMATS],
    log:
        paths.log("draw_figure", "{figure}"),
    benchmark:
        paths.benchmark("draw_figure", "{figure}")
    threads: 1
    resources:
        **needs("draw_figure"),
    params:
        **versioned("draw_figure", lambda w: project.figures[w.figure]),
        inputs=lambda w: figure_inputs(w)["inputs"],
        root=lambda w: str(paths.results),
    message:
        "Drawing the figure {wildcards.figure}"
    script:
        "../scripts/run_stage.py"


rule write_overview:
    input:
        unpack(
            read(
                scores=lambda w: covered_scores(),
                published=lambda w: published(COVERED_TABLES),
                figures=[paths.figure(figure, "png") for figure in COVERED_FIGURES],
            )
        ),
    output:
        **with_lineage(**{form: paths.overview(form) for form in OVERVIEW_FORMATS}),
    log:
        paths.log("write_overview", "overview"),
    benchmark:
        paths.benchmark("write_overview", "overview")
    localrule: True
    threads: 1
    resources:
        **needs("write_overview"),
    params:
        **versioned("write_overview", lambda w: cells.overview(project)),
        published=str(PRINTED),
        root=lambda w: str(paths.results),
    message:
        "Writing the overview of tables and figures"
    script:
        "../scripts/run_stage.py"


rule write_claims:
    input:
        unpack(
            read(
                scores=lambda w: claim_scores(project),
                published=lambda w: published(claims_recipe(project)["tables"]),
            )
        ),
    output:
        **with_lineage(**{form: paths.claims(form) for form in CLAIMS_FORMATS}),
    log:
        paths.log("write_claims", "claims"),
    benchmark:
        paths.benchmark("write_claims", "claims")
    localrule: True
    threads: 1
    resources:
        **needs("write_claims"),
    params:
        **versioned("write_claims", lambda w: claims_recipe(project)),
        published=str(PRINTED),
        root=lambda w: str(paths.results),
    message:
        "Writing the papers' claims and their verdicts"
    script:
        "../scripts/run_stage.py"


rule write_report:
    input:
        unpack(
            read(
                scores=lambda w: covered_scores(),
                published=lambda w: published(COVERED_TABLES),
                figures=[
                    paths.figure(figure, form)
                    for figure in COVERED_FIGURES
                    for form in ("png", "csv")
                ],
                overlap=paths.overlap("csv"),
                lineages=lambda w: behind_report(),
            )
        ),
    output:
        page=report(paths.report, caption="../report/report.rst", category="Report"),
        lineage=sidecar_of(paths.report),
    log:
        paths.log("write_report", "report"),
    benchmark:
        paths.benchmark("write_report", "report")
    localrule: True
    threads: 1
    resources:
        **needs("write_report"),
    params:
        **versioned("write_report", lambda w: cells.overview(project)),
        published=str(PRINTED),
        root=lambda w: str(paths.results),
    message:
        "Writing the report"
    script:
        "../scripts/run_stage.py"
