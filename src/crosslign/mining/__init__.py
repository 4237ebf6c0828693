"""Mining: exact nearest neighbours in both directions, margins, thresholds."""
