"""The names by which markup is told from text: elements of HTML, and attributes without a value.

Elements: those of the HTML standard, obsolete ones too; those of MathML, since a formula's
letters are text; `svg`, whose content is none; and those that Office writes, such as `o:p`.
"""

from __future__ import annotations

from typing import Final

RAW: Final = frozenset({"script", "style", "template", "noscript", "svg"})
"""Elements whose content is no text of the page."""

_INLINE: Final = """
    a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q s samp
    small span strike strong sub sup time tt u var wbr
    """
INLINE: Final = frozenset(_INLINE.split())
"""Elements that stand inside a word as well as between two."""

_OTHERS: Final = """
    address applet area article aside audio base basefont bgsound blink blockquote body br button
    canvas caption center col colgroup command content datalist dd details dialog dir div dl dt
    element embed fencedframe fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5
    h6 head header hgroup hr html iframe image img input isindex keygen layer legend li link
    listing main map marquee math menu menuitem meta meter multicol nav nextid noembed noframes
    nolayer object ol optgroup option output p param picture plaintext portal pre progress rb rp
    rt rtc ruby search section select selectedcontent shadow slot source spacer summary table
    tbody td textarea tfoot th thead title tr track ul video xmp
    """
_MATHEMATICS: Final = """
    annotation maction maligngroup malignmark menclose merror mfenced mfrac mglyph
    mi mlabeledtr mlongdiv mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms
    mscarries mscarry msgroup msline mspace msqrt msrow mstack mstyle msub msubsup msup mtable mtd
    mtext mtr munder munderover semantics
    """
ELEMENTS: Final = RAW | INLINE | frozenset(_OTHERS.split()) | frozenset(_MATHEMATICS.split())
"""All names, in lower case."""

OFFICE: Final = ("m", "o", "st1", "v", "w", "x")
"""The prefixes of Office's elements."""

_WITHOUT_VALUE: Final = """
    allowfullscreen alt async autofocus autoplay border checked compact contenteditable controls
    crossorigin declare default defer disabled download draggable formnovalidate hidden inert
    ismap itemscope loop multiple muted nohref nomodule noresize noshade novalidate nowrap open
    playsinline popover readonly required reversed scoped seamless selected shadowrootmode
    sortable truespeed typemustmatch
    """
WITHOUT_VALUE: Final = frozenset(_WITHOUT_VALUE.split())
"""Attributes that stand without a value. So do others that have a hyphen, such as `data-x`."""
