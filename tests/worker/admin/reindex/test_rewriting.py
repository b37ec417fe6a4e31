"""A generation with fingerprints of its own: what it can be, and where its groups stand."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.plans import taken_over
from tests.worker.admin.fake import FakeCluster
from worker.admin.agreement import agreed
from worker.admin.reindex import rewriting
from worker.admin.reindex.in_use import in_use, other_rules
from worker.bus import Offset, Outgoing, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.generations.generation import Generation, Signing
from worker.generations.log import PLAN_KEY, dump
from worker.generations.plan import Plan
from worker.generations.turns import SEALED, WAITING
from worker.settings.errors import ConfigurationError
from worker.settings.loading import load
from worker.settings.model import Settings
from worker.wire.codec import HandOver

SETTINGS = load(None, {"app": "a", "index.window": "9d"})
WORDS = load(None, {"app": "a", "similarity.shingle": "word", "similarity.threshold": 0.7})
BASE = SETTINGS.topology(2)
SIGNING = Signing.of(SETTINGS.parameters())
FIRST = Plan.of(SETTINGS).signed(SIGNING)
ANEW = rewriting.numbered(FIRST, Generation.fingerprinted(WORDS), 100)
TARGET = ANEW.topology(BASE)
PLACES = [TopicPartition("a.documents", 0), TopicPartition("a.documents", 1)]


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster(SETTINGS)


class TestWhatItCanBe:
    @pytest.mark.parametrize(
        "settings", [SETTINGS, WORDS, load(None, {"similarity.containment": 0.9})]
    )
    def test_what_an_application_began_with_is_on_record(self, settings: Settings) -> None:
        facts = agreed(settings, settings.topology(2))
        own = Generation.fingerprinted(settings)
        assert rewriting.signing_of(facts) == own.signing
        assert rewriting.generation_of(facts) == msgspec.structs.replace(own, signing=None)

    def test_its_number_is_that_of_its_log_whose_frames_come_after_all_others(self) -> None:
        assert (ANEW.number, ANEW.log) == (1, 1)
        assert ANEW.numbered_from > 100 + (1 << 29)
        later = taken_over(FIRST, ANEW)
        again = rewriting.numbered(later, Generation.fingerprinted(SETTINGS), 7)
        assert (again.number, again.log) == (2, 2)
        assert again.numbered_from > ANEW.numbered_from + 7 + (1 << 29)

    def test_a_log_that_has_grown_too_much_is_not_followed(self) -> None:
        assert rewriting.numbers_follow(ANEW, BASE, 1 << 28)
        assert not rewriting.numbers_follow(ANEW, BASE, 1 << 30)
        own = ANEW.topology(BASE)
        later = rewriting.numbered(taken_over(FIRST, ANEW), ANEW, 5)
        assert rewriting.numbers_follow(later, own, 5)
        assert not rewriting.numbers_follow(ANEW, own, 5)

    def test_other_fingerprints_are_needed_for_it(self) -> None:
        rewriting.check_anew(FIRST, ANEW)
        rules = load(None, {"app": "a", "index.shards": 5, "index.window": "1d"})
        with pytest.raises(ConfigurationError, match="run it without"):
            rewriting.check_anew(FIRST, Generation.fingerprinted(rules))

    def test_sizes_are_a_reason_and_their_loss_is_none(self) -> None:
        sized = load(None, {"app": "a", "similarity.containment": 0.9, "similarity.slots": 256,
                            "similarity.bands": 64, "similarity.rows": 4})  # fmt: skip
        one = Generation.fingerprinted(sized)
        without = msgspec.structs.replace(
            one,
            containment=None,
            signing=msgspec.structs.replace(one.signing, sized=False),  # type: ignore[type-var]
        )
        plain = Plan(without, without).signed(without.signing)  # type: ignore[arg-type]
        rewriting.check_anew(plain, one)
        with pytest.raises(ConfigurationError, match="run it without"):
            rewriting.check_anew(Plan(one, one).signed(one.signing), without)  # type: ignore[arg-type]


class TestGroups:
    def test_groups_of_a_new_log_wait_where_those_of_the_earlier_one_are(
        self, cluster: FakeCluster
    ) -> None:
        cluster.offsets["a.fingerprint"] = {PLACES[0]: 5, PLACES[1]: 7}
        cluster.ends[BASE.order] = (40, 100)
        rewriting.set_starts(cluster.as_cluster(), BASE, TARGET)
        assert cluster.offsets["a.g1.refingerprint"] == {BASE.order: 40}
        assert cluster.offsets["a.g1.fingerprint"] == {
            PLACES[0]: Offset(5, WAITING),
            PLACES[1]: Offset(7, WAITING),
        }

    def test_what_is_set_stays(self, cluster: FakeCluster) -> None:
        cluster.offsets["a.g1.refingerprint"] = {BASE.order: 70}
        cluster.offsets["a.g1.fingerprint"] = {PLACES[0]: 8}
        rewriting.set_starts(cluster.as_cluster(), BASE, TARGET)
        assert rewriting.rewritten(cluster.as_cluster(), BASE, TARGET) == 70
        assert cluster.offsets["a.g1.fingerprint"] == {PLACES[0]: 8, PLACES[1]: Offset(0, WAITING)}

    def test_a_log_is_sealed_once_all_partitions_are(self, cluster: FakeCluster) -> None:
        offsets = cluster.offsets["a.fingerprint"]
        assert rewriting.sealed(cluster.as_cluster(), BASE) is None
        offsets[PLACES[1]] = Offset(9, SEALED)
        assert rewriting.sealed(cluster.as_cluster(), BASE) is None
        offsets[PLACES[0]] = Offset(0, SEALED)
        assert rewriting.sealed(cluster.as_cluster(), BASE) == [0, 9]
        del offsets[PLACES[0]]
        assert rewriting.sealed(cluster.as_cluster(), BASE) is None

    def test_a_log_is_begun_once_all_partitions_are(self, cluster: FakeCluster) -> None:
        rewriting.set_starts(cluster.as_cluster(), BASE, TARGET)
        cluster.offsets["a.g1.fingerprint"][PLACES[0]] = 4
        assert not rewriting.begun(cluster.as_cluster(), TARGET)
        cluster.offsets["a.g1.fingerprint"][PLACES[1]] = 0
        assert rewriting.begun(cluster.as_cluster(), TARGET)

    def test_progress_is_that_of_the_log_that_goes_on(self) -> None:
        one, other = PLACES
        earlier = {one: Offset(5, SEALED), other: Offset(6, SEALED)}
        waiting, reached = Offset(2, WAITING), rewriting.fingerprinted_to
        assert reached(earlier, {one: waiting}) == earlier
        assert reached(earlier, {one: 8, other: waiting}) == {one: 8, other: earlier[other]}


def test_a_log_is_written_once_it_has_its_hand_over() -> None:
    bus = MemoryBus()
    bus.create_topic(TARGET.fingerprints, 1)

    def write(value: bytes) -> None:
        bus.append(Outgoing(TARGET.fingerprints, 0, None, value))

    assert not rewriting.written(bus, TARGET)
    write(b"a frame")
    assert not rewriting.written(bus, TARGET)
    write(HandOver(TARGET.layout.id, 1).encode())
    assert rewriting.written(bus, TARGET)


class TestSettings:
    PLAN = taken_over(FIRST, ANEW)

    @pytest.mark.parametrize("settings", [SETTINGS, WORDS])
    def test_those_from_before_and_for_after_are_known(
        self, settings: Settings, cluster: FakeCluster
    ) -> None:
        assert list(other_rules(self.PLAN, settings)) == []
        cluster.records["a.layout"][PLAN_KEY] = dump(self.PLAN)
        plan = in_use(cluster.as_cluster(), settings)
        assert plan.topology(settings, 2) == TARGET
        assert plan.settings(settings).parameters() == WORDS.parameters()

    @pytest.mark.parametrize(
        ("given", "named"),
        [
            ({"threshold": 0.7}, "similarity.shingle"),
            ({"shingle": "word"}, "similarity.threshold"),
            ({"shingle": "word", "threshold": 0.7, "casefold": False}, "similarity.casefold"),
            (
                {"shingle": "word", "threshold": 0.7, "slots": 200, "bands": 40, "rows": 5},
                "similarity.slots",
            ),
        ],
    )
    def test_a_mixture_is_another_one(self, given: dict[str, object], named: str) -> None:
        settings = load(None, {"app": "a"} | {f"similarity.{k}": v for k, v in given.items()})
        assert named in {one.name for one in other_rules(self.PLAN, settings)}

    def test_sizes_that_follow_from_other_settings_are_not_asked_for(self) -> None:
        lower = msgspec.structs.replace(FIRST.current, number=1, threshold=0.9)
        plan = taken_over(FIRST, lower)
        later = load(None, {"app": "a", "index.window": "9d", "similarity.threshold": 0.9})
        assert later.parameters().bands != lower.bands
        assert list(other_rules(plan, later)) == []
