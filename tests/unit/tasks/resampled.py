"""Resamples as positions, as a slow reference takes them."""

import numpy as np


def draws_of(bootstrap, n):
    """Return the positions of each resample: [r, n], in rising order; no statistic of a resample hangs on their order."""
    times = np.concatenate(list(bootstrap.counts(n))).astype(int)
    return np.stack([np.repeat(np.arange(n), row) for row in times])
