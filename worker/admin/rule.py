"""What one setting of a topic must be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Rule", "Severity"]

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Rule:
    """What one setting of a topic must be; ``value`` is what a new topic gets."""

    setting: str
    value: str
    takes: str
    holds: Callable[[str], bool]
    why: str
    severity: Severity = "error"
    made: bool = True
    """Without it a new topic gets what the broker gives, and ``value`` is only advised."""
