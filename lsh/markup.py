"""What a text is wrapped in, taken off at a switch, before anything else.

`strip_html`: comments, declarations and tags are dropped, and scripts and styles with what is
    in them; then character references are resolved, once. Tags that begin a new line or cell
    become a space, or a line break if lines are compared with a list (`lsh.listed_lines`).
    Others, such as `<b>`, vanish, so `v<b>i</b>agra` is one word.
`reduce_urls`: web addresses become their hosts. What follows the host, and a user's name
    before it, are dropped. An address ends at white space, a quote or angle bracket, a closing
    bracket that it hasn't opened, and a letter of a script that puts no spaces between words.
    A text without a letter or digit outside of addresses keeps them: they are all that it says.

Nothing else may be lost: a text with `i<n` and `m>0` has no tag. What is taken for a tag:

- `<`, directly followed by the name of an element (`lsh.elements`) in any case, or by that of a
  custom element such as `my-tag` that the text closes somewhere, or that has attributes;
- then attributes as HTML writes them. A word without a value is one only if HTML has it so, or
  if it has a hyphen: `a <b and c> d` is text. A quoted value may have a `>`. If a tag begins
  with a quoted value and goes on with errors, it ends at the first `>`;
- then `>`. What isn't closed stays.

`a<b>c` is a tag, as in a browser, and so is `<input>` for whoever means it as a placeholder.
The parameter of a type is none: directly behind another name, a name in capital and small
letters, or one of A, B, I, Q, S and U if the text doesn't end it: `Class<Object>`, `Set<A>`.

The work is linear in the size of the text. No attempt to match a tag passes a `<` outside of
quotes. From different beginnings, attempts never agree on what is inside of single quotes,
double quotes or none, so at most three of them pass the same place. The end of a comment or an
element is looked for only if there is one.
"""

from __future__ import annotations

import re
from functools import cache, cached_property
from html import unescape
from html.entities import html5
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from lsh.elements import ELEMENTS, INLINE, OFFICE, RAW, WITHOUT_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lsh.switches import Switches

_SPACE: Final = r" \t\n\r\f\v"
_CUSTOM: Final = "[a-zA-Z][a-zA-Z0-9_.]*+-[a-zA-Z0-9_.-]*+"
_TYPE: Final = "[ABIQSU]"  # of the elements that stand inside a line
_WORD: Final = rf"[^{_SPACE}\"'<>/=]"
_EQUALS: Final = rf"[{_SPACE}]*+ = [{_SPACE}]*+"


def _any_of(names: Iterable[str], *, case: bool = False) -> str:
    """Return a pattern for names, which looks at first letters first: that is fast.

    case: whether they must be in small letters.
    """
    return "|".join(
        (first if case else f"[{first}{first.upper()}]")
        + f"(?{'' if case else 'ai'}:{'|'.join(re.escape(name[1:]) for name in those)})"
        for first, those in groupby(sorted(names), key=itemgetter(0))
    )


_BLOCK: Final = rf"{_any_of(ELEMENTS - INLINE)} | (?ai:{'|'.join(OFFICE)}) : [a-zA-Z0-9_.:-]*+"
_TAG: Final = re.compile(
    rf"""
    <(?:
        # Most tags are such, and this is three times as fast.
        /?+ (?: {_any_of(INLINE, case=True)} | ( {_any_of(ELEMENTS - INLINE, case=True)} ) ) >
    |
        (?! [A-Z] (?<= \w<[A-Z] ) [a-zA-Z0-9_.:-] [a-z]++ > )
        (?:
            ( {_CUSTOM} | (?<= \w< ) {_TYPE} (?= > ) ) (?: (?= > ) | (?= [{_SPACE}/] ) () )
        |   (?: {_any_of(INLINE)} | ( {_BLOCK} ) ) (?= [{_SPACE}/>] )
        )
        (?:
            (?:
                [{_SPACE}/]++
            |   {_WORD}++ {_EQUALS} (?: "[^"]*+" | '[^']*+' | [^{_SPACE}"'<>]++ )
            |   (?: {_any_of(WITHOUT_VALUE)} ) (?! {_WORD} )
            |   [^{_SPACE}"'<>/=-]*+ - {_WORD}*+
            )*+
            (?= > )
        |   [{_SPACE}]++ {_WORD}++ {_EQUALS} ["'] [^<>]*+
        ) >
    |   / (?: {_any_of(INLINE)} | ( {_BLOCK} | {_CUSTOM} ) ) (?: [{_SPACE}/] [^<>]*+ )?+ >
    |   ! (?ai: doctype | element | entity | attlist | notation ) (?= [{_SPACE}>] ) [^<>]*+ > ()
    |   !\[ (?ai: (?:end)? if ) (?! [a-zA-Z0-9_-] ) [^<>]*+ > ()
    |   \? (?: [xX][mM][lL] [^<>]*+ | [a-zA-Z] [^<>?]*+ \? ) > ()
    )
    """,
    re.VERBOSE,
)
"""A tag, or a declaration. If no group matches, the tag stands inside a line. If the second one is
the last that matches, it is the name of an element that counts if the text has its end."""
_UNKNOWN: Final = 2
_ENDED: Final = re.compile(rf"</({_CUSTOM}|{_TYPE}(?=>))")
_UNSHOWN: Final = frozenset({*RAW, "!--"})
"""Elements whose content is no text, and comments."""
_ENDS: Final = {name: re.compile(rf"(?ai:</{name})(?=[{_SPACE}/>])[^<>]*+>") for name in RAW}
_ENDS["!--"] = re.compile("--!?>")
_CDATA: Final = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_REFERENCE: Final = re.compile(
    r"&(?:\#[0-9]{1,7}+|\#[xX][0-9a-fA-F]{1,6}+|[a-zA-Z][a-zA-Z0-9]{1,31}+);"
)
_UNSPACED: Final = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f"
    r"\uff00-\uffef\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, Chinese, Japanese and Korean: no part of what follows a host."""
_URL: Final = re.compile(
    rf"""
    ( [hHwW] ) (?<! [^\W{_UNSPACED}] [hHwW] )
    (?:
        (?<= [hH] ) [tT]{{2}} [pP] [sS]?+ :// (?: [^\s/?\#<>"@{_UNSPACED}]*+ @ )?+
    |   (?<= [wW] ) (?= [wW]{{2}} \. )
    )
    ( [^\s/?\#:<>"@]++ )
    (?: [^\s<>"(){_UNSPACED}]++ | \( [^\s<>"(){_UNSPACED}]*+ \) )*+
    """,
    re.VERBOSE,
)
_OF_PAGES: Final = re.compile(
    r"(?ai:</(?:a|b|body|div|em|h[1-6]|html|i|li|p|script|span|strong|style|table|td|ul)\s*+>|<br\s*+/?>)"
)
_LETTER: Final = re.compile(r"[^\W_]")


def unwrapped(text: str, switches: Switches) -> str:
    """Return `text` without markup and without what follows hosts, by the switches."""
    if switches.boilerplate:
        return unwrapped_lines(text, switches)
    return _unwrapped(text, switches, " ")


def unwrapped_lines(text: str, switches: Switches) -> str:
    """Return the same with a line break in place of a tag that begins a new line or cell."""
    return _unwrapped(text, switches, "\n")


def _unwrapped(text: str, switches: Switches, between: str) -> str:
    if switches.strip_html:
        text = _without_html(text, between)
    return _with_hosts(text) if switches.reduce_urls else text


def _with_hosts(text: str) -> str:
    """Return `text` with hosts for addresses, unless it says nothing else."""
    reduced = _URL.sub(_host, text)
    return reduced if reduced == text or _LETTER.search(_URL.sub("", text)) else text


def looks_like_html(text: str) -> bool:
    """Return whether a text has an end of an element that pages are full of, or a line break."""
    return _OF_PAGES.search(text) is not None


def _host(address: re.Match[str]) -> str:
    """Return the host of an address, which begins with `www.` if it has no scheme."""
    first, host = address.groups()
    return f"{first}{host}" if first in "wW" else str(host)


def all_unwrapped(texts: Sequence[str], switches: Switches) -> Sequence[str]:
    """Return the same of each text."""
    if switches.strip_html or switches.reduce_urls:
        return [unwrapped(text, switches) for text in texts]
    return texts


def _without_html(text: str, between: str) -> str:
    """Return `text` without markup. between: what stands in place of a block's tag."""
    if last := text.rfind("]]>") + 1:
        text = _CDATA.sub(r"\1", text[: last + 2]) + text[last + 2 :]
    if ">" in text:
        text = _without_what_is_unshown(text)
        text = _TAG.sub(_Tags(text, between).shown, text)
    return _REFERENCE.sub(_resolved, text)


def _without_what_is_unshown(text: str) -> str:
    """Return `text` without comments, and with a space for each element that shows nothing."""
    names = _UNSHOWN  # without those that have no end from here on
    kept: list[str] = []
    done = at = 0
    while names and (found := _beginning_of(names).search(text, at)):
        name, at = found[found.lastindex or 0].lower(), found.end()
        # The beginning of a comment can hold its end: `<!-->`.
        ending = _ENDS[name].search(text, at - 2 if name == "!--" else at)
        if not ending:
            names -= {name}
            continue
        kept += text[done : found.start()], "" if name == "!--" else " "
        done = at = ending.end()
    return "".join([*kept, text[done:]]) if kept else text


@cache
def _beginning_of(names: frozenset[str]) -> re.Pattern[str]:
    """Return what finds the next beginning of these elements, or of a comment."""
    elements = names & RAW
    kinds = ["(!--)"] * ("!--" in names)
    if elements:
        kinds.append(rf"({_any_of(elements)})(?=[{_SPACE}/>])[^<>]*+(?<!/)>")
    return re.compile(f"<(?:{'|'.join(kinds)})")


class _Tags:
    """The tags of a text, and what stands for them."""

    def __init__(self, text: str, between: str) -> None:
        self._text, self._between = text, between

    def shown(self, tag: re.Match[str]) -> str:
        """Return what stands for a tag; itself if it is none."""
        group = tag.lastindex
        if group is None:
            return ""
        if group != _UNKNOWN:
            return self._between
        name = tag[group].lower() if self._ended else ""
        if name not in self._ended:
            return tag[0]
        return "" if name in INLINE else self._between

    @cached_property
    def _ended(self) -> frozenset[str]:
        """Return the names with hyphens, and of capital letters, of which the text has ends."""
        return frozenset(map(str.lower, _ENDED.findall(self._text)))


def _resolved(reference: re.Match[str]) -> str:
    """Return what a reference stands for, or itself if there is no such name."""
    name = reference[0][1:]
    return unescape(reference[0]) if name[0] == "#" else html5.get(name, reference[0])
