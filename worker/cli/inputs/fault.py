"""The errors of a file, and of one document in it, that can't be read."""

from __future__ import annotations

__all__ = ["DocumentFault", "InputFault"]


class InputFault(Exception):
    """A file can't be read; the message continues its name: what is wrong, and what to do."""


class DocumentFault(Exception):
    """A document can't be read, and the next one may be; the message is a code and a reason."""
