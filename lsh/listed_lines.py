"""Lines that are left out of texts because they are on a list: footers, menus, cookie banners.

A line ends where `str.splitlines` ends it, and each break is one character. A line is left out
if its normal form, as if it were a text, is that of a line of the list. Where nothing is left of
a text, all of it stays: so pages of nothing but listed lines are compared with each other.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lsh._core import Normaliser

__all__ = ["BREAKS", "digest", "lines_of"]

BREAKS: Final = frozenset("\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029")
_BETWEEN: Final = re.compile(f"[{''.join(sorted(BREAKS))}]")


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, without the breaks."""
    return _BETWEEN.split(text)


def digest(normaliser: Normaliser) -> str:
    """Return 32 hexadecimal digits that are equal for lists of the same normal forms."""
    forms = "\n".join(normaliser.listed())
    return blake2b(forms.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
