"""Small trainings, of the project's own objectives and parts and of those in trial.py."""

from __future__ import annotations

from contextlib import contextmanager
from copy import deepcopy

import pytest
from tokenise import tokenised


@pytest.fixture
def trial_kinds(monkeypatch):
    """The kinds of trial.py stand beside the project's own."""
    import trial

    from crosslign.objectives import OBJECTIVES, PARTS

    for registry, kinds in ((OBJECTIVES, trial.KINDS), (PARTS, trial.PART_KINDS)):
        for name, kind in kinds.items():
            monkeypatch.setitem(registry._entries, name, kind)


@pytest.fixture
def one_thread():
    """Sums in float32 depend on the number of threads; a training's is one."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def train(trial_kinds, tiny_loaded, pairs_file, groups_file, tmp_path):
    """Train a fresh tiny model; return (summary, folder of the run)."""
    import trial

    from crosslign.training.fit import fit
    from crosslign.training.terms import build_parts

    def run(recipe, name="run", dev=None, model=None, parts=None):
        model = model or deepcopy(tiny_loaded)
        parts = build_parts(recipe, model) if parts is None else parts
        examples = {"pairs": pairs_file, "groups": groups_file}
        used = {term["examples"]: examples[term["examples"]] for term in recipe["terms"]}
        sets = tokenised(recipe, used, model, tmp_path / f"{name}-sets")
        summary = fit(recipe, sets, model, parts, dev and trial.Evaluations(dev), tmp_path / name, tmp_path / f"{name}-work")
        return summary, tmp_path / name

    return run


@pytest.fixture
def stopped_before(monkeypatch):
    """Gives a context in which a training is stopped, as by Ctrl-C, before a step: `with stopped_before(5): train(recipe)`."""
    from crosslign.training.step import Stepper

    @contextmanager
    def stopped(last):
        real = Stepper.run

        def run(self, step, *rest):
            if step == last:
                raise KeyboardInterrupt
            return real(self, step, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(Stepper, "run", run)
            with pytest.raises(KeyboardInterrupt):
                yield

    return stopped
