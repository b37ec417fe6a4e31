"""Signs payloads of several frames as one batch."""

from __future__ import annotations

from collections.abc import Sequence

from lsh import Fingerprinter
from worker.formats.base import DocumentFormat, Unreadable
from worker.stages.base import StageError
from worker.stages.framing import checksum
from worker.stages.replacement import Found, Replacement

__all__ = ["Signer"]


class Signer:
    """Reads payloads and makes their fingerprints."""

    def __init__(self, reader: DocumentFormat, fingerprinter: Fingerprinter) -> None:
        """Take how to read a document, and how to sign its text."""
        self._reader = reader
        self._fingerprinter = fingerprinter
        self.nothing = fingerprinter.fingerprint([])
        """The fingerprints of no texts."""

    def sign(self, found: Sequence[tuple[Replacement, Sequence[Found]]]) -> None:
        """Give each frame the fingerprints of its payloads; set aside what can't be read.

        Raises:
            StageError: a payload is not that of the document that was judged.
        """
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
        signed = self._fingerprinter.fingerprint(texts)
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
