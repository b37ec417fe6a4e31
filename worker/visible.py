"""Text from outside, made safe to show: documents, ids, keys, headers, names of files and topics.

A terminal obeys some characters, and others change the order or the number of lines. Everything
that is printed or logged passes through here.
"""

from __future__ import annotations

import json
import sys
from unicodedata import category

_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories: controls (C0, C1, DEL), formats (bidi, invisible), surrogates, separators."""
_JOINERS = frozenset("\u200c\u200d")
"""Formats that scripts and emoji need, and that change only the characters beside them."""


def visible(text: str) -> str:
    r"""Return a text with its unsafe characters as Python escapes, such as ``\x1b``; one line.

    >>> visible("a\nb \x1b[2J \u202ec")
    'a\\nb \\x1b[2J \\u202ec'
    """
    if text.isprintable():
        return text
    return "".join(_escaped(c) if _is_unsafe(c) else c for c in text)


def excerpt(text: str, most: int) -> str:
    """Return the beginning of a text, at most ``most`` characters of it, in one visible line.

    Each run of white space becomes one space.
    """
    return visible(" ".join(text[:most].split()))


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun, of which ``nouns`` is the plural.

    >>> counted(1, "document"), counted(2_000, "document"), counted(0, "entry", "entries")
    ('1 document', '2,000 documents', '0 entries')
    """
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def json_text(value: object, indent: int | None = None) -> str:
    """Return a value as JSON, with unsafe characters in strings as JSON's own escapes."""
    return json_escaped(json.dumps(value, ensure_ascii=False, indent=indent))


def json_escaped(text: str) -> str:
    """Return JSON with the unsafe characters in its strings escaped; it means the same."""
    if text.isprintable():
        return text
    # Line breaks are between values: within strings JSON has them escaped.
    return "".join(json.dumps(c)[1:-1] if _is_unsafe(c) and c != "\n" else c for c in text)


def tell(message: str) -> None:
    """Print one line about the run on standard error."""
    print(visible(message), file=sys.stderr)  # noqa: T201 -- the command's messages


def _is_unsafe(character: str) -> bool:
    return category(character) in _UNSAFE and character not in _JOINERS


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
