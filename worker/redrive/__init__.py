"""Rejected documents go through again, exactly once each."""

from __future__ import annotations

from worker.redrive.run import Counts, Run
from worker.redrive.writer import Writer

__all__ = ["Counts", "Run", "Writer"]
