"""Where every artefact lies: pure functions, called by the rules, the command line and the tests alike.

`results` is `<results of config.yaml>/<scale>`; only downloads of real sources are shared between scales.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

MINED_FORMATS = ("tsv", "parquet")
MINED_SIDES = ("source", "target")
PLANT_SIDES = ("plant_source", "plant_target")
"""Known translations, line by line, that are hidden among the two sides."""
EVALUATION_FILES = ("texts", "items", "gold")
"""The three tables of an evaluation corpus."""
TABLE_FORMATS = ("md", "csv", "tex", "html")
FIGURE_FORMATS = ("png", "svg", "csv")
OVERVIEW_FORMATS = ("html", "md")
CLAIMS_FORMATS = ("md", "csv", "html")
COUNTS = "counts"
"""Folder of counts among the scores, and what their records name in place of a task."""
SHARED = ("downloads", "models")
"""Folders beside those of the scales, which share them."""
CATALOG = Path(__file__).parent / "catalog"
"""Entries and files that come with the library; a file of the project's own of the same place below its folder goes before them."""
PUBLISHED = Path("resources", "published")
"""Where the figures that papers printed lie, in a project and in the catalog."""
ORIGIN = "origin.txt"
"""Names the group that a folder of scores came from."""


def own_or_catalog(own: Path, place: str | Path) -> Path:
    """Return a file or folder that a project may have: its own where there is one, else the catalog's where that has it."""
    return CATALOG / place if not own.exists() and (CATALOG / place).exists() else own


def printed_path(folder: Path, table: str) -> Path:
    """Return the figures that were printed under a table's name: those of the project's `resources/published`, else the catalog's."""
    return own_or_catalog(folder / f"{table}.csv", PUBLISHED / f"{table}.csv")


def resamples_path(score: Path) -> Path:
    """Return where the resamples of a score file lie."""
    return score.with_suffix(".resamples.parquet")


def origin_files(results: Path, score: str) -> list[Path]:
    """Return the `origin.txt` beside a score file or above it, up to its `scores`: each names the group that the scores came from."""
    folders = [results / parent for parent in Path(score).parents if parent != Path()]
    return [folder / ORIGIN for folder in folders if (folder / ORIGIN).is_file()]


def own_runs(results: Path) -> str:
    """Return a regular expression of the run at the start of a score's path below `scores`: of none whose folder has an `origin.txt`.

    What lies in such a folder is another group's: nothing is computed into it, and nothing in it reruns.
    """
    scores = results / "scores"
    foreign = sorted(Path(folder).relative_to(scores).as_posix() for folder, _, files in os.walk(scores) if ORIGIN in files)
    if "." in foreign:
        return "(?!)"
    return (rf"(?!(?:{'|'.join(map(re.escape, foreign))})/)" if foreign else "") + "[^/]+"


@dataclass(frozen=True)
class Paths:
    """Paths of one scale.

    Args:
        root: the `results:` folder of config.yaml.
        scale: name of the scale.
        stand_in: whether this scale writes its own sources; these must not meet real downloads.
    """

    root: Path
    scale: str
    stand_in: bool = False

    @cached_property
    def results(self) -> Path:
        """Folder of this scale."""
        return self.root / self.scale

    @property
    def shared(self) -> Path:
        """Folder of what scales share, downloads and models of the hub; synthetic data and what they need lie under their scale."""
        return self.results if self.stand_in else self.root

    @property
    def downloads(self) -> Path:
        """Folder of files as published."""
        return self.shared / "downloads"

    def download(self, source: str, file: str) -> Path:
        """One file of a catalog entry's source."""
        return self.downloads / source / file

    def encoder(self, encoder: str) -> Path:
        """A prepared base encoder: one ordinary transformers folder per member."""
        return self.results / "encoders" / encoder

    def corpus(self, corpus: str, langs: str) -> Path:
        """Clean rows of a corpus that is not an evaluation corpus; `langs` is what `config.graph.corpus_langs` calls its languages."""
        return self.results / "corpora" / corpus / f"{langs}.parquet"

    def filtered(self, corpus: str, part: str) -> Path:
        """Folder of one job's shards of a large source, such as `2-of-5`, until the corpus is made of all."""
        return self.results / "filtered" / corpus / part

    def evaluation(self, corpus: str, part: str) -> Path:
        """`texts`, `items` or `gold` of an evaluation corpus."""
        return self.results / "corpora" / corpus / f"{part}.parquet"

    def view(self, view: str) -> Path:
        """An augmented copy of a corpus, of all its languages."""
        return self.results / "views" / view / "all.parquet"

    @property
    def translations(self) -> Path:
        """Folder of translations kept from run to run; what is not there is translated again."""
        return self.results / "translations"

    def hub_model(self, model: str) -> Path:
        """A model of the hub that a translator needs, by the name of its folder."""
        return self.shared / "models" / model

    def examples(self, examples: str) -> Path:
        """A training set."""
        return self.results / "examples" / f"{examples}.parquet"

    def system(self, run: str) -> Path:
        """The one folder of a trained run."""
        return self.results / "systems" / run

    def choice(self, system: str) -> Path:
        """The values that a tuned system's trials chose."""
        return self.results / "choices" / f"{system}.json"

    def checkpoints(self, run: str) -> Path:
        """Working folder of a training, with its saved states."""
        return self.results / "checkpoints" / run

    def tokenised(self, examples: str, key: str) -> Path:
        """A tokenised training set, until the last training has read it; `key` says how (`crosslign.config.tokenised`)."""
        return self.results / "tokenised" / f"{examples}-{key}"

    def embeddings(self, run: str, checkpoint: str, readout: str, text_set: str) -> Path:
        """One matrix, row-aligned with the texts of its evaluation corpus."""
        return self.results.joinpath("embeddings", run, checkpoint, readout, f"{text_set}.npy")

    def score(self, run: str, checkpoint: str, readout: str, task: str) -> Path:
        """Score records of one run on one task."""
        return self.results.joinpath("scores", run, checkpoint, readout, f"{task}.json")

    def counts(self, table: str) -> Path:
        """What a table counts of corpora and training sets, in the form of scores and among them: they suffice for every table."""
        return self.results / "scores" / COUNTS / f"{table}.json"

    def mined(self, mine: str, form: str) -> Path:
        """Sentence pairs mined from a user's own files: `tsv` or `parquet`."""
        return self.results / "mined" / f"{mine}.{form}"

    def mined_texts(self, mine: str, side: str) -> Path:
        """Sentences of one side of a user's mining, with their line numbers."""
        return self.results / "mined" / mine / f"{side}.parquet"

    def mined_embeddings(self, mine: str, side: str) -> Path:
        """Vectors of one side of a user's mining, row-aligned with its sentences."""
        return self.results / "mined" / mine / f"{side}.npy"

    def mined_calibration(self, mine: str) -> Path:
        """What planted pairs say of a user's mining."""
        return self.results / "mined" / f"{mine}.calibration.json"

    def searched(self, mine: str, part: str) -> Path:
        """Folder of the nearest neighbours of one range of a user's mining, such as `2-of-5`, until all are joined."""
        return self.results / "searched" / mine / part

    def mined_neighbours(self, mine: str) -> Path:
        """Nearest neighbours of both sides of a user's mining."""
        return self.results / "mined" / mine / "neighbours.safetensors"

    def resamples(self, run: str, checkpoint: str, readout: str, task: str) -> Path:
        """Values of a score file's main metric on bootstrap resamples, for paired tests."""
        return resamples_path(self.score(run, checkpoint, readout, task))

    def table(self, table: str, form: str) -> Path:
        """One format of a table."""
        return self.results / "tables" / f"{table}.{form}"

    def figure(self, figure: str, form: str) -> Path:
        """One format of a figure."""
        return self.results / "figures" / f"{figure}.{form}"

    def crate(self, table: str) -> Path:
        """A finished table packed with all that describes it."""
        return self.results / "crates" / f"{table}.crate.zip"

    def overlap(self, form: str) -> Path:
        """One format (csv, md) of the overlap of corpora and evaluation corpora."""
        return self.results / f"overlap.{form}"

    def overview(self, form: str) -> Path:
        """The page that links all tables and figures."""
        return self.results / f"overview.{form}"

    def claims(self, form: str) -> Path:
        """One format (md, csv, html) of the ledger of claims."""
        return self.results / f"claims.{form}"

    @property
    def report(self) -> Path:
        """The HTML report."""
        return self.results / "report.html"

    def log(self, rule: str, name: str) -> Path:
        """Log of one job."""
        return self.results / "logs" / rule / f"{name}.log"

    def benchmark(self, rule: str, name: str) -> Path:
        """Time and memory of one job, as Snakemake measures them."""
        return self.results / "benchmarks" / rule / f"{name}.tsv"
