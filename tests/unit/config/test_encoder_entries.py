"""Where a base encoder may come from: exactly one place, or a source's files in a format."""

import pytest
from ruamel.yaml import YAML

from crosslign.config.schema import check
from crosslign.config.yaml_files import load_yaml
from crosslign.errors import InputError


def check_entry(folder, entry):
    path = folder / "encoders.yaml"
    encoder = {"readout": "max", "licence": "MIT", **entry}
    YAML(typ="safe").dump({"sources": {}, "encoders": {"mine": encoder}, "readouts": {}}, path)
    check(load_yaml(path), "encoders")


@pytest.mark.parametrize(
    "entry", [{"source": "a", "format": "laser"}, {"source": "a", "member": "b", "format": "e5s1"}, {"hub": "a/b"}, {"path": "a"}]
)
def test_an_encoder_comes_from_one_place(tmp_path, entry):
    check_entry(tmp_path, entry)


@pytest.mark.parametrize("entry", [{}, {"source": "a"}, {"format": "laser"}, {"hub": "a/b", "path": "a"}])
def test_an_encoder_from_nowhere_or_two_places_is_refused(tmp_path, entry):
    with pytest.raises(InputError, match=r"encoders\.mine: .*member, hub, path, construct, source .*format") as caught:
        check_entry(tmp_path, entry)
    assert "\n" not in str(caught.value)


def test_a_format_that_nobody_reads_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"mine\.format: 'other'"):
        check_entry(tmp_path, {"source": "a", "format": "other"})
