"""The metrics of a worker: a table that defines them, and what counts by its names.

`worker.metrics.exposition` writes them for Prometheus. Nothing else knows of it.
"""

from __future__ import annotations
