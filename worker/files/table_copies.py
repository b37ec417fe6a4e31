"""The tables that ``dedupe`` writes of tables: their rows, with the verdicts in columns beside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

import msgspec

from worker.files.csv_rows import CsvHead
from worker.files.errors import FileError, InputFault
from worker.files.parquet_rows import parquet_batches, parquet_file
from worker.files.verdict_tables import Lines, Row, RowGroups, Rows, arrow, plain, schema_of
from worker.formats.base import DocumentFormat
from worker.offline.filter import Line, Verdict

PREFIX: Final = "neardup_"
_ADDED: Final = Row._fields[: Row._fields.index("group")]
"""Groups are known at the end only, when the copies are written."""
_BATCH_ROWS = 1_024
_decode = msgspec.json.Decoder(dict[str, str | None]).decode


def _free(columns: Iterable[str]) -> None:
    taken = next((name for name in columns if name.startswith(PREFIX)), None)
    if taken is not None:
        raise FileError(f"--keep-columns: there is a column {taken!r} already; rename it")


class CsvCopy:
    """Writes the rows of CSV files; of one that can't be read, the cells are empty."""

    def __init__(
        self, format_: DocumentFormat, lines: Lines, head: CsvHead, *, unique_only: bool
    ) -> None:
        """Keep the format, which finds the ids, and how the first file begins.

        ``unique_only``: write only the rows of unique documents, without verdicts.
        """
        self._rows = Rows(format_)
        self._lines = lines
        self._head = head
        self._unique_only = unique_only
        self._begun = False

    def encode(self, lines: Sequence[Line], verdicts: Sequence[Verdict]) -> bytes:
        """Return the rows of a chunk, and the header before the first one.

        Raises:
            FileError: a row has other columns than the first file.
        """
        made = [self._header()]
        columns = self._head.columns or {}
        for line, row in zip(lines, self._rows.rows(lines, verdicts), strict=True):
            cells = _decode(line.value) if line.complete else {}
            if not cells.keys() <= columns.keys():
                other = min(cells.keys() - columns.keys())
                raise FileError(
                    f"{row.source}: has a column {other!r}, which the first file doesn't have;"
                    " give files with the same columns"
                )
            own = map(cells.get, columns)
            if not self._unique_only:
                made.append(self._lines.line(row[: len(_ADDED)], own))
            elif row.verdict == "unique":
                made.append(self._lines.line((), own))
        return "".join(made).encode()

    def end(self) -> bytes:
        """Return the header, if there was no row."""
        self._lines.say()
        return self._header().encode()

    def _header(self) -> str:
        if self._begun:
            return ""
        self._begun = True
        columns = self._head.columns or {}
        added = []
        if not self._unique_only:
            _free(columns)
            added = [PREFIX + name for name in _ADDED]
        return self._head.mark + self._lines.line(added, columns.values())


class ParquetCopy:
    """Writes the rows of Parquet files with their types; it reads the files again for that.

    Files of one table may differ in the order of their columns, in what may be null, and in types
    of which one holds the values of the other.
    """

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
            FileError: pyarrow is missing, or the files have different columns.
        """
        self._arrow, _ = arrow()
        self._reopened = reopened
        self._unique_only = unique_only
        self._rows = Rows(format_)
        self._schema = self._columns()
        self._verdicts = self._arrow.schema(
            [schema_of(self._arrow).field(name).with_name(PREFIX + name) for name in _ADDED]
        )
        whole = self._schema
        if not unique_only:
            _free(self._schema.names)
            for field in self._verdicts:
                whole = whole.append(field)
        self._groups = RowGroups(whole)
        self._batches = self._read()
        self._left: Any = None

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
        return self._groups.add(table)

    def end(self) -> bytes:
        """Return the last row group and the footer."""
        return self._groups.end()

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
                    if not batch.schema.equals(self._schema):
                        table = table.select(self._schema.names).cast(self._schema)
                    yield from table.to_batches()

    @contextmanager
    def _readable(self, name: str) -> Iterator[None]:
        try:
            yield
        except (InputFault, self._arrow.ArrowException, OSError) as error:
            raise FileError(f"{name}: {str(error).partition(chr(10))[0]}") from None

    def _taken(self, count: int) -> Any:  # noqa: ANN401 -- pyarrow has no types
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
        return self._arrow.Table.from_batches(parts, schema=self._schema)
