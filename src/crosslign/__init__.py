"""Cross-lingual sentence encoders: build their data, train them, compare them.

The package follows one line of data: sources, corpora, views, examples, systems, embeddings, scores, tables.
Each noun is a sub-package; a package imports only from lower layers (docs/architecture.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from crosslign.version import __version__ as __version__

if TYPE_CHECKING:
    import pandas as pd


def scores(files: Iterable[str | Path]) -> pd.DataFrame:
    """Return the long table of all scores: one row a record.

    Args:
        files: score files, such as `Path("results/laptop/scores").rglob("*.json")`; the lineage beside them is passed over.

    Returns:
        run, checkpoint, evaluation, subset, metric, protocol, direction, readout (empty where there is none), seed (a base encoder has
        none), value (a fraction; NaN where undefined), ci_low and ci_high (its 95 % interval), items, status, reason, note, score_file.

    Raises:
        InputError: a file is no score file, or holds a score that its metric cannot have.
    """
    from crosslign.reporting import frames

    return frames.scores(files)


def table(name: str, directory: str | Path = ".", configfile: str | Path | None = None, config: Iterable[str] = ()) -> pd.DataFrame:
    """Return a table of a project as it stands in its results: a row a system, a column an evaluation, averages from unrounded values.

    Args:
        name: id of the table.
        directory: the project's folder.
        configfile: configuration file to lay over its own, as Snakemake takes it.
        config: `KEY=VALUE` that override its keys, as Snakemake takes them.

    Returns:
        float64, fractions (the printed table multiplies them by 100, unless it says otherwise); NaN where nothing of ours is.

    Raises:
        InputError: no such table, or a score file is missing; names it, and the target to run.
    """
    from argparse import Namespace

    from crosslign.cli.project import read_project
    from crosslign.reporting import frames

    over = None if configfile is None else Path(configfile)
    return frames.table(read_project(Namespace(directory=Path(directory), configfile=over, config=list(config))), name)
