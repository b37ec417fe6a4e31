"""The names of the fields that documents have, for messages about wrong settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice

from worker.formats.base import DocumentFormat
from worker.formats.unreadable import Unreadable

_MOST_NAMES = 200
_LISTED = 12
_NAME_CHARACTERS = 40


def shortened(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of fields to keep for `SeenFields`, bounded in number and length."""
    return tuple(name[: _NAME_CHARACTERS + 1] for name in islice(names, _MOST_NAMES))


class SeenFields:
    """Counts names of fields.

    Documents come from strangers, so the names are bounded in number and length, and all but
    printable characters are escaped.
    """

    def __init__(self) -> None:
        """Start without a name."""
        self._counts: Counter[str] = Counter()

    def add(self, names: Iterable[str]) -> None:
        """Count the names of a document's fields."""
        for kept in shortened(names):
            if kept in self._counts or len(self._counts) < _MOST_NAMES:
                self._counts[kept] += 1

    def clear(self) -> None:
        """Forget all names."""
        self._counts.clear()

    def __str__(self) -> str:
        """Return the most frequent names, or ``no fields``."""
        names = [name for name, _ in self._counts.most_common(_LISTED)]
        listed = [_shown(name) for name in names]
        if len(self._counts) > len(names):
            listed.append("…")
        return ", ".join(listed) or "no fields"


def _shown(name: str) -> str:
    cut = name if len(name) <= _NAME_CHARACTERS else f"{name[:_NAME_CHARACTERS]}…"
    return repr(cut)  # Escapes controls, surrogates and marks of direction.


class FieldWatch:
    """Looks for fields that the settings name and none of the first documents has.

    The cost ends with the first document that has them all.
    """

    def __init__(
        self, documents: DocumentFormat, fields: Iterable[str], *, enough: int = 2_000
    ) -> None:
        """Watch for ``fields`` in the first ``enough`` documents that can be read as objects."""
        self._documents = documents
        self._missing = dict.fromkeys(fields)
        self._enough = enough
        self._count = 0
        self._seen = SeenFields()

    @property
    def active(self) -> bool:
        """Return whether payloads are still looked at."""
        return bool(self._missing) and self._count < self._enough

    def add(self, value: bytes) -> str | None:
        """Look at a payload; return a warning if it is the last to look at and a field is missing.

        It returns None from then on.
        """
        if not self.active:
            return None
        try:
            names = self._documents.fields(value)
            had = self._documents.having(value)
        except Unreadable:
            return None
        self._count += 1
        self._seen.add(names or ())
        for field in had:
            self._missing.pop(field, None)
        return self.warning() if self._count == self._enough else None

    def warning(self) -> str | None:
        """Return which fields are missing in the documents so far, and what these have instead."""
        if not self._missing or not self._count:
            return None
        fields = ", ".join(map(repr, self._missing))
        whose = (
            f"none of the first {self._count:,} documents has"
            if self._count > 1
            else "the document doesn't have"
        )
        return f"{whose} a value in field {fields}; the fields they have: {self._seen}"
