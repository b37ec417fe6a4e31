"""Write the characters that look like ASCII, for the compiled core; or the oracle's tables.

    python -m tools.unicode_tables FOLDER > core/src/text/replacing/confusables.rs
    python -m tools.unicode_tables --oracle FOLDER > tests/oracle/unicode_tables.py

FOLDER, or a folder below it, has these files of the Unicode Consortium:

- `DerivedCoreProperties.txt` and `DerivedJoiningType.txt` of the Unicode Character Database
  (https://www.unicode.org/Public/, a version's folder `ucd`); the core needs the second alone;
- `confusables.txt` of Unicode Technical Standard 39 (folder `security`).

The versions may differ. Each is named in the output. Files of other versions give
other tables: increase `NORMALISER_VERSION` with them. All other data of Unicode come with
the crates of ICU4X, and in the oracle with `unicodedata`.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from unicodedata import category, combining, decomposition, name, normalize

HEAD = """\
//! Characters that look like ASCII, and what they look like. This file is generated.
//!
//! ```text
//! python -m tools.unicode_tables FOLDER > core/src/text/replacing/confusables.rs
//! ```
//!
//! From {sources}.
//!
//! Copyright (c) 2020, 2022 Unicode, Inc. The licence is in LICENSE-UNICODE. The data was modified:
//! it was selected and rewritten as `tools/unicode_tables.py` says.

/// The first and the last of some code points, and the ASCII that they look like. Ascending.
///
/// A small letter stands for its capital too, unless that is listed itself.
#[rustfmt::skip]
pub static CONFUSABLES: &[(u32, u32, &str)] = &["""
ORACLES_HEAD = '''\
"""Tables from the Unicode Consortium's data. This file is generated.

    python -m tools.unicode_tables --oracle FOLDER > tests/oracle/unicode_tables.py

From {sources}.

Copyright (c) 2020, 2022 Unicode, Inc. The licence is in LICENSE-UNICODE. The data was
modified: it was selected and rewritten as `tools/unicode_tables.py` says.

A table is a list of code points and ranges of them, in hexadecimal digits.
"""

from __future__ import annotations

from typing import Final
'''
WIDTH = 96
ORACLES_WIDTH = 92
ORACLES_LINE = 100  # where the formatter breaks a line
OVERLAYS = (range(0x300, 0x370), range(0x20D0, 0x2100))
OVERLAY = 1  # the combining class
BELOW = 0x20000  # all canonical compositions lie below
HANGUL_SECONDS = (range(0x1161, 0x1176), range(0x11A8, 0x11C3))


def main() -> None:
    """Print the module that is asked for."""
    *options, folder = sys.argv[1:]
    types = read(Path(folder), "DerivedJoiningType.txt")
    look_alike = read(Path(folder), "confusables.txt")
    by_type = {kind: set(of_value(types, kind)) for kind in "CDLR"}
    found = confusables(look_alike, by_type["D"] | by_type["L"] | by_type["R"])
    if options == ["--oracle"]:
        properties = read(Path(folder), "DerivedCoreProperties.txt")
        sources = ", ".join(map(version, (properties, types, look_alike)))
        print(ORACLES_HEAD.format(sources="\n".join(textwrap.wrap(sources, 84))), end="")
        show_tables(properties, by_type)
        show_looks(found)
    else:
        print(HEAD.format(sources=", ".join(map(version, (types, look_alike)))))
        show_rows(found)


def show_rows(found: dict[int, str]) -> None:
    """Print what looks like ASCII as the core's table."""
    # A space within a row would be where a line may end.
    rows = [
        f"(0x{first:X}, 0x{last:X}, {quoted(shown)}),".replace(" ", "\0")
        for first, last, shown in rows_of(found)
    ]
    for line in textwrap.wrap(" ".join(rows), WIDTH, break_on_hyphens=False):
        print("    " + line.replace("\0", " "))
    print("];")


def show_tables(properties: str, by_type: dict[str, set[int]]) -> None:
    """Print the oracle's tables of properties."""
    show_table(
        "IGNORABLE",
        "The property Default_Ignorable_Code_Point: what is invisible if it isn't supported.",
        of_value(properties, "Default_Ignorable_Code_Point"),
    )
    show_table(
        "JOINED_TO_THE_NEXT",
        "Joining_Type L or D: letters of cursive scripts that join the letter after them.",
        by_type["D"] | by_type["L"],
    )
    show_table(
        "JOINED_TO_THE_LAST",
        "Joining_Type R or D: letters of cursive scripts that join the letter before them.",
        by_type["D"] | by_type["R"],
    )
    show_table(
        "ELONGATIONS",
        "Joining_Type C, and category Lm or Po: strokes that make a cursive word longer.",
        {point for point in by_type["C"] if category(chr(point)) in {"Lm", "Po"}},
    )


def show_table(variable: str, docs: str, points: Iterable[int]) -> None:
    """Print one of the oracle's tables."""
    print(f'\n{variable}: Final = """')
    print("\n".join(textwrap.wrap(" ".join(ranges(sorted(points))), ORACLES_WIDTH)))
    print(f'"""\n"""{docs}"""')


def ranges(points: list[int]) -> Iterator[str]:
    """Yield ascending code points as numbers and ranges."""
    first = last = points[0]
    for point in [*points[1:], -1]:
        if point != last + 1:
            yield f"{first:X}" if first == last else f"{first:X}-{last:X}"
            first = point
        last = point


def show_looks(found: dict[int, str]) -> None:
    """Print what looks like ASCII for the oracle, by what it looks like."""
    print("\nCONFUSABLE: Final[dict[str, str]] = {")
    for shown in sorted({*found.values()}):
        points = sorted(point for point, look in found.items() if look == shown)
        alike = " ".join(ranges(points))
        line = f"    {literal(shown)}: {literal(alike)},"
        if len(line) <= ORACLES_LINE:
            print(line)
            continue
        lines = textwrap.wrap(alike, ORACLES_WIDTH - 8)
        print(f"    {literal(shown)}: (")
        spaced = [*(f"{one} " for one in lines[:-1]), lines[-1]]
        print("".join(f"        {literal(one)}\n" for one in spaced), end="")
        print("    ),")
    print("}")
    print('"""Characters that look like ASCII, by what they look like.')
    print()
    print("A small letter stands for its capital too, unless that is listed itself.")
    print('"""')


def read(folder: Path, file: str) -> str:
    """Return the text of a file somewhere in the folder."""
    return next(folder.rglob(file)).read_text(encoding="utf-8-sig")


def version(text: str) -> str:
    """Return the name and the version in the head of a file."""
    head = text[:1_000]
    if named := re.search(r"# (\w+)-([\d.]+)\.txt", head):
        return f"{named[1]} {named[2]}"
    found = re.search(r"# Version: ([\d.]+)", head)
    if not found:
        raise ValueError("a file without a version")
    return f"confusables of UTS 39 {found[1]}"


def of_value(text: str, value: str) -> list[int]:
    """Return the code points that have a value of a property."""
    lines = re.finditer(rf"^(\w+)(?:\.\.(\w+))?\s*; {value}\b", text, re.MULTILINE)
    return [
        point
        for line in lines
        for point in range(int(line[1], 16), int(line[2] or line[1], 16) + 1)
    ]


def confusables(text: str, cursive: set[int]) -> dict[int, str]:
    """Return what looks like ASCII, and what it looks like."""
    own: dict[str, str] = {}
    for line in re.finditer(r"^(\w+) ;\t([\w ]+) ;\tMA", text, re.MULTILINE):
        char = chr(int(line[1], 16))
        shown = looks_like(char, "".join(chr(int(part, 16)) for part in line[2].split()))
        if shown and ord(char) not in cursive:
            own.setdefault(normalize("NFKC", char), shown)
    found: dict[int, str] = {}
    for char, shown in sorted(own.items()):
        small = char.casefold()
        only_the_capital = own.get(small, shown) != shown
        found[ord(char if only_the_capital else small)] = shown
    return found


def rows_of(found: dict[int, str]) -> Iterator[tuple[int, int, str]]:
    """Yield the first and the last of code points in a row that look alike, and as what."""
    points = sorted(found)
    first = points[0]
    for point, after in zip(points, [*points[1:], -1], strict=True):
        if after != point + 1 or found[after] != found[point]:
            yield first, point, found[point]
            first = after


def quoted(text: str) -> str:
    """Return a literal of Rust."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def literal(text: str) -> str:
    """Return a literal of Python with double quotes, as the formatter wants it."""
    return repr(text) if '"' in text else '"' + repr(text)[1:-1] + '"'


def without_overlays(text: str) -> str:
    """Return `text`, which is decomposed, without marks that are drawn over or around a letter."""
    return "".join(char for char in text if not is_overlay(char))


def is_overlay(char: str) -> bool:
    """Return whether a character is such a mark of a block that all scripts share."""
    shared = any(ord(char) in block for block in OVERLAYS)
    return shared and (combining(char) == OVERLAY or category(char) == "Me")


def starts_afresh(char: str) -> bool:
    """Return whether nothing before a character can compose or reorder with it."""
    return not (combining(char) or char in SECONDS)


def seconds() -> Iterator[str]:
    """Yield the seconds of all canonical compositions."""
    for points in HANGUL_SECONDS:
        yield from map(chr, points)
    for point in range(BELOW):
        parts = decomposition(chr(point)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):  # noqa: PLR2004 -- a pair
            yield chr(int(parts[1], 16))


SECONDS = frozenset(seconds())


def looks_like(char: str, prototype: str) -> str | None:
    """Return the ASCII that a character is taken for; None if it is left alone.

    The prototypes of UTS 39 have one case, and take I, l, 1 and | for the same. Here
    case is folded, so a capital that looks like I stands for i. Digits are left alone. A
    letter never stands for punctuation. Marks and letters without case are left alone,
    except the letters of Lisu and of Canadian Aboriginal: many of them have the forms of
    Latin capitals, while a language written in, say, Hebrew or Kana would lose
    distinctions.
    """
    prototype = without_overlays(normalize("NFD", prototype)).replace("rn", "m")
    prototype = prototype.replace("''", '"')
    kind = category(char)
    if not prototype.isascii() or prototype.isspace() or char.isascii() or kind[0] == "N":
        return None
    folded = normalize("NFKC", char).casefold()
    if folded.isascii() or len(folded) > 1 or not starts_afresh(normalize("NFKD", folded)[0]):
        return None
    small = category(folded)
    if small[0] == "M" or (small[0] == "L" and not prototype.isalpha()):
        return None
    if small == "Lo" and not name(folded, "").startswith(("LISU", "CANADIAN")):
        return None
    return "i" if (prototype, kind) == ("l", "Lu") else prototype.casefold()


if __name__ == "__main__":
    main()
