"""The errors of a file, and of one document in it, that can't be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


class InputFault(Exception):
    """A file can't be read; the message continues its name: what is wrong, and what to do."""


class DocumentFault(Exception):
    """A document can't be read, and the next one may be; the message is a code and a reason."""


def check_names(names: Sequence[str]) -> None:
    """Refuse a table in which two columns have one name: nobody can say which one is meant.

    Raises:
        InputFault: there are two.
    """
    twice = next((name for name, n in Counter(names).items() if n > 1), None)
    if twice is not None:
        raise InputFault(f"has several columns {twice[:40]!r}")
