"""One module a stage: what a job of the workflow does, with its log, threads, lineage and errors."""
