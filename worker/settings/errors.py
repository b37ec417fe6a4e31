"""The error of a wrong setting."""

from __future__ import annotations


class ConfigurationError(Exception):
    """A setting is wrong; the message is one line: the setting, its value, what it must be."""
