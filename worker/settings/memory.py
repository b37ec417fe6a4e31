"""The memory that a worker may use, and the shares of its parts.

It may use a part of what its cgroup allows, or of what the machine has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

_MIB = 1 << 20
LEAST_MEMORY = 256 * _MIB
"""Below this, the newest cells of an index and the fixed part leave nothing for the rest."""
_PROCESS = 112 * _MIB
"""The interpreter, the libraries, and the stacks of their threads."""
_OF_LIMIT = 3, 4
"""Of a cgroup's limit. The rest is for the page cache of the index, which the kernel charges to the
cgroup too, and for what malloc can't give back."""
_OF_MACHINE = 1, 4
_MOST_OF_MACHINE = 1024 * _MIB
"""Without a limit nobody has said that the memory is the worker's, and other programs are there."""
_COPIES = 8
"""What bursts take, in multiples of the size of one: each stage has one as records and as output,
librdkafka has a copy of the output, and texts and arrays are made from it."""
_BATCH = 16 * _MIB
_LANES = 64 * _MIB
_CLIENT = 48 * _MIB
_LEAST_CLIENT = 3 * _MIB
"""librdkafka allows no fetch of less than 1 MB."""
_LEAST_BATCH = 1 * _MIB
_LEAST_QUEUE = 16 * _MIB
_STORE_BUFFER = 32 * _MIB
_BUFFERS = 8 * _MIB, 128 * _MIB
MOST_CACHE = 16 * _MIB
"""Of blocks. A larger cache of them costs more than it saves: the kernel has the files in its own,
and blocks that come and go leave holes in malloc's heap."""
GROUPS_CACHE, GROUPS_BUFFER = 16 * _MIB, 8 * _MIB
"""The block cache and the write buffer of a server's groups, whatever their number."""
_V2_FILES = ("memory.max", "memory.high")
_V1_FILES = ("memory.limit_in_bytes",)


class Machine(NamedTuple):
    """Bytes of memory: of the machine, and the limit of the cgroup if it has one."""

    memory: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class Wishes:
    """The facts that divide memory: the stages and shards of a worker, and the parts that are set.

    Sizes are in bytes; None: the part gets its share. ``groups``: groups are kept as well.
    """

    stages: tuple[str, ...]
    shards: int
    standby: bool = False
    groups: bool = False
    cache: int | None = None
    write_buffer: int | None = None
    lanes: int | None = None
    batch: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryShares:
    """The parts of a worker's memory, in bytes.

    Attributes:
        total: all of it.
        process: what an idle worker takes.
        bursts: what all stages work on at a time.
        batch: the size of one burst, as it is read or published.
        lanes: what waits in *route*.
        clients: what consumers fetch ahead.
        client: the part of that of one consumer of a stage.
        log_reader: the part of that of one reader of the index's log.
        groups: what a server keeps of its groups.
        index: everything that the stores of all shards keep in memory.
        write_buffers: the part of that for the write buffers of all stores.
        write_buffer: the write buffer of one store.
        cache: the block cache if it has a fixed size; else it gets what the others leave of
            ``index``, up to `MOST_CACHE`.
    """

    total: int
    process: int
    bursts: int
    batch: int
    lanes: int
    clients: int
    client: int
    log_reader: int
    groups: int
    index: int
    write_buffers: int
    write_buffer: int
    cache: int | None

    @property
    def most_cache(self) -> int:
        """Return the most that the block cache may take."""
        if self.cache is not None:
            return self.cache
        return min(MOST_CACHE, self.index - self.write_buffers)

    @property
    def fits(self) -> bool:
        """Return whether the parts that are set leave enough for the others."""
        return self.most_cache > 0 and self.write_buffers + self.most_cache <= self.index

    @property
    def fetched(self) -> tuple[int, int]:
        """Return the queue of a stage's consumer, and the most that it fetches at once."""
        return _queue_and_fetch(self.client)

    @property
    def log_fetched(self) -> tuple[int, int]:
        """Return the same of a reader of the index's log."""
        return _queue_and_fetch(self.log_reader)

    @property
    def produced(self) -> int:
        """Return the queue of a producer: a burst's output, and at least one large record."""
        return max(2 * self.batch, _LEAST_QUEUE)


def automatic(found: Machine) -> int:
    """Return how much memory a worker takes on a machine if no setting says it, in bytes."""
    if found.limit is not None:
        part, of = _OF_LIMIT
        return max(LEAST_MEMORY, found.limit * part // of)
    part, of = _OF_MACHINE
    return max(LEAST_MEMORY, min(_MOST_OF_MACHINE, found.memory * part // of))


def divided(total: int, wishes: Wishes) -> MemoryShares:
    """Divide memory: bounded parts first, and what they leave is the index's.

    The index gains from more, and grows with the documents. The others gain nothing beyond the
    sizes at which they were measured.
    """
    left = max(LEAST_MEMORY, total) - _PROCESS
    batch = wishes.batch or max(_LEAST_BATCH, min(_BATCH, left // (4 * _COPIES)))
    lanes = wishes.lanes or min(_LANES, left // 8)
    if "route" not in wishes.stages:
        lanes = 0
    consumers = len(wishes.stages) + ("index" in wishes.stages and wishes.standby)
    client = min(_CLIENT, left // 18)
    clients = consumers * client
    groups = GROUPS_CACHE + GROUPS_BUFFER if wishes.groups else 0
    index = left - _COPIES * batch - lanes - clients - groups
    least, most = _BUFFERS
    write_buffers = max(least, min(most, index // 6))
    write_buffer = min(_STORE_BUFFER, write_buffers // 2)
    if wishes.write_buffer is not None:
        write_buffer = wishes.write_buffer
        write_buffers = wishes.shards * write_buffer
    return MemoryShares(
        total=total,
        process=_PROCESS,
        bursts=_COPIES * batch,
        batch=batch,
        lanes=lanes,
        clients=clients,
        client=client,
        log_reader=max(_LEAST_CLIENT, client // wishes.shards),
        groups=groups,
        index=index,
        write_buffers=write_buffers,
        write_buffer=write_buffer,
        cache=wishes.cache,
    )


def _queue_and_fetch(size: int) -> tuple[int, int]:
    """Divide a consumer's memory: while its queue is nearly full, one more fetch may arrive."""
    return size - size // 3, size // 3


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
