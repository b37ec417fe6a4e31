"""Judges documents chunk by chunk, and returns verdicts in the order of the documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from worker.bus import Outgoing, Record, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.closing import Closing
from worker.formats.base import DocumentFormat
from worker.formats.unreadable import NULL_TEXT, Unreadable
from worker.index.errors import HeaderMismatch, Unrecoverable
from worker.metrics import table
from worker.metrics.metric import Counter as CounterMetric
from worker.offline.embedded import Embedded, create_topics
from worker.settings.loading import load
from worker.settings.model import Settings
from worker.stages.base import StageError
from worker.wire.headers import FIRST, MATCHES, REASON, SOURCE, SOURCE_OFFSET

_READER = "offline"
"""The group that reads the verdicts: the log drops what this group has read."""

_BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A document as it was read: ``key`` is its place, ``size`` its bytes in the file.

    ``raw`` is the line including its end; of a line above every limit, it is the beginning.
    ``fault`` is the reason of a rejection if a row of a table, a file or a mail can't be read;
    ``raw`` is then empty. ``named``: the key is the document's own id, which plain text can't hold.
    """

    key: bytes
    raw: bytes
    size: int
    fault: str = ""
    named: bool = False

    @property
    def value(self) -> bytes:
        """Return the document: the line without its end and without a byte order mark."""
        return self.raw.rstrip(b"\r\n").removeprefix(_BOM)

    @property
    def complete(self) -> bool:
        """Return whether ``raw`` is the whole line."""
        return self.size == len(self.raw) and not self.fault

    @property
    def reason(self) -> str:
        """Return why an incomplete line is rejected."""
        too_large = f"too-large: the line has {self.size} bytes, far above limits.record_bytes"
        return self.fault or too_large


def text_of(documents: DocumentFormat, line: Line) -> str | None:
    """Return the text of a line; None if it can't be read."""
    if not line.complete:
        return None
    try:
        return documents.read(Record("", 0, 0, -1, line.key, line.value)).text
    except Unreadable:
        return None


class Verdict(NamedTuple):
    """The verdict on a document; ``deleted`` is that on a record that deletes one.

    ``matches`` are those of a duplicate as JSON, best first; ``first`` is the earliest of them,
    with its sequence number. ``group`` is the id of its group's earliest document, if groups are
    asked for and it is in one.
    """

    kind: Literal["unique", "duplicate", "rejected", "deleted"]
    matches: bytes = b""
    first: bytes = b""
    reason: str = ""
    group: str | None = None


@dataclass(slots=True)
class Counts:
    """Numbers of documents by verdict, and of rejected ones by the code of the reason.

    first: by code, the place and the reason of the first one.
    older: how many came more than the window older than now.
    """

    unique: int = 0
    duplicate: int = 0
    rejected: int = 0
    deleted: int = 0
    """Records that delete a document; they are none themselves."""
    reasons: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    older: int = 0

    @property
    def documents(self) -> int:
        """Return the number of all documents."""
        return self.unique + self.duplicate + self.rejected

    @property
    def misfits(self) -> Counter[str]:
        """Return the rejected documents by code, without those whose text is null.

        These are none: a change feed may have any number of deletes.
        """
        return Counter({code: n for code, n in self.reasons.items() if code != NULL_TEXT})

    def too_many_rejected(self, share: float) -> bool:
        """Return whether more than ``share`` of the documents can't be read; see `misfits`."""
        return self.misfits.total() > share * (self.documents - self.reasons[NULL_TEXT])

    def add(self, line: Line, verdict: Verdict) -> None:
        """Count a verdict."""
        if verdict.kind == "unique":
            self.unique += 1
        elif verdict.kind == "duplicate":
            self.duplicate += 1
        elif verdict.kind == "deleted":
            self.deleted += 1
        else:
            self.reject(line, verdict.reason)

    def reject(self, line: Line, reason: str) -> None:
        """Count a document that can't be read."""
        code = reason.partition(":")[0]
        self.rejected += 1
        self.reasons[code] += 1
        self.first.setdefault(code, f"{line.key.decode()}, {reason}")


def offline_settings(
    paths: Path | Sequence[Path] | None = None, overrides: Mapping[str, Any] | None = None
) -> Settings:
    """Return the settings for a run without Kafka; ``overrides`` has dotted names, None is unset.

    Topic names are fixed, so that state doesn't depend on them. Nobody reads the values of the
    outputs, so nothing is spliced in. One shard is fastest in one thread. Keys are names of lines.

    Raises:
        ConfigurationError: a setting is wrong; the message names the first one.
    """
    forced: dict[str, Any] = {
        "app": "offline",
        "topics.documents": "",
        "topics.unique": "",
        "topics.duplicate": "",
        "topics.rejected": "",
        "documents.splice": False,
        "documents.require_id": False,
        "documents.key": "auto",
    }
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    return load(paths, {"index.shards": 1, **given, **forced})


class OfflineFilter(Closing):
    """All stages in one thread, on one partition and a directory.

    Memory holds one chunk and RocksDB's caches, however long the run is.
    """

    def __init__(
        self,
        settings: Settings,
        directory: Path,
        first_offsets: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        """Open the index in ``directory``, and continue at ``first_offsets`` if given.

        No share of rejected documents stops it: `Counts` is for its caller.

        Raises:
            HeaderMismatch: the index was made with other parameters.
            OSError: RocksDB can't open the index.
        """
        self.topology = settings.topology(partitions=1)
        shards, had = (
            self.topology.layout.shards,
            len((first_offsets or {}).get(self.topology.seats, ())),
        )
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
        self._embedded = Embedded(
            _without_reject_limit(settings), self.topology, self._bus, directory
        )
        with _for_a_command():
            try:
                self._embedded.run_until_idle()
            except BaseException:
                self._embedded.close()
                raise

    def judge(self, lines: Sequence[Line]) -> list[Verdict]:
        """Return a verdict for each line.

        Raises:
            StageError: a stage can't continue.
        """
        documents = self.topology.documents
        first = self._bus.end_offset(documents, 0)
        self._bus.append_many(
            Outgoing(documents, 0, line.key, line.value if line.complete else b"") for line in lines
        )
        with _for_a_command():
            self._embedded.run_until_idle()
        verdicts: list[Verdict | None] = [None] * len(lines)
        count = passed_on = 0
        ends = {}
        for partition, of in zip(self._outputs, (_unique, _duplicate, _rejected), strict=True):
            start = self._bus.start_offset(*partition)
            for record in self._bus.read(*partition, start, len(lines) + 1):
                if not record.headers:  # A delete, which is on both outputs.
                    passed_on += 1
                    continue
                offset, verdict = of(record)
                verdicts[offset - first] = verdict
                count += 1
            ends[partition] = self._bus.end_offset(*partition)
        self._bus.commit_offsets(_READER, ends)
        found = [_DELETED if verdict is None else verdict for verdict in verdicts]
        deleted = verdicts.count(None)
        if not count + deleted == len(lines) or passed_on != 2 * deleted:
            raise StageError(
                f"{count} verdicts and {passed_on / 2:g} deletes of {len(lines)} documents, instead"
                " of one on each: this is a bug in neardup"
            )
        return [
            verdict if line.complete else Verdict("rejected", reason=line.reason)
            for line, verdict in zip(lines, found, strict=True)
        ]

    @property
    def comparisons(self) -> int:
        """Return how many comparisons with candidates were made."""
        return self._counted(table.INDEX_CANDIDATES)

    @property
    def older(self) -> int:
        """Return how many documents came more than the window older than now."""
        return self._counted(table.INDEX_OLDER) // self.topology.layout.shards

    def _counted(self, counter: CounterMetric) -> int:
        return int(self._embedded.application.metrics.value(counter) or 0)

    def memory(self) -> dict[str, tuple[int, int]]:
        """Return what the index takes of its memory; see `Application.memory`."""
        return self._embedded.application.memory()

    def reached(self) -> dict[str, list[int]]:
        """Return the offsets by topic at which the next run on this index starts."""
        return self._embedded.reached()

    def close(self) -> None:
        """Flush and close the index."""
        with _for_a_command():
            self._embedded.close()


@contextmanager
def _for_a_command() -> Iterator[None]:
    """Have an index that can't be used end a command with what helps one, instead of a worker."""
    try:
        yield
    except StageError as error:
        found = error.__cause__
        if isinstance(found, OSError):
            what = f"the index can't be read or written: {found}"
            look = "that disk's space, quota and permissions"
        elif isinstance(found, Unrecoverable):
            what = "the index was found damaged while it was in use, as the line above says"
            look = "this machine's disk and memory, and --state"
        else:
            raise
        raise StageError(f"{what}. Check {look}, then run the command again") from found


def _without_reject_limit(settings: Settings) -> Settings:
    limits = settings.limits.model_copy(update={"reject_share": 1.0})
    return settings.model_copy(update={"limits": limits})


_UNIQUE = Verdict("unique")
_DELETED = Verdict("deleted")


def _unique(record: Record) -> tuple[int, Verdict]:
    return _source_offset(record), _UNIQUE


def _duplicate(record: Record) -> tuple[int, Verdict]:
    matches, first = _header(record, MATCHES), _header(record, FIRST)
    return _source_offset(record), Verdict("duplicate", matches, first)


def _rejected(record: Record) -> tuple[int, Verdict]:
    reason = _header(record, REASON).decode()
    return int(_header(record, SOURCE_OFFSET)), Verdict("rejected", reason=reason)


def _source_offset(record: Record) -> int:
    return int(_header(record, SOURCE).rpartition(b"-")[2])


def _header(record: Record, name: str) -> bytes:
    return next(value for found, value in record.headers if found == name and value is not None)
