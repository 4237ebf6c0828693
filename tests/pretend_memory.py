"""Memory of a pretend device: what its tensors hold is counted, and runs out where a test sets a limit."""

from __future__ import annotations

import torch

TOTAL = 64 << 30


class Memory:
    """Bytes of all storages that tensors hold: now, at most, and at most allowed."""

    def __init__(self):
        self.start()

    def start(self):
        """Begin anew, with room for everything."""
        self.held, self.most, self.limit, self._storages = 0, 0, TOTAL, {}

    def take(self, storage):
        """Count a storage for as long as what is returned lives.

        Raises:
            torch.OutOfMemoryError: there is no room for it.
        """
        key, size = storage._cdata, storage.nbytes()
        count, _ = self._storages.get(key, (0, 0))
        if not count:
            if self.held + size > self.limit:
                raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size} bytes, {self.held} are held.")
            self.held += size
            self.most = max(self.most, self.held)
        self._storages[key] = (count + 1, size)
        return Block(self._storages, key)

    def free(self, key):
        """Stop counting a storage for one of its holders."""
        count, size = self._storages.pop(key)
        if count > 1:
            self._storages[key] = (count - 1, size)
        else:
            self.held -= size


class Block:
    """A tensor's hold on its storage."""

    def __init__(self, storages, key):
        self._storages, self._key = storages, key

    def __del__(self):
        if memory is not None and self._storages is memory._storages:  # else it is of a device, or a process, that is gone
            memory.free(self._key)


memory = Memory()


def functions():
    """Return torch.cuda's functions about memory."""

    def allow(fraction, device=None):
        memory.limit = int(fraction * TOTAL)

    def forget_the_most(device=None):
        memory.most = memory.held

    return {
        "memory_allocated": lambda device=None: memory.held,
        "memory_reserved": lambda device=None: memory.held,
        "max_memory_allocated": lambda device=None: memory.most,
        "max_memory_reserved": lambda device=None: memory.most,
        "mem_get_info": lambda device=None: (memory.limit - memory.held, TOTAL),
        "reset_peak_memory_stats": forget_the_most,
        "set_per_process_memory_fraction": allow,
    }
