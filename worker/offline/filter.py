"""Judges documents chunk by chunk, and gives the verdicts in the order of the documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from worker.bus import Outgoing, Record, TopicPartition
from worker.bus.memory import MemoryBus
from worker.closing import Closing
from worker.embedded import Embedded, create_topics
from worker.headers import MATCHES, REASON, SOURCE, SOURCE_OFFSET
from worker.settings import Settings, load
from worker.stages import StageError
from worker.store import HeaderMismatch
from worker.topology import Topology

__all__ = ["Counts", "Line", "OfflineFilter", "Verdict", "offline_settings"]

_READER = "offline"
"""The group that has read the verdicts: what it is past is dropped from the log."""

_BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A document as it was read: ``key`` names where it stands, ``size`` is that in the file.

    ``raw`` is the line with its end; of a line that no setting would admit it is the beginning.
    """

    key: bytes
    raw: bytes
    size: int

    @property
    def value(self) -> bytes:
        """Give what is judged: the line without its end, and without a byte order mark."""
        return self.raw.rstrip(b"\r\n").removeprefix(_BOM)

    @property
    def complete(self) -> bool:
        """Tell whether ``raw`` is all of the line."""
        return self.size == len(self.raw)


class Verdict(NamedTuple):
    """What became of a document; ``matches`` is the JSON of a duplicate's, best first."""

    kind: Literal["unique", "duplicate", "rejected"]
    matches: bytes = b""
    reason: str = ""


@dataclass(slots=True)
class Counts:
    """Documents by verdict, and the rejected by the code of the reason."""

    unique: int = 0
    duplicate: int = 0
    rejected: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def documents(self) -> int:
        """Count all."""
        return self.unique + self.duplicate + self.rejected

    def add(self, verdict: Verdict) -> None:
        """Count one."""
        if verdict.kind == "unique":
            self.unique += 1
        elif verdict.kind == "duplicate":
            self.duplicate += 1
        else:
            self.rejected += 1
            self.reasons[verdict.reason.partition(":")[0]] += 1


def offline_settings(
    path: Path | None = None, overrides: Mapping[str, Any] | None = None
) -> Settings:
    """Read the settings for a run without Kafka; ``overrides`` has dotted names, None is unset.

    The names of topics play no part, so that state doesn't depend on them. Nobody reads
    the values of the outputs, so nothing is spliced in. A document that can't be read is a
    verdict like the others, however many there are. One shard is fastest in one thread.

    Raises:
        ConfigurationError: with the first thing that is wrong.
    """
    forced: dict[str, Any] = {
        "app": "offline",
        "topics.documents": "",
        "topics.unique": "",
        "topics.duplicate": "",
        "topics.rejected": "",
        "documents.splice": False,
        "documents.require_id": False,
        "limits.reject_share": 1,
    }
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    return load(path, {"index.shards": 1, **given, **forced})


class OfflineFilter(Closing):
    """All stages in one thread, on one partition and a directory.

    Memory holds one chunk and RocksDB's caches, however long the run.
    """

    def __init__(
        self,
        settings: Settings,
        directory: Path,
        first_offsets: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        """Open the index in ``directory``; with ``first_offsets`` it goes on from there.

        Raises:
            HeaderMismatch: the index was made with other parameters.
            OSError: RocksDB can't open it.
        """
        self.topology = Topology.of(settings, partitions=1)
        shards, had = self.topology.shards, len((first_offsets or {}).get(self.topology.seats, ()))
        if had not in {0, shards}:
            raise HeaderMismatch(
                f"{directory} was made with other parameters"
                f" (shards: it has {had}, the settings say {shards})"
            )
        self._bus = MemoryBus(trim_consumed=True)
        create_topics(self._bus, self.topology, first_offsets=first_offsets)
        names = (self.topology.unique, self.topology.duplicate, self.topology.rejected)
        self._outputs = [TopicPartition(name, 0) for name in names]
        self._bus.commit_offsets(_READER, dict.fromkeys(self._outputs, 0))
        self._embedded = Embedded(settings, self.topology, self._bus, directory)
        try:
            self._embedded.run_until_idle()
        except BaseException:
            self._embedded.close()
            raise

    def judge(self, lines: Sequence[Line]) -> list[Verdict]:
        """Give a verdict for each line.

        Raises:
            StageError: a stage can't go on.
        """
        documents = self.topology.documents
        first = self._bus.end_offset(documents, 0)
        self._bus.append_many(Outgoing(documents, 0, line.key, line.value) for line in lines)
        self._embedded.run_until_idle()
        verdicts: list[Verdict | None] = [None] * len(lines)
        count = 0
        ends = {}
        for place, of in zip(self._outputs, (_unique, _duplicate, _rejected), strict=True):
            start = self._bus.start_offset(*place)
            for record in self._bus.read(*place, start, len(lines) + 1):
                offset, verdict = of(record)
                verdicts[offset - first] = verdict
                count += 1
            ends[place] = self._bus.end_offset(*place)
        self._bus.commit_offsets(_READER, ends)
        found = [verdict for verdict in verdicts if verdict is not None]
        if not count == len(found) == len(lines):
            raise StageError(
                f"{len(lines)} documents went in, and {count} verdicts on {len(found)} of them"
                " came out: this is a defect of neardup"
            )
        return [
            verdict if line.complete else Verdict("rejected", reason=_too_large(line))
            for line, verdict in zip(lines, found, strict=True)
        ]

    def reached(self) -> dict[str, list[int]]:
        """Give the offsets by topic with which the next run on this index begins."""
        return self._embedded.reached()

    def close(self) -> None:
        """Flush and close the index."""
        self._embedded.close()


_UNIQUE = Verdict("unique")


def _unique(record: Record) -> tuple[int, Verdict]:
    return _source_offset(record), _UNIQUE


def _duplicate(record: Record) -> tuple[int, Verdict]:
    return _source_offset(record), Verdict("duplicate", _header(record, MATCHES))


def _rejected(record: Record) -> tuple[int, Verdict]:
    reason = _header(record, REASON).decode()
    return int(_header(record, SOURCE_OFFSET)), Verdict("rejected", reason=reason)


def _source_offset(record: Record) -> int:
    return int(_header(record, SOURCE).rpartition(b"-")[2])


def _header(record: Record, name: str) -> bytes:
    return next(value for found, value in record.headers if found == name and value is not None)


def _too_large(line: Line) -> str:
    return f"too-large: a line of {line.size} bytes, far above limits.record_bytes"
