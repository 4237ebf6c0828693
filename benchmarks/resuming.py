"""A training killed half-way and started again, beside sentence-transformers' trainer with `resume_from_checkpoint`.

Both train the same small random encoder on the same numbered sentence pairs, save after half of the steps, and are killed (the process
ends at once, as by SIGKILL) a few steps later. Started again, each goes on from its save: counted are the seconds from the trainer's
call, libraries imported and weights loaded, to the end of the first new step. The peer's trainer reads its data again up to the step,
ours computes the order of step n from seed and n. A third run of each is not disturbed: the losses after the save must be those of the
run that was killed; ours bit for bit, the peer's are compared and said. Prints machine, versions, seed, medians, and as its last line
`ratio: <peer / ours>` of the seconds to the first new step.

    python benchmarks/resuming.py --steps 2000 --batch 32
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _common import ROOT, machine, parser, versions
from _training import LEARNING_RATE, TEMPERATURE, recipe_of, tokenised
from training_memory import tiny_encoder, write_examples

PAST = 3
"""Steps after the save at which a run is killed."""


def killed_at(step: int, stop: int | None) -> None:
    """End the process at once when a step is reached."""
    if stop is not None and step >= stop:
        os._exit(9)


def ours(folder: Path, work: Path, steps: int, batch: int, stop: int | None) -> dict[str, Any]:
    """Train with the project's trainer, from the start or from its last save."""
    from crosslign.encoders.model import Model
    from crosslign.training import fit as module

    marks: list[float] = []
    step = module._Run.step

    def noted(run: module._Run) -> Any:
        result = step(run)
        marks.append(time.perf_counter())
        killed_at(run.done, stop)
        return result

    module._Run.step = noted  # type: ignore[method-assign,assignment]
    options = argparse.Namespace(max_length=32, batch=batch, micro_batch=None, precision="fp32", threads=1)
    recipe = recipe_of(options, steps)
    recipe["train"] |= {"checkpoint_every": steps // 2, "checkpoint_minutes": 1e9}
    model = Model.load({"main": folder})
    start = time.perf_counter()
    module.fit(recipe, tokenised(recipe, work.parent / "pairs.parquet", model, work.parent), model, {}, None, work / "run", work / "work")
    lines = (work / "run" / "curve.jsonl").read_text(encoding="utf-8").splitlines()
    return {"first": marks[0] - start, "done": len(marks), "losses": [json.loads(line)["loss"] for line in lines][steps // 2 :]}


def peer(folder: Path, work: Path, steps: int, batch: int, stop: int | None) -> dict[str, Any]:
    """Train with sentence-transformers' trainer, from the start or from its last save."""
    import pyarrow.parquet as pq
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from transformers import TrainerCallback

    model = SentenceTransformer(str(folder), device="cpu")
    model.max_seq_length = 32
    marks: list[float] = []
    losses: list[float] = []

    class Timer(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            marks.append(time.perf_counter())
            killed_at(state.global_step, stop)

    class Loss(MultipleNegativesRankingLoss):
        def forward(self, *given: Any, **named: Any) -> Any:
            value = super().forward(*given, **named)
            losses.append(float(value["loss"] if isinstance(value, dict) else value))
            return value

    table = pq.read_table(work.parent / "pairs.parquet", columns=["a_text", "b_text"])
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(work / "peer"), num_train_epochs=1, per_device_train_batch_size=batch, learning_rate=LEARNING_RATE, warmup_steps=0,
        weight_decay=0.0, use_cpu=True, save_strategy="steps", save_steps=steps // 2, logging_strategy="no", report_to=[],
        disable_tqdm=True, seed=1,
    )  # fmt: skip
    dataset = Dataset.from_dict({"anchor": table["a_text"].to_pylist(), "positive": table["b_text"].to_pylist()})
    trainer = SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=dataset, loss=Loss(model, scale=1 / TEMPERATURE), callbacks=[Timer()]
    )
    saved = any((work / "peer").glob("checkpoint-*"))
    start = time.perf_counter()
    trainer.train(resume_from_checkpoint=saved)
    return {"first": marks[0] - start, "done": len(marks), "losses": losses[len(losses) - steps + steps // 2 :]}


def run(side: str, folder: Path, work: Path, args: argparse.Namespace, stop: int | None = None) -> dict[str, Any] | None:
    """Run one side in a process of its own; None where it was killed as asked."""
    work.mkdir(exist_ok=True)
    command = [sys.executable, __file__, f"--side={side}", f"--folder={folder}", f"--work={work}", f"--steps={args.steps}"]
    command += [f"--batch={args.batch}", *([f"--stop={stop}"] if stop else [])]
    variables = {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    if stop and done.returncode == 9:
        return None
    if stop or done.returncode:
        raise SystemExit(f"{side} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def compare(folder: Path, args: argparse.Namespace) -> None:
    """Kill and resume both in turns, check the losses, and print."""
    encoder = tiny_encoder(folder)
    write_examples(folder / "pairs.parquet", args.steps * args.batch)
    seconds: dict[str, list[float]] = {"ours": [], "peer": []}
    begin: dict[str, list[float]] = {"ours": [], "peer": []}
    apart: dict[str, float] = {}
    for repeat in range(args.repeats):
        for side in ("ours", "peer")[:: -1 if repeat % 2 else 1]:
            run(side, encoder, folder / f"{side}{repeat}", args, args.steps // 2 + PAST)
            resumed = run(side, encoder, folder / f"{side}{repeat}", args)
            whole = run(side, encoder, folder / f"{side}{repeat}-whole", args)
            if resumed is None or whole is None or (resumed["done"], whole["done"]) != (args.steps - args.steps // 2, args.steps):
                raise SystemExit(f"{side} did not go on from its save: {resumed}, {whole}")
            seconds[side].append(resumed["first"])
            begin[side].append(whole["first"])
            differences = [abs(a - b) for a, b in zip(resumed["losses"], whole["losses"], strict=True)]
            apart[side] = max(apart.get(side, 0.0), *differences)
    if apart["ours"]:
        raise SystemExit(f"our losses after the kill differ from those of an undisturbed run by up to {apart['ours']:.1e}")
    print(f"{machine()}, 1 thread; {versions('torch', 'transformers', 'sentence-transformers')}; seed 1")
    print(
        f"{args.steps:,} steps of {args.batch} pairs, saved after {args.steps // 2:,}, killed {PAST} steps later, {args.repeats} times each"
    )
    for side, found in seconds.items():
        first, fresh = statistics.median(found), statistics.median(begin[side])
        losses = "the losses of an undisturbed run" if not apart[side] else f"losses up to {apart[side]:.1e} from an undisturbed run's"
        print(f"{side}: first new step after {first:.2f} s ({fresh:.2f} s in a new run); {losses}")
    print(f"ratio: {statistics.median(seconds['peer']) / statistics.median(seconds['ours']):.2f}")


def main() -> None:
    """Compare, or run one side."""
    command = parser(__doc__)
    command.add_argument("--steps", type=int, default=2000)
    command.add_argument("--batch", type=int, default=32)
    command.add_argument("--repeats", type=int, default=2)
    command.add_argument("--side", choices=("ours", "peer"), help=argparse.SUPPRESS)
    command.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    command.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    command.add_argument("--stop", type=int, help=argparse.SUPPRESS)
    args = command.parse_args()
    if args.side:
        import torch

        torch.set_num_threads(1)
        way = {"ours": ours, "peer": peer}[args.side]
        print(json.dumps(way(args.folder, args.work, args.steps, args.batch, args.stop)))
        return
    with tempfile.TemporaryDirectory(prefix="crosslign-resuming-") as temporary:
        compare(Path(temporary), args)


if __name__ == "__main__":
    main()
