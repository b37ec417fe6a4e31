"""The settings with their secrets masked: only what is known to be harmless is shown."""

from __future__ import annotations

from typing import Any

from worker.bus.kafka.harmless_keys import HARMLESS
from worker.settings.files import FILE
from worker.settings.mask import MASK, without_credentials
from worker.settings.model import Settings


def redacted(settings: Settings) -> dict[str, Any]:
    """Return the settings as plain values, with ``****`` for secrets."""
    plain = settings.model_dump(mode="json")
    plain["similarity"]["seed"] = (
        settings.similarity.seed.get_secret_value() if settings.similarity.default_seed else MASK
    )
    for table in ("common", "consumer", "producer"):
        plain["kafka"][table] = {
            key: value if key in HARMLESS or _is_path(key, value) else MASK
            for key, value in plain["kafka"][table].items()
        }
    snapshots = plain["index"]["snapshots"]
    # The options of a file system have no fixed names, and most are credentials.
    snapshots["options"] = {
        key: value if _is_path(key, value) else MASK for key, value in snapshots["options"].items()
    }
    if snapshots["url"] is not None:
        snapshots["url"] = without_credentials(snapshots["url"])
    return plain


def _is_path(key: str, value: object) -> bool:
    return key.endswith(FILE) and isinstance(value, str)
