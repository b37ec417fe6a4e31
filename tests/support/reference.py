"""The fingerprint by its definition: one text, plain integers, no numpy, no haste.

Read this to see how the vectors in `vectors.json` come about, or to write the
scheme in another language. Numbers are unsigned 64-bit; all else follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import blake2b, scrypt
from html import unescape
from html.entities import html5
from unicodedata import category, combining, normalize
from unicodedata import name as spoken_name

from lsh import Parameters, unicode_tables
from lsh.elements import ELEMENTS, WITHOUT_VALUE
from lsh.invisible import points
from lsh.neighbours import AFRESH, kind_of

MOST = 2**64 - 1
JOINERS = "\u200c\u200d"


def splitmix64(state: int, count: int) -> list[int]:
    drawn = []
    for step in range(1, count + 1):
        word = (state + step * 0x9E3779B97F4A7C15) & MOST
        word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & MOST
        word = ((word ^ word >> 27) * 0x94D049BB133111EB) & MOST
        drawn.append(word ^ word >> 31)
    return drawn


def fmix64(word: int) -> int:
    word = ((word ^ word >> 33) * 0xFF51AFD7ED558CCD) & MOST
    word = ((word ^ word >> 33) * 0xC4CEB9FE1A85EC53) & MOST
    return word ^ word >> 33


@cache
def site_key(seed: bytes) -> bytes:
    return scrypt(seed, salt=b"neardup", n=2**14, r=8, p=1, dklen=32)


def derived(seed: bytes, purpose: bytes, size: int) -> bytes:
    origin = seed if seed == b"neardup" else site_key(seed)
    return blake2b(origin, person=purpose, digest_size=size).digest()


def keyed(text: str, key: bytes) -> int:
    encoded = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(encoded, key=key, digest_size=8).digest(), "little")


def cut(text: str) -> str:
    """Return the text without marks behind the thirtieth of a run, one code point at a time."""
    short, non_starters = "", 0
    for char in text:
        classes = [combining(part) for part in normalize("NFKD", char)]
        starters = [place for place, number in enumerate(classes) if number == 0]
        if char in JOINERS:
            short += char
        elif starters:
            short += char
            non_starters = len(classes) - 1 - starters[-1]
        else:
            non_starters += len(classes)
            short += char if non_starters <= 30 else ""
    return short


def starters(char: str) -> bool:
    return 0 in classes(char)


def light(text: str, size: int) -> str:
    """Return the text without marks if too many are beyond the second of their letters."""
    beyond = run = 0
    for char in text:
        if char in JOINERS:
            continue
        if starters(char):
            run = 0
        for number in reversed(classes(char)):
            if not number:
                break
            run += 1
            beyond += run > 2
    if 16 * (beyond - 32) <= size:
        return text
    kept = "".join(char for char in text if char in JOINERS or starters(char))
    iotas = {char: normalize("NFD", char) for char in kept if "\u0345" in normalize("NFKD", char)}
    for char in iotas:
        kept = kept.replace(char, normalize("NFC", normalize("NFKD", char).replace("\u0345", "")))
    return kept


def form(char: str, parameters: Parameters) -> str:
    """Return the normal form of one character, white space apart."""
    text = visible(char, parameters)
    text = nfkc(text) if parameters.nfkc else text
    if parameters.casefold:
        text = nfkc(text.casefold()) if parameters.nfkc else text.casefold()
    return text


def expanded(text: str, size: int, parameters: Parameters) -> str:
    """Return the text with long forms cut if they exceed the bound."""
    forms = {}
    for char in set(text):
        most = max(len(normalize("NFKC", char)), len(char.casefold()))
        if char > "\x7f" and most > len(char.encode("utf-8", "surrogatepass")):
            forms[char] = form(char, parameters)
    over = {char: len(form) - len(char.encode()) for char, form in forms.items()}
    if 4 * (sum(max(over.get(char, 0), 0) for char in text) - 32) <= size:
        return text
    return "".join(forms[char][: len(char.encode())] if char in forms else char for char in text)


def nfkc(text: str) -> str:
    for long in "\ufdfa\ufdfb":
        text = text.replace(long, normalize("NFKC", long)[:6])
    return normalize("NFKC", cut(text))


def is_mark(char: str) -> bool:
    """Return whether a joiner's neighbour is looked for behind this character."""
    parts = normalize("NFKD", char)
    return all(category(part) in ("Mn", "Me") and part != "\u0345" for part in parts)


def classes(char: str) -> list[int]:
    return [combining(part) for part in normalize("NFKD", char)]


def behind_virama(text: str) -> bool:
    """Return whether a virama is among the marks that the text ends with, and no iota."""
    found = False
    for char in reversed(text):
        if char in JOINERS:
            continue
        if char == "\u0345":
            return False
        for number in reversed(classes(char)):
            if number == 0:
                return found
            found = found or number == 9
    return found


def without_joiners(text: str) -> str:
    """Return the text without joiners out of place, by RFC 5892, appendix A."""
    kept = ""
    for at, char in enumerate(text):
        if char not in JOINERS:
            kept += char
            continue
        before, after = at - 1, at + 1
        while before >= 0 and is_mark(text[before]):
            before -= 1
        while after < len(text) and (text[after] in JOINERS or is_mark(text[after])):
            after += 1
        if before >= 0 and text[before] in JOINERS:
            continue
        cursive = char == "\u200c" and before >= 0 and after < len(text)
        cursive = cursive and letters(text[before])[-1] in to_next()
        cursive = cursive and letters(text[after])[0] in to_last()
        if cursive or behind_virama(text[:at]):
            kept += char
    return kept


def letters(char: str) -> list[int]:
    parts = normalize("NFKD", char)
    return [ord(part) for part in parts if not is_mark(part)]


@cache
def to_next() -> set[int]:
    return set(points(unicode_tables.JOINED_TO_THE_NEXT))


@cache
def to_last() -> set[int]:
    return set(points(unicode_tables.JOINED_TO_THE_LAST))


@cache
def ignorable() -> set[int]:
    return {*points(unicode_tables.IGNORABLE), *points(unicode_tables.ELONGATIONS)}


def invisible(char: str) -> bool:
    if char in JOINERS:
        return False
    if category(char) == "Lo" and "\u0640" in normalize("NFKD", char):
        return True
    return ord(char) in ignorable() or (category(char) == "Cc" and not char.isspace())


def stroke(char: str) -> bool:
    common = 0x300 <= ord(char) < 0x370 or 0x20D0 <= ord(char) < 0x2100
    return common and (combining(char) == 1 or category(char) == "Me")


@cache
def looks() -> dict[str, str]:
    table = unicode_tables.CONFUSABLE
    return {chr(point): shown for shown, alike in table.items() for point in points(alike)}


def look(char: str, parameters: Parameters) -> str:
    """Return the character with each letter as the ASCII that it looks like."""
    whole = normalize("NFKC", char) if parameters.nfkc else char
    shown = ""
    for part in normalize("NFD", whole):
        small = normalize("NFD", part.casefold())
        seen = looks()[part] if part in looks() else "".join(looks().get(one, one) for one in small)
        shown += (
            part
            if seen == small
            else seen
            if parameters.casefold or part == small
            else seen.upper()
        )
    if shown == normalize("NFD", whole):
        return char
    whole = normalize("NFC", shown.casefold() if parameters.casefold else shown)
    return "".join(one for one in whole if not combining(one))


def visible(text: str, parameters: Parameters) -> str:
    """Return the text with the steps taken that concern single characters."""
    shown = ""
    for char in text:
        if parameters.drop_invisible and invisible(char):
            continue
        parts = char
        apart = normalize("NFD", char)
        if parameters.drop_overlays and any(map(stroke, apart)):
            parts = normalize("NFC", "".join(part for part in apart if not stroke(part)))
        if parameters.fold_accents:
            parts = plain(parts, parameters)
        if parameters.fold_confusables:
            parts = look(parts, parameters) if parts else parts
        if parameters.fold_digits:
            whole = normalize("NFKC", parts) if parameters.nfkc else parts
            if any(map(str.isdecimal, whole)):
                parts = "".join("0" if part.isdecimal() else part for part in whole)
        shown += parts
    return shown


def plain(text: str, parameters: Parameters) -> str:
    """Return the text without accents, and the like."""
    apart = normalize("NFKD" if parameters.nfkc else "NFD", text)
    left = "".join(PLAIN.get(char, char) for char in apart if not accent(char))
    return text if left == apart else normalize("NFC", left)


PLAIN = dict(
    zip("øØłŁđĐħĦŧŦ\u0131\u0671æÆœŒ", [*"oOlLdDhHtTi\u0627", "ae", "AE", "oe", "OE"], strict=True)
)


def accent(char: str) -> bool:
    """Return whether a character is a mark that carries no word, by the names of Unicode."""
    if category(char) != "Mn" or combining(char) == 1:
        return False
    if 0x20D0 <= ord(char) <= 0x20FF:
        return False
    spoken = spoken_name(char, "")
    if spoken.startswith("COMBINING CYRILLIC"):
        return ord(char) < 0x488 or ord(char) >= 0xFE20
    if spoken.startswith(("HEBREW ", "ARABIC ", "SYRIAC ", "SAMARITAN ")):
        return True
    shared = not (
        0x3000 <= ord(char) < 0x3100 or ord(char) > 0xFFFF or 0xA000 <= ord(char) < 0xB000
    )
    return spoken.startswith("COMBINING ") and shared


def one_i(text: str) -> str:
    """Return the text with the letters i of Turkish as one."""
    for letters, read in (("i\u0307", "i"), ("I\u0307", "I"), ("\u0130", "I"), ("\u0131", "i")):
        parts = text.split(letters)
        text = parts[0]
        for part in parts[1:]:
            marked = part != "" and kind_of(part[0]) != AFRESH
            text += (letters if marked else read) + part
    return text


def sort(char: str) -> str:
    if char.isspace():
        return "w"
    if category(char)[0] in "LN":
        return "l" if kind_of(char) == AFRESH else "m"
    return {"M": "m", "P": "s", "S": "s"}.get(category(char)[0], "-")


def run_together(text: str, parameters: Parameters) -> str:
    """Return the text without what is between letters, one code point at a time."""
    if parameters.join_letters:
        after = [*text[1:], "x"]
        pairs = zip(text, after, strict=False)
        text = "".join(one for one, then in pairs if sort(one) != "w" or sort(then) == "m")
    kept, at = "", 0
    while parameters.drop_symbols and at < len(text):
        after_it = at
        while after_it < len(text) and sort(text[after_it]) == "s":
            after_it += 1
        inside = at > 0 and after_it < len(text) and sort(text[at - 1]) in "lm"
        if after_it > at and not (inside and sort(text[after_it]) == "l"):
            kept += text[at:after_it]
        kept += text[after_it : after_it + 1]
        at = after_it + 1
    return kept if parameters.drop_symbols else text


def is_bounded(text: str, parameters: Parameters) -> bool:
    """Return whether a bound that follows the size of the text could change this text.

    Then its normal form, which may be smaller, may have another one.
    """
    shown = visible(text, parameters)
    return expanded(text, 0, parameters) != text or light(shown, 0) != shown


SPACE = " \t\n\r\f\v"
NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:.-"


@dataclass
class Tag:
    """What is between two brackets: `name` is empty for a declaration."""

    begin: int
    end: int
    name: str = ""
    inside: str = ""
    ends: bool = False


def tag_at(text: str, at: int) -> Tag | None:
    """Return the tag that begins at `at`; None if none does."""
    rest = text[at + 1 :]
    if rest[:1] in ("!", "?"):
        end = declaration(rest)
        return Tag(at, at + 1 + end) if end else None
    ends = rest.startswith("/")
    name = leading(rest[ends:], NAME)
    rest = rest[ends + len(name) :]
    if not name or not (name[0].isascii() and name[0].isalpha()) or rest[:1] not in {*SPACE, *"/>"}:
        return None
    size = until(rest, "<>")
    first = size if rest[size : size + 1] == ">" else None
    if not ends:
        strict = attributes(rest)
        lenient = None if first is None else first if begins_with_a_value(rest[:first]) else None
        first = lenient if strict is None else strict
    if first is None:
        return None
    end = at + 1 + ends + len(name) + first + 1
    return Tag(at, end, name, rest[:first], ends)


def until(text: str, ends: str) -> int:
    """Return how many characters are before the first of `ends`."""
    return next((at for at, char in enumerate(text) if char in ends), len(text))


def leading(text: str, members: str) -> str:
    return text[: next((at for at, char in enumerate(text) if char not in members), len(text))]


def declaration(rest: str) -> int | None:
    """Return the size of a declaration, by what follows its `<`."""
    size = until(rest, "<>") + 1
    inside = rest[: size - 1].lower()
    if rest[size - 1 : size] != ">":
        return None
    for word in ("doctype", "element", "entity", "attlist", "notation"):
        if inside.startswith(f"!{word}") and inside[len(word) + 1 :][:1] in ("", *SPACE):
            return size
    for word in ("![if", "![endif"):
        after = rest[len(word) :][:1]
        if inside.startswith(word) and not (after == "-" or after in {*NAME} - {*":."}):
            return size
    if inside.startswith("?xml"):
        return size
    target = inside[1:2]
    closed = inside[0] == "?" and len(inside) > 2 and inside[2:].find("?") == len(inside) - 3
    return size if closed and target.isascii() and target.isalpha() else None


def attributes(rest: str) -> int | None:
    """Return the size of the attributes that lead to a `>`; None if something else is there."""
    at = 0
    while rest[at : at + 1] != ">":
        if rest[at : at + 1] in {*SPACE, "/"}:
            at += 1
            continue
        name = rest[at:][: until(rest[at:], SPACE + "\"'<>/=")]
        value = value_at(rest, at + len(name))
        bare = "-" in name or name.lower() in WITHOUT_VALUE
        if not name or not (value or bare):
            return None
        at = value or at + len(name)
    return at


def value_at(rest: str, at: int) -> int | None:
    """Return the position behind an attribute's value; None if it has none."""
    at += len(leading(rest[at:], SPACE))
    if rest[at : at + 1] != "=":
        return None
    at += 1
    at += len(leading(rest[at:], SPACE))
    quote = rest[at : at + 1]
    if quote and quote in "\"'":
        end = rest.find(quote, at + 1)
        return end + 1 if end > 0 else None
    size = until(rest[at:], SPACE + "\"'<>")
    return at + size if size else None


def begins_with_a_value(inside: str) -> bool:
    space = leading(inside, SPACE)
    name = inside[len(space) :][: until(inside[len(space) :], SPACE + "\"'<>/=")]
    rest = inside[len(space) + len(name) :].lstrip(SPACE)
    value = rest[1:].lstrip(SPACE)
    return bool(space and name and rest[:1] == "=" and value and value[0] in "\"'")


def tags(text: str) -> list[Tag]:
    found, at = [], 0
    while at < len(text):
        tag = tag_at(text, at) if text[at] == "<" else None
        if tag:
            found.append(tag)
        at = tag.end if tag else at + 1
    return found


def shown(tag: Tag, text: str, closed: set[str]) -> str:
    """Return what stands for a tag; itself if it is none."""
    name, before = tag.name.lower(), text[: tag.begin][-1:]
    behind_a_name = before == "_" or (before != "" and before.isalnum())
    type_name = tag.name[:1].isupper() and tag.name[2:].islower()
    type_name |= tag.name in set("ABIQSU") and f"</{tag.name}>" not in text
    if behind_a_name and type_name and not tag.ends and not tag.inside:
        return text[tag.begin : tag.end]
    if name in INLINE.split("|"):
        return ""
    office = any(name.startswith(prefix) for prefix in ("o:", "v:", "w:", "m:", "x:", "st1:"))
    custom = "-" in name and ":" not in name and (name in closed or bool(tag.inside))
    if not name or name in ELEMENTS or office or custom:
        return " "
    return text[tag.begin : tag.end]


def without_what_is_unshown(text: str) -> str:
    """Return the text without comments and elements whose content is no text."""
    for begin in range(len(text)):
        if text[begin:].startswith("<!--"):
            ends = [text.find(end, begin + 2) + len(end) for end in ("-->", "--!>")]
            ends = [end for end in ends if end > 4]
            if ends:
                return text[:begin] + without_what_is_unshown(text[min(ends) :])
        for name in ("script", "style", "template", "noscript", "svg"):
            size = bracketed(text[begin:], f"<{name}")
            if not size or text[begin + size - 2] == "/":
                continue
            for end in range(begin + size, len(text)):
                if last := bracketed(text[end:], f"</{name}"):
                    return text[:begin] + " " + without_what_is_unshown(text[end + last :])
    return text


def bracketed(text: str, beginning: str) -> int:
    """Return the size of what begins so and ends with the next bracket; 0 if it doesn't."""
    rest = text[len(beginning) :]
    size = until(rest, "<>")
    begins = text[: len(beginning)].lower() == beginning and rest[:1] in {*SPACE, *"/>"}
    return len(beginning) + size + 1 if begins and rest[size : size + 1] == ">" else 0


def without_html(text: str) -> str:
    kept, at = "", 0
    while (begin := text.find("<![CDATA[", at)) >= 0 and (end := text.find("]]>", begin + 9)) >= 0:
        kept, at = kept + text[at:begin] + text[begin + 9 : end], end + 3
    text = without_what_is_unshown(kept + text[at:])
    found = tags(text)
    closed = {leading(part, NAME).lower() for part in text.split("</")[1:]}
    kept, at = "", 0
    for tag in found:
        kept, at = kept + text[at : tag.begin] + shown(tag, text, closed), tag.end
    return resolved(kept + text[at:])


INLINE = (
    "a|abbr|acronym|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|ins|kbd|label|mark|nobr|q|s"
    "|samp|small|span|strike|strong|sub|sup|time|tt|u|var|wbr"
)


def resolved(text: str) -> str:
    """Return the text with references to characters resolved."""
    kept, done = "", 0  # what a reference became is no part of another one
    for at, char in enumerate(text):
        begin = kept.rfind("&", done)
        kept += char
        if char != ";" or begin < 0 or at == 0:
            continue
        inside = kept[begin + 1 : -1]
        number = inside.startswith("#")
        hexadecimal = inside[:2] in ("#x", "#X")
        taken = inside[number + hexadecimal :]
        allowed = HEX if hexadecimal else DIGITS if number else LETTERS + DIGITS
        sizes = range(1, 7) if hexadecimal else range(1, 8) if number else range(2, 33)
        if len(taken) not in sizes or set(taken) - set(allowed):
            continue
        if number:
            kept = kept[:begin] + unescape(kept[begin:])
            done = len(kept)
        elif taken[0] not in DIGITS and f"{taken};" in html5:
            kept = kept[:begin] + html5[f"{taken};"]
            done = len(kept)
    return kept


DIGITS = "0123456789"
HEX = DIGITS + "abcdefABCDEF"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def with_hosts(text: str) -> str:
    reduced, others = hosts_and_others(text)
    return reduced if any(map(str.isalnum, others)) else text


def hosts_and_others(text: str) -> tuple[str, str]:
    """Return the text with hosts for addresses, and the text without addresses."""
    kept, at, others = "", 0, ""
    while at < len(text):
        inside_word = at > 0 and (text[at - 1].isalnum() or text[at - 1] == "_")
        inside_word = inside_word and not unspaced(text[at - 1])
        rest = text[at : at + 8].lower()
        scheme = next((one for one in ("https://", "http://") if rest.startswith(one)), "")
        if inside_word or not (scheme or rest.startswith("www.")):
            kept, others, at = kept + text[at], others + text[at], at + 1
            continue
        begin = at + len(scheme)
        user = begin
        while user < len(text) and not ends_address(text[user]) and text[user] not in "/?#@":
            user += 1
        begin = user + 1 if scheme and text[user : user + 1] == "@" else begin
        end = begin
        while end < len(text) and not text[end].isspace() and text[end] not in '<>"/?#:@':
            end += 1
        if end == begin:
            kept, others, at = kept + text[at], others + text[at], at + 1
            continue
        kept, at = kept + text[begin:end], end
        while at < len(text) and not ends_address(text[at]) and text[at] != ")":
            if text[at] == "(":
                close = at + 1
                while (
                    close < len(text) and not ends_address(text[close]) and text[close] not in "()"
                ):
                    close += 1
                if text[close : close + 1] != ")":
                    break
                at = close
            at += 1
    return kept, others


def ends_address(char: str) -> bool:
    return char.isspace() or char in '<>"' or unspaced(char)


def unspaced(char: str) -> bool:
    """Return whether a character is of a script that puts no spaces between words, or Korean."""
    return any(low <= ord(char) <= high for low, high in UNSPACED)


UNSPACED = [
    *((0xE00, 0xEFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0xA4CF), (0xAC00, 0xD7FF)),
    *((0xF900, 0xFAFF), (0xFE30, 0xFE4F), (0xFF00, 0xFFEF), (0x20000, 0x3FFFF)),
]


def normalise(text: str, parameters: Parameters) -> str:
    text = without_html(text) if parameters.strip_html else text
    text = with_hosts(text) if parameters.reduce_urls else text
    size = len(text.encode("utf-8", "surrogatepass"))
    text = visible(expanded(text, size, parameters), parameters)
    if parameters.nfkc:
        text = light(text, size)
        for long in "\ufdfa\ufdfb":
            text = text.replace(long, normalize("NFKC", long)[:6])
        text = cut(text)
    if parameters.casefold and not parameters.nfkc:
        text = text.casefold()
    if parameters.drop_invisible:
        text = without_joiners(text)
    if parameters.nfkc:
        text = nfkc(text)
    if parameters.casefold:
        text = text.casefold()
        if parameters.nfkc:
            text = nfkc(text)
    if parameters.fold_turkish_i:
        text = one_i(text)
    if parameters.collapse_whitespace:
        text = " ".join(text.split())
    return run_together(text, parameters)


def shingle_hashes(text: str, parameters: Parameters) -> list[int]:
    size = parameters.shingle_size
    state = int.from_bytes(derived(parameters.seed, b"neardup shingle", 8), "little")
    base, factor, packing = splitmix64(state, 3)
    if parameters.shingle == "char":
        units = [ord(char) + 1 for char in text]  # so that none is 0
    else:
        key = derived(parameters.seed, b"neardup word", 32)
        units = [keyed(word, key) for word in text.split()]
    hashes = []
    for begin in range(max(len(units) - size + 1, min(len(units), 1))):
        word = 0
        for place, unit in enumerate(units[begin : begin + size]):
            if parameters.shingle == "char" and size <= 6 and unit <= 128:  # ASCII
                word += unit * 256**place * (packing | 1)
            else:
                word += unit * pow(base | 1, size - place, 2**64)
        word &= MOST
        hashes.append(((word ^ word >> 32) * (factor | 1)) & MOST)
    return hashes


def signature(hashes: list[int], slots: int) -> list[int]:
    factors = [number | 1 for number in splitmix64(0x736C6F74, slots)]
    offsets = splitmix64(0x66696C6C, slots)
    signed = []
    for slot in range(slots):
        # The range of h, by its upper half, is cut into equal parts, one for each slot.
        members = [h for h in hashes if (h >> 32) * slots >> 32 == slot]
        if members:
            signed.append(min(members) ^ min(members) >> 32)
            continue
        words = [(h ^ h >> 32) >> 16 * (slot % 3) & 0xFFFF for h in hashes]
        own = min(max(word, 1) * factors[slot] % 2**16 for word in words)
        signed.append(fmix64(own ^ offsets[slot]))
    return signed


def band_keys(sketch: bytes, bands: int, rows: int) -> list[int]:
    starts = splitmix64(0x62616E64, bands)
    words = (rows + 7) // 8
    factors = [number | 1 for number in splitmix64(0x776F7264, words * bands)]
    keys = []
    for band in range(bands):
        own = sketch[band * rows : (band + 1) * rows]
        key = starts[band]
        for word in range(words):
            slots = int.from_bytes(own[word * 8 : word * 8 + 8], "little")
            key += slots * factors[word * bands + band]
        keys.append(fmix64(key & MOST))
    return keys


def text_key(text: str, seed: bytes) -> int:
    return keyed(text, derived(seed, b"neardup text", 32))


def fingerprint(text: str, parameters: Parameters) -> tuple[list[int], bytes, int]:
    """Return (keys, sketch, number of shingles) of a text that isn't blank."""
    text = normalise(text, parameters)
    hashes = shingle_hashes(text, parameters)
    sketch = bytes(slot & 0xFF for slot in signature(hashes, parameters.slots))
    keys = band_keys(sketch, parameters.bands, parameters.rows)
    keys.append(text_key(text, parameters.seed))
    return keys, sketch, len(hashes)
