"""The compiled core: `core/` in Rust. This stub is its whole face."""

from collections.abc import Sequence
from typing import final

__version__: str

NORMALISER_VERSION: int
"""Increased whenever the same text, switches and Unicode version give another normal form."""

UNICODE_VERSION: str
"""The version of the Unicode data that normal forms are made with, such as "18.0.0".

Characters that it doesn't know are left unchanged.
"""

@final
class Normaliser:
    """Makes normal forms of texts. Immutable: any number of threads may share it."""

    def __new__(
        cls,
        *,
        boilerplate: Sequence[str] = (),
        nfkc: bool = False,
        casefold: bool = False,
        collapse_whitespace: bool = False,
        drop_invisible: bool = False,
        drop_overlays: bool = False,
        fold_confusables: bool = False,
        fold_digits: bool = False,
        fold_accents: bool = False,
        fold_turkish_i: bool = False,
        drop_symbols: bool = False,
        join_letters: bool = False,
        strip_html: bool = False,
        reduce_urls: bool = False,
    ) -> Normaliser:
        """Take the switches, and the lines that are left out of texts.

        Raises TypeError for a switch that there isn't, or one that is neither true nor false.
        """

    def normalise(self, text: str) -> str:
        """Return the normal form of a text. Lone surrogates stay."""

    def left_out(self, text: str) -> list[str]:
        """Return the lines that `normalise` leaves out because they are listed.

        They are in their order, without the breaks, each as often as the text has it.
        """

    def lines(self, text: str) -> list[str]:
        """Return the lines of a text without markup, without the breaks.

        A tag that begins a new line or cell breaks a line.
        """

    def forms(self, lines: Sequence[str]) -> list[str]:
        """Return the normal form of each line, as if it were a text without markup.

        No line is left out.
        """

    def listed(self) -> list[str]:
        """Return the normal forms of the lines that are left out, ascending by code points.

        Lines with nothing but white space, marks and what is dropped are not among them.
        """
