"""What texts are wrapped in: markup, and what follows the hosts of web addresses."""

import re
from collections.abc import Callable, Container
from html.entities import html5
from typing import NamedTuple

from tests.oracle.html_names import (
    BLOCKS,
    BREAKS,
    BREAKS_OUT,
    FORMATTING,
    FRAMES,
    HEADINGS,
    HIDDEN,
    HIDDEN_WITHIN,
    HTML_WITHIN,
    LOOSE,
    PARTS,
    RAW,
    SCOPES,
    VOID,
)

SPACE = r" \t\n\r\f"
DEEPEST = 128
MARKUP = re.compile(
    rf"""<(?: !--
    | [!/?][^<>]*>
    | [a-zA-Z][a-zA-Z0-9_.:-]*+
        (?: [{SPACE}/]++ [^{SPACE}/>=<"']++ [{SPACE}]*+ = [{SPACE}]*+
            (?: "[^"]*+" | '[^']*+' | [^{SPACE}"'<>]++ ) )*+
        [{SPACE}/]*+ > )""",
    re.VERBOSE,
)
WHOLE = re.compile(rf"(?s)[{SPACE}]*<!\[CDATA\[(.*)\]\]>[{SPACE}]*")
COMMENT = re.compile("(?s)<!--(?:-?>|.*?(?:--!?>|$(?!\n)))")
CDATA = re.compile(r"(?s)<!\[CDATA\[(.*?)(?:\]\]>|$(?!\n))")
BOGUS = re.compile("<(?:[!?]|/(?=[^a-zA-Z]))[^>]*>?")
TAG = re.compile(rf"<(/?)([a-zA-Z][^{SPACE}/>]*)")
NAME = re.compile(rf"[^{SPACE}/>][^{SPACE}/>=]*")
EQUALS = re.compile(rf"[{SPACE}]*=[{SPACE}]*")
VALUE = re.compile(rf"""(?:"([^"]*)"|'([^']*)'|((?!["'])[^{SPACE}>]*))""")
REFERENCE = re.compile("&(?:#([0-9]+)|#[xX]([0-9a-fA-F]+)|([a-zA-Z][a-zA-Z0-9]*))(;?)")
SCRIPT = re.compile(rf"(?i)<!--|-->|</?script(?=[{SPACE}/>])")
DISPLAYS = (
    *("block", "contents", "flex", "flow", "grid", "inherit", "initial", "inline", "list-item"),
    *("math", "none", "revert", "ruby", "run-in", "table", "unset"),
)
# Scripts that put no spaces between words, and Korean.
UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f"
    r"\uff00-\uffef\U00020000-\U0003ffff"
)
ADDRESS = re.compile(
    rf"""(?<![^\W{UNSPACED}])
    (?: (?ai:https?://) (?:[^\s<>"/?\#@{UNSPACED}]*@)?+ | (?=(?ai:www\.)) )
    (?P<host>[^\s<>"/?\#:@]+)
    (?: [^\s<>"(){UNSPACED}] | \([^\s<>"(){UNSPACED}]*\) )*""",
    re.VERBOSE,
)


class Tag(NamedTuple):
    """A tag: `end` is where it ends, None if it doesn't."""

    name: str
    is_end: bool
    end: int | None
    attributes: dict[str, str]
    closes_itself: bool


class Open(NamedTuple):
    """An element that is open. within: `svg` or `math` if it is part of one, else empty."""

    name: str
    within: str
    hides: bool

    def is_in(self, names: Container[str]) -> bool:
        return self.name in names and not self.within

    def is_scope(self) -> bool:
        return self.is_in(SCOPES) or self.has_html()

    def is_special(self) -> bool:
        """Return whether it is more than a part of a line."""
        return self.is_scope() or self.is_in(BREAKS - LOOSE)

    def has_html(self) -> bool:
        return self.within != "" and self.name in HTML_WITHIN[self.within]

    def is_line_of_svg(self) -> bool:
        return (self.within, self.name) == ("svg", "text")

    def drawing(self) -> str:
        """Return what its content is part of: `svg`, `math`, or nothing if it is HTML."""
        if self.within:
            return "" if self.has_html() else self.within
        return self.name if self.name in HTML_WITHIN else ""


def with_hosts(text: str) -> str:
    """Return a text with hosts for addresses, unless it says nothing else."""
    says_more = any(map(str.isalnum, ADDRESS.sub("", text)))
    return ADDRESS.sub(r"\g<host>", text) if says_more else text


def without_html(text: str, between: str) -> str:
    """Return what a browser shows of a text, if it has markup.

    between: what stands where a line or cell begins or ends.
    """
    if whole := WHOLE.fullmatch(text):
        text = whole[1]
    return Page(between).shown(text) if MARKUP.search(text) else resolved(text)


class Page:
    """What is shown so far, and what is open."""

    def __init__(self, between: str) -> None:
        self.between = between
        self.text = ""
        self.open: list[Open] = []
        self.titles = 0

    def shown(self, text: str) -> str:
        """Return what is shown of a page."""
        at = 0
        while at < len(text):
            at = self.piece(text, at)
        return self.text

    def piece(self, text: str, at: int) -> int:
        """Take one piece of a page; return where the next one begins."""
        if self.drawing() and (found := CDATA.match(text, at)):
            self.write(found[1])
        elif not (found := COMMENT.match(text, at) or BOGUS.match(text, at)):
            if not (begin := TAG.match(text, at)):
                end = text.find("<", at + 1) if "<" in text[at + 1 :] else len(text)
                self.write(resolved(text[at:end]))
                return end
            tag = tag_at(text, begin)
            if tag.end is None:
                return len(text)
            return self.end(tag) if tag.is_end else self.start(tag, text)
        return found.end()

    # What is seen.

    def drawing(self) -> str:
        """Return what the innermost element is part of."""
        return self.open[-1].drawing() if self.open else ""

    def state(self) -> str:
        state, hidden_table = "shown", False
        for one in self.open:
            if one.is_in({"table"}):
                hidden_table = False
            if one.is_in(FRAMES):
                hidden_table |= one.hides
                continue
            if one.hides or (hidden_table and one.is_in({"caption", "td", "th"})):
                return "hidden"
            if one.has_html() or one.is_line_of_svg():
                state = "shown"
            elif one.drawing() and not one.within:
                state = "drawn"
        return state

    def write(self, text: str) -> None:
        self.text += text if self.state() == "shown" else ""

    def line(self, name: str) -> None:
        self.write(self.between if name in BREAKS else "")

    # What is open.

    def push(self, one: Open) -> None:
        self.open = [*self.open[: DEEPEST - 1], one]

    def close(self, at: int) -> None:
        """End an element and all in it, but for formatting."""
        whole, breaks = self.open, False
        for count in range(at + 1, len(whole) + 1):
            self.open = whole[:count]
            last = whole[count - 1]
            of_line = last.is_in(BREAKS) or last.is_line_of_svg()
            breaks |= of_line and self.state() == "shown"
        scopes = [place for place in range(at, len(whole)) if whole[place].is_scope()]
        inside = whole[at + 1 : min([*scopes, len(whole)])]
        kept = [one for one in inside if one.is_in(FORMATTING)]
        self.open = whole[:at]
        self.text += self.between if breaks else ""
        self.open += kept

    def end_last(self, is_it: Callable[[Open], bool], ends: Callable[[Open], bool]) -> bool:
        """End the innermost element of a kind that no barrier is in; return whether one is."""
        at = self.last(is_it, ends)
        if at is None:
            return False
        if self.open[at].is_in(FORMATTING) and any(map(Open.is_special, self.open[at + 1 :])):
            self.open = self.open[:at] + self.open[at + 1 :]
        else:
            self.close(at)
        return True

    def last(self, is_it: Callable[[Open], bool], ends: Callable[[Open], bool]) -> int | None:
        for at in reversed(range(len(self.open))):
            if is_it(self.open[at]):
                return at
            if ends(self.open[at]):
                return None
        return None

    # Tags.

    def start(self, tag: Tag, text: str) -> int:
        """Begin an element; return where the text goes on."""
        assert tag.end is not None
        name, end = tag.name, tag.end
        if self.drawing() and name not in BREAKS_OUT:
            self.draw(tag)
            return end
        self.leave_drawing()
        if name in {"html", "head", "body", "frameset"}:
            return end
        if name in PARTS or name == "caption":
            if not any(one.is_in({"table"}) for one in self.open):
                return end
            self.make_way_in_table(name)
        self.end_what_ends(name)
        if name in RAW | {"xmp", "textarea", "title", "plaintext"}:
            return self.content(tag, text)
        if name in VOID:
            if not is_hidden(tag):
                self.line(name)
        elif not (name in HTML_WITHIN and tag.closes_itself):
            hides = name in HIDDEN or is_hidden(tag)
            hides |= name == "dialog" and "open" not in tag.attributes
            hides |= name in {"rt", "rtc"} and any(one.is_in({"ruby"}) for one in self.open)
            self.push(Open(name, "", hides))
            self.line(name)
        return end

    def draw(self, tag: Tag) -> None:
        """Begin an element of a drawing or formula."""
        within = self.drawing()
        one = Open(tag.name, within, tag.name in HIDDEN_WITHIN[within] or is_hidden(tag))
        if one.is_line_of_svg() and not one.hides and self.state() != "hidden":
            self.text += self.between
        if not tag.closes_itself:
            self.push(one)

    def leave_drawing(self) -> None:
        while self.drawing():
            self.open = self.open[:-1]

    def content(self, tag: Tag, text: str) -> int:
        """Take what is in an element without markup."""
        assert tag.end is not None
        name = tag.name
        if name == "plaintext":
            end = len(text)
        elif name == "script":
            end = end_of_script(text, tag.end)
        else:
            found = re.compile(rf"(?i)</{name}(?=[{SPACE}/>])").search(text, tag.end)
            end = found.start() if found else len(text)
        self.titles += name == "title"
        hidden = self.titles > 1 if name == "title" else name in RAW or is_hidden(tag)
        if not hidden:
            inside = text[tag.end : end]
            self.line(name)
            self.write(resolved(inside) if name in {"textarea", "title"} else inside)
            self.line(name)
        return end

    def make_way_in_table(self, name: str) -> None:
        """End the parts of a table that another one ends."""
        table = max(at for at, one in enumerate(self.open) if one.is_in({"table"}))
        level = PARTS.get(name, 0)
        ended = {part for part in PARTS if PARTS[part] >= level} | {"caption"}
        for at in range(table + 1, len(self.open)):
            if self.open[at].is_in(ended):
                self.close(at)
                return

    def end_what_ends(self, name: str) -> None:
        """End the elements that the start of another one ends."""

        def is_wide(one: Open) -> bool:
            return one.is_special() and not one.is_in({"address", "div", "p"})

        if name == "li":
            self.end_last(lambda one: one.is_in({"li"}), is_wide)
        if name in {"dd", "dt"}:
            self.end_last(lambda one: one.is_in({"dd", "dt"}), is_wide)
        if name in {"rb", "rp", "rt", "rtc"}:
            self.end_last(lambda one: one.is_in({"rb", "rp", "rt", "rtc"}), Open.is_special)
        if name in BLOCKS:
            self.end_last(
                lambda one: one.is_in({"p"}), lambda one: one.is_scope() or one.is_in({"button"})
            )
        if name in {"a", "button", "nobr"}:
            self.end_last(lambda one: one.name == name, Open.is_scope)
        for alike in ({"option", "optgroup"}, HEADINGS):
            if name in alike and self.open and self.open[-1].is_in(alike):
                self.close(len(self.open) - 1)

    def end(self, tag: Tag) -> int:
        """End an element, if it is open; return where the text goes on."""
        assert tag.end is not None
        name = tag.name
        if name in {"html", "head", "body", "frameset"}:
            return tag.end
        if name in {"p", "br"}:
            self.leave_drawing()

        def is_it(one: Open) -> bool:
            return one.name == name or (name in HEADINGS and one.is_in(HEADINGS))

        def ends(one: Open) -> bool:
            if name in PARTS or name in {"caption", "table"}:
                return one.is_in({"table"})
            wide = name in BREAKS | SCOPES | FORMATTING | {"button"}
            return one.is_scope() if wide else one.is_special()

        if not self.end_last(is_it, ends):
            self.line(name if name in {"p", "br"} else "")
        return tag.end


def tag_at(text: str, begin: re.Match[str]) -> Tag:
    """Return the tag that begins with a match."""
    attributes: dict[str, str] = {}
    at, closes_itself = begin.end(), False
    while at < len(text) and text[at] != ">":
        if not (name := NAME.match(text, at)):
            closes_itself = text[at : at + 2] == "/>"
            at += 1
            continue
        at, value = name.end(), ""
        if equals := EQUALS.match(text, at):
            found = VALUE.match(text, equals.end())
            if not found:
                at = len(text)
                break
            at, value = found.end(), found[found.lastindex or 0]
        attributes.setdefault(name[0].lower(), value)
    end = at + 1 if at < len(text) else None
    return Tag(begin[2].lower(), begin[1] == "/", end, attributes, closes_itself)


def end_of_script(text: str, at: int) -> int:
    """Return where the end tag of a script is. `<!-- <script>` protects one."""
    state = ""
    while found := SCRIPT.search(text, at):
        at = found.end()
        what = found[0].lower()
        if what == "<!--":
            at -= 2  # The dashes may be those of the end.
            state = state or "comment"
        elif what == "-->":
            state = ""
        elif what == "<script":
            state = "script" if state else ""
        elif state == "script":
            state = "comment"
        else:
            return found.start()
    return len(text)


def resolved(text: str, *, in_attribute: bool = False) -> str:
    """Return a text with references resolved."""

    def shown(reference: re.Match[str]) -> str:
        decimal, hexadecimal, name, semicolon = reference.groups()
        if name is None:
            return numbered(int(decimal) if decimal else int(hexadecimal, 16))
        if semicolon and f"{name};" in html5:
            return html5[f"{name};"]
        for size in reversed(range(len(name) + 1)):
            if name[:size] in html5:
                after = text[reference.start() + 1 + size :][:1]
                is_parameter = after == "=" or (after.isascii() and after.isalnum())
                if in_attribute and is_parameter:
                    break
                return html5[name[:size]] + name[size:] + semicolon
        return reference[0]

    return REFERENCE.sub(shown, text)


def numbered(number: int) -> str:
    """Return the character of a number."""
    if number == 0 or 0xD800 <= number < 0xE000 or number > 0x10FFFF:
        return "\ufffd"
    if 0x80 <= number < 0xA0:
        return bytes([number]).decode("cp1252", "ignore") or chr(number)
    return chr(number)


def is_hidden(tag: Tag) -> bool:
    """Return whether its attributes hide an element."""
    hidden, important = "hidden" in tag.attributes, False
    style = resolved(tag.attributes.get("style", ""), in_attribute=True)
    style = re.sub(r"(?s)/\*.*?(\*/|$(?!\n))", "", style)
    style = re.sub(rf"\\([0-9a-fA-F]{{1,6}})[{SPACE}]?|\\", escaped, style)
    for declaration in style.split(";"):
        name, colon, value = declaration.lower().partition(":")
        value = value.strip(" \t\n\r\f")
        found = re.fullmatch(rf"(?s)(.*?)[{SPACE}]*![{SPACE}]*important", value)
        value = found[1] if found else value
        is_known = value == "none" or value.startswith(DISPLAYS[:10] + DISPLAYS[11:])
        if name.strip(" \t\n\r\f") != "display" or not colon or not is_known:
            continue
        if found or not important:
            hidden, important = value == "none", bool(found)
    return hidden


def escaped(escape: re.Match[str]) -> str:
    number = int(escape[1] or "0", 16)
    return "" if not escape[1] else chr(number) if number < 0x100 else "\ufffd"
