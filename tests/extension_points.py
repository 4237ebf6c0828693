"""The registries of extension points that take options, by their names in the configuration."""

from __future__ import annotations

from crosslign.corpora import EVALUATIONS, READERS
from crosslign.corpora.filters import FILTERS
from crosslign.examples import BUILDERS
from crosslign.objectives import OBJECTIVES, PARTS
from crosslign.tasks import SCORERS
from crosslign.views import TRANSLATORS, VIEWS

POINTS = {
    "readers": READERS,
    "evaluations": EVALUATIONS,
    "filters": FILTERS,
    "views": VIEWS,
    "translators": TRANSLATORS,
    "example_builders": BUILDERS,
    "parts": PARTS,
    "objectives": OBJECTIVES,
    "scorers": SCORERS,
}
