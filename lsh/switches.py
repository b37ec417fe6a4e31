"""The switches of the normaliser, as it reads them from `Parameters`."""

from __future__ import annotations

from typing import Protocol


class Switches(Protocol):
    """The steps of the normal form that are taken; see `lsh.text`."""

    def __hash__(self) -> int:
        """Return a hash: what follows from the switches is kept by them."""

    @property
    def strip_html(self) -> bool:
        """Return whether HTML becomes text."""

    @property
    def reduce_urls(self) -> bool:
        """Return whether web addresses become their hosts."""

    @property
    def boilerplate(self) -> frozenset[str]:
        """Return the lines that are left out."""

    @property
    def nfkc(self) -> bool:
        """Return whether compatibility forms are unified."""

    @property
    def casefold(self) -> bool:
        """Return whether case is folded."""

    @property
    def collapse_whitespace(self) -> bool:
        """Return whether runs of white space become one space."""

    @property
    def drop_invisible(self) -> bool:
        """Return whether characters that nothing shows are dropped."""

    @property
    def drop_overlays(self) -> bool:
        """Return whether strokes over letters, and enclosures, are dropped."""

    @property
    def fold_confusables(self) -> bool:
        """Return whether letters become the ASCII that they look like."""

    @property
    def fold_digits(self) -> bool:
        """Return whether every decimal digit becomes 0."""

    @property
    def fold_accents(self) -> bool:
        """Return whether marks that carry no words are dropped."""

    @property
    def fold_turkish_i(self) -> bool:
        """Return whether the two letters i of Turkish are read as one."""

    @property
    def drop_symbols(self) -> bool:
        """Return whether punctuation and symbols between letters are dropped."""

    @property
    def join_letters(self) -> bool:
        """Return whether white space between letters is dropped."""
