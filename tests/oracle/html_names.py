"""What browsers do with elements, by their names."""


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


HEADINGS = _names("h1 h2 h3 h4 h5 h6")
BLOCKS = HEADINGS | _names(
    """address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption
    figure footer form header hgroup hr li listing main menu nav ol p plaintext pre search section
    summary table ul xmp"""
)
"""Where one begins, a paragraph ends."""
LOOSE = _names("dialog legend optgroup option")
"""They break lines, but a tag in them may end what is around them."""
BREAKS = BLOCKS | LOOSE | _names("br caption tbody td tfoot th thead title tr")
"""Lines and cells begin and end with them."""
VOID = _names(
    """area base basefont bgsound br col embed frame hr img input keygen link meta param source
    track wbr"""
)
RAW = _names("iframe noembed noframes noscript script style")
"""Nothing in them is markup, and nothing is shown."""
HIDDEN = _names("audio canvas datalist meter progress rp select template video")
FORMATTING = _names("a b big code em font i nobr s small strike strong tt u")
"""They go on behind a block that ends around them."""
SCOPES = _names("applet caption marquee object table td template th")
"""No end tag in them ends what is around them."""
FRAMES = _names("colgroup table tbody tfoot thead tr")
"""Only the cells in them have content: a browser moves other content out of them."""
PARTS = {"colgroup": 0, "tbody": 0, "tfoot": 0, "thead": 0, "tr": 1, "td": 2, "th": 2}
"""Parts of a table, but for captions, from the outside in."""
HTML_WITHIN = {
    "svg": _names("desc foreignobject title"),
    "math": _names("mi mn mo ms mtext"),
}
"""Elements of drawings and formulas that have HTML in them."""
HIDDEN_WITHIN = {
    "svg": _names(
        """clippath defs desc lineargradient marker mask metadata pattern script style symbol
        title"""
    ),
    "math": _names("annotation annotation-xml"),
}
BREAKS_OUT = (HEADINGS | FORMATTING) - {"a", "font"} | _names(
    """blockquote body br center dd div dl dt embed head hr img li listing menu meta ol p pre ruby
    span sub sup table ul var"""
)
"""They end a drawing or formula."""
