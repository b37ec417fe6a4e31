"""Normal forms of texts, as fingerprints are made of them.

`core/src/text` makes them; its module documentation has the steps and their order. Their Unicode
data is compiled in, so they don't depend on the Python that runs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from lsh._core import NORMALISER_VERSION, UNICODE_VERSION, Normaliser
from lsh.columns import text_of

if TYPE_CHECKING:
    from lsh.switches import Switches

__all__ = [
    "NORMALISER_VERSION",
    "SWITCHES",
    "UNICODE_VERSION",
    "left_out_of",
    "normalise",
    "normaliser",
]

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


def normaliser(switches: Switches) -> Normaliser:
    """Return what makes normal forms. Its tables fill as it is used, so it is kept."""
    return _normaliser(tuple(getattr(switches, name) for name in SWITCHES), switches.boilerplate)


@lru_cache(maxsize=8)
def _normaliser(switches: tuple[bool, ...], boilerplate: frozenset[str]) -> Normaliser:
    named = dict(zip(SWITCHES, switches, strict=True))
    return Normaliser(boilerplate=sorted(boilerplate), **named)


def normalise(text: str, parameters: Switches) -> str:
    """Return the normal form of one text.

    Raises TypeError if it is none.
    """
    return normaliser(parameters).normalise(text_of(text))


def left_out_of(text: str, parameters: Switches) -> list[str]:
    """Return the lines of a text that `normalise` leaves out because they are listed."""
    return normaliser(parameters).left_out(text_of(text))
