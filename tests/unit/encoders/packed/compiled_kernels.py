"""Compile every kernel for a GPU that is not there, by Triton's own compiler, and print what each asks for; a process of its own.

Arguments: the GPU's compute capability times ten, and the type in half precision.
"""

from __future__ import annotations

import json
import sys

from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler import compile as compiled

from crosslign.encoders.packed import fused, kernels
from crosslign.encoders.packed.packing import BLOCKS

TYPES = {
    **dict.fromkeys(("bias", "states", "gain", "shift", "means", "scales", "sums", "of_states"), "*fp32"),
    **dict.fromkeys(("first", "seed", "tokens", "width"), "i32"),
    **{"starts": "*i32", "least": "u32", "factor": "fp32", "scale": "fp32", "epsilon": "fp32"},
}
HALF = ("qkv", "values", "branch", "half", "half_slope", "of_branch", "slope", "out")
"""Arguments in half precision."""
WIDE = {"norm_forward": {"out": "*fp32"}, "norm_backward": {"slope": "*fp32"}}
"""Arguments that are not, in these kernels."""


def asked(kernel, number, num_warps, **constants):
    """Return the shared memory (bytes) that a kernel asks for on a GPU of compute capability `number` / 10."""
    types = {**TYPES, **dict.fromkeys(HALF, f"*{sys.argv[2]}"), **WIDE.get(kernel.__name__, {})}
    signature = {name: "constexpr" if name in constants else types[name] for name in kernel.arg_names}
    source = ASTSource(kernel, signature, constexprs={(kernel.arg_names.index(name),): value for name, value in constants.items()})
    return compiled(source, target=GPUTarget("cuda", number, 32), options={"num_warps": num_warps}).metadata.shared


def everything(number):
    """Return what all kernels ask for, by name, for an encoder of 1024 dimensions and each size of heads."""
    drop, span = {"DROP": True}, fused.SPAN
    found = {
        "norm_forward": asked(kernels.norm_forward, number, **fused._launch(1024), BLOCK=1024, **drop),
        "norm_backward": asked(kernels.norm_backward, number, **fused._launch(1024), BLOCK=1024, BOTH=True, **drop),
        "gelu_forward": asked(kernels.gelu_forward, number, **fused._launch(span), BLOCK=span),
        "gelu_backward": asked(kernels.gelu_backward, number, **fused._launch(span), BLOCK=span),
    }
    for kernel in (kernels.attention_forward, kernels.attention_backward):
        for heads, size in ((12, 32), (12, 64), (16, 64), (8, 128)):
            block = BLOCKS[-1]
            shared = asked(kernel, number, block // 16, HEADS=heads, SIZE=size, BLOCK=block, **drop)
            found[f"{kernel.__name__} {heads}x{size}"] = shared
    return found


if __name__ == "__main__":
    json.dump(everything(int(sys.argv[1])), sys.stdout)
