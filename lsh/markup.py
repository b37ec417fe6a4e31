"""What a text is wrapped in, taken off at a switch, before anything else.

`strip_html`: scripts and styles are dropped, then comments, then tags; then character
    references are resolved. Tags that begin a new line or cell become a space, or a line break
    if lines are compared with a list (`lsh.listed_lines`). Others, such as `<b>`, vanish, so
    `v<b>i</b>agra` is one word. This is no parser: a tag ends at the first `>`, and what isn't
    closed stays.
`reduce_urls`: web addresses become their hosts. What follows the host, and a user's name
    before it, are dropped.

The work is linear in the size of the text: no attempt to match a tag passes a `<`, and an end
is looked for only where there is one.
"""

from __future__ import annotations

import re
from html import unescape
from html.entities import html5
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lsh.switches import Switches

_RAW: Final = ("script", "style", "template", "noscript")
"""Elements whose content is no text of the page."""
_INLINE: Final = (
    "a|abbr|acronym|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|ins|kbd|label|mark|q|s|samp"
    "|small|span|strike|strong|sub|sup|time|tt|u|var|wbr"
)
"""Elements that stand inside a word as well as between two."""
_REST: Final = r"(?![^\s<>/])[^<>]*+>"
"""What follows the name of a tag."""
_ELEMENTS: Final = [
    (
        re.compile(rf"(?s:.*)</{name}{_REST}", re.IGNORECASE),
        re.compile(rf"<{name}{_REST}(?<!/>).*?</{name}{_REST}", re.IGNORECASE | re.DOTALL),
    )
    for name in _RAW
]
"""Of each, all up to its last end; and one, from a beginning to the next end."""
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_BLOCK_TAG: Final = re.compile(
    rf"<(?:/?+(?!(?:{_INLINE})(?![^\s<>/]))[a-z]|[!?])[^<>]*+>", re.IGNORECASE
)
_INLINE_TAG: Final = re.compile(rf"</?(?:{_INLINE}){_REST}", re.IGNORECASE)
_REFERENCE: Final = re.compile(
    r"&(?:\#[0-9]{1,7}+|\#[xX][0-9a-fA-F]{1,6}+|[a-zA-Z][a-zA-Z0-9]{1,31}+);"
)
_URL: Final = re.compile(
    r"""
    (?: \b https?:// (?: [^\s/?\#<>"@]*+ @ )? | \b (?=www\.) )
    ( [^\s/?\#:<>"@]++ )
    [^\s<>"]*+
    """,
    re.IGNORECASE | re.VERBOSE,
)


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
    return _URL.sub(r"\1", text) if switches.reduce_urls else text


def all_unwrapped(texts: Sequence[str], switches: Switches) -> Sequence[str]:
    """Return the same of each text."""
    if switches.strip_html or switches.reduce_urls:
        return [unwrapped(text, switches) for text in texts]
    return texts


def _without_html(text: str, between: str) -> str:
    """Return `text` without markup. between: what stands in place of a block's tag."""
    if "</" in text:
        for up_to_last, element in _ELEMENTS:
            if closed := up_to_last.match(text):
                text = element.sub(" ", closed[0]) + text[closed.end() :]
    if end := text.rfind("-->") + 1:
        text = _COMMENT.sub("", text[: end + 2]) + text[end + 2 :]
    if ">" in text:
        text = _INLINE_TAG.sub("", _BLOCK_TAG.sub(between, text))
    return _REFERENCE.sub(_resolved, text)


def _resolved(reference: re.Match[str]) -> str:
    """Return what a reference stands for, or itself if there is no such name."""
    name = reference[0][1:]
    return unescape(reference[0]) if name[0] == "#" else html5.get(name, reference[0])
