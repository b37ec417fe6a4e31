"""Every signer gives the oracle's fingerprints, by all switches and of all kinds of texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lsh import PRESETS, SWITCHES, Parameters
from tests.oracle.fingerprint import fingerprint
from tests.oracle.markup import with_hosts, without_html
from tests.oracle.subjects import SIGNERS, NaiveSigner, Signer
from tests.oracle.texts import ALL_SWITCHES, CHARACTERS, MARKED, MIXED
from tests.support.corpus import examples
from tests.support.languages import LANGUAGES, OF_JOINERS

Subject = Callable[[Parameters], Signer]
LISTED = ["share this", "\u00e9t\u00e9 \u2014 5", "\u03b9", "- -", "", "\ufb01 \u1fb3"]
SHAPES = [(1, 1, 1), (16, 4, 4), (100, 20, 5), (128, 18, 7), (192, 16, 12), (40, 3, 13)]
PLAIN = ["the", "Quick", "", "brown", "fox\t0123,", "jumps!", ""]
MARKUP = [
    *("<p>", "</p>", "<b>", "<br/>", "<!--", "-->", "<script>", "</script>", "<a href='x'", ">"),
    *("&amp;", "&#x41;", "&#0;", "&nosuch;", "<![CDATA[", "]]>", "<x-y>", "</x-y>", "a<B>", "i<n"),
    *("https://me@a.b/c(d)", "www.example.com:80", "http://", "\u4e2d", "<", "\u0130", "\u212a"),
]
LINES = st.sampled_from([*LISTED, "Share  THIS", "- - -", "another line"])
HOSTILE = st.one_of(
    MIXED,
    MARKED,
    OF_JOINERS,
    st.sampled_from([*LANGUAGES.values()]),
    st.builds(lambda text, times: text * times, MARKED, st.integers(1, 40)),
    st.lists(st.sampled_from(PLAIN), max_size=30).map(" ".join),
    st.lists(st.sampled_from([*MARKUP, *PLAIN]), max_size=14).map("".join),
    st.lists(LINES, max_size=5).map("\n".join),
    st.text(CHARACTERS, max_size=30),
)
TEXTS = st.lists(st.lists(HOSTILE, max_size=3).map("\n".join), min_size=1, max_size=4)


def made(fields: dict[str, Any], shape: tuple[int, int, int], kind: str, size: int) -> Parameters:
    """Return parameters. Words need white space."""
    if kind == "word":
        fields = {**fields, "join_letters": False}
    slots, bands, rows = shape
    return Parameters(**{
        **fields, "shingle": kind, "shingle_size": size, "slots": slots, "bands": bands,
        "rows": rows,
    })  # fmt: skip


def of(switches: Parameters) -> dict[str, Any]:
    return {name: getattr(switches, name) for name in SWITCHES}


# Tables are made for each set of switches, so few sets are drawn, and many texts for each.
switches_strategy = st.one_of(
    st.sampled_from([*map(of, ALL_SWITCHES), *PRESETS.values(), {}]),
    st.integers(0, 2 ** len(SWITCHES) - 1).map(
        lambda bits: {name: bool(bits >> at & 1) for at, name in enumerate(SWITCHES)}
    ),
)
parameters_strategy = st.builds(
    lambda switches, others, shape, kind, size: made({**switches, **others}, shape, kind, size),
    switches_strategy,
    st.fixed_dictionaries(
        {
            "seed": st.sampled_from([b"neardup", b"s", b"\x00\xff" * 100]),
            "containment": st.sampled_from([None, None, 0.8]),
            "boilerplate": st.sampled_from([(), (), LISTED]).map(frozenset),
        }
    ),
    st.sampled_from(SHAPES),
    st.sampled_from(["char", "word"]),
    st.integers(1, 9),
)


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("subject", SIGNERS)
@settings(max_examples=examples(120, 1_000), deadline=None)
@given(texts=TEXTS, parameters=parameters_strategy)
@example(texts=["", " \n", "a", "\u3000"], parameters=Parameters())
def test_fingerprints_are_the_oracles(
    subject: Subject, texts: list[str], parameters: Parameters
) -> None:
    signer, naive = subject(parameters), NaiveSigner(parameters)
    assert list(map(signer.normalise, texts)) == list(map(naive.normalise, texts))
    assert signer.sign(texts) == naive.sign(texts)


@pytest.mark.parametrize("subject", SIGNERS)
@pytest.mark.parametrize("letter", "\u0386\u0389\u038f\u1fba\u1fbb\u1fca\u1fcb\u1ffa\u1ffb")
def test_so_are_those_of_capitals_with_two_marks(subject: Subject, letter: str) -> None:
    text = f"{letter}\u0345\u0301 and more"
    assert subject(Parameters()).sign([text]) == [fingerprint(text, Parameters())]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<p>One</p><p>v<b>i</b>a</p>", " One  via "),
        ("List<String> <A>a</A>", "List a"),
        ("a<!-- b -->c<script>d</script>e &lt;&#64;", "ace <@"),
        ("if a<b and c>d", "if a<b and c>d"),
    ],
)
def test_the_oracle_reads_markup(text: str, expected: str) -> None:
    assert without_html(text, " ") == expected


def test_the_oracle_reads_addresses() -> None:
    assert with_hosts("see http://me@a.b:80/c?d, or (www.e.f)") == "see a.b or (www.e.f)"
    assert with_hosts("http://a.b/c") == "http://a.b/c"
