"""The tables that ``dedupe`` writes: of verdicts, of the rows of tables, or of both."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, BinaryIO, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from worker.files.csv_rows import CsvHead
from worker.files.errors import FileError, InputFault
from worker.files.parquet_rows import parquet_batches, parquet_file
from worker.formats.base import DocumentFormat
from worker.offline.filter import Line, Verdict
from worker.visible import counted, tell

_GROUP_ROWS = 16_384
_GROUP_BYTES = 64 << 20
"""A row group ends with the first chunk that brings one of these; it is in memory until then."""
_FORMULA = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20])")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)*")


ReopenedFiles: TypeAlias = Callable[[], Iterator[tuple[str, BinaryIO]]]
PREFIX: Final = "neardup_"
"""What the columns of verdicts begin with beside those of a file."""
_BATCH_ROWS = 1_024
_decode = msgspec.json.Decoder(dict[str, str | None]).decode


class VerdictWriter(Protocol):
    """Writes an output in parts."""

    def encode(self, lines: Sequence[Line], verdicts: Sequence[Verdict]) -> bytes:
        """Return what to write of a chunk."""

    def end(self) -> bytes:
        """Return what is left to write."""


class _First(msgspec.Struct):
    """The first match, without its sequence number.

    That depends on how files are cut into runs, and the output doesn't.
    """

    id: str


_first = msgspec.json.Decoder(_First)


def first_of(verdict: Verdict) -> str:
    """Return the id of the earliest match of a duplicate."""
    return _first.decode(verdict.first).id


def named(format_: DocumentFormat, line: Line) -> str:
    """Return the id as the stages see it, or FILE:LINE if it is missing or invalid."""
    value = line.value if line.complete else b""
    return (format_.identify(value, line.key) or line.key).decode()


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


_BESIDE: Final = Row._fields[: Row._fields.index("group")]
"""What is written beside a file's own columns: no group, with which rows can't be copied."""


def _free(columns: Iterable[str]) -> None:
    taken = next((name for name in columns if name.startswith(PREFIX)), None)
    if taken is not None:
        raise FileError(f"--keep-columns: there is a column {taken!r} already; rename it")


class CsvTable:
    """Writes verdicts, the rows of CSV files with verdicts, or those of unique documents; in CSV.

    Of a row that can't be read, the file's own cells are empty.
    """

    def __init__(
        self, format_: DocumentFormat, lines: Lines, head: CsvHead, *, own: bool, verdicts: bool
    ) -> None:
        """Keep the format, which finds the ids, and how the first file begins if it is CSV.

        ``own``: write the cells of the files. ``verdicts``: write verdicts; otherwise, rows of
        unique documents alone.
        """
        self._rows = Rows(format_)
        self._lines = lines
        self._head = head
        self._own = own
        self._added = (_BESIDE if own else Row._fields) if verdicts else ()
        self._begun = False

    def encode(self, lines: Sequence[Line], verdicts: Sequence[Verdict]) -> bytes:
        """Return the rows of a chunk, and the header before the first one.

        Raises:
            FileError: a row has other columns than the first file.
        """
        made = [self._header()]
        for line, row in zip(lines, self._rows.rows(lines, verdicts), strict=True):
            own = self._cells(line, row.source)
            if self._added or row.verdict == "unique":
                made.append(self._lines.line(row[: len(self._added)], own))
        return "".join(made).encode()

    def end(self) -> bytes:
        """Return the header, if there was no row."""
        self._lines.say()
        return self._header().encode()

    @property
    def _columns(self) -> dict[str, str]:
        return (self._head.columns or {}) if self._own else {}

    def _cells(self, line: Line, source: str) -> Iterable[str | None]:
        columns = self._columns
        cells = _decode(line.value) if self._own and line.complete else {}
        if not cells.keys() <= columns.keys():
            other = min(cells.keys() - columns.keys())
            raise FileError(
                f"{source}: has a column {other!r}, which the first file doesn't have; give files"
                " with the same columns"
            )
        return map(cells.get, columns)

    def _header(self) -> str:
        if self._begun:
            return ""
        self._begun = True
        columns = self._columns
        if self._added:
            _free(columns)
        prefix = PREFIX if self._own else ""
        added = [prefix + name for name in self._added]
        return self._head.mark + self._lines.line(added, columns.values())


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


class ParquetTable:
    """Writes the same as `CsvTable`, with types; ``duplicate_of`` is a list of structs."""

    def __init__(
        self, format_: DocumentFormat, copied: ReopenedFiles | None, *, verdicts: bool
    ) -> None:
        """Keep the format, which finds the ids.

        ``copied`` yields the names of the files whose rows are written, each with the open file.
        ``verdicts``: write verdicts; otherwise, rows of unique documents alone.

        Raises:
            FileError: pyarrow is missing, or the files have different columns.
        """
        self._arrow, _ = arrow()
        self._rows = Rows(format_)
        self._copied = None if copied is None else _ParquetRows(copied)
        self._added = list(schema_of(self._arrow)) if verdicts else []
        self._schema = self._arrow.schema([])
        if self._copied is not None:
            self._schema = self._copied.schema
            self._added = [
                field.with_name(PREFIX + field.name)
                for field in self._added
                if field.name in _BESIDE
            ]
            if verdicts:
                _free(self._schema.names)
        for field in self._added:
            self._schema = self._schema.append(field)
        self._groups = RowGroups(self._schema)

    def encode(self, lines: Sequence[Line], verdicts: Sequence[Verdict]) -> bytes:
        """Return the row groups that end with a chunk."""
        columns = [] if self._copied is None else self._copied.taken(len(lines)).columns
        rows = list(map(plain, self._rows.rows(lines, verdicts)))
        for field, name in zip(self._added, Row._fields, strict=False):
            columns.append(self._arrow.array([row[name] for row in rows], field.type))
        table = self._arrow.Table.from_arrays(columns, schema=self._schema)
        if not self._added:
            table = table.filter(self._arrow.array([row["verdict"] == "unique" for row in rows]))
        return self._groups.add(table)

    def end(self) -> bytes:
        """Return the last row group and the footer."""
        return self._groups.end()


class _ParquetRows:
    """Reads the rows of Parquet files once more, as rows of one table, with their types.

    The files may differ in the order of their columns, in what may be null, and in types of which
    one holds the values of the other.
    """

    def __init__(self, reopened: ReopenedFiles) -> None:
        """Find the schema.

        Raises:
            FileError: the files have different columns.
        """
        self._arrow, _ = arrow()
        self._reopened = reopened
        self.schema = self._columns()
        self._batches = self._read()
        self._left: Any = None

    def taken(self, count: int) -> Any:  # noqa: ANN401 -- pyarrow has no types
        """Return the next rows of the files as a table."""
        parts = []
        while count:
            if self._left is None or not self._left.num_rows:
                self._left = next(self._batches, None)
            if self._left is None:
                raise FileError("a file has fewer rows than when it was read first")
            part = self._left.slice(0, count)
            self._left = self._left.slice(part.num_rows)
            count -= part.num_rows
            parts.append(part)
        return self._arrow.Table.from_batches(parts, schema=self.schema)

    def _columns(self) -> Any:  # noqa: ANN401 -- pyarrow has no types
        """Return a schema that holds the values of all files."""
        found: Any = None
        for name, file in self._reopened():
            with self._readable(name):
                schema = parquet_file(file).schema_arrow
                if found is None:
                    found = schema
                if set(schema.names) != set(found.names):
                    other = min(set(schema.names) ^ set(found.names))
                    raise InputFault(
                        f"has other columns than the file before it, such as {other!r}"
                    )
                if not schema.equals(found):
                    both = [self._spread(found), self._spread(schema)]
                    found = self._arrow.unify_schemas(both, promote_options="permissive")
        return found

    def _spread(self, schema: Any) -> Any:  # noqa: ANN401 -- pyarrow has no types
        """Return a schema without dictionaries: they merge with nothing else."""
        for place, field in enumerate(schema):
            if self._arrow.types.is_dictionary(field.type):
                schema = schema.set(place, field.with_type(field.type.value_type))
        return schema

    def _read(self) -> Iterator[Any]:
        for name, file in self._reopened():
            with self._readable(name):
                for batch in parquet_batches(parquet_file(file), _BATCH_ROWS):
                    table = self._arrow.Table.from_batches([batch])
                    if not batch.schema.equals(self.schema):
                        table = table.select(self.schema.names).cast(self.schema)
                    yield from table.to_batches()

    @contextmanager
    def _readable(self, name: str) -> Iterator[None]:
        try:
            yield
        except (InputFault, self._arrow.ArrowException, OSError) as error:
            raise FileError(f"{name}: {str(error).partition(chr(10))[0]}") from None


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
