"""The rows of a CSV file as JSON documents."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

import msgspec

from worker.files.compressed import Reader
from worker.files.errors import InputFault, check_names
from worker.offline.filter import Line
from worker.settings.documents import DocumentsSection

DELIMITERS = {".csv": ",", ".tsv": "\t"}

_BOM = "\ufeff"
_EXCEL = re.compile(rb'(?:\xef\xbb\xbf)?"?sep=([,;|\t])"?\r?\n')
"""The line by which Excel is told what separates the cells of a file."""
_SKIP = 1 << 16
_PEEK = 16
_encode = msgspec.json.encode


class CsvHead:
    """How the first table of a run begins, which a copy of its rows does, too.

    Attributes:
        columns: its columns by the names of their fields; None if no table had a header so far. A
            column without a name is the field ``column_N``, where N is its number from 1; where it
            is empty, there is none.
        mark: its byte order mark, if it has one. Excel needs it to show more than ASCII.
    """

    def __init__(self) -> None:
        """Begin with no table."""
        self.columns: dict[str, str] | None = None
        self.mark = ""


class _TooLongError(Exception):
    """A row is longer than the limit."""


class _Rows:
    """Reads row by row, and knows where the present one began.

    A quoted cell may contain line ends, so a row has any number of lines.
    """

    def __init__(self, file: Reader, most: int, delimiter: str) -> None:
        self._file = file
        self._most = most + 2
        self._line = 0
        self._quotes = 0
        self._size = 0
        self._ended = True
        self.first = 1
        if (excel := _EXCEL.match(file.peek(_PEEK))) is not None:
            delimiter = excel[1].decode()
            self._read(_PEEK)
        # The module has one limit for the whole process, far below ours.
        csv.field_size_limit(max(csv.field_size_limit(), self._most))
        self.delimiter = delimiter
        self._parsed = csv.reader(self, delimiter=delimiter, strict=True)

    def next_row(self) -> tuple[list[str], str] | None:
        """Return the next row, or its fault; None at the end.

        Raises:
            InputFault: the row doesn't end.
        """
        self.first = self._line + 1
        self._size = self._quotes = 0
        try:
            return next(self._parsed), ""
        except StopIteration:
            return None
        except _TooLongError:
            self._skip()
            size = self._size
            return [], f"too-large: the row has {size} bytes, far above limits.record_bytes"
        except csv.Error as error:
            if "unexpected end" in str(error):
                raise InputFault(_unclosed(self.first)) from None
            return [], f"not-csv: {error}"

    def __iter__(self) -> Iterator[str]:
        """Return the lines as `csv` takes them."""
        return self

    def __next__(self) -> str:
        """Return the next line of the row."""
        raw = self._read(self._most)
        if not raw:
            raise StopIteration
        if self._size >= self._most:
            raise _TooLongError
        return raw.decode(errors="surrogateescape")

    def _skip(self) -> None:
        """Skip the rest of a row, without holding it.

        The row ends with the first line up to which the number of quotes is even.
        """
        while not self._ended or self._quotes % 2:
            if not self._read(_SKIP):
                if self._quotes % 2:
                    raise InputFault(_unclosed(self.first))
                return

    def _read(self, most: int) -> bytes:
        raw = self._file.readline(most)
        self._ended = raw.endswith(b"\n")
        self._line += self._ended
        self._quotes += raw.count(b'"')
        self._size += len(raw)
        return raw


def _unclosed(line: int) -> str:
    """Return what to say of a quote in a row that begins in ``line``."""
    return f"the row that begins in line {line} has a quote that isn't closed"


def csv_rows(
    file: Reader,
    base: bytes,
    max_row: int,
    delimiter: str,
    documents: DocumentsSection,
    head: CsvHead,
) -> Iterator[Line]:
    """Yield a JSON object for each row below the header, which names the fields; see `CsvHead`.

    Cells are strings. An empty id or time is null. A row that can't be read has a fault, and so has
    one that is longer than ``max_row`` bytes.

    Raises:
        InputFault: there is no usable header, or the last row doesn't end.
    """
    rows = _Rows(file, max_row, delimiter)
    header: list[str] = []
    unnamed: set[str] = set()
    while (found := rows.next_row()) is not None:
        row, fault = found
        if not row and not fault:
            continue  # A blank line.
        if not header:
            if fault:
                raise InputFault(f"has no usable header; {fault}")
            written = _header(row, rows.delimiter)
            header = _fields(written)
            unnamed = set(header).difference(written)
            if head.columns is None:
                head.columns = dict(zip(header, written, strict=True))
            continue
        raw = b""
        if len(row) > len(header):
            fault = f"not-csv: the row has {len(row)} cells, the header {len(header)}"
        if not fault:
            try:
                raw = _encode(_document(header, unnamed, row, documents)) + b"\n"
            except UnicodeEncodeError:
                fault = "invalid-utf8: the row is not UTF-8"
        yield Line(b"%s:%d" % (base, rows.first), raw, len(raw), fault)


def _header(row: list[str], delimiter: str) -> list[str]:
    names = [row[0].removeprefix(_BOM), *row[1:]]
    check_names(list(filter(None, names)))
    other = next((mark for mark in ";\t|," if mark != delimiter and mark in names[0]), None)
    if len(names) == 1 and other is not None:
        raise InputFault(
            f"separates its columns by {other!r}; .csv means commas, and .tsv means tabs"
        )
    return names


def _fields(names: list[str]) -> list[str]:
    """Return the fields of columns, all of them with a name."""
    given, fields = set(names), []
    for number, name in enumerate(names, 1):
        field = name or f"column_{number}"
        while not name and field in given:
            field += "_"
        fields.append(field)
    return fields


def _document(
    names: list[str], unnamed: set[str], row: list[str], documents: DocumentsSection
) -> dict[str, object]:
    cells: dict[str, object] = dict(zip(names, row, strict=False))
    for name in unnamed:  # A spreadsheet may write thousands of empty ones.
        if cells.get(name) == "":
            del cells[name]
    if cells.get(documents.id_field) == "":
        cells[documents.id_field] = None
    field = documents.time_field
    if field is not None and not str(cells.get(field) or "").strip():
        cells[field] = None
    return cells
