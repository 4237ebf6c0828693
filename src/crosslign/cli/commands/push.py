"""`crosslign push`: a trained encoder to a model hub, with its card, its scores and the licences of what it was trained on."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from crosslign.cli import COMMANDS
from crosslign.cli.project import project_arguments, read_project, results_folder
from crosslign.errors import InputError


@COMMANDS.register()
class Push:
    """Uploads the folder that SentenceTransformer loads; private, unless everybody is to read it."""

    help = "upload a trained encoder to a model hub, privately unless --public is given"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare system, repository and who may read it."""
        parser.add_argument("system", help="id of a system, such as QS-P, or of one of its runs")
        parser.add_argument("name", metavar="NAME", help="organisation/name of the repository; it is created if necessary")
        parser.add_argument("--public", action="store_true", help="let everybody read it (default: only its owners)")
        parser.add_argument("--member", help="the encoder to upload, if the system has one for each group of languages")
        parser.add_argument("--checkpoint", default="last", help="name of the checkpoint (default: last)")
        parser.add_argument("--dry-run", action="store_true", help="print card and licences, but upload nothing")
        parser.add_argument("--results", type=Path, help="results with their scale (default: those of the configuration)")
        project_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Say what the licences forbid, and upload.

        Raises:
            InputError: no such run or encoder, training data without a stated licence, an encoder that SentenceTransformer would read
                otherwise, or files that differ from their lineage.
            NetworkError: the hub cannot be reached, or refuses.
        """
        from crosslign.cli.trained import trained
        from crosslign.provenance.artefact_states import require_whole
        from crosslign.publish import publish

        found = trained(results_folder(args), args.system, args.checkpoint, read_project(args, needed=False).encoders)
        member = args.member or (found.members[0] if len(found.members) == 1 else None)
        if member not in found.members:
            what = "which encoder?" if member is None else f"no encoder {member!r}"
            raise InputError(what, where="--member", why=f"encoders: {', '.join(found.members)}", do="Name one")
        folder = found.folder / args.checkpoint / member
        if not (folder / "modules.json").is_file():
            why = f"it cannot express the pooling {found.lineage['recipe']['readout'].get('pooling')!r}"
            raise InputError("SentenceTransformer would compute different vectors", where=str(folder), why=why)
        require_whole(found.folder.parents[1], [found.folder])
        print(_licences(found.lineage["licences"], str(found.folder)))
        card = found.card(member, index=True)
        print(card if args.dry_run else publish(folder, card, args.name, public=args.public))
        return 0


def _licences(licences: list[str], where: str) -> str:
    """Return what each licence forbids; raise an `InputError` where there is none, or one that is not stated."""
    from crosslign.reporting.licences import in_words, unstated

    parts = sorted({part for licence in licences for part in licence.split("; ")})
    if not parts or (missing := unstated(parts)):
        why = f"found {'; '.join(missing)}" if parts else "its lineage names no licence"
        do = "Add `licence:` to those sources in the catalog or your own files, and run again"
        raise InputError("some of its training data or encoders have no licence", where=where, why=why, do=do)
    return "\n".join(["licences of its training data and encoders:", *(f"  {licence}: {in_words(licence)}" for licence in parts)])
