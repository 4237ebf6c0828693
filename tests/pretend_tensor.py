"""Tensors of a pretend CUDA device, and what computes on them.

They say `cuda:0`, hold their values in ordinary memory, and every operation computes on the CPU. What a GPU refuses is refused: operands
on different devices, NumPy of a tensor on the device, a CPU's generator, products of integers, operations for CPUs only.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from functools import cache

import pretend_attention
import torch
from pretend_memory import memory
from torch import Tensor

aten = torch.ops.aten

MOVES = {aten.copy_.default, aten._to_copy.default, aten._copy_from.default}
"""Operations between devices."""
INDEXED = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default, aten._unsafe_index.Tensor}
"""Operations on the device whose indices may lie on the CPU."""
WITH_NUMBERS = {
    aten.masked_fill.Tensor,
    aten.masked_fill_.Tensor,
    aten.fill_.Tensor,
    aten.fill.Tensor,
    aten.where.self,
    aten._foreach_mul_.Tensor,
    aten._foreach_mul.Tensor,
}
"""Operations that are not called pointwise and still take a number on the CPU (a tensor without dimensions) beside others."""
PRODUCTS = {aten.mm, aten.bmm, aten.addmm, aten.baddbmm, aten.dot, aten.mv, aten.addmv}


class PretendTensor(Tensor):
    """A tensor that says it lies on a GPU; `_held` is the CPU tensor with its values."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held, device):
        made = Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=None if held.is_sparse else held.stride(),
            storage_offset=None if held.is_sparse else held.storage_offset(),
            dtype=held.dtype,
            layout=held.layout,
            device=device,
            storage_size=None if held.is_sparse else 1 << 60,  # never less than a tensor that is reshaped in place takes
        )
        made._held = held
        made._block = None if held.is_sparse else memory.take(held.untyped_storage())
        return made

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        return compute(operation, args, kwargs or {})

    def numpy(self, *args, **kwargs):
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
        )

    def __array__(self, *args, **kwargs):
        return self.numpy()

    def tolist(self):
        return self.cpu().tolist()

    def __format__(self, wanted):
        return format(self.item() if self.ndim == 0 else repr(self), wanted)

    def untyped_storage(self):
        return self._held.untyped_storage()

    def data_ptr(self):
        return self._held.data_ptr()

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            copied = PretendTensor(self._held.clone(), self.device).requires_grad_(self.requires_grad)
            if isinstance(self, torch.nn.Parameter):
                copied = torch.nn.Parameter(copied, self.requires_grad)
            memo[id(self)] = copied
        return memo[id(self)]

    def __repr__(self, **kwargs):
        return f"{self._held!r} on {self.device}"


class _Draws:
    """The default generator of each device."""

    def __init__(self):
        self.seed(0)

    def seed(self, seed):
        self._seed, self._generators = seed, {}

    def generator(self, index):
        return self._generators.setdefault(index, torch.Generator().manual_seed(self._seed))

    @contextmanager
    def instead(self, device):
        """Let what draws from the CPU's default generator draw from a device's."""
        own, before = self.generator(device.index), torch.default_generator.get_state()
        torch.default_generator.set_state(own.get_state())
        try:
            yield
        finally:
            own.set_state(torch.default_generator.get_state())
            torch.default_generator.set_state(before)


draws = _Draws()


def _each(function, value):
    """Apply a function to a value, or to all of a list of them."""
    return type(value)([_each(function, item) for item in value]) if isinstance(value, (list, tuple)) else function(value)


class Facts:
    """What is known of an operation: whether others make it up, what it takes, what it writes to, whether it draws."""

    def __init__(self, operation):
        self.composed = torch._C._dispatch_has_kernel_for_dispatch_key(operation.name(), "CompositeImplicitAutograd")
        self.takes_numbers = torch.Tag.pointwise in operation.tags or operation in WITH_NUMBERS
        self.draws = torch.Tag.nondeterministic_seeded in operation.tags
        arguments = operation._schema.arguments
        self.views = any(result.alias_info is not None for result in operation._schema.returns)
        self.writes = [i for i, argument in enumerate(arguments) if argument.alias_info is not None and argument.alias_info.is_write]
        self.product = operation.overloadpacket in PRODUCTS
        self.known = operation.namespace in ("aten", "prims", "prim")


facts_of = cache(Facts)


def _device_of(operation, facts, tensors, kwargs):
    """Return the device of the result; refuse operands on different devices, as a GPU does."""
    asked = kwargs.get("device")
    if asked is not None:
        asked = torch.device(asked)
        return torch.device("cuda", asked.index or 0) if asked.type == "cuda" else asked
    home = tensors[0].device
    if operation in MOVES:
        return home
    strangers = [tensor for tensor in tensors if tensor.device != home]
    if not strangers:
        return home
    if operation in INDEXED:
        fine = home.type == "cuda" and all(tensor.device.type == "cpu" for tensor in strangers)
        if "put" in operation.name():
            fine = fine and (tensors[-1].device == home or tensors[-1].ndim == 0)
    else:
        home = next(tensor.device for tensor in tensors if tensor.device.type == "cuda")
        numbers = all(tensor.device == home or (tensor.device.type == "cpu" and tensor.ndim == 0) for tensor in tensors)
        fine = numbers and facts.takes_numbers
    if not fine:
        names = " and ".join(sorted({str(tensor.device) for tensor in tensors}))
        raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {names}! ({operation})")
    return home


def _refuse(operation, facts, tensors, args, kwargs, home):
    """Refuse what a GPU cannot do."""
    if not facts.known:
        raise NotImplementedError(f"Could not run '{operation}' with arguments from the 'CUDA' backend.")
    if facts.product and not tensors[0].dtype.is_floating_point:
        raise RuntimeError(f'"{operation}_cuda" not implemented for {tensors[0].dtype}')
    for place in facts.writes:
        if place < len(args) and isinstance(args[place], Tensor) and args[place].device != home:
            raise RuntimeError(f"Expected all tensors to be on the same device: {operation} writes to {args[place].device}, not {home}")
    if home.type == "cuda" and kwargs.get("generator") is not None:
        raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")


def _reshape(value):
    """Give a tensor the shape that an operation gave what it holds."""
    inner = value._held
    with torch._C._DisableTorchDispatch():
        torch._C._set_meta_in_tls_dispatch_include(True)  # the shape alone is computed
        try:
            value.as_strided_(inner.shape, inner.stride(), inner.storage_offset())
        finally:
            torch._C._set_meta_in_tls_dispatch_include(False)


def compute(operation, args, kwargs):
    """Compute an operation of which a result or an argument lies on a pretend device."""
    if operation in REPLACED:
        return REPLACED[operation](*args, **kwargs)
    facts = facts_of(operation)
    if facts.composed:
        return operation.decompose(*args, **kwargs)
    tensors, given = [], {}

    def held(value):
        if not isinstance(value, Tensor):
            return value
        inner = value._held if isinstance(value, PretendTensor) else value
        given[id(inner)] = value
        tensors.append(value)
        return inner

    plain = _each(held, args)
    plain_named = {name: _each(held, value) for name, value in kwargs.items() if name != "pin_memory"}
    home = _device_of(operation, facts, tensors, kwargs)
    _refuse(operation, facts, tensors, args, kwargs, home)
    if "device" in plain_named:
        plain_named["device"] = torch.device("cpu")
    with draws.instead(home) if facts.draws and home.type == "cuda" else nullcontext():
        result = operation(*plain, **plain_named)
    for value in tensors:
        if isinstance(value, PretendTensor) and value._held.shape != value.shape:
            _reshape(value)

    def wrapped(value):
        if id(value) in given:
            return given[id(value)]
        return PretendTensor(value, home) if isinstance(value, Tensor) and home.type == "cuda" else value

    # In inference mode a view of an ordinary tensor is an ordinary tensor.
    ordinary = facts.views and torch.is_inference_mode_enabled() and not tensors[0].is_inference()
    with torch.inference_mode(False) if ordinary else nullcontext():
        return _each(wrapped, result)


def _attention(kernel, *drawn):
    """Return a kernel of attention over the pretend device's tensors."""

    def attended(query, *args, **kwargs):
        return kernel(lambda held: PretendTensor(held, query.device), *(draw(query.device) for draw in drawn), query, *args, **kwargs)

    return attended


def _seed_of(device):
    return lambda: int(torch.randint(1 << 31, (), generator=draws.generator(device.index)))


REPLACED = {
    aten._flash_attention_forward.default: _attention(pretend_attention.forward, _seed_of),
    aten._flash_attention_backward.default: _attention(pretend_attention.backward),
}
"""Kernels of CUDA that no CPU has, computed by plain operations."""
