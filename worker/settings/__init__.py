"""The settings: read once, validated, frozen, and passed down.

Precedence: command line, environment (``NEARDUP_SECTION__NAME``), TOML files, defaults.
"""

from worker.settings.errors import ConfigurationError
from worker.settings.loading import PUBLIC_SEED, advice, load
from worker.settings.mask import MASK, without_credentials
from worker.settings.memory import MemoryShares
from worker.settings.model import Settings
from worker.settings.redaction import redacted
from worker.settings.sections import MOST_BANDS

__all__ = [
    "MASK",
    "MOST_BANDS",
    "PUBLIC_SEED",
    "ConfigurationError",
    "MemoryShares",
    "Settings",
    "advice",
    "load",
    "redacted",
    "without_credentials",
]
