"""The documents that ``neardup explain`` compares, from files."""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from worker.bus import Record
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.explain import Side
from worker.cli.progress_bar import byte_progress
from worker.files.encodings import by_mark, decoded
from worker.files.errors import DocumentFault, InputFault
from worker.files.inputs import Inputs
from worker.files.named_files import Argument
from worker.files.reading import Reading
from worker.files.remote import is_address, shown_address, stored
from worker.formats.base import DocumentFormat
from worker.formats.choice import line_format
from worker.formats.unreadable import Unreadable
from worker.offline.filter import Line
from worker.settings.model import Settings
from worker.visible import counted

_LINES_HINT = "; for a file with a document on each line: --in FILE ID ID"


def whole_files(settings: Settings, reading: Reading, names: Sequence[str]) -> list[Side]:
    """Return the documents in files, one in each; ``-`` is standard input.

    Raises:
        CommandError: a file can't be read, or its document can't be judged.
    """
    if names.count("-") > 1:
        raise CommandError("-: standard input has one document")
    documents = line_format(settings)
    return [_whole(settings, documents, reading, name) for name in names]


def _shown(name: str) -> str:
    """Return what a file is called in messages, and as an id."""
    return "stdin" if name == "-" else shown_address(name) if is_address(name) else name


def _whole(settings: Settings, documents: DocumentFormat, reading: Reading, name: str) -> Side:
    """Return the document that a file is. JSON may have line ends."""
    most, shown = settings.limits.record_bytes, _shown(name)
    if reading.kind(name) == "json":
        data = _content(name, most)
        if len(data) > most:
            raise CommandError(
                f"{shown}: more than limits.record_bytes ({most}) bytes", EXIT_FAILED
            )
        line = Line(shown.encode(errors="backslashreplace"), _in_utf8(data, reading), len(data))
        line = line._replace(size=len(line.raw))
        try:
            return _side(documents, line)
        except CommandError as error:
            hint = _LINES_HINT if data.strip().count(b"\n") else ""
            raise CommandError(f"{error}{hint}", EXIT_FAILED) from None
    with Inputs([name], settings.documents, reading) as inputs:
        found = [line for chunk in inputs.chunks(most, lines=2) for line in chunk]
    if len(found) != 1:
        raise CommandError(
            f"{shown}: has {counted(len(found), 'document')}{_LINES_HINT}", EXIT_FAILED
        )
    side = _side(documents, found[0])
    return side if name == "-" else side._replace(id=shown)


def _in_utf8(data: bytes, reading: Reading) -> bytes:
    encoding = reading.encoding or by_mark(data)
    if encoding is None:
        return data
    try:
        return decoded(data, encoding).encode()
    except DocumentFault:
        return data  # It can't be judged, and why is said of it.


def _content(name: str, most: int) -> bytes:
    try:
        if name == "-":
            return sys.stdin.buffer.read(most + 1)
        if is_address(name):
            [remote], _, _ = stored(name)
            with io.BufferedReader(cast("io.RawIOBase", remote.open(seekable=False))) as file:
                return file.read(most + 1)
        with Path(name).open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from None
    except InputFault as fault:
        raise CommandError(f"{_shown(name)}: {fault}") from None


def documents_in(
    settings: Settings, files: Sequence[Argument], reading: Reading, ids: Sequence[str]
) -> list[Side]:
    """Return the first documents with these ids in files, in the order of the ids.

    If the same id is given twice, its first two documents.

    Raises:
        CommandError: a file can't be read, an id is not there, or a document can't be judged.
    """
    documents = line_format(settings)
    missing = Counter(ids)
    found: dict[str, list[Side]] = {ident: [] for ident in ids}
    done = 0
    with (
        Inputs(files, settings.documents, reading) as inputs,
        byte_progress(inputs.total, shown=sys.stderr.isatty()) as advance,
    ):
        for chunk in inputs.chunks(settings.limits.record_bytes):
            for line in chunk:
                value = line.value if line.complete else b""
                ident = (documents.identify(value, line.key) or line.key).decode()
                if missing[ident]:
                    missing[ident] -= 1
                    found[ident].append(_side(documents, line))
            if not missing.total():
                break
            done += len(chunk)
            advance(inputs.position, done)
    for ident, number in missing.items():
        if number:
            again = " twice" if found[ident] else ""
            raise CommandError(f"{ident!r} is not in these files{again}", EXIT_FAILED)
    return [found[ident].pop(0) for ident in ids]


def _side(documents: DocumentFormat, line: Line) -> Side:
    key = line.key.decode()
    if not line.complete:
        raise CommandError(f"{key} can't be judged: {line.reason}", EXIT_FAILED)
    try:
        document = documents.read(Record("", 0, 0, -1, line.key, line.value))
    except Unreadable as error:
        raise CommandError(f"{key} can't be judged: {error}", EXIT_FAILED) from None
    return Side(document.id.decode(), document.text)
