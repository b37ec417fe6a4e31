"""What ``dedupe`` says if the settings don't fit the documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from worker.cli.inputs import Inputs
from worker.cli.inputs.foreign import ARRAY
from worker.formats.base import DocumentFormat, Unreadable
from worker.formats.first_texts import TextWatch
from worker.formats.seen import FieldWatch, SeenFields
from worker.offline import Line
from worker.offline.evaluation import text_of

__all__ = ["Hints"]


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

    def finish(self) -> None:
        """Warn at the end of an input that is shorter than what is watched."""
        if not self._warned:
            self._warn(self._watch.warning())
        self._say_all(self._texts.warnings())

    def _say_all(self, warnings: Iterable[str]) -> None:
        for warning in warnings:
            self._say(f"warning: {warning}")

    def _warn(self, warning: str | None) -> None:
        if warning is not None:
            self._warned = True
            self._say(f"warning: {warning}")

    def cause(self) -> None:
        """Say why most documents can't be read, as far as the first one shows it."""
        if self._first is None:
            return
        try:
            fields = self._documents.fields(self._first)
        except Unreadable as error:
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
            f"the first document is {what}; use --format text if each line is a text, or name the"
            " file .csv or .tsv if it is a table"
        )
