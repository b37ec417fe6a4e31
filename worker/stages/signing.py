"""Signs payloads of several frames as one batch."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from lsh import Fingerprinter
from worker.bus import TopicPartition
from worker.formats.base import DocumentFormat, Unreadable
from worker.stages.base import StageError
from worker.stages.deaths import Deaths
from worker.stages.framing import checksum
from worker.stages.replacement import Found, Replacement

__all__ = ["Signer"]

_log = logging.getLogger(__name__)


class Signer:
    """Reads payloads and makes their fingerprints."""

    def __init__(
        self, reader: DocumentFormat, fingerprinter: Fingerprinter, deaths: Deaths
    ) -> None:
        """Take how to read a document, how to sign its text, and what the worker has died of."""
        self._reader = reader
        self.deaths = deaths
        self._fingerprinter = fingerprinter

    def sign(self, found: Sequence[tuple[Replacement, Sequence[Found]]]) -> None:
        """Give each frame the fingerprints of its payloads; set aside what can't be read.

        Raises:
            StageError: a payload is not that of the document that was judged.
        """
        records = [one.record for _, payloads in found for one in payloads]
        if self.deaths.careful(records):
            for frame, payloads in found:
                for one in payloads:
                    self._sign_alone(frame, one)
        else:
            self.deaths.reading({TopicPartition(one[0], one[1]): one[2] + 1 for one in records})
            self._sign(found)
        self.deaths.done()

    def _sign_alone(self, frame: Replacement, found: Found) -> None:
        """Sign a document that may kill the worker, unless it has done so twice."""
        record = found.record
        if not self.deaths.poison(record):
            self.deaths.reading_alone(record)
            self._sign([(frame, [found])])
            return
        _log.error(
            "%s[%d]@%d (%d bytes) is left out of the new index as poison: the worker died twice"
            " while it read this document",
            record.topic, record.partition, record.offset, len(record.value or b""),
            extra={
                "topic": record.topic, "partition": record.partition, "offset": record.offset
            },
        )  # fmt: skip
        frame.set_aside(found.row, "poison")

    def _sign(self, found: Sequence[tuple[Replacement, Sequence[Found]]]) -> None:
        """Read payloads and make their fingerprints in one batch."""
        texts: list[str] = []
        parts: list[tuple[Replacement, list[int]]] = []
        for frame, payloads in found:
            rows: list[int] = []
            for one in payloads:
                text = self._text(one)
                if text is None:
                    frame.set_aside(one.row, "unreadable")
                else:
                    rows.append(one.row)
                    texts.append(text)
            parts.append((frame, rows))
        signed = self._fingerprinter.sign(texts)
        first = 0
        for frame, rows in parts:
            frame.sign(rows, signed, first)
            first += len(rows)

    def _text(self, found: Found) -> str | None:
        """Return a document's text; None if it can't be read any more."""
        record = found.record
        if record.value is None or checksum(record.value) != found.checksum:
            msg = (
                f"{record.topic}[{record.partition}] offset {record.offset}: the payload is not the"
                " one that was judged: the topic was recreated. No fingerprints can be made from"
                " it: abort the reindex"
            )
            raise StageError(msg)
        try:
            return self._reader.read(record).text
        except Unreadable:
            return None
