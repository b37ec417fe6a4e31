"""Learns from a sample which lines stand in many different documents, for `Parameters.boilerplate`.

Documents that nearly repeat an earlier one don't count: the lines of a story that many print are
no boilerplate. So a line counts once in each document that an `Index` of the sample finds unique.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple
from unicodedata import category

from lsh.columns import require_column, text_of
from lsh.fingerprint import Fingerprinter
from lsh.parameters import Parameters, normaliser
from lsh.text import lines_of
from lsh.text_index import Index

_BATCH: Final = 1_000  # texts at a time
_SHORTEST: Final = 4  # characters of a normal form; a shorter line is next to nothing in a text
_LONGEST: Final = 1_000  # characters of a line
_COMMENT: Final = "#"
_JOINERS: Final = "\u200c\u200d"  # they change what is seen, in Persian for instance
_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # general categories


class RepeatedLine(NamedTuple):
    """A line, with white space collapsed, and in how many documents it stands."""

    line: str
    documents: int


class Learnt(NamedTuple):
    """The lines that a sample shows.

    lines: the most frequent first. documents: texts that aren't blank. different: those of them
    that repeat no earlier one, in which lines were counted.
    """

    lines: list[RepeatedLine]
    documents: int
    different: int


def repeated_lines(
    texts: Iterable[str], parameters: Parameters, *, share: float = 0.001, least: int = 5
) -> Learnt:
    """Return the lines that stand in many different documents.

    parameters: how texts become fingerprints, and lines normal forms.
    share, least: a line stands in at least this share of the documents that repeat no earlier
        one, and in at least so many of them.

    Lines of fewer than 4 or more than 1,000 characters don't count, nor do such as
    `Parameters.boilerplate` ignores.
    It keeps the fingerprints of all texts in memory, and the different lines.
    """
    require_column(texts)
    plain = replace(parameters, boilerplate=frozenset())
    index, fingerprinter = Index(plain), Fingerprinter(plain)
    counts: Counter[str] = Counter()
    shown: dict[str, str] = {}
    documents = different = 0
    remaining = iter(texts)
    while batch := list(islice(remaining, _BATCH)):
        first = len(index)
        prints = fingerprinter.fingerprint(batch)
        repeating = index.add_fingerprints(range(first, first + len(batch)), prints)
        present = [row for row, blank in enumerate(prints.blank.tolist()) if not blank]
        new = [batch[row] for row in present if first + row not in repeating]
        documents, different = documents + len(present), different + len(new)
        for lines in _lines_by_form(new, fingerprinter):
            counts.update(lines.keys())
            shown |= {form: line for form, line in lines.items() if counts[form] <= 2}  # noqa: PLR2004 -- not once
    enough = max(least, share * different)
    often = [
        RepeatedLine(_printable(shown.get(form, form)), count)
        for form, count in counts.items()
        if count >= enough
        and len(form) >= _SHORTEST
        and _is_counted(_printable(shown.get(form, form)), form, plain)
    ]
    often.sort(key=lambda one: (-one.documents, one.line))
    return Learnt(often, documents, different)


def _lines_by_form(texts: list[str], fingerprinter: Fingerprinter) -> Iterator[dict[str, str]]:
    """Yield the lines of each text by their normal forms, with white space collapsed."""
    lines_without_markup = normaliser(fingerprinter.parameters).lines
    rows = [
        [line for line in lines_without_markup(text) if len(line) <= _LONGEST] for text in texts
    ]
    forms = iter(fingerprinter.forms([line for lines in rows for line in lines]))
    for lines in rows:
        yield {form: " ".join(line.split()) for line, form in zip(lines, forms, strict=False)}


def _printable(line: str) -> str:
    """Return a line without what a terminal may obey. Its normal form is the same, as a rule."""
    return line if line.isprintable() else "".join(filter(_is_harmless, line))


def _is_harmless(char: str) -> bool:
    return category(char) not in _UNSAFE or char in _JOINERS


def _is_counted(line: str, form: str, switches: Parameters) -> bool:
    """Return whether a list with this line alone, once written and read, means this form."""
    read = replace(switches, boilerplate=parse_lines(format_lines([RepeatedLine(line, 1)])))
    return normaliser(read).listed() == [form]


def format_lines(lines: Iterable[RepeatedLine]) -> str:
    """Return a list to be read and edited: the number of documents, a tab, and the line."""
    return "".join(f"{one.documents}\t{one.line}\n" for one in lines)


def parse_lines(written: str) -> frozenset[str]:
    r"""Return the lines of a list, for `Parameters.boilerplate`.

    written: a line each, with or without a number and a tab before it. What begins with # is a
        comment; so a line that begins so has a number and a tab.

    >>> from lsh import parse_lines
    >>> sorted(parse_lines("# footers\n12\tShare this\nAll rights reserved.\n"))
    ['All rights reserved.', 'Share this']
    """
    lines = (line for line in lines_of(text_of(written)) if not line.startswith(_COMMENT))
    return frozenset(line for line in map(_without_number, lines) if line.strip())


def _without_number(line: str) -> str:
    number, tab, rest = line.partition("\t")
    return rest if tab and (not number.strip() or number.strip().isdecimal()) else line
