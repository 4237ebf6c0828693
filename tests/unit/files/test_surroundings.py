"""Lineage names the machine of a job in words that a person knows it by."""

import os
import platform

import pytest

from crosslign.files.surroundings import machine

LISTED = (
    "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 7B13\nflags\t\t: fpu avx2\n\nprocessor\t: 1\nmodel name\t: Another\n"
)


@pytest.mark.parametrize(("listed", "model"), [(LISTED, "AMD EPYC 7B13"), ("CPU implementer\t: 0x41\n", platform.machine())])
def test_a_machine_is_its_processor_and_the_number_of_its_cores(tmp_path, listed, model):
    (tmp_path / "cpuinfo").write_text(listed, encoding="utf-8")
    assert machine(tmp_path / "cpuinfo") == f"{model}, {os.cpu_count()} cores"


def test_a_machine_without_such_a_list_has_its_architecture(tmp_path):
    assert machine(tmp_path / "none") == f"{platform.machine()}, {os.cpu_count()} cores"
