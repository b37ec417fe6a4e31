"""What texts are wrapped in: markup, and what follows the hosts of web addresses."""

import re
from html import unescape
from html.entities import html5
from typing import NamedTuple

from tests.oracle.html_names import ELEMENTS, INLINE, RAW, WITHOUT_VALUE

__all__ = ["with_hosts", "without_html"]

SPACE = r" \t\n\r\f\v"
NAME = r"[a-zA-Z][a-zA-Z0-9_:.-]*"
WORD = rf"[^{SPACE}\"'<>/=]+"
VALUE = rf"[{SPACE}]*=[{SPACE}]*(?:\"[^\"]*\"|'[^']*'|[^{SPACE}\"'<>]+)"
ATTRIBUTE = re.compile(rf"[{SPACE}/]|({WORD})({VALUE})?")
QUOTED_AT_FIRST = re.compile(rf"[{SPACE}]+{WORD}[{SPACE}]*=[{SPACE}]*[\"']")
TAG = re.compile(rf"<(/?)({NAME})(?=[{SPACE}/>])")
REST = re.compile("([^<>]*)>")
DECLARATION = re.compile(
    rf"""(?ai)<(?:
        !(?:doctype|element|entity|attlist|notation)(?:[{SPACE}][^<>]*)?
    |   !\[(?:end)?if(?![a-z0-9_-])[^<>]*
    |   \?xml[^<>]*
    |   \?[a-z][^<>?]*\?
    )>""",
    re.VERBOSE,
)
ENDED = re.compile(r"</([a-zA-Z0-9_:.-]*)")
REFERENCE = re.compile("&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
UNSHOWN = [("<!--", "--!?>", "")]
UNSHOWN += [
    (rf"(?ai:<{name})(?=[{SPACE}/>])[^<>]*(?<!/)>", rf"(?ai:</{name})(?=[{SPACE}/>])[^<>]*>", " ")
    for name in RAW
]
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
    """What is between two brackets: `name` is empty for a declaration."""

    begin: int
    end: int
    name: str = ""
    inside: str = ""
    is_end: bool = False


def with_hosts(text: str) -> str:
    """Return a text with hosts for addresses, unless it says nothing else."""
    says_more = any(map(str.isalnum, ADDRESS.sub("", text)))
    return ADDRESS.sub(r"\g<host>", text) if says_more else text


def without_html(text: str, between: str) -> str:
    """Return a text without markup. between: what stands in place of a block's tag."""
    text = re.sub(r"(?s)<!\[CDATA\[(.*?)\]\]>", r"\1", text)
    text = without_what_is_unshown(text)
    ended = {name.lower() for name in ENDED.findall(text)}
    kept, at = "", 0
    while at < len(text):
        tag = tag_at(text, at)
        kept += shown(tag, text, ended, between) if tag else text[at]
        at = tag.end if tag else at + 1
    return REFERENCE.sub(resolved, kept)


def without_what_is_unshown(text: str) -> str:
    """Return a text without comments and elements whose content is no text."""
    kept, at = "", 0
    while at < len(text):
        for beginning, ending, left in UNSHOWN:
            begin = re.compile(beginning).match(text, at)
            # The beginning of a comment can hold its end: `<!-->`.
            after = begin.end() - 2 * (left == "") if begin else 0
            if begin and (end := re.compile(ending).search(text, after)):
                kept, at = kept + left, end.end()
                break
        else:
            kept, at = kept + text[at], at + 1
    return kept


def tag_at(text: str, at: int) -> Tag | None:
    """Return the tag that begins here; None if none does."""
    if declaration := DECLARATION.match(text, at):
        return Tag(at, declaration.end())
    if not (found := TAG.match(text, at)):
        return None
    rest = REST.match(text, found.end())
    end = rest.end() if rest else None
    if not found[1]:
        begins_quoted = rest and QUOTED_AT_FIRST.match(rest[1])
        end = attributes(text, found.end()) or (end if begins_quoted else None)
    if end is None:
        return None
    return Tag(at, end, found[2], text[found.end() : end - 1], found[1] == "/")


def attributes(text: str, at: int) -> int | None:
    """Return where a tag ends that has nothing but attributes from here on."""
    while text[at : at + 1] != ">":
        found = ATTRIBUTE.match(text, at)
        if not found:
            return None
        name, value = found.groups()
        if name and not value and "-" not in name and name.lower() not in WITHOUT_VALUE:
            return None
        at = found.end()
    return at + 1


def shown(tag: Tag, text: str, ended: set[str], between: str) -> str:
    """Return what stands for a tag: nothing, a space or break, or itself if it is none."""
    name, itself = tag.name.lower(), text[tag.begin : tag.end]
    # `List<String>`: the parameter of a type, unless the text ends it.
    behind_a_name = re.match(r"\w", text[tag.begin - 1 : tag.begin]) is not None
    type_name = tag.name[:1].isupper() and tag.name[2:].islower()
    type_name = type_name or (tag.name in {*"ABIQSU"} and f"</{tag.name}>" not in text)
    if behind_a_name and type_name and not tag.is_end and not tag.inside:
        return itself
    if name in INLINE:
        return ""
    office = name.startswith(("o:", "v:", "w:", "m:", "x:", "st1:"))
    custom = "-" in name and ":" not in name and (name in ended or tag.inside != "")
    return between if name in {"", *ELEMENTS} or office or custom else itself


def resolved(reference: re.Match[str]) -> str:
    """Return what a reference to a character stands for, or itself if there is no such name."""
    whole, name = reference[0], reference[1]
    return unescape(whole) if name.startswith("#") else html5.get(f"{name};", whole)
