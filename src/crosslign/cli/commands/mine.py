"""`crosslign mine`: pairs of two files, or of one entry of `mine:`, and what they look like."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.cli import COMMANDS
from crosslign.cli.dry_run import told_to_end
from crosslign.cli.project import project_arguments, read_project
from crosslign.config.load import settings_in
from crosslign.config.mining import (
    DEFAULTS,
    mine_recipe,
    reading,
    require_apart,
    require_there,
    side_files,
    sides_of,
    texts_path,
    vectors_path,
)
from crosslign.config.settings import own_file
from crosslign.console import duration, number_of
from crosslign.errors import InputError
from crosslign.files.atomic import require_writable
from crosslign.files.lineage import lineage_path
from crosslign.files.text import read_json
from crosslign.mining.expected import calibration_lines
from crosslign.mining.formats import FILES
from crosslign.mining.summary import cut_text, read_text, summary_lines
from crosslign.paths import MINED_FORMATS, MINED_SIDES


def _run(command: Sequence[str], folder: Path) -> int:
    """Run Snakemake to its end, which comes after its jobs', however this process is asked to stop; return its exit code.

    Ctrl-C reaches both from the terminal; other signals are passed on. A killed Snakemake would leave its lock behind.
    """
    with subprocess.Popen(command, cwd=folder) as process:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            with told_to_end(process.send_signal):
                return process.wait()
        finally:
            signal.signal(signal.SIGINT, before)


def _said(recipe: Mapping[str, Any], sides: Mapping[str, tuple[Path, Path]], pairs: Path, calibration: Path | None) -> Iterator[str]:
    """Yield what a finished mining is to be told by."""
    yield f"encoder: {reading(recipe)}"
    for side, (texts, vectors) in sides.items():
        read, encoded = (read_json(lineage_path(path))["counts"] for path in (texts, vectors))
        cut = cut_text(encoded["truncated"], read["sentences"], recipe["readout_entry"]["max_length"])
        yield f"{side}: {read_text(read, recipe[side])}; {cut}"
    counts = read_json(lineage_path(pairs))["counts"]
    if counts["recall_at_k"] is not None:
        yield f"the search was approximate: recall@{recipe['k']} {counts['recall_at_k']:.4f} on a sample"
    if counts["threshold"] is not None:
        yield f"{counts['above_threshold']:,} of {number_of(counts['pairs'], 'pair')} above the threshold ({counts['threshold']})"
    if calibration:
        yield from calibration_lines(read_json(calibration), recipe.get("precision"), counts["threshold"])
    yield from summary_lines(pairs)


OUTPUT = Path("pairs.tsv")
"""Pairs of two files, where no other output is named."""
OF_FILES = {"encoder": "system", "langs": "lang", "columns": "column", "split": "split", "threads": "threads"}
"""Options of two files alone, and the key of an entry that says the same."""
LANG = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,34}")
"""Code of a language, part of a file's name in `moses` and an attribute in TMX."""
OF_ENTRY = ("cores", "profile", "dry_run")
"""Options of an entry alone."""
ENDINGS = {".tsv": "tsv", ".parquet": "parquet", ".tmx": "tmx"}
"""Formats by the ending of an output's name."""


def output_files(out: Path, form: str | None, langs: Sequence[str]) -> dict[str, Path]:
    """Return the files of an output by what they are; `moses` are two, `OUT.<language>` each.

    Raises:
        InputError: the name says no format, or the format needs languages that nobody named.
    """
    chosen = form or ENDINGS.get(out.suffix)
    if chosen is None:
        raise InputError(
            f"unknown format {out.suffix!r}",
            where=str(out),
            why="known: .tsv, .parquet, .tmx",
            do="Change the ending, or give --format moses",
        )
    if chosen in ("tmx", "moses") and langs[0] == langs[1]:
        why = "its files are named by language" if chosen == "moses" else "each of its segments has a language"
        raise InputError(f"{chosen} needs both languages", where=str(out), why=why, do="Give --langs, for example --langs de en")
    if chosen == "moses":
        return {name: out.with_name(f"{out.name}.{lang}") for name, lang in zip(FILES[chosen], langs, strict=True)}
    return dict.fromkeys(FILES[chosen], out)


def threshold_keys(args: Namespace) -> dict[str, Any]:
    """Return what the command line says of the threshold, as keys of an entry of `mine:`; pairs below it are then not written.

    Raises:
        InputError: a number that is not finite, or a precision or recall that is not a share.
    """
    found: dict[str, Any] = {}
    if args.plants:
        found["plants"] = dict(zip(MINED_SIDES, (str(Path(name).absolute()) for name in args.plants), strict=True))
    for key in ("threshold", "precision", "recall"):
        if (asked := getattr(args, key)) is None:
            continue
        if not math.isfinite(asked):
            raise InputError("not a finite number", where=f"--{key}", why=f"found {asked}")
        if key != "threshold" and not 0 < asked < 1:
            raise InputError("must lie between 0 and 1", where=f"--{key}", why=f"found {asked}")
        found |= {key: asked, "output": "above_threshold"}
    return found


def changed(entry: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with what the command line says; a threshold takes the place of the entry's, however either was chosen."""
    ways = {"threshold", "precision", "recall"}
    return {**entry, **(dict.fromkeys(ways & set(entry)) if ways & set(own) else {}), **own}


@COMMANDS.register()
class Mine:
    """Mines two files in this process, or starts Snakemake for an entry of `mine:`, and prints what was found."""

    help = "mine sentence pairs from two files, or from an entry of `mine:` in config.yaml"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare files or the entry, and what each of the two ways takes."""
        project_arguments(parser)
        parser.add_argument(
            "names",
            nargs="+",
            metavar="FILE FILE | ENTRY",
            help="two files of sentences (text, .jsonl, .parquet; 'news-*.gz', in quotes, for several), or the id of an entry under mine:",
        )
        parser.add_argument("--allow-tiny", action="store_true", help="allow a scale with synthetic data to use its tiny random encoder")
        files = parser.add_argument_group("options for two files")
        files.add_argument("--encoder", help=f"a base encoder of the catalog (default: {DEFAULTS['system']})")
        files.add_argument("--langs", nargs=2, metavar="LANG", help="languages of the files, such as de en (required for TMX and moses)")
        files.add_argument(
            "--columns", nargs=2, metavar="NAME", help="columns or keys of the texts in .parquet and .jsonl (default: text text)"
        )
        files.add_argument("--split", action="store_true", help="treat each line, row or object as a document, and split it into sentences")
        files.add_argument("--threads", type=int, help="number of threads (default: the cores of this machine)")
        both = parser.add_argument_group("options for both; they override an entry's settings for this call")
        both.add_argument(
            "-o", "--output", type=Path, help=f".tsv, .parquet or .tmx (default for two files: {OUTPUT}); work files are written next to it"
        )
        both.add_argument("--format", choices=sorted(FILES), help="overrides the output's ending; moses writes two files, OUT.<language>")
        both.add_argument(
            "--plants",
            nargs=2,
            metavar="FILE",
            help="two files of known translations, line by line; they are hidden in the two sides to measure how many pairs are right",
        )
        asked = both.add_mutually_exclusive_group()
        asked.add_argument("--threshold", type=float, help="write only pairs with at least this score (default: all)")
        asked.add_argument("--precision", type=float, help="with plants: set the threshold for this precision, such as 0.95")
        asked.add_argument("--recall", type=float, help="with plants: set the threshold for this recall, such as 0.8")
        entry = parser.add_argument_group("options for an entry")
        entry.add_argument("--cores", help="cores for the whole run (default: all)")
        entry.add_argument("--profile", help="Snakemake profile, for a cluster")
        entry.add_argument("--dry-run", action="store_true", help="only show what would run")

    def run(self, args: Namespace) -> int:
        """Mine; return 0, or the exit code of Snakemake.

        Raises:
            InputError: neither two files nor one entry.
        """
        # An entry may be called as a file is, but no id has a suffix.
        if len(args.names) == 1 and not (Path(args.names[0]).suffix and Path(args.names[0]).is_file()):
            return self._entry(args, args.names[0])
        if len(args.names) == 2:
            return self._files(args)
        raise InputError(
            number_of(len(args.names), "name"),
            where="crosslign mine",
            do="Name two files of sentences, or one entry of `mine:`; a quoted pattern, such as 'news-*.gz', names several files",
        )

    def _files(self, args: Namespace) -> int:
        """Mine two files in this process.

        Raises:
            InputError: an option of an entry, an output that no mining wrote, or what mining raises.
        """
        from crosslign.cli.two_files import mine_files
        from crosslign.steps import cached_project

        start = time.monotonic()
        for option in OF_ENTRY:
            if getattr(args, option):
                raise InputError(
                    "this option is only for an entry of `mine:`, not for two files", where=f"--{option.replace('_', '-')}", do="Remove it"
                )
        if args.output is None and OUTPUT.exists() and not lineage_path(OUTPUT).exists():
            raise InputError(
                "an existing file that no mining wrote would be overwritten", where=str(OUTPUT), do="Choose another output: -o FILE"
            )
        langs = args.langs or ["und", "und"]
        for lang in langs:
            if not LANG.fullmatch(lang):
                raise InputError(
                    "not the code of a language", where="--langs", why=f"found {lang!r}", do="Write, for example, --langs de en"
                )
        sides: dict[str, dict[str, Any]] = {
            side: {"file": str(Path(name).absolute()), "lang": lang}
            for side, name, lang in zip(MINED_SIDES, args.names, langs, strict=True)
        }
        outputs = {name: path.absolute() for name, path in output_files(args.output or OUTPUT, args.format, langs).items()}
        for side, column in zip(sides.values(), args.columns or (), strict=False):
            side["column"] = column
        for side in sides.values() if args.split else ():
            side["split"] = True
        threads = os.cpu_count() or 1 if args.threads is None else max(1, args.threads)
        entry = {**DEFAULTS, **sides, "system": args.encoder or DEFAULTS["system"], "threads": threads, "allow_tiny": args.allow_tiny}
        entry |= threshold_keys(args)
        mined = mine_files(cached_project(args.config, args.directory, args.configfile), entry, outputs)
        for line in _said(mined.recipe, mined.sides, mined.pairs, mined.calibration):
            print(line)
        mined.forget()
        print(f"done in {duration(time.monotonic() - start)}:")
        for path in [*outputs.values(), *filter(None, [mined.calibration])]:
            print(f"  {path}")
        return 0

    @staticmethod
    def _given(args: Namespace, name: str) -> Mapping[str, Any]:
        """Return an entry as the configuration has it, or as the file of a pair of languages.

        Raises:
            InputError: there is none.
        """
        there = settings_in(args.directory, args.config, args.configfile)["mine"]
        if name in there:
            return dict(there[name])
        project = read_project(args)
        mine_recipe(project, name)
        return dict(project.settings["mine"][name])

    def _entry(self, args: Namespace, name: str) -> int:
        """Start Snakemake for an entry; return its exit code.

        Raises:
            InputError: an option of two files, which an entry has as a key, an output that is read, or what is missing.
        """
        if args.format and not args.output:
            raise InputError(
                "an output is needed, too", where="--format", why="the formats of an entry's own outputs are fixed", do="Give -o FILE"
            )
        for option, key in OF_FILES.items():
            if getattr(args, option) not in (None, False):
                do = f"Write `{key}` into the entry mine.{name} of config/config.yaml"
                raise InputError("this option is only for two files, not for an entry of `mine:`", where=f"--{option}", do=do)
        if own := {**threshold_keys(args), **({"allow_tiny": True} if args.allow_tiny else {})}:
            args.config = [*args.config, f"mine={json.dumps({name: changed(self._given(args, name), own)})}"]
        project = read_project(args)
        recipe = mine_recipe(project, name)
        require_there(project, name)
        print(f"encoder: {reading(recipe)}", file=sys.stderr)
        if recipe["limit"]:
            print(
                f"the scale {project.settings['scale']} reads only the first {number_of(recipe['limit'], 'line')} of each file",
                file=sys.stderr,
            )
        outputs = [project.paths.mined(name, form) for form in MINED_FORMATS]
        langs = [recipe[side]["lang"] for side in MINED_SIDES]
        others = output_files(args.output.absolute(), args.format, langs) if args.output else {}
        read = [file for side in sides_of(recipe) for file in side_files(project, recipe, side)]
        require_apart(others.values(), [*read, project.paths.mined(name, "parquet")])
        for output in others.values() if not args.dry_run else ():
            require_writable(output.parent, output.name)
        # A profile for a cluster brings a configuration of its own, which a file that is named here takes the place of.
        file = args.configfile or own_file(args.directory, args.directory)
        command = [sys.executable, "-m", "snakemake", name, "--cores", args.cores or "all", "--configfile", str(file.resolve())]
        command += ["--config", *args.config] if args.config else []
        command += ["--profile", args.profile] if args.profile else []
        command += ["--dry-run"] if args.dry_run else []
        print(f"+ {shlex.join(command[2:])}", file=sys.stderr, flush=True)
        code = _run(command, args.directory)
        if not code and not args.dry_run:
            sides = {side: (texts_path(project, name, side), vectors_path(project, name, side)) for side in MINED_SIDES}
            calibration = project.paths.mined_calibration(name) if "plants" in recipe else None
            for line in _said(recipe, sides, project.paths.mined(name, "parquet"), calibration):
                print(line)
            if recipe["limit"]:
                print(f"only the first {number_of(recipe['limit'], 'line')} of each file were read, at scale {project.settings['scale']}")
            from crosslign.mining.pairs import write_again

            write_again(project.paths.mined(name, "parquet"), others, langs)
            for output in dict.fromkeys([*outputs, *others.values()]):
                print(f"  {output}")
        return code
