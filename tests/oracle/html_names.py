"""The names by which markup is told from text."""

__all__ = ["ELEMENTS", "INLINE", "RAW", "WITHOUT_VALUE"]

_RAW = """
    noscript script style svg template
    """
RAW = frozenset(_RAW.split())
"""Elements whose content is no text."""
_INLINE = """
    a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q s samp
    small span strike strong sub sup time tt u var wbr
    """
INLINE = frozenset(_INLINE.split())
"""Elements that stand inside a word as well as between two."""
_OTHERS = """
    address annotation applet area article aside audio base basefont bgsound blink blockquote body
    br button canvas caption center col colgroup command content datalist dd details dialog dir
    div dl dt element embed fencedframe fieldset figcaption figure footer form frame frameset h1
    h2 h3 h4 h5 h6 head header hgroup hr html iframe image img input isindex keygen layer legend
    li link listing maction main maligngroup malignmark map marquee math menclose menu menuitem
    merror meta meter mfenced mfrac mglyph mi mlabeledtr mlongdiv mmultiscripts mn mo mover
    mpadded mphantom mprescripts mroot mrow ms mscarries mscarry msgroup msline mspace msqrt msrow
    mstack mstyle msub msubsup msup mtable mtd mtext mtr multicol munder munderover nav nextid
    noembed noframes nolayer object ol optgroup option output p param picture plaintext portal pre
    progress rb rp rt rtc ruby search section select selectedcontent semantics shadow slot source
    spacer summary table tbody td textarea tfoot th thead title tr track ul video xmp
    """
ELEMENTS = RAW | INLINE | frozenset(_OTHERS.split())
"""All elements of HTML and MathML."""
_WITHOUT_VALUE = """
    allowfullscreen alt async autofocus autoplay border checked compact contenteditable controls
    crossorigin declare default defer disabled download draggable formnovalidate hidden inert
    ismap itemscope loop multiple muted nohref nomodule noresize noshade novalidate nowrap open
    playsinline popover readonly required reversed scoped seamless selected shadowrootmode
    sortable truespeed typemustmatch
    """
WITHOUT_VALUE = frozenset(_WITHOUT_VALUE.split())
"""Attributes that stand without a value."""
