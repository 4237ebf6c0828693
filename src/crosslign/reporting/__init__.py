"""Reporting: tables, figures, pages, plans and comparisons, from scores and lineage."""
