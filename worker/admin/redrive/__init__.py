"""Sends rejected documents again, exactly once each."""

from __future__ import annotations
