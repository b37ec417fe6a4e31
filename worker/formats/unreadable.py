"""The error of a document that can't be read, and what each reason tells about the settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

__all__ = ["CAUSES", "NULL_TEXT", "Cause", "Deleted", "Unreadable"]

Cause = Literal["configuration", "time", "content"]
"""``configuration``: the documents have another format, other fields, or fields of other types than
the settings say. ``content``: whoever writes a web page can bring it about, or a single odd record;
so any number of these tells nothing about the settings. ``time``: of the configuration as long as
no document has a time that can be read; otherwise of the content."""

NULL_TEXT: Final = "null-text"
"""The code of a record whose text is null, or in an object that is null: a change feed's delete."""

CAUSES: Final[Mapping[str, Cause]] = {
    "not-json": "configuration",
    "not-an-object": "configuration",
    "schema-registry": "configuration",
    "no-text": "configuration",
    "no-id": "configuration",
    "text-wrong-type": "configuration",
    "id-wrong-type": "configuration",
    "time-wrong-type": "configuration",
    "bad-time": "time",
    "bad-headers": "content",
    "bad-id": "configuration",
    "empty-text": "content",
    "invalid-utf8": "content",
    "null-text": "content",
    "text-too-long": "content",
    "too-deep": "content",
    "too-large": "content",
}
"""Every code."""


class Unreadable(Exception):
    """A document can't be read: a short code, and what was found."""

    def __init__(self, code: str, detail: str) -> None:
        """Keep the code in an attribute: it is the label of a metric."""
        self.code = code
        self.detail = detail
        super().__init__(f"{code}: {detail}")


class Deleted(Unreadable):
    """A record has no text because its document was deleted; ``id`` is that of the document."""

    def __init__(self, ident: bytes, detail: str) -> None:
        """Keep the id; ``detail`` says what is null."""
        self.id = ident
        super().__init__(NULL_TEXT, detail)
