"""One module a stage: what a job of the workflow does."""
