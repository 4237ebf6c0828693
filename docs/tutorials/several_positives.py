"""Several positives for an anchor against one, at equal budget, in sentence-transformers' own trainer, on real text.

After `make demo`, or after the first line alone (it downloads 156 MB), from the repository's root:

    snakemake --cores all results/laptop/{encoders/minilm_l6,corpora/bible_train/all.parquet,corpora/tatoeba_bible/texts.parquet}
    python docs/tutorials/several_positives.py

An English encoder learns five languages from Bible verses. Both losses see the same number of sentences, in the same order of verses:
MultipleNegativesRankingLoss as pairs of English and one other language, MPCL's loss as groups of the six languages. Then both are asked
for the translations of held-out verses.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.util import cos_sim

from crosslign.sentence_transformers import LossState, ObjectiveLoss, TextCollator

RESULTS = Path("results/laptop")
LANGS = ("en", "de", "es", "fr", "ru", "zh")


def verses() -> list[dict[str, str]]:
    """Return the training verses that all languages have, one version each, in an order drawn once."""
    found: dict[str, dict[str, str]] = {}
    for row in pq.read_table(RESULTS / "corpora/bible_train/all.parquet").to_pylist():
        found.setdefault(row["group"], {}).setdefault(row["lang"], row["text"])
    whole = [texts for texts in found.values() if all(texts.get(lang) for lang in LANGS)]
    return [whole[i] for i in np.random.default_rng(42).permutation(len(whole))]


def held_out() -> dict[str, tuple[list[str], list[str]]]:
    """Return sources and English translations of the evaluation corpus by language."""
    folder = RESULTS / "corpora/tatoeba_bible"
    texts, items, gold = (pq.read_table(folder / f"{part}.parquet").to_pylist() for part in ("texts", "items", "gold"))
    text_of = {row["text_id"]: row["text"] for row in texts}
    item_of = {(row["subset"], row["item_id"]): text_of[row["text_id"]] for row in items}
    found: dict[str, tuple[list[str], list[str]]] = {}
    for link in gold:
        sources, targets = found.setdefault(link["subset"], ([], []))
        sources.append(item_of[link["subset"], link["left"]])
        targets.append(item_of[link["subset"], link["right"]])
    return found


def accuracy(model: SentenceTransformer) -> dict[str, float]:
    """Return the share of sources whose nearest English sentence is their translation, by language, and the mean."""
    found = {}
    for subset, (sources, targets) in held_out().items():
        nearest = cos_sim(model.encode(sources), model.encode(targets)).argmax(1)
        found[subset] = float((nearest == torch.arange(len(sources))).float().mean())
    return {**found, "mean": float(np.mean(list(found.values())))}


def train(name: str, rows: dict[str, list[str]], batch: int, steps: int, rate: float) -> dict[str, float]:
    """Train the base encoder with one of both losses; return its accuracies."""
    model = SentenceTransformer(str(RESULTS / "encoders/minilm_l6/main"), device="cpu")
    model.max_seq_length = 32
    ours = name == "several positives"
    term = {"objective": "multi_positive_infonce", "temperature": 0.05, "rescale": "none"}
    loss = ObjectiveLoss(model, term) if ours else MultipleNegativesRankingLoss(model, scale=20.0)
    arguments = SentenceTransformerTrainingArguments(
        str(RESULTS / "several_positives"), max_steps=steps, per_device_train_batch_size=batch, learning_rate=rate, warmup_steps=steps // 8,
        seed=42, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, logging_steps=50,
    )  # fmt: skip
    more = {"data_collator": TextCollator(model.preprocess), "callbacks": [LossState(loss)]} if ours else {}
    SentenceTransformerTrainer(model, arguments, Dataset.from_dict(rows), loss=loss, **more).train()
    return accuracy(model)


def main() -> None:
    """Print a line a loss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rate", type=float, default=5e-4)
    args = parser.parse_args()
    found = verses()
    pairs = [(texts["en"], texts[LANGS[1 + i % 5]]) for i, texts in enumerate(found)]
    one = {"anchor": [a for a, _ in pairs], "positive": [b for _, b in pairs]}
    several = {lang: [texts[lang] for texts in found] for lang in LANGS}
    base = SentenceTransformer(str(RESULTS / "encoders/minilm_l6/main"), device="cpu")
    base.max_seq_length = 32
    table = {"untrained": accuracy(base)}
    table["one positive (MultipleNegativesRankingLoss)"] = train("one positive", one, 48, args.steps, args.rate)
    table["several positives (multi_positive_infonce)"] = train("several positives", several, 16, args.steps, args.rate)
    print(f"{96 * args.steps} sentences each, learning rate {args.rate:g}, seed 42, torch {torch.__version__}")
    for name, row in table.items():
        print(f"{name:<45}" + "  ".join(f"{subset} {100 * value:.1f}" for subset, value in row.items()))


if __name__ == "__main__":
    main()
