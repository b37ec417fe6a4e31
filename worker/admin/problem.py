"""The finding of a check."""

from __future__ import annotations

from dataclasses import dataclass

from worker.admin.plan import Severity

__all__ = ["Problem"]


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
