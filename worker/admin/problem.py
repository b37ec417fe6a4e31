"""What a check has found."""

from __future__ import annotations

from dataclasses import dataclass

from worker.admin.plan import Severity

__all__ = ["Problem"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that isn't as it must be (an error), or should be (a warning)."""

    severity: Severity
    subject: str
    """A topic, or ``group NAME``."""
    what: str
    """The setting, or what else it is about."""
    has: str
    takes: str
    why: str = ""
    fix: str = ""

    def __str__(self) -> str:
        """Say it in one line."""
        why = f" ({self.why})" if self.why else ""
        return f"{self.subject}: {self.what} is {self.has}, must be {self.takes}{why}"
