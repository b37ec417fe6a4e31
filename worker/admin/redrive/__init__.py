"""Sends rejected documents again, exactly once each."""

from __future__ import annotations

from worker.admin.redrive.redriving import redrive
from worker.admin.redrive.run import Counts

__all__ = ["Counts", "redrive"]
