"""Frames, headers, and which requests a rule means: no broker needed."""

import struct

from tests.faults.rule import Rule
from tests.faults.wire import Api, Header, Splitter, correlation_of, header_of

END_TXN = frozenset({Api.END_TXN})


def request(api: int, client: str = "neardup-a", correlation: int = 7) -> bytes:
    name = client.encode()
    body = struct.pack(">hhih", api, 3, correlation, len(name)) + name + b"rest"
    return struct.pack(">i", len(body)) + body


def test_a_stream_is_cut_into_frames_wherever_it_is_torn() -> None:
    frames = [request(Api.FETCH), request(Api.END_TXN, "", 8), request(Api.PRODUCE, "ü", 9)]
    stream = b"".join(frames)
    for size in (1, 3, 4, 17, len(stream)):
        splitter = Splitter()
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert [frame for piece in pieces for frame in splitter.feed(piece)] == frames
    assert header_of(frames[2]) == Header(Api.PRODUCE, 3, 9, "ü")
    assert correlation_of(struct.pack(">ii", 4, 42)) == 42


def test_a_rule_meets_what_it_names_as_often_as_it_may() -> None:
    hits: list[Header] = []
    rule = Rule(END_TXN, "drop", "request", client="-a", limit=2, on_hit=hits.append)
    mine, others = Header(Api.END_TXN, 3, 1, "app-a"), Header(Api.END_TXN, 3, 1, "app-b")
    other_kind = Header(Api.FETCH, 3, 1, "app-a")
    assert [rule.meets(one) for one in (mine, others, other_kind, mine, mine)] == [
        True,
        False,
        False,
        True,
        False,
    ]
    assert hits == [mine, mine]


def test_of_two_rules_with_one_seed_both_meet_the_same_share() -> None:
    def drawn() -> list[bool]:
        rule = Rule(END_TXN, "drop", "request", share=0.3, seed=5)
        return [rule.meets(Header(Api.END_TXN, 3, 1, "a")) for _ in range(400)]

    assert drawn() == drawn()
    assert 80 < sum(drawn()) < 160
