"""One cell of a table, as far as it is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from crosslign.paths import COUNTS


@dataclass
class Cell:
    """One cell.

    Attributes:
        ours: mean over runs, a fraction; None where there is none, with `reason` saying why.
        std: standard deviation over runs, or None for a single run: of the sample (ddof 1), unless the table asks for the population's.
        published: published figure, on the printed scale; None where there is none, or no plain number.
        printed: what was printed, letter by letter (`50.0`, `46k`, `738-750`).
        published_std: the standard deviation that was printed beside it, letter by letter.
        published_gain: the improvement that was printed beside it, signed, letter by letter.
        text: what stands in the place of a number: a setting of a recipe.
        ci_low, ci_high: 95 % interval of a single run, or None.
        records: the record of each run that the value depends on.
        score_files: their files, relative to `{results}`.
        parts: what an average was made of.
        marks: `best` in its column, unless all are equal or a run of it has collapsed; `above` or `below` when it differs from the row
            that it is compared with: by a paired test where the table asks for one, else where its interval lies wholly beside that row's.
        p_value: of no difference to that row, corrected for the rows of the column; None without a test.
        against: label of that row, where there was a test.
        estimated: whether a count in it is an estimate.
        notes: texts of the footnotes that concern this cell alone.
    """

    ours: float | None = None
    std: float | None = None
    published: float | None = None
    printed: str = ""
    published_std: str = ""
    published_gain: str = ""
    text: str = ""
    ci_low: float | None = None
    ci_high: float | None = None
    reason: str = ""
    records: list[dict[str, Any]] = field(default_factory=list)
    score_files: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    parts: list[Cell] = field(default_factory=list)
    p_value: float | None = None
    against: str = ""
    estimated: bool = False

    @property
    def filled(self) -> bool:
        """Whether it has something of ours: a value, or a setting of a recipe."""
        return self.ours is not None or bool(self.text)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval, where both of its ends are known."""
        return None if self.ci_low is None or self.ci_high is None else (self.ci_low, self.ci_high)

    @property
    def seeds(self) -> int:
        """Runs that the value is a mean over; none of a count."""
        if any(record.get("eval") == COUNTS for record in self.records):
            return 0
        return len(self.records) or (self.parts[0].seeds if self.parts else 0)

    @property
    def collapsed(self) -> bool:
        """Whether a run behind it has collapsed: its value stays, and means nothing."""
        return any(record.get("status") == "collapsed" for leaf in self.leaves for record in leaf.records)

    @property
    def trained(self) -> bool:
        """Whether a run behind it has a seed."""
        return any(record.get("seed") is not None for leaf in self.leaves for record in leaf.records)

    @property
    def leaves(self) -> list[Cell]:
        """The cells that hold the records: those that an average was made of, else this one."""
        return [leaf for part in self.parts for leaf in part.leaves] or [self]

    @property
    def files(self) -> list[str]:
        """The score files behind it, each once, relative to `{results}`."""
        return list(dict.fromkeys(file for leaf in self.leaves for file in leaf.score_files))


Grid = list[list[Cell]]
"""The cells of a table, row by row."""
