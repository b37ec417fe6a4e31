"""The parameters of a fingerprint. Only fingerprints with equal parameters are comparable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Final, Literal, cast

from lsh import text
from lsh._core import NORMALISER_VERSION, UNICODE_VERSION, Normaliser
from lsh.mixing import DEFAULT_SEED, derived
from lsh.sketch import SKETCH_BITS
from lsh.text import BREAKS, SWITCHES, digest
from lsh.tuning import (
    CONTAINMENT_RATIO,
    choose,
    enough_slots,
    sought,
    sufficient_slots,
)

SCHEME_VERSION = 4
"""Increased whenever the same text and parameters give another fingerprint."""

MAX_SHINGLE_SIZE = 64
MAX_SLOTS = 4096
OMITTED = frozenset({"containment"})
"""Fields that `Parameters.describe` names only if they are set."""

DERIVED: Final = ("slots", "bands", "rows")
"""Fields that follow from others if they aren't given."""

_NUMBERS: Final = ("shingle_size", *DERIVED, "threshold", "containment")
_FOLLOWS = cast("int", None)
"""Stands for what isn't given. No field has it once an object is made."""

PRESETS: Final[dict[str, dict[str, Any]]] = {
    "comments": {
        "fold_confusables": True,
        "fold_digits": True,
        "fold_accents": True,
        "drop_symbols": True,
        "join_letters": True,
    },
    "news": {"strip_html": True, "reduce_urls": True},
    "code": {"nfkc": False, "casefold": False, "drop_overlays": False},
}
"""Switches that belong together, by what they are for: short texts that are disguised, pages of
the web, and source code, in which upper and lower case differ."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """How texts become fingerprints.

    threshold: Jaccard similarity from which two texts count as near duplicates, in (0, 1].
    shingle, shingle_size: a shingle is this many code points (`char`) or words (`word`).
    slots: length of the MinHash signature.
    bands, rows: how the signature's first bands * rows slots are divided for the index.
        What isn't given of these three follows from the others, the threshold and the
        containment, as with `for_threshold`. `dataclasses.replace` keeps all three.
    nfkc to reduce_urls: the switches of the normaliser, in the order below; see `lsh.text`.
    containment: the share of a text, in (0, 1], from which it matches an earlier text that has
        it, whatever their similarity; None: it doesn't count. If it is set, `shingle_counts` of
        fingerprints count different shingles.
    boilerplate: lines that are left out of texts: footers, banners; see `lsh.text`.
    seed: the site's secret. Without it, nobody can craft a text that lands in
        another text's bucket. The default is public, for reproducible results.

    Raises ValueError with one line that names the field, the value and what is allowed.
    """

    threshold: float = 0.8
    shingle: Literal["char", "word"] = "char"
    shingle_size: int = 5
    slots: int = _FOLLOWS
    bands: int = _FOLLOWS
    rows: int = _FOLLOWS
    nfkc: bool = True
    casefold: bool = True
    collapse_whitespace: bool = True
    drop_invisible: bool = True
    drop_overlays: bool = True
    fold_confusables: bool = False
    fold_digits: bool = False
    fold_accents: bool = False
    fold_turkish_i: bool = False
    drop_symbols: bool = False
    join_letters: bool = False
    strip_html: bool = False
    reduce_urls: bool = False
    boilerplate: frozenset[str] = field(default=frozenset(), repr=False)
    seed: bytes = field(default=DEFAULT_SEED, repr=False)
    containment: float | None = None

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            object.__setattr__(self, name, _plain(getattr(self, name)))
        self._require_shares()
        if self.shingle not in ("char", "word"):
            raise _invalid("shingle", self.shingle, "'char' or 'word'")
        self._require_integer("shingle_size", MAX_SHINGLE_SIZE)
        self._choose()
        self._require_integer("slots", MAX_SLOTS)
        self._require_integer("bands", self.slots)
        self._require_integer("rows", self.slots)
        if self.bands * self.rows > self.slots:
            message = (
                f"bands * rows: got {self.bands} * {self.rows}, "
                f"takes at most the number of slots, {self.slots}"
            )
            raise ValueError(message)
        self._require_normaliser()
        if self.join_letters and self.shingle == "word":
            raise ValueError("join_letters: got True with shingles of words, which it would join")
        if not isinstance(self.seed, bytes) or not self.seed:
            # The seed is a secret: the message must not repeat it.
            got = "nothing" if self.seed == b"" else f"a value of type {type(self.seed).__name__}"
            message = f"seed: got {got}, takes one byte or more"
            raise ValueError(message)

    def _choose(self) -> None:
        """Set what isn't given of slots, bands and rows."""
        given = {name: getattr(self, name) for name in DERIVED}
        for name, value in given.items():
            if value is not None:
                most = MAX_SLOTS if name == "slots" or self.slots is None else self.slots
                self._require_integer(name, most)
        least = sought(self.threshold, self.containment, CONTAINMENT_RATIO)
        slots, bands, rows = given.values()
        if bands is None or rows is None:
            slots, bands, rows = choose(least, slots, bands=bands, rows=rows)
        elif slots is None:
            slots = enough_slots(max(sufficient_slots(least), bands * rows))
        for name, value in zip(given, (slots, bands, rows), strict=True):
            object.__setattr__(self, name, value)

    def _require_shares(self) -> None:
        if not _is_share(self.threshold):
            raise _invalid("threshold", self.threshold, "a number above 0 and at most 1")
        if self.containment is not None and not _is_share(self.containment):
            raise _invalid("containment", self.containment, "None or a number above 0, at most 1")

    def _require_normaliser(self) -> None:
        if isinstance(self.boilerplate, (str, bytes)) or not isinstance(self.boilerplate, Iterable):
            raise _invalid("boilerplate", self.boilerplate, "lines of text, such as a frozenset")
        object.__setattr__(self, "boilerplate", frozenset(self.boilerplate))
        for name in SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise _invalid(name, getattr(self, name), "true or false")
        for line in self.boilerplate:
            if not isinstance(line, str) or not BREAKS.isdisjoint(line):
                raise _invalid("boilerplate", line, "lines of text, without breaks")

    @classmethod
    def for_threshold(
        cls,
        threshold: float,
        *,
        recall: float = 0.98,
        containment_ratio: float = CONTAINMENT_RATIO,
        **kw: Any,  # noqa: ANN401 -- any field
    ) -> Parameters:
        """Return parameters with slots, bands and rows chosen for `threshold`.

        recall: least share of pairs exactly at the threshold that must become
            candidates; see `lsh.tuning.choose`.
        containment_ratio: with a containment, texts must also become candidates that have it
            exactly, and are by so much shorter than the other one; see `lsh.tuning.sought`.
        kw: any other field but bands and rows; with `slots`, only these are chosen.

        Raises ValueError if a field is invalid, or no bands and rows reach `recall`.
        """
        if not kw.keys().isdisjoint({"bands", "rows"}):
            raise ValueError("bands and rows: for_threshold chooses them; see Parameters")
        given = cls(threshold=threshold, **{**kw, "bands": 1, "rows": 1})  # Checks all fields.
        least = sought(given.threshold, given.containment, containment_ratio)
        slots, bands, rows = choose(least, given.slots if "slots" in kw else None, recall)
        return cls(threshold=threshold, **{**kw, "slots": slots, "bands": bands, "rows": rows})

    def describe(self) -> dict[str, str | int | float | bool]:
        """Return everything that determines a fingerprint, for the header of an index.

        Two indexes are compatible if and only if their descriptions are equal. Lists of lines
        that mean the same have the same digest, and no list has none. The seed is replaced by a
        digest, which distinguishes seeds. The digest is that of what scrypt makes of the seed, so
        testing a guess against it is as expensive as testing it against fingerprints of known
        texts: 16 MB and tens of milliseconds. A seed that is among the first million guesses is
        found nevertheless. Sites with the same seed have the same digest.
        """
        return {
            "scheme": SCHEME_VERSION,
            "normaliser": NORMALISER_VERSION,
            "unicode": UNICODE_VERSION,
            "threshold": float(self.threshold),
            "shingle": self.shingle,
            "shingle_size": self.shingle_size,
            "slots": self.slots,
            "sketch_bits": SKETCH_BITS,
            "bands": self.bands,
            "rows": self.rows,
            **{name: getattr(self, name) for name in SWITCHES},
            **({} if self.containment is None else {"containment": float(self.containment)}),
            **({"boilerplate": digest(normaliser(self))} if self.boilerplate else {}),
            "seed_digest": derived(self.seed, b"neardup header", 16).hex(),
        }

    def _require_integer(self, name: str, most: int) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
            raise _invalid(name, value, f"an integer from 1 to {most}")


def _is_share(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1


def _plain(value: object) -> object:
    """Return a number of numpy's as Python's own, and anything else as it is."""
    if isinstance(value, (bool, int)):
        return value
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def _invalid(field: str, got: object, takes: str) -> ValueError:
    return ValueError(f"{field}: got {got!r}, takes {takes}")


def normaliser(parameters: Parameters) -> Normaliser:
    """Return what makes the normal forms of texts by these parameters."""
    switches = tuple(getattr(parameters, name) for name in SWITCHES)
    return text.normaliser(switches, parameters.boilerplate)
