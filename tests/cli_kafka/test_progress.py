from hypothesis import given
from hypothesis import strategies as st

from worker.admin.progress import Progress

CODES = ("a", "b", "c")


@given(
    records=st.lists(st.sampled_from(CODES), max_size=30),
    runs=st.lists(
        st.tuples(st.sets(st.sampled_from(CODES)), st.integers(0, 30), st.integers(0, 30)),
        max_size=8,
    ),
)
def test_each_record_is_sent_once_whatever_is_asked_for_when(
    records: list[str], runs: list[tuple[set[str], int, int]]
) -> None:
    sent = [0] * len(records)
    offset, metadata = 0, ""
    for reasons, end, stop in [*runs, (set[str](), 30, 30)]:
        at = Progress.read(offset, metadata)
        for place in range(at.start(reasons), min(end, stop, len(records))):
            if at.is_due(place, records[place]) and (not reasons or records[place] in reasons):
                sent[place] += 1
            at.passed(place + 1, reasons)
        offset, metadata = at.base, at.metadata()
    assert sent == [1] * len(records)


def test_metadata_that_someone_else_wrote_is_nothing() -> None:
    assert Progress.read(7, "hello") == Progress.read(7, "[1]") == Progress(7)
    assert Progress.read(7, None) == Progress.read(7, "") == Progress(7)
