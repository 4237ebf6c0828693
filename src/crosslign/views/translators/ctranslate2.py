"""The sequence-to-sequence models of the hub on CTranslate2's engine: some times faster, above all on CPUs and with 8-bit weights."""

from __future__ import annotations

import copy
import ctypes
import importlib.metadata
import logging
import sysconfig
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal

from crosslign.errors import InputError
from crosslign.files.temporary import temporary_folder
from crosslign.options import AtLeastTwo, Positive
from crosslign.views import TRANSLATORS, TranslatorSetting
from crosslign.views.translators.transformers import Transformers

CUBLAS = "libcublas.so.12"
"""What the engine loads on a GPU with its first sentence; torch of CUDA 13 brings another one."""

log = logging.getLogger(__name__)


@cache
def has_cublas() -> bool:
    """Tell whether the engine will find its library for GPUs: the system's, or that of the package nvidia-cublas-cu12, loaded here."""
    beside = Path(sysconfig.get_path("platlib"), "nvidia", "cublas", "lib", CUBLAS)
    for name in (CUBLAS, str(beside)):
        with suppress(OSError):
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
            return True
    return False


def _without_gpu() -> str:
    """Say that the CPU translates, and what a GPU needs."""
    log.warning("%s is missing, which CTranslate2 needs on a GPU: translating on the CPU. pip install nvidia-cublas-cu12", CUBLAS)
    return "cpu"


@TRANSLATORS.register(version=1)
class Ctranslate2(Transformers):
    """Translates as `transformers` does, from the same safetensors weights, which are converted when the model is loaded.

    Greedy translations in float32 are those of `transformers`; beams are scored alike but pruned otherwise, and 8-bit weights
    change some words, so the kept translations of the two never mix.

    Args:
        setting: the view.
        model: hub id or folder; `{source}` and `{target}` stand for the codes of the languages.
        revision: commit or branch of the hub. Kept translations depend on the files themselves: a branch moves.
        codes: the model's names for languages, if they differ from ours.
        beam: beams of the search; 1 is greedy.
        batch_tokens: limit of sentences × length of the longest × beams.
        max_length: tokens of a sentence.
        compute_type: type of the weights and products; a type that the device lacks becomes the nearest that it has.
        device: `auto` uses a GPU if there is one.

    Raises:
        InputError: as `transformers`, and an architecture that the engine does not know.
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
        compute_type: Literal["float32", "bfloat16", "float16", "int8"] = "float32",
        device: str = "auto",
    ) -> None:
        common: dict[str, Any] = {"beam": beam, "batch_tokens": batch_tokens, "max_length": max_length, "device": device}
        super().__init__(setting, model=model, revision=revision, codes=codes, **common)
        self._compute_type, self._longest = compute_type, max_length
        own = {"engine": "ctranslate2", "version": importlib.metadata.version("ctranslate2"), "dtype": compute_type}
        self.identity = {**(self.identity or {}), **own}

    def _placed(self, model: Any, tokenizer: Any, device: str) -> Any:
        import ctranslate2
        import torch
        from ctranslate2.converters import TransformersConverter

        forced_end = model.generation_config.forced_eos_token_id is not None  # the last token that may come is then the end
        self._longest = self._max_length - forced_end
        with temporary_folder("crosslign-ctranslate2-") as folder:
            read, made = str(Path(folder, "read")), str(Path(folder, "made"))
            model.save_pretrained(read)
            known = copy.deepcopy(tokenizer)
            if languages := getattr(tokenizer, "lang_code_to_token", None):  # M2M-100 leaves them out of the vocabulary that is converted
                known.add_tokens(list(languages.values()), special_tokens=True)
            known.save_pretrained(read)
            try:
                TransformersConverter(read).convert(made)
            except ValueError as error:
                why, do = " ".join(str(error).split())[:300], "Use `translator: transformers`"
                raise InputError("CTranslate2 cannot convert this model", where=f"{self._where}: {self._name}", why=why, do=do) from error
            place = device if device == "cpu" or has_cublas() else _without_gpu()
            return ctranslate2.Translator(made, device=place, compute_type=self._compute_type, intra_threads=torch.get_num_threads())

    def _generated(self, model: Any, tokenizer: Any, rows: Sequence[Sequence[int]], forced: int | None) -> list[Sequence[int]]:
        found = model.translate_batch(
            [tokenizer.convert_ids_to_tokens(row) for row in rows],
            target_prefix=None if forced is None else [tokenizer.convert_ids_to_tokens([forced])] * len(rows),
            beam_size=self._beam,
            max_input_length=0,
            max_decoding_length=self._longest,
        )
        skipped = 0 if forced is None else 1
        return [tokenizer.convert_tokens_to_ids(made.hypotheses[0])[skipped:] for made in found]
