"""Options of extension points: those of each reader, filter, builder, part, objective and scorer are checked by its signature."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, ParamSpec, TypeVar

from crosslign.config.project import translator_of
from crosslign.config.schema import check_value, schemas_by_name, validator
from crosslign.config.signatures import IMPLEMENTATIONS, Declared, arguments_of
from crosslign.config.yaml_files import YamlFile
from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.registry import nearest, options_of

P = ParamSpec("P")
T = TypeVar("T")
_FITTING: set[tuple[Declared, str]] = set()
"""Options that were found to be right: entries by the thousand share a few hundred."""
HALF = re.compile("[\ud800-\udfff]")
"""Half a character of UTF-16, which no tokenizer takes."""


@functools.cache
def _validator(declared: Declared) -> Any:
    return validator(declared.schema)


@functools.cache
def _settings_validator() -> Any:
    """Return what checks embedding settings of which some may be left out; each call that encodes asks for it."""
    entry = schemas_by_name()["encoders"]["properties"]["readouts"]["additionalProperties"]
    return validator({key: value for key, value in entry.items() if key != "required"})


class OptionChecker:
    """Checks the options of one file's entries.

    Args:
        file: the file that the entries stand in, for messages.
    """

    def __init__(self, file: YamlFile) -> None:
        self.file = file

    def check(self, point: str, name: str, options: Any, keys: Sequence[str | int], named_at: Sequence[str | int] | None = None) -> None:
        """Check that `name` is an implementation of `point` and that it takes these options; both keys are for messages."""
        allowed = IMPLEMENTATIONS[point]
        if name not in allowed:
            kind = point.replace("_", " ").rstrip("s")
            raise InputError(f"unknown {kind} {name!r}", where=self.file.where(named_at or keys), why=nearest(name, list(allowed)))
        if not isinstance(options, Mapping):
            do = f"Write {name}: {{}} or name an option: {', '.join(allowed[name].options)}"
            raise InputError(f"found {options!r}", where=self.file.where(keys), why="must be of type object", do=do)
        declared, written = allowed[name], repr(options)
        if (declared, written) not in _FITTING:
            check_value(options, _validator(declared), self.file, keys)
            _FITTING.add((declared, written))

    def check_reader(self, name: str, entry: Mapping[str, Any]) -> None:
        """Check that the reader of a training corpus gives rows of its kind, and has the languages that it needs."""
        reader, kind = IMPLEMENTATIONS["readers"][entry["reader"]], entry["kind"]
        chosen = reader.options.get("kind", {})
        gives = entry.get("options", {}).get("kind", chosen["default"]) if chosen else reader.facts.get("gives", kind)
        if kind != gives:
            own = f"Write kind: {kind} among its options"
            do = own if kind in chosen.get("enum", []) else f"Write kind: {gives}, or choose another reader"
            what = f"the reader {entry['reader']} gives rows of the kind {gives}, not {kind}"
            raise InputError(what, where=self.file.where(("corpora", name, "reader")), do=do)
        languages = reader.facts.get("languages", len(entry["langs"]))
        if len(entry["langs"]) != languages and kind != "multiway":  # a multiway corpus may have any number
            what = f"the reader {entry['reader']} gives {kind} rows of {number_of(languages, 'language')}"
            why = f"found {', '.join(entry['langs']) or 'none'}"
            raise InputError(what, where=self.file.where(("corpora", name, "langs")), why=why)


def check_call(point: str, name: str, options: Mapping[str, Any], where: str) -> None:
    """Check options that a program gives as if they stood in a file; a tuple is a list, None leaves out an option of no other default."""
    declared = IMPLEMENTATIONS[point].get(name)
    known = declared.options if declared else {}
    given = {key: _as_in_a_file(value) for key, value in options.items() if value is not None or "default" in known.get(key, {})}
    OptionChecker(YamlFile(Path(where), None, {})).check(point, name, given, ())


def check_weight(entry: Mapping[str, Any], where: str) -> None:
    """Check the weight of a term that a program gives."""
    term = schemas_by_name()["paper"]["$defs"]["recipe"]["properties"]["terms"]["items"]["properties"]
    if "weight" in entry:
        check_value(_as_in_a_file(entry["weight"]), validator(term["weight"]), YamlFile(Path(where), None, {}), ("weight",))


@functools.cache
def _arguments_validator(module: str, name: str) -> Any:
    return validator({"properties": arguments_of(module, name)})


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Check the arguments of a function that programs call against its annotations, as those of options in files are checked.

    Lists, which may be long or of another library's, and what no file could hold the function looks at itself. A misspelt name of
    an argument is refused with the nearest one.
    """
    signature, name = inspect.signature(function), function.__qualname__
    where = f"crosslign.{name.removesuffix('.__init__')}"
    takes = [key for key, one in signature.parameters.items() if key != "self" and one.kind is not one.VAR_KEYWORD]
    takes_any = any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values())

    @functools.wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> T:
        if not takes_any and (unknown := [key for key in named if key not in takes]):
            raise InputError(f"no argument {unknown[0]!r}", where=where, why=nearest(unknown[0], takes))
        known, bound = arguments_of(function.__module__, name), signature.bind(*given, **named).arguments
        own = {key: value for key, value in bound.items() if key in known and value is not signature.parameters[key].default}
        values = {key: _as_in_a_file(value) for key, value in own.items()}
        check_value(values, _arguments_validator(function.__module__, name), YamlFile(Path(where), None, {}), ())
        return function(*given, **named)

    return call


def texts_of(given: Iterable[str], where: str) -> list[str]:
    """Return texts that a program gives as a list.

    Raises:
        InputError: it is one text, or something else than texts, which are Unicode with no half of a character of UTF-16.
    """
    if isinstance(given, str | bytes):  # a list of its letters
        raise InputError("found one text, expected a list of texts", where=where, do="Put it into brackets")
    if not isinstance(given, Iterable) or isinstance(given, Mapping) or hasattr(given, "columns"):  # whose names would be the texts
        raise InputError("not a list of texts", where=where, why=f"its type is {type(given).__name__}")
    texts = list(given)
    for at, text in enumerate(texts):
        if not isinstance(text, str) or (not text.isascii() and HALF.search(text)):
            raise InputError(f"item {at} is not text", where=where, why=f"found {text!r:.80}", do="Give Unicode strings")
    return texts


def check_readout(settings: Mapping[str, Any], where: str) -> None:
    """Check embedding settings that a program gives, some or all."""
    check_value(_as_in_a_file(settings), _settings_validator(), YamlFile(Path(where), None, {}), ())


def _as_in_a_file(value: Any) -> Any:
    """Return a value of Python's or numpy's as YAML would give it, a path as its text."""
    if isinstance(value, Mapping):
        return {key: _as_in_a_file(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_as_in_a_file(inner) for inner in value]
    if isinstance(value, PurePath):
        return str(value)
    return value.tolist() if hasattr(value, "tolist") else value


def check_corpora(checker: OptionChecker, corpora: Mapping[str, Any]) -> None:
    """Check readers, evaluation readers and filters of a catalog."""
    for name, entry in corpora.items():
        point = "evaluations" if entry["kind"] == "evaluation" else "readers"
        if "reader" in entry:
            checker.check(point, entry["reader"], entry.get("options", {}), ("corpora", name, "options"), ("corpora", name, "reader"))
        if point == "readers":
            checker.check_reader(name, entry)
        for index, step in enumerate(entry.get("filters", [])):
            ((rule, options),) = step.items()
            checker.check("filters", rule, {} if options is None else options, ("corpora", name, "filters", index, rule))


def check_encoders(file: YamlFile, encoders: Mapping[str, Any]) -> None:
    """Check what the schema cannot say of encoders with random weights."""
    for name, entry in encoders.items():
        construct = entry.get("construct", {"hidden": 0, "heads": 1})
        if construct["hidden"] % construct["heads"]:
            why = f"{construct['heads']} heads, hidden {construct['hidden']}"
            raise InputError("`hidden` must be a multiple of `heads`", where=file.where(("encoders", name, "construct", "heads")), why=why)


def _recipes(paper: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for section in ("systems", "finetunes"):
        for name, recipe in paper.get(section, {}).items():
            yield section, name, recipe


def check_paper(checker: OptionChecker, paper: Mapping[str, Any]) -> None:
    """Check builders, parts and objectives of a paper's file."""
    for section, point in (("views", "views"), ("examples", "example_builders")):
        for name, entry in paper.get(section, {}).items():
            checker.check(point, entry["builder"], options_of(section, entry), (section, name), (section, name, "builder"))
            for translator, options in translator_of(entry).items():
                given = {} if options is None else options
                checker.check("translators", translator, given, (section, name, "translator", translator))
    for section, name, recipe in _recipes(paper):
        for part, entry in recipe.get("parts", {}).items():
            keys: tuple[str | int, ...] = (section, name, "parts", part)
            checker.check("parts", entry["kind"], options_of("parts", entry), keys, (*keys, "kind"))
        for index, term in enumerate(recipe.get("terms", [])):
            keys = (section, name, "terms", index)
            checker.check("objectives", term["objective"], options_of("terms", term), keys, (*keys, "objective"))


def check_tasks(checker: OptionChecker, tasks: Mapping[str, Any]) -> None:
    """Check the scorers of a task file."""
    for name, task in tasks.items():
        checker.check("scorers", task["scorer"], options_of("tasks", task), ("tasks", name), ("tasks", name, "scorer"))
