# corpora and views -> examples: training sets, with evaluation texts kept out.


rule build_examples:
    input:
        unpack(read(examples_inputs)),
    output:
        **with_lineage(rows=paths.examples("{examples}")),
    log:
        paths.log("build_examples", "{examples}"),
    benchmark:
        paths.benchmark("build_examples", "{examples}")
    priority: priority_of("build_examples")
    group:
        grouped("examples", by=["examples"])
    threads: 1
    resources:
        **needs("build_examples"),
    params:
        **versioned("build_examples", examples_recipe),
        root=lambda w: str(paths.results),
    message:
        "Building the training set {wildcards.examples}"
    script:
        "../scripts/run_stage.py"


rule measure_overlap:
    input:
        unpack(read(lambda w: named_inputs(**measured()))),
    output:
        csv=paths.overlap("csv"),
        md=report(
            paths.overlap("md"), caption="../report/overlap.rst", category="Report"
        ),
        lineage=[sidecar_of(paths.overlap(form)) for form in ("csv", "md")],
    log:
        paths.log("measure_overlap", "overlap"),
    benchmark:
        paths.benchmark("measure_overlap", "overlap")
    threads: 1
    resources:
        **needs("measure_overlap"),
    params:
        **versioned(
            "measure_overlap",
            lambda w: {
                **{name: list(found) for name, found in measured().items()},
                "expect_none": expected_none(project),
            },
        ),
        root=lambda w: str(paths.results),
    message:
        "Counting evaluation text in the corpora"
    script:
        "../scripts/run_stage.py"
