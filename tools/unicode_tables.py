"""Write `lsh/unicode_tables.py`: what the normaliser needs and `unicodedata` doesn't have.

    python -m tools.unicode_tables FOLDER > lsh/unicode_tables.py

FOLDER, or a folder below it, has these files of the Unicode Consortium:

- `DerivedCoreProperties.txt` and `DerivedJoiningType.txt` of the Unicode Character
  Database (https://www.unicode.org/Public/, a version's folder `ucd`);
- `confusables.txt` of Unicode Technical Standard 39 (folder `security`).

The versions may differ. Each is named in the output. Files of other versions give
other tables: increase `NORMALISER_VERSION` with them.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from unicodedata import category, name, normalize

from lsh.neighbours import AFRESH, kind_of
from lsh.overlays import without_overlays

HEAD = '''\
"""Tables from the Unicode Consortium's data. This file is generated.

    python -m tools.unicode_tables FOLDER > lsh/unicode_tables.py

From {sources}.

Copyright (c) 2020, 2022 Unicode, Inc. The licence is in LICENSE-UNICODE. The data was
modified: it was selected and rewritten as `tools/unicode_tables.py` says.

A table is a list of code points and ranges of them, in hexadecimal digits.
"""

from __future__ import annotations

from typing import Final
'''
WIDTH = 92


def main() -> None:
    """Print the module."""
    folder = Path(sys.argv[1])
    properties = read(folder, "DerivedCoreProperties.txt")
    types = read(folder, "DerivedJoiningType.txt")
    look_alike = read(folder, "confusables.txt")
    by_type = {kind: set(of_value(types, kind)) for kind in "CDLR"}
    sources = ", ".join(map(version, (properties, types, look_alike)))
    print(HEAD.format(sources="\n".join(textwrap.wrap(sources, 84))), end="")
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
        {point for point in by_type.pop("C") if category(chr(point)) in {"Lm", "Po"}},
    )
    show_confusables(look_alike, set().union(*by_type.values()))


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


def show_table(variable: str, docs: str, points: list[int] | set[int]) -> None:
    """Print one table."""
    print(f'\n{variable}: Final = """')
    print("\n".join(textwrap.wrap(" ".join(ranges(sorted(points))), WIDTH)))
    print(f'"""\n"""{docs}"""')


def ranges(points: list[int]) -> Iterator[str]:
    """Yield ascending code points as numbers and ranges."""
    first = last = points[0]
    for point in [*points[1:], -1]:
        if point != last + 1:
            yield f"{first:X}" if first == last else f"{first:X}-{last:X}"
            first = point
        last = point


def show_confusables(text: str, cursive: set[int]) -> None:
    """Print what looks like ASCII, by what it looks like."""
    own: dict[str, str] = {}
    for line in re.finditer(r"^(\w+) ;\t([\w ]+) ;\tMA", text, re.MULTILINE):
        char = chr(int(line[1], 16))
        shown = looks_like(char, "".join(chr(int(part, 16)) for part in line[2].split()))
        if shown and ord(char) not in cursive:
            own.setdefault(normalize("NFKC", char), shown)
    found: dict[str, list[int]] = {}
    for char, shown in sorted(own.items()):
        small = char.casefold()
        if own.get(small, shown) != shown:
            found.setdefault(shown, []).append(ord(char))  # Only the capital looks like this.
        elif ord(small) not in found.setdefault(shown, []):
            found[shown].append(ord(small))  # Both cases.
    print("\nCONFUSABLE: Final[dict[str, str]] = {")
    for shown, points in sorted(found.items()):
        lines = textwrap.wrap(" ".join(ranges(sorted(points))), WIDTH - 8)
        if len(lines) == 1:
            print(f"    {quoted(shown)}: {quoted(lines[0])},")
            continue
        print(f"    {quoted(shown)}: (")
        spaced = [*(f"{one} " for one in lines[:-1]), lines[-1]]
        print("".join(f"        {quoted(one)}\n" for one in spaced), end="")
        print("    ),")
    print("}")
    print('"""Characters that look like ASCII, by what they look like.')
    print()
    print("A small letter stands for its capital too, unless that is listed itself.")
    print('"""')


def quoted(text: str) -> str:
    """Return a literal with double quotes, as the formatter wants it."""
    return repr(text) if '"' in text else '"' + repr(text)[1:-1] + '"'


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
    if folded.isascii() or len(folded) > 1 or kind_of(folded) != AFRESH:
        return None
    small = category(folded)
    if small[0] == "M" or (small[0] == "L" and not prototype.isalpha()):
        return None
    if small == "Lo" and not name(folded, "").startswith(("LISU", "CANADIAN")):
        return None
    return "i" if (prototype, kind) == ("l", "Lu") else prototype.casefold()


if __name__ == "__main__":
    main()
