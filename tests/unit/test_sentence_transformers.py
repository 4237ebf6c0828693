"""Objectives as losses of sentence-transformers: the judge is this library's own trainer, and sentence-transformers' own losses."""

import copy
import json
import subprocess
import sys

import pyarrow as pa
import pytest
import torch
import trial
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from tokenise import tokenised

import crosslign.sentence_transformers as adapter
from crosslign.encoders.dropout import set_dropout
from crosslign.encoders.model import Model
from crosslign.errors import InputError
from crosslign.files import write_rows
from crosslign.objectives.contract import plan_of
from crosslign.sentence_transformers import LossState, ObjectiveLoss, TextCollator
from crosslign.training.draws import derive, torch_generator
from crosslign.training.fit import fit
from crosslign.training.step import Stepper
from crosslign.training.terms import build_parts, named_terms
from crosslign.training.tokenised import Store

QUEUE = {"kind": "momentum_queue", "size": 13, "momentum": 0.9, "key_dropout": False}
FIRST_PHASE = (
    {"objective": "momentum_contrast", "queue": "queue", "in_batch_keys": True, "own_side_keys": True, "weight": 0.5},
    {"objective": "gmm_ranks", "classifier": "gmm", "labels": "interpolation", "scores": "scores", "queue": "queue"},
)
SECOND_PHASE = (
    {"objective": "rank_infonce", "queue": "queue", "classifier": "gmm", "scores": "scores", "anchor_parallel": 0.5},
    {"objective": "gmm_ranks", "classifier": "gmm", "labels": "encoder", "scores": "scores", "queue": "queue", "anchor_parallel": 0.5},
)
RANKED = {"queue": QUEUE, "gmm": {"kind": "gaussian_mixture", "ranks": 4}, "scores": {"kind": "rank_scores", "ranks": 4}}
CASES = {
    "infonce": ("triplets", [{"objective": "infonce", "mask_same_text": True, "hard_negative_weight": 0.7, "projection": "mlp"}],
                {"mlp": {"kind": "mlp_train_only"}}),
    "dropout pairs": ("alone", [{"objective": "infonce"}, {"objective": "momentum_contrast", "queue": "queue"}], {"queue": QUEUE}),
    "several positives": ("groups", [{"objective": "multi_positive_infonce", "rescale": "none"}], {}),
    "several positives, rescaled": ("groups", [{"objective": "multi_positive_infonce", "all_anchors": True}], {}),
    "momentum": ("pairs", [{"objective": "momentum_contrast", "queue": "queue"}], {"queue": QUEUE}),
    "dual encoder": ("pairs", [{"objective": "dual_encoder", "scale": "scale"}], {"scale": {"kind": "logit_scale"}}),
    "alignment": ("pairs", [{"objective": "alignment", "similarity": "cosine"}], {}),
    "regression": ("graded", [{"objective": "cosine_regression", "high": 5.0}], {}),
    "SCL retrieval": ("labelled", [{"objective": "supervised_contrastive", "form": "retrieval"}], {}),
    "two terms": ("pairs", [{"objective": "infonce", "weight": 0.3}, {"objective": "infonce", "temperature": 0.2}], {}),
    "EMMA-X, phase 1": ("pairs", FIRST_PHASE, RANKED),
    "EMMA-X, phase 2": ("pairs", SECOND_PHASE, RANKED),
}  # fmt: skip


@pytest.fixture(scope="module")
def rows(sentence_pairs):
    """Columns of data sets of sentence-transformers, by shape."""
    english, german = (list(side) for side in zip(*sentence_pairs, strict=True))
    turned = english[7:] + english[:7]
    pairs = {"anchor": english, "positive": german}
    return {
        "pairs": pairs,
        "alone": {"anchor": english},
        "triplets": pairs | {"negative": [f"{text} Nein!" for text in german[3:] + german[:3]]},
        "groups": pairs | {"also": [f"{a} {b}" if i % 5 else "" for i, (a, b) in enumerate(sentence_pairs)]},
        "graded": pairs | {"score": [i * 37 % 50 / 10 for i in range(len(english))]},
        "labelled": {"first": english, "second": turned, "view_a": german, "view_b": german[7:] + german[:7],
                     "label": [float(i % 3 == 0) for i in range(len(english))]},
    }  # fmt: skip


def as_examples(shape, columns, path):
    """Write the rows as this library's own training set."""
    names = [name for name in columns if name not in ("score", "label")]
    size = len(columns[names[0]])
    table = {"id": [f"row:{i}" for i in range(size)], "rows": [[f"row:{i}"] for i in range(size)]}
    sides = {"a": names[0]} | ({"b": names[1]} if len(names) > 1 else {}) | ({"c": "negative"} if "negative" in columns else {})
    if shape == "groups":
        members = [[columns[name][i] for name in names if columns[name][i]] for i in range(size)]
        table |= {"texts": members, "langs": [["und"] * len(texts) for texts in members]}
    else:
        for side, name in sides.items():
            table |= {f"{side}_text": columns[name], f"{side}_lang": ["und"] * size}
    if shape in ("graded", "labelled", "taught"):
        table["label"] = [value if isinstance(value, list) else [value] for value in columns.get("score", columns.get("label"))]
        if "view_a" in columns:
            table["views"] = [[{"kind": "full", "lang": "und", "a_text": a, "b_text": b}]
                              for a, b in zip(columns["view_a"], columns["view_b"], strict=True)]  # fmt: skip
    schema = "labelled_examples" if "label" in table else "pairs" if shape == "alone" else shape
    write_rows(path, pa.table(table), schema)
    return path


@pytest.fixture
def own_steps(tiny_encoder, tmp_path, one_thread):
    """Train with this library's trainer, without dropout; return of each step its rows, weights, gradients and loss."""

    def run(shape, columns, terms, parts, base=None):
        examples = as_examples(shape, columns, tmp_path / "train.parquet")
        recipe = trial.recipe(
            terms=[{"weight": 1.0, **term, "examples": "train", "batch": 8} for term in terms],
            parts=parts,
            train={"steps": 4, "dropout": 0.0, "max_length": 64, "learning_rate": 1e-4},  # steps of 1e-3 throw a tiny encoder far off
        )
        model = Model.load({"main": (base or tiny_encoder) / "main"})
        set_dropout(model, 0.0)
        made = build_parts(recipe, model, base)
        seen, steps = [], []
        real_batch, real_run = Store.batch, Stepper.run

        def batch(store, numbers, step):
            found = real_batch(store, numbers, step)
            seen.append((numbers.tolist() if hasattr(numbers, "tolist") else list(numbers), found[0]))
            return found

        def step_of(stepper, *given):
            weights = copy.deepcopy(model.state_dict())
            heads = {name: copy.deepcopy(dict(part.named_parameters())) for name, part in made.items()}
            found = real_run(stepper, *given)
            grads = {name: p.grad.to_dense().clone() for name, p in model.named_parameters() if p.grad is not None}
            steps.append((*seen[-1], weights, heads, grads, float(found.loss)))
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Store, "batch", batch)
            patch.setattr(Stepper, "run", step_of)
            sets = tokenised(recipe, {"train": examples}, model, tmp_path / "sets")
            fit(recipe, sets, model, made, None, tmp_path / ("second" if base else "run"), tmp_path / ("more" if base else "work"))
        return steps, recipe["seed"]

    return run


@pytest.fixture
def sentence_encoder(tiny_encoder, tmp_path):
    """The tiny encoder as a SentenceTransformer, without dropout."""
    model = Model.load({"main": tiny_encoder / "main"})
    config = model.member("main").backbone.config
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
    model.save(tmp_path / "saved", {"pooling": "mean", "max_length": 64})
    return SentenceTransformer(str(tmp_path / "saved" / "main"), device="cpu")


def collated(model, columns, numbers):
    batch = TextCollator(model.preprocess)([{name: values[i] for name, values in columns.items()} for i in numbers])
    names = [name.removesuffix("_input_ids") for name in batch if name.endswith("_input_ids")]
    features = [{key.removeprefix(f"{name}_"): value for key, value in batch.items() if key.startswith(f"{name}_")} for name in names]
    return features, batch.get("label")


@pytest.mark.parametrize("case", CASES)
def test_loss_and_gradients_are_those_of_the_own_trainer(case, rows, own_steps, sentence_encoder):
    shape, terms, parts = CASES[case]
    columns = rows[shape]
    if case == "infonce":  # each positive occurs twice in the set, for masks of equal texts
        columns = {**columns, "positive": [columns["positive"][place - place % 2] for place in range(len(columns["positive"]))]}
    steps, seed = own_steps(shape, columns, terms, parts)
    assert_exact_by_vectors(sentence_encoder, columns, terms, parts, seed, *steps[0][:2])
    loss = ObjectiveLoss(sentence_encoder, terms, parts, seed=seed)
    assert_as_trained(loss, columns, steps)


def test_emma_x_is_two_runs_as_in_the_own_trainer(rows, own_steps, sentence_encoder, tmp_path):
    """The second run's classifier and rank scores are those that the first left; its queue, copies and draws begin anew."""
    first, seed = own_steps("pairs", rows["pairs"], FIRST_PHASE, RANKED)
    loss = ObjectiveLoss(sentence_encoder, FIRST_PHASE, RANKED, seed=seed)
    assert_as_trained(loss, rows["pairs"], first)
    parts = {name: {**part, **({} if name == "queue" else {"start_from": "base"})} for name, part in RANKED.items()}
    second, _ = own_steps("pairs", rows["pairs"], SECOND_PHASE, parts, tmp_path / "run" / "last")
    take_weights(loss, *second[0][2:4])
    loss.save(tmp_path / "checkpoint-4")
    after = ObjectiveLoss(sentence_encoder, SECOND_PHASE, RANKED, seed=seed)
    after.load(tmp_path / "checkpoint-4")
    assert torch.equal(after.parts["scores"].scores, loss.parts["scores"].scores)
    assert_as_trained(after, rows["pairs"], second)


def take_weights(loss, weights, heads):
    """Give a loss the encoder and the heads of a step of the own trainer."""
    own = {name.replace("_registered.0.backbone.", ""): value for name, value in weights.items() if "special_ids" not in name}
    loss.model[0].model.load_state_dict(own)
    with torch.no_grad():
        for name, values in heads.items():
            for key, value in loss.parts[name].named_parameters():
                value.copy_(values[key]) if not name.startswith("queue") else None


def assert_as_trained(loss, columns, steps):
    """Loss and gradients of each step are those of the own trainer, from its weights."""
    assert len(steps) == 4
    for numbers, _, weights, heads, grads, expected in steps:
        take_weights(loss, weights, heads)
        loss.model.zero_grad()
        features, labels = collated(loss.model, columns, numbers)
        found = loss(features, labels)
        assert float(found.detach()) == pytest.approx(expected, rel=1e-5, abs=1e-6)
        if found.requires_grad:
            found.backward()
        loss.end_step()
        assert_gradients(grads, loss.model)


def assert_exact_by_vectors(model, columns, terms, parts, seed, numbers, batch):
    """In float64, loss and gradient by each text's vector are those of the objectives on the batch that this library's trainer drew."""
    features, labels = collated(model, columns, numbers)
    loss = ObjectiveLoss(copy.deepcopy(model), terms, parts, seed=seed).double()
    own_parts = dict(copy.deepcopy(loss.parts).items())
    draw = torch.Generator().manual_seed(5)
    values = {text: torch.randn(loss.model.get_embedding_dimension(), dtype=torch.float64, generator=draw)
              for column in features for text in column["texts"]}  # fmt: skip
    given, wanted = ({text: value.clone().requires_grad_() for text, value in values.items()} for _ in range(2))

    def rows_of(table, texts, keys):
        return torch.stack([table[text].detach() if keys else table[text] for text in texts])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapter, "_vectors", lambda _, column: rows_of(given, column["texts"], not torch.is_grad_enabled()))
        found = loss(features, labels)
    expected = torch.zeros((), dtype=torch.float64)
    for term, _ in named_terms(terms, "test"):
        inputs = plan_of(term.name, term.objective, batch, torch_generator(seed, "draw", "train", batch.step))
        vectors = {name: rows_of(wanted, item.texts, item.keys) for name, item in inputs.items()}
        torch.manual_seed(derive(seed, "loss", term.name, batch.step))
        expected = expected + term.weight * term.objective.loss(vectors, batch, own_parts).total
    assert float(found.detach()) == pytest.approx(float(expected.detach()), abs=1e-9)
    for one in (found, expected):
        if one.requires_grad:
            one.backward()
    for text, value in wanted.items():
        own, got = (torch.zeros_like(value) if leaf.grad is None else leaf.grad for leaf in (value, given[text]))
        torch.testing.assert_close(got, own, rtol=0, atol=1e-9)
    loss.end_step()  # keys of a queue that is float64 are, too


def assert_gradients(grads, model):
    """All gradients together differ by a hundred-thousandth of their length."""
    ours = {name.split("model.", 1)[-1]: parameter.grad for name, parameter in model.named_parameters()}
    pairs = [(gradient, ours[name.replace("_registered.0.backbone.", "")]) for name, gradient in grads.items()]
    apart = sum(float((own - got).square().sum()) if got is not None else float(own.square().sum()) for own, got in pairs) ** 0.5
    assert apart <= 1e-5 * sum(float(own.square().sum()) for own, _ in pairs) ** 0.5 + 1e-9


def test_infonce_is_the_loss_that_sentence_transformers_has_itself(rows, sentence_encoder):
    sentence_encoder.double()
    features, _ = collated(sentence_encoder, rows["triplets"], range(8))
    own = ObjectiveLoss(sentence_encoder, {"objective": "infonce", "temperature": 0.05})
    found = []
    for loss in (own, MultipleNegativesRankingLoss(sentence_encoder, scale=20.0)):
        sentence_encoder.zero_grad()
        plain = [{key: value for key, value in column.items() if key not in ("texts", "column")} for column in features]
        value = loss(features if loss is own else plain, None)
        value.backward()
        found.append((float(value), torch.cat([p.grad.flatten() for p in sentence_encoder.parameters() if p.grad is not None])))
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-9)
    torch.testing.assert_close(found[0][1], found[1][1], rtol=0, atol=1e-9)


def test_the_draws_of_a_term_leave_the_trainers_generators_alone(rows, sentence_encoder):
    """The generator goes on as if no loss had drawn; devices that are not trained on are not seeded, which takes time at each step."""
    loss = ObjectiveLoss(sentence_encoder, {"objective": "infonce", "projection": "mlp"}, {"mlp": {"kind": "mlp_train_only"}})
    features, _ = collated(sentence_encoder, rows["pairs"], range(4))
    before = torch.get_rng_state()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "manual_seed", None)
        first = loss(features, None)
    assert torch.equal(torch.get_rng_state(), before)
    assert float(loss(features, None).detach()) == float(first.detach())


def trained(model, rows, out, terms, parts, steps, resume=None, accumulate=1, **more):
    loss = ObjectiveLoss(model, terms, parts)
    arguments = SentenceTransformerTrainingArguments(
        str(out), max_steps=steps, per_device_train_batch_size=5, learning_rate=1e-3, save_steps=2, use_cpu=True, report_to=[],
        gradient_accumulation_steps=accumulate, disable_tqdm=True, logging_steps=1, seed=3, **more,
    )  # fmt: skip
    trainer = SentenceTransformerTrainer(
        model, arguments, Dataset.from_dict(rows), loss=loss, data_collator=TextCollator(model.preprocess), callbacks=[LossState(loss)]
    )
    trainer.train(resume_from_checkpoint=resume)
    return loss, trainer


@pytest.mark.parametrize("accumulate", [1, 2])
def test_copies_and_queues_move_once_an_optimiser_step(accumulate, rows, sentence_encoder, tmp_path):
    term = {"objective": "momentum_contrast", "queue": "queue"}
    moves = []
    with pytest.MonkeyPatch.context() as patch:
        kind = type(ObjectiveLoss(sentence_encoder, term, {"queue": QUEUE}).parts["queue"])
        real = kind.before_keys
        patch.setattr(kind, "before_keys", lambda self: (moves.append(1), real(self))[1])
        loss, _ = trained(
            sentence_encoder, rows["pairs"], tmp_path / "run", term, {"queue": QUEUE | {"size": 100}}, 3, accumulate=accumulate
        )
    assert (len(moves), loss.step) == (3, 3)
    assert int(loss.parts["queue"].filled[0]) == 3 * 2 * 5 * accumulate  # both sides of each row


def test_a_run_that_was_killed_resumes_to_the_same_weights_queue_and_head(rows, sentence_encoder, tmp_path):
    terms = [{"objective": "momentum_contrast", "queue": "queue"}, {"objective": "infonce", "projection": "mlp"}]
    parts = {"queue": QUEUE, "mlp": {"kind": "mlp_train_only"}}
    again = copy.deepcopy(sentence_encoder)
    whole, _ = trained(sentence_encoder, rows["pairs"], tmp_path / "whole", terms, parts, 4)
    for out in ("whole", "elsewhere"):
        resumed, _ = trained(again, rows["pairs"], tmp_path / out, terms, parts, 4, resume=str(tmp_path / "whole" / "checkpoint-2"))
        assert whole.step == resumed.step == 4
        for name, value in whole.state_dict().items():
            assert torch.equal(value, resumed.state_dict()[name]), name


def test_what_is_resumed_is_the_state_of_that_checkpoint(rows, sentence_encoder, tmp_path):
    """Of two runs one lies where the other was; a state of other weights, or none, is refused."""
    term, parts, again = {"objective": "momentum_contrast", "queue": "queue"}, {"queue": QUEUE}, copy.deepcopy(sentence_encoder)
    trained(sentence_encoder, rows["pairs"], tmp_path / "run", term, parts, 2)
    (tmp_path / "run").rename(tmp_path / "moved")
    turned = dict(zip(rows["pairs"], reversed(rows["pairs"].values()), strict=True))
    trained(again, turned, tmp_path / "run", term, parts, 2)
    given = str(tmp_path / "moved" / "checkpoint-2")
    with pytest.raises(InputError, match=r"crosslign_loss\.safetensors: .*weights.*resume_from_checkpoint"):
        trained(again, rows["pairs"], tmp_path / "new", term, parts, 4, resume=given)
    trained(again, rows["pairs"], tmp_path / "new", term, parts, 4, resume=given, resume_from_checkpoint=given)
    (tmp_path / "moved" / "checkpoint-2" / "crosslign_loss.safetensors").unlink()
    with pytest.raises(InputError, match=r"crosslign_loss\.safetensors: .*missing"):
        trained(again, rows["pairs"], tmp_path / "new", term, parts, 4, resume=given, resume_from_checkpoint=given)


def test_each_of_several_data_sets_keeps_the_state_of_its_loss(rows, sentence_encoder, tmp_path):
    def run(out, resume=None):
        model = copy.deepcopy(sentence_encoder)
        sets = {name: Dataset.from_dict(rows["pairs"]) for name in ("one", "other")}
        losses = {name: ObjectiveLoss(model, {"objective": "momentum_contrast", "queue": "queue"}, {"queue": QUEUE}) for name in sets}
        arguments = SentenceTransformerTrainingArguments(
            str(out), max_steps=6, per_device_train_batch_size=5, save_steps=3, use_cpu=True, report_to=[], disable_tqdm=True, seed=3
        )
        trainer = SentenceTransformerTrainer(
            model, arguments, sets, loss=losses, data_collator=TextCollator(model.preprocess), callbacks=[LossState(losses)]
        )
        trainer.train(resume_from_checkpoint=resume)
        return losses

    whole, resumed = run(tmp_path / "run"), run(tmp_path / "run", str(tmp_path / "run" / "checkpoint-3"))
    assert sum(loss.step for loss in whole.values()) == 6
    assert all(loss.step for loss in whole.values())
    for name, loss in whole.items():
        assert all(torch.equal(value, resumed[name].state_dict()[key]) for key, value in loss.state_dict().items())


@pytest.mark.long
def test_the_saved_model_is_an_ordinary_one(rows, sentence_encoder, tmp_path):
    """Another process, in which this library cannot be imported, loads it and gives the same vectors."""
    _, trainer = trained(sentence_encoder, rows["groups"], tmp_path / "run", {"objective": "multi_positive_infonce"}, {}, 2)
    trainer.save_model(str(tmp_path / "saved"))
    program = (
        "import sys, json; sys.modules['crosslign'] = None\n"
        "from sentence_transformers import SentenceTransformer\n"
        "print(json.dumps(SentenceTransformer(sys.argv[1], device='cpu').encode(['Hello there.']).tolist()))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "saved")], capture_output=True, text=True, check=True)
    (vector,) = json.loads(done.stdout.splitlines()[-1])
    assert vector == pytest.approx(trainer.model.encode("Hello there.").tolist(), abs=1e-6)


@pytest.mark.parametrize(
    ("term", "said"),
    [
        ({"objective": "cross_entropy", "part": "head"}, "SoftmaxLoss"),
        ({"objective": "infonce", "pooling": "cls"}, "Pooling module"),
        ({"objective": "infonce", "layer": 8}, "Pooling module"),
        ({"objective": "infonce", "batch": 8}, r"batch .*arguments"),
        ({"objective": "infonc"}, "infonce"),
        ({"objective": "infonce", "temprature": 1}, "temprature"),
    ],
)
def test_what_has_no_place_here_is_refused_by_name(term, said, sentence_encoder):
    with pytest.raises(InputError, match=said):
        ObjectiveLoss(sentence_encoder, term)


@pytest.mark.parametrize("name", ["keys", "train", "a.b"])
def test_a_part_with_a_name_of_torchs_own_is_refused(name, sentence_encoder):
    with pytest.raises(InputError, match=r"parts: .*name"):
        ObjectiveLoss(sentence_encoder, {"objective": "infonce"}, {name: {"kind": "logit_scale"}})


def test_several_models_pairs_read_as_one_and_batches_without_texts_are_refused(rows, sentence_encoder):
    with pytest.raises(InputError, match=r"encoder.*language"):
        ObjectiveLoss({"en": sentence_encoder, "zh": sentence_encoder}, {"objective": "infonce"})
    features, labels = collated(sentence_encoder, rows["labelled"], range(4))
    with pytest.raises(InputError, match="encode: sentences"):
        ObjectiveLoss(sentence_encoder, {"objective": "alignment", "similarity": "cosine"})(features, labels)
    with pytest.raises(InputError, match=r"learning_rate .*optimiser"):
        ObjectiveLoss(sentence_encoder, {"objective": "infonce"}, {"mlp": {"kind": "mlp_train_only", "learning_rate": 1e-3}})
    for columns in (rows["groups"], rows["triplets"] | {"negative_2": rows["triplets"]["negative"]}):
        with pytest.raises(InputError, match=r"column '(also|negative_2)' "):
            ObjectiveLoss(sentence_encoder, {"objective": "infonce"})(*collated(sentence_encoder, columns, range(4)))
    with pytest.raises(InputError, match="TextCollator"):
        ObjectiveLoss(sentence_encoder, {"objective": "infonce"})([{"input_ids": features[0]["input_ids"]}], None)
