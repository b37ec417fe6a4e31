"""The lines that ``dedupe`` writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from worker.offline import Line, Verdict

__all__ = ["UniqueLines", "VerdictLines"]

_MAX_ID_BYTES = 1_024
_encode = msgspec.json.encode


class VerdictLines:
    """Writes a JSON object per document: id, verdict, and what the verdict rests on."""

    def __init__(self, kind: str, id_field: str) -> None:
        """Take where a document has its id."""
        self._decode: Callable[[bytes], object] | None = None
        if kind == "json":
            identified = msgspec.defstruct(
                "Identified",
                [("id", object, None)],
                rename={"id": id_field},
                gc=False,
            )
            self._decode = msgspec.json.Decoder(identified).decode

    def encode(self, lines: Sequence[Line], verdicts: Sequence[Verdict]) -> bytes:
        """Give the output for a chunk."""
        return b"".join(map(self._line, lines, verdicts))

    def _line(self, line: Line, verdict: Verdict) -> bytes:
        ident = _encode(self.identify(line))
        if verdict.kind == "unique":
            return b'{"id":%s,"verdict":"unique"}\n' % ident
        if verdict.kind == "duplicate":
            return b'{"id":%s,"verdict":"duplicate","duplicate_of":%s}\n' % (ident, verdict.matches)
        reason = _encode(verdict.reason)
        return b'{"id":%s,"verdict":"rejected","reason":%s}\n' % (ident, reason)

    def identify(self, line: Line) -> str:
        """Give the id, as the stages do; where there is none, or a wrong one, the place."""
        found: object = None
        if self._decode is not None and line.complete:
            try:
                found = self._decode(line.value).id  # type: ignore[attr-defined]
            except (ValueError, RecursionError):
                found = None
        if isinstance(found, int) and not isinstance(found, bool):
            found = str(found)
        if isinstance(found, str) and 0 < len(found.encode()) <= _MAX_ID_BYTES:
            return found
        return line.key.decode()


class UniqueLines:
    """Writes the lines of unique documents as they were read.

    A file's last line may lack its end; it gets one only if another line follows.
    """

    def __init__(self) -> None:
        """Begin with nothing written."""
        self._open = False

    def encode(self, lines: Sequence[Line], verdicts: Sequence[Verdict]) -> bytes:
        """Give the output for a chunk."""
        kept = []
        for line, verdict in zip(lines, verdicts, strict=True):
            if verdict.kind == "unique":
                if self._open:
                    kept.append(b"\n")
                kept.append(line.raw)
                self._open = not line.raw.endswith(b"\n")
        return b"".join(kept)
