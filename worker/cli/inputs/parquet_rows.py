"""The rows of a Parquet file as JSON documents. Needs the extra ``neardup[parquet]``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from worker.cli.inputs.fault import InputFault
from worker.fields import parse
from worker.offline import Line
from worker.settings.sections import DocumentsSection

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PARQUET_MAGIC", "parquet_rows"]

PARQUET_MAGIC = b"PAR1"

_BATCH_ROWS = 256
_BUFFER_BYTES = 1 << 20
_encode = msgspec.json.encode


def parquet_rows(
    source: BinaryIO,
    base: bytes,
    documents: DocumentsSection,
    read: Callable[[float], None],
) -> Iterator[Line]:
    """Yield a JSON object for each row; call ``read`` with the share of rows read so far.

    Times are ISO 8601, and decimal numbers are strings. Bytes are text if they are UTF-8, otherwise
    base64; in a document's text they are a fault.

    Raises:
        InputFault: pyarrow is missing, or the file is damaged.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 -- an extra, and slow to load
        import pyarrow.parquet as pq  # noqa: PLC0415 -- the same
    except ImportError:
        raise InputFault(
            "is Parquet; install what reads it: pip install 'neardup[parquet]'"
        ) from None
    number = 0
    texts = {head for name in documents.text_fields for head in (name, parse(name).head)}
    try:
        file = pq.ParquetFile(source, buffer_size=_BUFFER_BYTES, pre_buffer=False)
        total = file.metadata.num_rows
        for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
            for row in _rows(batch):
                number += 1
                yield _line(b"%s:%d" % (base, number), row, texts, documents.time_field)
            read(number / total)
    except (pa.ArrowException, ValueError, OverflowError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # The disk's, not the data's.
        what = str(error).partition("\n")[0]
        raise InputFault(f"damaged Parquet data after row {number}: {what}") from None


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return rows as Python has them: with times in µs, rounded down, and of years up to 9999."""
    import pyarrow as pa  # noqa: PLC0415 -- an extra
    import pyarrow.compute as pc  # noqa: PLC0415 -- the same

    for place, column in enumerate(batch.schema):
        cells = batch.column(place)
        if _is_nanoseconds(column.type):
            cells = pc.floor_temporal(cells, unit="microsecond")
        if (coarser := _in_microseconds(column.type)) != column.type:
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
    """Return a type with µs in place of nanoseconds, for which Python has no type."""
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    if _is_nanoseconds(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_in_microseconds(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_in_microseconds(kind.value_type)))
    return kind


def _line(key: bytes, row: dict[str, Any], texts: set[str], time_field: str | None) -> Line:
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
