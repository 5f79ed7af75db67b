"""The memory of this process, as the system counts it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import mmap

from ._arrays import need_numpy

_DONT_NEED = 4  # MADV_DONTNEED: pages of files leave, and are read again when they are looked at
# Bits of an entry of /proc/self/pagemap.
_PRESENT, _SWAPPED, _OF_FILE = 1 << 63, 1 << 62, 1 << 61


def _field(name: str) -> int:
    """Bytes; 0 where the system does not tell."""
    with contextlib.suppress(OSError):
        with open("/proc/self/status", encoding="ascii") as status:
            for line in status:
                if line.startswith(name + ":"):
                    return int(line.split()[1]) * 1024
    return 0


def resident() -> int:
    return _field("VmRSS")


def trim() -> None:
    """Freed memory goes back to the system, where its C library has a way."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class Process:
    """From now on: how far it grows."""

    def __init__(self) -> None:
        self._before = self._seen = resident()
        self._highest = _field("VmHWM")

    def look(self) -> None:
        """Counts where the process was larger once, so that its peak says nothing of this call."""
        self._seen = max(self._seen, resident())

    def figures(self) -> dict[str, int]:
        """`process_before_bytes` at first, and by how much more it had at most: of a process that was never larger
        before, the system's own peak, else the most of what was looked at."""
        self.look()
        peak = _field("VmHWM")
        most = peak if peak > self._highest else self._seen
        return {
            "process_before_bytes": self._before,
            "process_growth_bytes": max(0, most - self._before),
        }


class FilePages:
    """Memory that files are seen through, as weights that were mapped and not read."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []
        with contextlib.suppress(OSError):
            with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
                for line in maps:
                    place, _, _, _, inode, *_ = line.split(maxsplit=5)
                    if inode != "0":
                        begin, end = (int(part, 16) for part in place.split("-"))
                        self._ranges.append((begin, end))

    def has(self, address: int) -> bool:
        return any(begin <= address < end for begin, end in self._ranges)

    def let_go_of(self, tensor) -> None:
        """Nothing of a tensor of another device, whose addresses are none of this process's files."""
        if tensor.device.type == "cpu":
            self.let_go(tensor.data_ptr(), tensor.numel() * tensor.element_size())

    def let_go(self, address: int, size: int) -> None:
        """Its whole pages leave memory, but for those that were written to, which are the process's own."""
        first, end = -(-address // mmap.PAGESIZE), (address + size) // mmap.PAGESIZE
        if first >= end or not self.has(address):
            return
        with contextlib.suppress(OSError, AttributeError), open("/proc/self/pagemap", "rb") as pagemap:
            advise = ctypes.CDLL(None).madvise
            pagemap.seek(8 * first)
            pages = need_numpy().fromfile(pagemap, "<u8", end - first)
            if len(pages) != end - first:
                return  # of a page that is not known, nobody knows whether it was written to
            own = (pages & _SWAPPED != 0) | ((pages & _PRESENT != 0) & (pages & _OF_FILE == 0))
            edges = [first, *(first + own.nonzero()[0]).tolist(), end]
            for begin, until in zip(edges, edges[1:]):
                begin += begin != first or bool(own[0])
                if begin < until:
                    length = (until - begin) * mmap.PAGESIZE
                    advise(ctypes.c_void_p(begin * mmap.PAGESIZE), ctypes.c_size_t(length), _DONT_NEED)
