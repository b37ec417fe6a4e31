"""A line of a schedule."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Strike:
    """One line of a schedule."""

    at: float
    """Seconds since the start; later, if the fault before has not been over for a while."""
    fault: str
    target: str
    hold: float
    """For how many seconds."""
