# The workflow stands in workflow/Snakefile; this file lets `snakemake --cores all` in the root of a checkout find it.
include: "workflow/Snakefile"


# Targets of an included file are no defaults: without this line the call would do nothing and exit with 0.
workflow.default_target = "all"
