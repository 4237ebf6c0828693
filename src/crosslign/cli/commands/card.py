"""`crosslign card`: the model card of a trained system, with every score that is known by now."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from crosslign.cli import COMMANDS
from crosslign.cli.project import project_arguments, results_folder
from crosslign.errors import InputError


@COMMANDS.register()
class Card:
    """Prints the card that lies in a checkpoint's folder, its scores added: they are computed after the folder is sealed."""

    help = "print the model card of a trained run, with its scores"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare run, checkpoint and folder."""
        parser.add_argument("run", help="id of the run, such as QS-P-s42")
        parser.add_argument("--checkpoint", default="last", help="name of the checkpoint (default: last)")
        parser.add_argument("--results", type=Path, help="results with their scale (default: those of the configuration)")
        project_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Print the cards of the checkpoint's encoders.

        Raises:
            InputError: no such run or checkpoint.
        """
        from crosslign.files.lineage import DISCARD, lineage_path, read_lineage
        from crosslign.files.walk import files_below, folders_in
        from crosslign.registry import nearest
        from crosslign.reporting.card import model_card, score_lines

        results = results_folder(args)
        folder = results / "systems" / args.run
        if not lineage_path(folder).exists():
            runs = [path.name for path in folders_in(folder.parent) if lineage_path(path).exists()]
            raise InputError(f"no trained run {args.run!r} here", where=str(folder.parent), why=nearest(args.run, runs))
        members = [path.name for path in folders_in(folder / args.checkpoint) if (path / "config.json").exists()]
        if not members:
            checkpoints = sorted({path.parts[-3] for path in files_below(folder) if path.name == "config.json"})
            raise InputError(f"no checkpoint {args.checkpoint!r} here", where=str(folder), why=nearest(args.checkpoint, checkpoints))
        lineage = read_lineage(folder)
        try:
            names = sorted({str(term["examples"]) for term in lineage["recipe"]["terms"]})
        except (KeyError, TypeError) as error:
            raise InputError("not the lineage of a trained run", where=str(lineage_path(folder)), do=DISCARD) from error
        examples = {name: results / "examples" / f"{name}.parquet" for name in names}
        beside = files_below(results / "scores" / args.run / args.checkpoint)
        scores = score_lines(path for path in beside if path.suffix == ".json" and not path.name.endswith("lineage.json"))
        for member in members:
            print(model_card(lineage["recipe"], folder, args.checkpoint, member, lineage, examples, scores))
        return 0
