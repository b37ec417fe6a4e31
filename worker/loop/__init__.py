"""The loop that serves every stage: consume, transform, produce, commit."""

from __future__ import annotations
