"""A pair of languages as one file, `config/pairs/*.yaml`.

It stands for corpora, examples, a system, evaluations and tables of the kinds that the catalog and papers have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from crosslign.config.known_languages import canonical, evaluation_languages
from crosslign.config.yaml_files import YamlFile
from crosslign.errors import InputError
from crosslign.registry import nearest

FOLDER = "pairs"
PREFIX = "pair_"
"""Beginning of all ids of pairs' files."""
FILTERS: list[dict[str, Any]] = [
    {"length": {"min_words": 2, "max_words": 60}},
    {"length_ratio": {"max_ratio": 3.0}},
    {"identical_pair": {}},
    {"exact_duplicate": {}},
]
"""Filters of a corpus of OPUS where the file names none."""
PLACES = (
    "mSimCSE 3.2, parallel sentences, with English dropout pairs beside them.",
    "Reimers and Gurevych 2020: both sides of a pair learn a teacher's vector of the English one.",
)
"""Where a paper describes the training: by parallel sentences, by a teacher."""
PLACE_WITHOUT_PAIRS = "mSimCSE 3.2, each sentence paired with itself, and SCL 3.1, code-switched views, if a dictionary is named."
MOST, WEIGHT, LONGEST = 200_000, 0.1, 64
FLORES, FLORES_ARCHIVE, MEMBERS = "flores200_devtest", "flores200_archive", "flores200_dataset/devtest"
PAIRED = {"length_ratio", "identical_pair", "as_clean", "longest_common_substring", "non_zero_numerals", "terminal_punctuation"}
"""Filters that compare two sides."""
SWITCHED = {"builder": "code_switch", "langs": ["en"], "probability": 0.75, "views": 1, "strip_punctuation": True, "seed": 42}
"""How English sentences are code-switched (SCL 3.1)."""
TATOEBA = "tatoeba_v1"
OWN_FILES = {"tatoeba": "tatoeba.{code}-eng.{code}", "flores": "{code}.devtest"}
ENGLISH_FILES = {"tatoeba": "tatoeba.{code}-eng.eng", "flores": "eng_Latn.devtest"}
READ_BY: dict[str, dict[str, Any]] = {
    "tatoeba": {"reader": "tatoeba"},
    "flores": {"reader": "flores200", "options": {"parts": ["devtest"]}},
}
NOTES = {
    "tatoeba": "Tatoeba v1: nearest neighbour by cosine among the sentences of the pair.",
    "flores": "FLORES-200 devtest, 1,012 sentences: nearest neighbour by cosine.",
}
HEADINGS = {"tatoeba": "Tatoeba (accuracy)", "flores": "FLORES-200 devtest (accuracy)"}
PLANTED = 300
MINING_NOTE = (
    "300 pairs of this evaluation's sentences, among 300 others on each side without a translation there (fewer where it is small): F1 of "
    "mining by ratio margin, k = 4, at the threshold that is best on the same pairs."
)


@dataclass
class Expanded:
    """Entries that a pair's file stands for, by kind and id; those of `mine` are as in config.yaml."""

    sources: dict[str, Any] = field(default_factory=dict)
    corpora: dict[str, Any] = field(default_factory=dict)
    tasks: dict[str, Any] = field(default_factory=dict)
    mine: dict[str, Any] = field(default_factory=dict)
    paper: dict[str, Any] = field(default_factory=dict)


def target_of(name: str) -> str:
    """Return the target, and the beginning of all ids, of a pair's file: `pair_en_sw` of `en-sw.yaml`."""
    return PREFIX + name.replace("-", "_").replace("+", "_").lower()


def _langs(pair: str) -> list[str]:
    return [canonical(code) for code in pair.split("-")]


def opus_entries(target: str, item: Mapping[str, Any], filters: list[Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return id, source and corpus of a corpus of OPUS."""
    of = item.get("pair", item.get("lang", ""))
    name = f"{target}_{item['opus'].lower().replace('-', '_')}_{of.lower().replace('-', '_')}"
    langs = _langs(of)
    size = {"about_bytes": item["about_bytes"]} if "about_bytes" in item else {}
    licence = item.get("licence", "unknown")
    source = {
        "opus": item["opus"],
        "version": item["version"],
        "files": [{"name": f"{of}.txt.{'zip' if 'pair' in item else 'gz'}", **size}],
        "stand_in": "opus",
        "licence": licence,
        "citation": f"OPUS, {item['opus']} {item['version']} (Tiedemann 2012)",
    }
    codes = {lang: code for lang, code in zip(langs, of.split("-"), strict=True) if lang != code}
    options = {"skip_empty": True, "skip_broken": True, **({"codes": codes} if codes and "pair" in item else {})}
    corpus = {
        "kind": "bitext" if "pair" in item else "mono",
        "source": name,
        "reader": "moses" if "pair" in item else "text_lines",
        "options": options,
        "langs": langs,
        "licence": licence,
        "citation": source["citation"],
        "filters": filters if "pair" in item else [step for step in filters if not PAIRED & set(step)],
    }
    return name, source, corpus


class _Pair:
    """Expands one file."""

    def __init__(self, name: str, file: YamlFile, known: Mapping[str, Mapping[str, Any]]) -> None:
        self.target, self.file, self.entry, self.known = target_of(name), file, file.content, known
        self.out, self.own_sets = Expanded(), list[str]()

    def named(self, kind: str, name: str, *keys: str | int) -> Any:
        """Return an entry of the catalog.

        Raises:
            InputError: there is none; names the nearest.
        """
        if name not in self.known[kind]:
            what = f"unknown {kind.rstrip('s').replace('corpora', 'corpus')} {name!r}"
            raise InputError(what, where=self.file.where(keys), why=nearest(name, list(self.known[kind])))
        return self.known[kind][name]

    def text(self, key: str) -> list[str]:
        """Return the ids of the corpora that `text` or `monolingual` names; adds those of OPUS."""
        names, filters = [], list(self.entry.get("filters", FILTERS))
        if key == "text" and (clean := self.entry.get("clean")):
            self.named("corpora", clean["corpus"], "clean", "corpus")
            if not any("margin" in clean or "opus" in item for item in self.entry.get("text", [])):
                do = "Remove it, or name an encoder under its `margin`; corpora of the catalog have their own filters"
                raise InputError(
                    "a clean sample sets filter thresholds for text from OPUS, but the pair has none",
                    where=self.file.where(("clean",)),
                    do=do,
                )
            filters.append({"as_clean": {"corpora": [clean["corpus"]], **{name: clean[name] for name in clean if name == "keep"}}})
        for index, item in enumerate(self.entry.get(key, [])):
            if "corpus" in item:
                self.named("corpora", item["corpus"], key, index, "corpus")
                names.append(item["corpus"])
                continue
            name, source, corpus = opus_entries(self.target, item, filters)
            self.out.sources[name], self.out.corpora[name] = source, corpus
            names.append(name)
        return names

    def _evaluation(self, kind: str, code: str, entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Add an evaluation corpus and its task; yield its columns, both directions."""
        name = f"{self.target}_{kind}_{code.lower()}"
        licence = self.known["sources"][entry["source"]]["licence"]
        self.out.corpora[name] = {"kind": "evaluation", "langs": [], "licence": licence, **entry, **READ_BY[kind]}
        self.own_sets.append(name)
        main = {"metric": "accuracy", "subset": code, "direction": "xx2en"}
        self.out.tasks[name] = {"scorer": "retrieval", "texts": {"test": name}, "output": "vectors", "main": main, "footnote": NOTES[kind]}
        for direction, arrow in (("xx2en", f"{code}→en"), ("en2xx", f"en→{code}")):
            yield {"group": HEADINGS[kind], "label": arrow, "task": name, **main, "direction": direction}

    def _mining(self, code: str, entry: Mapping[str, Any], sides: Mapping[str, str]) -> dict[str, Any]:
        """Add a set in BUCC's form, cut from the lines of an evaluation corpus, and its task; return its column."""
        name, pair = f"{self.target}_mining_{code.lower()}", "-".join(sides)
        own = {"langs": [*sides], "licence": self.known["sources"][entry["source"]]["licence"]}
        self.out.corpora[f"{name}_lines"] = {
            **{"kind": "bitext", "reader": "moses", "options": {"sides": sides}},
            **{key: entry[key] for key in ("source", "files") if key in entry},
            **{"whole": True, "filters": [], **own},
        }
        cut = {"reader": "planted_bitext", "from": [f"{name}_lines"], "options": {"pairs": [pair], "gold": PLANTED, "distractors": PLANTED}}
        self.out.corpora[name] = {"kind": "evaluation", **cut, **own}
        self.own_sets.append(name)
        main = {"protocol": "train_oracle", "metric": "f1", "subset": pair}
        self.out.tasks[name] = {
            **{"scorer": "bitext_mining", "texts": {"test": name}, "output": "vectors", "k": 4, "margin": "ratio"},
            **{"protocols": [main["protocol"]], "main": main, "footnote": MINING_NOTE},
        }
        return {"group": "Mining (F1)", "label": pair, "task": name, **main}

    def evaluations(self) -> list[dict[str, Any]]:
        """Return the columns of the evaluations that know the languages, and of mining in FLORES, else in Tatoeba; adds sets and tasks."""
        columns: list[dict[str, Any]] = []
        mined: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {}  # by language, of the last kind that knows it
        given = self.entry.get("evaluations", {})
        for kind, source in (("tatoeba", TATOEBA), ("flores", FLORES)):
            there = {file["name"] for file in self.known["sources"][source]["files"]}
            for index, code in enumerate(given.get(kind, [])):
                own, english = OWN_FILES[kind].format(code=code), ENGLISH_FILES[kind].format(code=code)
                entry, folder = {"source": source, "files": [own, english]}, ""
                if own not in there and code in evaluation_languages()["FLORES-200"]:
                    entry, folder = {"source": FLORES_ARCHIVE, "langs": [code]}, f"{MEMBERS}/"
                elif lacking := [name for name in (own, english) if name not in there]:
                    keys = ("evaluations", kind, index)
                    raise InputError(f"{source} has no {code!r}", where=self.file.where(keys), why=nearest(lacking[0], sorted(there)))
                columns += self._evaluation(kind, code, entry)
                lang = canonical(code)
                mined[lang] = code, entry, {lang: f"{folder}{own}", "en": f"{folder}{english}"}
        return [*columns, *(self._mining(*one) for one in mined.values())]

    def others(self) -> tuple[list[dict[str, Any]], list[str]]:
        """Return the columns of sentence similarity and of what was lost, and the evaluation corpora behind them."""
        columns, sets = [], []
        for key, heading in (("similarity", "Sentence similarity"), ("lost", "What others lost")):
            for index, column in enumerate(self.entry.get(key, [])):
                task = self.named("tasks", column["task"], key, index, "task")
                columns.append({"group": heading, **column})
                sets += task["texts"].values()
        return columns, list(dict.fromkeys(sets))

    def measured(self, read: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the training set of pairs: all that are read, or of these such with the margin of a clean sample's."""
        clean, pairs, whole = self.entry.get("clean", {}), f"{self.target}_pairs", f"{self.target}_read"
        if "margin" not in clean:
            return {pairs: read}
        self.named("encoders", clean["margin"], "clean", "margin")
        keep = {key: clean[key] for key in clean if key == "keep"}
        return {
            whole: read,
            pairs: {"builder": "margin_pairs", "of": [whole], "from": [clean["corpus"]], "teacher": clean["margin"], **keep},
        }

    def switched(self) -> dict[str, dict[str, Any]]:
        """Return the view of English sentences that are code-switched, where the file names dictionaries.

        Raises:
            InputError: no such dictionary, none with English, two of one language, or no English sentences.
        """
        found: dict[str, str] = {}
        for index, name in enumerate(self.entry.get("dictionaries", [])):
            where = self.file.where(("dictionaries", index))
            langs = self.named("corpora", name, "dictionaries", index)["langs"]
            if "en" not in langs or len(langs) != 2:
                raise InputError(
                    "only English sentences are code-switched, and this dictionary has no English words", where=where, why=f"it has {langs}"
                )
            if "english" not in self.entry:
                raise InputError(
                    "a dictionary needs English sentences to switch", where=where, do="Name some: `english: {corpus: simcse_wiki_head}`"
                )
            lang = next(lang for lang in langs if lang != "en")
            if lang in found:
                raise InputError(f"two dictionaries of {lang}", where=where, why=f"the other is {found[lang]}", do="Keep one")
            found[lang] = name
        return {f"{self.target}_switched": {**SWITCHED, "from": [self.entry["english"]["corpus"]], "dictionaries": found}} if found else {}

    def loss(self) -> dict[str, Any]:
        """Return the objective of a term: InfoNCE, or where the file names a teacher, the mean squared error to its vectors.

        Raises:
            InputError: no such teacher, no parallel text with English, which it reads, or a temperature, which that loss has not.
        """
        entry, train = self.entry, self.entry["train"]
        if "teacher" not in entry:
            return {"objective": "infonce", "temperature": train.get("temperature", 0.05)}
        self.named("encoders", entry["teacher"], "teacher")
        if not any("en" in _langs(pair) for pair in entry["pairs"]):
            raise InputError("a teacher reads English, but no pair includes it", where=self.file.where(("teacher",)), do="Leave it out")
        if "text" not in entry or "monolingual" in entry:
            why = "`monolingual` text has no translations" if "monolingual" in entry else "there is no `text`"
            raise InputError("a teacher needs translations", where=self.file.where(("teacher",)), why=why, do="Leave it out")
        if "temperature" in train:
            raise InputError("distillation has no temperature", where=self.file.where(("train", "temperature")), do="Leave it out")
        return {"objective": "sentence_transformers_loss", "loss": "MSELoss"}

    def trained_on(self, corpora: list[str], views: Mapping[str, Any]) -> tuple[dict[str, dict[str, Any]], dict[str, float]]:
        """Return the training sets, and the weights of those that are terms of the loss."""
        entry, target = self.entry, self.target
        langs = list(dict.fromkeys(lang for pair in entry["pairs"] for lang in _langs(pair)))
        examples: dict[str, dict[str, Any]] = {}
        if corpora:
            pairs, most = [_langs(pair) for pair in entry["pairs"]], entry.get("most", MOST)
            if {"monolingual", "dictionaries"} & set(entry):  # which stand in for the text of some
                held = {lang for name in corpora for lang in (self.out.corpora.get(name) or self.known["corpora"][name])["langs"]}
                pairs = [pair for pair in pairs if held.issuperset(pair)] or pairs
            read = {"builder": "parallel_pairs", "from": corpora, "langs": langs, "pairs": ["-".join(pair) for pair in pairs]}
            examples |= self.measured({**read, "max_per_pair": most})
        for name in views:
            examples[f"{name}_pairs"] = {"builder": "view_pairs", "from": [*views[name]["from"], name], "langs": ["en"]}
        if alone := self.text("monolingual"):
            examples[f"{target}_alone"] = {"builder": "dropout_pairs", "from": alone, "langs": langs}
        weights = dict.fromkeys((name for name in examples if not name.endswith("_read")), 1.0)
        if english := entry.get("english"):
            self.named("corpora", english["corpus"], "english", "corpus")
            examples[f"{target}_english"] = {"builder": "dropout_pairs", "from": [english["corpus"]], "langs": ["en"]}
            weights[f"{target}_english"] = english.get("weight", WEIGHT)
        if teacher := entry.get("teacher"):
            examples |= {f"{name}_taught": {"builder": "taught_pairs", "of": [name], "teacher": teacher} for name in weights}
            weights = {f"{name}_taught": weight for name, weight in weights.items()}
        return examples, weights

    def expand(self) -> Expanded:
        """Return all entries."""
        entry, target, train = self.entry, self.target, self.entry["train"]
        for index, pair in enumerate(entry["pairs"]):
            if len(set(_langs(pair))) == 1:
                why = "scripts and spellings of a language share one code here"
                raise InputError(f"{pair} names one language twice", where=self.file.where(("pairs", index)), why=why)
        readout = self.named("encoders", entry["encoder"], "encoder")["readout"]
        corpora, views = self.text("text"), self.switched()
        examples, weights = self.trained_on(corpora, views)
        shown = self.evaluations()
        others, sets = self.others()
        held_out = {"decontaminate": held} if (held := [*self.own_sets, *sets]) else {}
        settings = {"steps": train["steps"], "learning_rate": train["learning_rate"], "warmup_share": 0.1}
        loss, batch = self.loss(), train.get("batch", 64)
        system = {
            "place": PLACES["teacher" in entry] if corpora else PLACE_WITHOUT_PAIRS,
            "base": {"encoder": entry["encoder"]},
            "terms": [{**loss, "weight": weight, "examples": name, "batch": batch} for name, weight in weights.items()],
            "train": {**settings, "max_length": train.get("max_length", LONGEST)},
            "readout": readout,
            "seeds": train.get("seeds", [42]),
        }
        self.out.paper = {
            "views": views,
            "examples": {name: {**one, "seed": 42, **held_out} for name, one in examples.items()},
            "systems": {f"{target}_encoder": system},
            "tables": self._tables(corpora, [*shown, *others]),
        }
        if mine := entry.get("mine"):
            self.out.mine[f"{target}_mined"] = {"system": f"{target}_encoder", **mine}
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
        found: dict[str, Any] = {}
        if text:
            found[f"{target}_text"] = {
                "title": f"Parallel text of {title}",
                "print": {"decimals": 0, "scale_by": 1},
                "columns": [{"label": label, "count": count, "of": of} for label, count, of in counted],
                "rows": text,
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
