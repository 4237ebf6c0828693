"""Reporting: tables, figures, pages and model cards, from scores and lineage."""
