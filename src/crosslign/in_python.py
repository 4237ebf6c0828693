"""The library in other people's programs (docs/in-python.md): what `crosslign` exports, loaded when a name is first asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import numpy as np
import pandas as pd
import torch

from crosslign.cli.commands.list import listed
from crosslign.config import graph
from crosslign.config.options import check_call, check_readout, checked, texts_of
from crosslign.config.project import Project
from crosslign.config.readouts import readout as readout_entry
from crosslign.config.resolve import encoder_at_scale, readout_name, role_readout
from crosslign.console import number_of
from crosslign.corpora.evaluation import Evaluation
from crosslign.devices import all_devices, encoding_devices
from crosslign.encoders.encode import encode_counted, text_columns
from crosslign.encoders.model import Model
from crosslign.encoders.sentence_transformers_folder import read_modules
from crosslign.encoders.soundness import examined
from crosslign.entries.catalog import Readout
from crosslign.errors import InputError, ResourceError
from crosslign.files.walk import folders_in
from crosslign.mining.knn import neighbours
from crosslign.mining.margin import Margin, Retrieval
from crosslign.mining.margin import margin_scores as scored
from crosslign.mining.pairs import chosen_pairs
from crosslign.mining.side import Side, exact_score_matrix
from crosslign.objectives.contract import Objective
from crosslign.options import Positive
from crosslign.registry import nearest
from crosslign.reporting import frames
from crosslign.steps import cached_project, made
from crosslign.tasks.data import Machine
from crosslign.tasks.score import score
from crosslign.training.terms import named_terms
from crosslign.vectors import open_both

Entry = TypeVar("Entry")


class Encodes(Protocol):
    """What `evaluate` and `mine` ask of an encoder: an `Encoder`, a `SentenceTransformer`, or another's."""

    def encode(self, sentences: list[str], /) -> Any:
        """Return a matrix, row i of sentence i."""


SETTINGS = ("pooling", "layer", "max_length", "normalise", "precision", "prefix")
"""Embedding settings that a call may change."""


def _settings(given: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    if unknown := sorted(set(given) - {*SETTINGS, "score_change", "whitening"}):  # what a readout of the catalog may have, too
        raise InputError(f"no embedding setting {unknown[0]!r}", where=where, why=nearest(unknown[0], list(SETTINGS)))
    check_readout(given, where)
    return given


def _matrix_of(found: Any, name: str, rows: int | None = None) -> np.ndarray:
    """Return what an encoder of others, or a caller, gives for a matrix as numpy's; of `rows` rows where their number is known."""
    if isinstance(found, torch.Tensor):
        found = found.detach().cpu()
        found = (found.float() if found.dtype is torch.bfloat16 else found).numpy()
    try:
        matrix = np.asarray(found)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError("not a matrix", where=name, why=str(error).splitlines()[0]) from error
    if rows is not None and matrix.ndim == 2 and len(matrix) != rows:
        what = f"{number_of(len(matrix), 'vector')} for {number_of(rows, 'sentence')}"
        raise InputError(what, where=name, do="Return one vector per sentence")
    return matrix


@dataclass(frozen=True)
class Encoder:
    """A sentence encoder with the settings that it reads with; `crosslign.encoder` makes one.

    Attributes:
        name: what it was asked for by.
        model: its members on their device.
        readout: embedding settings (docs/glossary.md): pooling, layer, max_length, normalise, precision, prefix.
    """

    name: str
    model: Model
    readout: Mapping[str, Any]

    def encode(self, sentences: Sequence[str], lang: str | Sequence[str] = "und", **settings: Any) -> np.ndarray:
        """Return one vector a sentence: float32 [n, d], of unit length unless the readout says otherwise, in the order they came.

        Args:
            sentences: n texts.
            lang: language of all or of each; it picks the member of an encoder that has one a language.
            settings: embedding settings in the place of the encoder's own, such as `max_length=128` or `precision="bf16"`.

        Raises:
            InputError: one text in a list's place, an unknown setting, a language that no member reads, or a vector of NaN or zeros.
            ResourceError: a sentence alone does not fit into memory.
        """
        texts = texts_of(sentences, "sentences")
        langs = [lang] * len(texts) if isinstance(lang, str) else texts_of(lang, "lang")
        if len(langs) != len(texts):
            what = f"{len(langs)} languages for {number_of(len(texts), 'sentence')}"
            raise InputError(what, where="lang", do="Give one language, or one for each sentence")
        return encode_counted(self.model, texts, langs, cast(Readout, {**self.readout, **_settings(settings, "encode")}))[0]


def _on(model: Model, device: str | torch.device) -> Model:
    """Return a model on a device; raise an `InputError` where torch knows none of this name, a `ResourceError` where none is here."""
    place = None
    try:
        place = torch.device(device)
        return model.to(place)
    except (RuntimeError, TypeError, AssertionError) as error:  # a build of torch without CUDA fails an assertion
        said: dict[str, Any] = {"where": "crosslign.encoder", "why": next(iter(str(error).splitlines()), type(error).__name__)}
        if place is None:
            raise InputError(f"unknown device {device!r}", do="Name it as torch does, such as cpu, cuda:0 or mps", **said) from error
        raise ResourceError(f"no encoder can be put on {device}", do="Leave device out to use what is there", **said) from error


@checked
def encoder(
    name: str | Path, *, device: str | torch.device | None = None, readout: Mapping[str, Any] | None = None, config: Sequence[str] = ()
) -> Encoder:
    """Load an encoder.

    Args:
        name: of a base encoder of the catalog (`crosslign.names("encoders")`), which is prepared in the user's cache folder; or a folder of
            a transformers or SentenceTransformer model, or a checkpoint of a trained system.
        device: torch's name of it; by default the first GPU (Apple's where CROSSLIGN_DEVICE asks for it), else the CPU.
        readout: embedding settings over those of the catalog or of the folder's modules; with `pooling` a folder needs no modules.
        config: settings as `KEY=VALUE`, such as `scale=quick`.

    Raises:
        InputError: no such encoder or setting, a damaged folder (the log names doubts), or one that does not say how its vectors are read.
        NetworkError: it cannot be fetched.
    """
    given = _settings(readout or {}, "readout")
    folder, name = Path(name), str(name)
    if own_folder := folder.is_dir():
        inner = {path.name: path for path in folders_in(folder) if (path / "config.json").is_file()}
        members = {"main": folder} if (folder / "config.json").is_file() else inner
        if not members:
            raise InputError("no encoder in this folder", where=name, why="config.json is missing")
        own: Mapping[str, Any] = {} if "pooling" in given else read_modules(next(iter(members.values())))
    else:
        project = _cached(config)
        entry = _known("encoder", name, project.encoders, "crosslign.encoder")
        used = encoder_at_scale(project, name) if project.stand_in else name  # of synthetic data the tiny one
        made(config, encoders=[used])
        members, own = {"main": project.paths.encoder(used) / "main"}, readout_entry(project, entry["readout"])
    model, settings = Model.load(members), {**own, **given}
    for lang, place in members.items() if own_folder else ():  # one of the catalog was examined when it was prepared
        examined(str(place), place, model.member(model.member_of(lang)), settings.get("prefix", ""))
    return Encoder(name, _on(model, encoding_devices()[0] if device is None else device), settings)


def _cached(config: Sequence[str]) -> Project:
    return cached_project(texts_of(config, "config"))


def _known(kind: str, name: str, entries: Mapping[str, Entry], where: str) -> Entry:
    """Return the entry of a name; raise an `InputError` with the nearest one where there is none."""
    if name not in entries:
        raise InputError(f"unknown {kind} {name!r}", where=where, why=nearest(name, list(entries)))
    return entries[name]


def _encodes(encoder: Any) -> None:
    """Refuse what is no encoder, such as the name of one: a text has a method `encode`, too."""
    if isinstance(encoder, str | type) or not callable(getattr(encoder, "encode", None)):
        do = "Load one with crosslign.encoder, or give an object with a method `encode`"
        raise InputError("not an encoder", where="encoder", why=f"found {encoder!r:.80}", do=do)


@checked
def mine(
    source: Sequence[str],
    target: Sequence[str],
    encoder: Encodes,
    *,
    k: Positive = 4,
    margin: Margin = "ratio",
    retrieval: Retrieval = "max",
    threshold: float | None = None,
) -> pd.DataFrame:
    """Return the pairs of sentences of two lists that mean the same, best first: `crosslign mine` without files.

    Equal sentences of a side are mined once, under the place of the first; empty ones never.

    Args:
        source, target: sentences.
        encoder: whatever has a method `encode` from a list of sentences to a matrix.
        k, margin, retrieval, threshold: as in an entry of `mine:` (config/README.md).

    Returns:
        score (float64), source, target (places in the lists, from 0), source_text, target_text.

    Raises:
        InputError: a side without sentences, an unknown margin or retrieval, or vectors that no score could depend on.
    """
    _encodes(encoder)
    sides = []
    for name, sentences in (("source", source), ("target", target)):
        first: dict[str, int] = {}
        for place, text in enumerate(texts_of(sentences, name)):
            if text.strip():
                first.setdefault(text.strip(), place)
        if not first:
            raise InputError("no sentence to mine", where=name)
        sides.append((list(first), np.fromiter(first.values(), np.int64)))
    left, right = (_matrix_of(encoder.encode(texts), "vectors of the encoder", len(texts)) for texts, _ in sides)
    pairs = chosen_pairs(neighbours(left, right, k, device=all_devices()), margin, retrieval)
    if threshold is not None:
        pairs = pairs.take(pairs.scores >= threshold)
    found = [(name, *side, at) for name, side, at in zip(("source", "target"), sides, (pairs.sources, pairs.targets), strict=True)]
    columns: dict[str, Any] = {"score": pairs.scores}
    columns |= {name: places[at] for name, _, places, at in found}
    columns |= {f"{name}_text": [texts[row] for row in at.tolist()] for name, texts, _, at in found}
    return pd.DataFrame(columns)


@checked
def margin_scores(source: np.ndarray, target: np.ndarray, *, k: Positive = 4, margin: Margin = "ratio") -> np.ndarray:
    """Return the margin score of every pair of rows of two matrices: cosine against both rows' mean cosines to their k neighbours.

    Args:
        source, target: float [n, d] and [m, d], of any length but 0.
        k: neighbours of each row; at most the size of the other side counts.
        margin: `ratio`, `distance` or `absolute`.

    Returns:
        float64 [n, m]; a ratio to a mean of exactly 0 is -inf. The scores of `mine` are entries of it, bit for bit.

    Raises:
        InputError: an unknown margin, unequal dimensions, no rows, or a row of NaN, infinity or zeros.
    """
    left, right = open_both(_matrix_of(source, "source"), _matrix_of(target, "target"))
    near = neighbours(left, right, k, device=all_devices())
    sides = [Side(rows, None, name, torch.device("cpu"), rows.size * 4) for rows, name in ((left, "source"), (right, "target"))]
    cosines = exact_score_matrix(*(side.grid(slice(0, side.n)) for side in sides)).double().numpy()
    means = [side.mean(1, dtype=np.float64) for side in (near.forward_scores, near.backward_scores)]
    return scored(cosines, (means[0][:, None] + means[1][None, :]) / 2, margin)


@checked
def evaluate(encoder: Encodes, tasks: Iterable[str], *, config: Sequence[str] = ()) -> pd.DataFrame:
    """Return the scores of an encoder on evaluations of the catalog, each with its 95 % interval.

    Args:
        encoder: whatever has a method `encode` from a list of sentences to a matrix.
        tasks: their ids (`crosslign.names("tasks")`); their data are fetched and built in the user's cache folder where they are not there.
        config: settings as `KEY=VALUE`, such as `scale=quick`.

    Returns:
        The columns of `crosslign.scores` (`score_file` is empty), and `main`: whether it is the task's main score.

    Raises:
        InputError: no such task, or one that is scored on a classification head; or vectors that no score could depend on.
        NetworkError: data cannot be fetched.
    """
    _encodes(encoder)
    project = _cached(config)
    entries = {task: _known("task", task, project.tasks, "crosslign.evaluate") for task in texts_of(tasks, "tasks")}
    for task, entry in entries.items():
        if entry["output"] == "logits":
            do = "Name a task that scores sentence vectors"
            raise InputError(f"{task} needs the logits of a classifier", where="crosslign.evaluate", do=do)
    made(config, corpora=sorted({corpus for entry in entries.values() for corpus in entry["texts"].values()}))
    name, machine = getattr(encoder, "name", type(encoder).__name__), Machine(all_devices(), torch.get_num_threads())
    records: list[dict[str, Any]] = []
    for task, entry in entries.items():
        corpora = {role: Evaluation.read(graph.evaluation_paths(project, corpus)) for role, corpus in entry["texts"].items()}
        matrices = {role: _matrix(project, encoder, task, role, found) for role, found in corpora.items()}
        records += map(asdict, score(task, entry, matrices, corpora, machine))
    return frames.frame(frames.rows_of(records, {"run_id": name})).assign(main=[record["main"] for record in records])


def _matrix(project: Project, encoder: Encodes, task: str, role: str, evaluation: Evaluation) -> np.ndarray:
    """Return the vectors of one evaluation corpus, read with the length and the prefix that the task fixes for it."""
    _, texts, langs, pair_texts = text_columns(evaluation.texts, task)
    if not isinstance(encoder, Encoder):
        if pair_texts is not None:
            raise InputError(f"{task} has texts of two segments", where="crosslign.evaluate", do="Load the encoder with crosslign.encoder")
        return _matrix_of(encoder.encode(texts), "vectors of the encoder", len(texts)).astype(np.float32)
    settings = dict(encoder.readout)
    if encoder.name in project.encoders:
        name = role_readout(project, encoder.name, readout_name(project, encoder.name, task), task, role)
        settings = {**settings, **{key: value for key, value in readout_entry(project, name).items() if key in ("prefix", "max_length")}}
    return encode_counted(encoder.model, texts, langs, cast(Readout, settings), pair_texts)[0]


@checked
def objective(name: str, **options: Any) -> Objective:
    """Build an objective: `inputs(batch, draw)` says which sentences it wants encoded, `loss(vectors, batch, parts)` gives its loss.

    In a training of sentence-transformers `crosslign.sentence_transformers.ObjectiveLoss` does both (docs/sentence-transformers.md).

    Args:
        name: of `crosslign.names("objectives")`.
        options: its own, as in a recipe (config/README.md).

    Raises:
        InputError: an unknown objective or option; names the nearest.
    """
    check_call("objectives", name, options, "crosslign.objective")
    ((term, _),) = named_terms([{**options, "objective": name}], "crosslign.objective")
    return term.objective


@checked
def names(kind: str, *, config: Sequence[str] = ()) -> dict[str, str]:
    """Return the names of a kind with what each is: `encoders`, `tasks`, `corpora`, `objectives` …, as `crosslign list` prints them.

    Raises:
        InputError: there is no such kind.
    """
    return dict(listed(_cached(config), kind))
