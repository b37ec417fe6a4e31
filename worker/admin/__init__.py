"""Creates and checks an application's topics, groups and offsets."""

from __future__ import annotations
