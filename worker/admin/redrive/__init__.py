"""Sends rejected documents again, exactly once each."""

from __future__ import annotations

from worker.admin.redrive.run import Counts, redrive

__all__ = ["Counts", "redrive"]
