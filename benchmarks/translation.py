"""Sentences per second of the translator `ctranslate2` beside `generate` of transformers, for the same weights.

No translation model comes as a package, so the weights are drawn: the shape of an OPUS-MT model (Marian, 6 + 6 layers of 512, 32,000
words), which never ends a sentence by itself, so every translation has the same number of tokens. Sentences are the project's own English
ones. Both take batches of 32 sentences of like length and the same threads; they take turns, and the models are loaded before the clock
starts. Greedy translations in float32 must be equal word by word (beams are pruned differently, so their share is printed); 8-bit weights
are timed too. Prints machine, versions, medians in wall and processor time, and as its last line
`ratio: <transformers in float32 / ours in float32>`.

    python benchmarks/translation.py --sentences 128 --tokens 32 --threads 2
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from _common import machine, parser, timed, versions

from crosslign.paths import CATALOG
from crosslign.threads import limit_threads

BATCH = 32
WORDS = 32_000

Translate = Callable[[list[str]], list[str]]


def own_sentences() -> list[str]:
    """Return the distinct English sentences that the project holds."""
    files = [CATALOG / "resources" / "written" / name for name in ("sts_en.tsv", "nli_en.tsv")]
    cells = (cell for path in files for line in path.read_text(encoding="utf-8").splitlines()[1:] for cell in line.split("\t"))
    return list(dict.fromkeys(cell for cell in cells if " " in cell))


def marian_folder(folder: Path, texts: list[str], seed: int) -> Path:
    """Write a Marian model of drawn weights, and a tokenizer trained on the texts."""
    import sentencepiece
    import torch
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    (folder / "text.txt").write_text("\n".join(texts), encoding="utf-8")
    more: dict[str, Any] = {"vocab_size": 2000, "hard_vocab_limit": False, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(input=str(folder / "text.txt"), model_prefix=str(folder / "source"), **more)
    (folder / "source.model").rename(folder / "source.spm")
    (folder / "target.spm").write_bytes((folder / "source.spm").read_bytes())
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    found = [piece for n in range(len(pieces)) if (piece := pieces.id_to_piece(n)) not in ("<s>", "</s>", "<unk>")]
    names = ["</s>", "<unk>", *found, *(f"unused{n}" for n in range(WORDS - 3 - len(found))), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({name: n for n, name in enumerate(names)}))
    named = {"source_spm": "source.spm", "target_spm": "target.spm", "vocab": "vocab.json"}
    files: dict[str, Any] = {name: str(folder / file) for name, file in named.items()}
    MarianTokenizer(**files, source_lang="en", target_lang="de").save_pretrained(folder)
    torch.manual_seed(seed)
    sizes: dict[str, Any] = {"d_model": 512, "encoder_layers": 6, "decoder_layers": 6, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048}
    heads: dict[str, Any] = {"encoder_attention_heads": 8, "decoder_attention_heads": 8, "max_position_embeddings": 512}
    special: dict[str, Any] = {"pad_token_id": WORDS - 1, "eos_token_id": 0, "forced_eos_token_id": 0, "decoder_start_token_id": WORDS - 1}
    model = MarianMTModel(MarianConfig(vocab_size=WORDS, init_std=0.2, **sizes, **heads, **special))  # so that translations differ
    with torch.no_grad():  # as trained models have it
        model.model.decoder.embed_tokens.weight[special["pad_token_id"]] = 0
    model.save_pretrained(folder)
    return folder


def peer_way(folder: Path, tokens: int, beam: int) -> Translate:
    """Return transformers' own search, in batches of like length."""
    import torch
    from transformers import MarianMTModel, MarianTokenizer

    tokenizer = MarianTokenizer.from_pretrained(folder)
    model: Any = MarianMTModel.from_pretrained(folder)
    model.eval()

    def translate(texts: list[str]) -> list[str]:
        order = sorted(range(len(texts)), key=lambda n: -len(texts[n]))
        found = [""] * len(texts)
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            inputs = tokenizer([texts[n] for n in batch], return_tensors="pt", padding=True, truncation=True, max_length=tokens)
            with torch.inference_mode():
                made = model.generate(**inputs, num_beams=beam, do_sample=False, max_new_tokens=tokens)
            for place, text in zip(batch, tokenizer.batch_decode(made, skip_special_tokens=True), strict=True):
                found[place] = " ".join(text.split())
        return found

    return translate


def own_way(folder: Path, tokens: int, beam: int, compute_type: str) -> Translate:
    """Return the project's translator."""
    from crosslign.views import TRANSLATORS, TranslatorSetting

    setting = TranslatorSetting("benchmark", ["en"], ["de"], {})
    options = {"beam": beam, "batch_tokens": BATCH * tokens * beam, "max_length": tokens, "device": "cpu", "compute_type": compute_type}
    engine = TRANSLATORS.get("ctranslate2")(setting, model=str(folder), **options)  # type: ignore[call-arg]
    return lambda texts: [text or "" for text in engine.translate(texts, "en", "de")]


def main(args: argparse.Namespace) -> None:
    """Time the ways in turns, and compare what they give."""
    limit_threads(args.threads)
    texts = random.Random(args.seed).sample(own_sentences(), args.sentences)
    with tempfile.TemporaryDirectory() as name:
        folder = marian_folder(Path(name), own_sentences(), args.seed)
        ways = {"transformers float32": peer_way(folder, args.tokens, args.beam)}
        ways |= {f"ctranslate2 {kind}": own_way(folder, args.tokens, args.beam, kind) for kind in ("float32", "int8")}
        given = {way: translate(texts[:BATCH]) for way, translate in ways.items()}  # loads and warms up
        took: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        for _ in range(args.repeats):
            for way, translate in ways.items():
                wall, processor, given[way] = timed(partial(translate, texts))
                took[way].append((wall, processor))
    print(machine(), "|", versions("torch", "transformers", "ctranslate2"), "|", f"seed {args.seed}, {args.threads} threads")
    walls, processors = ({way: statistics.median(pair[n] for pair in pairs) for way, pairs in took.items()} for n in (0, 1))
    peer, ours, _ = ways
    print(f"{len(set(given[peer]))} different translations of {len(texts)} sentences")
    for way in ways:
        same = sum(a == b for a, b in zip(given[peer], given[way], strict=True)) / len(texts)
        rate = f"{len(texts) / walls[way]:.1f} sentences/s, {processors[way]:.1f} processor s"
        print(f"{way:<22} {rate}; {same:.1%} of the sentences as transformers")
    if args.beam == 1 and (given[peer] != given[ours] or len(set(given[peer])) < 3):
        raise SystemExit("the translations in float32 differ, or are all the same")
    print(f"ratio by processor time: {processors[peer] / processors[ours]:.2f}")
    print(f"ratio: {walls[peer] / walls[ours]:.2f}")


if __name__ == "__main__":
    arguments = parser(__doc__)
    arguments.add_argument("--sentences", type=int, default=128)
    arguments.add_argument("--tokens", type=int, default=32, help="tokens of each translation")
    arguments.add_argument("--beam", type=int, default=1)
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--seed", type=int, default=1)
    main(arguments.parse_args())
