"""Any sequence-to-sequence model of the hub: Marian (OPUS-MT), NLLB, M2M-100, or a folder of one."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from crosslign.corpora.sources._network import is_offline
from crosslign.errors import InputError, NetworkError, ResourceError
from crosslign.files import sha256_folder
from crosslign.files.own import model_files
from crosslign.files.safetensors_only import require_safetensors
from crosslign.memory import is_out_of_memory
from crosslign.options import AtLeastTwo, Positive
from crosslign.views import TRANSLATORS, TranslatorSetting
from crosslign.views.hub_models import HubModel, model_name, models_of_pairs, names_of_pairs


@TRANSLATORS.register(version=1)
class Transformers:
    """Translates with beam search, sentences of like length together, as many as a budget of tokens allows.

    Sentences longer than `max_length` tokens are cut to it, and translations end there. Only safetensors weights are loaded; where a
    model has none, name a `revision` that has (many OPUS-MT models have one made by the hub: `refs/pr/<number>`).

    Args:
        setting: the view.
        model: hub id or folder; `{source}` and `{target}` stand for the codes of the languages
            (`Helsinki-NLP/opus-mt-{source}-{target}`).
        revision: commit or branch of the hub. Kept translations depend on the files themselves: a branch moves.
        codes: the model's names for languages, if they differ from ours (`{en: eng_Latn, de: deu_Latn}` for NLLB).
        beam: beams of the search; 1 is greedy.
        batch_tokens: limit of sentences × length of the longest × beams.
        max_length: tokens of a sentence.
        dtype: type of the weights.
        device: `auto` uses a GPU if there is one.

    Raises:
        InputError: no such folder, no safetensors weights, or a language that the model does not know.
        NetworkError: the model is not in the cache and cannot be fetched.
        ResourceError: one sentence alone does not fit into memory.
    """

    def __init__(
        self,
        setting: TranslatorSetting,
        *,
        model: str,
        revision: str | None = None,
        codes: Mapping[str, str] | None = None,
        beam: Positive = 5,
        batch_tokens: Positive = 8192,
        max_length: AtLeastTwo = 256,
        dtype: Literal["float32", "bfloat16", "float16"] = "float32",
        device: str = "auto",
    ) -> None:
        self._where, self._name, self._revision, self._models = setting.where, model, revision, setting.models
        self._codes = dict(codes or {})
        self._beam, self._batch_tokens, self._max_length = beam, batch_tokens, max_length
        self._dtype, self._device = dtype, device
        self._loaded: tuple[str, Any, Any] | None = None
        named = names_of_pairs({"model": model, "codes": codes}, setting.langs, setting.targets)
        folders = sorted(setting.models.values()) or [Path(name).expanduser() for name in named]
        self.identity: Mapping[str, Any] | None = {
            "engine": "transformers",
            "version": importlib.metadata.version("transformers"),
            "model": model,
            "revision": _model_hash(folders) or revision,
            "codes": dict(sorted(self._codes.items())),
            "beam": beam,
            "max_length": max_length,
            "dtype": dtype,
        }

    @staticmethod
    def hub_models(options: Mapping[str, Any], langs: Sequence[str], targets: Sequence[str]) -> list[HubModel]:
        """Return the models of the hub that options ask for between these languages."""
        return models_of_pairs(options, langs, targets)

    @staticmethod
    def uses_gpu(options: Mapping[str, Any]) -> bool:
        """Tell whether options let it compute on a GPU."""
        return str(options.get("device", "auto")) != "cpu"

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str | None]:
        """Return the translation of each text, None where the model gives an empty one."""
        tokenizer, model = self._load(source, target)
        prefix, forced = self._prepare(tokenizer, source, target)
        rows = [tokenizer(prefix + text, truncation=True, max_length=self._max_length)["input_ids"] for text in texts]
        found: list[str | None] = [None] * len(texts)
        for batch in self._batches(rows):
            for place, tokens in zip(batch, self._generate(model, tokenizer, [rows[n] for n in batch], forced), strict=True):
                found[place] = " ".join(tokenizer.decode(tokens, skip_special_tokens=True).split()) or None
        return found

    def _batches(self, rows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
        """Yield numbers of rows, longest first, so that a batch that does not fit shows at once."""
        batch: list[int] = []
        longest = 0
        for number in sorted(range(len(rows)), key=lambda n: -len(rows[n])):
            if batch and (len(batch) + 1) * longest * self._beam > self._batch_tokens:
                yield batch
                batch = []
            longest = len(rows[number]) if not batch else longest
            batch.append(number)
        if batch:
            yield batch

    def _generate(self, model: Any, tokenizer: Any, rows: Sequence[Sequence[int]], forced: int | None) -> list[Sequence[int]]:
        """Return the tokens of each translation, without its start and the language that was forced; halve what does not fit."""
        try:
            return self._generated(model, tokenizer, rows, forced)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if len(rows) == 1:
                advice = "Lower `beam` or `max_length`"
                raise ResourceError("one sentence does not fit into memory", where=self._where, do=advice) from error
        halves = rows[: len(rows) // 2], rows[len(rows) // 2 :]
        return [tokens for half in halves for tokens in self._generate(model, tokenizer, half, forced)]

    def _generated(self, model: Any, tokenizer: Any, rows: Sequence[Sequence[int]], forced: int | None) -> list[Sequence[int]]:
        import torch

        inputs = tokenizer.pad({"input_ids": list(rows)}, return_tensors="pt").to(model.device)
        more = {} if forced is None else {"forced_bos_token_id": forced}
        with torch.inference_mode():
            made = model.generate(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                num_beams=self._beam,
                do_sample=False,
                max_new_tokens=self._max_length,
                **more,
            )
        found: list[Sequence[int]] = made[:, 1 if forced is None else 2 :].tolist()
        return found

    def _prepare(self, tokenizer: Any, source: str, target: str) -> tuple[str, int | None]:
        """Tell the tokenizer the source language; return what stands before each sentence, and the first token of each translation."""
        source, target = self._codes.get(source, source), self._codes.get(target, target)
        if hasattr(tokenizer, "supported_language_codes"):  # Marian: models of several targets take a mark of the target first
            mark = f">>{target}<<"
            if tokenizer.supported_language_codes and mark not in tokenizer.supported_language_codes:
                raise self._unknown(target, tokenizer.supported_language_codes)
            return (f"{mark} ", None) if tokenizer.supported_language_codes else ("", None)
        if not hasattr(tokenizer, "src_lang"):
            return "", None
        tokens = {code: f"__{code}__" if hasattr(tokenizer, "get_lang_id") else code for code in (source, target)}
        for code, token in tokens.items():
            if tokenizer.convert_tokens_to_ids(token) in (None, tokenizer.unk_token_id):
                known = getattr(tokenizer, "lang_code_to_id", None) or [t for t in tokenizer.all_special_tokens if not t.startswith("<")]
                raise self._unknown(code, list(known))
        tokenizer.src_lang = source
        return "", int(tokenizer.convert_tokens_to_ids(tokens[target]))

    def _unknown(self, code: str, known: Sequence[str]) -> InputError:
        return InputError(
            f"the model does not know the language {code!r}",
            where=f"{self._where}: {self._name}",
            why=f"it knows {', '.join(sorted(known)[:12])}, …",
            do="Give the model's name for the language in `codes`",
        )

    def _load(self, source: str, target: str) -> tuple[Any, Any]:
        """Return tokenizer and model; one model stays in memory."""
        import torch
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        from crosslign.encoders.soundness import require_blocks, require_loaded, require_numbers, require_tokenizer

        name = model_name(self._name, self._codes, source, target)
        if self._loaded is None or self._loaded[0] != name:
            self._loaded = None
            place = str(self._models.get(name) or Path(name).expanduser())
            if Path(place).is_dir():
                require_safetensors(Path(place))
            here = is_offline() or Path(place).is_dir()
            device = ("cuda" if torch.cuda.is_available() else "cpu") if self._device == "auto" else self._device
            try:
                if Path(place, "config.json").is_file():
                    require_blocks(Path(place))
                # Where it is not told, transformers asks on the terminal whether to run the code that a model brings along.
                options = {"revision": self._revision, "local_files_only": here}
                tokenizer = AutoTokenizer.from_pretrained(place, trust_remote_code=False, **options)
                options |= {"use_safetensors": True, "dtype": getattr(torch, self._dtype)}
                options |= {"output_loading_info": True, "ignore_mismatched_sizes": True}  # they are named by us
                model, report = AutoModelForSeq2SeqLM.from_pretrained(place, trust_remote_code=False, **options)
            except InputError:
                raise
            except Exception as error:  # transformers has no error of its own for each way in which a folder can be damaged
                raise self._not_loaded(name, place, error) from error
            require_tokenizer(Path(place), tokenizer, model.config)
            require_loaded(Path(place), model, report)
            require_numbers(Path(place), [model])
            self._loaded = name, tokenizer, self._placed(model.eval(), tokenizer, device)
        return self._loaded[1], self._loaded[2]

    def _placed(self, model: Any, tokenizer: Any, device: str) -> Any:
        """Return the engine on its device, made from a model in memory."""
        return model.to(device)

    def _not_loaded(self, name: str, place: str, error: Exception) -> InputError | NetworkError:
        why = " ".join(str(error).split())[:300]
        if Path(place).is_dir() or not isinstance(error, OSError | ValueError) or "safetensors" in why:
            do = "Name a folder or a revision with config, tokenizer and safetensors weights"
            return InputError(f"the model {name!r} cannot be loaded", where=self._where, why=why, do=do)
        return NetworkError(
            f"the model {name!r} could not be downloaded from the hub",
            where=self._where,
            why=why,
            do=f"On a machine with network, run `hf download {name}` with the same HF_HOME, or name a folder",
        )


def _model_hash(folders: Sequence[Path]) -> str | None:
    """Return a hash of all that models are read from: weights, tokenizer, settings; None where there are none, as for a hub id."""
    read = {folder: [file for file in model_files(folder) if file.suffix != ".md"] for folder in folders if folder.is_dir()}
    return "-".join(sha256_folder(folder, files) for folder, files in read.items() if files) or None
