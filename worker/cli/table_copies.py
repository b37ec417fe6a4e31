"""The tables that ``dedupe`` writes of tables: their rows, with the verdicts in columns beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

import msgspec

from worker.cli.errors import CommandError
from worker.cli.inputs.fault import InputFault
from worker.cli.verdict_tables import Lines, Row, Rows, Sink, arrow, plain, schema_of
from worker.formats.base import DocumentFormat
from worker.offline import Line, Verdict

__all__ = ["CsvCopy", "ParquetCopy"]

_PREFIX = "neardup_"
_ADDED: Final = Row._fields[: Row._fields.index("group")]
"""Groups are known at the end only, when the copies are written."""
_GROUP_ROWS = 16_384
_GROUP_BYTES = 64 << 20
"""A row group ends with the first chunk that brings one of these; it is in memory until then."""
_BATCH_ROWS = 1_024
_decode = msgspec.json.Decoder(dict[str, str | None]).decode


def _free(columns: Sequence[str]) -> None:
    taken = next((name for name in columns if name.startswith(_PREFIX)), None)
    if taken is not None:
        raise CommandError(f"--keep-columns: there is a column {taken!r} already; rename it")


class CsvCopy:
    """Writes the rows of CSV files; of one that can't be read, the cells are empty."""

    def __init__(self, format_: DocumentFormat, separator: str, *, unique_only: bool) -> None:
        """Keep the format, which finds the ids.

        ``unique_only``: write only the rows of unique documents, without verdicts.
        """
        self._rows = Rows(format_)
        self._lines = Lines(separator)
        self._unique_only = unique_only
        self._columns: list[str] | None = None
        self._unread: list[Row] = []
        """Rows that came before the first one with columns."""

    def encode(self, lines: Sequence[Line], verdicts: Sequence[Verdict]) -> bytes:
        """Return the rows of a chunk, and the header before the first one.

        Raises:
            CommandError: a row has other columns than the first one.
        """
        made = []
        for line, row in zip(lines, self._rows.rows(lines, verdicts), strict=True):
            cells = _decode(line.value) if line.complete and not line.fault else None
            if cells is not None and self._columns is None:
                made.append(self._begun(list(cells)))
            if self._columns is None:
                self._unread.append(row)
                continue
            if cells is not None and not cells.keys() <= set(self._columns):
                other = min(cells.keys() - set(self._columns))
                raise CommandError(
                    f"{row.source}: has a column {other!r}, which the first row doesn't have;"
                    " give files with the same columns"
                )
            made.append(self._written(cells or {}, row))
        return "".join(made).encode()

    def end(self) -> bytes:
        """Return the header, if no row had columns."""
        return self._begun([]).encode() if self._columns is None else b""

    def _begun(self, columns: list[str]) -> str:
        if not self._unique_only:
            _free(columns)
        self._columns = columns
        added = [] if self._unique_only else [_PREFIX + name for name in _ADDED]
        head = self._lines.line([*columns, *added])
        return head + "".join(self._written({}, row) for row in self._unread)

    def _written(self, cells: dict[str, str | None], row: Row) -> str:
        if self._unique_only and row.verdict != "unique":
            return ""
        own = [cells.get(name) for name in self._columns or ()]
        return self._lines.line(own if self._unique_only else [*own, *row[: len(_ADDED)]])


class ParquetCopy:
    """Writes the rows of Parquet files with their types; it reads the files again for that."""

    def __init__(
        self,
        format_: DocumentFormat,
        reopened: Callable[[], Iterator[tuple[str, BinaryIO]]],
        *,
        unique_only: bool,
    ) -> None:
        """Keep the format, which finds the ids.

        ``reopened`` yields the names of the files, each with the open file. ``unique_only``: write
        only the rows of unique documents, without verdicts.

        Raises:
            CommandError: pyarrow is missing, or the files have different columns.
        """
        self._arrow, self._parquet = arrow()
        self._reopened = reopened
        self._unique_only = unique_only
        self._rows = Rows(format_)
        self._schema = self._columns()
        self._verdicts = self._arrow.schema(
            [schema_of(self._arrow).field(name).with_name(_PREFIX + name) for name in _ADDED]
        )
        whole = self._schema
        if not unique_only:
            _free(self._schema.names)
            for field in self._verdicts:
                whole = whole.append(field)
        self._sink = Sink()
        self._writer = self._parquet.ParquetWriter(self._sink, whole, compression="zstd")
        self._batches = self._read()
        self._left: Any = None
        self._group: list[Any] = []

    def encode(self, lines: Sequence[Line], verdicts: Sequence[Verdict]) -> bytes:
        """Return the row groups that end with a chunk."""
        table = self._taken(len(lines))
        if self._unique_only:
            kept = self._arrow.array([verdict.kind == "unique" for verdict in verdicts])
            table = table.filter(kept)
        else:
            rows = list(map(plain, self._rows.rows(lines, verdicts)))
            for field, name in zip(self._verdicts, _ADDED, strict=True):
                column = self._arrow.array([row[name] for row in rows], field.type)
                table = table.append_column(field, column)
        self._group.append(table)
        rows_held = sum(part.num_rows for part in self._group)
        if rows_held >= _GROUP_ROWS or sum(part.nbytes for part in self._group) >= _GROUP_BYTES:
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

    def _columns(self) -> Any:  # noqa: ANN401 -- pyarrow has no types
        """Return the schema that all files have."""
        found = None
        for name, file in self._reopened():
            with self._readable(name):
                schema = self._parquet.ParquetFile(file).schema_arrow
            if found is not None and not schema.equals(found):
                raise CommandError(f"{name}: has other columns, or types, than the file before it")
            found = schema
        return found

    def _read(self) -> Iterator[Any]:
        for name, file in self._reopened():
            with self._readable(name):
                opened = self._parquet.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False)
                yield from opened.iter_batches(_BATCH_ROWS, use_threads=False)

    @contextmanager
    def _readable(self, name: str) -> Iterator[None]:
        try:
            yield
        except (InputFault, self._arrow.ArrowException, OSError) as error:
            raise CommandError(f"{name}: {str(error).partition(chr(10))[0]}") from None

    def _taken(self, count: int) -> Any:  # noqa: ANN401 -- pyarrow has no types
        """Return the next rows of the files as a table."""
        parts = []
        while count:
            if self._left is None or not self._left.num_rows:
                self._left = next(self._batches, None)
            if self._left is None:
                raise CommandError("a file has fewer rows than when it was read first")
            part = self._left.slice(0, count)
            self._left = self._left.slice(part.num_rows)
            count -= part.num_rows
            parts.append(part)
        return self._arrow.Table.from_batches(parts, schema=self._schema)
