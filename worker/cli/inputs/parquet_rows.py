"""The rows of a Parquet file as JSON documents. Needs the extra ``neardup[parquet]``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from worker.cli.inputs.fault import InputFault
from worker.offline import Line
from worker.settings.sections import DocumentsSection

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PARQUET_MAGIC", "PARQUET_SUFFIXES", "parquet_rows"]

PARQUET_SUFFIXES = (".parquet", ".pq")
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
    base64; as a document's text they are a fault.

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
    try:
        file = pq.ParquetFile(source, buffer_size=_BUFFER_BYTES, pre_buffer=False)
        total = file.metadata.num_rows
        for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
            for row in _in_microseconds(batch).to_pylist():
                number += 1
                yield _line(b"%s:%d" % (base, number), row, documents)
            read(number / total)
    except (pa.ArrowException, ValueError, OverflowError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # The disk's, not the data's.
        what = str(error).partition("\n")[0]
        raise InputFault(f"damaged Parquet data after row {number}: {what}") from None


def _in_microseconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch without times in nanoseconds, for which Python has no type."""
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    for place, column in enumerate(batch.schema):
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
            coarser = pa.timestamp("us", column.type.tz)
            cast = batch.column(place).cast(coarser, safe=False)
            batch = batch.set_column(place, column.name, cast)
    return batch


def _line(key: bytes, row: dict[str, Any], documents: DocumentsSection) -> Line:
    for name, value in row.items():
        if isinstance(value, bytes):
            try:
                row[name] = value.decode()
            except UnicodeDecodeError:
                if name in documents.text_fields:
                    return Line(key, b"", 0, f"invalid-utf8: column {name!r} is not UTF-8")
    raw = _encode(row, enc_hook=str) + b"\n"
    return Line(key, raw, len(raw))
