"""Settings that may be shown."""

from __future__ import annotations

import re
from typing import Any

from worker.settings.model import Settings

__all__ = ["redacted"]

_SECRET = re.compile(r"password|secret|token|private|\.pem$|\.key$|jaas|sasl\.oauthbearer\.config")


def redacted(settings: Settings) -> dict[str, Any]:
    """Give the settings as plain values, with ``***`` for secrets."""
    plain = settings.model_dump(mode="json")
    default = Settings.model_fields["similarity"].default.seed
    if settings.similarity.seed == default:
        plain["similarity"]["seed"] = default.get_secret_value()
    for table in ("common", "consumer", "producer"):
        plain["kafka"][table] = {
            key: "***" if _SECRET.search(key) else value
            for key, value in plain["kafka"][table].items()
        }
    # What a file system takes has no fixed names, and is most often a credential.
    snapshots = plain["index"]["snapshots"]
    snapshots["options"] = dict.fromkeys(snapshots["options"], "***")
    return plain
