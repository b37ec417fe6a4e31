"""The groups of a run of ``dedupe --groups``, which are known only at its end.

A later document may join two groups. So the documents and their verdicts wait in a temporary file,
compressed, and are written once all are judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import zstandard

from worker.closing import Closing
from worker.files.tables import named
from worker.formats.base import DocumentFormat
from worker.groups.components import Components
from worker.offline.filter import Line, Verdict

_LEVEL = 1
_LENGTH = 8
_Chunk = tuple[list[Line], list[Verdict]]


class _Match(msgspec.Struct):
    id: str


class _First(msgspec.Struct):
    id: str
    sequence: int


_matches = msgspec.json.Decoder(list[_Match])
_first = msgspec.json.Decoder(_First)
_encode = msgspec.msgpack.Encoder().encode
_chunk = msgspec.msgpack.Decoder(_Chunk)


class RunGroups(Closing):
    """Joins documents by their verdicts, and gives these back with their groups."""

    def __init__(self, format_: DocumentFormat, file: Path) -> None:
        """Take what finds the ids, and where the verdicts wait.

        Raises:
            OSError: the file can't be created.
        """
        self._format = format_
        self._components = Components()
        self._file = file.open("xb+")
        file.unlink()  # It goes with the process.

    def add(self, lines: Sequence[Line], verdicts: Sequence[Verdict]) -> None:
        """Take some documents with their verdicts."""
        for line, verdict in zip(lines, verdicts, strict=True):
            if verdict.kind == "duplicate":
                first = _first.decode(verdict.first)
                matches = [one.id for one in _matches.decode(verdict.matches)]
                # The earliest of a group is the earliest that one of its documents matches.
                name = first.sequence, first.id
                self._components.join(named(self._format, line), matches, name)
        packed = zstandard.compress(_encode((lines, verdicts)), _LEVEL)
        self._file.write(len(packed).to_bytes(_LENGTH) + packed)

    def decided(self) -> Iterator[_Chunk]:
        """Yield all documents with their verdicts, in the same chunks, once all have come."""
        self._file.seek(0)
        while length := self._file.read(_LENGTH):
            packed = self._file.read(int.from_bytes(length))
            lines, verdicts = _chunk.decode(zstandard.decompress(packed))
            yield lines, list(map(self._grouped, lines, verdicts))

    def _grouped(self, line: Line, verdict: Verdict) -> Verdict:
        if verdict.kind not in {"unique", "duplicate"}:
            return verdict
        name = self._components.name(named(self._format, line))
        return verdict if name is None else verdict._replace(group=name[1])

    def close(self) -> None:
        """Remove the file."""
        self._file.close()
