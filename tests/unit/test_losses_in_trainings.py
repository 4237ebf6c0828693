"""What a training of sentence-transformers does around a loss: evaluations, frozen weights, dropout of keys, prompts, shorter vectors."""

import copy

import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from test_sentence_transformers import QUEUE, rows, sentence_encoder  # noqa: F401

import crosslign.sentence_transformers as adapter
from crosslign.errors import InputError
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
        ({"objective": "infonce", "temperature": "0.1"}, {}, "must be of type number"),
        (MOMENTUM, {"queue": QUEUE | {"size": 0}}, "momentum_queue: size: 0"),
        (MOMENTUM, {"queue": QUEUE | {"momentum": 7}}, "momentum_queue: momentum: 7"),
        (MOMENTUM, {"queue": {"size": 8}}, "neither a term nor a part"),
        ("infonce", {}, "neither a term nor a part"),
    ],
)
def test_values_that_a_file_may_not_hold_are_refused(terms, parts, said, sentence_encoder):  # noqa: F811
    with pytest.raises(InputError, match=said):
        ObjectiveLoss(sentence_encoder, terms, parts)
    queue = ObjectiveLoss(sentence_encoder, MOMENTUM, {"queue": QUEUE | {"langs": ("en", "de")}}, {"anchor": "en"}).parts["queue"]
    assert queue.names == ["en", "de"]  # a tuple is a list


def test_a_group_of_one_sentence_is_refused_with_its_row(rows, sentence_encoder):  # noqa: F811
    collated = TextCollator(sentence_encoder.preprocess)([{"a": "x", "b": "y", "c": ""}, {"a": "", "b": "", "c": ""}])
    features = [{key.removeprefix(f"{name}_"): value for key, value in collated.items() if key.startswith(f"{name}_")} for name in "abc"]
    with pytest.raises(InputError, match="row 1 of the batch: a group needs at least two sentences"):
        ObjectiveLoss(sentence_encoder, {"objective": "multi_positive_infonce"})(features)
