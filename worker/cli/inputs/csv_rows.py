"""The rows of a CSV file as JSON documents."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator

import msgspec

from worker.cli.inputs.compressed import Reader
from worker.cli.inputs.fault import InputFault
from worker.offline import Line
from worker.settings.sections import DocumentsSection

__all__ = ["DELIMITERS", "csv_rows"]

DELIMITERS = {".csv": ",", ".tsv": "\t"}

_BOM = "\ufeff"
_SKIP = 1 << 16
_encode = msgspec.json.encode


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
        # The module has one limit for the whole process, far below ours.
        csv.field_size_limit(max(csv.field_size_limit(), self._most))
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
    file: Reader, base: bytes, max_row: int, delimiter: str, documents: DocumentsSection
) -> Iterator[Line]:
    """Yield a JSON object for each row below the header, which names the fields.

    Cells are strings. An empty id or time is null. A row that can't be read has a fault, and so has
    one that is longer than ``max_row`` bytes.

    Raises:
        InputFault: there is no usable header, or the last row doesn't end.
    """
    rows = _Rows(file, max_row, delimiter)
    header: list[str] = []
    while (found := rows.next_row()) is not None:
        row, fault = found
        if not row and not fault:
            continue  # A blank line.
        if not header:
            if fault:
                raise InputFault(f"has no usable header; {fault}")
            header = _header(row, delimiter)
            continue
        raw = b""
        if len(row) > len(header):
            fault = f"not-csv: the row has {len(row)} cells, the header {len(header)}"
        if not fault:
            try:
                raw = _encode(_document(header, row, documents)) + b"\n"
            except UnicodeEncodeError:
                fault = "invalid-utf8: the row is not UTF-8"
        yield Line(b"%s:%d" % (base, rows.first), raw, len(raw), fault)


def _header(row: list[str], delimiter: str) -> list[str]:
    names = [row[0].removeprefix(_BOM), *row[1:]]
    twice = next((name for name, n in Counter(names).items() if name and n > 1), None)
    if twice is not None:
        raise InputFault(f"has several columns {twice[:40]!r}")
    other = next((mark for mark in ";\t|," if mark != delimiter and mark in names[0]), None)
    if len(names) == 1 and other is not None:
        raise InputFault(
            f"separates its columns by {other!r}; .csv means commas, and .tsv means tabs"
        )
    return names


def _document(names: list[str], row: list[str], documents: DocumentsSection) -> dict[str, object]:
    cells: dict[str, object] = dict(zip(names, row, strict=False))
    cells.pop("", None)
    if cells.get(documents.id_field) == "":
        cells[documents.id_field] = None
    field = documents.time_field
    if field is not None and not str(cells.get(field) or "").strip():
        cells[field] = None
    return cells
