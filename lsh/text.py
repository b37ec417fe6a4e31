"""Normal forms of texts, as fingerprints are made of them, and the lines that they leave out.

A line ends where `str.splitlines` ends it, and each break is one character. A line is left out
if its normal form, as if it were a text, is that of a listed line: footers, menus, cookie banners.
Where nothing is left of a text, all of it stays: so pages of nothing but listed lines are compared
with each other.

`core/src/text` makes them; its module documentation has the steps and their order. Their Unicode
data is compiled in, so they don't depend on the Python that runs.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from lsh._core import Normaliser

BREAKS: Final = frozenset("\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029")
_BETWEEN: Final = re.compile(f"[{''.join(sorted(BREAKS))}]")


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, without the breaks."""
    return _BETWEEN.split(text)


def digest(normaliser: Normaliser) -> str:
    """Return 32 hexadecimal digits that are equal for lists of the same normal forms."""
    forms = "\n".join(normaliser.listed())
    return blake2b(forms.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


SWITCHES = (
    "nfkc",
    "casefold",
    "collapse_whitespace",
    "drop_invisible",
    "drop_overlays",
    "fold_confusables",
    "fold_digits",
    "fold_accents",
    "fold_turkish_i",
    "drop_symbols",
    "join_letters",
    "strip_html",
    "reduce_urls",
)
"""The switches of the normaliser."""


@lru_cache(maxsize=8)
def normaliser(switches: tuple[bool, ...], boilerplate: frozenset[str]) -> Normaliser:
    """Return what makes normal forms, with a value for each of `SWITCHES`.

    Its tables fill as it is used, so it is kept.
    """
    named = dict(zip(SWITCHES, switches, strict=True))
    return Normaliser(boilerplate=sorted(boilerplate), **named)
