"""What a training of sentence-transformers does around a loss: evaluations, frozen weights, dropout of keys, prompts, shorter vectors."""

import copy

import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss, MultipleNegativesRankingLoss
from test_sentence_transformers import QUEUE, collated, rows, sentence_encoder  # noqa: F401

import crosslign.sentence_transformers as adapter
from crosslign.errors import InputError
from crosslign.objectives.terms.infonce import InfoNCE
from crosslign.sentence_transformers import LossState, ObjectiveLoss, TextCollator

MOMENTUM = {"objective": "momentum_contrast", "queue": "queue"}


def state(loss):
    return {name: value.clone() for name, value in loss.state_dict().items()}


def run(model, columns, out, more=(), loss=None, **arguments):
    loss = loss or ObjectiveLoss(model, MOMENTUM, {"queue": QUEUE})
    given = SentenceTransformerTrainingArguments(
        str(out), max_steps=3, per_device_train_batch_size=5, per_device_eval_batch_size=4, learning_rate=1e-3, use_cpu=True, report_to=[],
        save_strategy="no", disable_tqdm=True, seed=3, **arguments,
    )  # fmt: skip
    trainer = SentenceTransformerTrainer(
        model, given, Dataset.from_dict(columns), **dict(more), loss=loss, data_collator=TextCollator(model.preprocess),
        callbacks=[LossState(loss)],
    )  # fmt: skip
    trainer.train()
    return loss, trainer


def test_evaluations_change_nothing_of_a_training(rows, sentence_encoder, tmp_path):  # noqa: F811
    again = copy.deepcopy(sentence_encoder)
    plain, _ = run(sentence_encoder, rows["pairs"], tmp_path / "plain")
    more = {"eval_dataset": Dataset.from_dict({name: column[::-1] for name, column in rows["pairs"].items()})}
    watched, trainer = run(again, rows["pairs"], tmp_path / "watched", more, eval_strategy="steps", eval_steps=1)
    assert all(torch.equal(value, watched.state_dict()[name]) for name, value in plain.state_dict().items())
    before = state(watched)
    assert trainer.evaluate()["eval_loss"] == trainer.evaluate()["eval_loss"] > 0
    assert all(torch.equal(value, watched.state_dict()[name]) for name, value in before.items())


def test_queues_move_where_weights_are_frozen(rows, sentence_encoder, tmp_path):  # noqa: F811
    """The trainer's optimiser holds no frozen weights, the first of which are the embeddings."""
    frozen = list(sentence_encoder[0].auto_model.embeddings.parameters())
    for parameter in frozen:
        parameter.requires_grad = False
    loss, _ = run(sentence_encoder, rows["pairs"], tmp_path / "run")
    assert loss.step == 3
    assert int(loss.parts["queue"].filled[0]) == QUEUE["size"]


@pytest.mark.parametrize("dropped", [False, True])
def test_keys_have_dropout_in_trainings_if_they_are_to(dropped, rows, sentence_encoder, tmp_path):  # noqa: F811
    modes = set()
    loss = ObjectiveLoss(sentence_encoder, MOMENTUM, {"queue": QUEUE | {"key_dropout": dropped}})
    real = adapter._Copy.forward
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapter._Copy, "forward", lambda own, given: (modes.add(own.transformer[0].auto_model.training), real(own, given))[1])
        _, trainer = run(sentence_encoder, rows["pairs"], tmp_path / "run", loss=loss)
        assert modes == {dropped}
        modes.clear()
        trainer.evaluate(Dataset.from_dict(rows["pairs"]))
        assert modes == {False}


def test_a_model_that_cuts_its_vectors_trains_whole_ones(rows, sentence_encoder, tmp_path):  # noqa: F811
    whole = sentence_encoder.get_embedding_dimension()
    sentence_encoder.truncate_dim = whole // 2
    loss, _ = run(sentence_encoder, rows["pairs"], tmp_path / "run")
    assert loss.parts["queue"].ring.shape[-1] == whole
    assert sentence_encoder.encode("Hello.").shape == (whole // 2,)


def test_autocast_reaches_the_encoder_but_no_loss(rows, sentence_encoder):  # noqa: F811
    """With bf16=True the trainer calls a loss under autocast, which would round the products of float32 vectors to eight bits."""
    features, _ = collated(sentence_encoder, rows["pairs"], range(8))
    loss, found, types = ObjectiveLoss(sentence_encoder, INFONCE), [], []
    vectors = {column["column"]: adapter._vectors(sentence_encoder, column).detach() for column in features}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapter, "_vectors", lambda _, column: (types.append(torch.is_autocast_enabled("cpu")), vectors[column["column"]])[1])
        for half in (False, True):
            with torch.autocast("cpu", torch.bfloat16, enabled=half):
                found.append(float(loss(features)))
    assert found[0] == found[1]
    assert types == [False, False, True, True]


def test_matryoshka_cuts_vectors_before_a_module_normalises_them(rows, sentence_encoder):  # noqa: F811
    features, _ = collated(sentence_encoder, rows["pairs"], range(8))
    plain = [{key: value for key, value in column.items() if key not in ("texts", "column")} for column in features]
    own = ObjectiveLoss(sentence_encoder, INFONCE | {"temperature": 0.05})
    found = []
    for loss, given in ((own, features), (MultipleNegativesRankingLoss(sentence_encoder, scale=20.0), plain)):
        found.append(float(MatryoshkaLoss(sentence_encoder, loss, [32, 8])(given, None).detach()))
    assert found[0] == pytest.approx(found[1], rel=1e-5)
    queued = ObjectiveLoss(sentence_encoder, MOMENTUM, {"queue": QUEUE})
    with pytest.raises(InputError, match=r"parts: .*cut.* 8\b"):
        MatryoshkaLoss(sentence_encoder, queued, [32, 8])(features, None)


def test_momentum_copies_of_half_precision_which_would_stand_still_are_refused(sentence_encoder):  # noqa: F811
    with pytest.raises(InputError, match=r"model: .*float32.*bf16=True"):
        ObjectiveLoss(sentence_encoder.bfloat16(), MOMENTUM, {"queue": QUEUE})
    assert ObjectiveLoss(sentence_encoder, INFONCE).step == 0


def test_prompts_that_no_text_would_get_are_refused(rows, sentence_encoder, tmp_path):  # noqa: F811
    with pytest.raises(InputError, match=r"prompts=arguments\.prompts"):
        run(sentence_encoder, rows["pairs"], tmp_path / "run", prompts={"anchor": "query: "})
    collator = TextCollator(sentence_encoder.preprocess, prompts={"anchor": "query: "})
    features = [{name: column[0] for name, column in rows["pairs"].items()}]
    prompted, plain = collator(features), TextCollator(sentence_encoder.preprocess)(features)
    assert prompted["anchor_input_ids"].shape[1] > plain["anchor_input_ids"].shape[1]
    assert prompted["anchor_texts"] == plain["anchor_texts"]


@pytest.mark.parametrize(
    ("terms", "parts", "said"),
    [
        ({"objective": "infonce", "temperature": -1}, {}, "infonce: temperature: -1"),
        ({"objective": "infonce", "temperature": "0.1"}, {}, r"infonce: temperature: .*'0\.1'"),
        (MOMENTUM, {"queue": QUEUE | {"size": 0}}, "momentum_queue: size: 0"),
        (MOMENTUM, {"queue": QUEUE | {"momentum": 7}}, "momentum_queue: momentum: 7"),
        (MOMENTUM, {"queue": {"size": 8}}, r"ObjectiveLoss: .*part"),
        ("infonce", {}, r"ObjectiveLoss: .*part"),
        (3, {}, r"ObjectiveLoss: .* 3\b"),
        ([], {}, r"ObjectiveLoss: .*term.*\{'objective'"),
        ({"objective": "infonce", "weight": "a"}, {}, r"infonce: weight: .*'a'"),
        ({"objective": "infonce", "weight": float("nan")}, {}, r"infonce: weight: .*nan"),
        ({"objective": "infonce", "weight": -1}, {}, r"infonce: weight: -1 .* 0$"),
        ({"kind": "logit_scale"}, {}, r"ObjectiveLoss: .*part"),
        ({"objective": "infonce"}, {"queue": {"objective": "infonce"}}, r"ObjectiveLoss: .*part"),
        ({"objective": "infonce"}, [QUEUE], r"parts: .*object"),
        ({"objective": "alignment"}, {}, "alignment .*similarity: cosine"),
        ({"objective": "alignment", "similarity": "symmetric_kl"}, {}, "alignment .*similarity: cosine"),
    ],
)
def test_values_that_a_file_may_not_hold_are_refused(terms, parts, said, sentence_encoder):  # noqa: F811
    with pytest.raises(InputError, match=said):
        ObjectiveLoss(sentence_encoder, terms, parts)
    queue = ObjectiveLoss(sentence_encoder, MOMENTUM, {"queue": QUEUE | {"langs": ("en", "de")}}, {"anchor": "en"}).parts["queue"]
    assert queue.names == ["en", "de"]  # a tuple is a list


INFONCE = {"objective": "infonce"}
SCL = {"objective": "supervised_contrastive"}


def test_supervised_contrast_takes_single_sentences_and_pairs_that_are_read_apart(rows, sentence_encoder):  # noqa: F811
    """Its first form reads a pair as one text; on single sentences it is a loss as any other."""
    with pytest.raises(InputError, match="form: retrieval"):
        given(sentence_encoder, SCL, rows["labelled"])
    single = {"first": rows["labelled"]["first"], "view": rows["labelled"]["view_a"], "label": rows["labelled"]["label"]}
    for terms, columns in ((SCL, single), (SCL | {"form": "retrieval"}, rows["labelled"])):
        assert float(given(sentence_encoder.eval(), terms, columns).detach()) > 0


def given(model, terms, columns, parts=None, **more):
    """Return the loss of a batch that has all rows of some columns."""
    features, labels = collated(model, columns, range(len(next(iter(columns.values())))))
    return ObjectiveLoss(model, terms, parts, **more)(features, labels)


@pytest.mark.parametrize("terms", [INFONCE, MOMENTUM, [MOMENTUM, INFONCE]])
def test_one_column_is_encoded_twice_each_time_with_its_own_dropout(terms, rows, sentence_encoder):  # noqa: F811
    """The same as the column and a copy of it: what one pass gives, both sides had in common, whose cosine was 1."""
    for module in sentence_encoder.train().modules():
        module.p = 0.3 if isinstance(module, torch.nn.Dropout) else getattr(module, "p", None)
    found = []
    for columns in ({"anchor": rows["pairs"]["anchor"]}, {"anchor": rows["pairs"]["anchor"], "positive": rows["pairs"]["anchor"]}):
        torch.manual_seed(7)
        queue = QUEUE | {"key_dropout": True, "queue_init": "random"}
        found.append(float(given(sentence_encoder, terms, columns, {"queue": queue}).detach()))
    assert found[0] == found[1]
    vectors = {}
    with pytest.MonkeyPatch.context() as patch:
        real = InfoNCE.loss
        patch.setattr(InfoNCE, "loss", lambda self, own, *more: (vectors.update(own), real(self, own, *more))[1])
        given(sentence_encoder, INFONCE, {"anchor": rows["pairs"]["anchor"]})
    assert float(torch.cosine_similarity(vectors["a"].detach(), vectors["b"].detach()).max()) < 0.999


def test_none_is_an_empty_cell(sentence_encoder):  # noqa: F811
    with pytest.raises(InputError, match=r"row 1 of the batch: .*'b'"):
        given(sentence_encoder, INFONCE, {"a": ["x", "y"], "b": ["z", None]})


def test_one_column_under_terms_that_compare_two_sentences_and_unread_columns_are_refused(rows, sentence_encoder):  # noqa: F811
    with pytest.raises(InputError, match=r"alignment .*column"):
        given(sentence_encoder, {"objective": "alignment", "similarity": "cosine"}, {"a": ["x", "y"]})
    with pytest.raises(InputError, match="column 'negative' "):
        given(sentence_encoder, MOMENTUM, rows["triplets"], {"queue": QUEUE})


@pytest.mark.parametrize("cell", [["y", "z"], 3, {"text": "y"}])
def test_a_cell_that_is_no_text_is_refused_with_its_column(cell, sentence_encoder):  # noqa: F811
    """A list would be read as a pair in one text, and an anchor's positives are asked for as lists."""
    with pytest.raises(InputError, match=r"TextCollator: .*'positive' .*cell"):
        TextCollator(sentence_encoder.preprocess)([{"anchor": "x", "positive": cell, "label": 1}])
    TextCollator(sentence_encoder.preprocess)([{"anchor": "x", "positive": "y", "label": [0.5, 1.0]}])


def test_a_language_of_no_column_is_refused_in_trainings(rows, sentence_encoder):  # noqa: F811
    with pytest.raises(InputError, match=r"langs: .*'anchr'.*'anchor'"):
        given(sentence_encoder.train(), INFONCE, rows["pairs"], langs={"anchr": "en"})
    given(sentence_encoder.eval(), INFONCE, rows["pairs"], langs={"anchr": "en"})  # evaluations may have other columns


def test_what_the_trainer_would_stumble_over_later_is_refused_at_once(sentence_encoder, tmp_path):  # noqa: F811
    loss = ObjectiveLoss(sentence_encoder, INFONCE)
    for wrong in (None, "loss", [loss], {}, {"set": 3}, torch.nn.Linear(1, 1)):
        with pytest.raises(InputError, match=r"LossState: .*ObjectiveLoss"):
            LossState(wrong)
    for wrong in (None, 3, sentence_encoder):
        with pytest.raises(InputError, match=r"TextCollator\(model\.preprocess\)"):
            TextCollator(wrong)
    for wrong in (None, "model", sentence_encoder[0]):
        with pytest.raises(InputError, match=r"model: .*SentenceTransformer"):
            ObjectiveLoss(wrong, INFONCE)
    for call in (loss.save, loss.load, lambda one: ObjectiveLoss(sentence_encoder, INFONCE, seed=one)):
        with pytest.raises(InputError, match=r"1\.5"):
            call(1.5)


def test_a_group_of_one_sentence_is_refused_with_its_row(rows, sentence_encoder):  # noqa: F811
    collated = TextCollator(sentence_encoder.preprocess)([{"a": "x", "b": "y", "c": ""}, {"a": "", "b": "", "c": ""}])
    features = [{key.removeprefix(f"{name}_"): value for key, value in collated.items() if key.startswith(f"{name}_")} for name in "abc"]
    with pytest.raises(InputError, match=r"row 1 of the batch: .*group"):
        ObjectiveLoss(sentence_encoder, {"objective": "multi_positive_infonce"})(features)
