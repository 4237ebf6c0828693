"""What a run would do and cost, and what the runs before it did cost."""
