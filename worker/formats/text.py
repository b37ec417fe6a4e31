"""Documents as plain text: the payload is the text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from worker.formats.base import DocumentFormat, DocumentOptions
from worker.formats.unreadable import utf8


class TextFormat(DocumentFormat):
    """Plain text in UTF-8. It has no fields: the id and the time are those of the record."""

    def __init__(self, options: DocumentOptions) -> None:
        """Keep the limits."""
        super().__init__(replace(options, time_field=None))

    def excerpt(self, value: bytes) -> str:
        """See `DocumentFormat`."""
        return value.decode(errors="replace")

    def fields(self, value: bytes) -> Sequence[str] | None:  # noqa: ARG002 -- text has no fields
        """See `DocumentFormat`."""
        return None

    def having(self, value: bytes) -> Collection[str]:  # noqa: ARG002 -- text has no fields
        """See `DocumentFormat`."""
        return ()

    def can_splice(self, value: bytes) -> bool:  # noqa: ARG002 -- text has no fields
        """See `DocumentFormat`."""
        return False

    def splice(self, value: bytes, matches: bytes, first: bytes) -> bytes:  # noqa: ARG002 -- text has no fields
        """See `DocumentFormat`."""
        return value

    def _parse(self, value: bytes) -> tuple[object, str, int | None]:
        return None, utf8(value), None

    def _find_id(self, value: bytes) -> object:  # noqa: ARG002 -- text has no fields
        return None
