"""The error of a file that can't be read as documents."""

from __future__ import annotations

__all__ = ["InputFault"]


class InputFault(Exception):
    """A file can't be read; the message continues its name: what is wrong, and what to do."""
