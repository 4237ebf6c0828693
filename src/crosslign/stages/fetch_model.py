"""A translation model of the hub, before the views that need it."""

from __future__ import annotations

from crosslign.jobs.job import Job
from crosslign.stages import STAGES
from crosslign.views.hub_models import HubModel
from crosslign.views.hub_models import fetch_model as fetch


@STAGES.register(version=1)
def fetch_model(job: Job) -> None:
    """Copy one model out of the hub's cache, downloaded first where the network may be used."""
    recipe = job.params["recipe"]
    with job.publish("translation_model") as (out, counts):
        counts.update(fetch(HubModel(recipe["name"], recipe["revision"]), out["folder"]))
        job.lineage.licences = [counts["licence"]]
