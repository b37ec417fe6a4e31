"""neardup: a near-duplicate filter for document streams on Apache Kafka."""

from __future__ import annotations

__version__ = "0.1.0"
