"""Slurm: whether it takes the jobs of a run, what became of them, and what is laid over its public executor."""
