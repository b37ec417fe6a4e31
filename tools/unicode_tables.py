"""Write the characters that look like ASCII, for the compiled core.

    python -m tools.unicode_tables FOLDER > core/src/text/replacing/confusables.rs

FOLDER, or a folder below it, has these files of the Unicode Consortium:

- `DerivedJoiningType.txt` of the Unicode Character Database
  (https://www.unicode.org/Public/, a version's folder `ucd/extracted`);
- `confusables.txt` of Unicode Technical Standard 39 (folder `security`).

The versions may differ. Each is named in the output. Files of other versions give
other tables: increase `NORMALISER_VERSION` with them. All other data of Unicode come with
the crates of ICU4X.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
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
WIDTH = 96
OVERLAYS = (range(0x300, 0x370), range(0x20D0, 0x2100))
OVERLAY = 1  # the combining class
BELOW = 0x20000  # all canonical compositions lie below
HANGUL_SECONDS = (range(0x1161, 0x1176), range(0x11A8, 0x11C3))


def main() -> None:
    """Print the module."""
    folder = Path(sys.argv[1])
    types = read(folder, "DerivedJoiningType.txt")
    look_alike = read(folder, "confusables.txt")
    cursive = {point for kind in "DLR" for point in of_value(types, kind)}
    print(HEAD.format(sources=", ".join(map(version, (types, look_alike)))))
    # A space within a row would be where a line may end.
    rows = [
        f"(0x{first:X}, 0x{last:X}, {quoted(shown)}),".replace(" ", "\0")
        for first, last, shown in rows_of(confusables(look_alike, cursive))
    ]
    for line in textwrap.wrap(" ".join(rows), WIDTH, break_on_hyphens=False):
        print("    " + line.replace("\0", " "))
    print("];")


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
