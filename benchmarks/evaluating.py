"""STS17 and Tatoeba scored beside mteb's tasks of these names: same sentences, weights, precision and threads.

Both get the loaded model and the sentences of the official files, and end with the same figures: Spearman's correlation of each STS17
track, accuracy and F1 of each Tatoeba language into English. mteb encodes each side of each subset by itself, with
`SentenceTransformer.encode` in its default setting; ours encodes each distinct sentence once, in batches of equal token count. They take
turns. Ours gives Tatoeba's other direction too, and in a second way the bootstrap intervals of every score. Scores must agree to
`--tolerance`. Prints machine, versions, medians in wall and processor time, and as its last line `ratio: <mteb / ours>`.

The official files are read from the folder that CROSSLIGN_MIRROR names, else from ../shared/mirror: sts17, tatoeba-v1.

    python benchmarks/evaluating.py --langs deu fra rus cmn jpn swh
    python benchmarks/evaluating.py --precision bf16 --tolerance 0.005   # ours in bf16, mteb in float32
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import warnings
from pathlib import Path
from typing import Any

from _common import encoder_folder, machine, official_files, parser, timed, versions

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation
from crosslign.encoders.encode import encode
from crosslign.encoders.model import Model
from crosslign.tasks.score import score
from crosslign.threads import limit_threads

Scores = dict[tuple[str, str, str], float]
"""By task, subset and metric."""
STS, RETRIEVAL, MINING = ("sts", "spearman"), ("retrieval", "accuracy"), ("bitext_mining", "weighted_f1")


def evaluations(mirror: Path, langs: list[str]) -> dict[str, Evaluation]:
    """Read the official files as the workflow does."""
    sts = {str(path): path for path in (mirror / "sts17").rglob("STS*.txt")}
    tatoeba = {path.name: path for path in (mirror / "tatoeba-v1").glob("tatoeba.*-eng.*")}
    made = {"STS17": EVALUATIONS.get("sts17")(Given(sts, {}, "sts17", ["en", "es", "ar"], None, 42))}
    return {**made, "Tatoeba": EVALUATIONS.get("tatoeba")(Given(tatoeba, {}, "tatoeba", langs, None, 42))}


def columns(evaluation: Evaluation) -> dict[str, dict[str, list[Any]]]:
    """Return mteb's columns of each subset: both sentences of each pair, and its grade."""
    text = dict(zip(evaluation.texts["text_id"].to_pylist(), evaluation.texts["text"].to_pylist(), strict=True))
    items = {(item["subset"], item["role"], item["item_id"]): text[item["text_id"]] for item in evaluation.items.to_pylist()}
    roles = ("first", "second") if ("first" in evaluation.items["role"].to_pylist()) else ("source", "target")
    found: dict[str, dict[str, list[Any]]] = {}
    for link in evaluation.gold.to_pylist():
        subset = found.setdefault(link["subset"], {"sentence1": [], "sentence2": [], "score": []})
        for column, role, side in zip(("sentence1", "sentence2"), roles, ("left", "right"), strict=True):
            subset[column].append(items[link["subset"], role, link[side]])
        subset["score"].append(link["score"])
    return found


def mteb_tasks(sets: dict[str, Evaluation]) -> list[tuple[str, Any, dict[str, str]]]:
    """Return mteb's tasks with their data in them, and our name of each of its subsets."""
    import datasets
    import mteb

    tasks = []
    for name, evaluation in sets.items():
        known = mteb.get_task(name).metadata.hf_subsets_to_langscripts
        given = columns(evaluation)
        turned = {subset: "-".join(reversed(subset.split("-"))) for subset in given}
        ours = {}
        for subset in given:
            theirs = next((one for one in (subset, turned[subset], f"{subset}-eng") if one in known), None)
            if theirs:
                ours[theirs] = subset
        task = mteb.get_task(name, hf_subsets=list(ours))
        task.dataset = {
            theirs: datasets.DatasetDict({"test": datasets.Dataset.from_dict(given[subset])}) for theirs, subset in ours.items()
        }
        task.data_loaded = True
        tasks.append((name, task, ours))
    return tasks


def by_mteb(model: Any, tasks: list[tuple[str, Any, dict[str, str]]]) -> Scores:
    """Score with mteb."""
    found: Scores = {}
    for name, task, ours in tasks:
        results = task.evaluate(model, "test", list(ours), encode_kwargs={"batch_size": 32, "show_progress_bar": False})
        for theirs, subset in ours.items():
            if name == "STS17":
                found[name, subset, "spearman"] = results[theirs]["cosine_spearman"]
            else:
                found[name, subset, "accuracy"], found[name, subset, "weighted_f1"] = results[theirs]["accuracy"], results[theirs]["f1"]
    return found


def ours(model: Model, sets: dict[str, Evaluation], precision: str, resamples: int) -> Scores:
    """Score with the project's own stages: vectors of each distinct sentence, then the scorers."""
    readout: Any = {"pooling": "mean", "max_length": 256, "normalise": True, "precision": precision}
    found: Scores = {}
    for name, evaluation in sets.items():
        texts = [evaluation.texts[column].to_pylist() for column in ("text", "lang")]
        vectors = encode(model, texts[0], texts[1], readout)
        first = evaluation.gold["subset"][0].as_py()
        for scorer, metric in (STS,) if name == "STS17" else (RETRIEVAL, MINING):
            main = {"metric": metric, "subset": first}
            main |= {"direction": "xx2en"} if scorer == "retrieval" else {"protocol": "mteb"} if scorer == "bitext_mining" else {}
            task: Any = {"scorer": scorer, "texts": {"test": name}, "averages": {}, "main": main, "resamples": resamples}
            task |= {"protocols": ["mteb"]} if scorer == "bitext_mining" else {}
            for record in score(name, task, {"test": vectors}, {"test": evaluation}):
                if record.metric == metric and record.direction != "en2xx" and record.value is not None:
                    found[name, record.subset, metric] = record.value
    return found


def compare(folder: Path, mirror: Path, args: argparse.Namespace) -> None:
    """Time both in turns, check the scores, and print."""
    from mteb.models import SentenceTransformerEncoderWrapper
    from sentence_transformers import SentenceTransformer

    sets = evaluations(mirror, args.langs)
    tasks = mteb_tasks(sets)
    peer = SentenceTransformerEncoderWrapper(SentenceTransformer(str(folder), device="cpu"))
    own = Model.load({"main": folder})
    ways = {
        "mteb": lambda: by_mteb(peer, tasks),
        "ours": lambda: ours(own, sets, args.precision, 0),
        "ours, with intervals": lambda: ours(own, sets, args.precision, 1000),
    }
    times: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(args.repeats):
        found: dict[str, Scores] = {}
        for way, work in ways.items():
            wall, processor, found[way] = timed(work)
            times[way].append((wall, processor))
        for way in list(ways)[1:]:
            apart = {key: abs(found[way][key] - value) for key, value in found["mteb"].items()}
            worst = max(apart, key=lambda key: apart[key])
            if apart[worst] > args.tolerance:
                raise SystemExit(f"{worst}: mteb {found['mteb'][worst]:.6f}, {way} {found[way][worst]:.6f}")
    pairs = {name: sum(len(subset["score"]) for subset in columns(evaluation).values()) for name, evaluation in sets.items()}
    distinct = sum(evaluation.texts.num_rows for evaluation in sets.values())
    print(f"{machine()}, {args.threads} threads; {versions('mteb', 'sentence-transformers', 'torch')}; {args.encoder}, {args.precision}")
    every = 2 * sum(pairs.values())
    print(f"{pairs['STS17']:,} pairs of STS17, {pairs['Tatoeba']:,} of Tatoeba: {distinct:,} distinct sentences of {every:,}")
    print(f"{len(apart)} scores agree to {apart[worst]:.1e}, tolerance {args.tolerance}")
    walls, processors = ({way: statistics.median(pair[at] for pair in of) for way, of in times.items()} for at in (0, 1))
    for way, seconds in walls.items():
        print(f"{way}: {seconds:.1f} s wall, {processors[way]:.1f} s processor; mteb {processors['mteb'] / processors[way]:.2f} times that")
    print(f"ratio by processor time: {processors['mteb'] / processors['ours']:.2f}")
    print(f"ratio: {walls['mteb'] / walls['ours']:.2f}")


def main() -> None:
    """Find data and encoder, and compare."""
    command = parser(__doc__)
    command.add_argument("--langs", nargs="+", default=["deu", "fra", "rus", "cmn"], help="languages of Tatoeba, as its files name them")
    command.add_argument("--encoder", default="minilm_l6", help="an encoder of the catalog that a package holds")
    command.add_argument("--folder", type=Path, help="where the encoder lies, or is put")
    command.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    command.add_argument("--tolerance", type=float, default=0.002)
    command.add_argument("--threads", type=int, default=os.cpu_count())
    command.add_argument("--repeats", type=int, default=2)
    args = command.parse_args()
    mirror = official_files("sts17", "tatoeba-v1")
    limit_threads(args.threads)
    warnings.simplefilter("ignore")  # mteb's, of methods that sentence-transformers has renamed
    with tempfile.TemporaryDirectory() as temporary:
        compare(encoder_folder(args.folder or Path(temporary), args.encoder), mirror, args)


if __name__ == "__main__":
    main()
