"""Connected components by ids."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from worker.groups.components import Components

DOCUMENTS = st.lists(st.lists(st.integers(0, 1_000), max_size=3), max_size=40)


@given(DOCUMENTS)
def test_they_are_those_of_a_walk_through_all_matches(matches: list[list[int]]) -> None:
    found = Components()
    near: dict[int, set[int]] = {}
    for number, some in enumerate(matches):
        earlier = [one % number for one in some] if number else []
        if earlier:
            found.join(f"d{number}", [f"d{one}" for one in earlier], (min(earlier), ""))
        for one in earlier:
            near.setdefault(number, set()).add(one)
            near.setdefault(one, set()).add(number)
    for number in range(len(matches)):
        reached, todo = set[int](), [number]
        while todo:
            one = todo.pop()
            if one not in reached:
                reached.add(one)
                todo += near.get(one, ())
        expected = (min(reached), "") if number in near else None
        assert found.name(f"d{number}") == expected
    assert {ident for ident, _ in found.members()} == {f"d{one}" for one in near}
