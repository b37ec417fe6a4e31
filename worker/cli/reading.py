"""Documents in files: how commands read them, and what they say of settings and of faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from worker.bus import Record
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.options import dotted
from worker.files.inputs import Inputs
from worker.files.named_files import Argument
from worker.files.reading import ARRAY, Reading
from worker.formats.base import DocumentFormat
from worker.formats.choice import line_format, watched_fields
from worker.formats.first_documents import FieldWatch, SeenFields, TextWatch
from worker.formats.unreadable import CAUSES, Unreadable
from worker.offline.filter import Counts, Line, Verdict, offline_settings, text_of
from worker.settings.documents import DocumentsSection
from worker.settings.model import Settings
from worker.visible import counted, tell

_MANY_LINES = 2_000
"""Texts have fewer on average; lists of texts may have more."""
_SAY_WHAT_TO_DO = {"bad-id", "time-wrong-type", "text-wrong-type", "id-wrong-type"}
"""The reasons that name the field, what is in it, and what reads it."""
_ENCODINGS = {"invalid-utf8", "bad-encoding"}
_SHOWN_REASONS = 3


def for_files(
    config: list[Path] | None,
    format_: str | None,
    encoding: str | None,
    *,
    follow_links: bool,
    **more: object,
) -> tuple[Settings, Reading]:
    """Return the settings with which files are judged, and how they are read."""
    settings = offline_settings(config, dotted(more))
    reading = Reading.given(format_, encoding, settings.documents, follow_links=follow_links)
    return reading.offline(settings), reading


def say(line: str) -> None:
    """Print a line on standard error."""
    tell(f"neardup: {line}")


class Report:
    """Counts documents by their verdicts, and says what is probably wrong with the settings."""

    def __init__(self, settings: Settings, documents: DocumentFormat, inputs: Inputs) -> None:
        """Watch for the fields that are read, and look at the first texts."""
        self.counts = Counts()
        self._settings = settings
        self._documents = documents
        self._inputs = inputs
        self._watch = FieldWatch(documents, watched_fields(settings))
        self._texts = TextWatch(settings.parameters())
        self._first: bytes | None = None
        self._warned = False

    def look(self, lines: Sequence[Line]) -> None:
        """Look at lines as they are read; warn of a field that the first documents lack."""
        for line in lines:
            if line.fault:
                continue
            if self._first is None:
                self._first = line.value
            self._warn(self._watch.add(line.value))
            if not self._texts.done and (text := text_of(self._documents, line)) is not None:
                self._say_all(self._texts.add(text))

    def add(self, lines: Sequence[Line], verdicts: Sequence[Verdict]) -> None:
        """Count verdicts."""
        for line, verdict in zip(lines, verdicts, strict=True):
            self.counts.add(line, verdict)

    @property
    def too_many(self) -> bool:
        """Return whether more than ``limits.reject_share`` can't be read."""
        return self.counts.too_many_rejected(self._settings.limits.reject_share)

    def finish(self, after: str = "") -> None:
        """Say what was left out, and what the documents need. ``after`` ends the line of an error.

        Raises:
            CommandError: more than ``limits.reject_share`` can't be read. It names the first
                document with each of the most frequent reasons.
        """
        counts = self.counts
        if counts.reasons:
            listed = ", ".join(f"{code} {count:,}" for code, count in counts.reasons.most_common())
            say(f"rejected: {listed}")
        self._hints()
        if self.too_many:
            misfits = counts.misfits
            codes = [code for code, _ in misfits.most_common(_SHOWN_REASONS)]
            read = counts.documents - counts.rejected + misfits.total()
            first = "; ".join(counts.first[code] for code in codes)
            raise CommandError(
                f"{misfits.total():,} of {counted(read, 'document')} can't be read (the first:"
                f" {first}), and limits.reject_share is {self._settings.limits.reject_share:g}"
                f"{after}",
                EXIT_FAILED,
            )

    def _hints(self) -> None:
        if (left_out := self._inputs.summary()) is not None:
            say(left_out)
        counts = self.counts
        if counts.rejected * 2 > counts.documents:
            ((code, _),) = counts.reasons.most_common(1)
            if CAUSES.get(code) == "configuration" and code not in _SAY_WHAT_TO_DO:
                self._cause()
        elif not self._warned:
            self._warn(self._watch.warning())
        self._of_encoding()
        self._of_dates()
        self._of_whole_files()
        self._say_all(self._texts.warnings())

    def _say_all(self, warnings: Iterable[str]) -> None:
        for warning in warnings:
            say(f"warning: {warning}")

    def _warn(self, warning: str | None) -> None:
        if warning is not None:
            self._warned = True
            say(f"warning: {warning}")

    def _cause(self) -> None:
        """Say why most documents can't be read, as far as the first one shows it."""
        if self._first is None:
            return
        try:
            fields = self._documents.fields(self._first)
        except Unreadable as error:
            if error.code not in _ENCODINGS:
                say(self._of_unreadable(self._first, error.code))
            return
        if fields is not None:
            seen = SeenFields()
            seen.add(fields)
            say(
                f"the first document has {seen}; choose with --text-field and --id-field"
                " (data.text is the field text inside data)"
            )

    def _of_unreadable(self, first: bytes, code: str) -> str:
        if ARRAY.match(first):
            return f"the first document is a JSON array; {self._inputs.spread('.[]')}"
        what = "not a JSON object" if code == "not-an-object" else "not JSON"
        return (
            f"the first document is {what}; use --format lines if each line is a text, --format"
            " text if each file is one, or name the file .csv or .tsv if it is a table"
        )

    def _of_encoding(self) -> None:
        """Say what to do about texts in another encoding."""
        count = sum(self.counts.reasons[code] for code in _ENCODINGS)
        if count:
            documents = counted(count, "document is", "documents are")
            other = (
                "that in which files are read" if self.counts.reasons["bad-encoding"] else "UTF-8"
            )
            say(
                f"{documents} in another encoding than {other}; name it with --encoding, such as"
                " cp1252, iso8859-15 or utf-16"
            )

    def _of_dates(self) -> None:
        """Say that a window without times of documents forgets nothing within a run."""
        settings, dated = self._settings, self._inputs.seen["dated"]
        if dated and settings.index.window_ms is not None and not settings.documents.time_field:
            say(
                f"warning: the dates of {counted(dated, 'document')} are not read, so"
                " all count as of now; --time-field date takes them"
            )

    def _of_whole_files(self) -> None:
        """Say how to judge lines if that may be meant: one file, or files of very many lines."""
        seen = self._inputs.seen
        alone = self.counts.documents == 1 and seen["lines"] > 1
        if alone or (seen["texts"] and seen["lines"] > _MANY_LINES * seen["texts"]):
            say(
                f"{counted(seen['texts'], 'file is one document', 'files are one document each')},"
                f" with {counted(seen['lines'], 'line')}; --format lines judges each line"
            )
        if seen["large"]:
            say(
                f"{counted(seen['large'], 'file is', 'files are')} too large for one document;"
                " --format lines judges each line, and limits.record_bytes allows larger ones"
            )


class Texts:
    """The texts of the documents in files, without those that can't be read."""

    def __init__(self, settings: Settings, files: Sequence[Argument], reading: Reading) -> None:
        """Open the files.

        Raises:
            CommandError: a file can't be read.
        """
        self._settings = settings
        self._documents = line_format(settings)
        self._inputs = Inputs(files, settings.documents, reading)
        self._report = Report(settings, self._documents, self._inputs)

    @property
    def total(self) -> int | None:
        """Return the bytes of all files, if they are known."""
        return self._inputs.total

    def read(
        self, most: int, advance: Callable[[int, int], None] = lambda _position, _done: None
    ) -> Iterator[tuple[str, str]]:
        """Yield the ids and texts of at most so many documents; tell how far it is.

        Raises:
            CommandError: a file can't be read.
        """
        with self._inputs as inputs:
            for chunk in inputs.chunks(self._settings.limits.record_bytes):
                self._report.look(chunk)
                for line in chunk:
                    text = self._text(line)
                    if text is not None:
                        named = self._documents.identify(line.value, line.key) or line.key
                        yield named.decode(), text
                        if self._report.counts.unique == most:
                            return
                advance(inputs.position, self._report.counts.documents)

    def _text(self, line: Line) -> str | None:
        try:
            if not line.complete:
                self._report.counts.reject(line, line.reason)
                return None
            text = self._documents.read(Record("", 0, 0, -1, line.key, line.value)).text
        except Unreadable as error:
            self._report.counts.reject(line, str(error))
            return None
        self._report.counts.unique += 1
        return text

    def check(self) -> None:
        """Say what was left out of what was read.

        Raises:
            CommandError: that is more than ``limits.reject_share``.
        """
        self._report.finish()


def labelled_pairs(path: Path) -> list[tuple[str, str]]:
    """Return the pairs of ids in a file: a line for each, with a tab between them.

    Raises:
        CommandError: the file can't be read, or a line has no tab.
    """
    found = []
    with Inputs([path], DocumentsSection(format="text"), Reading("lines")) as inputs:
        for chunk in inputs.chunks(1 << 20):
            for line in chunk:
                try:
                    ids = line.value.decode().split("\t")
                except UnicodeDecodeError:
                    raise CommandError(f"{line.key.decode()}: is not UTF-8", EXIT_FAILED) from None
                if len(ids) < 2:  # noqa: PLR2004 -- a pair
                    raise CommandError(
                        f"{line.key.decode()}: takes two ids, separated by a tab", EXIT_FAILED
                    )
                found.append((ids[0], ids[1]))
    return found


def numbered(
    labels: Sequence[tuple[str, str]], numbers: Mapping[str, int]
) -> list[tuple[int, int]]:
    """Return the numbers of the pairs of which both documents are known; tell of the others."""
    pairs = [(numbers.get(one), numbers.get(other)) for one, other in labels]
    known = [(a, b) for a, b in pairs if a is not None and b is not None and a != b]
    if len(known) < len(labels):
        tell(
            f"neardup: {len(labels) - len(known):,} of {counted(len(labels), 'pair')} don't name"
            " two of the documents"
        )
    return known
