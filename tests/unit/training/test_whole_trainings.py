"""Whole trainings by recipes of the papers' files equal those of a second, slow trainer: losses, norms, weights, parts, queues."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
import torch
from slow_trainer import SlowTrainer
from tokenise import tokenised
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer, BertConfig, BertModel, PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel

from crosslign.config.load import load_project
from crosslign.config.resolve import resolve
from crosslign.encoders.construct import construct_bert
from crosslign.encoders.model import Model
from crosslign.files import write_rows
from crosslign.objectives.parts.momentum_queue import MomentumQueue
from crosslign.objectives.parts.rank_network import RankNetwork
from crosslign.objectives.parts.rank_scores import RankScores
from crosslign.objectives.ranking import Candidates
from crosslign.objectives.terms.gmm_ranks import GMMRanks
from crosslign.objectives.terms.multi_positive_infonce import MultiPositiveInfoNCE
from crosslign.training.fit import fit
from crosslign.training.terms import build_parts
from crosslign.training.tokenised import Store

ROOT = Path(__file__).resolve().parents[3]
STEPS = 4
"""Of 20 rows in batches of 8: an epoch, whose last batch has four rows, and one step more."""
SMALLEST = {"hidden": 16, "heads": 2, "intermediate": 24}


@pytest.fixture(scope="module")
def project():
    papers = ["msimcse", "moco_bert", "scl", "mpcl", "emma_x"]
    return load_project(ROOT, {"scale": "paper", "papers": papers, "targets": ["all"]})


@pytest.fixture(scope="module")
def folders(tmp_path_factory, sentence_file):
    """Encoders without dropout: `main`, of XLM-R's architecture; `en` and `zh`, BERTs with vocabularies and depths of their own."""
    made = {}
    for name, layers, vocabulary, seed in (("main", 3, 400, 0), ("en", 2, 400, 1), ("zh", 3, 250, 2)):
        made[name] = tmp_path_factory.mktemp("encoders")
        construct_bert({**SMALLEST, "vocabulary": vocabulary, "layers": 1, "seed": 0}, [sentence_file], made[name])
        shape = {"hidden_size": 16, "num_hidden_layers": layers, "num_attention_heads": 2, "intermediate_size": 24}
        shape |= {
            "vocab_size": len(AutoTokenizer.from_pretrained(made[name])),
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
        }
        shape["initializer_range"] = 0.2  # at the usual 0.02 the vectors of all sentences are all but one
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if name == "main":
                model = XLMRobertaModel(XLMRobertaConfig(**shape, pad_token_id=0, type_vocab_size=1))
            else:
                model = BertModel(BertConfig(**shape))
        model.save_pretrained(made[name])
    _pairs_as_xlm_r(made["main"])
    return made


def _pairs_as_xlm_r(folder):
    """Give a BERT's tokenizer XLM-R's pairs: two separators between the sentences, no segments."""
    pieces = AutoTokenizer.from_pretrained(folder).backend_tokenizer
    specials = [(name, pieces.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    pieces.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] [SEP] $B [SEP]", special_tokens=specials)
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    made = PreTrainedTokenizerFast(
        tokenizer_object=pieces, **names, model_max_length=510, model_input_names=["input_ids", "attention_mask"]
    )
    made.save_pretrained(folder)


@pytest.fixture(scope="module")
def example_files(tmp_path_factory, sentence_pairs):
    """Training sets of the shapes."""
    folder, size = tmp_path_factory.mktemp("examples"), len(sentence_pairs)
    ids = [f"row:{i}" for i in range(size)]
    first = {"id": ids, "rows": [[i] for i in ids]}
    # a text's language picks its member: rows run in both directions, as those that the builder turns round
    turned = [i % 3 == 1 for i in range(size)]
    sides = [pair[::-1] if back else pair for pair, back in zip(sentence_pairs, turned, strict=True)]
    langs = [("zh", "en") if back else ("en", "zh") for back in turned]
    pairs = {
        f"{side}_{what}": [one[n] for one in source] for n, side in enumerate("ab") for what, source in (("text", sides), ("lang", langs))
    }
    anchors = {"a_text": [en for en, _ in sentence_pairs], "a_lang": ["en"] * size}
    some_mates = {
        "b_text": [pair[1] if i % 3 else None for i, pair in enumerate(sentence_pairs)],
        "b_lang": ["de" if i % 3 else None for i in range(size)],
    }
    alone = anchors | {"b_text": [None] * size, "b_lang": [None] * size}
    english, german = zip(*sentence_pairs, strict=True)
    triplets = {"c_text": [f"{german[i - 3]} Nein!" for i in range(size)], "c_lang": ["de"] * size}
    groups = {
        "texts": [[*pair, f"{pair[0]} {pair[1]}", pair[1].upper()] for pair in sentence_pairs],
        "langs": [["en", "de", "fr", "es"]] * size,
    }
    for count in range(0, size, 5):  # groups may differ in size
        groups["texts"][count], groups["langs"][count] = groups["texts"][count][:3], ["en", "de", "fr"]
    views = [_views(i, english, german) for i in range(size)]
    labelled = {"a_text": english, "a_lang": ["en"] * size, "b_text": english[7:] + english[:7], "b_lang": ["en"] * size}
    labelled |= {"label": [[float(i * i % 3 % 2)] for i in range(size)], "views": views, "supervised": [i % 6 > 0 for i in range(size)]}
    three = labelled | {"label": [[float(i * 5 // 3 % 3)] for i in range(size)]}
    several = labelled | {
        "b_text": [None] * size,
        "b_lang": [None] * size,
        "label": [[float(c) for c in {i % 4, i % 7 + 2}] for i in range(size)],
    }
    graded = labelled | {"label": [[(i * 37 % 50) / 10] for i in range(size)]}
    choices = labelled | {"group": [f"q{i // 4}" for i in range(size)], "label": [[float(i % 4 == i // 4 % 4)] for i in range(size)]}
    choices["supervised"] = [True] * size
    tables = {
        "pairs": (pairs, "pairs"), "streams": (some_mates | anchors, "pairs"),
        "triplets": (pairs | triplets, "triplets"), "groups": (groups, "groups"), "hard_groups": (groups | triplets, "groups"),
        "alone": (alone, "pairs"), "labelled": (labelled, "labelled_examples"), "three": (three, "labelled_examples"),
        "sentences": (labelled | {"views": [own[:1] for own in views]}, "labelled_examples"), "several": (several, "labelled_examples"),
        "graded": (graded, "labelled_examples"), "choices": (choices, "labelled_examples"),
    }  # fmt: skip
    paths = {}
    for name, (columns, schema) in tables.items():
        paths[name] = folder / f"{name}.parquet"
        write_rows(paths[name], pa.table(first | {key: list(value) for key, value in columns.items()}), schema)
    return paths


def _views(i, english, german):
    """Two full translations, two partial ones, and code-switched text: the last is missing in some rows."""
    other = (i + 7) % len(english)
    full = {"kind": "full", "lang": "de", "a_text": german[i], "b_text": german[other]}
    partial = {"kind": "partial", "lang": "de", "a_text": german[i], "b_text": english[other]}
    mixed = [" ".join(pair[n % 2] for n, pair in enumerate(zip(english[k].split(), german[k].split(), strict=False))) for k in (i, other)]
    switched = {"kind": "code_switch", "lang": "de", "a_text": mixed[0], "b_text": mixed[1]}
    return [full, full | {"a_text": f"{german[i]} {i}"}, partial, partial | {"a_text": english[i], "b_text": german[other]}, switched][
        : 5 - (i % 4 == 2)
    ]


class Spy:
    """Notes what a run reads and draws."""

    def __init__(self, patch):
        self.batches, self.drawn, self.random = {}, {}, {}
        real = {
            "open": Store.__init__,
            "batch": Store.batch,
            "groups": MultiPositiveInfoNCE.inputs,
            "ranks": Candidates.inputs,
            "loss": GMMRanks.loss,
        }
        real |= {name: getattr(torch, name) for name in ("rand", "randint")}

        def batch(store, rows, step):
            found = real["batch"](store, rows, step)
            self.batches.setdefault(step, {})[store.spied] = dict(found[0].columns)
            return found

        def opened(store, folder, model):
            real["open"](store, folder, model)
            store.spied = folder.name

        def groups(objective, batch, draw):
            inputs = real["groups"](objective, batch, draw)
            if "group" in inputs:
                texts, firsts = iter(inputs["group"].texts), []
                for members in batch.columns["texts"]:
                    firsts.append(members.index(next(iter([next(texts) for _ in members]))))
                self.drawn.setdefault(batch.step, {})["multi_positive_infonce", None] = firsts
            return inputs

        def ranks(candidates, batch, draw):
            inputs = real["ranks"](candidates, batch, draw)
            assert self.drawn.setdefault(batch.step, {}).setdefault("parallel", list(candidates._rows)) == candidates._rows
            return inputs

        def loss(objective, vectors, batch, parts):
            self.random = {}
            found = real["loss"](objective, vectors, batch, parts)
            if self.random:
                shares = self.random["rand"].tolist()
                self.drawn.setdefault(batch.step, {})["gmm_ranks", objective.classifier] = (int(self.random["randint"]), shares)
            return found

        def noting(name):
            def draw(*given, **options):
                self.random[name] = real[name](*given, **options)
                return self.random[name]

            return draw

        for owner, name, replacement in (
            (Store, "__init__", opened), (Store, "batch", batch), (MultiPositiveInfoNCE, "inputs", groups), (Candidates, "inputs", ranks),
            (GMMRanks, "loss", loss), (torch, "rand", noting("rand")), (torch, "randint", noting("randint")),
        ):  # fmt: skip
            patch.setattr(owner, name, replacement)


def small(recipe, sets, changes=None):
    """Return a recipe of a paper with tiny batches and queues, few steps, full precision and a rate that moves the weights."""
    recipe = deepcopy(recipe)
    recipe["select"] = {}
    for term in recipe["terms"]:
        term["examples"], term["batch"] = sets[term["examples"].removesuffix("-s42")], 8
        if recipe["train"].get("auto_micro_batch"):
            term["micro_batch"] = 3  # as where the batch does not fit
    for part in recipe["parts"].values():
        if "size" in part:
            part["size"] = 13  # neither a multiple of the batch nor more than two of them
        if part["kind"] == "classification":
            part["dropout"] = 0.0
    train = recipe["train"]
    train.pop("epochs", None)
    warm = {"warmup_steps": 2} if train["warmup_steps"] else {}
    train |= {"steps": STEPS, "precision": "fp32", "learning_rate": 1e-3, **warm, **(changes or {})}
    return recipe


def by_both(recipe, members, example_files, folder, base=None, prepare=None):
    """Train by the library and by the slow trainer, which is given the same start, batches and draws; return both."""
    model = Model.load(members)
    parts = build_parts(recipe, model, base)
    if prepare:
        prepare(parts)
    trained = {name: dict(part.named_parameters()) for name, part in parts.items() if not isinstance(part, MomentumQueue | RankScores)}
    start = {name: {key: value.detach().clone() for key, value in tensors.items()} for name, tensors in trained.items()}
    scores = {name: part.scores.double() for name, part in parts.items() if isinstance(part, RankScores)}
    slow = SlowTrainer(recipe, members, start, STEPS, scores)
    used = {term["examples"]: example_files[term["examples"]] for term in recipe["terms"]}
    with pytest.MonkeyPatch.context() as patch:
        spy = Spy(patch)
        fit(recipe, tokenised(recipe, used, model, folder / "sets"), model, parts, None, folder / "run", folder / "work")
    for step in range(STEPS):
        slow.step(step, spy.batches[step], spy.drawn.get(step, {}))
    return SimpleNamespace(folder=folder / "run", model=model, parts=parts, trained=trained, start=start), slow


def assert_equal(done, slow, members, loose=1e-5):
    """Both trainings have the same losses, norms, weights, parts, momentum copies, rank scores and queues."""
    curve = [json.loads(line) for line in (done.folder / "curve.jsonl").read_text().splitlines()]
    for ours, theirs in zip(curve, slow.log, strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=loose, abs=1e-7)
        assert ours["grad_norm"] == pytest.approx(theirs["norms"].get(None, 0.0), rel=10 * loose)
    for name, encoder in slow.members.items():
        before, ours = (model.member(name).backbone.state_dict() for model in (Model.load(members), done.model))
        _assert_moved_alike(before, ours, encoder.module.state_dict())
    for name, tensors in slow.parts.items():
        _assert_moved_alike(done.start[name], done.trained[name], tensors)
    for name, values in slow.scores.items():
        torch.testing.assert_close(done.parts[name].scores.double(), values, rtol=0, atol=1e-5)
    for name, queue in slow.queues.items():
        for number, member in enumerate(done.parts[name].names):
            torch.testing.assert_close(done.parts[name].keys(number).double(), torch.stack(queue.rows(member)), rtol=0, atol=1e-4)
            assert int(done.parts[name].pointer[number]) == queue.pointers[member]
            copy = done.parts[name].copies[member].backbone.state_dict()
            for key, value in queue.members[member].module.state_dict().items():
                torch.testing.assert_close(copy[key].double(), value, rtol=0, atol=1e-4 if "key.bias" not in key else 1e-1)


def _assert_moved_alike(before, ours, theirs):
    """Two trained tensors differ by far less than they moved; a bias that shifts all scores of a softmax has no gradient but rounding."""
    for name, value in theirs.items():
        if name.endswith("key.bias") or value.numel() == 1:
            continue
        moved = (value.detach() - before[name].double()).norm()
        assert (value.detach() - ours[name].detach().double()).norm() <= 1e-2 * moved + 1e-6, name


ONE, TWO = {"main": "main"}, {"en": "en", "zh": "zh"}
CASES = {
    "MS-E": ({"nli_english": "triplets"}, ONE),
    "MS-U": ({"wiki_en": "alone"}, ONE),
    "MB-nli": ({"en_zh": "pairs", "nli_pairs": "three"}, TWO),
    "MB-nomom": ({"en_zh": "pairs"}, TWO),
    "MB-poolmax": ({"en_zh": "pairs"}, TWO),
    "SCL-xnli-scl-tt": ({"xnli_tt": "three"}, ONE),
    "SCL-xnli-cl-transfer": ({"xnli_transfer": "three"}, ONE),
    "SCL-xnli-mva-symkl-lam10": ({"xnli_transfer": "three"}, ONE),
    "SCL-pawsx-scl-partial": ({"pawsx_transfer_rows": "labelled"}, ONE),
    "SCL-ret-scl": ({"pawsx_sentences": "sentences"}, ONE),
    "SCL-ret-mva": ({"pawsx_sentences": "sentences"}, ONE),
    "MP-xlmr-single-main": ({"xnli_single_main": "pairs"}, ONE),
    "MP-xlmr-multihn-main": ({"xnli_groups_hard_negatives": "hard_groups"}, ONE),
    "MP-labse-multi-main": ({"xnli_groups_main": "groups"}, {"main": "en"}),
    "xlm-r+xcopa_siqa": ({"ex_siqa_rows": "choices"}, ONE),
    "xlm-r+eurlex_labels": ({"ex_eurlex_rows": "several"}, ONE),
    "xlm-r+qe_regression": ({"ex_qe_rows": "graded"}, ONE),
    "xlm-r+lareqa_squad": ({"ex_squad_pairs": "pairs"}, ONE),
}
"""System of a paper: small sets in the place of its training sets, and encoders by member."""
CHANGED = {
    "MB-nli": {"weight_decay": 0.3, "clip": 0.5},  # strong enough to be seen after so few steps
    "MB-poolmax": {"weight_decay": 0.3, "decayed": "all"},
    "SCL-xnli-scl-tt": {"final_share": 0.5, "betas": [0.8, 0.99]},
}


@pytest.mark.parametrize("system", CASES)
def test_a_system_of_a_paper(system, project, folders, example_files, tmp_path):
    sets, members = CASES[system]
    recipe = small(resolve(project, system, 42), sets, CHANGED.get(system, {}))
    for part in recipe["parts"].values():
        part.pop("start_from", None)
    encoders = {name: folders[folder] for name, folder in members.items()}
    loose = 1e-4 if any(term.get("rescale") == "global" for term in recipe["terms"]) else 1e-5  # little differences are blown up
    assert_equal(*by_both(recipe, encoders, example_files, tmp_path), encoders, loose)


def _sharpen(parts):
    """Have an untrained network of ranks choose one rank here and another there."""
    for part in parts.values():
        if isinstance(part, RankNetwork):
            with torch.no_grad():
                part.first.weight.mul_(6)
                part.last.weight.mul_(8)


@pytest.fixture(scope="module")
def first_phase(project, folders, example_files, tmp_path_factory):
    recipe, encoders = _emma_x(project, "EX-p1", {"ex_pairs": "pairs"}), {"main": folders["main"]}
    return *by_both(recipe, encoders, example_files, tmp_path_factory.mktemp("first"), prepare=_sharpen), encoders


def _emma_x(project, system, sets):
    recipe = small(resolve(project, system, 42), sets)
    for part in recipe["parts"].values():
        if part["kind"] == "gaussian_mixture":
            part["target_cosines"] = [0.99, 0.97, 0.94, 0.9]  # those of these encoders' sentences, so that every rank is met
    return recipe


def test_emma_x_first_phase(first_phase):
    assert_equal(*first_phase)


@pytest.mark.parametrize("system", ["EX-p2-gmm4", "EX-p2-gmm8", "EX-p2-fcn4", "EX-p2-fixed"])
def test_emma_x_second_phase_goes_on_from_the_first(system, first_phase, project, example_files, tmp_path):
    base = first_phase[0].folder / "last"
    encoders, recipe = {"main": base / "main"}, _emma_x(project, system, {"ex_streams": "streams"})
    done, slow = by_both(recipe, encoders, example_files, tmp_path, base)
    assert_equal(done, slow, encoders)
    for name, tensors in done.start.items():  # what the first phase made, and trained on only where it is not frozen
        assert all(torch.equal(value, first_phase[0].parts[name].get_parameter(key)) for key, value in tensors.items())
        assert all(torch.equal(value, done.start[name][key]) for key, value in done.trained[name].items()) == (system == "EX-p2-fixed")
