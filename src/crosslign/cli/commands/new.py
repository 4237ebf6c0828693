"""`crosslign new`: a folder with a method of one's own that runs as it stands (docs/add-a-method.md)."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from pathlib import Path
from string import Template

from crosslign.cli import COMMANDS
from crosslign.config.schema import editor_line
from crosslign.config.signatures import IMPLEMENTATIONS
from crosslign.errors import InputError
from crosslign.files import write_text

MODULE = Template('''"""$title: each anchor's own translation lies nearer than the hardest other one, by a margin."""

from crosslign.objectives import OBJECTIVES
from crosslign.objectives.contract import both_sides, cosines


@OBJECTIVES.register(version=1)
class $class_name:
    """`L_i = max(0, m − cos(a_i, b_i) + max_j≠i cos(a_i, b_j))`, mean over i.

    Args:
        margin: m, by which the own translation is to lie nearer.
    """

    shape = "pairs"

    def __init__(self, margin: float = 0.2) -> None:
        self.margin = margin

    def inputs(self, batch, draw):
        return both_sides(batch)

    def loss(self, vectors, batch, parts):
        scores = cosines(vectors["a"], vectors["b"])
        own = scores.diagonal()
        hardest = scores.clone().fill_diagonal_(-1.0).amax(1)
        return (self.margin - own + hardest).clamp(min=0).mean()
''')
ENTRIES = Template("""# A method of one's own: a system, and its row in the contest.
systems:
  $name:
    like: CT-IN
    place: "$title, margin 0.2, from the contest's parallel text"
    terms: [{objective: $name, examples: ct_pairs, batch: 16, margin: 0.2}]
rows:
  contest_parallel:
    - {group: "Plugins", label: "$title", system: $name}
tables:
  ${name}_first:
    title: "$title beside mSimCSE's loss"
    budget: 3.0e12
    print: {decimals: 1, scale_by: 100, significance: paired_bootstrap}
    columns:
      - {label: xx→en, task: contest_verses, subset: avg, metric: accuracy, direction: xx2en}
      - {label: prose xx→en, task: contest_prose, subset: avg, metric: accuracy, direction: xx2en}
    rows:
      - {label: "mSimCSE", system: CT-IN}
      - {label: "$title", system: $name}
""")
NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
KINDS = ("objective",)


def write_objective(folder: Path, name: str) -> list[Path]:
    """Write a plugin with an objective into a folder that is not there yet; return its files.

    Raises:
        InputError: a name that a module cannot have, that the library has already, or whose folder is there.
    """
    if not NAME.fullmatch(name):
        raise InputError(f"{name!r} cannot be the name of a module", why="allowed: lower-case letters, digits and `_`, a letter first")
    if name in IMPLEMENTATIONS["objectives"]:
        raise InputError(f"the library already has an objective {name!r}", do="Choose another name")
    if folder.exists():
        raise InputError("the folder already exists", where=str(folder), do="Choose another name, or another parent folder: --out")
    title = name.replace("_", " ").capitalize()
    words = {"name": name, "title": title, "class_name": "".join(word.capitalize() for word in name.split("_"))}
    files = {f"{name}.py": MODULE.substitute(words), f"{name}.yaml": editor_line("plugin", folder) + ENTRIES.substitute(words)}
    for file, text in files.items():
        write_text(folder / file, text)
    return [folder / file for file in files]


@COMMANDS.register()
class New:
    """Writes the files of a plugin; reads no project."""

    help = "write a folder with a new method that runs unchanged"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare what is written, and where."""
        parser.add_argument("kind", choices=KINDS, help="what the folder implements")
        parser.add_argument("name", help="its name: lower-case letters, digits and _")
        parser.add_argument("--out", type=Path, default=Path(), help="parent of the new folder (default: here)")

    def run(self, args: Namespace) -> int:
        """Write the folder, and print how to run it."""
        folder = args.out / args.name
        for path in write_objective(folder, args.name):
            print(path)
        asked = f"--config scale=quick 'plugins=[{folder.absolute()}]' 'papers=[contest]'"
        print(f"\nIn a project's folder, on synthetic data:\n    snakemake --cores all {asked} 'targets=[{args.name}_first]'")
        return 0
