"""Makes, keeps and sends corrections: texts that are allowed, documents that are forgotten."""

from __future__ import annotations
