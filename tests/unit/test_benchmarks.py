"""`make bench` runs every benchmark without options: none may need one."""

import ast
from pathlib import Path

import pytest

FILES = sorted((Path(__file__).resolve().parents[2] / "benchmarks").glob("[a-z]*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_option_is_required(path):
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    options = [call for call in calls if getattr(call.func, "attr", "") == "add_argument"]
    assert options
    for option in options:
        name = ast.literal_eval(option.args[0])
        given = {keyword.arg for keyword in option.keywords}
        assert name.startswith("-"), f"{name} must be given"
        assert "required" not in given, f"{name} must be given"
