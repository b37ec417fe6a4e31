"""The filter without Kafka: the same stages on the in-process log, with persistent state."""

from __future__ import annotations
