"""What a check asks of a setting of a topic, and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule for one setting of a topic; ``value`` is the setting of a new topic."""

    setting: str
    value: str
    takes: str
    holds: Callable[[str], bool]
    why: str
    severity: Severity = "error"
    made: bool = True
    """If False, a new topic gets the broker's default, and ``value`` is only advised."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding: something isn't as it must be (an error), or as it should be (a warning)."""

    severity: Severity
    subject: str
    """A topic, or ``group NAME``."""
    what: str
    """The setting, or another property."""
    has: str
    takes: str
    why: str = ""
    fix: str = ""

    def __str__(self) -> str:
        """Return the finding in one line."""
        why = f" ({self.why})" if self.why else ""
        return f"{self.subject}: {self.what} is {self.has}, must be {self.takes}{why}"
