"""The rule for one setting of a topic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Rule", "Severity"]

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
