"""The settings: read once, validated, frozen, and passed down.

Precedence: command line, environment (``NEARDUP_SECTION__NAME``), TOML file, defaults.
"""

from worker.settings.loading import ConfigurationError, load
from worker.settings.model import ENV_PREFIX, Settings
from worker.settings.redaction import redacted
from worker.settings.sections import MOST_BANDS

__all__ = ["ENV_PREFIX", "MOST_BANDS", "ConfigurationError", "Settings", "load", "redacted"]
