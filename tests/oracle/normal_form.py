"""The normal form of a text, one character at a time.

Unicode's own data is Python's `unicodedata`, and the tables of `unicode_tables`, which are
generated. So it knows the characters of Python's version of Unicode, which is older than the
core's.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from unicodedata import category, combining, decomposition, name, normalize

from lsh import Parameters
from tests.oracle.markup import with_hosts, without_html
from tests.oracle.unicode_tables import (
    CONFUSABLE,
    ELONGATIONS,
    IGNORABLE,
    JOINED_TO_THE_LAST,
    JOINED_TO_THE_NEXT,
)

JOINERS = {"\u200c", "\u200d"}
LETTER, MARK, SYMBOL, SPACE = "lmsw"
IOTA_BELOW = "\u0345"
LONG_PHRASES = "\ufdfa\ufdfb"
BREAK = re.compile("([\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029])")
WITHOUT_STROKE = dict(
    zip("øØłŁđĐħĦŧŦ\u0131\u0671æÆœŒ", [*"oOlLdDhHtTi\u0627", "ae", "AE", "oe", "OE"], strict=True)
)


def normalise(text: str, parameters: Parameters) -> str:
    """Return the normal form of a text."""
    between = "\n" if parameters.boilerplate else " "
    text = without_html(text, between) if parameters.strip_html else text
    text = with_hosts(text) if parameters.reduce_urls else text
    text = without_listed_lines(text, parameters) if parameters.boilerplate else text
    return form_of(text, parameters)


def without_listed_lines(text: str, parameters: Parameters) -> str:
    """Return a text without the lines that are listed, or all of it if nothing would be left."""
    listed = listed_forms(parameters)
    parts = [*BREAK.split(text), ""]
    lines = zip(parts[::2], parts[1::2], strict=True)
    left = "".join(line + end for line, end in lines if form_of(line, parameters) not in listed)
    return left if form_of(left, parameters).split() else text


@cache
def listed_forms(parameters: Parameters) -> set[str]:
    """Return the forms of listed lines, without those that say nothing."""
    forms = {form_of(line, parameters) for line in parameters.boilerplate}
    return {form for form in forms if any(says_something(char, parameters) for char in form)}


def says_something(char: str, parameters: Parameters) -> bool:
    """Return whether a character is more than white space, a mark, or what may be dropped."""
    if parameters.drop_symbols and category(char)[0] in "PS":
        return False
    parts = normalize("NFKD", char)
    return any(category(part)[0] in "LNPS" and part != "\u03b9" for part in parts)


def form_of(text: str, parameters: Parameters) -> str:
    """Return the normal form of a text without markup."""
    size = len(text.encode("utf-8", "surrogatepass"))
    text = visible(expanded(text, size, parameters), parameters)
    if parameters.nfkc:
        text = cut(light(text, size))
    elif parameters.casefold:
        text = text.casefold()
    text = without_joiners(text) if parameters.drop_invisible else text
    text = folded(text, parameters)
    text = with_one_i(text) if parameters.fold_turkish_i else text
    text = " ".join(text.split()) if parameters.collapse_whitespace else text
    text = without(f"{SPACE}(?!{MARK})", text) if parameters.join_letters else text
    between = f"(?<=[{LETTER}{MARK}]){SYMBOL}+(?={LETTER})"
    return without(between, text) if parameters.drop_symbols else text


def folded(text: str, parameters: Parameters) -> str:
    """Return a text with compatible forms as one, and then both cases."""
    text = nfkc(text) if parameters.nfkc else text
    text = text.casefold() if parameters.casefold else text
    return nfkc(text) if parameters.nfkc else text


def nfkc(text: str) -> str:
    return normalize("NFKC", cut(text))


# Bounds: what a text costs is linear in its size.


def expanded(text: str, size: int, parameters: Parameters) -> str:
    """Return a text with each form cut to its character's size, if forms exceed that by much."""
    forms, excess = {}, 0
    for char in set(text) - set(map(chr, range(128))):
        room = len(char.encode("utf-8", "surrogatepass"))
        if max(len(normalize("NFKC", char)), len(char.casefold())) > room:
            forms[char] = folded(visible(char, parameters), parameters)
            excess += max(len(forms[char]) - room, 0) * text.count(char)
    if 4 * (excess - 32) <= size:
        return text
    return "".join(forms[char][: len(char.encode())] if char in forms else char for char in text)


def light(text: str, size: int) -> str:
    """Return a text without marks if too many are beyond the second of their letters."""
    beyond = sum(max(run - 2, 0) - max(before - 2, 0) for _, before, run in runs(text))
    if 16 * (beyond - 32) <= size:
        return text
    return "".join(without_iota(char) for char in text if 0 in classes(char))


def without_iota(char: str) -> str:
    apart = normalize("NFKD", char)
    return normalize("NFC", apart.replace(IOTA_BELOW, "")) if IOTA_BELOW in apart else char


def cut(text: str) -> str:
    """Return a text without marks behind the thirtieth of a run, and with long phrases short."""
    for long in LONG_PHRASES:
        text = text.replace(long, normalize("NFKC", long)[:6])
    return "".join(char for char, _, run in runs(text) if run <= 30 or 0 in classes(char))


def runs(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each character, and how many marks end before and behind it, joiners apart."""
    run = 0
    for char in text:
        numbers = classes(char)
        before = 0 if 0 in numbers and char not in JOINERS else run
        if char not in JOINERS:
            run = before + (numbers[::-1].index(0) if 0 in numbers else len(numbers))
        yield char, before, run


def classes(char: str) -> list[int]:
    return [combining(part) for part in normalize("NFKD", char)]


# Single characters.


def visible(text: str, parameters: Parameters) -> str:
    """Return a text with the steps taken that concern single characters."""
    shown = []
    for char in text:
        if parameters.drop_invisible and is_invisible(char):
            continue
        part, apart = char, normalize("NFD", char)
        if parameters.drop_overlays and any(map(is_overlay, apart)):
            part = normalize("NFC", "".join(one for one in apart if not is_overlay(one)))
        if parameters.fold_accents:
            part = without_accents(part, parameters)
        if parameters.fold_confusables and part:
            part = look(part, parameters)
        whole = normalize("NFKC", part) if parameters.nfkc else part
        if parameters.fold_digits and any(map(str.isdecimal, whole)):
            part = "".join("0" if one.isdecimal() else one for one in whole)
        shown.append(part)
    return "".join(shown)


def is_invisible(char: str) -> bool:
    if char in JOINERS:
        return False
    long = category(char) == "Lo" and "\u0640" in normalize("NFKD", char)
    control = category(char) == "Cc" and not char.isspace()
    return long or control or char in points(IGNORABLE + ELONGATIONS)


@cache
def points(table: str) -> set[str]:
    """Return the characters of a table."""
    found = set()
    for part in table.split():
        first, _, last = part.partition("-")
        found |= set(map(chr, range(int(first, 16), int(last or first, 16) + 1)))
    return found


def is_overlay(char: str) -> bool:
    common = 0x300 <= ord(char) < 0x370 or 0x20D0 <= ord(char) < 0x2100
    return common and (combining(char) == 1 or category(char) == "Me")


def without_accents(text: str, parameters: Parameters) -> str:
    """Return a text without accents, and the like."""
    apart = normalize("NFKD" if parameters.nfkc else "NFD", text)
    left = "".join(WITHOUT_STROKE.get(char, char) for char in apart if not is_accent(char))
    return text if left == apart else normalize("NFC", left)


def is_accent(char: str) -> bool:
    """Return whether a character is a mark that carries no word, by the names of Unicode."""
    if category(char) != "Mn" or combining(char) == 1 or 0x20D0 <= ord(char) <= 0x20FF:
        return False
    if name(char, "").startswith("COMBINING CYRILLIC"):
        return ord(char) < 0x488 or ord(char) >= 0xFE20
    if name(char, "").startswith(("HEBREW ", "ARABIC ", "SYRIAC ", "SAMARITAN ")):
        return True
    of_one_script = 0x3000 <= ord(char) < 0x3100 or 0xA000 <= ord(char) < 0xB000
    return name(char, "").startswith("COMBINING ") and not of_one_script and ord(char) <= 0xFFFF


def look(char: str, parameters: Parameters) -> str:
    """Return a character with each letter as the ASCII that it looks like."""
    whole, shown = normalize("NFKC", char) if parameters.nfkc else char, ""
    for part in normalize("NFD", whole):
        small = normalize("NFD", part.casefold())
        seen = looks().get(part) or "".join(looks().get(one, one) for one in small)
        if seen == small:
            shown += part
        else:
            shown += seen if parameters.casefold or part == small else seen.upper()
    if shown == normalize("NFD", whole):
        return char
    shown = normalize("NFC", shown.casefold() if parameters.casefold else shown)
    return "".join(one for one in shown if not combining(one))


@cache
def looks() -> dict[str, str]:
    return {char: shown for shown, alike in CONFUSABLE.items() for char in points(alike)}


# Characters and their neighbours.


def without_joiners(text: str) -> str:
    """Return a text without joiners out of place."""
    whole = enumerate(text)
    return "".join(one for at, one in whole if one not in JOINERS or is_in_place(text, at))


def is_in_place(text: str, at: int) -> bool:
    """Return whether a joiner changes what is seen, by RFC 5892, appendix A."""
    before = next((one for one in reversed(text[:at]) if not is_mark(one)), "")
    after = next((one for one in text[at + 1 :] if not (one in JOINERS or is_mark(one))), "")
    if before in JOINERS:
        return False
    joined = before != "" and letters(before)[-1] in points(JOINED_TO_THE_NEXT)
    joined = joined and after != "" and letters(after)[0] in points(JOINED_TO_THE_LAST)
    return (joined and text[at] == "\u200c") or behind_virama(text[:at])


def letters(char: str) -> list[str]:
    return [part for part in normalize("NFKD", char) if not is_mark(part)]


def is_mark(char: str) -> bool:
    """Return whether a joiner's neighbour is looked for behind this character."""
    parts = normalize("NFKD", char)
    return all(category(part) in ("Mn", "Me") and part != IOTA_BELOW for part in parts)


def behind_virama(text: str) -> bool:
    """Return whether a virama is among the marks that a text ends with, and no iota."""
    numbers: list[int] = []
    for char in reversed(text):
        if char == IOTA_BELOW:
            return False
        numbers += reversed(classes(char)) if char not in JOINERS else []
        if 0 in numbers:
            break
    return 9 in takewhile(bool, numbers)


def with_one_i(text: str) -> str:
    """Return a text with the letters i of Turkish as one, where they carry no other mark."""
    for letter, read in (("i\u0307", "i"), ("I\u0307", "I"), ("\u0130", "I"), ("\u0131", "i")):
        text, *parts = text.split(letter)
        for part in parts:
            text += (read if begins_afresh(part[:1]) else letter) + part
    return text


@cache
def begins_afresh(char: str) -> bool:
    """Return whether a character joins nothing before it; the end of a text doesn't."""
    apart, folded = normalize("NFKD", char), normalize("NFKC", char).casefold()
    if char == "" or char in JOINERS or IOTA_BELOW in apart:
        return char == ""
    firsts = apart[0], normalize("NFKD", folded)[0]
    return all(combining(first) == 0 and first not in seconds() for first in firsts)


@cache
def seconds() -> set[str]:
    """Return the characters that are the second of a canonical composition."""
    pairs = [decomposition(chr(point)).split() for point in range(0x20000)]
    found = {chr(int(pair[1], 16)) for pair in pairs if len(pair) == 2 and "<" not in pair[0]}
    return found | set(map(chr, [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]))


def without(stretches: str, text: str) -> str:
    """Return a text without the stretches whose sorts are found."""
    for found in reversed([*re.finditer(stretches, "".join(map(sort, text)))]):
        text = text[: found.start()] + text[found.end() :]
    return text


@cache
def sort(char: str) -> str:
    if char.isspace():
        return SPACE
    if category(char)[0] in "LN":
        return LETTER if begins_afresh(char) else MARK
    return {"M": MARK, "P": SYMBOL, "S": SYMBOL}.get(category(char)[0], "-")
