"""A stand-in for the package `flash-attn`, by torch's own flash attention: peers that ask for it go without padding where it cannot be had.

`install(folder)`, or `python benchmarks/_flash.py FOLDER`, writes it and tells what a process puts first on its PYTHONPATH. It has what
transformers 5 imports: attention of a padded batch and of packed sentences, with dropout and gradient.
"""

from __future__ import annotations

import sys
from pathlib import Path

FUNCTIONS = """
import torch


def _attention(q, k, v, starts_q, starts_k, most_q, most_k, p, scale, causal):
    return torch.ops.aten._flash_attention_forward(q, k, v, starts_q, starts_k, int(most_q), int(most_k), p, causal, False, scale=scale)[0]


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, deterministic=False):
    return _attention(q, k, v, None, None, q.shape[1], k.shape[1], dropout_p, softmax_scale, causal)


def flash_attn_varlen_func(
    q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0, softmax_scale=None, causal=False, deterministic=False
):
    starts = cu_seqlens_q.to(torch.int32), cu_seqlens_k.to(torch.int32)
    return _attention(q, k, v, *starts, max_seqlen_q, max_seqlen_k, dropout_p, softmax_scale, causal)


def flash_attn_with_kvcache(*_, **__):
    raise NotImplementedError("no cache of keys here")
"""
PADDING = """
from transformers.modeling_flash_attention_utils import _pad_input as pad_input
from transformers.modeling_flash_attention_utils import _unpad_input as unpad_input
"""
METADATA = "Metadata-Version: 2.1\nName: flash-attn\nVersion: 2.8.3\n"


def install(folder: Path) -> Path:
    """Write the stand-in below `folder`; return the path that makes it importable."""
    package, facts = folder / "flash" / "flash_attn", folder / "flash" / "flash_attn-2.8.3.dist-info"
    package.mkdir(parents=True)
    facts.mkdir()
    (package / "__init__.py").write_text(FUNCTIONS, encoding="utf-8")
    (package / "bert_padding.py").write_text(PADDING, encoding="utf-8")
    (facts / "METADATA").write_text(METADATA, encoding="utf-8")
    (facts / "top_level.txt").write_text("flash_attn\n", encoding="utf-8")
    (facts / "RECORD").write_text("flash_attn/__init__.py,,\nflash_attn/bert_padding.py,,\n", encoding="utf-8")
    return package.parent


if __name__ == "__main__":
    print(install(Path(sys.argv[1])))
