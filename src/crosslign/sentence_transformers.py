"""The objectives of this library as losses of `SentenceTransformerTrainer` (docs/sentence-transformers.md: an example, and the columns)."""

from __future__ import annotations

import copy
import weakref
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from transformers import TrainerCallback

from crosslign.config.options import check_call, check_weight, checked
from crosslign.encoders.model import MAIN
from crosslign.errors import InputError
from crosslign.objectives.columns import Given, batch_of, encoded_twice, plain_columns
from crosslign.objectives.contract import Batch, Input, checked_loss, plan_of
from crosslign.objectives.saved_parts import make_part, state_of
from crosslign.registry import nearest, options_of
from crosslign.training.checkpoint import save_tensors
from crosslign.training.draws import derive, seed_device, torch_generator
from crosslign.training.gathered import gathered, joined
from crosslign.training.terms import Term, named_terms

STATE_FILE = "crosslign_loss.safetensors"
STEP = "optimiser_steps"
ENCODER = "encoder_checksum"
FOLDER = "crosslign_folder"
"""Key of the trainer's state: the output folder of the run that wrote it."""
RESUME = "If the checkpoint was moved, name it in the trainer's arguments, too: resume_from_checkpoint"
RAW = "unnormalised_embedding"
NOT_HERE = {
    "cross_entropy": "it trains a classifier: use SoftmaxLoss of sentence-transformers, or CrossEncoder for pairs read as one text",
    "masked_language_model": "it needs tokens, but the model returns one vector per sentence: use the Trainer of transformers",
}
"""Objectives that are not losses of a SentenceTransformer, and why."""
DECIDED = {
    **dict.fromkeys(("pooling", "layer"), "the model returns one vector per sentence, by its own Pooling module"),
    **dict.fromkeys(("examples", "batch", "micro_batch"), "the trainer's data set and arguments set it"),
    **dict.fromkeys(("learning_rate", "clip"), "the trainer's optimiser sets it"),
    "start_from": "`load` reads the parts of an earlier run",
}
"""Keys of a recipe's terms and parts that are not options here, and what stands in their place."""
Features = Sequence[Mapping[str, Any]]


class TextCollator(SentenceTransformerDataCollator):
    """The collator of sentence-transformers, which also hands on the texts and the names of their columns, as objectives need.

    The trainer hands prompts to its own collator alone: `TextCollator(model.preprocess, prompts=arguments.prompts)`.
    """

    def __init__(self, preprocess_fn: Callable[..., Any], *more: Any, **named: Any) -> None:
        if isinstance(preprocess_fn, nn.Module) or not callable(preprocess_fn):
            why = f"found {type(preprocess_fn).__name__}"
            raise InputError("not what tokenises", where="TextCollator", why=why, do="Write TextCollator(model.preprocess)")
        super().__init__(preprocess_fn, *more, **named)

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        """Return a batch with `<column>_texts` and `<column>_column` beside what was tokenised of each column; None is an empty cell.

        Raises:
            InputError: a cell is no text, such as a list of positives.
        """
        features = [{name: "" if value is None else value for name, value in row.items()} for row in features]
        for name, value in ((name, value) for row in features for name, value in row.items() if name not in self.valid_label_columns):
            if not isinstance(value, str):
                do = "Write one sentence in each cell; several positives are several columns"
                raise InputError(f"the column {name!r} has a cell that is no text", where="TextCollator", why=f"found {value!r:.80}", do=do)
        batch = super().__call__(features)
        columns = [name.removesuffix("_input_ids") for name in batch if name.endswith("_input_ids")]
        for column in columns:
            batch[f"{column}_texts"], batch[f"{column}_column"] = [row[column] for row in features], column
        return batch


class _Copy(nn.Module):
    """A SentenceTransformer as a part sees a model, and its one member: parameters, buffers, and a copy of its own weights."""

    def __init__(self, model: SentenceTransformer) -> None:
        super().__init__()
        self.transformer, self.device = model, model.device
        with model.truncate_embeddings(None):  # `truncate_dim` is for `encode`; a training sees whole vectors
            self.dimension = int(model.get_embedding_dimension() or 0)

    @property
    def members(self) -> Mapping[str, _Copy]:
        return {MAIN: self}

    def member(self, name: str) -> _Copy:
        return self.members[name]

    def member_of(self, lang: str) -> str:
        return MAIN

    def copied(self) -> _Copy:
        if any(parameter.element_size() < 4 for parameter in self.parameters()):
            why = "in half precision a moving average stands still"
            do = "Load the model in float32, and set bf16=True in the trainer's arguments"
            raise InputError("momentum copies need weights in float32", where="model", why=why, do=do)
        return _Copy(copy.deepcopy(self.transformer))

    def forward(self, features: Mapping[str, Any]) -> Tensor:
        return _vectors(self.transformer, features)


def _keep_unnormalised(module: nn.Module, given: tuple[Any, ...]) -> None:
    """Keep what a `Normalize` module gets: a projection reads vectors before they have unit length."""
    given[0][RAW] = given[0]["sentence_embedding"]


def _vectors(model: nn.Module, features: Mapping[str, Any]) -> Tensor:
    out = model({name: value for name, value in features.items() if name not in ("texts", "column")})
    found: Tensor = out["sentence_embedding"]
    if RAW in out and out[RAW].shape == found.shape:  # else MatryoshkaLoss has cut them
        found = out[RAW]
    return found.to(torch.promote_types(found.dtype, torch.float32))


class ObjectiveLoss(nn.Module):
    """One or several weighted objectives as a loss of `SentenceTransformerTrainer`; vectors and texts of all ranks are one batch.

    Momentum copies and queues move once an optimiser step, in evaluation never; negatives are those of a micro-batch.

    Args:
        model: the encoder that is trained.
        terms: one term or several: `objective`, `weight` (1.0), and the objective's options, as in a recipe (docs/training.md).
        parts: by name, `kind` and options, as in a recipe: queues with momentum encoders, projections, classifiers.
        langs: language of each column, for queues by language; `und` where it says nothing.
        seed: of what is drawn for each batch.

    Raises:
        InputError: an objective, option or part that does not exist, or that has no place here; says why.
    """

    @checked
    def __init__(
        self,
        model: SentenceTransformer,
        terms: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        parts: Mapping[str, Mapping[str, Any]] | None = None,
        langs: Mapping[str, str] | None = None,
        seed: int = 42,
    ) -> None:
        super().__init__()
        if not isinstance(model, SentenceTransformer):
            do = "Train the published MoCo-BERT, which has one encoder for each language, with a recipe of this project"
            raise InputError("not a SentenceTransformer", where="model", why=f"found {type(model).__name__}", do=do)
        self.model, self.langs, self.seed, self.step, self._begun = model, dict(langs or {}), seed, 0, False
        entries = list(terms) if isinstance(terms, Iterable) and not isinstance(terms, Mapping) else [terms]
        if not entries:
            raise InputError("a loss needs at least one term", where="ObjectiveLoss", do="Write {'objective': name, …}")
        for section, given in (("terms", entries), ("parts", (parts or {}).values())):
            for entry in given:
                _check_keys(section, entry)
        self.terms = [term for term, _ in named_terms(entries, "ObjectiveLoss")]
        self._hooks = [module.register_forward_pre_hook(_keep_unnormalised) for module in model if isinstance(module, Normalize)]
        self._hooks.append(_after_each_step(self))
        encoder: Any = _Copy(model)
        self.width = encoder.dimension
        self.parts: Any = nn.ModuleDict()
        for name, entry in sorted((parts or {}).items()):
            made = make_part(name, entry, encoder, derive(seed, "part", name), f"part {name}")
            try:
                self.parts[name] = made
            except KeyError as error:  # a name of torch's own, such as `keys`, or one with a dot
                raise InputError("a part cannot have this name", where="parts", why=str(error.args[0]), do="Rename it") from error

    def __del__(self) -> None:
        for hook in self.__dict__.get("_hooks", ()):
            hook.remove()

    def forward(self, sentence_features: Iterable[Mapping[str, Any]], labels: Tensor | None = None) -> Tensor:
        """Return the weighted sum of the terms: a scalar with gradient, float32 or the vectors' wider type.

        Args:
            sentence_features: of each column what its sentences were tokenised to, with `texts` and `column` of `TextCollator`.
            labels: [B] or [B, n], or None.
        """
        features = list(sentence_features)
        if any("texts" not in column for column in features):
            do = "Pass data_collator=TextCollator(model.preprocess) to the trainer"
            raise InputError("the batch has no texts", where="ObjectiveLoss", why="the trainer's default collator drops them", do=do)
        training = self.model.training  # the trainer puts the model into evaluation mode, never its loss
        self.parts.train(training)
        if training and not self._begun:
            for part in self.parts.values():
                part.before_keys()
            self._begun = True
        names = [str(column["column"]) for column in features]
        if training and (unknown := [name for name in self.langs if name not in names]):
            raise InputError(f"no column is called {unknown[0]!r}", where="ObjectiveLoss: langs", why=nearest(unknown[0], names))
        own = [list(column["texts"]) for column in features]
        (*texts, numbers), ranks = joined([*own, [] if labels is None else labels.tolist()])
        groups = all(term.objective.shape == "groups" for term in self.terms)
        batch = batch_of(names, texts, None if labels is None else numbers, self.langs, groups, self.step)
        drawn = [torch_generator(self.seed, "draw", "train", self.step) for _ in self.terms]
        plans = [plan_of(term.name, term.objective, batch, draw) for term, draw in zip(self.terms, drawn, strict=True)]
        if encoded_twice(names, batch, {term.name: term.objective.shape for term in self.terms}, plans):
            (only,) = plain_columns(names)
            texts, features = [*texts, texts[only]], [*features, features[only]]
        queries = Given(texts, [gathered(_vectors(self.model, column), ranks) for column in features])
        if queries.width != self.width and any(value.ndim > 1 for value in self.parts.state_dict().values()):
            do = "Give MatryoshkaLoss an objective without queue, projection or classifier"
            raise InputError("vectors were cut, but a part reads whole ones", where="parts", why=f"width {queries.width}", do=do)
        keys = self._keys(texts, features, ranks) if any(item.keys for plan in plans for item in plan.values()) else queries
        return torch.stack([self._loss(*one, batch, queries, keys) for one in zip(self.terms, plans, strict=True)]).sum()

    def _loss(self, term: Term, plan: Mapping[str, Input], batch: Batch, queries: Given, keys: Given) -> Tensor:
        """Return the weighted loss of one term."""
        if any(item.pair_texts is not None for item in plan.values()):
            do = "Set form: retrieval" if hasattr(term.objective, "form") else "Set encode: sentences"
            raise InputError("pairs cannot be encoded as one text here", where=f"term {term.name}", do=do)
        vectors = {name: (keys if item.keys else queries).of(name, item) for name, item in plan.items()}
        device = next(self.model.parameters()).device
        with torch.autocast(device.type, enabled=False), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            seed_device(device, derive(self.seed, "loss", term.name, self.step))
            loss = checked_loss(term.name, term.objective.loss(vectors, batch, dict(self.parts.items())))
        return term.weight * loss.total

    @torch.no_grad()
    def _keys(self, texts: list[list[str]], features: Features, ranks: Sequence[int]) -> Given:
        copies = next((found for part in self.parts.values() if (found := part.key_member(MAIN)) is not None), None)
        if copies is None:
            raise InputError("a term needs momentum keys, but no part has momentum copies", where="parts", do="Add a momentum_queue")
        return Given(texts, [gathered(copies(column), ranks) for column in features])

    @torch.no_grad()
    def end_step(self) -> None:
        """Let queues and rank scores take in what the optimiser step saw; called after each step of an optimiser that holds the model."""
        if self._begun:
            for part in self.parts.values():
                part.commit({})
            self.step, self._begun = self.step + 1, False

    @checked
    def save(self, folder: str | Path) -> None:
        """Write copies, queues, heads and the number of steps to `folder`/crosslign_loss.safetensors."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        numbers = {STEP: torch.tensor(self.step), ENCODER: torch.tensor(_checksum(self.model))}
        save_tensors(Path(folder) / STATE_FILE, {**self.parts.state_dict(), **numbers})

    @checked
    def load(self, folder: str | Path, resume: bool = False) -> None:
        """Read what `save` wrote: for a second phase the parts that a trained system keeps, which no queue is; steps are counted from 0.

        Args:
            folder: a checkpoint.
            resume: its run goes on, with queues and steps, on a model with the checkpoint's weights; `LossState` asks for this.

        Raises:
            InputError: nothing is there, or it is of other parts, or on resume of other weights.
        """
        path = Path(folder) / STATE_FILE
        if not path.is_file():
            raise InputError("the state of the loss is missing", where=str(path), why="the run had no callback LossState(loss)", do=RESUME)
        try:
            state = load_file(path)
            step, encoder = (int(state.pop(name)) for name in (STEP, ENCODER))
            for name, part in self.parts.items():
                if resume or not part.training_only:
                    part.load_state_dict(state_of(name, state))
        except (RuntimeError, KeyError, SafetensorError) as error:
            raise InputError("the state belongs to another loss", where=str(path), why=" ".join(str(error).split())[:200]) from error
        if resume and encoder != _checksum(self.model):
            raise InputError("the state does not belong to the model's weights", where=str(path), do=RESUME)
        self.step, self._begun = step if resume else 0, False


def _check_keys(section: str, entry: Mapping[str, Any]) -> None:
    """Refuse a term or a part that has no place in this trainer, a key of it, or a value that an option cannot have."""
    key, point = {"terms": ("objective", "objectives"), "parts": ("kind", "parts")}[section]
    if not isinstance(entry, Mapping) or key not in entry:
        do = "Write {'objective': name, …} for a term, {'kind': name, …} for a part"
        raise InputError("neither a term nor a part", where="ObjectiveLoss", why=f"found {entry!r:.80}", do=do)
    name, where = str(entry[key]), f"ObjectiveLoss: {entry[key]}"
    if name in NOT_HERE:
        raise InputError(f"{name} cannot be a loss of a SentenceTransformer", where="terms", why=NOT_HERE[name])
    if refused := [key for key in DECIDED if entry.get(key) is not None]:
        raise InputError(f"{refused[0]} cannot be set here", where=name, why=DECIDED[refused[0]], do="Remove it")
    fits = entry.get("part") or entry.get("similarity") in ("cosine", "mse") or entry.get("distributions") == "embedding"
    if name == "alignment" and not fits:
        why = "its default, KL, compares the classes of a classification part"
        raise InputError("alignment needs similarity: cosine here", where=where, why=why)
    check_call(point, name, options_of(section, entry), where)
    if section == "terms":
        check_weight(entry, where)


def _checksum(model: nn.Module) -> int:
    """Return a number that tells a model's weights from others."""
    found = 0
    for parameter in model.parameters():
        found = zlib.crc32(parameter.detach().cpu().flatten().view(torch.uint8).numpy().data, found)
    return found


def _after_each_step(loss: ObjectiveLoss) -> Any:
    """Call `end_step` after each step of an optimiser that holds the loss's model; a step that a gradient scaler skips is none."""
    held = weakref.ref(loss)

    def hook(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        own = held()
        stepped = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        if own is not None and not stepped.isdisjoint(map(id, own.model.parameters())):  # some may be frozen
            own.end_step()

    return register_optimizer_step_post_hook(hook)


class LossState(TrainerCallback):
    """Saves an `ObjectiveLoss` beside each checkpoint of the trainer, which keeps nothing of a loss, and restores it on resume.

    Args:
        loss: the trainer's loss, or its losses by the names of their data sets.
    """

    def __init__(self, loss: ObjectiveLoss | Mapping[str, nn.Module]) -> None:
        named = loss if isinstance(loss, Mapping) else {"": loss}
        self.losses = {name: one for name, one in named.items() if isinstance(one, ObjectiveLoss)}
        if not self.losses:
            do = "Give it the trainer's loss, or the dict of its losses"
            raise InputError("no ObjectiveLoss whose state could be saved", where="LossState", why=f"found {loss!r:.80}", do=do)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write the state of each loss into the checkpoint; rank 0 does."""
        for name, loss in self.losses.items() if state.is_world_process_zero else ():
            loss.save(Path(args.output_dir) / f"checkpoint-{state.global_step}" / name)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Restore the losses from the checkpoint that training resumes from; the trainer's state holds its folder."""
        collator = getattr(kwargs.get("train_dataloader"), "collate_fn", None)
        if isinstance(collator, TextCollator) and getattr(args, "prompts", None) and not collator.prompts:
            do = "Pass them on: TextCollator(model.preprocess, prompts=arguments.prompts)"
            raise InputError("the arguments name prompts, but the collator has none", where="TextCollator", do=do)
        given, own = args.resume_from_checkpoint, str(Path(args.output_dir).absolute())
        places = [Path(place, f"checkpoint-{state.global_step}") for place in (state.stateful_callbacks.get(FOLDER, own), own)]
        if isinstance(given, str) and given.lower() != "true":
            places = [Path(given)]
        state.stateful_callbacks[FOLDER] = own
        if state.global_step:
            folder = next((one for one in places if any((one / name / STATE_FILE).is_file() for name in self.losses)), places[-1])
            for name, loss in self.losses.items():
                loss.load(folder / name, resume=True)
