"""The model card of a trained system: README.md of each saved encoder, made from lineage; equal runs give equal cards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from crosslign.entries.resolved import RunRecipe, Start
from crosslign.files import read_json, write_text
from crosslign.files.lineage import lineage_path, sidecar_if_there
from crosslign.tasks.records import checked_records
from crosslign.version import __version__

PAPERS = {
    "msimcse": "Wang, Wu and Neubig (2022): English Contrastive Learning Can Learn Universal Cross-lingual Sentence Embeddings. EMNLP.",
    "moco_bert": "Wang, Zhao and Liu (2021): Aligning Cross-lingual Sentence Representations with Dual Momentum Contrast. EMNLP.",
    "scl": "Wang, Di, Huang, Lai, Ouchi, Chen and Xu (2022): Supervised Contrastive Learning for Cross-lingual Transfer Learning. CCL.",
    "mpcl": "Zhao, Wu, Cai and Tsuruoka (2023): Leveraging Multi-lingual Positive Instances in Contrastive Learning to Improve Sentence "
    "Embedding. arXiv:2309.08929.",
    "emma_x": "Guo et al. (2023): EMMA-X: An EM-like Multilingual Pre-training Algorithm for Cross-lingual Representation Learning. "
    "arXiv:2310.17233.",
}
"""Whose method a paper's file has."""
METHODS = {
    "infonce": "msimcse",
    "momentum_contrast": "moco_bert",
    "alignment": "scl",
    "supervised_contrastive": "scl",
    "multi_positive_infonce": "mpcl",
    "gmm_ranks": "emma_x",
    "rank_infonce": "emma_x",
}
"""The paper that an objective comes from; it is the method of a recipe whose own file is none of `PAPERS`."""

USE = [
    "```python",
    "from sentence_transformers import SentenceTransformer",
    "",
    'vectors = SentenceTransformer("<this folder>").encode(["…"])',
    "```",
]

FOLDER = "<this folder>"
"""Stands for the path of the encoder in the card that its folder holds: the folder may be moved."""

OWN_USE = """SentenceTransformer cannot express this pooling, and would compute different vectors.

```python
from pathlib import Path

from crosslign.encoders.encode import encode
from crosslign.encoders.model import Model

model = Model.load({{"{member}": Path("<this folder>")}})
vectors = encode(model, ["…"], ["{lang}"], {readout})
```"""
"""How the vectors of a system are got whose readout `write_modules` leaves out."""

CITATION = f"crosslign contributors (2026): crosslign, version {__version__} (CITATION.cff)."


def _yaml(content: Mapping[str, Any]) -> str:
    writer, text = YAML(typ="safe", pure=True), StringIO()
    writer.default_flow_style, writer.sort_base_mapping_type_on_output = False, False  # type: ignore[assignment]
    writer.dump(dict(content), text)
    return text.getvalue()


def _data(examples: Mapping[str, Path]) -> tuple[list[str], list[str]]:
    """Return a line for each training set, and their languages."""
    lines, langs = [], set()
    for name, path in sorted(examples.items()):
        if not (lineage := sidecar_if_there(lineage_path(path))):
            lines.append(f"- {name}")
            continue
        counts, entry = lineage["counts"], (lineage["recipe"] or {}).get("entry", {})
        langs.update(counts.get("per_language", {}))
        sources = [*entry.get("from", []), *entry.get("of", [])]
        kept_out = ", ".join(sorted(counts.get("decontamination", {}).get("evaluations", {})))
        lines.append(
            f"- {name}: {counts.get('rows', '?')} rows of shape {counts.get('shape', '?')}"
            + (f", from {', '.join(sources)}" if sources else "")
            + (f"; texts of {kept_out} kept out" if kept_out else "")
            + (". Synthetic data, not the real data" if lineage["stand_in"] else "")
        )
    return lines, sorted(langs)


def _recipe(recipe: RunRecipe) -> list[str]:
    shown = {key: recipe[key] for key in ("base", "parts", "terms", "train", "select", "readout", "seed") if recipe.get(key)}
    return ["```yaml", _yaml(shown).rstrip(), "```"]


@dataclass(frozen=True)
class Known:
    """What is known of an encoder only after its folder was sealed.

    Attributes:
        folder: where it lies.
        base_model: what hubs call the model that its training started from; empty where that is on no hub.
        scores: lines of `score_lines`.
        index: what `model_index` returned, where programs are to read the scores.
    """

    folder: Path
    base_model: str = ""
    scores: Sequence[str] = ()
    index: Sequence[Mapping[str, Any]] = ()


def hub_name(entry: Mapping[str, Any]) -> str:
    """Return what hubs call a base encoder, from its entry in the catalog; empty where neither `hub` nor its citation names it."""
    cited = re.match(r"[\w.-]+/[\w.-]+", str(entry.get("citation", "")))
    return str(entry.get("hub", "")) or (cited[0] if cited else "")


def papers_of(recipe: RunRecipe) -> list[str]:
    """Return the papers whose method a recipe has: that of its own file, else those that its objectives come from."""
    own = recipe.get("paper", "")
    named = [own] if own in PAPERS else [METHODS.get(term["objective"], "") for term in recipe["terms"]]
    return [PAPERS[name] for name in dict.fromkeys(named) if name]


def _use(recipe: RunRecipe, member: str, written: bool) -> list[str]:
    if written:
        return USE
    lang = "en" if member in ("main", "other") else member
    return OWN_USE.format(member=member, lang=lang, readout=dict(recipe["readout"])).splitlines()


def _origin(base: Start, member: str) -> str:
    """Return what an encoder starts from: a base encoder, or a checkpoint of another run."""
    if "run" in base:
        return f"checkpoint `{base['checkpoint']}` of the run `{base['run']}`"
    return f"`{base['members'][member]}`"


def _selection(recipe: RunRecipe, run: Path, checkpoint: str) -> list[str]:
    """Return what a checkpoint was chosen by, which may be another evaluation's test data (MPCL)."""
    path = run / "selection.json"
    found = read_json(path)["best"].get(checkpoint) if path.is_file() else None
    if found is None:
        return []
    select = recipe["select"][checkpoint]
    return [f"Chosen at step {found['step']} by {select['metric']} on {select['task']}, {select['subset']}: {found['value']:.4f}."]


def _main_scores(files: Iterable[Path]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield task, readout and record of the main scores in score files.

    Raises:
        InputError: as `checked_records`.
    """
    for path in sorted(files):
        records, content = checked_records(path), read_json(path)
        for record in records:
            if record.get("main"):
                yield str(content.get("task", path.stem)), content.get("readout", path.parent.name), record


def score_lines(files: Iterable[Path]) -> list[str]:
    """Return a table of the main scores in score files; empty where there is none. Errors are those of `checked_records`."""
    rows = []
    for task, readout, record in _main_scores(files):
        value = "undefined" if record["value"] is None else f"{record['value']:.4f}"
        status = record.get("status", "ok")
        note = "" if status == "ok" else f" ({status}: {record.get('reason', '')})"
        rows.append(f"| {task} | {record['subset']} | {record['metric']} | {readout} | {value}{note} |")
    return ["| evaluation | subset | metric | embedding settings | value |", "|---|---|---|---|---|", *rows] if rows else []


def model_index(name: str, files: Iterable[Path]) -> list[dict[str, Any]]:
    """Return the main scores of score files as hubs read them in a card's front matter; empty where there is none.

    Args:
        name: of the model.
        files: score files.
    """
    results = []
    for task, _, record in _main_scores(files):
        if record["value"] is not None:
            dataset = {"type": task, "name": task, "config": record["subset"], "split": "test"}
            metric = {"type": record["metric"], "value": record["value"], "name": f"{record['subset']} {record['metric']}"}
            results.append({"task": {"type": "sentence-similarity"}, "dataset": dataset, "metrics": [metric]})
    return [{"name": name, "results": results}] if results else []


def model_card(
    recipe: RunRecipe, run: Path, checkpoint: str, member: str, lineage: Mapping[str, Any], examples: Mapping[str, Path],
    known: Known | None = None,
) -> str:  # fmt: skip
    """Return the card of one encoder.

    Args:
        recipe: the run's resolved recipe.
        run: the run's folder, for what selection saw.
        checkpoint: name of the checkpoint.
        member: `main`, or the language that the encoder reads.
        lineage: `licences`, `stand_in` and `counts` of the run.
        examples: training sets by name, with their lineage beside them.
        known: what is known by now, of a card that is printed or uploaded; a card in a folder has none of it.
    """
    data, langs = _data(examples)
    licences = sorted(lineage["licences"])
    written = (run / checkpoint / member / "modules.json").is_file()
    tag = "sentence-transformers" if written else "transformers"
    front = {
        "language": langs or ["multilingual"],
        "license": "other",
        "license_name": "; ".join(licences) or "not stated",
        **({"base_model": known.base_model} if known and known.base_model else {}),
        "library_name": tag,
        "pipeline_tag": "sentence-similarity",
        "tags": [tag, "feature-extraction", "sentence-similarity", "crosslign"],
        **({"model-index": [*known.index]} if known and known.index else {}),
    }
    mark = lineage["counts"].get("collapsed", {}).get(checkpoint, "")
    papers = papers_of(recipe) if known else [PAPERS[name] for name in [recipe.get("paper", "")] if name in PAPERS]
    scores = known.scores if known else ()
    own = f"Checkpoint `{checkpoint}`, member `{member}`, of the run `{recipe['run_id']}`"
    sections: list[tuple[str, list[str]]] = [
        ("", [f"{own}; it starts from {_origin(recipe['base'], member)}."]),
        ("", [f"**Collapsed**: {mark}. Its vectors are meaningless."] if mark else []),
        ("", ["Trained on synthetic data: it only shows that the workflow runs."] if lineage["stand_in"] else []),
        ("Data", data),
        ("Licences", [f"- {licence}" for licence in licences] or ["None is stated."]),
        ("Recipe", _recipe(recipe)),
        ("Scores", [*_selection(recipe, run, checkpoint), *scores] or ["No scores are known here; see the project's tables."]),
        ("Use", _use(recipe, member, written)),
        ("Citation", [f"- {text}" for text in (*papers, CITATION)]),
    ]
    body = [f"# {recipe['system']}"]
    for title, lines in sections:
        if lines:
            body += ["", *([f"## {title}", ""] if title else []), *lines]
    text = "\n".join(body).replace(FOLDER, str(known.folder)) if known else "\n".join(body)
    return f"---\n{_yaml(front)}---\n\n{text}\n"


def write_cards(recipe: RunRecipe, run: Path, lineage: Mapping[str, Any], examples: Mapping[str, Path]) -> None:
    """Write README.md into every member's folder of every checkpoint of a run."""
    for config in sorted(run.glob("*/*/config.json")):
        folder = config.parent
        card = model_card(recipe, run, folder.parent.name, folder.name, lineage, examples)
        write_text(folder / "README.md", card)
