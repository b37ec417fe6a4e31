"""The loop that serves every stage: consume, transform, produce, commit."""

from __future__ import annotations

from worker.loop.loop import Loop
from worker.loop.options import LoopOptions

__all__ = ["Loop", "LoopOptions"]
