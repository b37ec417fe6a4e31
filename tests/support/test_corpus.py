"""Sizes of a run, and excerpts among its documents: parts of earlier ones."""

import pytest

from tests.support import corpus as sizes
from tests.support.corpus import corpus, with_excerpts

COUNT = 2_000


def test_one_in_ten_is_a_part_of_an_earlier_text() -> None:
    before = corpus(COUNT, 3)
    after = with_excerpts(before, 3)
    assert [ident for ident, _ in after] == [ident for ident, _ in before]
    replaced = [at for at in range(COUNT) if after[at][1] != before[at][1]]
    assert COUNT // 15 < len(replaced) < COUNT // 7
    for at in replaced[:20]:
        text = after[at][1]
        sources = [one for _, one in after[:at] if text in one and text != one]
        assert any(0.6 < len(text) / len(one) < 0.78 for one in sources)


def test_a_seed_gives_the_same_excerpts_again() -> None:
    texts = corpus(200, 3)
    assert with_excerpts(texts, 1) == with_excerpts(texts, 1) != with_excerpts(texts, 2)


@pytest.mark.parametrize(
    ("scale", "few", "many"), [("", 20, 20), ("ci", 40, 40), ("full", 40, 700)]
)
def test_examples_are_half_as_many_without_a_scale(
    monkeypatch: pytest.MonkeyPatch, scale: str, few: int, many: int
) -> None:
    monkeypatch.setattr(sizes, "SCALE", scale)
    monkeypatch.setattr(sizes, "FULL", scale == "full")
    assert sizes.examples(40) == few
    assert sizes.examples(40, 700) == many
