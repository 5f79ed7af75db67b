"""A hard limit on the memory of a process: a control group of its own, version 2 or 1, below the one
that this process is in. The kernel kills what does not fit.
"""
import os
import pathlib
import time

ROOT = pathlib.Path("/sys/fs/cgroup")


class MemoryGroup:
    """with MemoryGroup(bytes) as group: Popen(..., preexec_fn=group.enter); group.peak()"""

    def __init__(self, limit):
        self.limit = limit
        self.folder = None

    def __enter__(self):
        parent, self.version = own_group()
        folder = parent / f"thimble-{os.getpid()}-{time.monotonic_ns()}"
        try:
            if self.version == 2 and "memory" not in read(parent / "cgroup.subtree_control"):
                (parent / "cgroup.subtree_control").write_text("+memory")
            folder.mkdir()
            self.folder = folder
            names = {2: ("memory.max", "memory.swap.max"),
                     1: ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")}[self.version]
            (folder / names[0]).write_text(str(self.limit))
            if (folder / names[1]).exists():
                (folder / names[1]).write_text("0" if self.version == 2 else str(self.limit))
        except OSError as error:
            self.__exit__()
            raise PermissionError(f"no control group for memory can be made: {error}") from error
        return self

    def __exit__(self, *_):
        if self.folder is None:
            return
        for _ in range(50):  # until the kernel has seen that its processes ended
            try:
                self.folder.rmdir()
                return
            except OSError:
                time.sleep(0.02)

    def enter(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def peak(self):
        """The most that it took so far, in bytes; None: the kernel does not tell."""
        name = "memory.peak" if self.version == 2 else "memory.max_usage_in_bytes"
        text = read(self.folder / name)
        return int(text) if text else None


def read(path):
    return path.read_text().strip() if path.exists() else ""


def own_group():
    """The folder of this process's group for memory, and the version."""
    mounts = {}
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup2":
            mounts["2"] = where
        elif kind == "cgroup" and "memory" in options.split(","):
            mounts["memory"] = where
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(",") and "memory" in mounts:
            return pathlib.Path(mounts["memory"] + path), 1
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        if line.startswith("0::") and "2" in mounts:
            return pathlib.Path(mounts["2"] + line[3:]), 2
    raise PermissionError("no control groups for memory are mounted")
