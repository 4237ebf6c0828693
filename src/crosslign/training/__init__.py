"""The one trainer: every objective, exact resume, checkpoint selection."""
