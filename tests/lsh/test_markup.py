from __future__ import annotations

from dataclasses import replace
from time import process_time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsh import SWITCHES, Fingerprinter, Parameters, normalise
from tests.oracle.markup import with_hosts, without_html

BOTH = Parameters(strip_html=True, reduce_urls=True)
HTML = Parameters(strip_html=True)
URLS = Parameters(reduce_urls=True)
NONE: dict[str, Any] = dict.fromkeys(SWITCHES, False)
RAW = Parameters(**NONE)
"""No step but what is switched on."""

PIECES = st.sampled_from(
    [
        *("<", ">", "<b>", "</b>", "<p>", "<P class='x'>", "<br/>", "</td >", "<!--", "-->", "<a"),
        *("<script>", "</script>", "</SCRIPT x>", "<style/>", "<style", "</style", "<!doctype>"),
        *("<?x?>", "<!", "<>", "</>", "< b>", "</", "/", "&amp;", "&lt", "&#60;", "&#x3C", "&"),
        *(
            "&#1234567890;",
            "&notit;",
            "lt;",
            "&nbsp;",
            "&#xD800;",
            "&;",
            "&#;",
            "&#x;",
            "&b",
            ";",
            "#",
        ),
        *(
            "<a-b>",
            "</a-b>",
            "<o:p>",
            "<Object>",
            "<A>",
            "</A>",
            "<P>",
            "<i<n",
            "m>0",
            "<a x=",
            "<b y",
            "'>'",
            "=z",
            "'",
        ),
        *(
            "<span hidden>",
            "</span>",
            "<b hidden=''>",
            "<div style='display:none'>",
            "</div>",
            "<rt>",
        ),
        *("<table>", "<td>", "<td hidden>", "</table>", "<text>", "</text>", "<title>", "</title>"),
        *(
            "<ruby>",
            "</ruby>",
            "<p hidden>",
            "</p>",
            "<li>",
            "<math>",
            "<mi>",
            "<template>",
            "&#84",
        ),
        *("<svg>", "</svg >", "<![CDATA[", "]]>", "<![if", "-", " and", " hidden", "<?b", "?>"),
        *(
            "(",
            ")",
            "\u4e2d\u6587",
            "http://",
            "HTTPS://",
            "www.",
            "example.com",
            ":80",
            "@",
            "?",
            '"',
            " ",
            "\n",
            "\xa0",
        ),
        *("x", "_", "é", "٣", "\u017f", "\u212a", "\u2028", "中", "\U0001f600"),
    ]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<p>One</p><p>two</p>", "one two"),
        ("v<b>i</b>a<span class=x>gra</span>", "viagra"),
        ("a<br>b<hr/>c", "a b c"),
        ("a <!-- <p> hidden --> b", "a b"),
        ("<style>p { color: red }</style>a<SCRIPT>if (a < b) {}</script >b", "ab"),
        (
            "Fish &amp; chips &lt;3 &#8364;5 &copy; &amp &nosuch; &#84he &notit;",
            "fish & chips <3 €5 © & &nosuch; the ¬it;",
        ),
        ("<!DOCTYPE html><?xml version='1.0'?>a", "a"),
        ("if a < b and b > c, I <3 you", "if a < b and b > c, i <3 you"),
        ("a <!-- is not closed <script> neither", "a"),
        ("a <script> is not closed", "a"),
        ("<p>a <b", "a"),
        ("<p", "<p"),
        ("i<n it holds, m>0; x<y && z>w", "i<n it holds, m>0; x<y && z>w"),
        ("a<b and c>d, a <b and c> d", "a<b and c>d, a <b and c> d"),
        ("<br>a<b and c>d, i<n and m>0", "ad, i0"),
        ("List<String>, Class<Object>", "list, class"),
        ("A<B>bold</B> word<BR>next", "abold word next"),
        (
            "<me@example.org> <https://example.org/> <n <3 </3",
            "<me@example.org> <https://example.org/> <n <3 </3",
        ),
        ("<br><me@example.org>a", "a"),
        (
            "wo<user>rd <your-name a=b>wo<!important>rd wo<?>rd</ x>s wo</>rd",
            "word word words word",
        ),
        ("<my-tag>a</my-tag> <my-map lat='5'/>b", "a b"),
        ("<a title='a > b' HREF=\"x?a<b\">c</a>", "c"),
        ("<img src='a.png''>a<div nowrap colspan=2>b<div v-cloak>c<p foo>d</p>", "a b c d"),
        ("<p><b<i>a", "a"),
        ("<math>a<mi>x</mi><mo>=</mo></math> <svg><path d='M0'/>b</svg>c<o:p></o:p>", "x= c"),
        ("<svg><text>a<tspan>b</tspan></text><text>c</text></svg>", "ab c"),
        ("<!-->a<!--[if !IE]><!-->b<!--<![endif]-->c<![if x]>d", "abcd"),
        ("<script><!--<script></script>x</script>--></script>a", "-->a"),
        (" <![CDATA[<p>a</p> i<n]]> ", "a i"),
        ("<p>a<![CDATA[b>c]]></p>", "ac]]>"),
        ("&lt;p&gt; &amp;lt;", "<p> &lt;"),
        ("<ruby>a<rt>b</ruby> wo<slot>r</slot>d", "a word"),
        ("a<p style='display:none'>b<p>c<b hidden>d</b>e", "a ce"),
        ("<title>a</title>b<title>c</title>", "a b"),
        ("<table><tr><td>a<td>b</table>wo<td>rd", "a b word"),
    ],
)
def test_html_becomes_text(text: str, expected: str) -> None:
    assert normalise(text, HTML) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://www.example.com:80/a?b=1#c, now", "see www.example.com now"),
        ("HTTP://me:secret@Example.com/a is it", "example.com is it"),
        ("at http://me@host@else/", "at host"),
        ("1: www.example.com/watch?v=1", "1: www.example.com"),
        ("http://a.b/c \u2026 www.d.e/f", "http://a.b/c ... www.d.e/f"),
        ("xhttp://a.b/c http:// www.", "xhttp://a.b/c http:// www."),
        ('or "http://a.b/c" <http://d.e/f>', 'or "a.b" <d.e>'),
        ("[a](http://a.b/c)[more](http://d.e/f_(g)h)", "[a](a.b)[more](d.e)"),
        (
            "\u8bf7\u770bhttp://t.cn/abc\u8fd9\u4e2a\uff0c\u4f60",
            "\u8bf7\u770bt.cn\u8fd9\u4e2a,\u4f60",
        ),
    ],
)
def test_web_addresses_become_hosts(text: str, expected: str) -> None:
    assert normalise(text, URLS) == expected


def test_an_address_in_a_tag_is_gone_with_the_tag() -> None:
    assert normalise('see <a href="http://a.b/1">http://a.b/2</a>', BOTH) == "see a.b"


def test_without_the_switches_nothing_is_taken_off() -> None:
    assert normalise("<b>&amp;</b> http://a.b/c", Parameters()) == "<b>&amp;</b> http://a.b/c"


def unwrapped(text: str) -> str:
    return normalise(text, replace(RAW, strip_html=True, reduce_urls=True))


@given(TEXTS, st.sampled_from([HTML, URLS, BOTH]))
@example("<script>a</script", HTML)
@example("<<p>b>c<<b>p>d", HTML)
@example("a<!>b<?>c", HTML)
@example("<a x='<b y=\"'><c z='\"'>", HTML)
@example("a<![CDATA[<p>b</p>]]>c]]>", HTML)
@example("http://me@ http://a.b/(c)d(e http://a.b/c(d)e", URLS)
def test_the_same_as_by_the_definition(text: str, parameters: Parameters) -> None:
    wanted = without_html(text, " ") if parameters.strip_html else text
    wanted = with_hosts(wanted) if parameters.reduce_urls else wanted
    switches = replace(RAW, strip_html=parameters.strip_html, reduce_urls=parameters.reduce_urls)
    assert normalise(text, switches) == wanted


@given(st.lists(TEXTS, max_size=4))
def test_a_batch_is_fingerprinted_as_each_text_by_itself(texts: list[str]) -> None:
    batch = Fingerprinter(BOTH).fingerprint(texts)
    plain = Fingerprinter(Parameters()).fingerprint([unwrapped(text) for text in texts])
    assert batch.keys.tolist() == plain.keys.tolist()
    assert batch.sketches.tolist() == plain.sketches.tolist()
    assert batch.blank.tolist() == [not normalise(text, BOTH) for text in texts]


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "<",
            "<a ",
            "<a x=",
            "<a x='",
            "<a x=\"<b y='",
            "<a x='<b y=\"'\"",
            '<a b="<a c=\'" d=\'" ',
        ),
        *(
            "<script>",
            "<script></script ",
            "<!--",
            "<!--<script>",
            "<![CDATA[",
            "<?x ",
            "<!doctype ",
        ),
        *("</a-", "<a-b>", "<a b-c ", "<a b =", "&#1", "<b>", "<b></div>", "<td>", "<svg>", "</b>"),
        *("<p hidden>", "<a style='&#1;", "<p style='display:none;", "<b><p></b>", "<svg></p>"),
        *(
            "<title>",
            "<script><!--",
            "<li>",
            "<table>",
            "<ruby><rt>",
            "&aaaaaa",
            "<b>" * 127 + "<p>",
        ),
        *("http://a/(", "http://a@", "www."),
    ],
)
def test_hostile_texts_take_no_more_than_linear_time(pattern: str) -> None:
    def seconds(text: str) -> float:
        begun = process_time()
        unwrapped(text)
        return process_time() - begun

    # Quadratic work would take thousands of times as long as the tags of a page.
    assert seconds(pattern * (200_000 // len(pattern))) < 20 * seconds("<p>text</p> " * 17_000)
