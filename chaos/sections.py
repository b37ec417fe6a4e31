"""The settings of a cell's workers."""

from collections.abc import Mapping
from typing import Final

from chaos.cell import Cell, Protocol

DEFAULT_SESSION_MS: Final = 10_000
KEPT_SNAPSHOTS: Final = 2
FAST: Final[Mapping[str, object]] = {
    "flush_seconds": 2,
    "flush_documents": 5_000,
    "cache_bytes": 8 << 20,
    "run_documents": 256,
}
"""So that a worker that was killed has little to catch up with. Every flush brings blocks for
the cache, which would fill for hours: a small one is full early, and evicts. Short runs are merged
all the time, as after weeks with long ones."""


def sections_of(
    cell: Cell, protocol: Protocol, bootstrap: str, snapshots: str | None
) -> dict[str, Mapping[str, object]]:
    """Return the sections of their file; ``snapshots`` is the directory for these."""
    index = dict(FAST)
    if cell.standby:
        index["standby"] = "all"
    if cell.window is not None:
        index["window"] = cell.window
    kafka: dict[str, object] = {"bootstrap": bootstrap, "group_protocol": protocol}
    sections: dict[str, Mapping[str, object]] = {"index": index, "kafka": kafka}
    if cell.forgets:
        sections["documents"] = {"deletes": "forget", "deleted_id_field": "id"}
    if cell.containment is not None:
        sections["similarity"] = {"containment": cell.containment}
    if snapshots is not None:
        verified = {} if cell.verified is None else {"verify_seconds": cell.verified}
        sections["index.snapshots"] = {
            "url": snapshots,
            "every_seconds": cell.snapshots,
            "keep": KEPT_SNAPSHOTS,
            "trim_log": cell.trims,
            **verified,
        }
    if cell.brokers == "fast":
        # By default an answer that is lost is missed after 10 s.
        sections["kafka.consumer"] = {"socket.timeout.ms": 6_000}
    else:
        kafka["session_timeout_ms"] = DEFAULT_SESSION_MS
    return sections
