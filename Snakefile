# crosslign: from raw text to the tables of five papers (docs/architecture.md walks along the line of data).
from snakemake.utils import min_version

min_version("9.27")

from crosslign.collector import collect_rarely

collect_rarely()


include: "workflow/rules/common.smk"
include: "workflow/rules/inputs.smk"
include: "workflow/rules/corpora.smk"
include: "workflow/rules/views.smk"
include: "workflow/rules/examples.smk"
include: "workflow/rules/systems.smk"
include: "workflow/rules/embeddings.smk"
include: "workflow/rules/scores.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/mining.smk"


rule all:
    default_target: True
    input:
        lambda wildcards: targets(project.settings["targets"]),
    localrule: True


# Each name that `targets:` knows is a target of the command line too, unless a step has it: `snakemake --cores all mpcl_table1`.
for name in filter(lambda name: not workflow.is_rule(name), target_names(project)):

    rule:
        name:
            name
        input:
            targets([name]),
        localrule: True


# Of a misspelt name Snakemake would only say that no rule makes such a file; this names the nearest target, and ends.
rule unknown_target:
    input:
        lambda wildcards: targets([wildcards.target]),
    output:
        "{target}",
    wildcard_constraints:
        target=rf"(?!({names(path.name for path in Path().iterdir())})$)\w+",
    localrule: True


onstart:
    check_results()
    check_own_files(workflow.dag)
    check_scheduler(workflow.dag)
    drop_start_limit(workflow.scheduler)
    count_gpus(workflow.scheduler)
    print_gpu_note()
    print_missing()
    print_cost(workflow.dag)


onsuccess:
    print_summary(workflow.dag)


onerror:
    print_failures()
