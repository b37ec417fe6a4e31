"""What stands for a secret in what is shown, and is never taken for one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import SecretStr

MASK = "****"
REFUSED = "got asterisks, which stand for a hidden secret in `neardup config show`"

_ASTERISKS = re.compile(r"\*{3,}")
_CREDENTIALS = re.compile(r"(?<=://)[^/?#\s]*@")
_QUERY = re.compile(r"\?[^#\s]*")


def is_mask(value: object) -> bool:
    """Return whether a value is what stands for a secret."""
    return isinstance(value, str) and _ASTERISKS.fullmatch(value.strip()) is not None


def masks(values: Any, name: str = "") -> Iterator[str]:  # noqa: ANN401 -- nested settings
    """Yield the dotted names of values that stand for a secret."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from masks(value, f"{name}.{key}" if name else str(key))
    elif isinstance(values, list | tuple):
        for value in values:
            yield from masks(value, name)
    elif is_mask(values.get_secret_value() if isinstance(values, SecretStr) else values):
        yield name


def without_credentials(url: str) -> str:
    """Return a URL in which user, password and query are masked: any may be a secret."""
    masked = _CREDENTIALS.sub(f"{MASK}@", url)
    return _QUERY.sub(f"?{MASK}", masked) if "://" in masked else masked
