"""Jobs: what a rule hands to its stage; the frame that the stage runs in: log, threads, devices, lineage, errors; what became of them."""
