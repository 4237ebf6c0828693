"""`crosslign pair`: what there is for a pair of languages, and the one file that builds an encoder for it."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from pathlib import Path

from crosslign.cli import COMMANDS
from crosslign.cli.project import project_arguments, read_project
from crosslign.config.pairs import FOLDER, expand_pair, target_of
from crosslign.errors import InputError
from crosslign.registry import nearest

PAIR = re.compile(r"([a-z]{2,3})(_[A-Z][a-z]{3})?-([a-z]{2,3})(_[A-Z][a-z]{3})?")


def checked(pairs: list[str]) -> list[str]:
    """Return pairs of languages, each once, by the project's codes: `en-is` for `eng-isl`, `en-sr_Latn` for `eng-srp_Latn`.

    Raises:
        InputError: no two codes, or one language twice.
    """
    from crosslign.config.known_languages import canonical

    own: dict[frozenset[str], str] = {}
    for pair in pairs:
        found = PAIR.fullmatch(pair)
        codes = [canonical(found[at]) for at in (1, 3)] if found else []
        if found is None or codes[0] == codes[1]:
            do = "Give two ISO 639 codes, such as de-hsb or en-sw; add a script if it matters: en-sr_Latn"
            raise InputError(f"{pair!r} is not a pair of languages", where="crosslign pair", do=do)
        sides = [code if code == "en" else f"{code}{script or ''}" for code, script in zip(codes, (found[2], found[4]), strict=True)]
        own.setdefault(frozenset(sides), "-".join(sides))
    return list(own.values())


@COMMANDS.register()
class Pair:
    """Looks a pair up in catalogues on this machine, prints the plan, and writes the file that builds it."""

    help = "plan an encoder for a pair of languages, and write config/pairs/<pair>.yaml"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare pairs, encoder and whether the file is written."""
        parser.add_argument(
            "pairs", nargs="+", metavar="PAIR", help="two ISO 639 codes, such as de-hsb or en-sr_Latn; several pairs share one encoder"
        )
        parser.add_argument("--encoder", default="me5_small", help="base encoder of the catalog (default: me5_small)")
        parser.add_argument("--teacher", help="English encoder to distil: both sides of a pair learn its vectors, instead of InfoNCE")
        parser.add_argument("--plan", action="store_true", help="only print the plan")
        parser.add_argument("--replace", action="store_true", help="overwrite an existing file")
        project_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Print the plan and write the file.

        Raises:
            InputError: no such encoder, too little text, a file that is there already, or a teacher that has nothing to teach.
        """
        from crosslign.config.schema import check, editor_line
        from crosslign.config.yaml_files import parse_yaml
        from crosslign.files.atomic import write_text
        from crosslign.planning.pairs import cost_lines, file_text, method_of, set_lines, steps_of, survey, table_lines

        pairs, project = checked(args.pairs), read_project(args)
        for option, encoder in (("--encoder", args.encoder), ("--teacher", args.teacher)):
            if encoder and encoder not in project.encoders:
                raise InputError(f"unknown encoder {encoder!r}", where=option, why=nearest(encoder, list(project.encoders)))
        name = "+".join(pairs)
        shown = Path("config", FOLDER, f"{name}.yaml")
        place = args.directory / shown
        if place.exists() and not (args.replace or args.plan):
            raise InputError("the file already exists", where=str(shown), do="Edit it, or give --replace")
        plan = survey(project, pairs)
        steps = steps_of(plan)
        for line in table_lines(plan):
            print(line)
        for line in set_lines(project, plan):
            print(line)
        for code in plan.lacking:
            print(f"no evaluation corpus has {code}, so the table leaves it out; add pairs of your own (docs/add-a-task.md)")
        print(f"method: {method_of(plan, args.teacher)}")
        for line in cost_lines(project, plan, args.encoder, steps):
            print(line)
        text = editor_line("pair", place.parent) + file_text(plan, args.encoder, steps, args.teacher)
        file = parse_yaml(text, shown)  # one that is refused would end every other command, too
        check(file, "pair")
        expand_pair(name, file, {kind: getattr(project, kind) for kind in ("sources", "corpora", "encoders", "tasks")})
        if not args.plan:
            place.parent.mkdir(parents=True, exist_ok=True)
            write_text(place, text)
            print(f"written: {shown}; build it with: snakemake --cores all {target_of(name)}")
        return 0
