"""Formats that a base encoder may be published in; each is written out once as an ordinary transformers folder."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from crosslign.registry import Registry


class Format(Protocol):
    """A published form of an encoder."""

    def __call__(self, source: Path, dest: Path) -> None:
        """Write the encoder at `source`, a file or a folder, into the existing folder `dest`: config, safetensors, tokenizer.

        Raises:
            InputError: it is not of this format; says where and why, in one line.
        """


FORMATS: Registry[Format] = Registry("model format", "crosslign.encoders.formats")
