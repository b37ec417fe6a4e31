"""The tables of verdicts that ``dedupe`` writes."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple, Protocol

import msgspec

from worker.files.csv_rows import CsvHead
from worker.files.errors import FileError
from worker.files.verdict_lines import first_of, named
from worker.formats.base import DocumentFormat
from worker.offline.filter import Line, Verdict
from worker.visible import counted, tell

_GROUP_ROWS = 16_384
_GROUP_BYTES = 64 << 20
"""A row group ends with the first chunk that brings one of these; it is in memory until then."""
_FORMULA = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20])")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)*")


class VerdictWriter(Protocol):
    """Writes an output in parts."""

    def encode(self, lines: Sequence[Line], verdicts: Sequence[Verdict]) -> bytes:
        """Return what to write of a chunk."""

    def end(self) -> bytes:
        """Return what is left to write."""


class _Match(msgspec.Struct):
    id: str
    similarity: float
    containment: float | None = None


_matches = msgspec.json.Decoder(list[_Match])


class Row(NamedTuple):
    """A verdict, in the order of the columns.

    row: the document's number in the run, from 1. source: its place, FILE:LINE, or the file that
    it is. duplicate_first: the id of the earliest match. match, similarity: the best one. group:
    the id of the group's earliest document, with ``--groups``.
    """

    row: int
    source: str
    id: str
    verdict: str
    duplicate_first: str | None
    match: str | None
    similarity: float | None
    duplicate_of: bytes | None
    reason: str | None
    group: str | None = None


class Rows:
    """Numbers documents, and makes rows of their verdicts."""

    def __init__(self, format_: DocumentFormat) -> None:
        self._format = format_
        self._count = 0

    def rows(self, lines: Sequence[Line], verdicts: Sequence[Verdict]) -> list[Row]:
        """Return a row for each document."""
        found = []
        for line, verdict in zip(lines, verdicts, strict=True):
            self._count += 1
            head = (self._count, line.key.decode(), named(self._format, line), verdict.kind)
            if verdict.kind == "duplicate":
                best = _matches.decode(verdict.matches)[0]
                first = first_of(verdict)
                row = Row(*head, first, best.id, best.similarity, verdict.matches, None)
            else:
                row = Row(*head, None, None, None, None, verdict.reason or None)
            found.append(row._replace(group=verdict.group))
        return found


class Lines:
    """Makes lines of cells with commas or tabs, each of which ends with a line feed.

    A cell with a separator, a quote, or a line's end or space at its own end is in quotes; those
    in it are doubled. An apostrophe keeps spreadsheets from running a cell as a formula. It stands
    before all that could be one, and before what has such apostrophes already; `without_mark` takes
    it away. See https://owasp.org/www-community/attacks/CSV_Injection.
    """

    def __init__(self, separator: str, *, keep_formulas: bool = False) -> None:
        """Take what stands between cells; ``keep_formulas``: write no apostrophe."""
        self._separator = separator
        self._quoted = re.compile(rf'[{separator}"\r\n]|^\s|\s$')
        self._keep_formulas = keep_formulas
        self._marked = 0

    def line(self, cells: Iterable[object], own: Iterable[object] = ()) -> str:
        """Return a line; None is an empty cell. Cells of its ``own``, written first, are kept."""
        kept = map(_text, own)
        made = map(_text, cells) if self._keep_formulas else map(self._inert, map(_text, cells))
        return self._separator.join(map(self._cell, chain(kept, made))) + "\n"

    def say(self) -> None:
        """Say how many apostrophes were written."""
        if self._marked:
            cells = counted(self._marked, "cell begins", "cells begin")
            tell(f"neardup: {cells} with an apostrophe, so that no spreadsheet runs what follows")

    def _inert(self, text: str) -> str:
        if _FORMULA.match(text) is None or _NUMBER.fullmatch(text) is not None:
            return text
        self._marked += 1
        return "'" + text

    def _cell(self, text: str) -> str:
        if self._quoted.search(text) is None:
            return text
        return '"' + text.replace('"', '""') + '"'


def _text(value: object) -> str:
    if value is None:
        return ""
    return value.decode() if isinstance(value, bytes) else str(value)


def without_mark(text: str) -> str:
    """Return the cell before which `Lines` may have written an apostrophe."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) is not None else text


class CsvVerdicts:
    """Writes a row for each verdict; see `Lines`."""

    def __init__(self, format_: DocumentFormat, lines: Lines, head: CsvHead) -> None:
        """Keep the format, which finds the ids, and how the first file begins if it is CSV."""
        self._rows = Rows(format_)
        self._lines = lines
        self._head = head
        self._begun = False

    def encode(self, lines: Sequence[Line], verdicts: Sequence[Verdict]) -> bytes:
        """Return the rows of a chunk, and the header before the first one."""
        rows = map(self._lines.line, self._rows.rows(lines, verdicts))
        return self._header() + "".join(rows).encode()

    def end(self) -> bytes:
        """Return the header if there was no row."""
        self._lines.say()
        return self._header()

    def _header(self) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        return (self._head.mark + self._lines.line(Row._fields)).encode()


def arrow() -> tuple[Any, Any]:
    """Return ``pyarrow`` and ``pyarrow.parquet``, an extra that is slow to load.

    Raises:
        FileError: it is missing.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 -- an extra
        import pyarrow.parquet as pq  # noqa: PLC0415 -- the same
    except ImportError:
        raise FileError("-o: to write Parquet takes more: pip install 'neardup[parquet]'") from None
    return pa, pq


def schema_of(pa: Any) -> Any:  # noqa: ANN401 -- pyarrow has no types
    """Return the schema of a table of verdicts."""
    match = pa.struct(
        [("id", pa.string()), ("similarity", pa.float64()), ("containment", pa.float64())]
    )
    other = {"row": pa.int64(), "similarity": pa.float64(), "duplicate_of": pa.list_(match)}
    return pa.schema([(name, other.get(name, pa.string())) for name in Row._fields])


def plain(row: Row) -> dict[str, object]:
    """Return a row for `schema_of`."""
    matches = None
    if row.duplicate_of is not None:
        matches = msgspec.to_builtins(_matches.decode(row.duplicate_of))
    return {**row._asdict(), "duplicate_of": matches}


class ParquetVerdicts:
    """Writes a table; ``duplicate_of`` is a list of structs."""

    def __init__(self, format_: DocumentFormat) -> None:
        """Keep the format, which finds the ids.

        Raises:
            FileError: pyarrow is missing.
        """
        self._arrow, _ = arrow()
        self._schema = schema_of(self._arrow)
        self._groups = RowGroups(self._schema)
        self._rows = Rows(format_)

    def encode(self, lines: Sequence[Line], verdicts: Sequence[Verdict]) -> bytes:
        """Return the row groups that end with a chunk."""
        rows = list(map(plain, self._rows.rows(lines, verdicts)))
        return self._groups.add(self._arrow.Table.from_pylist(rows, schema=self._schema))

    def end(self) -> bytes:
        """Return the last row group and the footer."""
        return self._groups.end()


class RowGroups:
    """Writes tables as a file of Parquet, in row groups of bounded size."""

    def __init__(self, schema: Any) -> None:  # noqa: ANN401 -- pyarrow has no types
        """Take the schema of all tables."""
        self._arrow, parquet = arrow()
        self._sink = _Sink()
        self._writer = parquet.ParquetWriter(self._sink, schema, compression="zstd")
        self._group: list[Any] = []

    def add(self, table: Any) -> bytes:  # noqa: ANN401 -- pyarrow has no types
        """Return the row groups that end with a table."""
        self._group.append(table)
        rows = sum(part.num_rows for part in self._group)
        if rows >= _GROUP_ROWS or sum(part.nbytes for part in self._group) >= _GROUP_BYTES:
            self._write()
        return self._sink.taken()

    def end(self) -> bytes:
        """Return the last row group and the footer."""
        if self._group:
            self._write()
        self._writer.close()
        return self._sink.taken()

    def _write(self) -> None:
        self._writer.write_table(self._arrow.concat_tables(self._group))
        self._group = []


class _Sink(io.RawIOBase):
    """Collects what a writer of files writes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        """Return that it can be written to."""
        return True

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._position

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        """Take some bytes."""
        self._parts.append(bytes(data))
        self._position += len(data)
        return len(data)

    def taken(self) -> bytes:
        """Return what was written since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)
