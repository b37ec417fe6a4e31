"""How far the rejected were sent again, as it is kept in a group's offsets.

Per partition: an offset before which nothing is left to send, and, in the offset's
metadata, the reasons that are ahead of it, because they were asked for alone.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field

__all__ = ["Progress"]


@dataclass(slots=True)
class Progress:
    """How far one partition of the rejected is done: all before ``base``, some reasons more."""

    base: int
    ahead: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, offset: int, metadata: str | None) -> Progress:
        """Take what was committed."""
        try:
            ahead = json.loads(metadata) if metadata else {}
            return cls(offset, {str(code): int(at) for code, at in ahead.items()})
        except (ValueError, AttributeError):
            return cls(offset)

    def metadata(self) -> str:
        """Write what goes with the offset."""
        return json.dumps(self.ahead, separators=(",", ":")) if self.ahead else ""

    def start(self, reasons: Collection[str]) -> int:
        """Say where to begin to read."""
        return min((self.ahead.get(code, self.base) for code in reasons), default=self.base)

    def is_due(self, offset: int, reason: str) -> bool:
        """Tell whether a record was not sent before."""
        return offset >= self.ahead.get(reason, self.base)

    def passed(self, offset: int, reasons: Collection[str]) -> None:
        """Note that all that was asked for is done before ``offset``."""
        if reasons:
            for code in reasons:
                self.ahead[code] = max(offset, self.ahead.get(code, self.base))
        else:
            self.base = max(offset, self.base)
            self.ahead = {code: at for code, at in self.ahead.items() if at > self.base}
