import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lsh.code_points import as_text, code_points
from lsh.expansion import Expansion, Shifts

FORMS = {"a": "b", "B": "xyz", "c": "cd", "K": None}


def form(point: int) -> str | None:
    return FORMS.get(chr(point), chr(point))


@given(st.text(st.sampled_from("aBcKq")))
def test_each_is_replaced_by_its_form(text: str) -> None:
    table = Expansion(form)
    for _ in range(2):  # The table is filled by the first call.
        found = table.expand(code_points(text))
        assert as_text(found.codes) == "".join(FORMS.get(one) or one for one in text)
        assert found.kept.tolist() == [at for at, one in enumerate(text) if one == "K"]
        shifts = Shifts.of(found.places, found.growth)
        places = np.arange(len(text) + 1)
        before = ["".join(FORMS.get(one) or one for one in text[:at]) for at in places]
        assert shifts.moved(places).tolist() == list(map(len, before))


def test_it_is_in_place_where_the_length_stays() -> None:
    codes = code_points("aKq")
    found = Expansion(form).expand(codes)
    assert found.codes is codes
    assert as_text(codes) == "bKq"
    assert not len(found.places)
