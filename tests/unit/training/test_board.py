"""Event files for TensorBoard, read back record by record: the length, its checksum, the message, its checksum."""

from __future__ import annotations

import struct

import pytest
import trial
from tensorboardX.proto.event_pb2 import Event

from crosslign.training.board import Board


def _events(path):
    data, found = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        found.append(Event.FromString(data[12 : 12 + length]))
        data = data[16 + length :]
    return found


def test_the_curve_is_written_when_asked_for(train, tmp_path):
    _, folder = train(trial.recipe(train={"steps": 130, "tensorboard": True}))
    (events,) = (tmp_path / "run-work-tensorboard").iterdir()
    first, *others = _events(events)
    assert first.file_version == "brain.Event:2"
    assert [event.step for event in others] == list(range(1, 131))
    scalars = {value.tag: value.simple_value for value in others[-1].summary.value}
    assert scalars["terms/trial_paired/loss"] == scalars["loss"] > 0
    assert scalars["epoch"] == pytest.approx(130 / 3, abs=1e-5)
    assert folder.exists()


def test_what_was_written_is_there_when_the_process_is_killed_and_a_run_that_goes_on_adds_a_file(tmp_path):
    Board(tmp_path, 0).write({"step": 1, "loss": 0.5, "terms": {"a": {"loss": 0.25}}})  # never closed
    Board(tmp_path, 1).write({"step": 2, "loss": None})
    first, second = sorted(tmp_path.iterdir(), key=lambda path: path.name.rpartition(".")[2])
    assert {value.tag: value.simple_value for value in _events(first)[1].summary.value} == {"loss": 0.5, "terms/a/loss": 0.25}
    assert [(event.step, len(event.summary.value)) for event in _events(second)[1:]] == [(2, 0)]
