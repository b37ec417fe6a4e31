"""The documents in one file, by what the file is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from worker.files.compressed import Reader
from worker.files.csv_rows import DELIMITERS, CsvHead, csv_rows
from worker.files.encodings import UNREADABLE, by_mark, is_utf8, transcoded
from worker.files.errors import DocumentFault
from worker.files.foreign import check_content, no_array
from worker.files.made import Made, Maker
from worker.files.mailboxes import messages
from worker.files.mails import mail
from worker.files.reading import Kind, Reading, suffix_of
from worker.files.texts import text_of
from worker.files.warc import records
from worker.offline.filter import Line
from worker.settings.sections import DocumentsSection
from worker.visible import tell

_PEEK = 512
_UTF8 = {"utf-8", "utf-8-sig"}
"""The encodings in which lines are read as they are."""


class File(NamedTuple):
    """A file, decompressed; ``base`` names its documents, ``tool`` decompresses it elsewhere."""

    name: str
    base: bytes
    kind: Kind
    content: Reader
    tool: str | None


class Contents:
    """Reads files of all kinds but Parquet, and counts what people should hear of.

    Attributes:
        seen: documents that are ``pages`` of HTML; those that are ``dated``, mails and records;
            ``texts``, files that are one text each, and the ``lines`` in them; files of text that
            are too ``large``.
    """

    def __init__(
        self, documents: DocumentsSection, reading: Reading, left_out: Counter[str]
    ) -> None:
        """Take how files are read; ``left_out`` counts records of WARC files that are no texts."""
        self._documents = documents
        self._reading = reading
        self._left_out = left_out
        self._maker = Maker(documents)
        self._doubted = False
        self.seen: Counter[str] = Counter()
        self.csv = CsvHead()

    def documents(self, file: File, most: int) -> Iterator[Line]:
        """Yield the documents in a file, of at most ``most`` bytes each, or their faults.

        Raises:
            InputFault: the file can't be read.
        """
        name, base, kind, content, tool = file
        encoding = self._reading.encoding
        match kind:
            case "text" | "html":
                yield self._whole(file, most)
            case "mail":
                yield self._one(base, lambda: mail(content, base.decode(), encoding))
            case "mbox":
                yield from self._several(base, messages(content, encoding))
            case "warc":
                yield from self._several(base, records(content, most, encoding, self._left_out))
            case _:
                marked = by_mark(content.peek(_PEEK))
                taken = encoding or marked
                other = None if taken in _UTF8 else taken
                if other is not None:
                    self._doubt(name, content.peek(_PEEK))
                    content = transcoded(content, other)
                check_content(name, content.peek(_PEEK), tool, json=kind != "lines")
                if kind == "csv":
                    delimiter = DELIMITERS[suffix_of(name)]
                    if self.csv.columns is None:
                        self.csv.mark = "\ufeff" if marked else ""
                    found = csv_rows(content, base, most, delimiter, self._documents, self.csv)
                else:
                    found = lines(content, base, most)
                    if kind == "json":
                        found = no_array(found, name, tool)
                    elif self._documents.format != "text":
                        found = map(self._line, found)
                yield from found if other is None else _in_encoding(found, other)

    def _whole(self, file: File, most: int) -> Line:
        """Return the document that a file of text is."""
        name, base, kind, content, _ = file
        encoding, html = self._reading.encoding, kind == "html"
        surely = html or self._reading.format is not None
        if encoding is not None:
            self._doubt(name, content.peek(_PEEK))

        def made() -> Made:
            text = text_of(content, most, encoding, html=html, surely=surely)
            if not html:
                self.seen["texts"] += 1
                self.seen["lines"] += len(text.splitlines())
            return Made(base.decode(), {}, text)

        return self._one(base, made)

    def _several(self, base: bytes, found: Iterator[Made | DocumentFault]) -> Iterator[Line]:
        for number, each in enumerate(found, 1):
            place = b"%s:%d" % (base, number)
            yield (
                self._fault(place, each)
                if isinstance(each, DocumentFault)
                else self._made(place, each)
            )

    def _one(self, place: bytes, make: Callable[[], Made]) -> Line:
        try:
            return self._made(place, make())
        except DocumentFault as fault:
            return self._fault(place, fault)

    def _made(self, place: bytes, made: Made) -> Line:
        self.seen["dated"] += "date" in made.known
        return self._maker.line(place, made)

    def _fault(self, place: bytes, fault: DocumentFault) -> Line:
        self.seen["large"] += str(fault).startswith("too-large: the file")
        return Line(place, b"", 0, str(fault))

    def _line(self, line: Line) -> Line:
        """Return a line of text as a JSON object."""
        if not line.complete:
            return Line(line.key, b"", line.size, f"too-large: the line has {line.size} bytes")
        try:
            return self._made(line.key, Made(None, {}, line.value.decode()))
        except UnicodeDecodeError:
            return Line(line.key, b"", line.size, "invalid-utf8: the line is not UTF-8")

    def _doubt(self, name: str, start: bytes) -> None:
        """Warn of an encoding in which UTF-8 would be read, and become nonsense."""
        encoding = self._reading.encoding
        if encoding is not None and encoding not in _UTF8 and not self._doubted and is_utf8(start):
            self._doubted = True
            tell(f"neardup: warning: {name} looks like UTF-8; --encoding says {encoding}")


def _in_encoding(found: Iterator[Line], encoding: str) -> Iterator[Line]:
    """Yield documents; those with bytes that weren't in the encoding are rejected for that."""
    for line in found:
        if line.fault.startswith("invalid-utf8") or UNREADABLE in line.raw:
            yield Line(line.key, b"", line.size, f"bad-encoding: the text is not in {encoding}")
        else:
            yield line


_SKIP = 1 << 20


def lines(file: Reader, base: bytes, max_line: int) -> Iterator[Line]:
    """Yield the lines of a file, without blank ones; ``base`` names the file in their keys.

    Of a line longer than ``max_line`` bytes, the beginning is kept and the rest is skipped.
    """
    readline = file.readline
    limit = max_line + 2
    number = 0
    while raw := readline(limit):
        number += 1
        size = len(raw)
        if size == limit and not raw.endswith(b"\n"):
            while rest := readline(_SKIP):
                size += len(rest)
                if rest.endswith(b"\n"):
                    break
        if not raw.isspace():
            yield Line(b"%s:%d" % (base, number), raw, size)
