"""What is read from the text of signatures is what Python makes of them, and what pydantic says of their types."""

import inspect
import typing

import pytest
from extension_points import POINTS
from pydantic import TypeAdapter

from crosslign import options
from crosslign.config.schema import schemas_by_name, validator
from crosslign.config.signatures import IMPLEMENTATIONS, arguments_of
from crosslign.errors import InputError
from crosslign.mining.margin import MARGINS, RETRIEVALS
from crosslign.registry import use_modules

EACH = [(point, name) for point in POINTS for name in IMPLEMENTATIONS[point]]
OWN = {"default", "part", "title"}
GIVEN = {"threads"}
"""What a stage gives, and no configuration."""


def parameters_of(point, name):
    """Return the parameters that are options, and their types."""
    entry = POINTS[point].get(name)
    function = entry.__init__ if isinstance(entry, type) else entry
    if function is object.__init__ or "Module" in function.__qualname__:
        return {}, {}
    kinds = {inspect.Parameter.KEYWORD_ONLY}
    if point in ("parts", "objectives"):
        kinds |= {inspect.Parameter.POSITIONAL_OR_KEYWORD}
    found = {p.name: p for p in inspect.signature(function).parameters.values() if p.kind in kinds and p.name not in GIVEN | {"self"}}
    return found, typing.get_type_hints(function, include_extras=True)


@pytest.mark.parametrize(("point", "name"), EACH)
def test_options_and_defaults_are_those_of_the_code(point, name):
    declared, (found, _) = IMPLEMENTATIONS[point][name], parameters_of(point, name)
    assert list(declared.options) == list(found)
    assert set(declared.schema["required"]) == {one.name for one in found.values() if one.default is inspect.Parameter.empty}
    for key, one in found.items():
        default = list(one.default) if isinstance(one.default, tuple) else one.default
        assert declared.options[key].get("default") == (None if default in (inspect.Parameter.empty, [], "") else default)
    if point == "objectives":
        assert declared.facts["shape"] == POINTS[point].get(name).shape


def plain(schema):
    """Return a schema in one way of writing, without what only we or only pydantic say."""
    if isinstance(schema, list):
        return [plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "prefixItems" in schema:  # items of one type each, written once by us
        schema = {key: value for key, value in schema.items() if key != "prefixItems"} | {"items": schema["prefixItems"][0]}
    if "$ref" in schema:  # pydantic would look for the definition
        schema = {"ref": schema["$ref"]}
    if "const" in schema:
        schema = {"enum": [schema["const"]]}
    schema = {key: plain(value) for key, value in schema.items() if key not in OWN}
    if "enum" in schema:
        schema.pop("type", None)
    return {key: value for key, value in schema.items() if key not in ("propertyNames", "additionalProperties") or value not in (True, {})}


@pytest.mark.parametrize(("point", "name"), EACH)
def test_types_are_what_pydantic_reads(point, name, monkeypatch):
    monkeypatch.setattr(options.Schema, "__get_pydantic_json_schema__", with_keywords, raising=False)
    declared, (found, types) = IMPLEMENTATIONS[point][name], parameters_of(point, name)
    for key, one in found.items():
        theirs = TypeAdapter(types[key]).json_schema()
        if one.default is None:  # left out, not null
            forms = [form for form in theirs.pop("anyOf") if form != {"type": "null"}]
            theirs |= forms[0] if len(forms) == 1 else {"anyOf": forms}
        assert plain(declared.options[key]) == plain(theirs), key


def with_keywords(self, core, handler):
    """Give pydantic what a `Schema` says."""
    if "ref" in self.keywords:
        return {"ref": f"common.yaml#/$defs/{self.keywords['ref']}"}
    return handler(core) | self.keywords


def test_every_reference_is_there():
    known = schemas_by_name()["common"]["$defs"]
    for point, name in EACH:
        text = str(IMPLEMENTATIONS[point][name].schema)
        assert all(ref.split("'")[0] in known for ref in text.split("common.yaml#/$defs/")[1:])
        validator(IMPLEMENTATIONS[point][name].schema).check_schema(IMPLEMENTATIONS[point][name].schema)


@pytest.mark.parametrize(
    ("signature", "said"),
    [
        ("margin=0.2", r"odd\.py:3: .*margin"),
        ("margin: set[str]", r"odd\.py:3: .*set\[str\]"),
        ("margin: float = 2 ** 3", r"odd\.py:3: .*2 \*\* 3"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(tmp_path, signature, said):
    path = tmp_path / "odd.py"
    path.write_text(f"@OBJECTIVES.register(version=1)\nclass Odd:\n    def __init__(self, {signature}): pass\n", encoding="utf-8")
    use_modules({"crosslign.objectives.terms.odd": path})
    try:
        with pytest.raises(InputError, match=said):
            IMPLEMENTATIONS["objectives"]["odd"]
    finally:
        use_modules({})


def test_of_a_function_that_programs_call_all_arguments_are_known_that_a_file_could_hold():
    found = arguments_of("crosslign.in_python", "mine")
    assert found == {"k": {"type": "integer", "minimum": 1}, "threshold": {"type": "number"}} | {
        name: {"enum": list(choices)} for name, choices in (("margin", MARGINS), ("retrieval", RETRIEVALS))
    }
    assert arguments_of("crosslign.reporting.frames", "table") == {name: {"type": "string"} for name in ("name", "directory", "configfile")}
    assert not arguments_of("crosslign.in_python", "Encoder.encode")  # texts, and a language or one for each
