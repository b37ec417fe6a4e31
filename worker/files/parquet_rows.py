"""The rows of a Parquet file as JSON documents. Needs the extra ``neardup[parquet]``."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from worker.fields import parse
from worker.files.errors import InputFault, check_names
from worker.offline.filter import Line
from worker.settings.documents import DocumentsSection

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


PARQUET_MAGIC = b"PAR1"

_BATCH_ROWS = 256
_BATCH_BYTES = 16 << 20
"""Rows that take more are looked at one by one."""
_ROW_TIMES = 16
"""How many times larger than in JSON a row may be; a decimal number takes up to 32 bytes."""
_BUFFER_BYTES = 1 << 20
_FOOTER = struct.Struct("<i4s")
_LEAST_ITEMS, _MOST_ITEMS = 1_000, 1_000_000
"""How many elements a list in the metadata may say to have: at most as many as there are bytes."""
_encode = msgspec.json.encode


def parquet_rows(
    source: BinaryIO,
    base: bytes,
    max_row: int,
    documents: DocumentsSection,
    read: Callable[[float], None],
) -> Iterator[Line]:
    """Yield a JSON object for each row; call ``read`` with the share of rows read so far.

    Times are ISO 8601, and decimal numbers are strings. Bytes are text if they are UTF-8, otherwise
    base64; in a document's text they are a fault. So is a row of more than ``max_row`` bytes.

    Raises:
        InputFault: see `parquet_batches`.
    """
    number = 0
    texts = {head for name in documents.text_fields for head in (name, parse(name).head)}
    file = parquet_file(source)
    total = file.metadata.num_rows
    with _saying_damage(lambda: number):
        for batch in parquet_batches(file, _BATCH_ROWS):
            for row in _rows(batch, max_row):
                number += 1
                yield _line(b"%s:%d" % (base, number), row, texts, documents.time_field)
            read(min(1.0, number / total) if total else 1.0)


def parquet_file(source: BinaryIO) -> pq.ParquetFile:
    """Return a file whose metadata are read; `parquet_batches` reads the rest.

    Raises:
        InputFault: pyarrow is missing, the file is damaged, or two columns have one name.
    """
    try:
        import pyarrow.parquet as pq  # noqa: PLC0415 -- an extra, and slow to load
    except ImportError:
        raise InputFault(
            "is Parquet; install what reads it: pip install 'neardup[parquet]'"
        ) from None
    with _saying_damage(lambda: 0):
        source.seek(max(0, source.seek(0, io.SEEK_END) - _FOOTER.size))
        end = source.read(_FOOTER.size)
        size = _FOOTER.unpack(end)[0] if len(end) == _FOOTER.size else 0
        file = pq.ParquetFile(
            source,
            buffer_size=_BUFFER_BYTES,
            pre_buffer=False,
            thrift_container_size_limit=min(max(size, _LEAST_ITEMS), _MOST_ITEMS),
        )
        check_names(file.schema_arrow.names)
    return file


def parquet_batches(file: pq.ParquetFile, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, at most so many at a time.

    Raises:
        InputFault: the file is damaged, or there isn't the memory that it says to take.
    """
    number = 0
    with _saying_damage(lambda: number):
        for batch in file.iter_batches(rows, use_threads=False):
            number += batch.num_rows
            yield batch
        if number != file.metadata.num_rows:
            raise InputFault(f"has {number:,} rows, and says {file.metadata.num_rows:,}")


@contextmanager
def _saying_damage(row: Callable[[], int]) -> Iterator[None]:
    """Raise `InputFault` in place of an error of pyarrow's."""
    try:
        yield
    except InputFault:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # The disk's, not the data's.
        what = str(error).partition("\n")[0]
        if isinstance(error, MemoryError):
            raise InputFault(
                f"takes more memory than there is, after row {row()}: {what}"
            ) from None
        raise InputFault(f"damaged Parquet data after row {row()}: {what}") from None


def _rows(batch: pa.RecordBatch, most: int) -> Iterator[dict[str, Any] | str]:
    """Yield rows as Python has them, or the fault of one that can't be had.

    What a batch takes in Python is bounded: else it is halved, down to rows of `_ROW_TIMES`
    ``most`` bytes.
    """
    count, rows = batch.num_rows, None
    try:
        if count == 1 and (size := _size(batch)) > _ROW_TIMES * most:
            yield f"too-large: the row has {size} bytes, far above limits.record_bytes"
            return
        if count == 1 or _cost(batch) <= _BATCH_BYTES:
            rows = _as_python(batch)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 -- pyarrow has many, Python's among them
        if count <= 1:
            no_text = isinstance(error, UnicodeDecodeError)
            what = str(error).partition("\n")[0]
            yield "invalid-utf8: the row is not UTF-8" if no_text else f"not-parquet: {what}"
            return
    if rows is not None:
        yield from rows
    else:
        half = count // 2
        yield from _rows(batch.slice(0, half), most)
        yield from _rows(batch.slice(half), most)


def _cost(batch: pa.RecordBatch) -> float:
    """Return how many bytes a batch takes at most once its values stand for themselves."""
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    most = 0.0
    for column in batch.columns:
        kind, times = column.type, 1
        if _with_leaves(kind, _spread) != kind:
            if pa.types.is_nested(kind):
                return math.inf  # Nulls in a list take nothing.
            times = len(batch)  # Each row may have all of a dictionary.
        elif _with_leaves(kind, _apart) != kind:
            times = 8
        most += column.nbytes * times
    return most


def _size(row: pa.RecordBatch) -> int:
    """Return the bytes of the values of a row."""
    return sum(cells.cast(_with_leaves(cells.type, _apart)).nbytes for cells in row.columns)


def _as_python(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return rows with times in µs, rounded down, and of years up to 9999."""
    import pyarrow as pa  # noqa: PLC0415 -- an extra
    import pyarrow.compute as pc  # noqa: PLC0415 -- the same

    for place, column in enumerate(batch.schema):
        cells = batch.column(place)
        if _is_nanoseconds(column.type):
            cells = pc.floor_temporal(cells, unit="microsecond")
        if (coarser := _with_leaves(column.type, _in_microseconds)) != column.type:
            batch = batch.set_column(place, column.name, cells.cast(coarser, safe=False))
    rows: list[dict[str, Any]]
    try:
        rows = batch.to_pylist()
    except OverflowError:
        # One of the dates is no date of Python's. As a text it is that document's alone.
        for place, column in enumerate(batch.schema):
            if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
                texts = batch.column(place).cast(pa.string())
                batch = batch.set_column(place, column.name, texts)
        rows = batch.to_pylist()
    return rows


def _is_nanoseconds(kind: pa.DataType) -> bool:
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    return bool(pa.types.is_timestamp(kind)) and kind.unit == "ns"


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    """Return µs in place of nanoseconds, for which Python has no type."""
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    return pa.timestamp("us", kind.tz) if _is_nanoseconds(kind) else kind


def _spread(kind: pa.DataType) -> pa.DataType:
    """Return a type without dictionaries, and without a value that takes nothing."""
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    if pa.types.is_dictionary(kind):
        return kind.value_type
    return pa.int8() if pa.types.is_null(kind) else kind


def _apart(kind: pa.DataType) -> pa.DataType:
    """Return a type of which each value takes a byte or more."""
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    return pa.int8() if pa.types.is_boolean(kind) else _spread(kind)


def _with_leaves(kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a type in which those that aren't structs or lists are changed."""
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_with_leaves(each.type, leaf)) for each in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        list_ = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return list_(kind.value_field.with_type(_with_leaves(kind.value_type, leaf)))
    return leaf(kind)


def _line(key: bytes, row: dict[str, Any] | str, texts: set[str], time_field: str | None) -> Line:
    if isinstance(row, str):
        return Line(key, b"", 0, row)
    for name, value in row.items():
        if isinstance(value, bytes | list | dict):
            row[name], readable = _decoded(value)
            if not readable and name in texts:
                return Line(key, b"", 0, f"invalid-utf8: column {name!r} is not UTF-8")
        elif name == time_field and isinstance(value, float) and not math.isfinite(value):
            row[name] = str(value)  # JSON has no such number.
    raw = _encode(row, enc_hook=str) + b"\n"
    return Line(key, raw, len(raw))


def _decoded(value: Any) -> tuple[Any, bool]:  # noqa: ANN401 -- whatever a cell holds
    """Return a cell in which bytes are text, as far as they are UTF-8, and whether all are."""
    if isinstance(value, bytes):
        try:
            return value.decode(), True
        except UnicodeDecodeError:
            return value, False
    if isinstance(value, dict):
        found = {name: _decoded(each) for name, each in value.items()}
        inner = {name: each for name, (each, _) in found.items()}
        return inner, all(readable for _, readable in found.values())
    first = (
        next((each for each in value if each is not None), None)
        if isinstance(value, list)
        else None
    )
    if isinstance(first, bytes | dict | list):
        pairs = [_decoded(each) for each in value]
        return [each for each, _ in pairs], all(readable for _, readable in pairs)
    return value, True
