"""The stages. Each transforms records and sees no bus, clock or disk."""

from __future__ import annotations
