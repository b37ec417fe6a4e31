"""What the first documents say about the settings: names of fields, and texts that look odd."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import numpy as np

from lsh import Fingerprinter, Parameters, pairwise_similarity
from worker.formats.base import DocumentFormat
from worker.formats.unreadable import Unreadable
from worker.visible import counted

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


_OF_PAGES: Final = re.compile(
    r"(?ai:</(?:a|b|body|div|em|h[1-6]|html|i|li|p|script|span|strong|style|table|td|ul)\s*+>|<br\s*+/?>)"
)
"""The end of an element that pages are full of, or a line break."""
_WITHOUT_SPACES: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u3041-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, Tai, Chinese and Japanese. Korean has spaces."""
_ENOUGH = 100
_CHARACTERS = 100_000  # of each text that are looked at
_MOST_CHARACTERS = 4_000_000  # of all texts
_LEAST = 10  # texts that are not equal: fewer say nothing of others
_PAGES = 0.25  # the share of texts from which they are taken for HTML
_SPACELESS = 0.25  # the share of texts without spaces between words from which that is said
_ALIKE = 0.5  # the median similarity of two texts from which shingles are taken for too short
_NEAR = 0.1  # or this much below the threshold: so far off an estimate can be
_APART = 0.1  # the most that two texts have in common by better shingles, if they are unrelated
_FEW_WORDS = 20  # in a text, at the median: shingles of words would be too few
_OTHERS: dict[str, dict[str, Any]] = {
    "similarity.shingle_size = 12": {"shingle": "char", "shingle_size": 12},
    'similarity.shingle = "word"': {"shingle": "word", "join_letters": False},
}


class TextWatch:
    """Looks at the first texts. What it costs and keeps ends with the last one of them.

    Attributes:
        done: whether it has looked at all that it looks at.
    """

    def __init__(self, parameters: Parameters, *, enough: int = _ENOUGH) -> None:
        """Look at ``enough`` texts, by these parameters."""
        self._parameters = parameters
        self._enough = enough
        self._texts: list[str] = []
        self._characters = 0
        self.done = False

    def add(self, text: str) -> list[str]:
        """Look at a text; return warnings if it is the last to look at, else nothing."""
        if self.done:
            return []
        self._texts.append(text[:_CHARACTERS])
        self._characters += len(self._texts[-1])
        enough = len(self._texts) >= self._enough or self._characters >= _MOST_CHARACTERS
        return self.warnings() if enough else []

    def warnings(self) -> list[str]:
        """Return what is to be said of the texts so far; nothing from then on."""
        texts, self.done, self._texts = self._texts, True, []
        found = self._of_pages(texts), self._of_words(texts), self._of_shingles(texts)
        return [line for line in found if line]

    def _of_pages(self, texts: list[str]) -> str | None:
        if self._parameters.strip_html:
            return None
        pages = sum(_OF_PAGES.search(text) is not None for text in texts)
        if not pages or pages < _PAGES * len(texts):
            return None
        looked = counted(len(texts), "document")
        look = "looks like HTML, and its" if pages == 1 else "look like HTML, and their"
        return (
            f"{pages} of the first {looked} {look} tags and"
            ' addresses are compared as text; similarity.preset = "news" takes the text out of them'
        )

    def _of_words(self, texts: list[str]) -> str | None:
        if self._parameters.shingle != "word":
            return None
        without = sum(_has_no_spaces(text) for text in texts)
        if not without or without < _SPACELESS * len(texts):
            return None
        looked = counted(len(texts), "document")
        return (
            f"{without} of the first {looked} {'is' if without == 1 else 'are'} in a script that"
            " has no spaces between words, so a whole sentence counts as one word, and copies with"
            ' a few changes are missed; similarity.shingle = "char" compares characters'
        )

    def _of_shingles(self, texts: list[str]) -> str | None:
        median = _median(texts, self._parameters)
        if median is None or median < min(_ALIKE, self._parameters.threshold - _NEAR):
            return None
        better = []
        for name, other in _OTHERS.items():
            parameters = replace(self._parameters, **other)
            few = parameters.shingle == "word" and _words(texts) < _FEW_WORDS
            value = None if few else _median(texts, parameters)
            if value is not None and value <= _APART:
                better.append(f"{value:.2f} with {name}")
        if not better:
            return None  # They are variants of one text.
        size, shingle = self._parameters.shingle_size, self._parameters.shingle
        kind = counted(size, "character" if shingle == "char" else "word")
        return (
            f"two of the first {len(texts)} documents have a similarity of {median:.2f} (the"
            f" median), whatever they say: shingles of {kind} are too short for very long texts"
            " and for those of few different characters, such as numbers or sequences; it is"
            f" {', '.join(better)}"
        )


def _has_no_spaces(text: str) -> bool:
    """Return whether half of a text's letters or more are of scripts without spaces."""
    letters = sum(map(str.isalpha, text))
    return 0 < letters <= 2 * len(_WITHOUT_SPACES.findall(text))


def _words(texts: list[str]) -> float:
    """Return the median number of words."""
    return float(np.median([len(text.split()) for text in texts]))


def _median(texts: list[str], parameters: Parameters) -> float | None:
    """Return the median similarity of two different texts; None if there are too few of these."""
    prints = Fingerprinter(parameters).fingerprint(texts)
    _, firsts = np.unique(prints.keys[:, -1], return_index=True)
    rows = firsts[~prints.blank[firsts]]
    if len(rows) < _LEAST:
        return None
    left, right = np.triu_indices(len(rows), 1)
    sketches = prints.sketches[rows]
    return float(np.median(pairwise_similarity(sketches[left], sketches[right])))
