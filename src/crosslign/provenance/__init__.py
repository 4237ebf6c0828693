"""What results depend on, whether they are whole, what moved between two of them, and how a table travels: from lineage alone."""
