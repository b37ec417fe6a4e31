"""What commands say of documents that can't be read, and when that is too many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from worker.bus import Record
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.hints import Hints
from worker.files.inputs import Inputs
from worker.files.named_files import Argument
from worker.files.reading import Reading
from worker.formats.choice import line_format, watched_fields
from worker.formats.first_documents import TextWatch
from worker.formats.unreadable import Unreadable
from worker.offline.filter import Counts, Line
from worker.settings.model import Settings
from worker.visible import counted, tell

_SHOWN_REASONS = 3


def say(line: str) -> None:
    """Print a line on standard error."""
    tell(f"neardup: {line}")


def _too_many(counts: Counts, settings: Settings, after: str = "") -> CommandError | None:
    """Return the error of a run in which more than ``limits.reject_share`` can't be read.

    It names the first document with each of the most frequent reasons. ``after`` ends the line.
    """
    share = settings.limits.reject_share
    if not counts.too_many_rejected(share):
        return None
    misfits = counts.misfits
    codes = [code for code, _ in misfits.most_common(_SHOWN_REASONS)]
    read = counts.documents - counts.rejected + misfits.total()
    first = "; ".join(counts.first[code] for code in codes)
    return CommandError(
        f"{misfits.total():,} of {counted(read, 'document')} can't be read (the first: {first}),"
        f" and limits.reject_share is {share:g}{after}",
        EXIT_FAILED,
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
        self._hints = Hints(
            self._documents,
            watched_fields(settings),
            self._inputs,
            say,
            texts=TextWatch(settings.parameters()),
        )
        self._counts = Counts()

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
                self._hints.look(chunk)
                for line in chunk:
                    text = self._text(line)
                    if text is not None:
                        named = self._documents.identify(line.value, line.key) or line.key
                        yield named.decode(), text
                        if self._counts.unique == most:
                            return
                advance(inputs.position, self._counts.documents)

    def _text(self, line: Line) -> str | None:
        try:
            if not line.complete:
                self._counts.reject(line, line.reason)
                return None
            text = self._documents.read(Record("", 0, 0, -1, line.key, line.value)).text
        except Unreadable as error:
            self._counts.reject(line, str(error))
            return None
        self._counts.unique += 1
        return text

    def check(self) -> None:
        """Say what was left out of what was read.

        Raises:
            CommandError: that is more than ``limits.reject_share``.
        """
        finish(self._counts, self._hints, self._settings)


def finish(counts: Counts, hints: Hints, settings: Settings, after: str = "") -> None:
    """Say what can't be read, and what the documents need. ``after`` ends the line of an error.

    Raises:
        CommandError: more than ``limits.reject_share`` can't be read.
    """
    if counts.reasons:
        listed = ", ".join(f"{code} {count:,}" for code, count in counts.reasons.most_common())
        say(f"rejected: {listed}")
    hints.end(counts, settings)
    if (refused := _too_many(counts, settings, after)) is not None:
        raise refused
