"""A pair of languages as one file, `config/pairs/*.yaml`.

It stands for corpora, examples, a system, evaluations and tables of the kinds that the catalog and papers have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from crosslign.config.yaml_files import YamlFile
from crosslign.errors import InputError
from crosslign.languages import normalise
from crosslign.registry import nearest

FOLDER = "pairs"
FILTERS: list[dict[str, Any]] = [
    {"length": {"min_words": 2, "max_words": 60}},
    {"length_ratio": {"max_ratio": 3.0}},
    {"identical_pair": {}},
    {"exact_duplicate": {}},
]
"""Filters of a corpus of OPUS where the file names none."""
PLACES = (
    "mSimCSE 3.5, parallel sentences, with English dropout pairs (3.2) beside them.",
    "Reimers and Gurevych 2020: both sides of a pair learn a teacher's vector of the English one.",
)
"""Where a paper describes the training: by parallel sentences, by a teacher."""
MOST, WEIGHT, LONGEST = 200_000, 0.1, 64
FLORES = "flores200_devtest"
TATOEBA = "tatoeba_v1"


@dataclass
class Expanded:
    """Entries that a pair's file stands for, by kind and id."""

    sources: dict[str, Any] = field(default_factory=dict)
    corpora: dict[str, Any] = field(default_factory=dict)
    tasks: dict[str, Any] = field(default_factory=dict)
    paper: dict[str, Any] = field(default_factory=dict)


def target_of(name: str) -> str:
    """Return the target, and the beginning of all ids, of a pair's file: `pair_en_sw` of `en-sw.yaml`."""
    return "pair_" + name.replace("-", "_").replace("+", "_").lower()


def _langs(pair: str) -> list[str]:
    return [normalise(code) for code in pair.split("-")]


def opus_entries(target: str, item: Mapping[str, Any], filters: list[Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return id, source and corpus of a corpus of OPUS."""
    name = f"{target}_{item['opus'].lower().replace('-', '_')}_{item['pair'].lower().replace('-', '_')}"
    size = {"about_bytes": item["about_bytes"]} if "about_bytes" in item else {}
    licence = item.get("licence", "unknown")
    source = {
        "opus": item["opus"],
        "version": item["version"],
        "files": [{"name": f"{item['pair']}.txt.zip", **size}],
        "stand_in": "opus",
        "licence": licence,
        "citation": f"OPUS, {item['opus']} {item['version']} (Tiedemann 2012)",
    }
    corpus = {
        "kind": "bitext",
        "source": name,
        "reader": "moses",
        "options": {"skip_empty": True, "skip_broken": True},
        "langs": _langs(item["pair"]),
        "licence": licence,
        "citation": source["citation"],
        "filters": filters,
    }
    return name, source, corpus


class _Pair:
    """Expands one file."""

    def __init__(self, name: str, file: YamlFile, known: Mapping[str, Mapping[str, Any]]) -> None:
        self.target, self.file, self.entry, self.known = target_of(name), file, file.content, known
        self.out = Expanded()

    def named(self, kind: str, name: str, *keys: str | int) -> Any:
        """Return an entry of the catalog.

        Raises:
            InputError: there is none; names the nearest.
        """
        if name not in self.known[kind]:
            what = f"unknown {kind.rstrip('s').replace('corpora', 'corpus')} {name!r}"
            raise InputError(what, where=self.file.where(keys), why=nearest(name, list(self.known[kind])))
        return self.known[kind][name]

    def text(self) -> list[str]:
        """Return the ids of the corpora that are trained on; adds those of OPUS."""
        names, filters = [], list(self.entry.get("filters", FILTERS))
        if clean := self.entry.get("clean"):
            self.named("corpora", clean["corpus"], "clean", "corpus")
            filters.append({"as_clean": {"corpora": [clean["corpus"]], **{key: clean[key] for key in clean if key == "keep"}}})
        for index, item in enumerate(self.entry["text"]):
            if "corpus" in item:
                self.named("corpora", item["corpus"], "text", index, "corpus")
                names.append(item["corpus"])
                continue
            name, source, corpus = opus_entries(self.target, item, filters)
            self.out.sources[name], self.out.corpora[name] = source, corpus
            names.append(name)
        return names

    def _evaluation(self, kind: str, code: str, entry: Mapping[str, Any], footnote: str) -> Iterator[dict[str, Any]]:
        """Add an evaluation set and its task; yield its columns, both directions, and LASER's error rate."""
        name = f"{self.target}_{kind}_{code.lower()}"
        licence = self.known["sources"][entry["source"]]["licence"]
        self.out.corpora[name] = {"kind": "evaluation", "langs": [], "licence": licence, **entry}
        main = {"metric": "accuracy", "subset": code, "direction": "xx2en"}
        self.out.tasks[name] = {"scorer": "retrieval", "texts": {"test": name}, "output": "vectors", "main": main, "footnote": footnote}
        heading = {"tatoeba": "Tatoeba", "flores": "FLORES-200 devtest"}[kind]
        for direction, arrow in (("xx2en", f"{code}→en"), ("en2xx", f"en→{code}")):
            yield {"group": f"{heading} (accuracy)", "label": arrow, "task": name, **main, "direction": direction}

    def evaluations(self) -> list[dict[str, Any]]:
        """Return the columns of the evaluations that know the languages; adds sets and tasks."""
        columns: list[dict[str, Any]] = []
        given = self.entry.get("evaluations", {})
        for kind, source in (("tatoeba", TATOEBA), ("flores", FLORES)):
            for index, code in enumerate(given.get(kind, [])):
                there = {file["name"] for file in self.known["sources"][source]["files"]}
                if kind == "tatoeba":
                    files, options = [f"tatoeba.{code}-eng.{code}", f"tatoeba.{code}-eng.eng"], {}
                    footnote = "Tatoeba v1: nearest neighbour by cosine among the sentences of the pair."
                else:
                    files, options = [f"{code}.devtest", "eng_Latn.devtest"], {"options": {"parts": ["devtest"]}}
                    footnote = "FLORES-200 devtest, 1,012 sentences: nearest neighbour by cosine."
                if lacking := [name for name in files if name not in there]:
                    keys = ("evaluations", kind, index)
                    raise InputError(f"{source} has no {code!r}", where=self.file.where(keys), why=nearest(lacking[0], sorted(there)))
                reader = "tatoeba" if kind == "tatoeba" else "flores200"
                columns += self._evaluation(kind, code, {"source": source, "files": files, "reader": reader, **options}, footnote)
        return columns

    def lost(self) -> tuple[list[dict[str, Any]], list[str]]:
        """Return the columns of what was lost, and the evaluation sets behind them."""
        columns, sets = [], []
        for index, column in enumerate(self.entry.get("lost", [])):
            task = self.named("tasks", column["task"], "lost", index, "task")
            columns.append({"group": "What others lost", **column})
            sets += task["texts"].values()
        return columns, list(dict.fromkeys(sets))

    def loss(self) -> dict[str, Any]:
        """Return the objective of a term: InfoNCE, or where the file names a teacher, the mean squared error to its vectors.

        Raises:
            InputError: no such teacher, no pair with English, which it reads, or a temperature, which that loss has not.
        """
        entry, train = self.entry, self.entry["train"]
        if "teacher" not in entry:
            return {"objective": "infonce", "temperature": train.get("temperature", 0.05)}
        self.named("encoders", entry["teacher"], "teacher")
        if not any("en" in _langs(pair) for pair in entry["pairs"]):
            raise InputError("a teacher reads English, and no pair has it", where=self.file.where(("teacher",)), do="Leave it out")
        if "temperature" in train:
            raise InputError("distillation has no temperature", where=self.file.where(("train", "temperature")), do="Leave it out")
        return {"objective": "sentence_transformers_loss", "loss": "MSELoss"}

    def expand(self) -> Expanded:
        """Return all entries."""
        entry, target, train = self.entry, self.target, self.entry["train"]
        readout = self.named("encoders", entry["encoder"], "encoder")["readout"]
        corpora = self.text()
        shown = self.evaluations()
        own_sets = list(self.out.corpora)[len(self.out.sources) :]
        lost, sets = self.lost()
        held_out = {"decontaminate": [*own_sets, *sets]} if own_sets or sets else {}
        langs = list(dict.fromkeys(lang for pair in entry["pairs"] for lang in _langs(pair)))
        pairs = ["-".join(_langs(pair)) for pair in entry["pairs"]]
        most = entry.get("most", MOST)
        examples: dict[str, dict[str, Any]] = {
            f"{target}_pairs": {"builder": "parallel_pairs", "from": corpora, "langs": langs, "pairs": pairs, "max_per_pair": most}
        }
        terms = [{**self.loss(), "weight": 1.0, "examples": f"{target}_pairs", "batch": train.get("batch", 64)}]
        if english := entry.get("english"):
            self.named("corpora", english["corpus"], "english", "corpus")
            examples[f"{target}_english"] = {"builder": "dropout_pairs", "from": [english["corpus"]], "langs": ["en"]}
            terms.append({**terms[0], "weight": english.get("weight", WEIGHT), "examples": f"{target}_english"})
        if teacher := entry.get("teacher"):
            examples |= {f"{name}_taught": {"builder": "taught_pairs", "of": [name], "teacher": teacher} for name in examples}
            terms = [{**term, "examples": f"{term['examples']}_taught"} for term in terms]
        settings = {"steps": train["steps"], "learning_rate": train["learning_rate"], "warmup_share": 0.1}
        system = {
            "place": PLACES["teacher" in entry],
            "base": {"encoder": entry["encoder"]},
            "terms": terms,
            "train": {**settings, "max_length": train.get("max_length", LONGEST)},
            "readout": readout,
            "seeds": train.get("seeds", [42]),
        }
        self.out.paper = {
            "examples": {name: {**one, "seed": 42, **held_out} for name, one in examples.items()},
            "systems": {f"{target}_encoder": system},
            "tables": self._tables(corpora, [*shown, *lost]),
        }
        return self.out

    def _tables(self, corpora: list[str], columns: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the table before and after training, and that of the text which was read, kept and used."""
        target, title = self.target, ", ".join(self.entry["pairs"])
        rows = [{"label": "before", "system": self.entry["encoder"]}, {"label": "after", "system": f"{target}_encoder"}]
        text = [
            {"label": name, "data": {"whole": {"corpora": [name]}, "used": {"examples": [f"{target}_pairs"], "subset": name}}}
            for name in corpora
        ]
        counted = [("read", "read", "whole"), ("kept by the filters", "kept", "whole"), ("trained on", "rows", "used")]
        found: dict[str, Any] = {
            f"{target}_text": {
                "title": f"Parallel text of {title}",
                "print": {"decimals": 0, "scale_by": 1},
                "columns": [{"label": label, "count": count, "of": of} for label, count, of in counted],
                "rows": text,
            }
        }
        if columns:
            caption = "No set of the table was trained on: its sentences were taken out of the training text."
            table = {"title": f"{title}: before and after", "caption": caption, "print": {"decimals": 1, "scale_by": 100}}
            found[target] = {**table, "columns": columns, "rows": rows}
        return found


def expand_pair(name: str, file: YamlFile, known: Mapping[str, Mapping[str, Any]]) -> Expanded:
    """Return the entries that a pair's file stands for.

    Args:
        name: of the file.
        file: checked against its schema.
        known: sources, corpora, encoders and tasks by id.

    Raises:
        InputError: a name that nothing has; names file, line and the nearest.
    """
    return _Pair(name, file, known).expand()
