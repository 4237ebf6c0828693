"""One module a stage: what a job of the workflow does; beside them its log, threads, devices, lineage and errors."""

from crosslign.collector import collect_rarely

collect_rarely()  # a script imports its stage first of all, and with it torch
