"""What recipes take of the catalog: what jobs read, and no words for people."""

from pathlib import Path

from ruamel.yaml import YAML

from crosslign.config.graph import NO_SETTINGS, settings_of

SCHEMAS = Path(__file__).resolve().parents[3] / "workflow" / "schemas"


def test_words_and_rough_sizes_are_no_settings():
    entry = {"local": "folder", "licence": "CC0-1.0", "citation": "Somebody", "how": "Ask them.", "about_bytes": 7, "sha256": "0"}
    assert settings_of(entry) == {"local": "folder", "licence": "CC0-1.0", "sha256": "0"}


def test_each_key_that_is_left_out_is_one_of_the_catalog():
    found = [YAML(typ="safe").load((SCHEMAS / f"{name}.yaml").read_text(encoding="utf-8")) for name in ("common", "corpora", "encoders")]
    keys = {*found[0]["$defs"]["file"]["properties"], *found[0]["$defs"]["source"]["properties"]}
    keys |= {*found[1]["$defs"]["corpus"]["properties"]}
    keys |= {*found[2]["properties"]["encoders"]["additionalProperties"]["properties"]}
    assert keys > NO_SETTINGS
