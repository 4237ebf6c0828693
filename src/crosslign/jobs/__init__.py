"""Jobs: what a rule hands to its stage, and the frame that the stage runs in: log, threads, devices, lineage, errors."""
