"""Read documents from files and standard input, in chunks of bounded size."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from worker.closing import Closing
from worker.files.compressed import Reader, compression_of, decompressed
from worker.files.csv_rows import DELIMITERS, CsvHead, csv_rows
from worker.files.encodings import UNREADABLE, by_mark, is_utf8, transcoded
from worker.files.errors import DocumentFault, FileError, InputFault
from worker.files.mails import is_mail, is_mailbox, mail, messages
from worker.files.named_files import Argument, Named, named_files
from worker.files.parquet_rows import PARQUET_MAGIC, parquet_rows
from worker.files.reading import Kind, Reading, check_content, no_array, spread, suffix_of
from worker.files.texts import Made, Maker, text_of
from worker.files.warc import records
from worker.offline.filter import Line
from worker.settings.documents import DocumentsSection
from worker.visible import tell

_PEEK = 512
_UTF8 = {"utf-8", "utf-8-sig"}
"""The encodings in which lines are read as they are."""
_SKIP = 1 << 20
_CHUNK_LINES = 4_000
_CHUNK_BYTES = 8 << 20
_ESCAPED = "backslashreplace"
"""How names that aren't text become ids: no two of them the same."""


class _Source(NamedTuple):
    """A file to read. Only what can't be opened twice, such as a pipe, is open from the start.

    ``size``: the bytes of a regular or a remote file; None for anything else.
    """

    named: Named
    size: int | None
    stream: BinaryIO | None

    @property
    def is_regular(self) -> bool:
        """Return whether it is a file on a disk."""
        return self.size is not None and self.named.remote is None

    def opened(self, kind: Kind) -> BinaryIO:
        """Open it; Parquet must be read in any order."""
        if self.named.remote is not None:
            return self.named.remote.open(seekable=kind == "parquet")
        return self.stream or _open(self.named.path)

    @property
    def base(self) -> bytes:
        """Return the name by which documents are called."""
        return b"stdin" if self.named.path == "-" else self.named.base.encode(errors=_ESCAPED)


class Inputs(Closing):
    """Files, directories, patterns, addresses, or standard input (``-``), one after the other.

    Attributes:
        total: bytes of all files as they are stored (compressed); None if one has no known size.
        left_out: how many files of directories, and records of WARC files, are left out, by what
            they are.
        seen: what was read so far; see `_Contents`.
        csv: how the first table of CSV begins.
    """

    def __init__(
        self,
        files: Sequence[Argument],
        documents: DocumentsSection,
        reading: Reading = Reading(),  # noqa: B008 -- frozen
    ) -> None:
        """Open each file, so that a wrong name fails before any work is done.

        ``documents``: columns of tables with the id and the time, fields of documents that are
        made of files; plain text stays that.

        Raises:
            FileError: a file can't be read.
        """
        self._documents = documents
        self._reading = reading
        if list(map(str, files)).count("-") > 1:
            raise FileError("-: standard input can be read only once")
        found = named_files(files or [Path("-")], reading)
        if found.out_of_order is not None:
            _say_order(*found.out_of_order)
        self.left_out = found.left_out
        self._contents = _Contents(documents, reading, self.left_out)
        self.seen, self.csv = self._contents.seen, self._contents.csv
        self._sources = [_source(each) for each in found.files]
        self._first_tool: str | None = None
        self._done = 0
        self._within: Callable[[], int] = lambda: 0
        sizes = [source.size for source in self._sources]
        self.total = sum(size or 0 for size in sizes) if None not in sizes else None

    @property
    def kinds(self) -> set[Kind]:
        """Return what the files are, by their names."""
        return {self._reading.kind(source.named.path) for source in self._sources}

    def reopened(self) -> Iterator[tuple[str, BinaryIO]]:
        """Yield the names of all files of Parquet, each with the file, which is open until then."""
        for source in self._sources:
            with closing(source.opened("parquet")) as file:
                yield source.named.path, file

    def summary(self) -> str | None:
        """Return what was left out, if anything was."""
        counted = [f"{what} {n:,}" for what, n in self.left_out.most_common() if n]
        return f"left out: {', '.join(counted)}" if counted else None

    @property
    def position(self) -> int:
        """Return the number of bytes read so far, as on disk."""
        return self._done + self._within()

    def spread(self, path: str) -> str:
        """Return how to write the first file as JSON Lines; ``path`` leads to the documents."""
        return spread(path, self._sources[0].named.path, self._first_tool)

    def has(self, file: BinaryIO | Path) -> bool:
        """Return whether a regular file is one of the inputs."""
        try:
            status = file.stat() if isinstance(file, Path) else os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return False
            return any(_is(source, status) for source in self._sources if source.is_regular)
        except OSError:
            return False

    def close(self) -> None:
        """Close the files that were not read."""
        for source in self._sources:
            if source.stream is not None:
                source.stream.close()

    def chunks(self, max_line: int, lines: int = _CHUNK_LINES) -> Iterator[list[Line]]:
        """Yield chunks of at most ``lines`` documents, without blank lines.

        Lines longer than ``max_line`` bytes are cut.

        Raises:
            FileError: a file is damaged or can't be read.
        """
        chunk: list[Line] = []
        size = 0
        for line in self._lines(max_line):
            chunk.append(line)
            size += len(line.raw)
            if len(chunk) >= lines or size >= _CHUNK_BYTES:
                yield chunk
                chunk, size = [], 0
        if chunk:
            yield chunk

    def _lines(self, max_line: int) -> Iterator[Line]:
        for source in self._sources:
            path = source.named.path
            shown = "stdin" if path == "-" else path
            kind = self._reading.kind(path)
            try:
                with closing(source.opened(kind)) as raw:
                    yield from self._documents_in(source, kind, raw, max_line)
            except InputFault as fault:
                raise FileError(f"{shown}: {fault}") from None
            except OSError as error:
                raise FileError(f"{shown}: {error.strerror or error}") from None
            self._done += source.size or 0
            self._within = lambda: 0

    def _documents_in(
        self, source: _Source, kind: Kind, raw: BinaryIO, max_line: int
    ) -> Iterator[Line]:
        name = source.named.path
        with io.BufferedReader(cast("io.RawIOBase", raw), 1 << 20) as file:
            start = file.peek(_PEEK)
            magic = kind == "json" and start.startswith(PARQUET_MAGIC)
            if source.size is not None and (kind == "parquet" or magic) and raw.seekable():
                if self._reading.encoding is not None:
                    raise InputFault("is Parquet, which has one encoding: leave out --encoding")
                yield from self._parquet(file, source, source.size, max_line)
                return
            if source.size is not None:
                self._within = raw.tell
            compression = compression_of(name, start)
            content = decompressed(name, file, compression) if compression else file
            if kind in {"json", "text"} and self._reading.format is None:
                kind = _by_content(content.peek(_PEEK), kind)
            tool = compression.tool if compression else None
            if source is self._sources[0]:
                self._first_tool = tool
            found = _File(name, source.base, kind, content, tool)
            yield from self._contents.documents(found, max_line)

    def _parquet(self, file: BinaryIO, source: _Source, size: int, max_line: int) -> Iterator[Line]:
        share = 0.0

        def read(now: float) -> None:
            nonlocal share
            share = now

        self._within = lambda: int(size * share)
        yield from parquet_rows(file, source.base, max_line, self._documents, read)


class _File(NamedTuple):
    """A file, decompressed; ``base`` names its documents, ``tool`` decompresses it elsewhere."""

    name: str
    base: bytes
    kind: Kind
    content: Reader
    tool: str | None


class _Contents:
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

    def documents(self, file: _File, most: int) -> Iterator[Line]:
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

    def _whole(self, file: _File, most: int) -> Line:
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


def _by_content(start: bytes, kind: Kind) -> Kind:
    """Return what a file is whose name says nothing, or that it is a text.

    JSON begins like none of the others. Archives of mailing lists are called texts.
    """
    if is_mailbox(start):
        return "mbox"
    if kind == "text":
        return "text"
    if start.startswith(b"WARC/"):
        return "warc"
    if start.startswith(b"From "):
        return "mbox"
    return "mail" if is_mail(start) else kind


def _say_order(first: str, second: str) -> None:
    tell(
        f"neardup: files are read in the order given, {first} before {second}; a directory, or a"
        " pattern in quotes, is read in the order of the numbers"
    )


def _source(named: Named) -> _Source:
    if named.remote is not None:
        return _Source(named, named.remote.size, None)
    if named.path == "-":
        stream = _stdin()
        return _Source(named, _size(stream), stream)
    stream = _open(named.path)
    size = _size(stream)
    if size is None:
        return _Source(named, None, stream)
    stream.close()  # A directory may have more files than a process may have open.
    return _Source(named, size, None)


def _is(source: _Source, status: os.stat_result) -> bool:
    stream = source.stream
    other = os.stat(source.named.path) if stream is None else os.fstat(stream.fileno())  # noqa: PTH116 -- as `os.fstat`
    return os.path.samestat(other, status)


def _stdin() -> BinaryIO:
    if sys.stdin.isatty():
        message = "neardup: reading lines from the terminal; end with Ctrl-D"
        print(message, file=sys.stderr)  # noqa: T201 -- a hint to the user
    # Unbuffered if possible; in tests it may not be a file.
    return cast(BinaryIO, getattr(sys.stdin.buffer, "raw", sys.stdin.buffer))


def _open(path: str) -> BinaryIO:
    try:
        return Path(path).open("rb", buffering=0)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from None


def _size(stream: BinaryIO) -> int | None:
    """Return the bytes of a regular file; None for anything else."""
    try:
        status = os.fstat(stream.fileno())
    except OSError:  # Not a file, as in tests.
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
