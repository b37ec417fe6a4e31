from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsh import Fingerprinter, Parameters, normalise
from lsh.markup import unwrapped
from tests.support import reference

BOTH = Parameters(strip_html=True, reduce_urls=True)
HTML = Parameters(strip_html=True)
URLS = Parameters(reduce_urls=True)

PIECES = st.sampled_from(
    [
        *("<", ">", "<b>", "</b>", "<p>", "<P class='x'>", "<br/>", "</td >", "<!--", "-->", "<a"),
        *("<script>", "</script>", "</SCRIPT x>", "<style/>", "<style", "</style", "<!doctype>"),
        *("<?x?>", "<!", "<>", "</>", "< b>", "</", "/", "&amp;", "&lt", "&#60;", "&#x3C", "&"),
        *("&#1234567890;", "&notit;", "&nbsp;", "&#xD800;", "&;", "&#;", "&#x;", "&b", ";", "#"),
        *("http://", "HTTPS://", "www.", "example.com", ":80", "@", "?", '"', " ", "\n", "\xa0"),
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
        ("<style>p { color: red }</style>a<SCRIPT>if (a < b) {}</script >b", "a b"),
        (
            "Fish &amp; chips &lt;3 &#8364;5 &copy; &amp &nosuch;",
            "fish & chips <3 €5 © &amp &nosuch;",
        ),
        ("<!DOCTYPE html><?xml version='1.0'?>a", "a"),
        ("if a < b and b > c, I <3 you", "if a < b and b > c, i <3 you"),
        ("<!-- is not closed <script> neither", "<!-- is not closed neither"),
        ("<script> is not closed", "is not closed"),
        ("<script/>a", "a"),
        ("<p", "<p"),
    ],
)
def test_html_becomes_text(text: str, expected: str) -> None:
    assert normalise(text, HTML) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://www.example.com:80/a?b=1#c, now", "see www.example.com now"),
        ("HTTP://me:secret@Example.com/a", "example.com"),
        ("http://me@host@else/", "host"),
        ("www.example.com/watch?v=1", "www.example.com"),
        ("xhttp://a.b/c http:// www.", "xhttp://a.b/c http:// www."),
        ('"http://a.b/c" <http://d.e/f>', '"a.b" <d.e>'),
    ],
)
def test_web_addresses_become_hosts(text: str, expected: str) -> None:
    assert normalise(text, URLS) == expected


def test_an_address_in_a_tag_is_gone_with_the_tag() -> None:
    assert normalise('<a href="http://a.b/1">http://a.b/2</a>', BOTH) == "a.b"


def test_without_the_switches_nothing_is_taken_off() -> None:
    assert normalise("<b>&amp;</b> http://a.b/c", Parameters()) == "<b>&amp;</b> http://a.b/c"


@given(TEXTS, st.sampled_from([HTML, URLS, BOTH]))
@example("<script>a</script", HTML)
@example("<<p>b>c<<b>p>d", HTML)
@example("a<!>b<?>c", HTML)
def test_the_same_as_by_the_definition(text: str, parameters: Parameters) -> None:
    wanted = reference.without_html(text) if parameters.strip_html else text
    wanted = reference.with_hosts(wanted) if parameters.reduce_urls else wanted
    assert unwrapped(text, parameters) == wanted


@given(st.lists(TEXTS, max_size=4))
def test_a_batch_is_fingerprinted_as_each_text_by_itself(texts: list[str]) -> None:
    batch = Fingerprinter(BOTH).fingerprint(texts)
    plain = Fingerprinter(Parameters()).fingerprint([unwrapped(text, BOTH) for text in texts])
    assert batch.keys.tolist() == plain.keys.tolist()
    assert batch.sketches.tolist() == plain.sketches.tolist()
    assert batch.blank.tolist() == [not normalise(text, BOTH) for text in texts]
