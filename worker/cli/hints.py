"""What commands that read files say if the settings don't fit the documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from worker.files.inputs import Inputs
from worker.files.reading import ARRAY
from worker.formats.base import DocumentFormat
from worker.formats.first_documents import FieldWatch, SeenFields, TextWatch
from worker.formats.unreadable import CAUSES, Unreadable
from worker.offline.evaluation import text_of
from worker.offline.filter import Counts, Line
from worker.settings.model import Settings
from worker.visible import counted

_MANY_LINES = 2_000
"""Texts have fewer on average; lists of texts may have more."""
_SAY_WHAT_TO_DO = {"bad-id", "time-wrong-type", "text-wrong-type", "id-wrong-type"}
"""The reasons that name the field, what is in it, and what reads it."""
_ENCODINGS = {"invalid-utf8", "bad-encoding"}


class Hints:
    """Looks at the first documents, and says what is probably wrong with the settings."""

    def __init__(
        self,
        documents: DocumentFormat,
        fields: Iterable[str],
        inputs: Inputs,
        say: Callable[[str], None],
        *,
        texts: TextWatch,
    ) -> None:
        """Watch for ``fields``, and look at ``texts``; ``say`` prints a line."""
        self._documents = documents
        self._watch = FieldWatch(documents, fields)
        self._texts = texts
        self._inputs = inputs
        self._say = say
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

    def end(self, counts: Counts, settings: Settings) -> None:
        """Say at the end what was left out, and what the documents need."""
        if (left_out := self._inputs.summary()) is not None:
            self._say(left_out)
        if counts.rejected * 2 > counts.documents:
            ((code, _),) = counts.reasons.most_common(1)
            if CAUSES.get(code) == "configuration" and code not in _SAY_WHAT_TO_DO:
                self._cause()
        elif not self._warned:
            self._warn(self._watch.warning())
        self._of_encoding(counts)
        self._of_dates(settings)
        self._of_whole_files(counts)
        self._say_all(self._texts.warnings())

    def _say_all(self, warnings: Iterable[str]) -> None:
        for warning in warnings:
            self._say(f"warning: {warning}")

    def _warn(self, warning: str | None) -> None:
        if warning is not None:
            self._warned = True
            self._say(f"warning: {warning}")

    def _cause(self) -> None:
        """Say why most documents can't be read, as far as the first one shows it."""
        if self._first is None:
            return
        try:
            fields = self._documents.fields(self._first)
        except Unreadable as error:
            if error.code not in _ENCODINGS:
                self._say(self._of_unreadable(self._first, error.code))
            return
        if fields is not None:
            seen = SeenFields()
            seen.add(fields)
            self._say(
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

    def _of_encoding(self, counts: Counts) -> None:
        """Say what to do about texts in another encoding."""
        count = sum(counts.reasons[code] for code in _ENCODINGS)
        if count:
            documents = counted(count, "document is", "documents are")
            other = "that in which files are read" if counts.reasons["bad-encoding"] else "UTF-8"
            self._say(
                f"{documents} in another encoding than {other}; name it with --encoding, such as"
                " cp1252, iso8859-15 or utf-16"
            )

    def _of_dates(self, settings: Settings) -> None:
        """Say that a window without times of documents forgets nothing within a run."""
        dated = self._inputs.seen["dated"]
        if dated and settings.index.window_ms is not None and not settings.documents.time_field:
            self._say(
                f"warning: the dates of {counted(dated, 'document')} are not read, so"
                " all count as of now; --time-field date takes them"
            )

    def _of_whole_files(self, counts: Counts) -> None:
        """Say how to judge lines if that may be meant: one file, or files of very many lines."""
        seen = self._inputs.seen
        alone = counts.documents == 1 and seen["lines"] > 1
        if alone or (seen["texts"] and seen["lines"] > _MANY_LINES * seen["texts"]):
            self._say(
                f"{counted(seen['texts'], 'file is one document', 'files are one document each')},"
                f" with {counted(seen['lines'], 'line')}; --format lines judges each line"
            )
        if seen["large"]:
            self._say(
                f"{counted(seen['large'], 'file is', 'files are')} too large for one document;"
                " --format lines judges each line, and limits.record_bytes allows larger ones"
            )
