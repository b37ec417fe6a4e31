"""How much memory this process may use: what its cgroup allows, and what the machine has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

__all__ = ["Machine", "machine"]

_V2_FILES = ("memory.max", "memory.high")
_V1_FILES = ("memory.limit_in_bytes",)


class Machine(NamedTuple):
    """Bytes of memory: of the machine, and the limit of the cgroup if it has one."""

    memory: int
    limit: int | None


def machine(root: Path = Path("/")) -> Machine:
    """Return the memory of this machine, and the limit of this process' cgroup.

    A limit that is not below the machine's memory is none. ``root`` is where ``proc`` and ``sys``
    are.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [limit for limit in _limits(root) if limit < memory]
    return Machine(memory, min(limits, default=None))


def _limits(root: Path) -> Iterator[int]:
    """Yield the limits of the process' cgroup and of those that it is in, of both versions."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            yield from _along(root / "sys/fs/cgroup", path, _V2_FILES)
        elif "memory" in controllers.split(","):
            yield from _along(root / "sys/fs/cgroup/memory", path, _V1_FILES)


def _along(mount: Path, path: str, names: tuple[str, ...]) -> Iterator[int]:
    """Yield the limits of a cgroup and its ancestors.

    In a container the path may be that of the host, of which only the end is mounted, at the root.
    """
    parts = [part for part in PurePosixPath(path).parts if part not in {"/", ".."}]
    for count in range(len(parts) + 1):
        for name in names:
            text = _text(mount.joinpath(*parts[:count], name)).strip()
            if text.isdecimal():
                yield int(text)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""
